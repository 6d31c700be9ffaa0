"""The paragraph of a text that answers a question, and the words both are compared by. Pure."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import NamedTuple

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
    stem = _stemmer(language)
    return [stem(word) for word in _WORD.findall(in_one_form(text)) if word not in _stop_words()]


def in_one_form(text: str) -> str:
    """NFKC, case folded, without the characters that are not seen: full-width letters are letters."""
    if text.isascii():
        return text.casefold()
    return unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).casefold()


@cache
def _stop_words() -> frozenset[str]:
    return frozenset(_STOP.split())


@lru_cache(maxsize=8)
def _stemmer(language: str) -> Callable[[str], str]:
    import snowballstemmer

    if language not in snowballstemmer.algorithms():
        return str
    own = threading.local()

    def stem(word: str) -> str:
        # A stemmer keeps the word in itself while it works on it: one for each thread.
        if not hasattr(own, "stemmer"):
            own.stemmer = snowballstemmer.stemmer(language)
        return str(own.stemmer.stemWord(word))

    return lru_cache(maxsize=50_000)(stem)


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
