"""One wording for what has several: "two" and "2", "May 3" and "3 May", "is planning" and "plans".

Works on the words of one statement, folded in case, without articles and without whom it is about. Each rule turns a
whole phrase whose meaning is certain into its plainest form, and leaves the rest alone: what `wording.py` compares and
what `reverted.yaml` remembers both stand on it, and there a wrong merge is worse than a duplicate.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_COUNTED = """two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty"""
_NUMBERS = {word: str(number) for number, word in enumerate(_COUNTED.split(), start=2)}
"""Without "one", which is a pronoun as well."""
_YEAR = """january february march april may june july august september october november december"""
_MONTHS = {short: full for full in _YEAR.split() for short in (full, full[:3])} | {"sept": "september"}
_DAY = re.compile(r"([12]?\d|3[01])(?:st|nd|rd|th)?")
_DATED = _words("on by until till before after since from to for at")
"""What stands before a day of a month: "may 3" may be something else ("may 3 people come")."""
_BE = _words("is are am")
_ING = re.compile(r"([a-z]{2,})ing")
_NO_VERB = _words(
    """going being nothing something anything everything during sibling evening morning wedding building king spring
    string missing interesting boring charming willing loving caring demanding outgoing retiring understanding having
    feeling meaning darling shilling ceiling clothing amazing lying dying"""
)
_WITH_E = _words(
    """liv tak mak driv writ us mov leav com giv rid hik hop arriv danc bak cycl prepar organiz organis manag sav clos
    chang shar smok rais los celebrat relocat exercis practis practic decid rehears stor renovat commut creat invit
    compet hir welcom notic pursu receiv serv servic continu complet cur div fac hous includ lectur migrat nurs pac pric
    produc retir purchas skat trad translat typ wip combin dat"""
)
_DOUBLED = re.compile(r"(?:[aeiou]([bdgmnprt])\1|(?:trav|canc|mod)ell)$")
_DIETS = _words(
    """vegetarian vegetarians vegan vegans pescatarian pescetarian halal kosher keto paleo flexitarian omnivore
    fruitarian macrobiotic vegetarier vegetarierin vegetarisch veganer veganerin"""
)
_GERMAN_ARTICLES = _words("der die dieser diese")
_GERMAN_SUBJECTS = _words("reisende kunde kundin nutzer nutzerin benutzer benutzerin")
_ONE_DIET = {"vegetarierin": "vegetarier", "vegetarisch": "vegetarier", "veganerin": "veganer"}
_DIET_FRAME = _words(
    """follow follows following keep keeps keeping eat eats eating has have having on a an diet diets food foods dietary
    is are am stick sticks to adhere adheres maintain maintains meal meals only ist isst ernährt sich lebt"""
)
_NO_MEAT = re.compile(
    r"(?:(?:do|does) (?:not|never) eat(?: any)?|(?:eats?|is eating) no|never eats?(?: any)?) meat(?: at all)?"
)
_KEIN_FLEISCH = re.compile(r"(?:isst|esse) (?:kein|nie|niemals) fleisch")
_ALLERGY = re.compile(
    r"(?:has|have|suffers? from) (?!no |not |any |severe |mild |bad |strong |food |slight |new |this |that |known )"
    r"(\w+(?: \w+)?) allerg(?:y|ies)|(?:has|have) allerg(?:y|ies) to (\w+(?: \w+)?)"
)
_PLACING = _words("to from on in at by with for during since until via near through")
_TIMES = _words(
    "monday tuesday wednesday thursday friday saturday sunday spring summer autumn fall winter"
) | frozenset(_MONTHS.values())
_KEEPS_ORDER = _words(
    """and or , . ; ! ? not no never but if when while than that who which where because of into over about against
    only between except without also then before after as like"""
)
_FRONTED = re.compile(
    r"(?i)\s*((?:in|on|at|during|every|each|for|from|since|until|before|after|this|next|last)\s[^,.!?\n]{1,40}),\s*(\S[^\n]*)"
)
_FRONTED_BARE = re.compile(
    r"(?i)\s*((?:in|on|at|during|every|each|since|until|before|after|this|next|last)\s(?:\w+\s?){1,3}?)\s"
    r"((?:the\s+(?:user|travell?er|customer|client|guest|person)|he|she|they)\s(?!of\b|who\b|in\b|and\b)[^\n]*)"
)
"""The same without a comma: where whom it is about follows."""
_PHRASE = 4
_COMPANIONS = _words("with for by")


def phrase_last(text: str) -> str:
    """A phrase of time or place that stands in front, with a comma, put where it usually stands."""
    fronted = _FRONTED.fullmatch(text) or _FRONTED_BARE.fullmatch(text)
    if not fronted or re.search(r"[.!?]\s", fronted[2]):
        return text
    return f"{fronted[2].rstrip(' .!')} {fronted[1]}"


def plain(words: Sequence[str]) -> list[str]:
    """`words` in their plainest form. Applied twice, it changes nothing more."""
    told = _with_numbers_and_dates(_without_german_subject(words))
    diet = _diet(told)
    if diet:
        return [diet]
    allergy = _ALLERGY.fullmatch(" ".join(told))
    if allergy:
        return ["is", "allergic", "to", *(allergy[1] or allergy[2]).split()]
    return _with_sorted_phrases(_without_gender(_in_simple_present(told)))


def _without_german_subject(words: Sequence[str]) -> list[str]:
    is_there = len(words) > 2 and words[0] in _GERMAN_ARTICLES and words[1] in _GERMAN_SUBJECTS
    return list(words[2:] if is_there else words)


def _with_numbers_and_dates(words: list[str]) -> list[str]:
    counted = [_NUMBERS.get(word, word) for word in words]
    found: list[str] = []
    at = 0
    while at < len(counted):
        size, date = _date(counted, at)
        found += date or [counted[at]]
        at += size or 1
    return found


def _date(words: Sequence[str], at: int) -> tuple[int, list[str]]:
    """How many words from here on are a day of a month, and that day as "3 may"; nothing where they are none."""
    first = _DAY.fullmatch(words[at])
    if first:
        of = 1 if words[at + 1 : at + 2] == ["of"] else 0
        month = _MONTHS.get(words[at + 1 + of]) if at + 1 + of < len(words) else None
        return (2 + of, [first[1], month]) if month else (0, [])
    month = _MONTHS.get(words[at])
    second = _DAY.fullmatch(words[at + 1]) if month and at + 1 < len(words) else None
    if month and second and (words[at] != "may" or at == 0 or words[at - 1] in _DATED):
        return 2, [second[1], month]
    return 0, []


def _diet(words: Sequence[str]) -> str | None:
    """ "follows a vegan diet", "is on a vegan diet" and "eats vegan food" as "vegan"; without meat is "vegetarian"."""
    said = " ".join(words)
    if _NO_MEAT.fullmatch(said):
        return "vegetarian"
    if _KEIN_FLEISCH.fullmatch(said):
        return "vegetarier"
    meant = [word for word in words if word not in _DIET_FRAME and word not in {",", "."}]
    if len(meant) != 1 or meant[0] not in _DIETS:
        return None
    return _ONE_DIET.get(meant[0], meant[0].removesuffix("s"))


def _in_simple_present(words: Sequence[str]) -> list[str]:
    """ "is planning a trip" as "plans a trip"."""
    found: list[str] = []
    for word in words:
        verb = _ING.fullmatch(word)
        if verb and found and found[-1] in _BE and word not in _NO_VERB and re.search("[aeiouy]", verb[1]):
            found[-1] = _third_person(_base(verb[1]))
        else:
            found.append(word)
    return found


def _base(stem: str) -> str:
    if stem in _WITH_E:
        return stem + "e"
    return stem[:-1] if _DOUBLED.search(stem) else stem


def _third_person(verb: str) -> str:
    if verb.endswith("y") and verb[-2:-1] not in set("aeiou"):
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("ch", "sh", "ss", "x", "z", "o")) else "s")


def _without_gender(words: Sequence[str]) -> list[str]:
    """ "ist Lehrerin" as "ist Lehrer": said of whom the statement is about, and nothing after it."""
    is_said_of_them = len(words) > 1 and words[0] in {"ist", "bin"} and len(words) <= 3
    if is_said_of_them and words[-1].endswith("erin") and (len(words) == 2 or words[1] in {"eine", "ein"}):
        return ["ist", words[-1].removesuffix("in")]
    return ["ist", words[-1]] if is_said_of_them and words[1] in {"eine", "ein"} else list(words)


def _with_sorted_phrases(words: list[str]) -> list[str]:
    """What a verb without object takes ("flies to Rome on 3 May"), in order of the alphabet; a time may stand anywhere.

    Only in one clause of short phrases. "With a friend from Rome" says who comes and not from where, so beside somebody
    who comes along only a time moves.
    """
    if any(word in _KEEPS_ORDER for word in words):
        return words
    starts = [at for at, word in enumerate(words) if word in _PLACING]
    if not starts or starts[0] == 0:
        return words
    phrases = [words[start:end] for start, end in pairwise([*starts, len(words)])]
    if any(not 1 < len(phrase) <= _PHRASE for phrase in phrases):
        return words
    head, times = words[: starts[0]], sorted(filter(_is_time, phrases))
    others = [phrase for phrase in phrases if not _is_time(phrase)]
    roles = [phrase[0] for phrase in others]
    # "Eats to live" isn't "lives to eat": two phrases of one preposition may be anything.
    is_free = (
        len(head) == 1 and len(set(roles)) == len(roles) and not ({"from"} & set(roles) and _COMPANIONS & set(roles))
    )
    ordered = sorted(others) if is_free else others
    return [*head, *(word for phrase in (*ordered, *times) for word in phrase)]


def _is_time(phrase: Sequence[str]) -> bool:
    return phrase[0] not in _COMPANIONS | {"to", "from"} and any(
        _MONTHS.get(word, word) in _TIMES or word.removesuffix("s") in _TIMES for word in phrase[1:]
    )
