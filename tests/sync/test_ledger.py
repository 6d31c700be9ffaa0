"""The rule by which commits become rows, over very many small histories: pure, without git or Postgres."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from docmem.layout import memory_path
from docmem.model import Document, Memory, Profile
from docmem.names import subject_of_id
from docmem.tenant_config import TenantConfig
from docmem_sync.ledger import DUPLICATE, At, Ledger, Standing, Version
from docmem_sync.reading import Broken, Told, Value

IDS = [f"{number:016x}" for number in range(1, 5)]
SUBJECT = subject_of_id("acme", "one")
PATHS = [memory_path(SUBJECT, f"{number:016x}", "text") for number in range(6)]
WORLDS = 300


@dataclass
class Rows:
    """A book that keeps what is served, and refuses what can't be."""

    memories: dict[str, Version] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)

    def begin(self, at: At) -> None: ...

    def memory(self, version: Version, memory: Memory) -> None:
        assert memory.id not in self.memories, "opened twice"
        assert version.step == self.steps.get(memory.id, 0) + 1
        self.memories[memory.id] = version
        self.steps[memory.id] = version.step

    def end_memory(self, memory: str, step: int, at: At) -> None:
        assert self.memories.pop(memory).step == step

    def supersede(self, memory: str, step: int, by: str, at: At) -> None: ...

    def profile(self, version: Version, profile: Profile) -> None: ...

    def end_profile(self, subject: str, step: int, at: At) -> None: ...

    def document(self, at: At, blob: str, document: Document) -> None: ...

    def end_document(self, path: str) -> None: ...

    def config(self, at: At, blob: str, config: TenantConfig) -> None: ...


class World:
    """A few paths and a few ids, so that they meet: files come, go, are spoilt and swapped."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.files: dict[str, str] = {}
        self.blobs: dict[str, Value | Broken] = {}
        self.rows = Rows()
        self.ledger = Ledger(Standing(), self.rows, lambda path, blob: self._at(path, self.blobs[blob]))
        self.number = 0

    def step(self) -> None:
        """A commit that changes some files."""
        at = At(self.number, f"r{self.number}", self.number)
        self.number += 1
        self.ledger.begin(at)
        for path in sorted(self.chance.sample(PATHS, self.chance.randint(1, len(PATHS)))):
            before, after = self.files.get(path), self._new()
            if after == before:
                continue
            if after is None:
                del self.files[path]
            else:
                self.files[path] = after
            value = None if after is None else self._at(path, self.blobs[after])
            self.ledger.feed(at, [Told(path, after or "", value, before)])
        self.ledger.settle(at)

    def _new(self) -> str | None:
        kind = self.chance.random()
        if kind < 0.25:
            return None
        blob = f"{self.chance.choice(IDS)}/{self.chance.randint(1, 2)}" if kind < 0.85 else "spoilt"
        memory = Memory(id=blob[:16], kind="fact", text=blob, path="", subject=SUBJECT)
        self.blobs[blob] = Broken("", blob, "bad_yaml", 1, "spoilt") if blob == "spoilt" else memory
        return blob

    def _at(self, path: str, value: Value | Broken) -> Value | Broken:
        return Broken(path, value.blob, value.code, value.line, value.reason) if isinstance(value, Broken) else value

    def readable(self) -> dict[str, str]:
        """Path to id of the files that can be read."""
        return {path: blob[:16] for path, blob in self.files.items() if blob != "spoilt"}

    def check(self) -> None:
        """Each id that a file can be read for is served out of such a file; all others of its files wait."""
        served = {version.path: (memory, version.blob) for memory, version in self.rows.memories.items()}
        readable, waiting = self.readable(), self.ledger.standing.waiting
        assert len(served) == len(self.rows.memories), "a path serves two"
        assert set(readable.values()) <= self.rows.memories.keys()
        for path, memory in readable.items():
            if path in waiting:
                assert (waiting[path].broken.code, waiting[path].claims) == (DUPLICATE, memory)
                assert readable.get(self.rows.memories[memory].path) == memory
            else:
                assert served[path] == (memory, self.files[path])
        for path in served.keys() - readable.keys():
            assert waiting[path].good == served[path][1]
        assert self.files.keys() - readable.keys() <= waiting.keys() <= self.files.keys()


@pytest.mark.parametrize("seed", range(5))
def test_each_id_is_served_out_of_one_file_whatever_a_commit_does(seed: int) -> None:
    for number in range(WORLDS):
        world = World(seed * WORLDS + number)
        for _ in range(12):
            world.step()
            world.check()
