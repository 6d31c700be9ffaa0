"""The words and numbers of a text, as they are compared: "two of us" is 2, RM 12k is 12,000. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

_TOKEN = re.compile(r"\d+(?:[.,'’]\d+)*|[^\W\d_]+")
_THOUSANDS = re.compile(r"\d{1,3}(?:[.,'’]\d{3})+")
_DECIMAL = re.compile(r"(\d+(?:[.,'’]\d{3})*?)(?:[.,](\d{1,2}|\d{4,}))?")
_COUNTABLE = 15
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_LONG_NUMBER = 7
"""Digits from which a number is compared by its last ones, however it is grouped: +60 12-345 6789, 0123456789."""
_SCALES = {"k": 1_000, "thousand": 1_000, "tausend": 1_000, "mil": 1_000, "ribu": 1_000, "hundred": 100,
           "m": 1_000_000, "mio": 1_000_000, "million": 1_000_000, "juta": 1_000_000}  # fmt: skip
_CURRENCIES = str.maketrans({"€": " eur ", "$": " usd ", "£": " gbp ", "¥": " jpy "})


def folded(text: str) -> str:
    """The text without case and accents, currencies spelled out."""
    plain = unicodedata.normalize("NFKD", text.translate(_CURRENCIES)).casefold()
    return unicodedata.normalize("NFKC", "".join(char for char in plain if not unicodedata.combining(char)))


def words_of(text: str) -> frozenset[str]:
    """The words of a list of words."""
    return frozenset(folded(text).split())


_COUNTS: dict[str, int] = {
    word: number
    for number, words in {
        0: "zero nil",
        1: "one single alone solo myself eins einen satu uno una um uma un une één 一",
        2: "two both couple pair twice zwei dua dos dois duas deux due twee 二 两",
        3: "three triple drei tiga tres três trois tre drie 三",
        4: "four vier empat cuatro quatro quatre quattro 四",
        5: "five fünf lima cinco cinq cinque vijf 五",
        6: "six sechs enam seis sei zes 六",
        7: "seven sieben tujuh siete sete sept sette zeven 七",
        8: "eight acht lapan delapan ocho oito huit otto 八",
        9: "nine neun sembilan nueve nove neuf negen 九",
        10: "ten zehn sepuluh diez dez dix dieci tien 十",
        11: "eleven elf", 12: "twelve dozen zwölf", 13: "thirteen", 14: "fourteen", 15: "fifteen", 16: "sixteen",
        17: "seventeen", 18: "eighteen", 19: "nineteen", 20: "twenty zwanzig", 30: "thirty", 40: "forty", 50: "fifty",
        60: "sixty", 70: "seventy", 80: "eighty", 90: "ninety",
    }.items()
    for word in folded(words).split()
}  # fmt: skip
_EMPTY = words_of(
    """a an the this that these those of to in on at for with and or as by from it its their there is are be being
    been am was were has have had having do does did doing will would shall can may also very really just quite
    so too about user users traveller travellers traveler travelers customer customers client clients guest
    person they he she them his her him who i me my mine we our us you your yes no true false none not like
    likes liked love loves prefer prefers preferred want wants wanted need needs needed plan plans planned
    planning say says said wish wishes always never usually currently generally please s t m re ll ve d der die
    das ein eine und mit für von zu im am ist sind de la el los las un una y en con para que es o os as e em com
    por le les des du et à est di il yang dan ini itu untuk dengan ialah adalah saya ich i'm"""
)


@dataclass(frozen=True, slots=True)
class Parts:
    """The words that carry a text's meaning, and its numbers."""

    words: frozenset[str]
    numbers: frozenset[str]

    def __len__(self) -> int:
        return len(self.words) + len(self.numbers)

    @property
    def exact(self) -> bool:
        """Whether a number is among them that nobody comes to by counting: ten and more."""
        return any(len(number) > 1 for number in self.numbers)

    def found_in(self, texts: Sequence[str]) -> Parts:
        """Those that stand in one of the texts."""
        looked_at = [indexed(text) for text in texts]
        return Parts(
            frozenset(word for word in self.words if any(text.has_word(word) for text in looked_at)),
            frozenset(number for number in self.numbers if any(text.has_number(number) for text in looked_at)),
        )

    def missing_in(self, texts: Sequence[str]) -> Parts:
        """Those that stand in none of the texts."""
        found = self.found_in(texts)
        return Parts(self.words - found.words, self.numbers - found.numbers)

    def without(self, texts: Sequence[str]) -> Parts:
        """`missing_in`, but for all of them where nothing would be left."""
        return self.missing_in(texts) if texts else self


@dataclass(frozen=True, slots=True)
class Indexed:
    """A text, to look words and numbers up in."""

    words: frozenset[str]
    stems: dict[str, list[str]]
    numbers: frozenset[str]
    digits: str

    def has_word(self, word: str) -> bool:
        return word in self.words or any(_are_forms(word, other) for other in self.stems.get(word[:_STEM], ()))

    def has_number(self, number: str) -> bool:
        return number in self.numbers or (len(number) >= _LONG_NUMBER and number[-_LONG_NUMBER:] in self.digits)


_STEM = 4


def _are_forms(one: str, other: str) -> bool:
    """Whether two words have most of the shorter one in common, from its start: vegetarian, Vegetarier."""
    shorter = min(len(one), len(other))
    size = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), shorter)
    return size >= _STEM and size >= 0.7 * shorter


def parts(text: str) -> Parts:
    """The words of a text that carry its meaning, and its numbers."""
    words, numbers = _read(text)
    return Parts(frozenset(word for word in words if word not in _EMPTY), frozenset(numbers))


@lru_cache(maxsize=2_048)
def indexed(text: str) -> Indexed:
    """A text that others are compared to."""
    words, numbers = _read(text)
    stems: dict[str, list[str]] = {}
    for word in set(words):
        stems.setdefault(word[:_STEM], []).append(word)
    return Indexed(frozenset(words), stems, frozenset(numbers), re.sub(r"\D", "", text))


def _read(text: str) -> tuple[list[str], list[str]]:
    """The words and the numbers of a text, as they are compared; "two thousand five hundred" is one number."""
    words: list[str] = []
    numbers: list[str] = []
    total: float | None = None
    part: float | None = None
    for token in _TOKEN.findall(folded(text)):
        scale, value = _SCALES.get(token), _value(token)
        if part is not None and scale is not None:
            part *= scale
        elif value is None:
            total = part = None
            words += _split(token) if not token[0].isdigit() else ()
            numbers += [token] if token[0].isdigit() else ()
            continue
        elif part is not None and _goes_on(part, value, token):
            total, part = (total or 0) + part, value
        else:
            total, part = None, value
            numbers.append("")
        numbers[-1] = _plain((total or 0) + part)
    return words, numbers


def _goes_on(part: float, value: float, token: str) -> bool:
    """Whether a word for a number adds to the one before it: thousand five, twenty five."""
    return not token[0].isdigit() and value < part and (part >= 100 or (part >= 20 and value < 10))


def _value(token: str) -> float | None:
    """What a number or a word for one comes to; None for another word, and for a number that isn't counted with."""
    if not token[0].isdigit():
        return _COUNTS.get(token)
    if len(token) > _COUNTABLE:
        return None
    if _THOUSANDS.fullmatch(token):
        return float(re.sub(r"\D", "", token))
    decimal = _DECIMAL.fullmatch(token)
    return float(re.sub(r"\D", "", decimal[1]) + f".{decimal[2] or 0}") if decimal else None


def _plain(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def _split(word: str) -> Iterator[str]:
    """A word; of a script without spaces, its pairs of characters."""
    if not _UNSPACED.fullmatch(word) or len(word) < 3:
        yield word
        return
    yield from (word[at : at + 2] for at in range(len(word) - 1))
