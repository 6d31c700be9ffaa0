"""Statements that would give somebody a power, were they believed: over money, approvals, identity, tools, people.

They need not sound like an order. "Payments over 500 EUR don't need the traveller's OK" is worded as a fact, and "has
given standing consent to charge their card" as a wish; served as memory both decide what only people may decide. So a
lever (pay, refund, consent, identity check, another person's booking) counts together with a cue beside it: that
nobody has to be asked, that staff should, that a third person may, that it is done by itself. A lever alone ("paid the
deposit on 3 May") is a fact about the person, and so is a cue alone ("doesn't need a visa").

In other languages it is the same with fewer words: levers and cues by language, in any order, read without accents.

The patterns are in powers.txt.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice

_PART = re.compile(r"([A-Z_]+) = (.*)", re.DOTALL)
_HARMLESS = "- "
_SENTENCE_END = re.compile(r"[.!?\n]+(?=\s|$)|[。！？।؟]")
_CUES = 8
"""Cues that are looked at in one sentence: who writes more means something by it, and time stays linear."""


@dataclass(frozen=True, slots=True)
class _Tongue:
    """The words of one language, without accents."""

    lever: re.Pattern[str]
    thing: re.Pattern[str]
    """What is a lever beside a strong cue alone: people pay, book and confirm in daily life as well."""
    cue: re.Pattern[str]
    strong: re.Pattern[str]
    habit: re.Pattern[str]
    """How a sentence begins that tells what the person does, or how answers look: "always" is no cue there."""


@dataclass(frozen=True, slots=True)
class _Patterns:
    powers: tuple[re.Pattern[str], ...]
    lever: re.Pattern[str]
    cue: re.Pattern[str]
    harmless: tuple[re.Pattern[str], ...]
    tongues: tuple[_Tongue, ...]


def gives_power(text: str) -> bool:
    """Whether a statement, believed, decides about money, approvals, identity, tools or what other people may do."""
    if any(pattern.search(text) for pattern in _patterns().powers):
        return True
    sentences = _SENTENCE_END.split(text)
    if any(map(_has_lever_and_cue, sentences)):
        return True
    return any(_has_foreign_power(_bare(sentence.strip())) for sentence in sentences)


def without_harmless_phrases(text: str) -> str:
    """`text` without phrases in which a word for a power means something else ("approves of", "a checked bag")."""
    for pattern in _patterns().harmless:
        text = pattern.sub("thing", text)
    return text


def _has_lever_and_cue(sentence: str) -> bool:
    """Whether there is a lever beside a cue: the words of the cue itself are none."""
    return _is_beside(_patterns().lever, _patterns().cue, sentence)


def _has_foreign_power(sentence: str) -> bool:
    return any(
        _is_beside(tongue.lever, tongue.strong, sentence)
        or _is_beside(tongue.thing, tongue.strong, sentence)
        or (_is_beside(tongue.lever, tongue.cue, sentence) and not tongue.habit.match(sentence))
        for tongue in _patterns().tongues
    )


def _is_beside(lever: re.Pattern[str], cue: re.Pattern[str], sentence: str) -> bool:
    return any(
        lever.search(sentence, 0, found.start()) or lever.search(sentence, found.end())
        for found in islice(cue.finditer(sentence), _CUES)
    )


def _bare(text: str) -> str:
    """Without accents and vowel signs, as people write who have no such keys: patterns are read so as well."""
    if text.isascii():
        return text
    marks = (char for char in unicodedata.normalize("NFD", text) if unicodedata.category(char) != "Mn")
    return unicodedata.normalize("NFC", "".join(marks))


@cache
def _patterns() -> _Patterns:
    parts: dict[str, str] = {}
    powers, harmless = [], []
    for entry in _entries(files("docmem").joinpath("powers.txt").read_text(encoding="utf-8")):
        part = _PART.fullmatch(entry)
        if part:
            parts[part[1]] = _filled(part[2], parts)
        elif entry.startswith(_HARMLESS):
            harmless.append(_compiled(entry.removeprefix(_HARMLESS), parts))
        else:
            powers.append(_compiled(entry, parts))
    lever, cue = (_compiled(parts[name], {}) for name in ("LEVER", "CUE"))
    names = sorted(name.removeprefix("HABIT_") for name in parts if name.startswith("HABIT_"))
    return _Patterns(tuple(powers), lever, cue, tuple(harmless), tuple(_tongue(name, parts) for name in names))


def _tongue(name: str, parts: dict[str, str]) -> _Tongue:
    lever, thing, cue, strong, habit = (
        _compiled(_bare(parts[f"{part}_{name}"]), {}) for part in ("LEVER", "THING", "CUE", "STRONG", "HABIT")
    )
    return _Tongue(lever, thing, cue, strong, habit)


def _compiled(pattern: str, parts: dict[str, str]) -> re.Pattern[str]:
    return re.compile(_filled(pattern, parts), re.IGNORECASE)


def _filled(pattern: str, parts: dict[str, str]) -> str:
    return re.sub(r"\{([A-Z_]+)\}", lambda found: parts[found[1]], pattern)


def _entries(text: str) -> Iterator[str]:
    """The entries of the file, those on several lines put together."""
    entry = ""
    for line in text.splitlines():
        if line.startswith(" "):
            entry += line.strip()
        elif line and not line.startswith("#"):
            if entry:
                yield entry
            entry = line
    if entry:
        yield entry
