"""What a statement brings that nobody said: a name, a number, a date, or a "not" that came or went. Pure.

A true quote would vouch for any text. A good paraphrase may share no word with what was said ("I hate layovers",
"prefers direct flights"), but it brings no name and no number of its own, and it doesn't say the opposite. What can't
be compared counts as said: names and dates where the user doesn't write English, numbers that nobody comes to but by
counting, dates that the turn's time tells.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from docmem import evidence
from docmem.model import Turn
from docmem.parts import folded, indexed, parts, words_of


@dataclass(frozen=True, slots=True)
class Unsaid:
    """What stands in a statement and in nothing that bears it out. `is_turned`: it says the opposite of a turn."""

    names: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    is_turned: bool = False

    def __bool__(self) -> bool:
        return bool(self.names or self.numbers or self.is_turned)


_NAME = re.compile(r"(?<!\w)[^\W\d_][^\W_]*(?:[-'’.&][^\W_]+)*")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_DAYS = words_of("monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun")
_NO_NAMES = words_of(
    """i i'm i've i'd i'll ok mr mrs ms dr miss sir am pm ad bc id pin tv ac pdf vip eur usd gbp myr rm jpy chf sgd aud
    cad inr idr thb user traveller traveler customer client guest person internet wifi english"""
)
_OF_A_PEOPLE = re.compile(r"(?:ese|ish|i?an|ch|i|er)s?$")
_TELLS_TIME = re.compile(
    r"\b(?:tomorrow|today|tonight|yesterday|next|last|this|coming|past|previous|recent\w*|weeks?|weekends?|months?|years?|"
    r"days?|ago|since|mornings?|afternoon|evenings?|nights?|monday|tuesday|wednesday|thursday|friday|saturday|sunday|"
    r"christmas|xmas|easter|eve|birthday|anniversary|spring|summer|autumn|fall|winter|soon|now|just|currently|later|"
    r"earlier|mon|tue|wed|thu|fri|sat|sun|season|holidays?|quarter|semester|fortnight)\b"
)
"""With the turn's time it tells a date."""
_OTHER_DATE = re.compile(
    r"\d{1,4} ?[年월年]|\d{1,2} ?[月日号號월일]|\b\d{1,2}\. ?(?:\d{1,2}\.|[^\W\d_]{3,})(?: ?\d{4})?|"
    r"\b\d{1,2} (?:de )?(?:ene|fev|fév|mär|mar|abr|avr|mai|mei|mag|giu|jui|lug|ago|aoû|out|okt|oct|dez|déc|dic|des|"
    r"ogos|jan|feb|apr|jun|jul|sep|set|nov)[^\W\d_]*(?: (?:de )?\d{4})?|\b\d{1,2}/\d{1,2}(?:/\d{2,4})?"
)
_METRES = re.compile(r"(?<=\d)\s+m\b")
"""No millions, which are written 2m."""
_NUMERIC_DATE = re.compile(r"\d{1,4}[./-]\d{1,2}")
_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10, "eleventh": 11, "twelfth": 12, "thirteenth": 13, "fourteenth": 14, "fifteenth": 15, "sixteenth": 16,
    "seventeenth": 17, "eighteenth": 18, "nineteenth": 19, "twentieth": 20, "thirtieth": 30,
    "grand": 1_000, "fortnight": 14, "half": 30, "quarter": 15, "noon": 12, "midday": 12,
     "midnight": 24, "dozens": 12, "twins": 2,
}  # fmt: skip
"""Words that tell a number and aren't counted with."""
_MULTIPLES = (7, 12, 100, 1_000)
"""Days of weeks, months of years or single ones of dozens, and what "hundred" and "grand" are short for."""
_COUNTED = 10
"""Up to here a number may be come to by counting: "my wife and I"."""

_NOTS = re.compile(
    r"no|not|never|nothing|none|nobody|without|cannot|\w+n't|nor|neither|hates?|dislikes?|avoids?|refuses?"
)
_NO_NOT = re.compile(
    r"\bnot only|\bno (?:problem|doubt|matter|worries|idea|wonder|way)|\bcan(?:'t|not) (?:wait|get enough|live without|"
    r"recommend|stop|help)|\b(?:don't|do not|doesn't|wouldn't) (?:mind|worry|forget|miss)|\bwhy not|\bnot (?:sure|yet)|"
    r"\b(?:couldn't|can't|cannot) be \w+er|\bnever (?:miss|forget|been (?:so|more|better))\w*|"
    r"\bnothing (?:beats|better|like)|"
    r"\b(?:if|or) not|\b(?:isn't|wasn't|aren't|don't|doesn't|didn't|won't|weren't|haven't|hasn't) "
    r"(?:it|that|you|we|they|he|she)\b|\bno \d+"
)
"""A "not" that denies nothing."""
_AGAINST = re.compile(
    r"\b(?:no|not|never|none|nothing|nor|neither|without|cannot|unable|un\w+|in(?:tolerant|capable)|\w+n't|n't|\w+less|"
    r"\w+-free|free|allerg\w+|afraid|fears?|scared?|hat(?:e|es|ed|ing)|dislik\w+|avoid\w*|refus\w+|against|except|only|"
    r"less|rather|instead|than|stop\w*|quit\w*|gave|given|former\w*|ex|used|fewer|most|under|below|limit\w*|max\w*|up|"
    r"vegetarian|vegan|lack\w*|problem\w*|difficult\w*|trouble|struggl\w+|hard|restrict\w*|exclud\w*|skip\w*|left|"
    r"cancel\w*|declin\w*|reject\w*|miss\w*|worr\w+|doubt\w*|sick|tired|bad|worse|worst|terrible|awful|annoy\w*|"
    r"expensive|boring|prefers?|preferred|too|pain\w*|hurts?|lost|los(?:es|ing|e)|broke\w*|fail\w*|new|first|still|"
    r"yet|until|unless|before|if|whether|haven|hasn|enough|but|over|rid|ban\w*|forbid\w*|away|"
    r"instead|move\w*|chang\w*|switch\w*|wish\w*|want\w*|hop(?:e|es|ing)|would|could|should|plan\w*)\b"
)
"""Where a statement has one of these, or what was said has when the statement is denied, it is not told which way round
it is: "doesn't want to spend more than 900", "at most 900"."""
_SPEECH = re.compile(r"(?<!\w)(?:'[^']{9,}'|\"[^\"]{9,}\")(?!\w)")
"""What somebody else said, in their words."""
_REACH = 4
"""Words after a "not" that it is about."""


def of_statement(text: str, *, cited: Sequence[Turn], window: Sequence[Turn], known: Sequence[str] = ()) -> Unsaid:
    """What a statement brings of its own. `known`: what it changes or replaces; that needs no saying again."""
    own = [turn for turn in cited if turn.role == "user"]
    agreed = [each for turn in own if (each := evidence.confirmed(text, turn, window)) is not None]
    said = [*(turn.text for turn in (*own, *agreed)), *known]
    users = [turn for turn in window if turn.role == "user"]
    if not _is_foreign(" ".join(turn.text for turn in users)) and not _is_foreign(text):
        echoes = [turn.text for turn in evidence.heard_back(own, window)]
        speakers = [turn.speaker for turn in window if turn.speaker]
        named = [*said, *(turn.text for turn in users), *echoes, *speakers]
        times = [turn.at.strftime("%Y-%m-%d %d %B %Y") for turn in users if turn.at is not None]
        names = frozenset(_unsaid_names(text, named)) | frozenset(_unsaid_dates(text, said, times))
        is_turned = not known and _is_turned(text, [turn.text for turn in (*own, *agreed)], has_no=_has_no(own, window))
    else:
        names, is_turned = frozenset(), False
    whose = said if any(parts(turn.text).numbers for turn in own) else [*said, *(turn.text for turn in users)]
    return Unsaid(names, frozenset(_unsaid_numbers(text, whose)), is_turned)


def _has_no(own: Sequence[Turn], window: Sequence[Turn]) -> bool:
    return any(evidence.denied(turn, window) is not None for turn in own)


_OTHERS = words_of(
    """der die das und ist nicht ich wir mit für ein eine nach den dem el los las una uno con para que por del al está
    somos le les des du et je nous avec pour sur est une gli che il per non sono da di um uma com não em na no meu o os
    dan yang saya kami untuk ke di nak tak het een van ik wij met naar voor och jag vi till på og jeg til"""
)


def _is_foreign(text: str) -> bool:
    """Whether a text may be of another language than English, so that names have other names in it."""
    words = re.findall(r"[^\W\d_]+", evidence.typed(text))
    if any(ord(char) > 0x24F for char in "".join(words)):
        return True
    other = sum(folded(word) in _OTHERS for word in words)
    is_plain = all(word.isascii() for word in words) and any(word in evidence.ENGLISH for word in words)
    return (other >= 2 and 10 * other >= len(words)) or (other > 0 and not is_plain)


# --------------------------------------------------------------------------------------------------------- names


def _runs(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each name of a text, with the words that are written as one name with it. The first word is none."""
    for sentence in evidence.sentences(text):
        words = list(_NAME.finditer(sentence))
        run: list[str] = []
        checked: list[str] = []
        for number, found in enumerate([*words, None]):
            if found is not None and found[0][0].isupper():
                run.append(found[0])
                if number:
                    checked.append(found[0])
                continue
            yield from ((word, run) for word in checked)
            run, checked = [], []


def _unsaid_names(text: str, said: Sequence[str]) -> Iterator[str]:
    there: frozenset[str] | None = None
    for written, run in _runs(evidence.DATE.sub(" ", text)):
        name = folded(re.sub(r"['’]s$", "", written))
        if any(map(str.isdigit, name)) or name in _NO_NAMES or name in _DAYS or _month(name):
            continue
        if there is None:
            there = frozenset().union(*(indexed(each).words for each in said))
        if not _is_named(name, run, there, said):
            yield written


def _is_named(name: str, run: Sequence[str], there: frozenset[str], said: Sequence[str]) -> bool:
    if all(each in there or any(_is_kin(each, other) for other in there) for each in re.findall(r"[^\W_]+", name)):
        return True
    letters = "".join(word[0] for word in run).casefold()
    squeezed = re.sub(r"[\W_]+", "", folded(" ".join(said))) if len(name) > 3 else ""
    if (len(letters) > 1 and letters in there) or re.sub(r"[\W_]+", "", name) in squeezed:
        return True
    called = evidence.LANGUAGES.get(name, "").split()
    if any(folded(each) in there for each in called):
        return True
    if run and name.isascii() and 2 <= len(name) <= 5 and _spelled_out(name, said):
        return True
    return len(name) > 4 and bool(difflib.get_close_matches(name, there, n=1, cutoff=0.88))


def _is_kin(name: str, other: str) -> bool:
    """Whether two words are one name in two forms: Lisbon, Lisboa; Portugal, Portuguese; Spain, Spanish."""
    size = next((n for n, (a, b) in enumerate(zip(name, other, strict=False)) if a != b), min(len(name), len(other)))
    rest = max(len(name), len(other)) - size
    if size >= 3 and (_OF_A_PEOPLE.search(name) or _OF_A_PEOPLE.search(other)):
        return rest <= 4
    return size >= 4 and rest <= 3


def _spelled_out(letters: str, said: Sequence[str]) -> bool:
    """Whether words in a row begin with these letters: "single sign-on" for SSO."""
    return any(
        letters in "".join(word[0] for word in re.findall(r"[^\W_]+", folded(text)) if word not in {"of", "the"})
        for text in said
    )


# --------------------------------------------------------------------------------------------------------- dates


def _month(name: str) -> str | None:
    return next((each for each in _MONTHS if each[:3] == name[:3] and each.startswith(name.rstrip("."))), None)


def _unsaid_dates(text: str, said: Sequence[str], times: Sequence[str]) -> Iterator[str]:
    """The dates and months that neither the turns nor their time tell."""
    plain = evidence.typed(" \n ".join(said))
    if _TELLS_TIME.search(plain):
        return
    there = indexed(" \n ".join([*said, *times]))
    numbers = {number.lstrip("0") for number in there.numbers} | {
        str(_ORDINALS[w]) for w in there.words & _ORDINALS.keys()
    }
    written = bool(_NUMERIC_DATE.search(plain))
    for found in evidence.DATE.finditer(text):
        told = {number.lstrip("0") for number in re.findall(r"\d+", found[0])}
        days = {number for number in told if len(number) <= 2}
        if (days or told) - numbers and not written:
            yield found[0]
    for name, _ in _runs(text):
        month = _month(folded(name))
        if (
            month is not None
            and not written
            and not any(_month(word) == month for word in there.words if len(word) > 2)
        ):
            yield name


# -------------------------------------------------------------------------------------------------------- numbers


def _unsaid_numbers(text: str, said: Sequence[str]) -> Iterator[str]:
    wanted = parts(_METRES.sub(" metres", _OTHER_DATE.sub(" ", evidence.DATE.sub(" ", text)))).numbers
    if not wanted:
        return
    there = indexed(_METRES.sub(" metres", " \n ".join(said)))
    numbers = there.numbers | {str(_ORDINALS[word]) for word in there.words & _ORDINALS.keys()}
    values = {value for number in numbers if (value := _number(number)) is not None}
    sums = values | {a + b for a in values for b in values} | {a * n for a in values for n in _MULTIPLES}
    sums |= {value + 12 for value in values if value <= 12}
    counted = {value for number in wanted if (value := _number(number)) is not None and value <= _COUNTED}
    others = {value for value in values if 1 < value <= _COUNTED} - counted
    for number in wanted:
        value = _number(number)
        if there.has_number(number) or number in numbers or (value is not None and value in sums):
            continue
        if value is None or value > _COUNTED:
            if number.replace(".", "") not in there.digits:
                yield number
        elif value > 1 and others and sum(counted) not in values:
            yield number


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


# ------------------------------------------------------------------------------------------------------ negation


def _is_turned(text: str, said: Sequence[str], *, has_no: bool) -> bool:
    """Whether a statement says what was denied, or denies what was said, in the same words."""
    plain = [_NO_NOT.sub(" ", _SPEECH.sub(" ", evidence.typed(each))) for each in said]
    stated = evidence.typed(text)
    if not _AGAINST.search(stated):
        denied, free = _in_reach(plain)
        turned, shared = _shared(text, denied - free), _shared(text, denied | free)
        return bool(turned) and 2 * len(turned) >= len(shared)
    reached, _ = _in_reach([stated])
    if has_no or not reached or any(_AGAINST.search(each) for each in plain):
        return False
    return bool(_shared(" ".join(reached), parts(" ".join(plain)).words))


def _shared(text: str, words: Iterable[str]) -> frozenset[str]:
    return parts(text).found_in([" ".join(words)]).words


def _in_reach(texts: Sequence[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The words that a "not" is about, and those that stand free of one."""
    denied: set[str] = set()
    free: set[str] = set()
    for clause in (
        each for text in texts for sentence in evidence.sentences(text) for each in evidence.CLAUSE.split(sentence)
    ):
        left = 0
        for word in re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", clause):
            if _NOTS.fullmatch(word):
                left = _REACH
                continue
            (denied if left else free).add(word)
            left = max(left - 1, 0)
    return frozenset(parts(" ".join(denied)).words), frozenset(parts(" ".join(free)).words)
