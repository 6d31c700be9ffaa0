"""Whether two values of a profile are one but for how they are written. Pure.

"RM90,000" is "90000", "Lisbon " is "lisbon", "40 000 EUR" is "EUR 40,000". "2 adults" is not "2 children", and 1.5
is not 15: digits alone prove nothing, so numbers are read and the words around them have to agree as far as there are
any on both sides.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal

from docmem.names import normalized

_NUMBER = re.compile(r"\d+(?:[ .,'’\u00a0\u202f]\d+)*")
_GROUPED = re.compile(r"\d{1,3}(?:[ .,'’\u00a0\u202f]\d{3})+")
_WORD = re.compile(r"[^\W\d_]+|[$€£¥₹]")
_TIMES = {"k": Decimal(1_000), "m": Decimal(1_000_000)}


def same_value(one: str, other: str) -> bool:
    """Whether they say the same."""
    if normalized(one) == normalized(other):
        return True
    left, right = _numbers(one), _numbers(other)
    if not left or left != right:
        return False
    words, others = _words(one), _words(other)
    return words <= others or others <= words


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text)
    return "".join(str(unicodedata.digit(char)) if char.isdigit() else char for char in folded).casefold()


def _numbers(text: str) -> list[Decimal]:
    plain = _plain(text)
    return [_read(found, plain) for found in _NUMBER.finditer(plain)]


def _read(found: re.Match[str], text: str) -> Decimal:
    written = found[0]
    follows = text[found.end() : found.end() + 2]
    times = _TIMES.get(follows[:1], Decimal(1)) if not follows[1:].isalpha() else Decimal(1)
    if _GROUPED.fullmatch(written):
        return Decimal(re.sub(r"\D", "", written)) * times
    # The last mark of several is the decimal one: 1,234.50 and 1.234,50.
    whole, mark, rest = re.fullmatch(r"(.*?)(?:([.,])(\d{1,2}))?", written, re.DOTALL).groups()  # type: ignore[union-attr]
    digits = re.sub(r"\D", "", whole) or "0"
    return Decimal(f"{digits}.{rest}" if mark else re.sub(r"\D", "", written)) * times


def _words(text: str) -> frozenset[str]:
    without = re.sub(r"(?<=\d)[km](?!\w)", "", _plain(text))
    return frozenset(_WORD.findall(without))
