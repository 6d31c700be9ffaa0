"""Which extracted statement stands for which expected one. Pure.

Greedy, in the order of the expected ones: each claims the first extracted statement that matches and isn't claimed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from docmem.names import normalized

Matches: TypeAlias = Callable[[str, str], bool]

JACCARD = 0.5
"""Share of tokens that two statements must have in common to say the same."""

_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+(?:[.,]\d+)*")
_SMALL = frozenset(["a", "an", "the", "is", "are", "was", "to", "of", "in", "on", "for", "and", "with"]) | frozenset(
    ["user", "traveller", "customer", "client", "developer"]
)


def tokens(text: str) -> frozenset[str]:
    """The words of a text, small ones and the person left out; a sign of a script without spaces is a word."""
    return frozenset(_TOKEN.findall(normalized(text))) - _SMALL


def jaccard(one: str, other: str) -> float:
    """Shared tokens / all tokens; 1 for two texts without any."""
    left, right = tokens(one), tokens(other)
    return len(left & right) / len(left | right) if left or right else 1.0


def alike(one: str, other: str) -> bool:
    """The matcher `jaccard`."""
    return jaccard(one, other) >= JACCARD


def pairs(expected: Sequence[str], extracted: Sequence[str], *, matches: Matches = alike) -> dict[int, int]:
    """Position of an expected statement to that of the extracted one that stands for it."""
    claimed: dict[int, int] = {}
    for number, wanted in enumerate(expected):
        free = (n for n, text in enumerate(extracted) if n not in claimed.values() and matches(wanted, text))
        found = next(free, None)
        if found is not None:
            claimed[number] = found
    return claimed
