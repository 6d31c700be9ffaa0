"""Cases as YAML that anyone can write: what was said, what is known already, what a careful person would keep.

One file a domain, with the topics and attributes that its agent declares; `cases/travel.yaml` explains each key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from pydantic import Field

from docmem.document import decode
from docmem.errors import FormatError, InputError
from docmem.model import Role, Turn
from docmem.schema import Shape, Text, read
from docmem.strictyaml import load_mapping
from docmem.tenant_config import Agent, Attribute, Topic


class ExpectedProfile(Shape):
    """The profile's values that the dialogue gives."""

    preferred_language: Text | None = None
    locale: Text | None = None
    lifecycle_stage: Text | None = None
    attributes: dict[str, Text] = Field(default_factory=dict)


class Expected(Shape):
    """What should be kept."""

    memories: tuple[Text, ...] = ()
    profile: ExpectedProfile = ExpectedProfile()


class _Entry(Shape):
    id: Text
    kind: Text = "plain"
    says: tuple[tuple[Role, Text], ...]
    known: tuple[Text, ...] = ()
    expected: Expected


class _Domain(Shape):
    domain: Text
    topics: tuple[Topic, ...]
    attributes: tuple[Attribute, ...] = ()
    cases: tuple[_Entry, ...]


@dataclass(frozen=True)
class Case:
    """One sample."""

    id: str
    domain: str
    kind: str
    turns: tuple[Turn, ...]
    known: tuple[str, ...]
    expected: Expected
    agent: Agent = field(repr=False)


@dataclass(frozen=True)
class Dataset:
    """Cases, and 12 hex digits that change with them."""

    cases: tuple[Case, ...]
    hash: str


def load(folder: Path | None = None) -> Dataset:
    """The cases of a folder's `*.yaml`; without one, those that docmem ships. Raises `InputError`."""
    root: Traversable = folder if folder is not None else resources.files("docmem_evals").joinpath("cases")
    files = sorted((each for each in root.iterdir() if each.name.endswith(".yaml")), key=lambda each: each.name)
    if not files:
        raise InputError(f"{root} has no *.yaml", hint="write one like docmem_evals/cases/travel.yaml")
    every: list[Case] = []
    digest = sha256()
    for file in files:
        data = file.read_bytes()
        digest.update(data)
        every += _cases(file.name, data)
    doubles = {case.id for case in every if sum(other.id == case.id for other in every) > 1}
    if doubles:
        raise InputError(f"the case id {sorted(doubles)[0]!r} stands twice", hint="ids are unique over all files")
    return Dataset(tuple(every), digest.hexdigest()[:12])


def _cases(name: str, data: bytes) -> Iterator[Case]:
    try:
        text, _ = decode(data)
        domain = read(_Domain, load_mapping(text), source=text)
    except FormatError as error:
        where = f"{name}, line {error.line}" if error.line else name
        raise InputError(f"{where}: {error.message}", hint="write it like docmem_evals/cases/travel.yaml") from None
    agent = Agent(topics=domain.topics, attributes=domain.attributes)
    for entry in domain.cases:
        turns = tuple(Turn(f"t{number}", role, said) for number, (role, said) in enumerate(entry.says, start=1))
        yield Case(entry.id, domain.domain, entry.kind, turns, entry.known, entry.expected, agent)
