"""Whether so many deletions were meant: those that nobody announced stop sync until a person confirms them.

What is counted are rows that go: memories by their id, profiles, documents. What only moved is still there.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping

from docmem.git.walk import Link, Piece
from docmem.layout import place
from docmem_sync.reading import printable

GUARD_ROWS = 20
GUARD_SHARE = 0.3
"""More unannounced deletions than the larger of the two stop sync."""

DELETES = "Docmem-Deletes:"
"""Trailer by which the engine announces how many memories, profiles and documents a commit deletes."""

_COUNTED = frozenset({"memory", "profile", "document"})


class Announced:
    """Rows whose last deletion its commit announced: with a trailer that gives the number of all that it deletes.

    Only the engine's own commits are believed: a person who picks or rewrites one carries its trailer along, and what
    comes from an origin has passed no hook of ours. `confirmed`: commits whose deletions a person confirmed when they
    pushed them.
    """

    def __init__(self, confirmed: Collection[str]) -> None:
        self._confirmed = confirmed
        self._said: set[str] = set()
        self._names: dict[int, tuple[str, ...]] = {}  # hash of a document's path: what it was called before
        self._begin()

    def _begin(self) -> None:
        self._gone: list[tuple[str, str | None]] = []
        # Of what comes only hashes are kept: a commit may bring a hundred thousand files.
        self._blobs = array("q")
        self._paths = array("q")

    def see(self, piece: Piece) -> None:
        """Some of a commit's changes, oldest commit first."""
        for touch in piece.touches:
            path = printable(touch.path)
            kind = place(path).kind
            if kind not in _COUNTED:
                continue
            if touch.new is None:
                self._gone.append((path, touch.old))
            elif piece.commit.parent is not None:
                self._blobs.append(hash(touch.new))
                self._paths.append(hash(path) if kind == "document" and touch.old is None else 0)

    def settle(self, commit: Link, keys: Iterable[str]) -> None:
        """The commit's end, and the keys of the rows that are gone with it: ids of memories, paths of the others."""
        moved = self._moved()
        keys = [key for key in keys if key not in moved]
        names = {key: (*self._names.pop(hash(key), ()), key) for key in (*keys, *moved)}
        self._names |= {where: names[path] for path, where in moved.items()}
        if keys:
            gone = {name for key in keys for name in names[key]}
            self._said = self._said | gone if self._is_said(commit, len(keys)) else self._said - gone
        self._begin()

    def _moved(self) -> dict[str, int]:
        """Documents that stand elsewhere now: their paths, to the hash of the new one."""
        if not self._gone:
            return {}
        come: dict[int, list[int]] = {}
        for blob, path in zip(self._blobs, self._paths, strict=True):
            if path:
                come.setdefault(blob, []).append(path)
        return {
            path: come[hash(blob)].pop()
            for path, blob in self._gone
            if place(path).kind == "document" and come.get(hash(blob))
        }

    def _is_said(self, commit: Link, rows: int) -> bool:
        """Whether the commit gives the number of rows that it deletes, or of files: of these some may not be served."""
        if commit.id in self._confirmed:
            return True
        kept = {*self._blobs}
        files = sum(hash(blob) not in kept for _, blob in self._gone)
        said = {line.removeprefix(DELETES).strip() for line in commit.trailers if line.startswith(DELETES)}
        return commit.is_ours and bool(said & {str(rows), str(files)})

    def lacks(self, deleted: Mapping[str, str]) -> list[str]:
        """The paths of those of the deleted rows (key to path) whose deletion no commit announced."""
        elsewhere = {name for names in self._names.values() for name in names}
        return [path for key, path in deleted.items() if key not in self._said and key not in elsewhere]


def stops(deletions: int, served: int) -> bool:
    """Whether so many unannounced deletions, of so many files, stop sync."""
    return deletions > max(GUARD_ROWS, GUARD_SHARE * served)
