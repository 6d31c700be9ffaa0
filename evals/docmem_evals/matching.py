"""Which extracted statement stands for which expected one: greedy, by a matcher. Pure, but for what a matcher asks.

Each expected statement, in order, claims the first extracted one that matches it and isn't claimed. Matchers differ in
what they can see, so the one that was used is part of every figure: `jaccard` compares words (`cosine` is in
cosine.py, `judge` in judge.py), and only where nothing that counts is contradicted (agreement.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from docmem.names import spelled_out
from docmem_evals.agreement import contradict
from docmem_evals.dialogues import Wordings
from docmem_evals.figures import written_out

JACCARD = 0.5
"""Share of tokens that two statements must have in common to say the same."""

_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+(?:[.,]\d+)*")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SMALL = _words("a an the is are was to of in on for and with but please")
_PERSON = _words(
    """user traveller traveler customer client developer person guest reader patient student member employee caller
    player buyer visitor learner pupil owner subscriber applicant candidate reisende"""
)
"""Whom a statement is about: gold and model name the same person in their own way."""


class Matcher(Protocol):
    """Tells whether two statements say the same."""

    @property
    def name(self) -> str:
        """How it is named in reports, threshold included."""
        ...

    def same(self, one: str, other: str) -> bool:
        """Whether they do. Raises `DocmemError` where a model was asked in vain."""
        ...


@dataclass(frozen=True)
class Jaccard:
    """Compares words, numbers, dates and negations. Free, the same everywhere; blind to synonyms, other languages."""

    threshold: float = JACCARD

    @property
    def name(self) -> str:
        """`jaccard 0.5`."""
        return f"jaccard {self.threshold:g}"

    def same(self, one: str, other: str) -> bool:
        """Whether they share enough of their words, and contradict each other in nothing that counts."""
        return jaccard(one, other) >= self.threshold and not contradict(one, other)


def tokens(text: str) -> frozenset[str]:
    """The words of a text, small ones and the person left out; a sign of a script without spaces is a word."""
    return frozenset(_TOKEN.findall(spelled_out(written_out(text)))) - _SMALL - _PERSON


def jaccard(one: str, other: str) -> float:
    """Shared tokens / all tokens; 1 for two texts without any."""
    left, right = tokens(one), tokens(other)
    return len(left & right) / len(left | right) if left or right else 1.0


def contained(part: str, whole: str) -> float:
    """Share of the tokens of `part` that stand in `whole`; 0 for a part without any."""
    words = tokens(part)
    return len(words & tokens(whole)) / len(words) if words else 0.0


def says(wordings: Wordings, text: str, matcher: Matcher) -> bool:
    """Whether a text says what any of the wordings says."""
    return any(matcher.same(wording, text) for wording in wordings)


def pairs(expected: Sequence[Wordings], extracted: Sequence[str], matcher: Matcher) -> dict[int, int]:
    """Position of an expected statement to that of the extracted one that stands for it."""
    claimed: dict[int, int] = {}
    for number, wanted in enumerate(expected):
        free = (n for n, text in enumerate(extracted) if n not in claimed.values() and says(wanted, text, matcher))
        found = next(free, None)
        if found is not None:
            claimed[number] = found
    return claimed


def first(wanted: Iterable[Wordings], text: str, matcher: Matcher) -> int | None:
    """Position of the first of the expected statements that a text says."""
    return next((number for number, each in enumerate(wanted) if says(each, text, matcher)), None)
