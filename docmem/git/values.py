"""What the door to git deals in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

MAIN = "refs/heads/main"
NONE = "0" * 40
"""git's id of nothing: a ref that isn't there."""
REGULAR = ("100644", "100755")
"""Modes of regular files."""
IRREGULAR = ("120000", "160000")
"""Modes of symlinks and submodules."""
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""git knows the tree without files even where no repo holds it."""


_FIRST, _LAST = (round(when.replace(tzinfo=UTC).timestamp()) for when in (datetime.min, datetime(9999, 12, 31)))


def time(seconds: int) -> datetime:
    """Seconds since 1970 as a datetime in UTC. git takes any number, and a datetime ends with the year 9999."""
    return datetime.fromtimestamp(max(_FIRST, min(seconds, _LAST)), UTC)


@dataclass(frozen=True, slots=True)
class Author:
    """Who a commit is by."""

    name: str
    email: str


ENGINE = Author("docmem", "engine@docmem.invalid")


@dataclass(frozen=True, slots=True)
class Change:
    """One file's change between two revisions. `old` and `new` are blob ids, None where there is no such file.

    `replaced`: the file is gone because a symlink or a submodule stands there now.
    """

    status: Literal["A", "M", "D"]
    path: str
    old: str | None
    new: str | None
    replaced: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of the first-parent chain, with its changes against its first parent."""

    id: str
    parents: tuple[str, ...]
    author: Author
    when: datetime
    subject: str
    trailers: Mapping[str, tuple[str, ...]]
    changes: tuple[Change, ...]

    def trailer(self, key: str) -> str | None:
        """The last value of a trailer."""
        values = self.trailers.get(key)
        return values[-1] if values else None
