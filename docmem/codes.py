"""What a goal names that has parts: codes, numbers in groups, addresses, days. Pure.

A memory of INV-2024-00173 shares "inv" and "2024" with a goal about INV-2024-00174, and one of bob@example.com shares
"example" with a goal about ana@example.com. Parts are no reason to show it: such a thing is named by a text that has it
as a whole, however it is written, or all of its parts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import NamedTuple, TypeAlias

from docmem.marks import HAS_NAMES, MONTHS, Mark, days, marks, month_of, names_apart, names_joined, plates

_HAS_PARTS = re.compile(r"[0-9@']|://|www[.]|[-:][A-Fa-f]{2}[-:]|[.]\w+[.]\w")
_PLAIN = str.maketrans("‐‑‒–—―−’‘", "-------''")
_ADDRESS = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]++(?:\.[\w-]++)+|(?:(?<!\w)\w{1,16}://|\bwww\.)[^\s<>\"']+"
    r"|(?<![\w.@/+-])[a-z][\w-]*+(?:\.[\w-]{1,64}){1,8}\.[a-z]{2,16}(?![\w.-])",
    re.IGNORECASE,
)
_A = r"[^\W\d_]"
# As the index has them (docmem.codes); nothing here goes over a long text again from each of its characters.
_RUN = re.compile(
    rf"(?<![^\W_])(?:({_A}{{1,5}}) )?((?:{_A}++[-./_,'#]){{0,7}}+{_A}*+[0-9](?:[-./_,'#]?[^\W_])*+"
    r"(?:[ ()]{1,2}[0-9](?:[-./_,']?[^\W_])*+){0,7})"
)
_UNIT = re.compile("[ ()]+")
_GROUP = re.compile(rf"{_A}+|\d+")
_WORDS = re.compile(rf"{_A}{{3,}}")
_DOTTED_TIME = re.compile(r"[0-9]{1,2}[.][0-9]{2}")
_ZONES = timedelta(hours=14)
_LETTERS = "abcdefghijklmnopqrstuvwxyz."
_MARKS = re.compile(r"[-./_,'# ]")
_AMOUNT = re.compile("(?:[0-9]{1,3}(?:[., '][0-9]{3})+|[0-9]+)(?:[.,][0-9]{1,2})?")
_TWO_NUMBERS = re.compile("[0-9]{3}(?: [0-9]{3})+")
_YEAR = re.compile("(?:19|20)[0-9]{2}")
_CURRENCY = re.compile(
    r"eur(?:os?)?|usd|gbp|chf|jpy|sek|nok|dkk|pln|czk|brl|inr|cny|cad|aud|dollars?|pounds?|sterling|francs?|franken|yen"
    r"|rupees?|reais|pesos?|bucks|[€$£¥]"
)
_MEASURE = re.compile("[kcm]?m|[km]?g|[cm]?l|[kmgt]b|k?wh?|mph|kmh|lbs?|oz|ft")
_MONEY = re.compile(
    r"(?:(?<!\w)(?P<before>[a-z]{3,8}|[€$£¥]) ?)?(?<![\w.,])(?P<number>[0-9][0-9., ']*)"
    r"(?: ?(?P<after>[a-z]{1,8}|[€$£¥])(?!\w))?"
)
_OF_A_CODE = re.compile(r"[a-z][0-9]{1,2}[a-z]? $")
_SAID_AMOUNT = re.compile(
    r"(?<![0-9.,:/])(?:(?<!\w-)|(?=[0-9]+[.,][0-9]))([0-9]{1,3}(?:[., '][0-9]{3})+|[0-9]+)(?:[.,]([0-9]{1,2}))?"
    r"(?![.,:/]?[0-9])"
)
_BETWEEN = str.maketrans("", "", "., '")
# Python up to 3.11.4 doesn't go back behind the mark of "137." where a possessive group holds a possessive one; so none
# does here, nor in an address.
_SAID_CODE = re.compile(
    rf"(?<![^\W_])(?:({_A}{{1,6}})[-./_#]?|([A-Z]{{1,4}}) )?([0-9][^\W_]*(?:[-./_][^\W_]+)*)(?![-./_]?[^\W_]|['%])"
)
_NOUN = re.compile(
    rf"({_A}{{3,}})(?: (?:is|was|ist|war|es|est|è|é))?[ :=#\"']{{1,3}}(?:(?:[Nn][or]?[.°º:]{{0,2}}|#) ?#?)?$"
)
_ASKED_CODE = re.compile(_SAID_CODE.pattern.replace("([A-Z]{1,4}) ", "([A-Za-z]{1,2}|[A-Z]{3,4}) "))
_THIS_AGE = re.compile("19[0-9]{2}|20[0-3][0-9]")
_APART = re.compile(rf"(?<![^\W_])(?<![0-9][-./_,'#])(?<![0-9] )({_A}{{3,}}+)(?![-./_,'#]?[0-9]| [0-9]{{3}})(?![^\W_])")
_NUMBERED = re.compile(
    r"(?:(?<!\w)(?:n[or]s?|num|n[úu]mero|number|n)[.°º:]? ?#?|#)(?P<number>[0-9]{3,12})(?![-\w.,/]*\w)"
)
_NAME = re.compile(r"(?<!\w)([odl])'([^\W\d_]{2,})")
_OF_A_VERSION = re.compile(r"(?<!\w)([^\W\d_]{2,})(?: |-)?v?([0-9]+(?:[.][0-9]+)+)(?![0-9])")
_DOTTED = re.compile(r"[a-z]*[.]?([0-9]+(?:[.][0-9]+){2,})")
_PAIR = re.compile(r"(?<![\w-])([a-z]{2}) ([0-9]{1,4}) ([a-z]{2})(?![\w-])")
_UNITS = frozenset({"am", "pm", "km", "kg", "cm", "mm", "mb", "gb", "tb", "ml", "eu", "us", "uk"})

_MOST = 20
"""Codes of a goal: what has more is a log, and is looked at word by word."""
_GROUPS = 40
_WORD = 5
"""Letters from which those of a code are a word ("covid-19"), unless they are capitals (DOCMEM-123)."""
_SMALL = 2
_NEAR = 3
_BEFORE = 40
"""Characters before a code among which its noun stands."""
_TAIL = 6
"""Digits with which no other code ends."""
_TAIL_OF_PHONE = 9
"""Digits of a telephone number that are the same with the country and without: those of its area are among them."""


Amount: TypeAlias = tuple[str, bool]


class Code(NamedTuple):
    """A code or a number as a text says it: the letters before its first digit, all after them, and the word before."""

    letters: str
    rest: str
    noun: str

    def is_near(self, small: str) -> bool:
        """Whether a text in small letters may say one of its kind."""
        return (self.letters != "" and self.letters in small) or (self.noun != "" and self.noun[:_NEAR] in small)

    def is_like(self, other: Code) -> bool:
        """Whether another is of its kind: INV-2041 and INV-2042, invoice 41003 and invoice INV-41004.

        Letters among the digits tell no more than these: commit 9f3b2c1 and commit d41d8cd.
        """
        is_mixed = not self.rest.isdigit()
        if is_mixed == other.rest.isdigit() or self._length(is_mixed) != other._length(is_mixed):
            return False
        if self.letters and other.letters and (self.letters == other.letters or not is_mixed):
            return self.letters == other.letters
        return bool(self.noun and other.noun) and (self.noun.startswith(other.noun) or other.noun.startswith(self.noun))

    def _length(self, is_mixed: bool) -> int:
        return len(self.rest) + (len(self.letters) if is_mixed else 0)


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing with parts, by its `lexemes`: any of `whole` names it, or one of each of `parts`; others don't.

    A code that no text has shuts nothing out: words of it that a text says by themselves count as any other, and only a
    text that says another code of its kind has to share two more words of the goal.
    """

    lexemes: frozenset[str]
    whole: frozenset[str] = frozenset()
    parts: tuple[frozenset[str], ...] = ()
    day: tuple[str, int, int] | None = None
    """A day (`Mark.day`). Its `parts` may be those of the day on which a text was recorded."""
    version: tuple[str, str, frozenset[str]] | None = None
    """A word, the version of it that is meant, and the lexemes of the word."""
    amount: str | None = None
    """An amount, as 1250.50: what a text must say, whatever lexemes it has."""
    unit: frozenset[str] | None = None
    """The lexemes of its currency or measure, none for a symbol; None where it has none."""
    letters: frozenset[str] = frozenset()
    """Those of its lexemes that are letters, and may be words as well."""
    code: Code | None = None
    """A code as it is said, by which others of its kind are known."""
    noun: frozenset[str] = frozenset()
    """The lexemes of the word before it: "invoice INV-2041"."""

    @property
    def is_exact(self) -> bool:
        """Whether it is more than words: names alone are none."""
        return self.code is not None or not all(map(str.isalpha, self.lexemes))

    @property
    def is_repeated(self) -> bool:
        """Whether it is only another form of words that are there as well."""
        return not self.parts and self.whole == self.lexemes and all(map(str.isalpha, self.whole))

    def named_by(self, shared: frozenset[str], amounts: Collection[Amount] | None = None) -> frozenset[str]:
        """The lexemes of a text that name it; none where they don't. `amounts`: those that the text says."""
        if self.amount is not None and amounts is not None:
            return self.lexemes & shared if self._is_among(amounts, shared) else frozenset()
        if whole := self.whole & shared:
            return whole
        if self.parts and self.day is None and not any(part.isdisjoint(shared) for part in self.parts):
            return shared.intersection(*[frozenset().union(*self.parts)])
        return frozenset()

    def _is_among(self, amounts: Collection[Amount], shared: frozenset[str]) -> bool:
        """Whether a text says this amount. A small whole number is one of anything, and says it beside its unit."""
        is_large = self.amount is not None and len(self.amount) > _SMALL + len(".00")
        has_unit = self.unit is not None and not (self.unit and self.unit.isdisjoint(shared))
        return any(number == self.amount and (is_large or has_unit or decimals) for number, decimals in amounts)

    def is_recorded(self, shared: frozenset[str], text: str, since: datetime | None) -> bool:
        """Whether a text was recorded on this day, and says no other; or in this month."""
        if self.day is None or since is None or any(part.isdisjoint(shared) for part in self.parts):
            return False
        year, month, day = self.day
        return any(
            (not year or int(year) == at.year) and month == at.month and day in {0, at.day} for at in _about(since)
        ) and (not day or not _other_days(text, self.day))

    def says(self, text: str) -> bool:
        """Whether a text says this day, or a day of this month, where no lexeme tells: the index takes a day that
        stands first for the one on which a memory was recorded, and has none for months."""
        return self.day is not None and any(_same(mark.day, self.day) for mark in days(text.lower()) if mark.day)

    def denied_by(self, text: str) -> frozenset[str]:
        """The lexemes of the word of which a text says another version, and not this one."""
        if self.version is None:
            return frozenset()
        word, number, lexemes = self.version
        said = [found[2] for found in _OF_A_VERSION.finditer(text.lower()) if found[1] == word]
        if not said or any(one == number or one.startswith(f"{number}.") for one in said):
            return frozenset()
        return lexemes

    def is_other_than(self, codes: Iterable[Code]) -> bool:
        """Whether some codes are of its kind, and none is this."""
        like = [one.rest for one in codes if self.code is not None and self.code.is_like(one)]
        return self.code is not None and bool(like) and self.code.rest not in like


def _about(since: datetime) -> Iterator[datetime]:
    """A moment on the calendars of all time zones: a text's own isn't known."""
    yield since
    if 1 < since.year < 9999:
        yield from (since - _ZONES, since + _ZONES)


def _same(said: tuple[str, int, int], day: tuple[str, int, int]) -> bool:
    """Whether what is said is this day, or a day of this month."""
    alike = said[1:] == day[1:] if day[2] else said[1] == day[1]
    return alike and (said[0] == day[0] or (bool(day[2]) and not (said[0] and day[0])))


def _other_days(text: str, day: tuple[str, int, int]) -> bool:
    said = [mark.day for mark in days(text.lower()) if mark.day is not None and mark.day[2]]
    return bool(said) and not any(_same(one, day) for one in said)


def things(goal: str, lexemes: Iterable[str]) -> tuple[Thing, ...]:
    """The things with parts that a goal names, in those of its lexemes that they are made of."""
    goal = goal.translate(_PLAIN)
    has_parts, has_names = _HAS_PARTS.search(goal), HAS_NAMES.search(goal)
    if not (has_parts or has_names):
        return ()
    known = frozenset(lexemes)
    found = list(_names_joined(_ADDRESS.sub(" ", goal), known)) if has_names else []
    return (*found, *_with_parts(goal, known)) if has_parts else tuple(found)


def _with_parts(goal: str, known: frozenset[str]) -> Iterator[Thing]:
    found = list(_addresses(goal, known))
    rest = _ADDRESS.sub(" ", goal)
    small = rest.lower()
    if len(small) != len(rest):
        rest = small
    for kind in (marks, plates, _pairs, _numbered):
        with_numbered = rest
        spans = sorted(kind(rest if kind is plates else small), key=lambda mark: mark.start)[:_MOST]
        found += [_marked(mark, small, known) for mark in spans]
        for mark in spans:
            if not _DOTTED_TIME.fullmatch(small, mark.start, mark.end):
                small, rest = (_without(text, mark.start, mark.end) for text in (small, rest))
    money = _money(small, known)
    for start, end in money:
        rest, with_numbered = (_without(text, start, end) for text in (rest, with_numbered))
    found += money.values()
    found += (*_codes(rest, known), *_names(small, known), *_versions(small, known), *_kinds(with_numbered, known))
    return (thing for thing in found if thing.lexemes or thing.parts or thing.version or thing.code)


def _without(text: str, start: int, end: int) -> str:
    return text[:start] + " " * (end - start) + text[end:]


def _marked(mark: Mark, text: str, known: frozenset[str]) -> Thing:
    own = _made_of(text[mark.start : mark.end], known)
    if mark.day is None:
        return Thing(own | known.intersection(mark.lexemes), known.intersection(mark.lexemes))
    year, month, day = mark.day
    english = MONTHS[month - 1]
    said = next((of for word in _WORDS.findall(text[mark.start : mark.end]) if (of := _month(word, known))), None)
    names = forms_of(english, known) | known & {english[:3]} | (said or frozenset())
    on_day = known & {str(day), f"{day:02}", *(f"{day}{end}" for end in ("st", "nd", "rd", "th"))} if day else None
    joined = f"{year}{month:02}{day:02}" if year and day else ""
    whole = known & {*mark.lexemes, joined}
    parts = tuple(part for part in (on_day, names, known & {year} if year else None) if part is not None)
    return Thing(own | whole | names.union(*parts), whole, parts, mark.day)


def _month(word: str, known: frozenset[str]) -> frozenset[str]:
    return forms_of(word, known) if month_of(word) else frozenset()


def _made_of(said: str, known: frozenset[str]) -> frozenset[str]:
    """The lexemes that are made of a part of a goal: its words and numbers, and what stands together of them."""
    groups = _GROUP.findall(said)
    joined, ends = "".join(groups), _ends(groups)
    made = set[str]()
    for lexeme in known:
        plain = _MARKS.sub("", lexeme)
        if plain and (_is_cut(plain, joined, ends) or (len(plain) >= _WORD and plain.isdigit() and plain in joined)):
            made.add(lexeme)
    return frozenset(made).union(*(forms_of(group, known) for group in groups))


def _pairs(small: str) -> Iterator[Mark]:
    """Plates in small letters, as far as they are no words."""
    for found in _PAIR.finditer(small):
        if _UNITS.isdisjoint(found.groups()):
            yield Mark(*found.span(), ("".join(found.groups()),))


def _numbered(small: str) -> Iterator[Mark]:
    """No. 4012, n° 4012, #4012."""
    for found in _NUMBERED.finditer(small):
        yield Mark(*found.span(), (found["number"],))


def _money(small: str, known: frozenset[str]) -> dict[tuple[int, int], Thing]:
    """Amounts beside a currency or a measure, and where they stand: neither is one without the other."""
    found = {}
    for said in islice(_MONEY.finditer(small), _MOST):
        number = said["number"].rstrip("., '")
        units = [unit for unit in (said["before"], said["after"]) if unit and _CURRENCY.fullmatch(unit)]
        is_code = _OF_A_CODE.search(small, max(0, said.start() - _BEFORE), said.start())  # SE10 5GB
        if said["after"] and _MEASURE.fullmatch(said["after"]) and not is_code:
            units.append(said["after"])
        if units and _AMOUNT.fullmatch(number):
            amount = _amount(number, known)
            words = frozenset().union(*(forms_of(unit, known) for unit in units))
            joined = known & ({unit + number for unit in units} | {number + unit for unit in units})
            much = amount.amount or (_with_cents(number, "") if len(number) <= _SMALL else None)
            found[said.span()] = Thing(
                amount.lexemes | words | joined, amount.whole | joined, amount=much, unit=words | joined
            )
    return found


def _names(small: str, known: frozenset[str]) -> Iterator[Thing]:
    """O'Brien: who is called O'Neill is somebody else."""
    for found in islice(_NAME.finditer(small), _MOST):
        first, last = known & {found[1]}, forms_of(found[2], known)
        whole = forms_of(found[1] + found[2], known)
        yield Thing(first | last | whole, whole, (first, last) if first and last else ())


def _names_joined(goal: str, known: frozenset[str]) -> Iterator[Thing]:
    """Names that others write as one word, or as two: Smith Jones, smith-jones, SmithJones."""
    for name in islice(names_joined(goal), _MOST):
        if whole := forms_of(name, known):
            yield Thing(whole, whole)
    for halves in islice(names_apart(goal), _MOST):
        first, second = (forms_of(half, known) for half in halves)
        if first and second:
            whole = forms_of("".join(halves), known)
            yield Thing(whole | first | second, whole, (first, second))


def _versions(small: str, known: frozenset[str]) -> Iterator[Thing]:
    for found in islice(_OF_A_VERSION.finditer(small), _MOST):
        if lexemes := forms_of(found[1], known):
            yield Thing(frozenset(), version=(found[1], found[2], lexemes))


def _kinds(goal: str, known: frozenset[str]) -> Iterator[Thing]:
    """The codes that are meant, by which those of their kind are known; of the noun before one: "invoice INV-2041"."""
    for code in islice(codes_in(goal, _ASKED_CODE), _MOST):
        yield Thing(frozenset(), code=code, noun=forms_of(code.noun, known) if code.noun else frozenset())


def codes_in(text: str, pattern: re.Pattern[str] = _SAID_CODE) -> Iterator[Code]:
    """The codes that a text says, and its numbers of three digits and more, but for years."""
    for found in pattern.finditer(text):
        letters, rest = (found[1] or found[2] or "").lower(), _MARKS.sub("", found[3].lower())
        is_number = len(rest) > _SMALL and rest.isdigit() and found[3] == rest and not _THIS_AGE.fullmatch(rest)
        if letters or is_number or len(rest) > _WORD:
            noun = _NOUN.search(text, max(0, found.start() - _BEFORE), found.start())
            if letters or is_number or noun:
                yield Code(letters, rest, noun[1].lower() if noun else "")


def others_in(text: str, codes: Iterable[Thing]) -> list[Thing]:
    """Those of some codes for which a text says another of their kind, and not them."""
    small = text.lower()
    near = [thing for thing in codes if thing.code is not None and thing.code.is_near(small)]
    said = frozenset(codes_in(text)) if near else frozenset()
    return [thing for thing in near if thing.is_other_than(said)] if said else []


def amounts_in(text: str) -> frozenset[Amount]:
    """The amounts that a text says, each with two decimals, and whether the text has some: 1250.50 of 1.250,5."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_PLAIN)
    return frozenset(
        (_with_cents(number, decimals), decimals != "") for number, decimals in _SAID_AMOUNT.findall(plain)
    )


def words_apart(letters: frozenset[str], text: str) -> frozenset[str]:
    """Of the letters of codes those that a text says as words: "Rui" of "Rui 912 345 678", not "inv" of INV-2042."""
    if not letters:
        return letters
    starts = {word[:_NEAR] for word in letters}
    words = {word for word in _APART.findall(text.lower()) if word[:_NEAR] in starts}
    return frozenset().union(*(forms_of(word, letters) for word in words))


def _with_cents(number: str, cents: str) -> str:
    return f"{number.translate(_BETWEEN).lstrip('0') or '0'}.{cents:0<2}"


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
        words = [forms_of(group, known) for group in re.findall(r"[^\W_]+", address)]
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
            yield _amount(run, known)
            continue
        units = _UNIT.split(run)
        if _is_one(units):
            yield from _code(before, run, known, run[0].isdigit(), dialled=True)
            continue
        for place, unit in enumerate(units):
            if _AMOUNT.fullmatch(unit) and not unit.isdigit():
                yield _amount(unit, known)
                continue
            # One long number without a mark is an article's or an order's, and none of a telephone.
            marked = (
                unit[0] == "0"
                or not unit.isdigit()
                or (not place and goal[found.start(2) - 1 : found.start(2)] in {"+", "("})
            )
            is_line = not place and _is_line(before, unit, known)
            yield from _code("" if place else before, unit, known, is_line, dialled=marked)


def _is_one(units: list[str]) -> bool:
    """Whether numbers beside one another are the groups of one code: 2024 00174, 912 345 678, 1A 1AA."""
    return (
        len(units) > 3
        or (len(units) > 2 and sum(map(len, units)) >= _TAIL_OF_PHONE)
        or any(len(unit) >= _WORD or unit[:1] == "0" for unit in units[1:])
        or (len(units) > 1 and not any(unit.isdigit() or unit.isalpha() for unit in units))
    )


def _is_line(before: str, number: str, known: frozenset[str]) -> bool:
    """Whether a short word belongs to the number after it: LH 1234, not "for 500"."""
    if not number.isdigit() or before.lower() not in known or _CURRENCY.fullmatch(before.lower()) is not None:
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
    letters = {group: forms_of(group.lower(), known) for group in groups if group.isalpha()}
    words = frozenset().union(*(forms for group, forms in letters.items() if len(group) > _SMALL))
    of_groups, ends = "".join(groups).lower(), _ends(groups)
    for lexeme in known:
        plain = _MARKS.sub("", lexeme)
        if plain.isalpha():
            if plain not in words and _is_cut(plain, of_groups, ends):
                own.add(lexeme)
        elif plain in before + joined:
            if plain in {before + joined, "" if before_is_part else joined} or _is_tail(plain, joined, groups, dialled):
                whole.add(lexeme)
            elif _is_cut(plain, of_groups, ends) or (len(groups) == 1 and joined.endswith(plain)):
                own.add(lexeme)
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
    if dotted := _DOTTED.fullmatch(run.lower()):  # 10.0.1.25 isn't 10.0.12.5
        own |= whole
        whole = {lexeme for lexeme in whole if lexeme.lstrip(_LETTERS) == dotted[1]} or whole
    by_parts = all(needed) and len(set(groups)) == len(groups)
    yield Thing(frozenset(whole | own), frozenset(whole), needed if by_parts else (), letters=words)


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


def _amount(run: str, known: frozenset[str]) -> Thing:
    groups = re.split("[., ']", run)
    cents = groups.pop() if len(groups) > 1 and len(groups[-1]) < 3 else ""
    number = "".join(groups)
    # Who says how many cents means no other amount of as many euros.
    alone = number if len(number) >= _SMALL and not cents.strip("0") else ""
    whole = known & {alone, f"{number}.{cents}", run}
    own = {lexeme for lexeme in known if _is_cut(_MARKS.sub("", lexeme), number + cents, _ends([*groups, cents]))}
    own |= known & {f"{number}.{cents}0", f"{number}.{cents[:1]}"}
    return Thing(whole | own, whole, amount=_with_cents(number, cents) if cents else None)


def forms_of(word: str, known: frozenset[str]) -> frozenset[str]:
    """A word and its stem, if they are known; what has digits has none."""
    if not word.isalpha():
        return known & {word}
    stems = (word[:end] for end in range(max(3, len(word) - 3), len(word)))
    return known & {word, *stems, re.sub("y$", "i", word)}
