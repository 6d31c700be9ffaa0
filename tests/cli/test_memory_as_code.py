"""`log`, `show`, `diff`, `why`, `revert` on the command line."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from docmem import files, layout, repository
from docmem.config import Settings
from tests.support.cli import Shell
from tests.support.clones import Person
from tests.support.repos import memory, put, subject

TEA = memory("Ana likes tea.")


@pytest.fixture
def learned(settings: Settings, tenant: str) -> tuple[str, str]:
    first = put(settings, tenant, {TEA.path: files.render_memory(TEA)}, "Learn\n\nDocmem-Thread: web-1\n")
    green = replace(TEA, text="Ana likes green tea.")
    return first, put(settings, tenant, {TEA.path: files.render_memory(green)}, "Learn more")


def test_log_tells_what_each_commit_did(shell: Shell, learned: tuple[str, str]) -> None:
    rows = shell("log", "acme", "--json").json
    assert [row["revision"] for row in rows[:2]] == [learned[1], learned[0]]
    assert rows[1]["changes"] == [{"op": "create", "id": TEA.id, "path": TEA.path, "file": "memory"}]
    text = shell("log", "acme").out
    assert f"+ {TEA.id}  Ana likes tea." in text
    assert "thread web-1" in text
    assert len(shell("log", "acme", "-n", "1", "--json").json) == 1
    assert len(shell("log", "acme", "--memory", TEA.id[:8], "--json").json) == 2
    assert len(shell("log", "acme", "--subject", "ana", "--json").json) == 2
    assert shell("log", "acme", "--subject", "bob", "--json").json == []


def test_log_is_of_a_conversation_or_a_time(shell: Shell, learned: tuple[str, str]) -> None:
    assert [row["revision"] for row in shell("log", "acme", "--thread", "web-1", "--json").json] == [learned[0]]
    assert shell("log", "acme", "--since", "2999-01-01", "--json").json == []
    assert len(shell("log", "acme", "--until", "2999-01-01T00:00:00Z", "--json").json) == 3
    assert "+Ana likes green tea." in shell("log", "acme", "--memory", TEA.id, "-n", "1", "--patch").out
    wrong = shell("log", "acme", "--since", "yesterday")
    assert (wrong.code, "'yesterday' is not a time" in wrong.err) == (1, True)


def test_show_prints_commits_with_their_texts(shell: Shell, learned: tuple[str, str]) -> None:
    assert "  - Ana likes tea.\n  + Ana likes green tea." in shell("show", "acme", learned[1]).out
    [row] = shell("show", "acme", "--thread", "web-1", "--json").json
    assert [edit["after"] for edit in row["changes"]] == ["Ana likes tea."]
    assert "+Ana likes tea." in shell("show", "acme", learned[0], "--patch").out


def test_diff_is_between_times_or_of_a_conversation(shell: Shell, learned: tuple[str, str]) -> None:
    [row] = shell("diff", "acme", "--thread", "web-1", "--json").json
    assert (row["op"], row["after"]) == ("create", "Ana likes tea.")
    rows = shell("diff", "acme", "--since", "1999-01-01", "--subject", "ana", "--json").json
    assert [row["after"] for row in rows] == ["Ana likes green tea."]
    assert shell("diff", "acme", "--until", "1999-01-01").code == 1


def test_at_tells_what_was_remembered_then(shell: Shell, learned: tuple[str, str]) -> None:
    found = shell("at", "acme", "2999-01-01", "ana", "--json").json
    assert found["revision"] == learned[1]
    assert [each["text"] for each in found["subjects"][0]["memories"]] == ["Ana likes green tea."]
    assert "Ana likes green tea." in shell("at", "acme", "2999-01-01").out
    assert shell("at", "acme", "1999-01-01").code == 1


def test_colours_and_a_pager_are_for_a_terminal_alone(
    shell: Shell, settings: Settings, learned: tuple[str, str], tmp_path: Path
) -> None:
    assert "\x1b[" not in shell("log", "acme").out
    log = f"{sys.executable} -m docmem log acme -n 1"
    done = subprocess.run(
        ["script", "--quiet", "--command", log, "/dev/null"],
        env=os.environ | {"PAGER": "sed s/^/paged:/", "DOCMEM_ROOT": str(settings.root), "TERM": "xterm"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "paged:\x1b[33m" in done.stdout


def test_show_prints_a_memory_a_path_or_a_profile_now_or_then(shell: Shell, learned: tuple[str, str]) -> None:
    assert shell("show", "acme", TEA.id).out.endswith("Ana likes green tea.\n")
    assert shell("show", "acme", TEA.id[:6], "--at", learned[0]).out.endswith("Ana likes tea.\n")
    assert shell("show", "acme", "docmem.yaml").out.startswith("#")
    assert shell("show", "acme", TEA.id, "--json").json["path"] == TEA.path
    missing = shell("show", "acme", "nobody")
    assert (missing.code, "no file for 'nobody'" in missing.err) == (1, True)


def test_diff_shows_what_a_commit_changed(shell: Shell, learned: tuple[str, str]) -> None:
    [row] = shell("diff", "acme", learned[1], "--json").json
    assert (row["op"], row["before"], row["after"]) == ("update", "Ana likes tea.", "Ana likes green tea.")
    assert "+ Ana likes green tea." in shell("diff", "acme").out
    assert "-Ana likes tea." in shell("diff", "acme", "--patch").out
    assert shell("diff", "acme", learned[0], learned[0], "--json").json == []


def test_why_tells_where_a_memory_comes_from(shell: Shell, learned: tuple[str, str]) -> None:
    life = shell("why", "acme", TEA.id, "--json").json
    assert [step["op"] for step in life["history"]] == ["create", "update"]
    assert life["history"][0] | {"when": ""} == {
        "revision": learned[0],
        "when": "",
        "author": "docmem",
        "op": "create",
        "path": TEA.path,
        "thread": "web-1",
        "turns": ["t1"],
        "quote": "quote",
        "text": "Ana likes tea.",
        "approved_by": None,
    }
    assert "from thread web-1, turns t1" in shell("why", "acme", "green tea").out


def test_revert_says_what_it_changes_and_changes_it(shell: Shell, learned: tuple[str, str]) -> None:
    planned = shell("revert", "acme", TEA.id, "--dry-run", "--json").json
    assert planned == {"revision": None, "changed": [TEA.path], "conflicts": []}
    done = shell("revert", "acme", TEA.id, "--no-sync", "--json").json
    assert done["changed"] == [TEA.path]
    assert shell("show", "acme", TEA.id).out.endswith("Ana likes tea.\n")
    assert shell("log", "acme", "--json").json[0]["revision"] == done["revision"]


def test_a_revert_that_conflicts_names_the_memory_and_exits_1(shell: Shell, learned: tuple[str, str]) -> None:
    done = shell("revert", "acme", learned[0], "--no-sync", "--json")
    assert (done.code, done.json) == (1, {"revision": None, "changed": [], "conflicts": [TEA.id]})


def test_the_subject_of_a_phone_is_printed(shell: Shell) -> None:
    first = shell("subject", "acme", "+60 12-345 6789").out
    assert first == shell("subject", "acme", "012-345 6789", "--region", "my").out
    assert len(first.strip()) == 64
    assert shell("subject", "acme", "hello").code == 1
    assert subject() not in first


def test_a_conflict_on_a_profile_is_told_with_commands_that_help(shell: Shell, settings: Settings, tenant: str) -> None:
    """Each command that the message names is run, and afterwards the revert goes through."""
    path = layout.profile_path(subject())
    first = put(settings, tenant, {path: b"attributes:\n  diet: vegan\n"}, "Learn")
    later = put(settings, tenant, {path: b"attributes:\n  diet: vegetarian\n"}, "Learn more")
    refused = shell("revert", "acme", first, "--no-sync")
    assert (refused.code, later[:12] in refused.err) == (1, True)
    commands = [line.split("docmem ", 1)[1].split() for line in refused.err.splitlines() if "docmem " in line]
    assert [words[0] for words in commands] == ["why", "revert"]
    told = shell(*commands[0])
    assert told.code == 0
    assert "-   diet: vegan" in told.out
    assert "+   diet: vegetarian" in told.out
    assert shell(*commands[1], "--no-sync").code == 0
    assert shell("revert", "acme", first, "--no-sync").code == 0
    assert shell("show", "acme", path).code == 1


def test_why_takes_a_path(shell: Shell, settings: Settings, learned: tuple[str, str]) -> None:
    assert shell("why", "acme", TEA.path, "--json").json["id"] == TEA.id
    put(settings, "acme", {"knowledge/a.md": b"One.\n"})
    put(settings, "acme", {"knowledge/a.md": b"Two.\n"}, "Mend\n\nDocmem-Thread: web-9\n")
    put(settings, "acme", {"knowledge/a.md": None})
    life = shell("why", "acme", "knowledge/a.md", "--json").json
    assert (life["id"], life["path"], life["text"]) == (None, "knowledge/a.md", None)
    assert [(step["op"], step["text"], step["thread"]) for step in life["history"]] == [
        ("create", "One.\n", None),
        ("update", "Two.\n", "web-9"),
        ("delete", None, None),
    ]
    assert shell("why", "acme", "knowledge/b.md").code == 1
    assert shell("why", "acme", "knowledge").code == 1


def test_several_memories_that_have_the_words_are_listed_with_their_ids(
    shell: Shell, settings: Settings, learned: tuple[str, str]
) -> None:
    others = [memory(f"Ana likes her bath number {number}.", number=number + 1) for number in range(25)]
    put(settings, "acme", {each.path: files.render_memory(each) for each in others[:2]})
    listed = shell("why", "acme", "ana likes")
    assert (listed.code, "3 memories say 'ana likes'" in listed.err) == (1, True)
    for each, text in ((TEA, "Ana likes green tea."), (others[0], others[0].text)):
        assert f"  {each.id}  {subject()[:12]}  {text}\n" in listed.err
    put(settings, "acme", {each.path: files.render_memory(each) for each in others})
    assert "  and 6 more" in shell("why", "acme", "ana likes").err


def test_what_was_taken_back_is_held_when_it_is_said_again_until_a_person_writes_it(
    shell: Shell, settings: Settings, tenant: str, tmp_path: Path
) -> None:
    """C6, with commands and plain git alone."""

    def says(thread: str, text: str) -> dict[str, Any]:
        turn = {"id": "t1", "role": "user", "text": text, "at": "2026-05-02T10:14:00Z"}
        (tmp_path / f"{thread}.jsonl").write_text(json.dumps(turn) + "\n")
        words = ["--thread", thread, "--subject", "ana", "--dialogue", str(tmp_path / f"{thread}.jsonl")]
        found: dict[str, Any] = shell("consolidate", tenant, *words, "--model", "offline", "--json").json
        return found

    said = "We'd rather take night trains than fly inside Europe."
    assert says("web-1", said)["outcome"] == "committed"
    [made] = shell("log", tenant, "-n", "1", "--json").json[0]["changes"]
    original = shell("show", tenant, made["id"]).out
    assert shell("revert", tenant, made["id"], "--no-sync").code == 0
    assert says("web-2", said)["held_codes"] == {"reverted_before": 1}
    [waits] = shell("review", "list", tenant, "--json").json
    assert "took this statement back before" in shell("review", "show", tenant, waits["id"]).out
    assert shell("show", tenant, made["id"]).code == 1
    pat = Person(tmp_path / "pat").clones(repository.open(settings, tenant).git_dir)
    pat.commits(made["path"], original)
    pat.pushes()
    assert says("web-3", "We'd rather stay in small hotels than in big resorts.")["outcome"] == "committed"
    assert shell("show", tenant, made["id"]).out == original
    assert shell("show", tenant, "reverted.yaml").out.count("  - ") == 0
    assert [step["op"] for step in shell("why", tenant, made["id"], "--json").json["history"]] == [
        "create",
        "delete",
        "create",
    ]
