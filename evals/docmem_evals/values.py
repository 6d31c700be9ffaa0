"""Whether two values of a profile are one but for how they are written. Pure.

"RM90,000" is "90000", "Lisbon " is "lisbon", "2.500 Euro" is "EUR 2500", "عمّان" is "عمان". "2 adults" is not
"2 children", "10 May" is not "10", and 1.5 is not 15: digits alone prove nothing, so numbers are read, months have to
be the same, and the words around them have to agree as far as there are any on both sides.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from docmem.names import normalized
from docmem_evals.figures import months, numbers, plain

_WORD = re.compile(r"[^\W\d_]+|[$€£¥₹]")
_CURRENCIES = {
    word: name
    for name, words in {
        "eur": "euro euros €",
        "usd": "dollar dollars $",
        "gbp": "pound pounds £",
        "myr": "rm ringgit",
        "cny": "yuan rmb 元",
    }.items()
    for word in words.split()
}


def same_value(one: str, other: str) -> bool:
    """Whether they say the same."""
    if bare(normalized(one)) == bare(normalized(other)):
        return True
    left = numbers(one)
    if not left or left != numbers(other) or months(one) != months(other):
        return False
    words, others = _words(one), _words(other)
    return words <= others or others <= words


def any_value(accepted: Iterable[str], found: str) -> bool:
    """Whether a value is one of those that are all right."""
    return any(same_value(each, found) for each in accepted)


def bare(text: str) -> str:
    """A text without accents and vowel signs: "Kraków" is "Krakow"."""
    apart = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", "".join(char for char in apart if unicodedata.category(char) != "Mn"))


def _words(text: str) -> frozenset[str]:
    without = re.sub(r"(?<=\d)[km](?!\w)", "", plain(text).casefold())
    return frozenset(_CURRENCIES.get(word, word) for word in _WORD.findall(bare(without)))


def currency(word: str) -> str:
    """A word, or the currency that it names."""
    return _CURRENCIES.get(word, word)
