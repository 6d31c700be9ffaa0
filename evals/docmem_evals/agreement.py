"""Whether two statements contradict each other in what counts, however many words they share. Pure.

Words in common prove little: "has a budget of RM 12,000" and "… RM 8,000" share all but one. So numbers, months,
weekdays, times and people have to agree as far as there are any on both sides (a detail that only one has contradicts
nothing), and what the one denies the other may not state. Names, too, where words are compared in one language.
"""

from __future__ import annotations

import re
from collections.abc import Hashable

from docmem import wording
from docmem_evals import figures
from docmem_evals.values import currency


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WEEKDAYS = {
    word: n
    for row in (
        "monday tuesday wednesday thursday friday saturday sunday",
        "montag dienstag mittwoch donnerstag freitag samstag sonntag",
        "isnin selasa rabu khamis jumaat sabtu ahad",
    )
    for n, word in enumerate(row.split())
}
_PERIODS = {
    word: row.split()[0]
    for row in ("day daily", "week weekly weeks", "month monthly months", "year yearly years annually annual")
    for word in row.split()
}
_TIMES = frozenset(
    [
        "morning",
        "afternoon",
        "evening",
        "night",
        "spring",
        "summer",
        "autumn",
        "winter",
        "today",
        "tomorrow",
        "yesterday",
    ]
)
_DENIED = re.compile(r"[不没沒别勿]|无(?!论)|(?<!\w)(?:لا|ليس|ليست|لم|لن|بدون|غير)(?!\w)")
_GERMAN = frozenset(
    [
        "der",
        "die",
        "das",
        "den",
        "dem",
        "ein",
        "eine",
        "einen",
        "ist",
        "sind",
        "und",
        "nicht",
        "kein",
        "keine",
        "mit",
        "für",
        "sie",
        "er",
    ]
)
_GROUPS = frozenset(["team", "family"])
"""They hold the person as well: "the customer has 40 seats", "the customer's team has"."""
_PLURALS = {"children": "child", "kids": "child", "kid": "child", "parents": "parent"}


def contradict(one: str, other: str) -> bool:
    """Whether no careful reader takes the one for the other."""
    return (
        denies(one) != denies(other)
        or values_differ(one, other)
        or _names_differ(one, other)
        or _turned_round(one, other)
    )


def values_differ(one: str, other: str) -> bool:
    """Whether numbers, dates, times or people differ: seen across languages as well."""
    return any(_apart(a, b) for a, b in zip(_values(one), _values(other), strict=True)) or _about_others(one, other)


def denies(text: str) -> tuple[bool, int]:
    """Whether a text says no anywhere, and whether an odd number of times."""
    count = wording.negations(text) + len(_DENIED.findall(text))
    return count > 0, count % 2


def lacks(text: str, wanted: str) -> bool:
    """Whether a text lacks a number, month, weekday or name that another has."""
    return any(not b <= a for a, b in zip(_values(text)[:3], _values(wanted)[:3], strict=True)) or bool(
        _names(wanted) - frozenset(re.findall(r"\w+", text.casefold()))
    )


def _values(text: str) -> tuple[frozenset[Hashable], ...]:
    words = re.findall(r"[^\W\d_]+", text.casefold())
    days = frozenset(_WEEKDAYS[each] for word in words if (each := word.removesuffix("s")) in _WEEKDAYS)
    return (
        frozenset(figures.numbers(text)),
        figures.months(text),
        days,
        frozenset(_PERIODS[word] for word in words if word in _PERIODS),
        frozenset(each for word in words if (each := word.removesuffix("s")) in _TIMES),
        frozenset(_PLURALS.get(word, word).removesuffix("s") for word in wording.people(text)),
    )


def _apart(one: frozenset[Hashable], other: frozenset[Hashable]) -> bool:
    return bool(one and other) and not (one <= other or other <= one)


def _about_others(one: str, other: str) -> bool:
    """ "The person's son is …" is not "The person is …"."""
    mine, theirs = _head(one), _head(other)
    return (mine is None and theirs is not None and wording.is_of_subject(one)) or (
        theirs is None and mine is not None and wording.is_of_subject(other)
    )


def _turned_round(one: str, other: str) -> bool:
    """ "prefers trains to cars", "prefers cars to trains"."""
    words, others = wording.content_words(one), wording.content_words(other)
    return words != others and sorted(words) == sorted(others) and any(word.startswith("prefer") for word in words)


def _head(text: str) -> str | None:
    found = [word for word in wording.people(" ".join(text.split()[:3])) if word not in _GROUPS]
    return found[0] if found else None


def _names(text: str) -> frozenset[str]:
    return frozenset(currency(name) for name in wording.names(text) if not name[:1].isdigit())


def _names_differ(one: str, other: str) -> bool:
    if _leads(one) and _leads(other) and _leads(one) != _leads(other):
        return True
    names, others = _names(one), _names(other)
    if _is_german(one) or _is_german(other):  # each noun is written like a name: one in common will do
        return bool(names and others) and not names & others
    return _apart(names, others)


def _leads(text: str) -> str:
    """The name that a statement begins with, or nothing: "Priya administers …", not "Clearing the cache …"."""
    found = re.match(r"([A-Z][a-z]+) [a-z]+s\b", text)
    is_name = found and wording.content_words(found[1]) and not wording.is_of_subject(text)
    return found[1] if found and is_name and found[1].casefold() not in _GERMAN else ""


def _is_german(text: str) -> bool:
    return len(_GERMAN & set(re.findall(r"\w+", text.casefold()))) >= 2
