"""Cases of extraction and merge: what was said, what is known already, and what a careful person would make of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from docmem.model import Kind, Role, Turn
from docmem.schema import Text, Time
from docmem.tenant_config import Agent
from docmem_evals.dataset import File, Head, Strict, fields_given, files, unique

Wordings: TypeAlias = tuple[str, ...]
"""One statement, in one or more wordings that are all right."""


class Said(Strict):
    """One turn. Short: `[user, "I'm vegan."]`."""

    role: Role
    text: Text
    speaker: Text | None = None
    at: Time | None = None


def _as_turn(value: Any) -> Any:
    if isinstance(value, list):
        if len(value) != 2:
            raise ValueError(
                "a turn is [role, text] (quote a text with a comma), or a mapping with role, text, speaker, at"
            )
        return {"role": value[0], "text": value[1]}
    return value


def _as_known(value: Any) -> Any:
    return value if isinstance(value, dict) else {"text": value}


def _as_wordings(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


class Known(Strict):
    """A memory that is there already. Short: its text."""

    text: Text
    kind: Kind = "fact"
    topic: Text | None = None
    at: Time | None = None


class Card(Strict):
    """A profile: what is known of it, or what is expected."""

    preferred_language: Text | None = None
    locale: Text | None = None
    lifecycle_stage: Text | None = None
    attributes: dict[str, Text] = Field(default_factory=dict)
    wordings: dict[str, tuple[Text, ...]] = Field(default_factory=dict)
    """What else is right, by key. Written as a list in the value's place: `home_city: [成都, Chengdu]`."""

    @model_validator(mode="before")
    @classmethod
    def _with_lists(cls, value: Any) -> Any:
        """The first of several wordings as the value, the others beside it."""
        if not isinstance(value, dict):
            return value
        if "wordings" in value:
            raise ValueError("wordings: this key isn't known; give several wordings as a list in the value's place")
        attributes = value.get("attributes")
        pairs = [*value.items(), *(attributes.items() if isinstance(attributes, dict) else ())]
        several = {name: tuple(given[1:]) for name, given in pairs if isinstance(given, list) and given}
        first = {name: _first(given) for name, given in value.items()}
        if isinstance(attributes, dict):
            first["attributes"] = {name: _first(given) for name, given in attributes.items()}
        return {**first, "wordings": several} if several else first

    def accepted(self, key: str) -> tuple[str, ...]:
        """The wordings of a value that are all right."""
        return (self.values[key], *self.wordings.get(key, ()))

    @property
    def values(self) -> dict[str, str]:
        """Key to value, the attributes' and the core's; without those that are null."""
        core = {name: getattr(self, name) for name in ("preferred_language", "locale", "lifecycle_stage")}
        return {**self.attributes, **{name: value for name, value in core.items() if value is not None}}

    @property
    def judges_stage(self) -> bool:
        """Whether a stage is expected, or with null that there is none."""
        return "lifecycle_stage" in fields_given(self)


def _first(given: Any) -> Any:
    return given[0] if isinstance(given, list) and given else given


_Statement = Annotated[tuple[Text, ...], BeforeValidator(_as_wordings), Field(min_length=1)]


class Keeps(Strict):
    """What should be extracted. `optional`: what may be, and needn't."""

    memories: tuple[_Statement, ...] = ()
    optional: tuple[_Statement, ...] = ()
    profile: Card = Card()


class Changes(Strict):
    """What should become of what is known. Memories that are known are named by their number, from 1.

    `optional`: what may be kept besides, and needn't; what was to be deleted may also have become one of these.
    """

    creates: tuple[_Statement, ...] = ()
    updates: dict[str, _Statement] = Field(default_factory=dict)
    deletes: tuple[int, ...] = ()
    optional: tuple[_Statement, ...] = ()
    profile: Card = Card()


class _Entry(Strict):
    id: Text
    kind: Text = "plain"
    language: Text | None = None
    at: Time | None = None
    says: Annotated[tuple[Annotated[Said, BeforeValidator(_as_turn)], ...], Field(min_length=1)]
    known: tuple[Annotated[Known, BeforeValidator(_as_known)], ...] = ()
    profile: Card = Card()

    def turns(self) -> tuple[Turn, ...]:
        """The turns with ids t1, t2, …, a minute apart from `at` on."""
        return tuple(
            Turn(f"t{number}", said.role, said.text, said.at or _later(self.at, number), said.speaker)
            for number, said in enumerate(self.says, start=1)
        )


def _later(at: datetime | None, number: int) -> datetime | None:
    return None if at is None else at + timedelta(minutes=number - 1)


class _Extraction(_Entry):
    expected: Keeps


class _Merge(_Entry):
    known: Annotated[tuple[Annotated[Known, BeforeValidator(_as_known)], ...], Field(min_length=1)]
    expected: Changes


class _Extractions(Head):
    cases: tuple[_Extraction, ...]


class _Merges(Head):
    cases: tuple[_Merge, ...]


@dataclass(frozen=True)
class Case:
    """One sample of extraction."""

    id: str
    domain: str
    language: str
    kind: str
    turns: tuple[Turn, ...]
    known: tuple[Known, ...]
    profile: Card
    agent: Agent = field(repr=False)
    expected: Keeps


@dataclass(frozen=True)
class MergeCase:
    """One sample of merge. `updates` and `deletes` count the known memories from 0; `file` tells whose agent it is."""

    id: str
    file: str
    domain: str
    language: str
    kind: str
    turns: tuple[Turn, ...]
    known: tuple[Known, ...]
    profile: Card
    agent: Agent = field(repr=False)
    policies: Mapping[str, Any] = field(repr=False)
    creates: tuple[Wordings, ...]
    updates: Mapping[int, Wordings]
    deletes: frozenset[int]
    card: Card
    optional: tuple[Wordings, ...] = ()


@dataclass(frozen=True)
class Dataset:
    """Cases of extraction, and what they are called in reports."""

    cases: tuple[Case, ...]
    name: str


@dataclass(frozen=True)
class MergeDataset:
    """Cases of merge, and what they are called in reports."""

    cases: tuple[MergeCase, ...]
    name: str


def extractions(folder: Path | None = None) -> Dataset:
    """The cases of a folder; without one, those that docmem ships. Raises `InputError`."""
    found = files("extraction", folder)
    read = [(file, file.read(_Extractions)) for file in found.files]
    _refuse_doubles((file, head.cases) for file, head in read)
    for file, head in read:
        _refuse_undeclared(file, head, head.cases)
    cases = [_case(head, entry) for _, head in read for entry in head.cases]
    return Dataset(tuple(cases), found.name)


def merges(folder: Path | None = None) -> MergeDataset:
    """The cases of a folder; without one, those that docmem ships. Raises `InputError`."""
    found = files("merge", folder)
    read = [(file, file.read(_Merges)) for file in found.files]
    _refuse_doubles((file, head.cases) for file, head in read)
    for file, head in read:
        _refuse_undeclared(file, head, head.cases)
    cases = [_merge_case(file, head, number) for file, head in read for number in range(len(head.cases))]
    return MergeDataset(tuple(cases), found.name)


def _refuse_doubles(read: Iterator[tuple[File, tuple[Any, ...]]]) -> None:
    unique((file, ("cases", number, "id"), entry.id) for file, entries in read for number, entry in enumerate(entries))


def _refuse_undeclared(file: File, head: Head, entries: Sequence[_Extraction | _Merge]) -> None:
    """A model is asked for what a file declares and nothing else: what isn't declared would be missed for ever."""
    if not entries:
        raise file.error("cases: there is no case in it", ("cases",))
    if not head.topics:
        raise file.error("topics: say what is to be remembered, at least one topic with a name and a description")
    declared = {attribute.key for attribute in head.attributes}
    topics = {topic.name for topic in head.topics}
    for number, entry in enumerate(entries):
        place: tuple[int | str, ...] = ("cases", number)
        cards = {("profile",): entry.profile, ("expected", "profile"): entry.expected.profile}
        for at, card in cards.items():
            for key in card.attributes:
                if key not in declared:
                    there = f"there are {', '.join(sorted(declared))}" if declared else "there are none"
                    raise file.error(
                        f"{key!r} is no attribute that the file declares under `attributes` ({there})",
                        (*place, *at, "attributes", key),
                    )
        for position, known in enumerate(entry.known):
            if known.topic is not None and known.topic not in topics:
                raise file.error(
                    f"{known.topic!r} is no topic of this file ({', '.join(sorted(topics))})",
                    (*place, "known", position, "topic"),
                )


def _case(head: Head, entry: _Extraction) -> Case:
    return Case(
        id=entry.id,
        domain=head.domain,
        language=entry.language or head.language,
        kind=entry.kind,
        turns=entry.turns(),
        known=entry.known,
        profile=entry.profile,
        agent=head.agent,
        expected=entry.expected,
    )


def _merge_case(file: File, head: _Merges, number: int) -> MergeCase:
    entry = head.cases[number]
    wanted = entry.expected
    updates = {_known(file, number, name, len(entry.known)): text for name, text in wanted.updates.items()}
    deletes = [_known(file, number, name, len(entry.known)) for name in wanted.deletes]
    if set(updates) & set(deletes):
        raise file.error("a memory can't be both updated and deleted", ("cases", number, "expected"))
    return MergeCase(
        id=entry.id,
        file=file.name,
        domain=head.domain,
        language=entry.language or head.language,
        kind=entry.kind,
        turns=entry.turns(),
        known=entry.known,
        profile=entry.profile,
        agent=head.agent,
        policies=head.policies,
        creates=wanted.creates,
        updates=updates,
        deletes=frozenset(deletes),
        card=wanted.profile,
        optional=wanted.optional,
    )


def _known(file: File, number: int, name: str | int, count: int) -> int:
    position = int(name) - 1 if str(name).isdigit() else -1
    if not 0 <= position < count:
        place = ("cases", number, "expected", "updates" if isinstance(name, str) else "deletes")
        raise file.error(f"{name} is no known memory; they are numbered 1 to {count}", place)
    return position
