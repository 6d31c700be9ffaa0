"""What a goal names that has parts: codes, numbers in groups, addresses, days. Pure.

A memory of INV-2024-00173 shares "inv" and "2024" with a goal about INV-2024-00174, and one of bob@example.com shares
"example" with a goal about ana@example.com. Parts are no reason to show it: such a thing is named by a text that has it
as a whole, however it is written, or all of its parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

_HAS_PARTS = re.compile("[0-9@]|://|www[.]")
_PLAIN = str.maketrans("‐‑‒–—―−’‘", "-------''")
_ADDRESS = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]++(?:\.[\w-]++)++|(?:(?<!\w)\w{1,16}://|\bwww\.)[^\s<>\"']+", re.IGNORECASE
)
_A = r"[^\W\d_]"
# As the index has them (docmem.codes); nothing here goes over a long text again from each of its characters.
_RUN = re.compile(
    rf"(?<![^\W_])(?:({_A}{{1,5}}) )?((?:{_A}++[-./_,'#]){{0,7}}+{_A}*+[0-9](?:[-./_,'#]?[^\W_])*+"
    r"(?:[ ()]{1,2}[0-9](?:[-./_,']?[^\W_])*+){0,7})"
)
_UNIT = re.compile("[ ()]+")
_GROUP = re.compile(rf"{_A}+|\d+")
_MARKS = re.compile(r"[-./_,'# ]")
_AMOUNT = re.compile("(?:[0-9]{1,3}(?:[., '][0-9]{3})+|[0-9]+)(?:[.,][0-9]{1,2})?")
_TWO_NUMBERS = re.compile("[0-9]{3}(?: [0-9]{3})+")
_YEAR = re.compile("(?:19|20)[0-9]{2}")
_TIME = re.compile(r"\b([01]?[0-9]|2[0-3])[:h]([0-5][0-9])\b")
_CURRENCIES = frozenset({"eur", "usd", "gbp", "chf", "jpy", "sek", "nok", "dkk", "pln", "czk", "brl", "inr", "cny"})

_MOST = 20
"""Codes of a goal: what has more is a log, and is looked at word by word."""
_GROUPS = 40
_WORD = 5
"""Letters from which those of a code are a word ("covid-19"), unless they are capitals (DOCMEM-123)."""
_SMALL = 2
_TAIL = 6
"""Digits with which no other code ends."""
_TAIL_OF_PHONE = 9
"""Digits of a telephone number that are the same with the country and without: those of its area are among them."""

_DAYS = (
    re.compile(
        r"\b(?P<day>[0-9]{1,2})(?:st|nd|rd|th|[.])?(?: of| de| di)? (?P<month>[^\W\d_]{3,10})"
        r"(?:[.]?,?(?: of| de)? (?P<year>[0-9]{4}))?\b"
    ),
    re.compile(r"\b(?P<month>[^\W\d_]{3,10})[.]? (?P<day>[0-9]{1,2})(?:st|nd|rd|th)?(?:,? (?P<year>[0-9]{4}))?\b"),
    re.compile(r"\b(?P<year>[0-9]{4})[-/.年](?P<month>[0-9]{1,2})[-/.月](?P<day>[0-9]{1,2})(?![0-9])"),
    re.compile(r"\b(?P<day>[0-9]{1,2})[-/.](?P<month>[0-9]{1,2})[-/.](?P<year>[0-9]{4})\b"),
    re.compile(r"\b(?P<month>[0-9]{1,2})/(?P<day>[0-9]{1,2})/(?P<year>[0-9]{4})\b"),
    re.compile(r"\b(?P<day>[0-9]{1,2})[.](?P<month>[0-9]{1,2})[.](?![0-9])"),
)
_MONTH_OF_YEAR = re.compile(r"\b([^\W\d_]{3,10})[.]?(?: of| de)? ((?:19|20)[0-9]{2})\b")
# As docmem.days of the index has them, in its seven languages.
_MONTHS = tuple(
    re.compile(names)
    for names in (
        "jan(?:uary?|uari|vier|eiro)?|enero?|gen(?:naio)?",
        "feb(?:ruary?|ruari|rero|braio)?|f[eé]v(?:rier|ereiro)?",
        "mar(?:ch|s|ço|zo)?|märz?|mrz|maart|mrt",
        "apr(?:ile?)?|avr(?:il)?|abr(?:il)?",
        "ma[iy]|maio|mayo|mag(?:gio)?|mei",
        "june?|juni|juin|junh?io|junho|giu(?:gno)?",
        "july?|juli|juil(?:let)?|julh?io|julho|lug(?:lio)?",
        "aug(?:ust|ustus)?|ao[uû]t?|ago(?:sto)?",
        "sept?(?:ember|embre|iembre)?|set(?:embro|tembre)?",
        "o[ck]t(?:ober|obre|ubre)?|out(?:ubro)?|ott(?:obre)?",
        "nov(?:ember|embre|embro|iembre)?",
        "dec(?:ember)?|d[eé]c(?:embre)?|dez(?:ember|embro)?|dic(?:embre|iembre)?",
    )
)
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing with parts, by its `lexemes`: any of `whole` names it, or one of each of `parts`; others don't."""

    lexemes: frozenset[str]
    whole: frozenset[str] = frozenset()
    parts: tuple[frozenset[str], ...] = ()

    def named_by(self, shared: frozenset[str]) -> frozenset[str]:
        """The lexemes of a text that name it; none where they don't."""
        if whole := self.whole & shared:
            return whole
        if self.parts and not any(part.isdisjoint(shared) for part in self.parts):
            return shared.intersection(*[frozenset().union(*self.parts)])
        return frozenset()


def things(goal: str, lexemes: Iterable[str]) -> tuple[Thing, ...]:
    """The things with parts that a goal names, in those of its lexemes that they are made of."""
    if not _HAS_PARTS.search(goal):
        return ()
    known, goal = frozenset(lexemes), goal.translate(_PLAIN)
    rest = _ADDRESS.sub(" ", goal)
    found = [*_addresses(goal, known), *_codes(rest, known), *_days(rest.lower(), known), *_times(rest, known)]
    return tuple(thing for thing in found if thing.lexemes or thing.parts)


def month_of(said: str) -> int | None:
    """Which month a word or a number means, from 1."""
    if said.isdigit():
        return int(said) if 1 <= int(said) <= len(_MONTHS) else None
    return next((n for n, names in enumerate(_MONTHS, start=1) if names.fullmatch(said)), None)


def is_year(lexeme: str) -> bool:
    """Whether it may be a year."""
    return _YEAR.fullmatch(lexeme) is not None


def says_year(year: str, text: str) -> bool:
    """Whether a text says this year, and not only a code of it or the date of a day."""
    return (
        re.search(rf"(?<![0-9A-Za-z])(?<![0-9A-Za-z][-./_#]){year}(?![0-9A-Za-z]|[-./_,'#][0-9A-Za-z])", text)
        is not None
    )


def _addresses(goal: str, known: frozenset[str]) -> Iterator[Thing]:
    for found in islice(_ADDRESS.finditer(goal), _MOST):
        address = found[0].lower().rstrip(".,;:!?)")
        words = [_forms(group, known) for group in re.findall(r"[^\W_]+", address)]
        long = frozenset(lexeme for lexeme in known if not lexeme.isalnum() and lexeme in address)
        if "@" in address and "://" not in address:
            local = address.partition("@")[0]
            whole = long & {address, local}
        else:
            host, _, path = re.sub(r"^\w+://", "", address).partition("/")
            whole = frozenset(lexeme for lexeme in long if lexeme.startswith((host, host.removeprefix("www."))))
            if path.strip("/"):
                whole = frozenset(lexeme for lexeme in whole if lexeme.endswith(path))
        # "a" of a@example.com is no lexeme: without it b@example.com would have all parts.
        parts = tuple(words) if all(any(len(form) > 1 for form in word) for word in words) else ()
        yield Thing(long.union(*words), whole, parts)


def _codes(goal: str, known: frozenset[str]) -> Iterator[Thing]:
    for found in islice(_RUN.finditer(goal), _MOST):
        before, run = found[1] or "", found[2]
        if _AMOUNT.fullmatch(run) and not run.isdigit() and not _TWO_NUMBERS.fullmatch(run):
            yield from _amount(run, known)
            continue
        units = _UNIT.split(run)
        if _is_one(units):
            yield from _code(before, run, known, run[0].isdigit(), dialled=True)
            continue
        for place, unit in enumerate(units):
            # One long number without a mark is an article's or an order's, and none of a telephone.
            marked = (
                unit[0] == "0"
                or not unit.isdigit()
                or (not place and goal[found.start(2) - 1 : found.start(2)] in {"+", "("})
            )
            is_line = not place and _is_line(before, unit, known)
            yield from _code("" if place else before, unit, known, is_line, dialled=marked)


def _is_one(units: list[str]) -> bool:
    """Whether numbers beside one another are the groups of one code: 2024 00174, 3704 0044 0532 0130, 1A 1AA."""
    return (
        len(units) > 3
        or any(len(unit) >= _WORD or unit[:1] == "0" for unit in units[1:])
        or (len(units) > 1 and not any(unit.isdigit() or unit.isalpha() for unit in units))
    )


def _is_line(before: str, number: str, known: frozenset[str]) -> bool:
    """Whether a short word belongs to the number after it: LH 1234, not "for 500"."""
    if not number.isdigit() or before.lower() not in known or before.lower() in _CURRENCIES:
        return False
    return len(before) < 3 or (len(before) < _WORD and before.isupper())


def _code(
    before: str, run: str, known: frozenset[str], before_is_part: bool, *, dialled: bool = False
) -> Iterator[Thing]:
    groups = _GROUP.findall(run)
    joined, before = "".join(groups).lower(), before.lower()
    if before_is_part:
        groups.insert(0, before)
    # A number alone is a word; a long one has others beside it, its ends.
    if len(groups) > _GROUPS or (len(groups) < 2 and not (joined.isdigit() and len(joined) >= _TAIL_OF_PHONE)):
        return
    whole, own = set[str](), set[str]()
    ends = _ends(groups)
    for lexeme in known:
        plain = _MARKS.sub("", lexeme)
        if not plain.isalpha() and plain in before + joined:
            if plain in {before + joined, "" if before_is_part else joined} or _is_tail(plain, joined, groups, dialled):
                whole.add(lexeme)
            elif _is_cut(plain, "".join(groups).lower(), ends) or (len(groups) == 1 and joined.endswith(plain)):
                own.add(lexeme)
    letters = {group: _forms(group.lower(), known) for group in groups if group.isalpha()}
    for group, forms in letters.items():
        if len(group) < _WORD or group.isupper() or group == before:
            own |= forms
    parts = [letters[group] if group in letters else known & {group} for group in groups]
    needed = tuple(
        part
        for place, (part, group) in enumerate(zip(parts, groups, strict=True))
        if part or not (group == before or (not place and len(group) == 1 and group.isalpha()))  # the E of E-1042
    )
    # 1112 is made of the parts of 1111 1111 1112, and a part that is no lexeme would be one of any other.
    by_parts = all(needed) and len(set(groups)) == len(groups)
    yield Thing(frozenset(whole | own), frozenset(whole), needed if by_parts else ())


def _ends(groups: list[str]) -> frozenset[int]:
    ends = [0]
    for group in groups:
        ends.append(ends[-1] + len(group))
    return frozenset(ends)


def _is_cut(plain: str, joined: str, ends: frozenset[int]) -> bool:
    """Whether some groups of a code that stand together are this."""
    at = joined.find(plain)
    while at >= 0:
        if at in ends and at + len(plain) in ends:
            return True
        at = joined.find(plain, at + 1)
    return False


def _is_tail(plain: str, joined: str, groups: list[str], dialled: bool) -> bool:
    """Whether this end of a code is no other's: the last digits of a telephone number; all of 2.14.3 without its v."""
    if not plain.isdigit() or not joined.endswith(plain):
        return False
    numbers = [group for group in groups if group.isdigit()]
    if len(numbers) > 1 and plain == "".join(numbers):
        return True
    if not (joined.isdigit() and dialled):
        return len(plain) >= _TAIL and plain == "".join(groups[-1:])
    return len(plain) >= min(_TAIL_OF_PHONE, len(joined.lstrip("0")))


def _amount(run: str, known: frozenset[str]) -> Iterator[Thing]:
    groups = re.split("[., ']", run)
    cents = groups.pop() if len(groups) > 1 and len(groups[-1]) < 3 else ""
    number = "".join(groups)
    whole = known & {number if len(number) > _SMALL else "", f"{number}.{cents}", run}
    own = {lexeme for lexeme in known if _is_cut(_MARKS.sub("", lexeme), number + cents, _ends([*groups, cents]))}
    yield Thing(whole | own, whole)


def _days(goal: str, known: frozenset[str]) -> Iterator[Thing]:
    rest = goal
    for pattern in _DAYS:
        for found in islice(pattern.finditer(goal), _MOST):
            said = found.groupdict()
            month, year = month_of(said["month"]), said.get("year") or ""
            if month is not None and (year or said["month"] not in {"set", "out"}):
                yield _day(int(said["day"]), month, year, _names(said["month"], month, known), known)
        rest = pattern.sub(" ", rest)
    for found in islice(_MONTH_OF_YEAR.finditer(rest), _MOST):
        if (month := month_of(found[1])) is not None:
            parts = _names(found[1], month, known), known & {found[2]}
            yield Thing(frozenset().union(*parts), parts=parts if all(parts) else ())


def _names(said: str, month: int, known: frozenset[str]) -> frozenset[str]:
    english = MONTHS[month - 1]
    return _forms(said, known) | _forms(english, known) | known & {english[:3]}


def _day(day: int, month: int, year: str, names: frozenset[str], known: frozenset[str]) -> Thing:
    two_month, two_day = f"{month:02}", f"{day:02}"
    days = known & {str(day), *(f"{day}{end}" for end in ("st", "nd", "rd", "th"))}
    written = (year + two_month + two_day, two_day + two_month + year, two_month + two_day + year)
    whole = known.intersection(written if year else (f"{two_month}-{two_day}",))
    return Thing(names | days | known & {year} | whole, whole, (days, names) if days and names else ())


def _times(goal: str, known: frozenset[str]) -> Iterator[Thing]:
    for found in islice(_TIME.finditer(goal), _MOST):
        # The index has times as lexemes of their own.
        if f"{int(found[1]):02}:{found[2]}" not in known and {found[1], found[2]} <= known:
            yield Thing(frozenset(), parts=(frozenset({found[1]}), frozenset({found[2]})))


def _forms(word: str, known: frozenset[str]) -> frozenset[str]:
    """A word and its stem, if they are known; what has digits has none."""
    if not word.isalpha():
        return known & {word}
    stems = (word[:end] for end in range(max(3, len(word) - 3), len(word)))
    return known & {word, *stems, re.sub("y$", "i", word)}
