"""Cut a long document into pieces that one search result, and one vector, can stand for."""

from __future__ import annotations

from collections.abc import Iterator

SIZE = 1_500
"""Characters of one chunk at most: about what an embedder reads of a text."""

_SEAMS = ("\n# ", "\n## ", "\n### ", "\n\n", "\n", ". ", " ")


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
    """Where the chunk that starts at `at` ends: the last seam of the best kind in the window's second half."""
    low, high = at + SIZE // 2, at + SIZE
    for seam in _SEAMS:
        found = text.rfind(seam, low, high)
        if found >= 0:
            # A heading begins the next chunk; blanks and line ends close this one.
            return found + 1 if seam.endswith("# ") else found + len(seam)
    return high
