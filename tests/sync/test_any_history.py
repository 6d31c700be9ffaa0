"""Whatever a branch goes through, and wherever syncs fall: the index says what one built anew says."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from docmem import layout, repository
from docmem.config import Settings
from docmem.files import render_memory
from docmem_sync.sync import sync_tenant
from tests.support.index import whole_index
from tests.support.repos import memory, put, subject

BROKEN = (b"no head\n", b"---\nid: *x*\n---\n", b"\xff", b"<<<<<<< HEAD\n")
PROFILE = layout.profile_path(subject())
DOCUMENT = "knowledge/a.md"


class Branch:
    """A tenant's files, changed at random: ids are few, so that they meet."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.files: dict[str, bytes] = {}

    def change(self) -> dict[str, bytes | None]:
        """One commit's changes, at least one."""
        changed: dict[str, bytes | None] = {}
        for _ in range(self.chance.randint(1, 3)):
            changed |= self.chance.choice(
                (self.add, self.edit, self.delete, self.move, self.swap, self.spoil, self.other)
            )()
        for path, data in changed.items():
            if data is None:
                self.files.pop(path, None)
            else:
                self.files[path] = data
        return changed or {"knowledge/filler.md": str(self.chance.random()).encode()}

    def pick(self) -> str | None:
        memories = sorted(path for path in self.files if "/memories/" in path)
        return self.chance.choice(memories) if memories else None

    def content(self) -> bytes:
        number = self.chance.randrange(4)
        return render_memory(replace(memory(f"{number}", number=number), text=f"says {self.chance.randrange(100)}"))

    def path(self) -> str:
        return f"{layout.subject_dir(subject())}/memories/{self.chance.choice('abcdef')}.md"

    def add(self) -> dict[str, bytes | None]:
        return {self.path(): self.content()}

    def edit(self) -> dict[str, bytes | None]:
        path = self.pick()
        return {path: self.files[path] + b"more\n"} if path else {}

    def delete(self) -> dict[str, bytes | None]:
        path = self.pick()
        return {path: None} if path else {}

    def move(self) -> dict[str, bytes | None]:
        path, target = self.pick(), self.path()
        return {path: None, target: self.files[path]} if path and target != path else {}

    def swap(self) -> dict[str, bytes | None]:
        one, two = self.pick(), self.pick()
        return {one: self.files[two], two: self.files[one]} if one and two else {}

    def spoil(self) -> dict[str, bytes | None]:
        path = self.chance.choice([self.pick() or self.path(), PROFILE, DOCUMENT, "docmem.yaml"])
        return {path: self.chance.choice(BROKEN)}

    def other(self) -> dict[str, bytes | None]:
        number = str(self.chance.randrange(100)).encode()
        languages = (b"english", b"simple", b"german")
        changes: list[dict[str, bytes | None]] = [
            {PROFILE: b"label: " + number + b"x\n"},
            {PROFILE: None} if PROFILE in self.files else {},
            {DOCUMENT: b"# " + number + b"\n" + b"word " * self.chance.randrange(1_000)},
            {DOCUMENT: None} if DOCUMENT in self.files else {},
            {"docmem.yaml": b"format: 1\nlanguage: " + self.chance.choice(languages) + b"\n"},
        ]
        return self.chance.choice(changes)


@pytest.mark.parametrize("seed", range(8))
def test_an_index_brought_along_is_one_built_anew(indexed: Settings, tenant: str, seed: int) -> None:
    branch = Branch(seed)
    for _ in range(12):
        changed = branch.change()
        before = repository.open(indexed, tenant).head()
        put(indexed, tenant, changed)
        if repository.open(indexed, tenant).head() != before and branch.chance.random() < 0.6:
            sync_tenant(indexed, tenant)
    sync_tenant(indexed, tenant)
    brought_along = whole_index(indexed)
    sync_tenant(indexed, tenant, rebuild=True)
    assert whole_index(indexed) == brought_along
