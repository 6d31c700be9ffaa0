"""Looking back from the index: what it served at a time is what main said then, and it tells whom it served."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from docmem import db, files, git, history, layout, repository, revert
from docmem.config import Settings
from docmem.errors import NotFound, SchemaError
from docmem.git import Author
from docmem.history import Remembered
from docmem.repository import Repository
from docmem_sync import past
from docmem_sync.sync import sync_tenant
from tests.support.cli import Shell
from tests.support.repos import memory, put, subject

START = datetime(2026, 5, 2, 12, 0, tzinfo=UTC)
PAT = Author("Pat", "pat@example.com")
PEOPLE = ("ana", "bob")


def known(found: list[Remembered]) -> list[dict[str, Any]]:
    """What is remembered, with a profile's keys instead of its bytes."""
    return [each.as_json() | {"profile": files.parse_profile("profile.yaml", each.profile.encode())} for each in found]


def grown(repo: Repository, seed: int, commits: int) -> list[datetime]:
    """A history of all that happens to files: made, changed, moved, dropped, brought back; the times of its commits."""
    choose, when, times = random.Random(seed), START, []
    for number in range(commits):
        when += timedelta(seconds=choose.choice([0, 0, 1, 3600]))
        changed = _change(repo, choose, number)
        with repo.locked():
            made = repo.commit(repo.head(), changed, message=f"{number}\n", now=when, author=PAT)
        times.append(when)
        if choose.random() < 0.2:
            revert.apply(repo, made, now=when, author=PAT)
    return times


def _change(repo: Repository, choose: random.Random, number: int) -> dict[str, bytes | None]:
    who = choose.choice(PEOPLE)
    stored = repo.snapshot().memories(subject(value=who))
    kind = choose.choice(["new", "new", "edit", "move", "drop", "profile", "goes"])
    if kind == "profile":
        text = f"label: {who} {number}\nattributes:\n  diet: {choose.choice(['vegan', 'fish'])}\npinned: [diet]\n"
        return {layout.profile_path(subject(value=who)): text.encode()}
    if kind == "goes" and number % 3 == 0:
        return {**{each.path: None for each in stored}, layout.profile_path(subject(value=who)): None}
    if kind in {"edit", "move", "drop"} and stored:
        each = choose.choice(stored)
        edited = files.render_memory(replace(each.memory, text=f"{each.memory.text} And {number}."))
        moved = f"{layout.subject_dir(subject(value=choose.choice(PEOPLE)))}/memories/moved-{number}.md"
        if kind == "edit":
            return {each.path: edited}
        return {each.path: None, moved: each.data} if kind == "move" else {each.path: None}
    fresh = memory(f"{who} said {number}.", who=who, number=number)
    return {fresh.path: files.render_memory(fresh)}


@pytest.mark.parametrize("seed", [1, 2])
def test_git_and_the_index_agree_about_every_moment(indexed: Settings, tenant: str, seed: int) -> None:
    """Synced as it grows, and read at each commit's time, between them, before the first and after the last."""
    repo = Repository(indexed, tenant, repository.open(indexed, tenant).git_dir)
    _begun_at(repo, START - timedelta(days=1))
    moments: list[datetime] = []
    for part in range(3):
        moments += grown(repo, seed * 10 + part, 12)
        sync_tenant(indexed, tenant)
    for when in sorted({moment + timedelta(seconds=shift) for moment in moments for shift in (-1, 0, 1)}):
        revision = history.at(repo, when)
        assert revision is not None
        _, from_index = past.remembered(indexed, tenant, when)
        assert known(from_index) == known(history.remembered(repo, revision))
        one = subject(value="ana")
        _, of_one = past.remembered(indexed, tenant, when, one)
        assert known(of_one) == known(history.remembered(repo, revision, one))


def _begun_at(repo: Repository, when: datetime) -> None:
    """The tenant as if it had been laid down then."""
    first = repo.head()
    assert first is not None
    with repo.locked():
        files_then = {path: git.read_file(repo.git_dir, first, path) for path in git.files(repo.git_dir, first)}
        made = git.commit(
            repo.git_dir, base=None, files=files_then, message="Lay down\n", when=when, ref="refs/docmem/x"
        )
        git.move_ref(repo.git_dir, git.MAIN, new=made, old=first)


def test_at_on_the_command_line_asks_either(indexed: Settings, tenant: str, shell: Shell) -> None:
    asked_of(indexed, shell)
    unsynced = shell("at", tenant, "2999-01-01", "--index")
    assert (unsynced.code, "docmem sync acme" in unsynced.err) == (1, True)
    tea = memory("Ana likes tea.")
    put(indexed, tenant, {tea.path: files.render_memory(tea)})
    sync_tenant(indexed, tenant)
    main, index = (shell("at", tenant, "2999-01-01", "ana", *more, "--json").json for more in ([], ["--index"]))
    assert (main.pop("source"), index.pop("source")) == ("git", "index")
    assert main == index
    assert [each["text"] for each in main["subjects"][0]["memories"]] == ["Ana likes tea."]
    with pytest.raises((NotFound, SchemaError)):
        past.remembered(indexed, "nobody", START)


def test_why_tells_to_whom_a_memory_was_served_last(indexed: Settings, tenant: str, shell: Shell) -> None:
    """And nothing where no index can be asked: `why` starts no server."""
    tea = memory("Ana likes tea.")
    put(indexed, tenant, {tea.path: files.render_memory(tea)})
    assert shell("why", tenant, tea.id, "--json").json["served"] is None
    asked_of(indexed, shell)
    sync_tenant(indexed, tenant)
    assert shell("why", tenant, tea.id, "--json").json["served"] == []
    with db.session(indexed, "reader") as connection, db.tenant_transaction(connection, tenant) as cursor:
        for agent, run, at in (("default", 7, "2026-05-03T10:00:00Z"), ("planner", 2, "2026-05-04T10:00:00Z")):
            cursor.execute(
                "INSERT INTO docmem.usage (tenant_id, memory, agent, last_used_run, uses, used_at)"
                " VALUES (%s, %s, %s, %s, %s, %s)",
                (tenant, tea.id, agent, run, 3, at),
            )
    assert shell("why", tenant, tea.id, "--json").json["served"] == [
        {"agent": "planner", "run": 2, "uses": 3, "at": "2026-05-04T10:00:00Z"},
        {"agent": "default", "run": 7, "uses": 3, "at": "2026-05-03T10:00:00Z"},
    ]
    assert "served  2026-05-04 10:00  to planner, in run 2 last; in 3 in all" in shell("why", tenant, tea.id).out


def asked_of(settings: Settings, shell: Shell) -> None:
    shell.set("DOCMEM_DSN", settings.dsn or "")
    shell.set("DOCMEM_SYNC_DSN", settings.sync_dsn or "")
