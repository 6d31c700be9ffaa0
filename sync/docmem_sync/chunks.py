"""Cut a long document into pieces that one search result, and one vector, can stand for.

The pieces are the text, each part of it once, so that whoever puts them together has the document. What is searched
overlaps: a piece is found by the end of the one before it too (see `overlap`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from zlib import crc32

SIZE = 1_500
"""Characters of one chunk at most: about what an embedder reads of a text."""

OVERLAP = SIZE * 15 // 100
"""Characters of the chunk before that a chunk is searched with, at most."""

_SEAMS = ("\n# ", "\n## ", "\n### ", "\n#### ", "\n\n", "\n", ". ", "。", " ")
_TELLING = 64
"""Characters by which one seam is told from another."""
_HEADING = re.compile(r"#{1,6}\s")


def split(text: str) -> list[str]:
    """The chunks of a text, in order; joined they are the text again. Cut where it hurts least, headings first."""
    return list(_split(text)) or [""]


def _split(text: str) -> Iterator[str]:
    at = 0
    while len(text) - at > SIZE:
        end = _seam(text, at)
        yield text[at:end]
        at = end
    if at < len(text):
        yield text[at:]


def _seam(text: str, at: int) -> int:
    """Where the chunk that starts at `at` ends: at a seam of the best kind in the window's second half.

    Of several the one whose following text has the highest checksum, wherever the window begins: so the cuts behind
    something that was put in soon fall where they fell before, and the chunks there are the ones they were.
    """
    low, high = at + SIZE // 2, at + SIZE
    for seam in _SEAMS:
        found = _ends(text, seam, low, high)
        if found:
            return max(found, key=lambda end: (crc32(text[end : end + _TELLING].encode("utf-8", "replace")), end))
    return high


def _ends(text: str, seam: str, low: int, high: int) -> list[int]:
    """Where a chunk may end at seams of this kind. A heading begins the next; blanks and line ends close this one."""
    length = 1 if seam.endswith("# ") else len(seam)
    found = []
    start = text.find(seam, low, high)
    while start >= 0:
        found.append(start + length)
        start = text.find(seam, start + 1, high)
    return found


def overlap(before: str, chunk: str) -> str:
    """The end of the chunk before, with which `chunk` is searched: a thought that a seam cuts in two is found whole.

    Whole paragraphs of it, else lines, sentences, words. None where a heading begins `chunk`: there the thought ends.
    """
    if _HEADING.match(chunk):
        return ""
    end = before.rstrip()
    if len(end) > OVERLAP:
        end = _tail(end[-OVERLAP:])
    return end.strip()


def _tail(end: str) -> str:
    """What follows the first seam of the best kind that leaves something worth having."""
    at = end.rfind("\n#")
    if at >= 0:
        return end[at:]
    for seam in _SEAMS[_SEAMS.index("\n\n") :]:
        found = end.find(seam)
        if 0 <= found < OVERLAP * 3 // 4:
            return end[found + len(seam) :]
    return end
