"""What a text is found by without Postgres: its words, and beside them codes and pieces of scripts without spaces.

The index has the like of `docmem.lexemes` (schema.sql), where each rule has its reason. Pure.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterator

import Stemmer

from docmem.codes import MONTHS, month_of

_UNSEEN = re.compile("[\xad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
_TYPED = str.maketrans("‘’‛′‐–—−_", "''''---- ")
# Vowels and accents that are characters of their own belong to their word.
_WORD = re.compile("[\\w\u0300-\u036f\u0591-\u05bd\u05c1\u05c2\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0dff]+")
_ACCENTS = re.compile("([a-zα-ω])[\u0300-\u036f]+")
_FOLDED = str.maketrans({"æ": "ae", "œ": "oe", "þ": "th", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i"})
_SPELLED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})

_RUN = re.compile(
    "[\u3041-\u309f]+|[\u30a1-\u30fa\u30fc-\u30ff]+|[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U000323af]+"
    "|[\uac00-\ud7af]+|[\u0e01-\u0e4e]+|[\u0e81-\u0ece]+|[\u1000-\u103f]+|[\u1780-\u17d3]+"
)
# Korean is in pieces, and has spaces as well.
_UNSPACED = re.compile("[\u0e01-\u0ece\u1000-\u103f\u1780-\u17d3\u3005-\u9fff\U00020000-\U000323af]+")
_BY_THREE = re.compile("[\u30a1-\u30fa\u0e01-\u0ece\u1000-\u103f\u1780-\u17d3]")

_A = r"[^\W\d_]"
_HAS_CODE = re.compile(rf"\d(?:(?<={_A}\d)|(?<={_A}[-./,'#]\d)|[-./,' ()]\d|{_A}|\d{{7}})")
_HAS_TIME = re.compile(r"\d(?::\d| [apu]\.?[mh])")
_CODE = re.compile(
    rf"(?<![^\W_])(?:({_A}{{1,5}}) )?((?:{_A}++[-./,'#]){{0,7}}+{_A}*+\d(?:[-./,'#]?[^\W_])*+"
    r"(?:[ ()]{1,2}\d(?:[-./,']?[^\W_])*+){0,7})"
)
_NUMBER = re.compile(rf"{_A}*(\d{{1,3}}(?:[., ']\d{{3}})+|\d+)(?:[.,](\d\d?))?")
_VERSION = re.compile(rf"^{_A}*\.?(\d+(?:\.\d+){{2,}})$")
_PLATE = re.compile(rf"(?<![^\W_])({_A}*+\d++) ({_A}{{1,3}})(?![^\W_])")
_WORD_AND_NUMBER = re.compile(rf"({_A}{{5}})(?=\d)")
_UNIT = re.compile(rf"\d\d(?!st|nd|rd|th){_A}+")
# What begins with a digit is looked for fast: so it says last that no letter stands before.
_TIME = re.compile(r"(\d(?<!\w\d)\d?)(?:([:h.])([0-5]\d))?(?!\d)(?: ?([ap](?=\.?m\b)|uhr\b))?")
_DAY_OF_YEAR = re.compile(
    r"\b\d{4}[-/.](0[1-9]|1[0-2])[-/.]([0-3]\d)(?!\d)|\b([0-3]\d)\.(0[1-9]|1[0-2])\.\d{4}\b", re.ASCII
)
_ACCOUNT = re.compile("\\b[a-z]{2}[0-9]{2} [a-z]{4} [0-9]")
_LONG = re.compile(rf"(?:\b{_A}{{2}}\d\d(?: {_A}{{4}})? |[+(]{{1,2}}|\b0)\d(?:[-./() ]{{0,2}}\d){{7,}}")
_BETWEEN = str.maketrans("", "", "-./,'# ")
_BLANK, _PARTS, _DIGITS, _LETTERS, _SMALL = map(re.compile, (r"[ ()]+", r"\d{3,}", r"\d+", f"{_A}+", r"\d\d?"))

_DAYS = [
    re.compile(
        rf"\b(?P<d>\d\d?)(?:st|nd|rd|th|\.)?(?: of| de| di)? (?P<m>{_A}{{3,10}})(?:\.?,?(?: of| de)? (?P<y>\d{{4}}))?\b"
    ),
    re.compile(rf"\b(?P<m>{_A}{{3,10}})\.? (?P<d>\d\d?)(?:st|nd|rd|th)?(?:,? (?P<y>\d{{4}}))?\b"),
    re.compile(r"(?<!\d)(?P<y>\d{4})[-/.年](?P<m>\d\d?)[-/.月](?P<d>\d\d?)(?!\d)"),
    re.compile(r"\b(?P<d>\d\d?)[-/.](?P<m>\d\d?)[-/.](?P<y>\d{4})\b"),
    re.compile(r"\b(?P<m>\d\d?)/(?P<d>\d\d?)/(?P<y>\d{4})\b"),
    re.compile(r"\b(?P<d>\d\d?)\.(?P<m>\d\d?)\.(?P<y>(?!\d))"),
]
_SCRIPTS = {
    "greek": re.compile("[\u0370-\u03ff]+"),
    "russian": re.compile("[\u0400-\u052f]+"),
    "armenian": re.compile("[\u0531-\u0587]+"),
    "arabic": re.compile("[\u0620-\u06ff]+"),
    "hindi": re.compile("[\u0900-\u097f]+"),
    "tamil": re.compile("[\u0b80-\u0bff]+"),
}
_OWN = {"serbian": "russian", "nepali": "hindi"}
"""Languages in the script of another."""
_STOP_WORDS = """
a about after all am an and any are as at be been but by can could did do does for from had has have
he her him his how i if in into is it its just me my no not of on or our out she should so some than
that the their them then there these they this to up us was we were what when where which who whom
why will with would you your s t
"""
_STOP = frozenset(_STOP_WORDS.split())


def lexemes(text: str, *, language: str, asked: bool = False) -> list[str]:
    """The words of a text, stemmed, without accents and stop words; then, each once, what it is found by beside them.

    `asked`: the text is a question. It has no more pieces of scripts without spaces than it needs, and its codes and
    days in all the ways in which texts may write them.
    """
    plain = in_one_form(text)
    days = list(_days(plain)) if asked else []
    beside: list[str] = []
    if not plain.isascii():
        beside += (piece for run in _RUN.findall(plain) for piece in _pieces(run, asked))
        plain = _UNSPACED.sub(" ", plain)
    foreign = {} if plain.isascii() else _foreign(plain, language)
    has_code = asked or _HAS_CODE.search(plain)
    if has_code:
        small = asked and not _ACCOUNT.search(plain)
        beside += (
            code for code in _codes(plain, asked) if 1 < len(code) <= 64 and (small or not _SMALL.fullmatch(code))
        )
    if has_code or _HAS_TIME.search(plain):
        beside += _times(plain, asked)
    if has_code:
        plain = _WORD_AND_NUMBER.sub(r"\1 ", plain)
    if asked:
        # The groups of a long number are each like those of many others.
        plain = _LONG.sub(" ", plain)
    for year, month, day in days:
        plain += f" {day} {MONTHS[month - 1]} {MONTHS[month - 1][:3]} {year}"
        beside += (f"{day}{end}" for end in ("st", "nd", "rd", "th"))
        if not year:
            beside.append(f"{month:02}-{day:02}")
            continue
        for m, d in ((f"{month}", f"{day}"), (f"{month:02}", f"{day:02}")):
            beside += (f"{year}{m}{d}", f"{d}{m}{year}", f"{m}{d}{year}")
    if asked:
        for own in foreign:
            plain = _SCRIPTS[own].sub(" ", plain)
    found = [*_stemmed(plain, language), *(stem for stems in foreign.values() for stem in stems)]
    if beside:
        known = set(found)
        found += (each for each in dict.fromkeys(beside) if each not in known)
    return found


def in_one_form(text: str) -> str:
    """NFKC, case folded, marks as they are typed, without what is not seen: full-width letters are letters."""
    if text.isascii():
        return text.casefold().replace("_", " ")
    return unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).casefold().translate(_TYPED)


def _stemmed(plain: str, language: str) -> list[str]:
    words = [word for word in _WORD.findall(plain) if word not in _STOP]
    stem = _stemmers.of(language)
    stems = stem(words)
    if plain.isascii() or all(map(str.isascii, words)):
        return stems
    # As it is written a word stems best, without accents it is typed, and some type "ue" for "ü".
    lines = "\n".join(word for word in words if not word.isascii())
    written = "\n".join(stem for word, stem in zip(words, stems, strict=True) if not word.isascii())
    forms = (
        _folded(written),
        *("\n".join(stem(_folded(said).split("\n"))) for said in (lines, lines.translate(_SPELLED))),
    )
    found = [stem for word, stem in zip(words, stems, strict=True) if word.isascii()]
    for of_one in zip(*(form.split("\n") for form in forms), strict=True):
        found += dict.fromkeys(of_one)
    return found


def _foreign(plain: str, language: str) -> dict[str, list[str]]:
    """The stems of words in the scripts of other languages, by language."""
    return {
        own: _stemmed(" ".join(letters.findall(plain)), own)
        for own, letters in _SCRIPTS.items()
        if _OWN.get(language, language) != own and letters.search(plain)
    }


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", _ACCENTS.sub(r"\1", unicodedata.normalize("NFD", text))).translate(_FOLDED)


def _pieces(run: str, asked: bool) -> Iterator[str]:
    """Two characters each, three of scripts that have few; of texts also shorter by one, to be asked for alone."""
    size = 3 if _BY_THREE.match(run) else 2
    yield from (run[at : at + size] for at in range(len(run) - size + 1))
    if (len(run) < size or not asked) and (size == 3 or not "ぁ" <= run[0] <= "ゟ"):
        yield from (run[at : at + size - 1] for at in range(len(run) - size + 2))


def _codes(plain: str, asked: bool) -> Iterator[str]:
    """Numbers and codes without what separates their parts, and parts of them; asked, also with the word before."""
    for before, run in _CODE.findall(plain):
        if number := _NUMBER.fullmatch(run):
            whole = number[1].translate(_BETWEEN)
            yield whole
            if number[2]:
                yield f"{whole}.{number[2]}"
                continue
        joined = ""
        for unit in _BLANK.split(run):
            one = unit.translate(_BETWEEN)
            joined += one
            if len(joined) > (8 if asked else 5) or not (asked or joined.isdigit()):
                yield joined
            yield from () if one.isdigit() else (one,)
            yield from _VERSION.findall(unit)
            parts = _DIGITS if asked and _UNIT.fullmatch(run) else _PARTS
            yield from (part for part in parts.findall(unit) if part != unit)
            if asked:
                yield from (before + joined, *_LETTERS.findall(unit))
        if asked:
            yield joined
        if len(joined) > 8 and joined.isdigit():  # a telephone's, with the country and the area or without
            yield from (joined[-7:], joined.lstrip("0")[-9:])
    if asked:
        yield from (one + two for one, two in _PLATE.findall(plain))
    for month, day, day_before, month_after in _DAY_OF_YEAR.findall(plain):
        yield f"{month}-{day}" if month else f"{month_after}-{day_before}"


def _times(plain: str, asked: bool) -> Iterator[str]:
    """As 14:30; asked, a time that may be one of the afternoon is both."""
    for hour, mark, minute, half in _TIME.findall(plain):
        if int(hour) < 24 and (mark in {":", "h"} or half):
            hours = {int(hour)}
            if half == "p" and int(hour) < 12:
                hours = {int(hour) + 12} | (hours if asked else set())
            elif half == "a" and int(hour) == 12:
                hours = {0}
            elif asked and not half and int(hour) < 12:
                hours.add(int(hour) + 12)
            yield from (f"{each:02}:{minute or '00'}" for each in sorted(hours))


def _days(plain: str) -> Iterator[tuple[str, int, int]]:
    for found in (found for pattern in _DAYS for found in pattern.finditer(plain)):
        month, year = month_of(found["m"]), found["y"] or ""
        if month and 1 <= int(found["d"]) <= 31 and (year or found["m"] not in {"set", "out"}):
            yield year, month, int(found["d"])


class _Stemmers(threading.local):
    """A thread's own: a stemmer keeps the word in itself while it works on it."""

    def __init__(self) -> None:
        self._known: dict[str, Callable[[list[str]], list[str]]] = {}

    def of(self, language: str) -> Callable[[list[str]], list[str]]:
        """What stems words of a language; what leaves them as they are where there is none."""
        if language not in self._known:
            # Without its cache: looking a word up takes longer than to stem it.
            has = language in Stemmer.algorithms()
            self._known[language] = Stemmer.Stemmer(language, 0).stemWords if has else list
        return self._known[language]


_stemmers = _Stemmers()
