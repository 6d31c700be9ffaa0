"""What was served, and when: the histories of memories and profiles, and looking back by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from docmem import git, history, layout, repository
from docmem.config import Settings
from docmem.files import render_memory
from docmem.index import Index, Reader
from docmem.model import Memory
from docmem_sync import past
from docmem_sync.sync import sync_tenant
from tests.support.branches import Branch
from tests.support.index import rows
from tests.support.repos import memory, put, subject

STEPS = """
    SELECT step, op, text, path, superseded_by, closed_revision, recorded_from, recorded_to
    FROM docmem.memory_history WHERE tenant_id = %(tenant)s AND id = %(id)s ORDER BY step
"""
TEA, BUS = memory("Ana likes tea.", number=1), memory("Ana takes the bus.", number=2)
LATER = datetime.now(UTC).replace(microsecond=0) + timedelta(
    days=1
)  # than the template's commit, however long a run takes
PROFILE = layout.profile_path(subject())

pytestmark = pytest.mark.usefixtures("tenant")


def commit(settings: Settings, changed: Mapping[str, bytes | None], *, minute: int) -> str:
    repo = repository.open(settings, "acme")
    with repo.locked():
        return repo.commit(repo.head(), changed, message="change", now=LATER + timedelta(minutes=minute))


def stored(*memories: Memory) -> dict[str, bytes | None]:
    return {each.path: render_memory(each) for each in memories}


def steps(settings: Settings, of: Memory) -> list[dict[str, Any]]:
    return rows(settings, STEPS, id=of.id)


def test_each_version_has_its_time_and_the_commits_that_opened_and_closed_it(indexed: Settings) -> None:
    commit(indexed, stored(TEA), minute=1)
    sync_tenant(indexed, "acme")
    edited = commit(indexed, stored(replace(TEA, text="Ana likes green tea.")), minute=2)
    moved = commit(indexed, {TEA.path: None, TEA.path.replace(".md", "-x.md"): render_memory(TEA)}, minute=3)
    sync_tenant(indexed, "acme")
    gone = commit(indexed, {TEA.path.replace(".md", "-x.md"): None}, minute=4)
    commit(indexed, stored(TEA), minute=5)
    sync_tenant(indexed, "acme")
    found = steps(indexed, TEA)
    assert [(row["op"], row["text"]) for row in found] == [
        ("create", "Ana likes tea."),
        ("update", "Ana likes green tea."),
        ("update", "Ana likes tea."),
        ("create", "Ana likes tea."),
    ]
    assert [row["closed_revision"] for row in found] == [edited, moved, gone, None]
    minutes = [LATER + timedelta(minutes=minute) for minute in (1, 2, 3, 4, 5)]
    assert [row["recorded_from"] for row in found] == [*minutes[:3], minutes[4]]
    assert [row["recorded_to"] for row in found] == [*minutes[1:4], None]


def test_a_pure_move_is_a_move(indexed: Settings) -> None:
    commit(indexed, stored(TEA), minute=1)
    commit(indexed, {TEA.path: None, TEA.path.replace(".md", "-x.md"): render_memory(TEA)}, minute=2)
    sync_tenant(indexed, "acme")
    assert [(row["step"], row["op"]) for row in steps(indexed, TEA)] == [(1, "create"), (2, "move")]


@pytest.mark.parametrize("at_once", [True, False])
def test_what_is_replaced_names_what_replaced_it(indexed: Settings, at_once: bool) -> None:
    commit(indexed, stored(TEA, BUS), minute=1)
    sync_tenant(indexed, "acme")
    both = memory("Ana likes tea, and takes the bus.", number=3, supersedes=(TEA.id, BUS.id))
    commit(indexed, stored(both) | ({TEA.path: None, BUS.path: None} if at_once else {}), minute=2)
    sync_tenant(indexed, "acme")
    if not at_once:
        commit(indexed, {TEA.path: None, BUS.path: None}, minute=3)
        sync_tenant(indexed, "acme")
    for each in (TEA, BUS):
        assert [row["superseded_by"] for row in steps(indexed, each)] == [both.id]
    sync_tenant(indexed, "acme", rebuild=True)
    assert [row["superseded_by"] for row in steps(indexed, TEA)] == [both.id]


def test_a_clock_that_goes_back_makes_no_version_older_than_the_one_before(indexed: Settings) -> None:
    commit(indexed, stored(TEA), minute=60)
    sync_tenant(indexed, "acme")
    commit(indexed, stored(replace(TEA, text="Later.")), minute=5)
    sync_tenant(indexed, "acme")
    assert [row["recorded_from"] for row in steps(indexed, TEA)] == [LATER + timedelta(minutes=60)] * 2


def test_a_profile_has_its_history_too(indexed: Settings) -> None:
    for minute, data in enumerate((b"label: Ana\n", b"label: [\n", b"label: Anna\n", None), start=1):
        commit(indexed, {PROFILE: data}, minute=minute)
        sync_tenant(indexed, "acme")
    found = rows(
        indexed, "SELECT step, op, label, recorded_to FROM docmem.profile_history WHERE tenant_id = %(tenant)s"
    )
    assert [(row["step"], row["op"], row["label"]) for row in found] == [(1, "create", "Ana"), (2, "update", "Anna")]
    assert [row["recorded_to"] for row in found] == [LATER + timedelta(minutes=minute) for minute in (3, 4)]


def said(settings: Settings, when: datetime) -> dict[str, dict[str, tuple[str, str]]]:
    """By subject, each memory's path and text, as git tells it."""
    repo = repository.open(settings, "acme")
    revision = history.at(repo, when)
    assert revision is not None
    found = history.remembered(repo, revision)
    return {
        each.subject: {item.memory.id: (item.path, item.memory.text) for item in each.memories}
        for each in found
        if each.memories
    }


@pytest.mark.parametrize("seed", range(3))
def test_the_index_looks_back_as_git_does(indexed: Settings, seed: int) -> None:
    branch = Branch(indexed, "acme", seed, sound=True)
    for _ in range(15):
        branch.step()
        if branch.chance.random() < 0.5:
            sync_tenant(indexed, "acme", confirm_deletes=True)
    sync_tenant(indexed, "acme", confirm_deletes=True)
    for seconds in set(git.times(branch.repo.git_dir, branch.head).values()):
        _, found = past.remembered(indexed, "acme", git.time(seconds), None)
        served = {
            each.subject: {item.memory.id: (item.path, item.memory.text) for item in each.memories}
            for each in found
            if each.memories
        }
        assert served == said(indexed, git.time(seconds))


def test_the_calls_of_one_read_fit_together_whatever_is_synced_between_them(indexed: Settings) -> None:
    put(indexed, "acme", stored(TEA))
    sync_tenant(indexed, "acme")
    seen: list[str | None] = []
    reader = Reader(indexed, timeout=20)

    def work(index: Index) -> tuple[object, object]:
        before = (index.tenant() or {})["revision"]
        put(indexed, "acme", {f"knowledge/{len(seen)}.md": b"more\n"})
        seen.append(before)
        sync_tenant(indexed, "acme")
        return before, (index.tenant() or {})["revision"]

    before, after = reader.read("acme", work)
    reader.close()
    assert before == after == seen[-1]
    assert len(seen) == 2
