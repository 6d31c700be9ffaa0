"""The paragraph of a text that answers a question, and the words both are compared by. Pure."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import Stemmer

from docmem.fence import one_line
from docmem.packet import shorten

LIMIT = 500
"""Characters of a passage at most."""

_WORD = re.compile(r"\w+")
_UNSEEN = re.compile("[\xad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+")
_STOP = """
a about after all am an and any are as at be been but by can could did do does for from had has have
he her him his how i if in into is it its just me my no not of on or our out she should so some than
that the their them then there these they this to up us was we were what when where which who whom
why will with would you your s t
"""


def stems(text: str, *, language: str) -> list[str]:
    """The words of a text, in order: in one form (NFKC, case folded, without invisible characters), stemmed where the
    language has a stemmer, without stop words."""
    stop = _stop_words()
    words = [word for word in _WORD.findall(in_one_form(text)) if word not in stop]
    stemmer = _stemmers.of(language)
    return words if stemmer is None else stemmer.stemWords(words)


def in_one_form(text: str) -> str:
    """NFKC, case folded, without the characters that are not seen: full-width letters are letters."""
    if text.isascii():
        return text.casefold()
    return unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).casefold()


@cache
def _stop_words() -> frozenset[str]:
    return frozenset(_STOP.split())


class _Stemmers(threading.local):
    """A thread's own: a stemmer keeps the word in itself while it works on it."""

    def __init__(self) -> None:
        self._known: dict[str, Stemmer.Stemmer | None] = {}

    def of(self, language: str) -> Stemmer.Stemmer | None:
        """The stemmer of a language, None where it has none."""
        if language not in self._known:
            # Without its cache: looking a word up takes longer than to stem it.
            self._known[language] = Stemmer.Stemmer(language, 0) if language in Stemmer.algorithms() else None
        return self._known[language]


_stemmers = _Stemmers()


def passages(text: str) -> list[str]:
    """A text in pieces of at most 500 characters, each on one line: its paragraphs, long ones by sentences."""
    return [piece for paragraph in re.split(r"\n\s*\n", text) for piece in _pieces(one_line(paragraph)) if piece]


def _pieces(paragraph: str) -> Iterator[str]:
    piece = ""
    for sentence in _SENTENCE.split(paragraph) if len(paragraph) > LIMIT else [paragraph]:
        if piece and len(piece) + 1 + len(sentence) > LIMIT:
            yield piece
            piece = ""
        piece = f"{piece} {sentence}" if piece else sentence
        while len(piece) > LIMIT:
            head = shorten(piece, LIMIT)
            yield head
            piece = piece[len(head) - 1 :].lstrip()
    yield piece


class Passage(NamedTuple):
    """A piece of a text, and whether it is its first and its last."""

    text: str
    is_first: bool
    is_last: bool


def best(text: str, question: str, *, language: str) -> Passage:
    """The passage that shares most words with the question; the first one of several."""
    wanted = set(stems(question, language=language))
    pieces = passages(text) or [""]
    at = max(range(len(pieces)), key=lambda at: len(wanted.intersection(stems(pieces[at], language=language))))
    return Passage(pieces[at], at == 0, at == len(pieces) - 1)
