"""Which old version of a file belongs to which new one, in one commit or between two revisions.

A memory is its id, never its path: people swap two files' names, and give a name that became free to a new one. A path
pairs what has no id, or none that can be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from docmem import layout
from docmem.document import split
from docmem.errors import FormatError
from docmem.git import Change

_HEAD = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*\r?\n(.*?)(?:^---[ \t]*\r?$|\Z)", re.DOTALL | re.MULTILINE)
_ID = re.compile(rb"^id:[ \t]*([\"']?)([0-9a-f]{16})\1[ \t]*(?:#.*)?\r?$", re.MULTILINE)
_WHOLE = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Half:
    """A version of a file: where it stood, its blob, and the id it gives as its own where it is a memory's."""

    path: str
    blob: str
    id: str | None


@dataclass(frozen=True, slots=True)
class Pair:
    """What happened to one memory or other file; None on the side where it isn't there."""

    old: Half | None
    new: Half | None

    @property
    def id(self) -> str | None:
        """The memory's id, as told by the newer side that tells it."""
        return next((half.id for half in (self.new, self.old) if half is not None and half.id is not None), None)

    @property
    def path(self) -> str:
        """Where it stands, or stood last."""
        half = self.new or self.old
        assert half is not None
        return half.path


def pairs(changed: Iterable[Change], read: Callable[[str], bytes]) -> list[Pair]:
    """The changes as pairs, in the order of their paths today. `read` gives the bytes of a memory's blob."""
    listed = list(changed)
    olds = [_half(change.path, change.old, read) for change in listed if change.old is not None]
    news = [_half(change.path, change.new, read) for change in listed if change.new is not None]
    found: list[Pair] = []
    for key in (_file_and_id, _id_alone, _path_alone):
        found += _joined(olds, news, key)
    found += [Pair(old, None) for old in olds] + [Pair(None, new) for new in news]
    place = {change.path: number for number, change in enumerate(listed)}
    return sorted(found, key=lambda pair: (place[pair.path], pair.new is not None))


def _half(path: str, blob: str, read: Callable[[str], bytes]) -> Half:
    return Half(path, blob, claimed_id(read(blob)) if layout.place(path).kind == "memory" else None)


def _joined(olds: list[Half], news: list[Half], key: Callable[[Half], Hashable]) -> list[Pair]:
    """Take out of both lists what belongs together by this key."""
    waiting = {key(new): new for new in reversed(news) if key(new) is not None}
    found = []
    for old in olds:
        new = waiting.get(key(old))
        if new is None or (key is _path_alone and old.id is not None and new.id is not None):
            continue
        del waiting[key(old)]
        found.append(Pair(old, new))
    taken = {half for pair in found for half in (pair.old, pair.new)}
    olds[:] = [old for old in olds if old not in taken]
    news[:] = [new for new in news if new not in taken]
    return found


def _file_and_id(half: Half) -> Hashable:
    return (half.path, half.id) if half.id is not None else None


def _id_alone(half: Half) -> Hashable:
    return half.id


def _path_alone(half: Half) -> Hashable:
    return half.path


def claimed_id(data: bytes) -> str | None:
    """The id that a file's head gives, be the rest of it valid or not; None for what has no head, or no id in it."""
    fence = _HEAD.match(data)
    if fence is None:
        return None
    found = _ID.search(fence[1])
    if found is not None:
        return found[2].decode()
    try:
        memory = split(data).mapping().get("id")
    except FormatError:
        return None
    return memory if isinstance(memory, str) and _WHOLE.fullmatch(memory) else None
