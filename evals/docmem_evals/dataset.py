"""Datasets as YAML that anyone can write: one file a domain, in a folder. Read strictly.

A file says which task it is for (`task`, extraction where it doesn't say), and a folder may hold files of all four:
beside each other, or each task's in a folder of its name. A key that isn't known, a case without an id or a word in
the wrong place is an error with file and line, never a case that is scored a little differently than its author meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from docmem.document import decode
from docmem.errors import FormatError, InputError
from docmem.schema import Shape, Text
from docmem.strictyaml import load_mapping
from docmem.tenant_config import Agent, Attribute, Example, Topic

Task: TypeAlias = Literal["extraction", "merge", "recall", "answer"]
TASKS: tuple[Task, ...] = ("extraction", "merge", "recall", "answer")

HINT = "evals/README.md, `Write cases of your own`, shows one of each"

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Strict(Shape):
    """A part of a case: a key that isn't known is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class StrictExample(Example, Strict):
    """A few-shot example of a topic."""


class StrictTopic(Topic, Strict):
    """A topic, as in `docmem.yaml`."""

    examples: tuple[StrictExample, ...] = ()


class StrictAttribute(Attribute, Strict):
    """A profile attribute, as in `docmem.yaml`."""


class Head(Strict):
    """What every file begins with. `policies`: those of a `docmem.yaml`, where a domain has others than the default."""

    task: Task = "extraction"
    domain: Text
    language: Text = "en"
    topics: tuple[StrictTopic, ...] = ()
    attributes: tuple[StrictAttribute, ...] = ()
    policies: dict[str, Any] = Field(default_factory=dict)

    @property
    def agent(self) -> Agent:
        """The agent that the cases are put to."""
        return Agent(topics=self.topics, attributes=self.attributes)


B = TypeVar("B", bound=BaseModel)


@dataclass(frozen=True)
class File:
    """One YAML file of a dataset."""

    name: str
    text: str = field(repr=False)
    values: Mapping[str, Any] = field(repr=False)

    @property
    def task(self) -> str:
        """Which task it says it is for."""
        return str(self.values.get("task", "extraction"))

    def read(self, shape: type[B]) -> B:
        """Its content as `shape`. Raises `InputError` with the line of the first complaint."""
        try:
            return shape.model_validate(self.values)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            reason = str(first["msg"]).removeprefix("Value error, ")
            reason = "this key isn't known" if first["type"] == "extra_forbidden" else reason
            raise self.error(f"{where}: {reason}", first["loc"]) from None

    def error(self, message: str, place: Iterable[int | str] = ()) -> InputError:
        """An error at a place in the file, given as the keys and positions that lead to it."""
        return InputError(f"{self.name}, line {line_of(self.text, place)}: {message}", hint=HINT)


@dataclass(frozen=True)
class Files:
    """The files of one task, and 12 hex digits that change with them."""

    label: str
    files: tuple[File, ...]
    hash: str

    @property
    def name(self) -> str:
        """For reports: the folder and the hash."""
        return f"{self.label}@{self.hash}"


def files(task: Task, folder: Path | None = None) -> Files:
    """A folder's files for a task; without a folder, those that docmem ships. Raises `InputError`."""
    root: Traversable = folder if folder is not None else resources.files("docmem_evals").joinpath("cases")
    every = [file_at(found, name) for name, found in _listed(root, task)]
    for file in every:
        if file.task not in TASKS:
            raise file.error(f"task: {file.task!r} is none of {', '.join(TASKS)}", ("task",))
    chosen = tuple(file for file in every if file.task == task)
    if not chosen:
        others = ", ".join(sorted({file.task for file in every}))
        raise InputError(
            f"{root} has no *.yaml for {task}" + (f" (only for {others})" if others else ""),
            hint=f"a file for it begins with `task: {task}`; {HINT}",
        )
    digest = sha256()
    for file in chosen:
        digest.update(f"{file.name}\0{file.text}\0".encode("utf-8", "surrogatepass"))
    return Files("cases" if folder is None else folder.resolve().name, chosen, digest.hexdigest()[:12])


def _listed(root: Traversable, task: Task) -> list[tuple[str, Traversable]]:
    """The files beside each other and those in the task's own folder, by name."""
    places = [("", root), (f"{task}/", root.joinpath(task))]
    found = [
        (f"{start}{each.name}", each)
        for start, place in places
        if place.is_dir()
        for each in place.iterdir()
        if each.name.endswith((".yaml", ".yml"))
    ]
    return sorted(found, key=lambda pair: pair[0])


def file_at(found: Traversable, name: str | None = None) -> File:
    """Read a file, named so in errors. Raises `InputError`."""
    name = name or found.name
    try:
        text, _ = decode(found.read_bytes())
        return File(name, text, load_mapping(text))
    except OSError as error:
        raise InputError(f"can't read {found}: {error}") from None
    except FormatError as error:
        raise InputError(f"{name}, line {error.line}: {error.message}", hint=HINT) from None


def unique(found: Iterable[tuple[File, tuple[int | str, ...], str]]) -> None:
    """Refuse an id that stands twice. Each is given as (file, its place there, the id)."""
    seen: dict[str, str] = {}
    for file, place, name in found:
        if name in seen:
            raise file.error(f"the id {name!r} stands in {seen[name]} as well; ids are unique over all files", place)
        seen[name] = file.name


def line_of(text: str, place: Iterable[int | str]) -> int:
    """The line, from 1, of the deepest part of `place` that is there."""
    try:
        node = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError:
        return 1
    line = 1
    for part in place:
        inside = _inside(node, part)
        if inside is None:
            break
        line, node = inside
    return line


def _inside(node: Any, part: int | str) -> tuple[int, Any] | None:
    if isinstance(node, yaml.MappingNode):
        pairs = ((key, value) for key, value in node.value if key.value == str(part))
        return next(((key.start_mark.line + 1, value) for key, value in pairs), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part].start_mark.line + 1, node.value[part]
    return None


def fields_given(shape: BaseModel) -> frozenset[str]:
    """The keys that a part of a case names; null said aloud differs from nothing said."""
    return frozenset(shape.model_fields_set)
