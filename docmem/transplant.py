"""Carry one change over onto today's files: three-way, by memory id and by key, not by line.

Reverting carries the change from after to before; approving carries the one from base to proposal. git's line merge
conflicts when a neighbouring line was edited since; here neither a neighbour, nor another key, nor a move is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from docmem import edits, files, git, layout
from docmem.document import decode, split
from docmem.errors import FormatError
from docmem.git import Change
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
    """A commit's changes by memory: the two halves of a move are one. docmem's own files are left out."""
    found: dict[str, Shift] = {}
    for change in changed:
        if layout.place(change.path).kind in _KEPT_BY_DOCMEM:
            continue
        old, new = (
            Version(change.path, git.read_blob(repository.git_dir, blob)) if blob else None
            for blob in (change.old, change.new)
        )
        fresh = Shift(id_of(new or old), old, new)
        known = found.get(fresh.name)
        found[fresh.name] = Shift(fresh.id, known.old or old, known.new or new) if known else fresh
    return list(found.values())


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
    written: dict[str, bytes | None] = {}
    conflicts: list[str] = []
    gone: set[str] = set()
    come: set[str] = set()
    deletes = 0
    for shift in wanted:
        there = today(now, shift)
        if stands(there, shift.new):
            continue
        result = _carried(there, shift)
        if isinstance(result, _Conflict):
            conflicts.append(shift.name)
            continue
        if there is not None and (result is None or result.path != there.path):
            written[there.path] = None
        if result is not None and result != there:
            written[result.path] = result.data
        deletes += result is None
        gone |= _statements(there, secret)
        come |= _statements(result, secret)
    return Carried(written, tuple(conflicts), frozenset(gone - come), frozenset(come - gone), deletes)


class _Conflict:
    """Changed since in the same place."""


def today(now: Snapshot, shift: Shift) -> Version | None:
    """The memory as it stands today, wherever it has moved to; another file at its path."""
    version = shift.old or shift.new
    assert version is not None
    data = now.read(version.path)
    here = Version(version.path, data) if data is not None else None
    if shift.id is None or id_of(here) == shift.id:
        return here
    for path in now.locate(shift.id):
        found = now.read(path)
        if found is not None:
            return Version(path, found)
    return None


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
        return new if today is None else _Conflict()
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
