"""The paragraph of a text that answers a question. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from docmem.fence import one_line
from docmem.lexemes import lexemes
from docmem.packet import shorten

LIMIT = 500
"""Characters of a passage at most."""

_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+")


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
    wanted = _wanted(question, language)
    pieces = passages(text) or [""]
    at = max(range(len(pieces)), key=lambda at: len(wanted.intersection(lexemes(pieces[at], language=language))))
    return Passage(pieces[at], at == 0, at == len(pieces) - 1)


@lru_cache(maxsize=16)
def _wanted(question: str, language: str) -> frozenset[str]:
    # A packet asks each of its documents the same.
    return frozenset(lexemes(question, language=language, asked=True))
