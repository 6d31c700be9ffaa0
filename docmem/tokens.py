"""How many tokens a text has, about, without a tokenizer: rather too many than too few, whatever it is written in.

Three public tokenizers are stood in for: cl100k, o200k and the one that Anthropic published. What all three of them
know as one token (pieces.txt) is one; a word that isn't there is cut greedily into pieces that are. Other scripts count
by the character, each at what its script costs in the dearest of the three. evals/tokens.py makes the pieces and tells
the true counts of samples (tests/data/tokens.yaml).
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from string import ascii_letters, digits
from zlib import crc32

_PART = re.compile(r"[A-Za-z]+|[0-9]+|[^\x00-\x7f]+|.", re.DOTALL)
_OTHER_BLANKS = re.compile(r"[\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")

_LONG = 128
"""Characters from which an unbroken run is a key, a hash or a picture: 1.25 of them a token."""
_REMEMBERED = 8_192
"""Words whose cost is kept: a megabyte."""
_REMEMBERED_CHARS = 32
_CODE_CHARS = 12
_SHAPE = str.maketrans(dict.fromkeys(ascii_letters, "a") | dict.fromkeys(digits, "0"))

_COSTS: Sequence[tuple[int, float]] = (
    (0x00C0, 1.7),  # letters of Latin with accents
    (0x0250, 2.0),
    (0x0370, 1.4),  # Greek
    (0x0400, 1.2),  # Cyrillic
    (0x0410, 0.72),  # its letters in Russian
    (0x0450, 1.2),
    (0x0530, 2.2),  # Armenian
    (0x0590, 1.15),  # Hebrew, Arabic
    (0x0700, 2.3),
    (0x0900, 1.4),  # Devanagari
    (0x0980, 2.15),  # Bengali
    (0x0A00, 3.4),  # Gurmukhi, Gujarati, Oriya
    (0x0B80, 2.25),  # Tamil
    (0x0C00, 2.6),  # Telugu, Kannada, Malayalam
    (0x0D80, 2.25),  # Sinhala
    (0x0E00, 2.0),  # Thai
    (0x0E80, 3.3),  # Lao, Tibetan
    (0x1000, 2.25),  # Burmese, Georgian
    (0x1100, 3.4),  # Ethiopic, Khmer, Mongolian and others
    (0x1EA0, 2.4),  # Vietnamese
    (0x1F00, 3.4),
    (0x2010, 1.5),  # dashes, quotation marks
    (0x2028, 3.0),
    (0x3000, 1.2),  # Kana
    (0x3100, 3.0),
    (0x4E00, 1.8),  # Chinese characters
    (0xA000, 3.3),
    (0xAC00, 1.5),  # Hangul
    (0xD7B0, 3.4),
    (0x10000, 4.4),
)
"""Tokens a character, from this one on."""
_STARTS = [start for start, _ in _COSTS]


def estimate(text: str) -> int:
    """Tokens of a text, about. Additive: lines may be counted one by one."""
    # A space before a word is part of its token; line ends, tabs and a second space are not.
    blanks = text.count("\n") + text.count("\t") + text.count("\r") + text.count("  ")
    if not text.isascii():
        blanks += 3 * len(_OTHER_BLANKS.findall(text))
    return blanks + estimate_words(text.split())


def estimate_words(words: Iterable[str]) -> int:
    """Tokens of words that single spaces part, about: `estimate` for who has cut a text into words already."""
    return sum(map(_words.__getitem__, words))


class _Words(dict[str, int]):
    """The cost of each word, reckoned once: most words of a text were met before.

    But no id or booking code was: of those the shape is known, and what is learned of words isn't forgotten for them.
    """

    def __missing__(self, word: str) -> int:
        if len(word) <= _CODE_CHARS and not word.isalpha():
            shape = word.translate(_SHAPE)
            if "0" in shape and "a" in shape and "aaa" not in shape:
                return _codes[shape]
        cost = _cost(word)
        if len(word) <= _REMEMBERED_CHARS:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[word] = cost
        return cost


_words = _Words()


def estimate_id(id: str) -> int:
    """Tokens of the first four digits of a memory's id in brackets: `[4e3a,` or `[4e3a]`.

    There are 65,536 of them, and each turn shows a dozen that no turn before it did.
    """
    try:
        number = int(id[:4], 16)
        return _ids[number] or _learned(number, id)
    except ValueError:  # it is none
        return _words[f"[{id[:4]},"]


def _learned(number: int, id: str) -> int:
    _ids[number] = _words[f"[{id[:4]},"]
    return _ids[number]


_ids = bytearray(1 << 16)


class _Codes(dict[str, int]):
    """The cost of codes of one shape, in which no more than two letters stand together: two tokens, at worst."""

    def __missing__(self, shape: str) -> int:
        cost = _cost(shape) + shape.count("aa")
        if len(self) < _REMEMBERED:
            self[shape] = cost
        return cost


_codes = _Codes()


def _cost(word: str) -> int:
    if len(word) > _LONG and word.isascii():
        return 1 + len(word) * 4 // 5
    cost = 0.0
    for found in _PART.finditer(word):
        part, at_start = found[0], not found.start()
        if not part.isascii():
            cost += sum(map(_characters.__getitem__, part)) + (at_start and 0.3)
        elif part.isalpha():
            cost += _pieces(part, at_start)
        elif part.isdigit():
            cost += at_start + (1 if len(part) < 4 else (len(part) + 1) // 2)
        else:
            cost += 1
    return max(1, round(cost))


class _Characters(dict[str, float]):
    """The cost of each character that is not of ASCII."""

    def __missing__(self, char: str) -> float:
        at = bisect_left(_STARTS, ord(char) + 1) - 1
        cost = _COSTS[at][1] if at >= 0 else 1.5
        if len(self) < _REMEMBERED:
            self[char] = cost
        return cost


_characters = _Characters()


@lru_cache(maxsize=4_096)
def _pieces(word: str, at_start: bool) -> int:
    """How many pieces a word is cut into, the longest first."""
    starts, inner = _known()
    count = at = 0
    while at < len(word):
        known, longest = starts if at_start and not at else inner
        end = min(len(word), at + longest)
        while end > at + 1 and not _stands(known, word[at:end]):
            end -= 1
        at = end
        count += 1
    return count


def _stands(known: array[int], piece: str) -> bool:
    hashed = crc32(piece.encode())
    at = bisect_left(known, hashed)
    return at < len(known) and known[at] == hashed


@cache
def _known() -> tuple[tuple[array[int], int], tuple[array[int], int]]:
    """The pieces that words begin with, and those inside of words: as sorted hashes, a tenth of what the words take."""
    _, starts, inner = files("docmem").joinpath("pieces.txt").read_text(encoding="ascii").split("\n\n")
    return _hashed(starts.split()), _hashed(inner.split())


def _hashed(pieces: Sequence[str]) -> tuple[array[int], int]:
    return array("I", sorted(crc32(piece.encode()) for piece in pieces)), max(map(len, pieces))
