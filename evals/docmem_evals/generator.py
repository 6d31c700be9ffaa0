"""Cases of any number, by a seed: the same seed gives the same files.

- *update*: a value changes ("lives in Porto" → "lives in Ghent"), and one memory has to follow.
- *contradiction*: what was said is taken back, and one memory has to go; or another person's is meant, and none has to.
- *near-duplicate*: memories that differ in the one word that a question asks for.
- *large*: one tenant whose one person has `size` memories that answer nothing, and a few that do.
- *tenants*: two tenants and two people of one name in each, whose memories differ in a value: nobody may get another's.

The statements are made of few patterns, so a model that knows the pattern knows them all: good for load, for isolation
and for regressions, poor for telling how good a model is.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docmem.errors import InputError

KINDS = ("update", "contradiction", "near-duplicate", "tenants")
"""What is written where nothing else is asked for."""
EVERY = (*KINDS, "large")

_A_FILE = 25
"""Cases of one file: far below the reader's limit of 64 KB."""

_CITIES = ("Porto", "Ghent", "Penang", "Lyon", "Bergen", "Kraków", "Osaka", "Valencia", "Graz", "Adelaide", "Bologna")
_NAMES = ("Ana", "Ben", "Chidi", "Dalia", "Emre", "Farah", "Goran", "Hana", "Ines", "Jonas", "Kemal", "Lea")
_FOODS = ("peanuts", "shellfish", "sesame", "celery", "mustard", "soya", "lupins", "walnuts", "kiwi", "eggs")
_TOOLS = ("Postgres", "MySQL", "SQLite", "MongoDB", "Redis", "Kafka", "RabbitMQ", "Terraform", "Ansible", "Docker")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


@dataclass(frozen=True)
class Pattern:
    """Something that has one value at a time: as a memory, as it is said, as it is asked for."""

    memory: str
    said: str
    back: str
    asked: str
    values: tuple[str, ...]


_PATTERNS = (
    Pattern(
        "The person lives in {}.",
        "I moved, I live in {} now.",
        "I don't live in {} any more, please forget it.",
        "In which city does the person live?",
        _CITIES,
    ),
    Pattern(
        "The person is allergic to {}.",
        "The doctor says it's {} that I'm allergic to, not the other.",
        "I'm not allergic to {} after all, please forget it.",
        "What is the person allergic to?",
        _FOODS,
    ),
    Pattern(
        "The person's team uses {} in production.",
        "We switched, our team uses {} in production now.",
        "We dropped {}, please forget that we used it.",
        "What does the person's team use in production?",
        _TOOLS,
    ),
    Pattern(
        "The person has their weekly review on {}.",
        "My weekly review moved to {}.",
        "There is no weekly review on {} any more, forget it.",
        "On which day is the person's weekly review?",
        _DAYS,
    ),
    Pattern(
        "The person's rent goes up to {} EUR a month.",
        "Correction, the rent is {} EUR a month.",
        "The rent of {} EUR was a mistake, please forget it.",
        "How much rent does the person pay a month?",
        tuple(f"{amount:,}" for amount in range(700, 2300, 130)),
    ),
    Pattern(
        "The person takes their long holiday in {}.",
        "We take our long holiday in {} this time.",
        "No long holiday in {}, please forget it.",
        "In which month does the person take a long holiday?",
        _MONTHS,
    ),
)
_HEAD = {
    "domain": "generated",
    "topics": [{"name": "life", "description": "Where the person lives, what they use, what they plan."}],
}


def write(folder: Path, *, kinds: Sequence[str] = KINDS, size: int = 100, seed: int = 1) -> dict[str, Any]:
    """Write `size` cases of each kind; returns how many each file holds. Raises `InputError` for a folder in use."""
    if folder.exists() and any(folder.iterdir()):
        raise InputError(
            f"{folder} isn't empty: what lies there would be run along with the new cases",
            hint="give a new folder, or empty this one",
        )
    folder.mkdir(parents=True, exist_ok=True)
    written: dict[str, int] = {}
    for kind in kinds:
        chance = random.Random(f"{seed} {kind}")
        for name, content, count in _FILES[kind](chance, size):
            # YAML reads JSON: no text has to be quoted by hand.
            (folder / name).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
            written[name] = count
    return {"folder": str(folder), "seed": seed, "files": written}


File = tuple[str, Mapping[str, Any], int]


def _batches(kind: str, size: int) -> Iterator[tuple[str, range]]:
    for number, start in enumerate(range(0, size, _A_FILE)):
        yield f"{kind}-{number:04}.yaml", range(start, min(start + _A_FILE, size))


def _known(chance: random.Random) -> tuple[list[Pattern], list[str]]:
    """Five patterns with a value each, in some order."""
    patterns = chance.sample(_PATTERNS, 5)
    return patterns, [chance.choice(pattern.values) for pattern in patterns]


def _updates(chance: random.Random, size: int) -> Iterator[File]:
    for name, numbers in _batches("update", size):
        cases = []
        for number in numbers:
            patterns, values = _known(chance)
            at = chance.randrange(len(patterns))
            new = chance.choice([value for value in patterns[at].values if value != values[at]])
            cases.append(
                {
                    "id": f"update-{number}",
                    "kind": "update",
                    "known": _statements(patterns, values),
                    "says": [["user", patterns[at].said.format(new)]],
                    "expected": {"updates": {str(at + 1): patterns[at].memory.format(new)}},
                }
            )
        yield name, {"task": "merge", **_HEAD, "cases": cases}, len(cases)


def _contradictions(chance: random.Random, size: int) -> Iterator[File]:
    for name, numbers in _batches("contradiction", size):
        cases = []
        for number in numbers:
            patterns, values = _known(chance)
            at = chance.randrange(len(patterns))
            case: dict[str, Any] = {"id": f"contradiction-{number}", "known": _statements(patterns, values)}
            if number % 2:
                friend = chance.choice(_NAMES)
                other = chance.choice([value for value in patterns[at].values if value != values[at]])
                told = patterns[at].memory.format(other).replace("The person", f"my colleague {friend}")
                case |= {"kind": "third-party", "says": [["user", f"By the way, {told}"]], "expected": {}}
            else:
                back = patterns[at].back.format(values[at])
                case |= {"kind": "taken-back", "says": [["user", back]], "expected": {"deletes": [at + 1]}}
            cases.append(case)
        yield name, {"task": "merge", **_HEAD, "cases": cases}, len(cases)


def _statements(patterns: Sequence[Pattern], values: Sequence[str]) -> list[str]:
    return [pattern.memory.format(value) for pattern, value in zip(patterns, values, strict=True)]


def _near_duplicates(chance: random.Random, size: int) -> Iterator[File]:
    for name, numbers in _batches("near-duplicate", size):
        stem = name.removesuffix(".yaml")
        memories, questions = {}, []
        for number in numbers:
            pattern = chance.choice(_PATTERNS)
            who = f"{chance.choice(_NAMES)} {_surname(number)}"
            for friend, value in enumerate(chance.sample(pattern.values, 3)):
                whose = who if friend == 0 else f"{chance.choice(_NAMES)} {_surname(number)}{'xyz'[friend]}"
                told = pattern.memory.format(value).replace("The person", whose)
                memories[f"{stem}-{number}-{friend}"] = told
            asked = pattern.asked.replace("the person", who)
            ids = [f"{stem}-{number}-{friend}" for friend in range(3)]
            questions.append(
                {"id": f"near-{number}", "kind": "near-duplicate", "of": "host", "ask": asked, "relevant": ids[:1]}
            )
        yield (
            name,
            {**_RECALL, "people": {"host": {"memories": memories}}, "questions": questions},
            len(questions),
        )


_RECALL = {"task": "recall", "domain": "generated", "search": "english"}


def _surname(number: int) -> str:
    syllables = ("ba", "de", "ki", "lo", "mu", "na", "re", "so", "ti", "vu")
    return "".join(syllables[int(digit)] for digit in f"{number:03}").capitalize()


def _tenants(chance: random.Random, size: int) -> Iterator[File]:
    """Pairs of files with the same people and patterns, and other values."""
    for name, numbers in _batches("tenants", size):
        for side in ("a", "b"):
            stem = name.replace("tenants-", f"tenants-{side}-").removesuffix(".yaml")
            people: dict[str, Any] = {}
            questions = []
            for number in numbers:
                pattern = _PATTERNS[number % len(_PATTERNS)]
                who = f"{_NAMES[number % len(_NAMES)].lower()}-{number}"
                twin = f"{who}-other"
                mine, other = chance.sample(pattern.values, 2)
                label = _NAMES[number % len(_NAMES)]
                for person, value in ((who, mine), (twin, other)):
                    memory = {f"{stem}-{person}": pattern.memory.format(value)}
                    people[person] = {"profile": {"label": label}, "memories": memory}
                questions.append(
                    {
                        "id": f"{stem}-{who}",
                        "kind": "same-name",
                        "of": who,
                        "ask": pattern.asked,
                        "relevant": [f"{stem}-{who}"],
                    }
                )
            yield f"{stem}.yaml", {**_RECALL, "people": people, "questions": questions}, len(questions)


def _large(chance: random.Random, size: int) -> Iterator[File]:
    memories = {f"large-{number}": pattern.memory.format(chance.choice(pattern.values))
                for number, pattern in enumerate(_PATTERNS)}  # fmt: skip
    questions = [
        {"id": f"large-{number}", "kind": "large", "of": "host", "ask": pattern.asked, "relevant": [f"large-{number}"]}
        for number, pattern in enumerate(_PATTERNS)
    ]
    people = {"host": {"memories": memories, "noise": size}}
    yield "large.yaml", {**_RECALL, "people": people, "questions": questions}, len(questions)


_FILES: Mapping[str, Callable[[random.Random, int], Iterator[File]]] = {
    "update": _updates,
    "contradiction": _contradictions,
    "near-duplicate": _near_duplicates,
    "tenants": _tenants,
    "large": _large,
}
