"""Payment card numbers in a text, however they are written: found by their check sum, and by what cards begin with.

One number in ten has the check sum by chance, and every IMEI has it, so a card also begins as one of its length does:
with 15 digits that is American Express alone. Written in an odd way (dots, slashes, line ends, letters beside it) it
must stand in groups as cards have them: dates, versions and order numbers are written in those ways as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_GROUP = re.compile(r"\d+")
_BETWEEN = re.compile(r"[\s.\-/_·•|*+:,~‐-―−\u00ad\u200b-\u200d\u2060\ufeff]{1,3}")
_BLANK = re.compile(r"[\s\u00ad\u200b-\u200d\u2060\ufeff]+")
_DASH = re.compile(r"[‐-―−]")
_SHORTEST, _LONGEST = 13, 19
_BEGINNINGS = re.compile(
    r"(?!(?!3[47]).{15}\Z)(?:"
    r"4(?:.{12}|.{15}|.{18})|5[1-5].{14}|(?:222[1-9]|22[3-9].|2[3-6]..|27[01].|2720).{12}|3[47].{13}|"
    r"3(?:0[0-59]|[689].).{11,16}|35(?:2[89]|[3-8].).{12,15}|6(?:011|5..|4[4-9].).{12,15}|62.{14,17}|"
    r"(?:5[06-8]|6[0-9]).{11,17}|220[0-4].{12,15}|9792.{12}|8[12].{14}|(?:8600|9860).{12})"
)
"""How the numbers of Visa, Mastercard, American Express, Diners, JCB, Discover, UnionPay, Maestro, Mir, Troy, RuPay,
Uzcard and Humo begin, with their lengths (ISO/IEC 7812)."""


@dataclass(frozen=True, slots=True)
class Card:
    """Where a card's number stands in a text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Run:
    """Groups of digits and what stands between them."""

    groups: tuple[re.Match[str], ...]
    between: tuple[str, ...]


def found(text: str) -> list[Card]:
    """The card numbers in a text, in order."""
    cards: list[Card] = []
    for run in _runs(text):
        at = 0
        while at < len(run.groups):
            size = next((size for size in _sizes(run, at) if _is_card(text, run, at, size)), 0)
            if size:
                cards.append(Card(run.groups[at].start(), run.groups[at + size - 1].end()))
            at += size or 1
    return cards


def is_card_number(text: str) -> bool:
    """The Luhn check over the digits of `text`. One repeated digit is no card."""
    digits = [int(char) for char in text if char.isdecimal()]
    if not _SHORTEST <= len(digits) <= _LONGEST or len(set(digits)) == 1:
        return False
    doubled = [digit * 2 - 9 if digit > 4 else digit * 2 for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _runs(text: str) -> Iterator[_Run]:
    groups: list[re.Match[str]] = []
    between: list[str] = []
    for group in _GROUP.finditer(text):
        gap = text[groups[-1].end() : group.start()] if groups else ""
        if groups and not _BETWEEN.fullmatch(gap):
            yield _Run(tuple(groups), tuple(between))
            groups, between = [], []
        elif groups:
            between.append(_sign(gap))
        groups.append(group)
    if groups:
        yield _Run(tuple(groups), tuple(between))


def _sign(gap: str) -> str:
    """What stands between two groups as one sign: a blank, or the sign with the blanks around it left out."""
    sign = _DASH.sub("-", _BLANK.sub("", gap))
    return sign or " "


def _sizes(run: _Run, at: int) -> Iterator[int]:
    """How many groups from here on have as many digits as a card, most first."""
    sizes, digits = [], 0
    for size, group in enumerate(run.groups[at : at + _LONGEST], start=1):
        digits += len(group[0])
        if digits > _LONGEST:
            break
        if digits >= _SHORTEST:
            sizes.append(size)
    return reversed(sizes)


def _is_card(text: str, run: _Run, at: int, size: int) -> bool:
    groups, between = run.groups[at : at + size], run.between[at : at + size - 1]
    digits = "".join(group[0] for group in groups)
    if not is_card_number(digits) or not _BEGINNINGS.fullmatch("".join(str(int(char)) for char in digits)):
        return False
    start, end = groups[0].start(), groups[-1].end()
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    is_alone = size == len(run.groups) and not re.match(r"[\w.+-]", before) and not re.match(r"[\w-]", after)
    if is_alone and set(between) <= {" ", "-"}:
        return True
    return before != "+" and len(set(between)) <= 1 and _is_grouped(groups)


def _is_grouped(groups: Sequence[re.Match[str]]) -> bool:
    sizes = [len(group[0]) for group in groups]
    return sizes in ([4, 6, 5], [4, 6, 4]) or (len(set(sizes[:-1])) <= 1 and sizes[-1] <= max(sizes[0], 4))
