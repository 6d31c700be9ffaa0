"""Cases of recall and answer: people with their memories, and questions about them.

Each file becomes a tenant of its own. Times are given as durations before now (`ago: 40d`, `ended: 3d`), since
validity is compared with the database's clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field

from docmem.languages import Language
from docmem.model import Kind
from docmem.schema import Duration, Text
from docmem_evals import noise
from docmem_evals.dataset import File, Head, Strict, files, unique
from docmem_evals.dialogues import Card


class Label(Card):
    """A profile with a label."""

    label: Text | None = None


def _as_memory(value: Any) -> Any:
    return value if isinstance(value, dict) else {"text": value}


class Remembered(Strict):
    """A memory. Short: its text. `ago`: when it was said; `ended`, `expired`: since when it doesn't hold any more."""

    text: Text
    kind: Kind = "fact"
    topic: Text | None = None
    importance: int = Field(default=5, ge=1, le=10)
    ago: Duration = timedelta(days=1)
    ended: Duration = None
    expired: Duration = None

    @property
    def holds(self) -> bool:
        """Whether it is still to be recalled."""
        return self.ended is None and self.expired is None


class Person(Strict):
    """Somebody, and what is remembered of them by name of the memory. `noise`: so many that answer nothing besides."""

    profile: Label = Label()
    memories: dict[str, Annotated[Remembered, BeforeValidator(_as_memory)]] = Field(default_factory=dict)
    noise: int = Field(default=0, ge=0, le=1_000_000)

    def among_others(self, seed: str) -> Person:
        """With the noise as memories."""
        made = {
            f"noise-{seed}-{number}": Remembered(text=text, ago=timedelta(days=1 + number))
            for number, text in enumerate(noise.statements(seed, self.noise))
        }
        return self.model_copy(update={"memories": {**self.memories, **made}})


class Question(Strict):
    """What every question has. `of`: whose. `outage`: the embedder fails while it is asked."""

    id: Text
    kind: Text = "plain"
    language: Text | None = None
    ask: Text
    of: Text
    outage: bool = False


class RecallQuestion(Question):
    """Asks for memories. `relevant`: those that answer it; none where nothing does. `never`: any that must not come."""

    relevant: tuple[Text, ...]
    never: tuple[Text, ...] = ()


class AnswerQuestion(Question):
    """Asks a model. `answer`: wordings of which one has to stand in its answer; none: it should say it doesn't know.

    `never`: what must not stand in it.
    """

    answer: tuple[Text, ...] = ()
    never: tuple[Text, ...] = ()


class People(Head):
    """A file's people. `search`: the text search configuration of the tenant's `docmem.yaml`."""

    search: Language = "simple"
    people: dict[str, Person]
    documents: dict[str, Text] = Field(default_factory=dict)


class _Recall(People):
    questions: tuple[RecallQuestion, ...]


class _Answer(People):
    questions: tuple[AnswerQuestion, ...]


P = TypeVar("P", _Recall, _Answer)
Q = TypeVar("Q", RecallQuestion, AnswerQuestion)


@dataclass(frozen=True)
class World:
    """A file's content as one tenant. `name` tells it from the others."""

    name: str
    people: People = field(repr=False)


@dataclass(frozen=True)
class Asked:
    """One sample of recall or of answer: a question in its world."""

    world: World
    question: Any

    @property
    def id(self) -> str:
        """The question's id."""
        return str(self.question.id)

    @property
    def kind(self) -> str:
        """The question's kind."""
        return str(self.question.kind)

    @property
    def domain(self) -> str:
        """The file's domain."""
        return self.world.people.domain

    @property
    def language(self) -> str:
        """The question's language, else the file's."""
        return str(self.question.language or self.world.people.language)


@dataclass(frozen=True)
class Questions:
    """Questions, and what they are called in reports."""

    asked: tuple[Asked, ...]
    name: str


def worlds(asked: Sequence[Asked]) -> tuple[World, ...]:
    """The worlds that questions are asked in."""
    return tuple({each.world.name: each.world for each in asked}.values())


def recalls(folder: Path | None = None) -> Questions:
    """The questions of recall of a folder; without one, those that docmem ships. Raises `InputError`."""
    found = files("recall", folder)
    read = [(file, file.read(_Recall)) for file in found.files]
    for file, people in read:
        for number, question in enumerate(people.questions):
            _check(file, people, number, question, (*question.relevant, *question.never))
            lapsed = [name for name in question.relevant if not people.people[question.of].memories[name].holds]
            if lapsed:
                raise file.error(f"{lapsed[0]} doesn't hold any more, so nothing may find it", _place(number))
    return _questions(read, found.name)


def answers(folder: Path | None = None) -> Questions:
    """The questions of answer of a folder; without one, those that docmem ships. Raises `InputError`."""
    found = files("answer", folder)
    read = [(file, file.read(_Answer)) for file in found.files]
    for file, people in read:
        for number, question in enumerate(people.questions):
            _check(file, people, number, question, ())
    return _questions(read, found.name)


def _place(number: int) -> tuple[int | str, ...]:
    return "questions", number, "ask"


def _check(file: File, people: People, number: int, question: Question, named: tuple[str, ...]) -> None:
    if question.of not in people.people:
        raise file.error(f"{question.of!r} is none of the people", ("questions", number, "of"))
    known = {name for person in people.people.values() for name in person.memories}
    missing = [name for name in named if name not in known]
    if missing:
        raise file.error(f"{missing[0]!r} is no memory of this file", _place(number))
    foreign = [name for name in getattr(question, "relevant", ()) if name not in people.people[question.of].memories]
    if foreign:
        raise file.error(f"{foreign[0]!r} is no memory of {question.of}", _place(number))


def _questions(read: list[tuple[File, P]], name: str) -> Questions:
    for file, people in read:
        if not people.questions:
            raise file.error("questions: there is no question in it", ("questions",))
    unique(
        (file, ("questions", number, "id"), question.id)
        for file, people in read
        for number, question in enumerate(people.questions)
    )
    for file, people in read:
        unique((file, place, name) for place, name in _memories(people))
    found = [(World(file.name.removesuffix(".yaml"), _among_others(people)), people.questions) for file, people in read]
    return Questions(tuple(Asked(world, question) for world, every in found for question in every), name)


def _among_others(people: People) -> People:
    crowd = {who: person.among_others(f"{people.domain}-{who}") for who, person in people.people.items()}
    return people.model_copy(update={"people": crowd})


def _memories(people: People) -> Iterator[tuple[tuple[int | str, ...], str]]:
    for who, person in people.people.items():
        for name in person.memories:
            yield ("people", who, "memories", name), name
