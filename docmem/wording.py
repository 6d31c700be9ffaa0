"""Compare what two statements say, by their words alone.

Wrong merges are worse than duplicates, so two statements count as the same only where nothing that can carry a
difference differs: numbers, dates, names, negation, who it is about, conditions, and the order of what is compared.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from docmem.names import normalized

Likeness: TypeAlias = Literal["same", "less", "more", "other"]

NEAR = 0.8
"""Share of words two statements must have in common where one only adds to the other."""

_WORD = re.compile(r"\w+(?:[.,:/]\d+)*", re.UNICODE)
_SIGN = re.compile(r"[%#&@]|(?<!\w)[-−‐–](?=\d)|(?<=\w)-(?!\w)")
"""A sign that a word doesn't hold: -5, A-, 50 %. Currencies, comparisons and pictures come by their category."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEUTRAL = _words(
    """a an the this that these those of to in on at for with and as it its their there is are be being am has have
    do does user users traveller traveler customer client guest person they he she them his her him i my me we our
    us very really also just quite currently generally usually please s follow follows following keep keeps kept eat
    eats diet diets food foods dietary"""
)
_NEGATION = _words(
    """no not never none nothing without isn aren doesn don didn wasn weren won can't cannot couldn shouldn wouldn hasn
    haven t dislike dislikes disliked avoid avoids avoiding hate hates refuse refuses stop stops stopped quit former
    formerly ex unlike un non nor neither longer anymore hardly scarcely barely seldom pretend pretends pretended deny
    denies denied fail fails failed lack lacks lacking enemy tidak tak tiada bukan jangan belum kein keine keinen nicht
    nie kaum geen niet nooit pas jamais não nao nunca nem inte ikke ej ei aldrig не нет ни никогда nem nu bez"""
)
_CONDITIONS = _words(
    """or unless except if when while until but instead rather than over before after from into maybe might may could
    perhaps possibly sometimes rarely often always probably should must once twice both either first last next more
    less most least too used was were had been did will would still already yet under above below per every each all
    some any few many only"""
)
_PEOPLE = _words(
    """wife husband partner spouse son daughter child children kid kids mother father mom mum dad parent parents
    brother sister sibling friend friends boyfriend girlfriend colleague colleagues boss team family cousin aunt
    uncle niece nephew grandmother grandfather grandma grandpa grandson granddaughter fiance fiancee roommate
    neighbour neighbor dog cat baby"""
)
_CALENDAR = _words(
    """january february march april june july august september october november december jan feb mar apr jun jul aug
    sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday spring summer autumn fall winter
    today tomorrow yesterday morning afternoon evening night week month year weekly monthly yearly daily one two
    three four five six seven eight nine ten eleven twelve dozen hundred thousand million half"""
)
_LIKING = _words("like likes love loves enjoy enjoys prefer fond appreciate appreciates really own owns")
"""Different strengths of one thing, where `may_be_one` looks for what it is about."""
_ENDINGS = frozenset(["", "s", "e", "es", "ed", "d", "ing", "ion", "ions", "ation", "ations", "y", "ies", "ic"])
_STEM = 3
_FAMILY_WORDS = 24
_ORDERED = _NEGATION | _CONDITIONS | frozenset(["prefer", "prefers", "preferred", "between", "by"])


@dataclass(frozen=True, slots=True)
class _Statement:
    plain: str
    words: tuple[str, ...]
    """Content words in order, stemmed."""
    guards: tuple[str, ...]
    """Numbers, dates, names and people in order, then signs in order; then negations and conditions, sorted."""
    ordered: bool
    """Whether the order of the words may carry the meaning."""


def likeness(old: str, new: str) -> Likeness:
    """How `new` relates to `old`: the same, less or more of the same statement, or another one."""
    before, after = _statement(old), _statement(new)
    if before.plain == after.plain:
        return "same"
    if before.guards != after.guards:
        return "other"
    old_words, new_words = set(before.words), set(after.words)
    if not old_words or not new_words:
        return "other"
    if old_words == new_words:
        in_order = not (before.ordered or after.ordered) or before.words == after.words
        return "same" if in_order else "other"
    common = old_words & new_words
    if len(common) < NEAR * len(old_words | new_words) or before.ordered or after.ordered:
        return "other"
    # What is added in front of a verb or noun may turn it round ("hardly likes", "não gosta", "his enemy likes"), and
    # no list has all such words: only what is added behind the whole statement is more of the same.
    size = min(len(before.words), len(after.words))
    if before.words[:size] != after.words[:size]:
        return "other"
    return "more" if len(before.words) == size else "less"


def may_be_one(old: str, new: str) -> bool:
    """Whether two statements that `likeness` keeps apart say one thing in other forms of the same words.

    "allergic to peanuts", "a peanut allergy". It takes an embedder to confirm it. And it takes more than an embedder:
    "teaches maths", "studies maths" lie as close together as any two statements that mean the same (evals/README.md),
    so a word without a partner in the other statement keeps them apart whatever its vector says.
    """
    before, after = _statement(old), _statement(new)
    if before.guards != after.guards or before.ordered or after.ordered:
        return False
    one, other = (frozenset(each.words) - _LIKING for each in (before, after))
    shared = one & other
    if not shared or len(one) > _FAMILY_WORDS or len(other) > _FAMILY_WORDS:
        return False
    return _all_partnered(one - other, other) and _all_partnered(other - one, one)


def _all_partnered(words: frozenset[str], others: frozenset[str]) -> bool:
    return all(any(_are_forms(word, other) for other in others) for word in words)


def _are_forms(one: str, other: str) -> bool:
    """Whether two words are forms of one: a common stem, and endings that don't change what is meant.

    (An employer is no employee, and careful isn't careless: those endings aren't in the list.)
    """
    size = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return any(one[cut:] in _ENDINGS and other[cut:] in _ENDINGS for cut in range(max(_STEM, size - 2), size + 1))


def overlap(part: str, whole: str) -> float:
    """Share of the content words of `part` that stand in `whole`."""
    words = set(_statement(part).words)
    return len(words & set(_statement(whole).words)) / len(words) if words else 0.0


def content_words(text: str) -> tuple[str, ...]:
    """The words of a text that mean something by themselves, stemmed, in order."""
    return _statement(text).words


@lru_cache(maxsize=16_384)
def _statement(text: str) -> _Statement:
    written = _WORD.findall(unicodedata.normalize("NFKC", text).replace("’", "'"))
    lower = [word.casefold() for word in written]
    strict = [word for word, plain in zip(written, lower, strict=True) if _is_exact(word, plain)]
    # The first word is capitalized whatever it is, so it may only differ as a word.
    names = tuple(word.casefold() for word in strict if word is not written[0] or any(map(str.isdigit, word)))
    people = tuple(word for word in lower if word in _PEOPLE)
    loose = tuple(sorted(word for word in lower if word in _NEGATION or word in _CONDITIONS))
    words = tuple(_stem(word) for word in lower if word not in _NEUTRAL)
    guards = (*names, "|", *people, "|", *_signs(text), "|", *loose)
    return _Statement(normalized(text), words, guards, any(word in _ORDERED for word in lower))


def _signs(text: str) -> tuple[str, ...]:
    """Currencies, comparisons, percent, pictures, and a minus or plus that belongs to a number or letter, in order."""
    named = {found.start() for found in _SIGN.finditer(text)}
    return tuple(
        char for at, char in enumerate(text) if at in named or unicodedata.category(char) in {"Sc", "Sm", "So"}
    )


def _is_exact(word: str, plain: str) -> bool:
    return any(map(str.isdigit, word)) or plain in _CALENDAR or (word[:1].isupper() and plain not in _NEUTRAL)


def _stem(word: str) -> str:
    """Plural and third person away; more would merge what differs."""
    if not word.isascii() or len(word) < 4 or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") else word


def words_in_common(query: Sequence[str], text: str) -> int:
    """How many of the query's distinct words a text has."""
    return len(set(query) & set(content_words(text)))
