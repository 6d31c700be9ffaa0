"""What a text is found by without Postgres: its words, and beside them codes and pieces of scripts without spaces.

The index has the like of `docmem.lexemes` (schema.sql), where each rule has its reason. Pure.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterator

import Stemmer

from docmem.marks import (
    HAS_NAMES,
    MONTHS,
    Mark,
    marks,
    names_apart,
    names_joined,
    of_day,
    other_decimals,
    plates,
    without_recorded,
)  # fmt: skip

_UNSEEN = re.compile("[\xad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
_TYPED = str.maketrans("‘’‛′‐–—−_", "''''---- ")
# Vowels and accents that are characters of their own belong to their word; a picture is a word.
_WORD = re.compile(
    "[\u2600-\u27bf\u2b50-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff]|["
    "\\w\u0300-\u036f\u0591-\u05bd\u05c1\u05c2\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0dff]+"
)
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
_HAS_MARK = re.compile(r"\d|[-:][a-f]{2}[-:]")
_HAS_NAME = re.compile(r"['-][A-Z]|\b[Oo]'[a-z]|[aouAOU]e[a-z]|aa")
_JOINED = re.compile(r"\b((?:[ODLdl]'[A-Z]|[Oo]'[a-z]|[A-Z][A-Za-z]*-[A-Z])[A-Za-z]+(?:-[A-Z][A-Za-z]+)*)")
_TWO_VOWELS = re.compile(r"\b((?:[A-Z][a-z]*[aou]e|[AOU]e|[A-Z][a-z]*aa)[a-z]+)")
_SPELLED_OUT = re.compile(r"(?<![aeiouq])([aou])e(?=[b-df-hj-np-tv-z])")
_CODE = re.compile(
    rf"(?<![^\W_])(?:({_A}{{1,5}}) )?((?:{_A}++[-./,'#]){{0,7}}+{_A}*+\d(?:[-./,'#]?[^\W_])*+"
    r"(?:[ ()]{1,2}\d(?:[-./,']?[^\W_])*+){0,7})"
)
_NUMBER = re.compile(rf"{_A}*(\d{{1,3}}(?:[., ']\d{{3}})+|\d+)(?:[.,](\d\d?))?")
_VERSION = re.compile(rf"^{_A}*\.?(\d+(?:\.\d+){{2,}})$")
_PLATE = re.compile(
    rf"(?:\b({_A}{{1,3}})[ -])?(?:\b({_A}{{1,3}})[ -]?)?(\d{{1,4}}|{_A}*\d+)"
    rf"(?:[ -]({_A}{{1,3}})(?:[ -](\d{{1,4}}))?)?(?![^\W_])"
)
_WORD_AND_NUMBER = re.compile(rf"({_A}{{5}})(?=\d)")
_UNIT = re.compile(rf"\d\d(?!st|nd|rd|th){_A}+")
_ACCOUNT = re.compile("\\b[a-z]{2}[0-9]{2} [a-z]{4} [0-9]")
_LONG = re.compile(rf"(?:\b{_A}{{2}}\d\d(?: {_A}{{4}})? |[+(]{{1,2}}|\b0)\d(?:[-./() ]{{0,2}}\d){{7,}}")
_BETWEEN = str.maketrans("", "", "-./,'# ")
_BLANK, _PARTS, _DIGITS, _LETTERS, _SMALL = map(re.compile, (r"[ ()]+", r"\d{3,}", r"\d+", f"{_A}+", r"\d\d?"))

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
    typed = _typed(text)
    plain = typed.casefold()
    has_mark = _HAS_MARK.search(plain)
    said = list(_marks(plain, asked)) if has_mark else []
    for mark in said:
        if asked and not mark.parts_tell:
            plain = plain[: mark.start] + " " * (mark.end - mark.start) + plain[mark.end :]
    beside: list[str] = []
    if not plain.isascii():
        beside += (piece for run in _RUN.findall(plain) for piece in _pieces(run, asked))
        plain = _UNSPACED.sub(" ", plain)
    foreign = {} if plain.isascii() else _foreign(plain, language)
    if has_mark and not asked:
        beside += (each for mark in plates(typed) for each in mark.lexemes)
    has_code = asked or _HAS_CODE.search(plain)
    if has_code:
        small = asked and not _ACCOUNT.search(plain)
        beside += (
            code for code in _codes(plain, asked) if 1 < len(code) <= 64 and (small or not _SMALL.fullmatch(code))
        )
    if has_code:
        plain = _WORD_AND_NUMBER.sub(r"\1 ", plain)
    if asked:
        beside += other_decimals(plain)
        # The groups of a long number are each like those of many others.
        plain = _LONG.sub(" ", plain)
    if _HAS_NAME.search(typed):
        plain = " ".join((plain, *_names(typed)))
    if asked and HAS_NAMES.search(typed):
        plain = " ".join((plain, *names_joined(typed), *(name for names in names_apart(typed) for name in names)))
    for mark in said:
        beside += mark.lexemes if asked or mark.day is None else of_day(*mark.day)
        if asked and mark.day is not None:
            year, month, day = mark.day
            plain += f" {MONTHS[month - 1]} {year}" + (f" {day} {MONTHS[month - 1][:3]}" if day else "")
            beside += (f"{day}{end}" for end in ("st", "nd", "rd", "th") if day)
            beside += (f"{year}{month:02}{day:02}",) if year and day else ()
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
    return _typed(text).casefold()


def _typed(text: str) -> str:
    if text.isascii():
        return text.replace("_", " ")
    return unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).translate(_TYPED)


def _marks(plain: str, asked: bool) -> Iterator[Mark]:
    for mark in marks(plain if asked else without_recorded(plain)):
        if all(1 < len(lexeme) <= 64 for lexeme in mark.lexemes):
            yield mark


def _names(typed: str) -> Iterator[str]:
    """Names as others write them: OBrien of O'Brien, SmithJones of Smith-Jones, Muller of Mueller."""
    yield from (name.replace("'", "").replace("-", "").lower() for name in _JOINED.findall(typed))
    for name in _TWO_VOWELS.findall(typed):
        yield _SPELLED_OUT.sub(r"\1", name.lower().replace("aa", "a"))


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
                if not run[0].isdigit():
                    yield run.translate(_BETWEEN)
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
        for first, before, number, after, last in _PLATE.findall(plain):
            yield before + number if before else ""
            yield number + after if after else ""
            if after or (first and before):
                yield from (f"{first}{before}{number}{after}{last}", f"{before}{number}{after}")


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
