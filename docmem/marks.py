"""What people write in many ways and mean exactly: days, times, shares, addresses of machines, accounts, plates. Pure.

A text is found by one lexeme for each, however it is written, and a goal asks for that one. As the index has them
(docmem.days, docmem.times, docmem.marks), so that both find the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

# As docmem.days of the index has them, in its seven languages.
_NAMES_OF_MONTHS = (
    "jan(?:uary?|uari?|vier|eiro)?|enero?|gen(?:naio)?",
    "feb(?:ruary?|ruari?|rero|braio)?|f[eé]v(?:rier|ereiro)?",
    "mar(?:ch|s|ço|co|zo)?|märz?|maerz|mrz|maart|mrt",
    "apr(?:ile?)?|avr(?:il)?|abr(?:il)?",
    "ma[iy]|maio|mayo|mag(?:gio)?|mei",
    "june?|juni|juin|junh?io|junho|giu(?:gno)?",
    "july?|juli|juil(?:let)?|julh?io|julho|lug(?:lio)?",
    "aug(?:ust|ustus)?|ao[uû]t?|ago(?:sto)?",
    "sept?(?:ember|embre|iembre)?|set(?:embro|tembre)?",
    "o[ck]t(?:ober|obre|ubre)?|out(?:ubro)?|ott(?:obre)?",
    "nov(?:ember|embre|embro|iembre)?",
    "d[eé]c(?:ember|embre)?|dez(?:ember|embro)?|dic(?:embre|iembre)?",
)
_MONTHS = tuple(map(re.compile, _NAMES_OF_MONTHS))
_M = "|".join(_NAMES_OF_MONTHS)
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_OTHER_WORDS = frozenset({"set", "out", "gen", "mag", "ago"})
"""Months in some language, and words in another: "set 3", "2 out of 3". They are months beside a year."""

_ON = r"[-/., ]{1,2}(?:of |de |del )?"
_DAY = re.compile(
    rf"(?<!\w)(?:(\d\d?)(?:st|nd|rd|th|er)?[-/. ]{{1,2}}(?:of |de |di )?({_M})(?:{_ON}(\d{{4}}))?"
    rf"|({_M})[.]? (\d\d?)(?:st|nd|rd|th)?(?:,? (\d{{4}}))?|({_M}){_ON}((?:19|20)\d\d))(?!\w)",
    re.ASCII,
)
_NUMBERED = re.compile(
    r"(?<!\w)(?<!\w[-._#])(?:(\d{4})[-/.年](\d\d?)[-/.月](\d\d?)(?!\d)|(\d\d?)([-/.])(\d\d?)[-/.](\d{4})(?!\w)"
    r"|(\d\d?)[.](\d\d?)[.](?!\d)|(\d\d?)月(\d\d?)日)",
    re.ASCII,
)
_TIME = re.compile(
    r"(?:(?<!\w)(at|um|ab|gegen|alle|ore|às|as|las|à|kl|om|vers) )?(?<!\w)"
    r"(\d\d?)(?:([:h.])([0-5]\d))?(?!\d)(?: ?(?:([ap])[.]?m(?!\w)|(uhr|hrs|h|o'clock)(?!\w)))?"
)
_MEASURE = re.compile(r" ?(?:%|eur|usd|gbp|chf|dollar|pound|per |k[gm])|\w")
_COLONS = re.compile("[0-9a-f]*(?::[0-9a-f]{0,4}){3,}")
_SHARE = re.compile(
    r"(?<![\w.,])(\d{1,9}(?:[.,]\d{1,9})?) ?(?:%|per ?cent|pct(?!\w)|pro[zc]ent|por ?ciento|por ?cento|pour ?cent)"
)
_X = "[0-9a-f]"
_NUMBER = re.compile(
    rf"(?<![\w:-])(?:({_X}{{2}}(?:[:-]{_X}{{2}}){{5}}|{_X}{{4}}[.]{_X}{{4}}[.]{_X}{{4}})"
    rf"|((?:{_X}{{1,4}}:){{7}}{_X}{{1,4}}|(?:{_X}{{1,4}}(?::{_X}{{1,4}}){{0,6}})?::(?:{_X}{{1,4}}(?::{_X}{{1,4}}){{0,6}})?)"
    r"|([a-z]{2}\d\d ?(?:[a-z]{4} ?)?(?:\d[a-z0-9]{3} ?){2,6}(?:\d[a-z0-9]{0,2})?))(?![\w:-])",
    re.ASCII,
)
_PLATE = re.compile(
    r"(?<![\w-])(?:(?:[A-Z]{1,3}[ -])?[A-Z]{1,3}[ -]?[0-9]{1,4}[ -]?[A-Z]{1,3}"
    r"|[0-9]{1,4}[ -][A-Z]{1,3}[ -][0-9]{1,4}|[A-Z]{1,3}[ -][A-Z]{1,3}[ -]?[0-9]{1,4})(?![\w-])",
    re.ASCII,
)
HAS_NAMES = re.compile(r"[^\W\d_]-[^\W\d_]|[a-z][A-Z]|[A-Z][^\W\d_]+ [A-Z]")
"""What a text must have for any name in `names_joined` or `names_apart`."""
_ENDS = str.maketrans("\n\t", "  ", '?!.,;:()"')
_HAS_OTHERS = frozenset("0123456789'")
_IN_ONE = re.compile(r"(?<![^\W_])([A-Z][a-z]+)([A-Z][a-z]+)(?![^\W_])")
_DECIMALS = re.compile(r"(?<![0-9.,])(?<![0-9][ '])([0-9]+)[.,]([0-9])(0?)(?![0-9]|[.,][0-9])")
_ZEROS = re.compile("(^|:)0+(?=[0-9a-f])")
_RECORDED = re.compile(r"[0-9]{1,2} [a-z]+ [0-9]{4}[.](?: |$)")
_BETWEEN = str.maketrans("", "", " -.:")


class Mark(NamedTuple):
    """Something exact in a text: from where to where, and the lexemes by which a goal asks for it. `day`: a day, as
    (year, month, day), with "" for a year that isn't said and 0 for the day of a month as a whole."""

    start: int
    end: int
    lexemes: tuple[str, ...]
    day: tuple[str, int, int] | None = None
    parts_tell: bool = True
    """Whether its parts say something too; those of a time, an address or an account are like those of many others."""


def month_of(said: str) -> int | None:
    """Which month a word or a number means, from 1."""
    if said.isdigit():
        return int(said) if 1 <= int(said) <= len(_MONTHS) else None
    return next((n for n, names in enumerate(_MONTHS, start=1) if names.fullmatch(said)), None)


def marks(text: str) -> list[Mark]:
    """All in a text in small letters but for its plates, in order of kinds; a later one covers none before it."""
    found: list[Mark] = []
    for kind in (days, times, _shares, _numbers):
        found += kind(text)
    return found


def without_recorded(projection: str) -> str:
    """A memory as it is indexed, without the day on which it was recorded: it doesn't say that."""
    return _RECORDED.sub("", projection, count=1) if projection[:1].isdigit() else projection


def days(text: str) -> Iterator[Mark]:
    """The days, and the months of a year, that a text in small letters says; 5/2/2024 is two."""
    for found in _DAY.finditer(text):
        day, month, year, month_before, day_after, year_after, alone, its_year = found.groups()
        number, said = month_of(month or month_before or alone), year or year_after or its_year or ""
        if number and (said or (month or month_before) not in _OTHER_WORDS):
            yield from _day(found, said, number, int(day or day_after or 0), of_month=alone is not None)
    for found in _NUMBERED.finditer(text):
        year, month, day, one, mark, two, its_year, left, right, of_month, on_day = found.groups()
        if one:
            pairs = {(int(two), int(one))} | ({(int(one), int(two))} if mark == "/" or int(two) > 12 else set())
            for m, d in sorted(pairs):
                yield from _day(found, its_year, m, d)
        else:
            yield from _day(found, year or "", int(month or right or of_month), int(day or left or on_day))


def _day(found: re.Match[str], year: str, month: int, day: int, *, of_month: bool = False) -> Iterator[Mark]:
    if not 1 <= month <= 12 or not (of_month or 1 <= day <= 31):
        return
    in_year, lexemes = f"{month:02}-{day:02}", tuple[str, ...]()
    if not of_month:  # asked for as one lexeme, all of a month would stand before what else a question is about
        lexemes = (f"{year}-{in_year}", f"--{in_year}") if year else (in_year,)
    yield Mark(*found.span(), lexemes, (year, month, day))


def of_day(year: str, month: int, day: int) -> tuple[str, ...]:
    """The lexemes of a text that says a day: who asks may not know the year."""
    in_year = f"{month:02}-{day:02}"
    if not day:
        return ()
    return (f"{year}-{in_year}", in_year) if year else (in_year, f"--{in_year}")


def times(text: str) -> Iterator[Mark]:
    """The times of day in a text in small letters, as 14:30; one that may be of the afternoon is both."""
    if text.count(":") > 2:  # nothing between the colons of a machine's address is a time
        text = _COLONS.sub(lambda found: " " * len(found[0]), text)
    for found in _TIME.finditer(text):
        at, hour, mark, minute, half, unit = found.groups()
        if mark == "." and not (half or unit) and _MEASURE.match(text, found.end()):
            continue
        if int(hour) > 23 or not _is_time(at, int(hour), mark, half, unit):
            continue
        hours = {int(hour)}
        if half and int(hour) < 13:
            hours = {int(hour) % 12 + (12 if half == "p" else 0)}
        elif (unit == "o'clock" or (mark in {":", "."} and not unit)) and 0 < int(hour) < 12 and hour[0] != "0":
            hours.add(int(hour) + 12)
        start = found.start(2)
        lexemes = tuple(f"{each:02}:{minute or '00'}" for each in sorted(hours))
        yield Mark(start, found.end(), lexemes, parts_tell=mark == "." or not (minute or half))


def _is_time(at: str | None, hour: int, mark: str | None, half: str | None, unit: str | None) -> bool:
    if half or unit in {"uhr", "o'clock"} or mark in {":", "h"}:
        return True
    # 2h is a while, 21h an hour; 14.30 may be an amount.
    return bool(at) if mark == "." else unit in {"h", "hrs"} and (bool(at) or hour > 12)


def _shares(text: str) -> Iterator[Mark]:
    for found in _SHARE.finditer(text):
        whole, _, rest = found[1].replace(",", ".").partition(".")
        rest = rest.rstrip("0")
        yield Mark(*found.span(), (f"{whole.lstrip('0') or '0'}{'.' if rest else ''}{rest}%",))


def _numbers(text: str) -> Iterator[Mark]:
    for found in _NUMBER.finditer(text):
        machine, address, account = found.groups()
        if machine or account:
            yield Mark(*found.span(), ((machine or account).translate(_BETWEEN),), parts_tell=False)
        elif len(address) > 2:
            yield Mark(*found.span(), (_ZEROS.sub(r"\1", address),), parts_tell=False)


def names_joined(text: str) -> Iterator[str]:
    """Two names side by side as one word in small letters: smithjones of Smith Jones and of smith-jones."""
    before = ""
    for word in text.translate(_ENDS).split(" ")[:100]:
        has_others = not _HAS_OTHERS.isdisjoint(word)
        if has_others or word[:1] == word[:1].lower() or "-" in word:
            before = ""
            if "-" in word[2:-2] and not has_others:
                yield word.replace("-", "").lower()
        else:
            if before:
                yield (before + word).lower()
            before = word


def names_apart(text: str) -> Iterator[tuple[str, str]]:
    """The two names of one word, in small letters: smith and jones of SmithJones."""
    for first, second in _IN_ONE.findall(text):
        yield first.lower(), second.lower()


def other_decimals(text: str) -> Iterator[str]:
    """Amounts with the decimals that they have in other texts: 0.5 and 0.50; 5 of 5.00."""
    for whole, tenths, zero in _DECIMALS.findall(text):
        yield f"{whole}.{tenths}" if zero else f"{whole}.{tenths}0"
        if tenths == "0":
            yield whole


def plates(text: str) -> Iterator[Mark]:
    """Groups of capitals and numbers that stand together, as on the plates of cars."""
    for found in _PLATE.finditer(text):
        if not found[0].isalnum():
            yield Mark(*found.span(), (found[0].translate(_BETWEEN).lower(),))
