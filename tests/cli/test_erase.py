"""`forget` and `erase` on the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from docmem import files, git, history, journal, layout, names, repository
from docmem.config import Settings
from docmem.erasure import Target
from docmem.journal import Journal
from tests.support.cli import Shell
from tests.support.repos import memory, put, subject

TEA = memory("Ana likes her tea green and hot.")
BUS = memory("Ana takes the bus to the harbour.", number=1)


@pytest.fixture
def learned(settings: Settings, tenant: str) -> str:
    both = {one.path: files.render_memory(one) for one in (TEA, BUS)}
    return put(settings, tenant, both | {layout.profile_path(subject()): b"attributes:\n  diet: vegan\n"}, "Learn")


def settings_of_shell(settings: Settings) -> bytes:
    """The shell has no DOCMEM_SECRET: it made the root's own."""
    return (settings.root / "secret").read_bytes().strip()


def test_forget_takes_a_memory_away_and_revert_brings_it_back(shell: Shell, settings: Settings, learned: str) -> None:
    done = shell("forget", "acme", TEA.id, "--yes", "--no-sync", "--json")
    assert done.json["changed"] == [TEA.path]
    repo = repository.open(settings, "acme")
    now = repo.snapshot()
    assert [stored.memory.id for stored in now.memories(subject())] == [BUS.id]
    assert now.reverted == {names.statement_hash(settings_of_shell(settings), subject(), TEA.text)}
    assert shell("revert", "acme", done.json["revision"], "--no-sync").code == 0
    assert repo.snapshot().read(TEA.path) == files.render_memory(TEA)
    assert repo.snapshot().reverted == frozenset()


def test_forget_takes_all_of_a_subject_away_and_announces_it(shell: Shell, settings: Settings, learned: str) -> None:
    assert shell("forget", "acme", "ana", "--yes", "--no-sync").out.count("remove  ") == 3
    repo = repository.open(settings, "acme")
    assert repo.snapshot().subject_tree(subject()) is None
    [entry] = history.log(repo, limit=1)
    assert {edit.op for edit in entry.edits} == {"delete"}
    again = shell("forget", "acme", "ana", "--yes", "--no-sync")
    assert (again.code, "nothing of 'ana'" in again.err) == (1, True)
    assert shell("forget", "acme", "nobody", "--yes", "--no-sync").code == 1


def test_erase_asks_and_names_what_goes(shell: Shell, settings: Settings, learned: str) -> None:
    merged = memory("Ana likes tea and takes the tram.", number=2, supersedes=(TEA.id,))
    put(settings, "acme", {merged.path: files.render_memory(merged), TEA.path: None})
    asked = shell("erase", "acme", TEA.id, "--no-index")
    assert (asked.code, "add --yes" in asked.err) == (1, True)
    assert f"stays, and replaced it: {merged.id}" in asked.err
    assert history.why(repository.open(settings, "acme"), TEA.id).id == TEA.id


def test_erase_is_verified_and_says_what_it_cannot_reach(shell: Shell, settings: Settings, learned: str) -> None:
    found = shell("erase", "acme", "ana", "--verify", "--no-index", "--string", "green and hot", "--json")
    assert (found.code, found.json["found"] > 0, found.json["rows"]) == (1, True, None)
    done = shell("erase", "acme", "ana", "--yes", "--no-index")
    assert (done.code, "found afterwards: 0" in done.out) == (0, True)
    assert "not reached from here: backups" in done.err
    found = shell("erase", "acme", "ana", "--verify", "--no-index", "--string", "green and hot", "--json")
    assert (found.code, found.json["found"]) == (0, 0)
    assert shell("log", "acme").code == 0
    receipt = (settings.root / "erase" / "receipts.jsonl").read_text()
    assert '"what": "subject"' in receipt
    assert subject() not in receipt


def test_a_whole_tenant_is_erased(shell: Shell, settings: Settings, learned: str) -> None:
    assert shell("erase", "acme", "--all", "--no-index").code == 1
    assert shell("erase", "acme", "--all", "--yes", "--no-index", "--json").json["verified"]["found"] == 0
    assert repository.tenants(settings) == []
    assert shell("erase", "acme", "--all", "--verify", "--no-index").code == 0
    assert shell("erase", "nobody", "--all", "--yes", "--no-index").code == 1
    assert shell("erase", "acme").code == 2


def test_what_takes_away_asks_and_where_nobody_can_be_asked_it_wants_yes(
    shell: Shell, settings: Settings, learned: str
) -> None:
    for command in (["forget", "acme", TEA.id], ["forget", "acme", "ana"], ["erase", "acme", "ana", "--no-index"]):
        refused = shell(*command, "--json")
        assert (refused.code, refused.json["error"]["code"]) == (1, "bad_input")
        assert refused.json["error"]["hint"] == "add --yes to mean it"
    assert repository.open(settings, "acme").head() == learned
    for answer, code in (("n", 130), ("y", 0)):
        typed = f"{sys.executable} -m docmem forget acme ana --no-sync"
        done = subprocess.run(
            ["script", "--quiet", "--return", "--command", typed, "/dev/null"],
            input=f"{answer}\n", env=os.environ | {"DOCMEM_ROOT": str(settings.root)}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert "forget 3 files of ana? [y/N]" in done.stdout
        assert done.returncode == code, done.stdout
        assert (repository.open(settings, "acme").head() == learned) == (answer == "n")


def test_a_memory_in_a_file_of_another_name_is_erased_by_its_id(shell: Shell, settings: Settings, learned: str) -> None:
    renamed = f"{layout.subject_dir(subject())}/memories/drinks.md"
    put(settings, "acme", {TEA.path: None, renamed: files.render_memory(TEA)})
    put(settings, "acme", {renamed: None})
    gone = shell("show", "acme", TEA.id)
    assert gone.code == 1
    hint = next(line for line in gone.err.splitlines() if "docmem show acme" in line)
    command = hint.split("docmem ", 1)[1].split(";")[0].split()
    assert shell(*command).out.endswith("Ana likes her tea green and hot.\n")
    assert shell("erase", "acme", TEA.id, "--yes", "--no-index", "--json").json["verified"]["found"] == 0
    assert shell("why", "acme", TEA.id).code == 1
    assert shell("erase", "acme", TEA.id, "--verify", "--no-index", "--string", "green and hot").code == 0


def test_an_erase_that_broke_off_is_told_by_all_who_are_asked(
    shell: Shell, settings: Settings, learned: str, tmp_path: Path
) -> None:
    target = Target("subject", subject())
    journal.write(settings, Journal("acme", target, began="2026-06-01T00:00:00Z"))
    command = "docmem erase acme --resume"
    told = shell("status")
    assert (told.code, command in told.err, "acme: an erase broke off" in told.err) == (1, True, True)
    assert shell("status", "--json").json["tenants"][0]["erase"]["hint"] == command
    checks = {check["name"]: check for check in shell("doctor", "--json").json["checks"]}
    assert (checks["erase acme"]["ok"], checks["erase acme"]["hint"]) == (False, command)
    dialogue = tmp_path / "web-9.jsonl"
    dialogue.write_text('{"id": "t1", "role": "user", "text": "Hi", "at": "2026-05-02T10:00:00Z"}\n')
    learns = ["consolidate", "acme", "--dialogue", str(dialogue), "--subject", "bob", "--model", "offline", "--dry-run"]
    for words in (learns, ["forget", "acme", BUS.id, "--yes", "--no-sync"]):
        assert command in shell(*words).err
    with git.lock(repository.open(settings, "acme").git_dir):
        assert journal.broken_off(settings, "acme") is None  # it is at work
    assert shell("erase", "acme", "--resume", "--no-index").code == 0
    assert shell("status", "--json").json["tenants"][0]["erase"] is None
    journal.write(settings, Journal("gone", Target("tenant", "gone"), began="2026-06-01T00:00:00Z"))
    assert "docmem erase gone --resume" in shell("status").err
