"""Compare what two statements say, by their words alone.

Wrong merges are worse than duplicates, so two statements count as the same only where nothing that can carry a
difference differs: numbers, dates, names, negation, who it is about, conditions, and who does what to whom: "for Ana"
isn't "with Ana", and "fears dogs" isn't "dogs fear". So words are compared in their order, prepositions and pronouns
among them; only articles, forms of "to be", whom the statement is about and the order in a list ("tea and cake") are
nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from docmem.names import normalized, spelled_out
from docmem.phrasing import phrase_last, plain

Likeness: TypeAlias = Literal["same", "less", "more", "other"]

NEAR = 0.8
"""Share of words two statements must have in common where one only adds to the other."""

_WORD = re.compile(r"\w+(?:[.,:/]\d+)*", re.UNICODE)
_TOKEN = re.compile(r"\w+(?:[.,:/]\d+)*|[,.;!?](?=\s*\w)", re.UNICODE)
_SEPARATORS = frozenset([",", ".", ";", "!", "?", "and"])
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
_SECOND_HALVES = _words("longer anymore nor nem t")
"""What goes with another negation, and says no only once with it."""
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
_PRONOUNS = _words(
    """he she they it i we you him her them me us his hers their theirs its my mine our ours your yours himself herself
    themselves myself itself this that these those who whom whose each other another someone somebody everyone nobody"""
)
_PREPOSITIONS = _words(
    """about above across after against along among around as at before behind below beneath beside besides between
    beyond by down during except for from in inside into like near off on onto out outside over past per since than
    through till to toward towards under until up upon via with within without of"""
)
_HARMLESS_ROLES = frozenset(["of", "to", "in"])
"""What a noun takes where its verb takes none, or another: "allergic to peanuts", "a peanut allergy"."""
_ARTICLES = _words("a an the")
_NOTHING = _words("""a an the is are am be very really also just quite currently generally usually please""")
"""Words that change nothing, wherever they stand."""
_SUBJECTS = _words("user traveller traveler customer client guest person")
_OWN = _words("user traveller traveler")
"""Names of the subject that name nobody else, further on in a statement."""
_HEADS = _SUBJECTS | _words("he she they i")
_OWN_HEADS = _words("his her their my")
_TAKES_A_LIST = _words(
    """like likes love loves enjoy enjoys prefer prefers hate hates dislike dislikes speak speaks visit visits want
    wants need needs collect collects play plays eat eats drink drinks study studies teach teaches own owns has have
    is are avoid avoids read reads grow grows sell sells"""
)
_LIKING = _words("like likes love loves enjoy enjoys fond appreciate appreciates")
"""Different strengths of one thing, where `may_be_one` looks for what it is about."""
_HAVING = _words("has have own owns")
_ENDINGS = frozenset(["", "s", "e", "es", "ing", "ion", "ions", "ation", "ations", "y", "ies", "ic"])
_STEM = 3
_FAMILY_WORDS = 24
_ORDERED = _NEGATION | _CONDITIONS | frozenset(["prefer", "prefers", "preferred", "between", "by"])


@dataclass(frozen=True, slots=True)
class _Statement:
    plain: str
    sequence: tuple[str, ...]
    """All words that aren't nothing, stemmed, in order; items of a list in order of the alphabet."""
    words: tuple[str, ...]
    """Content words in order, stemmed."""
    meant: tuple[str, ...]
    """Of the sequence, what isn't a preposition, liking or having: what `may_be_one` pairs."""
    guards: tuple[str, ...]
    """Numbers, dates, names and people in order, then signs in order; then negations and conditions, sorted."""
    signs: tuple[str, ...]
    pronouns: tuple[str, ...]
    prepositions: tuple[str, ...]
    ordered: bool
    """Whether the order of the words may carry the meaning."""
    is_of_subject: bool
    """Whether it begins with whom it is about: "The user ...", not "The user's ..."."""


def likeness(old: str, new: str) -> Likeness:
    """How `new` relates to `old`: the same, less or more of the same statement, or another one."""
    before, after = _statement(old), _statement(new)
    if before.plain == after.plain:
        return "same"
    if not before.sequence or not after.sequence or before.signs != after.signs:
        return "other"
    if before.sequence == after.sequence:
        return "same"
    if before.guards != after.guards or before.pronouns != after.pronouns or before.ordered or after.ordered:
        return "other"
    # What is added in front of a verb or noun may turn it round ("hardly likes", "não gosta", "his enemy likes"), and
    # no list has all such words: only what is added behind the whole statement is more of the same.
    size, most = sorted((len(before.sequence), len(after.sequence)))
    if size < NEAR * most or before.sequence[:size] != after.sequence[:size]:
        return "other"
    return "more" if len(before.sequence) == size else "less"


def may_be_one(old: str, new: str) -> bool:
    """Whether two statements that `likeness` keeps apart say one thing in other forms of the same words.

    "allergic to peanuts", "a peanut allergy". It takes an embedder to confirm it. And it takes more than an embedder:
    "teaches maths", "studies maths" lie as close together as any two statements that mean the same (evals/README.md),
    so a word without a partner in the other statement keeps them apart whatever its vector says.
    """
    before, after = _statement(old), _statement(new)
    if before.guards != after.guards or before.ordered or after.ordered or not _have_like_roles(before, after):
        return False
    one, other = before.meant, after.meant
    if not set(one) & set(other) or len(one) > _FAMILY_WORDS or len(other) > _FAMILY_WORDS:
        return False
    if set(one) == set(other):
        return one == other and _is_liking(before) and _is_liking(after)
    if not _all_partnered(set(one) - set(other), set(other)) or not _all_partnered(set(other) - set(one), set(one)):
        return False
    return _are_in_like_order(one, other) or (
        # A verb and its noun turned into a noun and what qualifies it: "hiking in mountains", "mountain hikes".
        before.is_of_subject and after.is_of_subject and len(one) == len(other) == 2
    )


def _is_liking(statement: _Statement) -> bool:
    return any(word in _LIKING for word in statement.sequence)


def _have_like_roles(one: _Statement, other: _Statement) -> bool:
    if one.pronouns != other.pronouns or _is_liking(one) != _is_liking(other):
        return False
    fewer, more = sorted((one.prepositions, other.prepositions), key=len)
    return fewer == more or (not fewer and set(more) <= _HARMLESS_ROLES)


def _are_in_like_order(one: Sequence[str], other: Sequence[str]) -> bool:
    return len(one) == len(other) and all(a == b or _are_forms(a, b) for a, b in zip(one, other, strict=True))


def _all_partnered(words: set[str], others: set[str]) -> bool:
    return all(any(_are_forms(word, other) for other in others) for word in words)


def _are_forms(one: str, other: str) -> bool:
    """Whether two words are forms of one: a common stem, and endings that don't change what is meant.

    (An employer is no employee, careful isn't careless, and who worked there may work there no more: those endings
    aren't in the list.)
    """
    size = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return any(one[cut:] in _ENDINGS and other[cut:] in _ENDINGS for cut in range(max(_STEM, size - 2), size + 1))


def overlap(part: str, whole: str) -> float:
    """Share of the content words of `part` that stand in `whole`."""
    words = set(_statement(part).words)
    return len(words & set(_statement(whole).words)) / len(words) if words else 0.0


def negations(text: str) -> int:
    """How often a text says no: "not any longer" once, "neither tea nor coffee" once, "avoids" once."""
    spoken = _TOKEN.findall(spelled_out(text))
    return sum(word in _NEGATION and word not in _SECOND_HALVES for word in spoken)


def people(text: str) -> tuple[str, ...]:
    """The words for people (and animals) by what they are to somebody, in order: wife, daughter, dog."""
    return tuple(word for word in _TOKEN.findall(spelled_out(text)) if word in _PEOPLE)


def names(text: str) -> frozenset[str]:
    """Words that are written with a capital elsewhere than in front, folded: names, and in German nouns."""
    behind = re.sub(r"(?:^|[.!?:]\s+)\W*\w+", " ", unicodedata.normalize("NFKC", text))
    words = {word: word.casefold() for word in _WORD.findall(behind) if word[:1].isupper()}
    return frozenset(
        plain for plain in words.values() if plain not in _NEUTRAL and plain not in _CALENDAR and len(plain) > 1
    )


def is_of_subject(text: str) -> bool:
    """Whether a text begins with whom it is about: "The user ...", not "The user's ..."."""
    return _statement(text).is_of_subject


def content_words(text: str) -> tuple[str, ...]:
    """The words of a text that mean something by themselves, stemmed, in order."""
    return _statement(text).words


@lru_cache(maxsize=16_384)
def _statement(text: str) -> _Statement:
    behind = phrase_last(text.replace("&", " and "))
    written = _WORD.findall(unicodedata.normalize("NFKC", behind).replace("’", "'"))
    lower = [word.casefold() for word in written]
    strict = [word for word, folded in zip(written, lower, strict=True) if _is_exact(word, folded)]
    # The first word is capitalized whatever it is, so it may only differ as a word.
    names = tuple(word.casefold() for word in strict if word is not written[0] or any(map(str.isdigit, word)))
    people = tuple(word for word in lower if word in _PEOPLE)
    spoken = _TOKEN.findall(spelled_out(behind))
    rest, is_of_subject = _without_subject(spoken)
    said = plain([word for word in rest if word not in _ARTICLES])
    loose = tuple(sorted(word for word in said if word in _NEGATION or word in _CONDITIONS))
    signs, sequence = _signs(behind), tuple(_sequence(said))
    return _Statement(
        plain=normalized(text),
        sequence=sequence,
        meant=tuple(word for word in sequence if word not in _PREPOSITIONS | _LIKING | _HAVING),
        words=tuple(_stem(word) for word in lower if word not in _NEUTRAL),
        guards=(*names, "|", *people, "|", *signs, "|", *loose),
        signs=signs,
        pronouns=tuple(word for word in said if word in _PRONOUNS),
        prepositions=tuple(word for word in said if word in _PREPOSITIONS),
        ordered=any(word in _ORDERED for word in said),
        is_of_subject=is_of_subject,
    )


def _without_subject(words: Sequence[str]) -> tuple[list[str], bool]:
    """The words after "The user", "Their" or "The user's", and whether it was the first: as whom it is about."""
    at = 1 if len(words) > 1 and words[0] in {"the", "this"} and words[1] in _SUBJECTS else 0
    rest = list(words[at:])
    if not rest or rest[0] not in _HEADS | _OWN_HEADS:
        return list(words), False
    is_own = rest[0] in _OWN_HEADS or rest[1:2] == ["s"]
    return rest[2 if rest[1:2] == ["s"] else 1 :], not is_own


def _sequence(words: Sequence[str]) -> list[str]:
    told = ["user" if word in _OWN else word for word in words if word not in _NOTHING]
    ordered = _with_sorted_lists([word for at, word in enumerate(told) if not _is_filler_do(told, at)])
    return [_stem(word) for word in ordered if word.isalnum() or any(map(str.isalnum, word))]


def _is_filler_do(words: Sequence[str], at: int) -> bool:
    return words[at] in {"do", "does"} and words[at + 1 : at + 2] == ["not"]


def _with_sorted_lists(words: Sequence[str]) -> list[str]:
    """The items of lists of single words in order of the alphabet: "museums and hiking" is "hiking and museums".

    Only where nothing but a list can be meant: behind a preposition or the verb, and before the end of a part. In "old
    maps and books" the first word may belong to one item alone.
    """
    found: list[str] = []
    at = 0
    while at < len(words):
        end = _end_of_list(words, at) if at == 0 or _may_precede_list(words, at - 1) else at
        if end > at:
            items = sorted(word for word in words[at:end] if word not in {",", "and"})
            found += items
            at = end
        else:
            found.append(words[at])
            at += 1
    return found


def _may_precede_list(words: Sequence[str], at: int) -> bool:
    return words[at] in _PREPOSITIONS or words[at] in _TAKES_A_LIST


def _end_of_list(words: Sequence[str], start: int) -> int:
    """Where the list that starts at `start` ends; `start` where none does."""
    at = start
    while at < len(words) and words[at] not in _SEPARATORS:
        at += 1
        if at - start > 1 and words[at - 2] not in {",", "and"}:
            return start
        if words[at : at + 1] == [","] and words[at + 1 : at + 2] != ["and"]:
            at += 1
        elif words[at : at + 1] == ["and"] or words[at : at + 2] == [",", "and"]:
            last = at + (2 if words[at] == "," else 1)
            is_last = last < len(words) and words[last] not in _SEPARATORS and _closes(words, last + 1)
            return last + 1 if is_last else start
    return start


def _closes(words: Sequence[str], at: int) -> bool:
    return at >= len(words) or words[at] in _PREPOSITIONS | _SEPARATORS - {"and"}


def _signs(text: str) -> tuple[str, ...]:
    """Currencies, comparisons, percent, pictures, and a minus or plus that belongs to a number or letter, in order."""
    named = {found.start() for found in _SIGN.finditer(text)}
    return tuple(
        char for at, char in enumerate(text) if at in named or unicodedata.category(char) in {"Sc", "Sm", "So"}
    )


def _is_exact(word: str, folded: str) -> bool:
    return any(map(str.isdigit, word)) or folded in _CALENDAR or (word[:1].isupper() and folded not in _NEUTRAL)


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
