"""What is served, commit by commit: the rule by which a branch becomes rows and their history. Pure.

The ledger is fed the first-parent chain from some standing on, oldest commit first, and tells a `Book` what opens and
what closes. Brought along from the standing that an index has, or from nothing over all commits, it comes to the same:
where syncs fall makes no difference to what is served nor to its history.

- A file that can't be read takes nothing away: what it said last stays served until its path is gone, or until another
  file that can be read holds that memory's id.
- Of several files with one memory id the one that is served keeps it; the others wait as duplicates, and the one that
  has waited longest is next. An id that leaves a file and comes in another by one commit has moved.
"""

from __future__ import annotations

from array import array
from collections import UserDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Literal, Protocol, TypeAlias

from docmem.layout import CONFIG, place
from docmem.model import Document, Memory, Profile
from docmem.names import is_memory_id
from docmem.tenant_config import TenantConfig
from docmem_sync.reading import Broken, Told, Value, no_config

Op: TypeAlias = Literal["create", "update", "move"]

DUPLICATE = "duplicate_id"
_CLOSED = 0


@dataclass(frozen=True, slots=True)
class At:
    """A commit and its effective time, in seconds since 1970: its own, or its parent's if later.

    `number` grows along the chain.
    """

    number: int
    revision: str
    seconds: int


@dataclass(frozen=True, slots=True)
class Version:
    """A version that opens. `step` counts those of a memory's id or of a profile; `created`: when it was first there
    since it was last gone, in seconds since 1970; `count`: a profile's versions since then."""

    at: At
    op: Op
    path: str
    blob: str
    step: int
    created: int = 0
    count: int = 1


@dataclass(frozen=True, slots=True)
class Waiting:
    """A file in quarantine since a commit. `good`: the blob in which it is still served, if it is. `claims`: the id it
    would hold, were it not another file's."""

    broken: Broken
    since: At
    good: str | None = None
    claims: str | None = None


class Waiters(UserDict[str, Waiting]):
    """The files in quarantine by path, and at hand by the id that each would hold: whole folders get copied."""

    def __init__(self) -> None:
        self._by_hash: dict[int, str] = {}
        self._by_claim: dict[str, set[str]] = {}
        super().__init__()

    def __setitem__(self, path: str, item: Waiting) -> None:
        self.pop(path, None)
        super().__setitem__(path, item)
        self._by_hash[hash(path)] = path
        if item.claims is not None:
            self._by_claim.setdefault(item.claims, set()).add(path)

    def __delitem__(self, path: str) -> None:
        claims = self.data[path].claims
        super().__delitem__(path)
        del self._by_hash[hash(path)]
        if claims is not None:
            self._by_claim[claims].discard(path)

    def at(self, where: int) -> str | None:
        """The path of this hash, if a file waits there."""
        return self._by_hash.get(where)

    def first(self, memory: str) -> str | None:
        """Of the files that would hold this id, the one that has waited longest."""
        paths = self._by_claim.get(memory)
        return min(paths, key=lambda path: (self.data[path].since.number, path)) if paths else None


class Book(Protocol):
    """Where it is written down."""

    def begin(self, at: At) -> None:
        """A commit begins."""

    def memory(self, version: Version, memory: Memory) -> None:
        """A version of a memory opens."""

    def end_memory(self, memory: str, step: int, at: At) -> None:
        """The version `step` of a memory closes."""

    def supersede(self, memory: str, step: int, by: str, at: At) -> None:
        """The version `step` of a memory is replaced by another memory; the first such word stands."""

    def profile(self, version: Version, profile: Profile) -> None:
        """A version of a profile opens."""

    def end_profile(self, subject: str, step: int, at: At) -> None:
        """The version `step` of a profile closes."""

    def document(self, at: At, blob: str, document: Document) -> None:
        """A document is served in this state."""

    def end_document(self, path: str) -> None:
        """A document is served no more."""

    def config(self, at: At, blob: str, config: TenantConfig) -> None:
        """The tenant's settings are these."""


class Standing:
    """What is served, in little room: paths by hash, ids as numbers. A hundred thousand files take a few megabytes.

    Two paths of one hash would be taken for one: once in 30 million tenants of a million files each. Where something
    was opened is the `number` of a commit.
    """

    def __init__(self) -> None:
        self._memories: dict[int, int] = {}
        self._path = array("q")
        self._step = array("l")
        self._created = array("q")
        self._opened = array("l")
        self._at: dict[int, int] = {}
        self.profiles: dict[str, tuple[int, int, int]] = {}
        """Subject to the step of its last version, the count (0: it is gone), and where that was opened."""
        self.documents: dict[int, int] = {}
        """Hash of the path to where its present state was opened."""
        self.waiting = Waiters()
        self.has_config = False

    def put(self, memory: str, path: str | None, *, step: int, created: int = 0, opened: int = 0) -> None:
        """A memory's last version: where it is served (None: nowhere)."""
        key, where = int(memory, 16), hash(path) if path is not None else _CLOSED
        row = self._memories.get(key)
        if row is None:
            self._memories[key] = len(self._path)
            for column, value in zip(self._columns, (where, step, created, opened), strict=True):
                column.append(value)
        else:
            if self._at.get(self._path[row]) == key:
                del self._at[self._path[row]]
            for column, value in zip(self._columns, (where, step, created, opened), strict=True):
                column[row] = value
        if where:
            self._at[where] = key

    @property
    def _columns(self) -> tuple[array[int], ...]:
        return self._path, self._step, self._created, self._opened

    def end(self, memory: str) -> None:
        """A memory is served no more."""
        self.put(memory, None, step=self.step(memory))

    def held(self, path: str) -> str | None:
        """The memory that is served from a path."""
        key = self._at.get(hash(path))
        return None if key is None else f"{key:016x}"

    def step(self, memory: str) -> int:
        """The step of a memory's last version; 0 where there never was one."""
        row = self._memories.get(int(memory, 16))
        return 0 if row is None else self._step[row]

    def created(self, memory: str) -> int:
        """When a memory was created, in seconds since 1970."""
        return self._created[self._memories[int(memory, 16)]]

    def opened(self, memory: str) -> int:
        """Where a memory's last version was opened."""
        return self._opened[self._memories[int(memory, 16)]]

    def is_served(self, memory: str) -> bool:
        """Whether any file serves a memory."""
        row = self._memories.get(int(memory, 16))
        return row is not None and self._path[row] != _CLOSED

    def broken(self, memory: str) -> str | None:
        """The path that serves a memory, if its file can't be read any more."""
        row = self._memories.get(int(memory, 16))
        path = None if row is None else self.waiting.at(self._path[row])
        return path if path is not None and self.waiting[path].good is not None else None

    @property
    def files(self) -> int:
        """How many files are served."""
        return len(self._at) + sum(count > 0 for _, count, _ in self.profiles.values()) + len(self.documents)


Load: TypeAlias = Callable[[str, str], Value | Broken]
"""Reads a file (path, blob) again."""


@dataclass
class _Open:
    """What the commit at work has left unsettled.

    `freed`: ids whose file left them, with path and blob of before; `held`: the id that a file held which came to hold
    another's; `claims`: ids that files came to hold; `weak`: ids whose file can't be read any more; `waited`: files
    that waited until this commit; `marks`: what supersedes what; `left`: a heap of what is freed or weak, while
    that is settled; `gone`: keys of what is served no more.
    """

    freed: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    claims: dict[str, list[Told]] = field(default_factory=dict)
    weak: set[str] = field(default_factory=set)
    waited: dict[str, Waiting] = field(default_factory=dict)
    marks: list[tuple[str, str]] = field(default_factory=list)
    held: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)


class Ledger:
    """Feed it what each commit left at each path it touched, then `settle` the commit."""

    def __init__(self, standing: Standing, book: Book, load: Load) -> None:
        self.standing = standing
        self._book = book
        self._load = load
        self._open = _Open()

    def begin(self, at: At) -> None:
        """A commit begins."""
        self._book.begin(at)

    def feed(self, at: At, told: Iterable[Told]) -> None:
        """Some of a commit's changes."""
        for each in told:
            waiting = self.standing.waiting.pop(each.path, None)
            if waiting is not None:
                self._open.waited[each.path] = waiting
            kind = place(each.path).kind
            if kind == "memory":
                self._memory(at, each, waiting)
            elif kind == "profile":
                self._profile(at, each, waiting)
            elif kind == "config":
                self._config(at, each, waiting)
            else:
                self._document(at, each, waiting)

    def settle(self, at: At) -> list[str]:
        """The commit's end: who has which id now. Returns what is served no more: ids of memories, paths of others."""
        if self._open.claims or self._open.freed or self._open.weak:
            for memory in sorted(self._open.claims):
                self._claimed(at, memory, sorted(self._open.claims[memory], key=lambda each: each.path))
            self._open.left = sorted({*self._open.freed, *self._open.weak})
            while self._open.left:
                memory = heappop(self._open.left)
                if memory in self._open.freed or memory in self._open.weak:
                    self._left(at, memory)
        for memory, by in sorted(self._open.marks):
            step = self.standing.step(memory)
            if step and memory != by:
                self._book.supersede(memory, step, by, at)
        gone, self._open = self._open.gone, _Open()
        return gone

    # ----------------------------------------------------------------------------------------------- memories

    def _memory(self, at: At, told: Told, waiting: Waiting | None) -> None:
        held = self.standing.held(told.path)
        before = waiting.good if waiting else told.before
        if isinstance(told.value, Memory):
            if held == told.value.id:
                if told.blob != before:
                    self._serve(at, "update", told)
                return
            if held is None and not self.standing.is_served(told.value.id) and told.value.id not in self._open.claims:
                self._serve(at, "create", told)  # at once, so that nobody holds a commit of a hundred thousand
                return
            if held is not None:
                self._open.freed[held] = (told.path, before)
                self._open.held[told.path] = held
            self._open.claims.setdefault(told.value.id, []).append(told)
        elif isinstance(told.value, Broken):
            self.standing.waiting[told.path] = Waiting(told.value, at, good=before if held is not None else None)
            if held is not None:
                self._open.weak.add(held)
        elif held is not None:
            self._open.freed[held] = (told.path, before)

    def _claimed(self, at: At, memory: str, claimants: list[Told]) -> None:
        """Files came to hold an id: one gets it, if the file that had it left it or can't be read."""
        if self.standing.is_served(memory) and memory not in self._open.freed and not self._loses(memory):
            losers = claimants
        else:
            winner, *losers = claimants
            freed = self._open.freed.pop(memory, None)
            served = self.standing.is_served(memory)
            op: Op = "create" if not served else "move" if freed and freed[1] == winner.blob else "update"
            self._serve(at, op, winner)
        for told in losers:
            self._refuse(at, memory, told)

    def _loses(self, memory: str) -> bool:
        """Whether the file that serves an id can't be read any more: then another that can has it."""
        path = self.standing.broken(memory)
        if path is None:
            return False
        self.standing.waiting[path] = replace(self.standing.waiting[path], good=None)
        return True

    def _refuse(self, at: At, memory: str, told: Told) -> None:
        """A file holds an id that is another's: it waits, and what it said before stays served."""
        broken = Broken(told.path, told.blob, DUPLICATE, 1, memory)
        lost = self._open.held.get(told.path)
        good = None
        if lost in self._open.freed and self._open.freed[lost][0] == told.path and lost not in self._open.claims:
            good = self._open.freed.pop(lost)[1]
            self._open.weak.add(lost)
        waited = self._open.waited.get(told.path)
        since = waited.since if waited is not None and waited.claims == memory else at
        self.standing.waiting[told.path] = Waiting(broken, since, good, claims=memory)

    def _left(self, at: At, memory: str) -> None:
        """The file of an id left it, or can't be read: the file that has waited for it longest has it now."""
        self._open.weak.discard(memory)
        freed = self._open.freed.pop(memory, None)
        path = self.standing.waiting.first(memory)
        if path is not None:
            blob = self.standing.waiting.pop(path).broken.blob
            if freed is None and not self._loses(memory):
                raise AssertionError(f"{memory} is served and wanted")
            op: Op = "move" if freed is not None and freed[1] == blob else "update"
            self._serve(at, op, Told(path, blob, self._load(path, blob)))
        elif freed is not None:
            self._book.end_memory(memory, self.standing.step(memory), at)
            self.standing.end(memory)
            self._open.gone.append(memory)

    def _serve(self, at: At, op: Op, told: Told) -> None:
        memory = told.value
        assert isinstance(memory, Memory)
        standing = self.standing
        self._open.weak.discard(memory.id)  # a file that can be read has it now
        step, served = standing.step(memory.id), standing.is_served(memory.id)
        created = standing.created(memory.id) if served else at.seconds
        if served:
            self._book.end_memory(memory.id, step, at)
        before = standing.held(told.path)
        if before is not None and before != memory.id:  # what it said last, which nobody else has taken
            self._open.freed.setdefault(before, (told.path, None))
            heappush(self._open.left, before)
        standing.put(memory.id, told.path, step=step + 1, created=created, opened=at.number)
        self._book.memory(Version(at, op, told.path, told.blob, step + 1, created), memory)
        self._open.marks += [(each, memory.id) for each in memory.supersedes if is_memory_id(each)]

    # -------------------------------------------------------------------------------------- what a path names

    def _profile(self, at: At, told: Told, waiting: Waiting | None) -> None:
        subject = place(told.path).subject
        step, count, _ = self.standing.profiles.get(subject, (0, 0, 0))
        before = waiting.good if waiting else told.before
        if isinstance(told.value, Profile):
            if count and told.blob == before:
                return
            if count:
                self._book.end_profile(subject, step, at)
            self.standing.profiles[subject] = (step + 1, count + 1, at.number)
            op: Op = "update" if count else "create"
            version = Version(at, op, told.path, told.blob, step + 1, count=count + 1)
            self._book.profile(version, told.value)
        elif isinstance(told.value, Broken):
            self.standing.waiting[told.path] = Waiting(told.value, at, good=before if count else None)
        elif count:
            self._book.end_profile(subject, step, at)
            self.standing.profiles[subject] = (step, 0, 0)
            self._open.gone.append(told.path)

    def _document(self, at: At, told: Told, waiting: Waiting | None) -> None:
        served = hash(told.path) in self.standing.documents
        before = waiting.good if waiting else told.before
        if isinstance(told.value, Document):
            if not served or told.blob != before:
                self.standing.documents[hash(told.path)] = at.number
                self._book.document(at, told.blob, told.value)
        elif isinstance(told.value, Broken):
            self.standing.waiting[told.path] = Waiting(told.value, at, good=before if served else None)
        elif served:
            del self.standing.documents[hash(told.path)]
            self._book.end_document(told.path)
            self._open.gone.append(told.path)

    def _config(self, at: At, told: Told, waiting: Waiting | None) -> None:
        before = waiting.good if waiting else told.before
        if isinstance(told.value, TenantConfig):
            if not self.standing.has_config or told.blob != before:
                self._book.config(at, told.blob, told.value)
            self.standing.has_config = True
            return
        broken = told.value if isinstance(told.value, Broken) else no_config()
        self.standing.waiting[CONFIG] = Waiting(broken, at, good=before if self.standing.has_config else None)
