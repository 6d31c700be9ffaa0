"""Carry one change over onto today's files: three-way, by memory id and by key, not by line.

Reverting carries the change from after to before; approving carries the one from base to proposal. git's line merge
conflicts when a neighbouring line was edited since; here neither a neighbour, nor another key, nor a move is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from docmem import edits, files, git, layout, pairs
from docmem.document import decode, split
from docmem.errors import FormatError
from docmem.git import Change
from docmem.pairs import Half
from docmem.repository import Repository, Snapshot
from docmem.splice import DELETE, KeyPath
from docmem.strictyaml import load_mapping

_NOT_LEARNED = ("last_interaction_at",)  # when somebody last called is no learning, and every window moves it
_KEPT_BY_DOCMEM = {"watermark", "reverted"}


@dataclass(frozen=True, slots=True)
class Version:
    """A file's path and bytes."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Shift:
    """What a change does to one memory or other file: `old` to `new`, None where it isn't there. `id`: a memory's."""

    id: str | None
    old: Version | None
    new: Version | None

    @property
    def name(self) -> str:
        """How a conflict names it: the memory's id, else the path."""
        version = self.new or self.old
        return self.id or (version.path if version else "")

    def reversed(self) -> Shift:
        """The change that undoes this one."""
        return Shift(self.id, self.new, self.old)


@dataclass(frozen=True, slots=True)
class Carried:
    """What to write today. `gone` and `come`: hashes of the statements that disappear and appear."""

    files: Mapping[str, bytes | None] = field(default_factory=dict)
    conflicts: tuple[str, ...] = ()
    gone: frozenset[str] = frozenset()
    come: frozenset[str] = frozenset()
    deletes: int = 0


def shifts(repository: Repository, changed: Iterable[Change]) -> list[Shift]:
    """A commit's changes by memory, wherever its file stood before and after. docmem's own files are left out."""
    counted = [change for change in changed if layout.place(change.path).kind not in _KEPT_BY_DOCMEM]

    def version(half: Half | None) -> Version | None:
        return Version(half.path, git.read_blob(repository.git_dir, half.blob)) if half is not None else None

    found = pairs.pairs(counted, lambda blob: git.read_blob(repository.git_dir, blob))
    return [Shift(pair.id, version(pair.old), version(pair.new)) for pair in found]


def id_of(version: Version | None) -> str | None:
    """The id of the memory a file holds; None for any other file, or one that can't be read."""
    if version is None or layout.place(version.path).kind != "memory":
        return None
    try:
        return files.parse_memory(version.path, version.data).id
    except FormatError:
        return None


def carry(now: Snapshot, wanted: Iterable[Shift], *, secret: bytes) -> Carried:
    """What `wanted` means on today's files. What stands as wanted already is left out; a conflict is named."""
    moves: list[_Move] = []
    conflicts: list[str] = []
    for shift in wanted:
        there = today(now, shift)
        if stands(there, shift.new):
            continue
        result = _carried(there, shift)
        if isinstance(result, _Conflict):
            conflicts.append(shift.name)
            continue
        moves.append(_Move(shift.name, there, result))
    placed, crowded = _placed(now, moves)
    gone = {statement for move in placed for statement in _statements(move.old, secret)}
    come = {statement for move in placed for statement in _statements(move.new, secret)}
    written: dict[str, bytes | None] = {path: None for move in placed for path in move.left}
    written |= {move.new.path: move.new.data for move in placed if move.new is not None and move.new != move.old}
    deletes = sum(move.new is None for move in placed)
    return Carried(written, (*conflicts, *crowded), frozenset(gone - come), frozenset(come - gone), deletes)


@dataclass(frozen=True, slots=True)
class _Move:
    """A file as it stands today and as it shall stand, of the memory or file with this name."""

    name: str
    old: Version | None
    new: Version | None

    @property
    def left(self) -> list[str]:
        """The path that it leaves."""
        return [self.old.path] if self.old is not None and (self.new is None or self.new.path != self.old.path) else []


def _placed(now: Snapshot, moves: Sequence[_Move]) -> tuple[list[_Move], list[str]]:
    """Nothing takes the place of a memory that stays: it stays where it is instead, or gets a name of its own.

    Also the names of those for which there is no place.
    """
    placed, crowded = list(moves), list[str]()
    while True:
        left = {path for move in placed for path in move.left}
        taken: set[str] = set()
        for number, move in enumerate(placed):
            if move.new is None or (move.old is not None and move.new.path == move.old.path):
                continue
            if move.new.path not in taken and (move.new.path in left or now.read(move.new.path) is None):
                taken.add(move.new.path)
                continue
            own = _own_place(move)
            if own is None:
                crowded.append(move.name)
                del placed[number]
            else:
                placed[number] = replace(move, new=own)
            break
        else:
            return placed, crowded


def _own_place(move: _Move) -> Version | None:
    assert move.new is not None
    if move.old is not None:
        return replace(move.new, path=move.old.path)
    try:
        memory = files.parse_memory(move.new.path, move.new.data)
    except FormatError:
        return None
    own = layout.memory_path(memory.subject, memory.id, memory.text)
    return replace(move.new, path=own) if own != move.new.path else None


class _Conflict:
    """Changed since in the same place."""


def today(now: Snapshot, shift: Shift) -> Version | None:
    """The memory as it stands today, wherever it has moved to; another file at its path."""
    version = shift.old or shift.new
    assert version is not None
    data = now.read(version.path)
    here = Version(version.path, data) if data is not None else None
    if shift.id is None or (here is not None and pairs.claimed_id(here.data) == shift.id):
        return here
    for path in now.locate(shift.id):
        found = now.read(path)
        if found is not None:
            return Version(path, found)
    return here if here is not None and pairs.claimed_id(here.data) is None else None  # broken by hand since


def stands(today: Version | None, wanted: Version | None) -> bool:
    """Whether a file is as wanted, where it is wanted."""
    if today is None or wanted is None:
        return today is wanted
    return today.data == wanted.data and today.path == wanted.path


def _carried(today: Version | None, shift: Shift) -> Version | _Conflict | None:
    old, new = shift.old, shift.new
    if today is not None and layout.place(today.path).kind == "profile":
        return _carried_profile(today, old, new)
    if old is None:
        back = today is not None and new is not None and today.data == new.data  # it has come back under another name
        return new if today is None else today if back else _Conflict()
    if today is None:
        return None if new is None else _Conflict()
    if new is None:
        return None if today.data == old.data or _says_the_same(old, today) else _Conflict()
    try:
        data = _three_way(old, today, new)
    except FormatError:
        data = git.merge_file(old.data, today.data, new.data)
    if data is None:
        return _Conflict()
    return Version(new.path if today.path == old.path else today.path, data)


def _carried_profile(today: Version, old: Version | None, new: Version | None) -> Version | _Conflict | None:
    """A profile is its keys: one that was made or goes is a change of all its keys, and others may have come since."""
    if today == old:
        return new
    empty = Version(today.path, b"")
    try:
        data = _three_way(old or empty, today, new or empty)
        if data is None:
            return _Conflict()
        rest = any(value is not None for value in _flat(load_mapping(decode(data)[0])).values())
    except FormatError:
        return _Conflict()
    return Version(today.path, data) if new is not None or rest else None


def changed_keys(path: str, old: bytes, new: bytes) -> list[str]:
    """Which keys of a memory or profile differ, `text` for what a memory says; [] where one can't be read."""
    try:
        if layout.place(path).kind == "profile":
            before, after = (_flat(load_mapping(decode(data)[0])) for data in (old, new))
        else:
            parts = [split(data) for data in (old, new)]
            before, after = (_flat(part.mapping()) | {("text",): part.body.strip()} for part in parts)
    except FormatError:
        return []
    keys = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    return [".".join(map(str, key)) for key in keys]


def _says_the_same(old: Version, today: Version) -> bool:
    """Whether a memory still has its text; its importance or a link may have been touched."""
    if layout.place(today.path).kind != "memory":
        return False
    try:
        return split(old.data).body.strip() == split(today.data).body.strip()
    except FormatError:
        return False


def _three_way(old: Version, today: Version, new: Version) -> bytes | None:
    """Key by key for memories and profiles, git's line merge for other files. Raises `FormatError`."""
    kind = layout.place(today.path).kind
    if kind == "memory":
        return _merge_memory(old.data, today.data, new.data)
    if kind == "profile":
        keys = _merge_keys(*(_flat(load_mapping(decode(version.data)[0])) for version in (old, today, new)))
        return files.edit_yaml(today.data, keys) if keys is not None else None
    return git.merge_file(old.data, today.data, new.data)


def _merge_memory(old: bytes, today: bytes, new: bytes) -> bytes | None:
    parts = [split(data) for data in (old, today, new)]
    keys = _merge_keys(*(_flat(part.mapping()) for part in parts))
    was, stands, wanted = (part.body.strip() for part in parts)
    if keys is None or (was != wanted and stands not in {was, wanted}):
        return None
    return files.edit_memory(today, keys, text=wanted if was != wanted else None)


def _flat(values: Mapping[str, Any]) -> dict[KeyPath, Any]:
    """Attributes one by one, other keys whole."""
    flat: dict[KeyPath, Any] = {}
    for key, value in values.items():
        if key == "attributes" and isinstance(value, dict):
            flat |= {(key, name): item for name, item in value.items()}
        elif key not in _NOT_LEARNED:
            flat[(key,)] = value
    return flat


def _merge_keys(
    old: Mapping[KeyPath, Any], today: Mapping[KeyPath, Any], new: Mapping[KeyPath, Any]
) -> dict[KeyPath, Any] | None:
    changes: dict[KeyPath, Any] = {}
    for key in sorted(old.keys() | new.keys()):
        was, stands, wanted = (values.get(key, DELETE) for values in (old, today, new))
        if was == wanted or stands == wanted:
            continue
        if stands != was:
            return None
        changes[key] = wanted
    return changes


def _statements(version: Version | None, secret: bytes) -> set[str]:
    if version is None or layout.place(version.path).kind != "memory":
        return set()
    try:
        memory = files.parse_memory(version.path, version.data)
    except FormatError:
        return set()
    return set(edits.taken_back(memory, secret=secret))
