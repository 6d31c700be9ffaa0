"""Numbers and dates as they are written in six languages, put into one form. Pure.

"RM90,000", "90k" and "90000" hold one number, as do "twelve", "zwölf", "十二" and "12"; "2026-05-18" is 18 May 2026.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal

_NUMBER = re.compile(r"(?:(?<![\w)])[-−])?(?:\d{1,3}(?:[ .,'’\u00a0\u202f]\d{3})+(?!\d)|\d+)(?:[.,]\d+)*")
_GROUPED = re.compile(r"\d{1,3}(?:[ .,'’\u00a0\u202f]\d{3})+")
_TIMES = {"k": Decimal(1_000), "m": Decimal(1_000_000)}


def _numbered(*rows: str, start: int = 0) -> dict[str, int]:
    """Words by number: a row is one language, `-` a word that means something else as well."""
    return {word: n for row in rows for n, word in enumerate(row.split(), start=start) if word != "-"}


_ONES = _numbered(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen",
    "null - zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "- - dois três quatro cinco seis sete oito nove dez onze doze",
    "- - duas",
    "- satu dua tiga empat lima enam tujuh lapan sembilan sepuluh",
    "- واحد اثنان ثلاثة أربعة خمسة ستة سبعة ثمانية تسعة عشرة",
)
_TENS = {
    f"{word}ty": n * 10
    for n, word in enumerate(["twen", "thir", "for", "fif", "six", "seven", "eigh", "nine"], start=2)
}
_TENS |= {"zwanzig": 20, "dreißig": 30, "vinte": 20, "trinta": 30}
_MORE = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "hundert": 100, "tausend": 1_000, "mil": 1_000}
_MORE |= {"ratus": 100, "ribu": 1_000, "dozen": 12}
_SPELLED = "|".join(sorted([*_ONES, *_TENS, *_MORE], key=len, reverse=True))
_WORDS = re.compile(rf"(?<![\w])(?:{_SPELLED})(?:(?: and |[ -])(?:{_SPELLED}))*(?!\w)")

_HAN_DIGITS = {"〇": 0, "零": 0, "两": 2} | {sign: n for n, sign in enumerate("一二三四五六七八九", start=1)}
_HAN_MORE = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "亿": 100_000_000}
_HAN = re.compile(f"[{''.join([*_HAN_DIGITS, *_HAN_MORE])}]+")

MONTHS = _numbered(
    "january february march april - june july august september october november december",
    "jan feb - apr - jun jul aug sep oct nov dec",
    "januar februar märz april mai juni juli august september oktober november dezember",
    "jänner - - - - - - - sept - - -",
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "januari februari - april mei jun julai ogos september oktober november disember",
    start=1,
)
"""Names of months; without "may" and "mac", which are other words as well."""
_MONTH_NAMES = [
    "-", "january", "february", "march", "april", "May", "june", "july", "august", "september", "october", "november",
    "december",
]  # fmt: skip
_MAY = re.compile(r"(?<!\w)(?:May(?!\w)|may(?= \d))|(?<=\d )may(?!\w)")
_ISO = re.compile(r"(?<![\d-])(\d{4})-(\d{1,2})-(\d{1,2})(?![\d-])")
_DOTTED = re.compile(r"(?<![\d.])(\d{1,2})\.(\d{1,2})\.(\d{4})(?![\d.])")


def plain(text: str) -> str:
    """A text in small letters but for "May", numbers in digits and dates as day, month and year."""
    folded = unicodedata.normalize("NFKC", text)
    digits = "".join(str(unicodedata.digit(char)) if char.isdigit() else char for char in folded)
    may = _MAY.sub("\0", digits).casefold().replace("\0", "May")
    dated = _DOTTED.sub(lambda found: _date(found[1], found[2], found[3], found[0]), may)
    dated = _ISO.sub(lambda found: _date(found[3], found[2], found[1], found[0]), dated)
    return _HAN.sub(lambda found: str(_han(found[0])), _WORDS.sub(lambda found: _spelled(found[0]), dated))


def written_out(text: str) -> str:
    """`plain`, and each number in one form: "40,000" is "40000", "90k" is "90000"."""
    return _NUMBER.sub(lambda found: f"{_read(found, found.string).normalize():f}", plain(text))


def numbers(text: str) -> list[Decimal]:
    """The numbers of a text, in order, with their signs."""
    written = plain(text)
    return [_read(found, written) for found in _NUMBER.finditer(written)]


def months(text: str) -> frozenset[int]:
    """The months that a text names, from 1."""
    found = re.findall(r"[^\W\d_]+", plain(text))
    return frozenset(5 if word == "May" else MONTHS[word] for word in found if word == "May" or word in MONTHS)


def _date(day: str, month: str, year: str, written: str) -> str:
    return f"{int(day)} {_MONTH_NAMES[int(month)]} {year}" if 1 <= int(month) <= 12 and 1 <= int(day) <= 31 else written


def _spelled(words: str) -> str:
    """ "two hundred and five" as 205; "three four" stays two numbers."""
    found: list[int] = []
    total = part = 0
    for word in re.split(r" and |[ -]", words):
        more = _MORE.get(word, 0)
        if more >= 1_000:
            total, part = total + max(part, 1) * more, 0
        elif more:
            part = max(part, 1) * more
        else:
            value = _ONES.get(word, _TENS.get(word, 0))
            fits = part % 100 == 0 if value >= 10 else part % 10 == 0 and part % 100 != 10
            if not fits:
                found.append(total + part)
                total = part = 0
            part += value
    return " and ".join(map(str, [*found, total + part]))


def _han(signs: str) -> int:
    if not any(sign in _HAN_MORE for sign in signs):
        return int("".join(str(_HAN_DIGITS[sign]) for sign in signs))
    whole = part = digit = 0
    for sign in signs:
        if sign in _HAN_DIGITS:
            digit = _HAN_DIGITS[sign]
        elif (more := _HAN_MORE[sign]) >= 10_000:
            whole, part, digit = whole + max(part + digit, 1) * more, 0, 0
        else:
            part, digit = part + max(digit, 1) * more, 0
    return whole + part + digit


def _read(found: re.Match[str], text: str) -> Decimal:
    written = found[0].lstrip("-−")
    sign = 1 if written == found[0] else -1
    follows = text[found.end() : found.end() + 2]
    times = _TIMES.get(follows[:1], Decimal(1)) if not follows[1:].isalpha() else Decimal(1)
    if _GROUPED.fullmatch(written):
        return sign * Decimal(re.sub(r"\D", "", written)) * times
    # The last mark of several is the decimal one: 1,234.50 and 1.234,50.
    whole, mark, rest = re.fullmatch(r"(.*?)(?:([.,])(\d{1,2}))?", written, re.DOTALL).groups()  # type: ignore[union-attr]
    digits = re.sub(r"\D", "", whole) or "0"
    return sign * Decimal(f"{digits}.{rest}" if mark else re.sub(r"\D", "", written)) * times
