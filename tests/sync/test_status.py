"""status and doctor: numbers that are true, and faults with what mends them."""

from __future__ import annotations

import shutil
import subprocess
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from docmem import db, git, layout, remote, repository
from docmem.config import Settings
from docmem.files import render_memory
from docmem.git import remotes
from docmem.repository import Repository
from docmem_sync import status as look
from docmem_sync.checks import Check
from docmem_sync.doctor import doctor
from docmem_sync.status import status
from docmem_sync.sync import sync_tenant
from tests.support.cli import Shell
from tests.support.repos import memory, put, subject

pytestmark = pytest.mark.usefixtures("tenant")


def checks(settings: Settings) -> dict[str, Check]:
    return {check.name: check for check in doctor(settings)}


def test_status_tells_what_is_served_and_how_far_behind(indexed: Settings) -> None:
    put(indexed, "acme", {"knowledge/a.md": b"a\n", "knowledge/b.md": b"---\ntitle: *x*\n---\n"})
    sync_tenant(indexed, "acme")
    head = put(indexed, "acme", {"knowledge/c.md": b"c\n"})
    repo = repository.open(indexed, "acme")
    git.move_ref(repo.git_dir, "refs/docmem/review/1", new=head, old=None)
    found = status(indexed, ["acme"])
    assert found["server"] == {
        "reachable": True,
        "version": "18.6",
        "pgvector": "0.8.6",
        "embedded": False,
        "data": None,
    }
    (row,) = found["tenants"]
    assert row["head"] == head != row["synced"]
    assert (row["lag_commits"], row["rows"], row["quarantined"], row["review"]) == (1, 1, 1, 1)
    assert row["quarantine"][0]["path"] == "knowledge/b.md"
    assert row["pending_embeddings"] == 0


def test_profile_keys_that_no_agent_declares_are_listed_without_their_values(indexed: Settings, shell: Shell) -> None:
    profiles = {
        layout.profile_path(subject(value="ana")): b"attributes: {diet: vegan, shoe_size: 39, pets name: Rex}\n",
        layout.profile_path(subject(value="bob")): b"attributes: {shoe_size: 44}\n",
    }
    put(indexed, "acme", profiles)
    sync_tenant(indexed, "acme")
    (row,) = status(indexed, ["acme"])["tenants"]
    assert row["undeclared"] == {"shoe_size": 2, "pets name": 1}
    for name, value in (("DSN", indexed.dsn), ("SYNC_DSN", indexed.sync_dsn), ("EMBEDDING_MODEL", "none")):
        shell.set(f"DOCMEM_{name}", value or "")
    said = shell("status", "acme")
    assert said.code == 0
    assert "acme: profile keys that no agent declares: shoe_size (2)" in said.err
    assert "Rex" not in said.err + said.out


def test_rows_without_a_vector_are_counted_where_there_is_an_embedder(indexed: Settings) -> None:
    put(indexed, "acme", {"knowledge/a.md": b"a\n"})
    sync_tenant(indexed, "acme")
    (row,) = status(replace(indexed, embedding_model="some/model"), ["acme"])["tenants"]
    assert row["pending_embeddings"] == 1


def test_status_without_a_server_says_so_and_still_shows_the_repos(settings: Settings, shell: Shell) -> None:
    away = replace(settings, dsn="postgresql://ana:sesame@127.0.0.1:1/x")
    found = status(away, ["acme"])
    assert found["server"]["reachable"] is False
    assert "no Postgres answers" in found["server"]["error"]
    assert "sesame" not in str(found)
    assert found["tenants"][0]["lag_commits"] == 1
    shell.set("DOCMEM_DSN", str(away.dsn))
    told = shell("status", "acme")
    assert (told.code, told.out.splitlines()[-1].split()[2:]) == (1, ["-", "-", "-", "-", "-", "0"])


LACKING = {
    "a table gone": ("ALTER TABLE docmem.trace RENAME TO lost", "trace is gone"),
    "a function gone": ("DROP FUNCTION docmem.read", "read() is gone"),
    "a right gone": ("REVOKE INSERT ON docmem.usage FROM docmem_reader", "may not use usage of the index"),
    "a function shut": ("REVOKE EXECUTE ON FUNCTION docmem.read FROM PUBLIC", "may not use read() of the index"),
}


@pytest.mark.parametrize("what", LACKING)
def test_status_says_what_of_the_index_turns_lack(indexed: Settings, what: str) -> None:
    put(indexed, "acme", {"knowledge/a.md": b"a\n"})
    sync_tenant(indexed, "acme")
    spoil, said = LACKING[what]
    with db.session(indexed, "owner") as owner:
        owner.execute(spoil.encode())
    server = status(indexed, ["acme"])["server"]
    assert said in server["error"]
    assert server["hint"] == "see what mends it: docmem doctor"


def test_status_says_who_has_locked_what_and_waits_for_no_tenant_of_it(
    indexed: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tenant in ("acme", "other", "third"):
        if tenant != "acme":
            repository.create(indexed, tenant)
        sync_tenant(indexed, tenant)
    monkeypatch.setattr(look, "_LOCKED_SECONDS", 0.1)
    began = time.monotonic()
    with db.session(indexed, "owner") as owner, owner.transaction():
        owner.execute("LOCK docmem.memory")
        found = status(indexed)
        doctors = checks(indexed)["postgres"]
        pid = owner.info.backend_pid
    assert time.monotonic() - began < db.LOCK_SECONDS
    assert found["server"]["reachable"]
    assert found["server"]["error"].endswith(f": docmem.memory, by docmem_owner (process {pid})")
    assert (doctors.ok, doctors.detail) == (False, found["server"]["error"])
    assert [row["tenant"] for row in found["tenants"]] == ["acme", "other", "third"]
    assert "error" not in status(indexed)["server"]


def test_status_says_that_packets_fail_for_a_tenant_whose_rows_make_no_sense(indexed: Settings) -> None:
    put(indexed, "acme", {one.path: render_memory(one) for one in [memory("Plans Porto.")]})
    repository.create(indexed, "other")
    for tenant in ("acme", "other"):
        sync_tenant(indexed, tenant)
    with db.session(indexed, "sync") as sync, db.tenant_transaction(sync, "acme") as cursor:
        cursor.execute("UPDATE docmem.tenant_config SET language = 'klingon' WHERE tenant_id = 'acme'")
    rows = {row["tenant"]: row for row in status(indexed, ["acme", "other"])["tenants"]}
    assert rows["acme"]["error"] == "packets fail: index_failed"
    assert rows["acme"]["hint"].startswith("docmem sync acme --rebuild")
    assert "error" not in rows["other"]
    sync_tenant(indexed, "acme", rebuild=True)
    assert "error" not in status(indexed, ["acme"])["tenants"][0]


def test_a_doctor_finds_a_healthy_index_healthy(indexed: Settings) -> None:
    sync_tenant(indexed, "acme")
    found = doctor(indexed)
    assert [check for check in found if not check.ok] == []
    assert {
        "git",
        "disk",
        "repo acme",
        "postgres",
        "role reader",
        "role sync",
        "role owner",
        "schema",
        "index acme",
        "orphans acme",
    } == {check.name for check in found}


def test_rows_that_belong_to_nothing_are_counted_and_a_rebuild_takes_them_away(indexed: Settings) -> None:
    kept = memory("Stays.", number=1)
    put(indexed, "acme", {kept.path: render_memory(kept), "knowledge/a.md": b"a\n"})
    sync_tenant(indexed, "acme")
    assert checks(indexed)["orphans acme"].detail == "0 orphans"
    with closing(db.connect(indexed, "sync")) as connection, db.tenant_transaction(connection, "acme") as cursor:
        cursor.execute("UPDATE docmem.document SET path = 'knowledge/gone.md'")
        cursor.execute("UPDATE docmem.memory_history SET path = 'elsewhere'")
    found = checks(indexed)["orphans acme"]
    assert not found.ok
    assert "1 rows without a file" in found.detail
    assert "1 open versions of no memory" in found.detail
    assert found.hint == "docmem sync acme --rebuild"
    sync_tenant(indexed, "acme", rebuild=True)
    assert checks(indexed)["orphans acme"].ok


def test_how_long_the_oldest_commit_has_waited_is_told(indexed: Settings) -> None:
    sync_tenant(indexed, "acme")
    (row,) = status(indexed, ["acme"])["tenants"]
    assert (row["lag_commits"], row["lag_seconds"]) == (0, 0)
    repo = repository.open(indexed, "acme")
    for minutes in (10, 5):
        head = repo.head() or ""
        new = committed_ago(repo, head, minutes=minutes)
        git.move_ref(repo.git_dir, git.MAIN, new=new, old=head)
    (row,) = status(indexed, ["acme"])["tenants"]
    assert row["lag_commits"] == 2
    assert 600 <= row["lag_seconds"] <= 1200


def committed_ago(repo: Repository, parent: str, *, minutes: int) -> str:
    """A commit that somebody's git made a while ago."""
    when = (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat()
    who = {f"GIT_{role}_{what}": "ana@x" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    command = ["git", "--git-dir", str(repo.git_dir), "commit-tree", f"{parent}^{{tree}}", "-p", parent, "-m", "x"]
    dates = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
    done = subprocess.run(command, env=who | dates, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_what_is_behind_or_in_quarantine_names_what_mends_it(indexed: Settings) -> None:
    put(indexed, "acme", {"knowledge/b.md": b"---\ntitle: *x*\n---\n"})
    sync_tenant(indexed, "acme")
    put(indexed, "acme", {"knowledge/c.md": b"c\n"})
    found = checks(indexed)
    assert found["index acme"].hint == "docmem sync acme"
    assert found["quarantine acme"].detail.startswith("knowledge/b.md:2: yaml")
    assert found["quarantine acme"].hint.startswith("docmem checkout acme")


def test_the_doctor_finds_a_store_that_checks_no_push_and_repairs_it(indexed: Settings, shell: Shell) -> None:
    git_dir = repository.open(indexed, "acme").git_dir
    repository.create(indexed, "other")
    (git_dir / "hooks" / "pre-receive").unlink()
    found = checks(indexed)["repo acme"]
    assert not found.ok
    assert "pre-receive hook is missing" in found.detail
    assert found.hint == "docmem doctor --repair"
    shutil.rmtree(indexed.tenants / "other.git" / "hooks")
    (indexed.tenants / "other.git" / "hooks").write_text("in the way")
    shell("doctor", "--repair")
    mended = checks(indexed)
    assert (mended["repo acme"].ok, mended["repo other"].ok) == (True, False)


def test_the_doctor_tells_of_an_upstream_that_was_rewritten(indexed: Settings, tmp_path: Path) -> None:
    repo = repository.open(indexed, "acme")
    host = tmp_path / "host.git"
    git.init(host)
    remotes.set_url(repo.git_dir, str(host))
    git.move_ref(repo.git_dir, f"{remote.ASIDE}/abc", new=repo.head(), old=None)
    found = checks(indexed)["origin acme"]
    assert (found.ok, "refs/docmem/aside/abc" in found.detail) == (False, True)
    assert found.hint == "docmem remote acme --take theirs, or --take ours"


def test_without_a_server_the_doctor_names_the_setting(settings: Settings) -> None:
    check = checks(replace(settings, dsn="postgresql://ana@127.0.0.1:1/x"))["postgres"]
    assert not check.ok
    assert "DOCMEM_DSN" in check.hint


def break_tenants(settings: Settings) -> None:
    """Beside acme: a stray folder, a repo with a garbage HEAD, one whose objects are gone, one that isn't docmem's."""
    (settings.tenants / "stray.git").mkdir()
    for name in ("garbage", "gutted"):
        shutil.copytree(settings.tenants / "acme.git", settings.tenants / f"{name}.git")
    (settings.tenants / "garbage.git" / "HEAD").write_text("garbage\n")
    shutil.rmtree(settings.tenants / "gutted.git" / "objects")
    (settings.tenants / "gutted.git" / "objects").mkdir()
    repository.create(settings, "foreign")
    put(settings, "foreign", dict.fromkeys(repository.template()) | {"README": b"x\n"})


BROKEN = {"stray", "garbage", "gutted"}


def test_a_broken_tenant_is_named_and_the_others_are_listed(indexed: Settings, shell: Shell) -> None:
    break_tenants(indexed)
    for name, value in (("DSN", indexed.dsn), ("SYNC_DSN", indexed.sync_dsn), ("EMBEDDING_MODEL", "none")):
        shell.set(f"DOCMEM_{name}", value or "")
    synced = shell("sync", "--json")
    rows = {row["tenant"]: row for row in synced.json["tenants"]}
    assert synced.code == 1
    assert {name for name, row in rows.items() if "error" in row} == BROKEN
    assert rows["acme"]["to"]
    assert [item["code"] for item in rows["foreign"]["quarantined"]] == ["missing_config"]
    seen = shell("status", "--json")
    rows = {row["tenant"]: row for row in seen.json["tenants"]}
    assert seen.code == 1
    assert {name for name, row in rows.items() if row.get("error") and row["hint"]} == BROKEN
    assert (rows["acme"]["lag_commits"], rows["foreign"]["quarantined"]) == (0, 1)
    assert "stray.git is no git repo" in shell("status").err
    found = checks(indexed)
    assert {name for name in (*BROKEN, "acme", "foreign") if not found[f"repo {name}"].ok} == {*BROKEN, "foreign"}
    assert found["index acme"].ok
    assert shell("doctor", "--repair").code == 1
    assert shell("maintain").code == 1


def test_what_stands_in_a_new_tenants_way_is_said(settings: Settings, shell: Shell) -> None:
    (settings.tenants / "zz.git").mkdir()
    said = shell("init", "zz", "--json")
    assert (said.code, said.json["error"]["code"]) == (1, "broken_tenant")
    assert "move it out of the way" in said.json["error"]["hint"]
