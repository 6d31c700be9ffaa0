"""Whether so many deletions were meant: those that nobody announced stop sync until a person confirms them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from docmem.git.walk import Piece
from docmem.layout import place

GUARD_ROWS = 20
GUARD_SHARE = 0.3
"""More unannounced deletions than the larger of the two stop sync."""

DELETES = "Docmem-Deletes:"
"""Trailer by which the engine announces how many memories a commit deletes."""


class Announced:
    """Paths whose last deletion its commit announced, with a trailer that gives the number it deletes.

    `confirmed`: commits whose deletions a person confirmed when they pushed them.
    """

    def __init__(self, confirmed: Collection[str]) -> None:
        self._confirmed = confirmed
        self._said: set[str] = set()
        self._gone: list[tuple[str, str | None]] = []
        self._kept: set[str] = set()

    def see(self, piece: Piece) -> None:
        """Some of a commit's changes, oldest commit first."""
        numbers = {line.removeprefix(DELETES).strip() for line in piece.commit.trailers if line.startswith(DELETES)}
        self._gone += [(touch.path, touch.old) for touch in piece.touches if touch.new is None]
        if numbers:
            self._kept |= {touch.new for touch in piece.touches if touch.new is not None}
        if not piece.ends:
            return
        if self._gone:
            said = piece.commit.id in self._confirmed or bool(numbers & self._counts())
            paths = {path for path, _ in self._gone}
            self._said = self._said | paths if said else self._said - paths
        self._gone, self._kept = [], set()

    def _counts(self) -> set[str]:
        """The numbers by which a commit may call its deletions: its memories', or all that it takes out of the index.

        A pure move is no deletion: its blob stands elsewhere afterwards.
        """
        gone = [place(path).kind for path, blob in self._gone if blob not in self._kept]
        memories = sum(kind == "memory" for kind in gone)
        return {str(memories), str(sum(kind in {"memory", "profile", "document"} for kind in gone))} - {"0"}

    def lacks(self, deleted: Iterable[str]) -> list[str]:
        """Those of the deleted paths that no commit announced."""
        return [path for path in deleted if path not in self._said]


def stops(deletions: int, served: int) -> bool:
    """Whether so many unannounced deletions, of so many files, stop sync."""
    return deletions > max(GUARD_ROWS, GUARD_SHARE * served)
