"""The files of format 1 as values and back: memory, profile, document, watermark, reverted.

Reading is strict and names line and reason. Writing a new file lays it out like the examples in FORMAT.md;
changing one splices (see `splice`), so a person's formatting survives.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import Field, field_validator

from docmem import splice, strictyaml
from docmem.document import decode, refuse_conflict_markers, scrub_value, split
from docmem.errors import FormatError
from docmem.layout import place
from docmem.model import TEXT_MAX, Document, Kind, Marks, Memory, Profile, Source, Watermark
from docmem.names import is_memory_id
from docmem.schema import Shape, Text, Time, read

# Nothing here may repeat what its neighbour repeats: closing marks are stripped by `_heading`, since a pattern for
# them took cubic time on a heading with a long run of blanks.
_HEADING = re.compile(r"^#{1,6}[ \t]+(\S.*)$", re.MULTILINE)


class _Source(Shape):
    thread: Text | None = None
    turns: tuple[Text, ...] = ()
    quote: Text | None = None
    uri: Text | None = None


class _MemoryHead(Shape):
    id: Text
    kind: Kind
    topic: Text | None = None
    agent: Text | None = None
    confidence: float | None = Field(default=None, ge=0, le=1)
    importance: int = Field(default=5, ge=1, le=10)
    valid_from: Time | None = None
    valid_until: Time | None = None
    expires: Time | None = None
    source: _Source = _Source()
    supersedes: tuple[Text, ...] = ()
    language: Text | None = None

    @field_validator("id")
    @classmethod
    def _check(cls, value: str) -> str:
        if not is_memory_id(value):
            raise ValueError(f"{value!r} is not 16 lowercase hex digits")
        return value


class _Profile(Shape):
    label: Text | None = None
    preferred_language: Text | None = None
    locale: Text | None = None
    lifecycle_stage: Text | None = None
    last_interaction_at: Time | None = None
    remember: bool = True
    attributes: dict[str, Text] = Field(default_factory=dict)
    pinned: tuple[Text, ...] = ()


class _Watermark(Shape):
    thread: Text
    subject: Text
    agent: Text = "default"
    last_turn: Text
    input_hash: Text


class _Reverted(Shape):
    reverted: tuple[Text, ...] = ()
    rejected: tuple[Text, ...] = ()


def parse_memory(path: str, data: bytes) -> Memory:
    """Read a memory file. `path` tells the subject. Raises `FormatError`."""
    parts = split(data)
    if parts.head is None:
        raise FormatError(
            "no head: a memory starts with `---` on its first line, closed by a line `---`", code="no_head"
        )
    values, scrubbed = _clean(strictyaml.load_mapping(parts.head, first_line=2))
    head = read(_MemoryHead, values, source=parts.head, first_line=2)
    text = parts.body.strip()
    if not 1 <= len(text) <= TEXT_MAX:
        raise FormatError(
            f"{len(text)} characters of text; a memory has 1 to {TEXT_MAX}",
            code="text_size",
            line=parts.body_line,
        )
    return Memory(
        id=head.id,
        kind=head.kind,
        text=text,
        subject=place(path).subject,
        path=path,
        topic=head.topic,
        agent=head.agent,
        confidence=head.confidence,
        importance=head.importance,
        valid_from=head.valid_from,
        valid_until=head.valid_until,
        expires=head.expires,
        source=Source(thread=head.source.thread, turns=head.source.turns, quote=head.source.quote, uri=head.source.uri),
        supersedes=head.supersedes,
        language=head.language,
        meta=head.model_extra or {},
        scrubbed=parts.scrubbed + scrubbed,
    )


def parse_profile(path: str, data: bytes) -> Profile:
    """Read a profile. `path` tells the subject. Raises `FormatError`."""
    text, values, scrubbed = _yaml(data)
    shape = read(_Profile, values, source=text)
    known = {name: getattr(shape, name) for name in _Profile.model_fields}
    return Profile(subject=place(path).subject, **known, meta=shape.model_extra or {}, scrubbed=scrubbed)


def parse_document(path: str, data: bytes) -> Document:
    """Read a tenant-level Markdown file; a head is optional. Raises `FormatError`."""
    parts = split(data)
    values: Mapping[str, Any] = {}
    language, scrubbed = None, 0
    if parts.head is not None:
        values, scrubbed = _clean(strictyaml.load_mapping(parts.head, first_line=2))
        language = read(_DocumentHead, values, source=parts.head, first_line=2).language
    heading = _HEADING.search(parts.body)
    written = values.get("title")
    if written is not None:
        title = strictyaml.as_written(written)
    else:
        title = _heading(heading[1]) if heading else path.rsplit("/", 1)[-1].removesuffix(".md")
    return Document(
        path=path,
        folder=place(path).folder,
        title=title,
        text=parts.body.strip("\n"),
        language=language,
        meta=values,
        scrubbed=parts.scrubbed + scrubbed,
    )


def _heading(text: str) -> str:
    """A heading without its closing marks: `Title ##` is Title, `C#` is C#."""
    text = text.rstrip()
    words = text.rstrip("#")
    return words.rstrip() if words[-1:].isspace() else text


class _DocumentHead(Shape):
    title: Text | None = None
    language: Text | None = None


def parse_watermark(data: bytes) -> Watermark:
    """Read a watermark. Raises `FormatError`."""
    text, values, _ = _yaml(data)
    shape = read(_Watermark, values, source=text)
    return Watermark(**{name: getattr(shape, name) for name in _Watermark.model_fields})


def parse_reverted(data: bytes) -> Marks:
    """Read `reverted.yaml`: what people don't want learned again."""
    text, values, _ = _yaml(data)
    shape = read(_Reverted, values, source=text)
    return Marks(frozenset(shape.reverted), frozenset(shape.rejected))


def render_memory(memory: Memory) -> bytes:
    """A new memory file. Keys without a value are left out."""
    source = {
        "thread": memory.source.thread,
        "turns": list(memory.source.turns),
        "quote": memory.source.quote,
        "uri": memory.source.uri,
    }
    head: dict[str, Any] = {
        "id": memory.id,
        "kind": memory.kind,
        "topic": memory.topic,
        "agent": memory.agent,
        "confidence": memory.confidence,
        "importance": memory.importance,
        "valid_from": memory.valid_from,
        "valid_until": memory.valid_until,
        "expires": memory.expires,
        "source": {key: value for key, value in source.items() if value},
        "supersedes": list(memory.supersedes),
        "language": memory.language,
        **memory.meta,
    }
    lines = [f"{splice.render(key)}: {splice.render(value)}" for key, value in head.items() if _written(value)]
    return ("---\n" + "\n".join(lines) + "\n---\n" + memory.text.strip() + "\n").encode()


def _written(value: Any) -> bool:
    return value is not None and value != {} and value != []


def edit_memory(data: bytes, changes: Mapping[splice.KeyPath, Any], *, text: str | None = None) -> bytes:
    """Change keys of a memory's head, and its text where one is given. Raises `FormatError` (see `splice.edit`)."""
    parts = split(data)
    if parts.head is None:
        raise FormatError("no head to change", code="no_head")
    try:
        head = splice.edit(parts.head, changes)
    except FormatError as error:
        error.line += 1  # the head starts on the file's second line
        raise
    body = parts.body if text is None else text.strip() + "\n"
    return f"---\n{head}---\n{body}".encode()


def edit_yaml(data: bytes, changes: Mapping[splice.KeyPath, Any]) -> bytes:
    """Change keys of a YAML file (`b""` for a new one). Raises `FormatError` (see `splice.edit`)."""
    text, _ = decode(data)
    return splice.edit(text, changes).encode()


def render_watermark(mark: Watermark) -> bytes:
    """A watermark file."""
    keys = ("thread", "subject", "agent", "last_turn", "input_hash")
    return "".join(f"{key}: {splice.render(getattr(mark, key))}\n" for key in keys).encode()


def render_reverted(marks: Marks) -> bytes:
    """`reverted.yaml`, one hash a line, sorted, so that two changes merge."""
    return (
        "# Statements that were reverted or forgotten, as hashes. A proposal that says one again is held.\n"
        + _hashes("reverted", marks.reverted)
        + "# Proposals that a person turned down in review, as hashes. One that comes again is dropped.\n"
        + _hashes("rejected", marks.rejected)
    ).encode()


def _hashes(key: str, hashes: frozenset[str]) -> str:
    lines = "".join(f"  - {digest}\n" for digest in sorted(hashes))
    return f"{key}:\n{lines}" if hashes else f"{key}: []\n"


def check(path: str, data: bytes) -> None:
    """Raise `FormatError` if the file at `path` breaks format 1; paths that the format doesn't know pass."""
    from docmem.tenant_config import parse_config

    kind = place(path).kind
    if kind == "memory":
        parse_memory(path, data)
    elif kind == "profile":
        parse_profile(path, data)
    elif kind == "document":
        parse_document(path, data)
    elif kind == "config":
        parse_config(data)
    elif kind == "watermark":
        parse_watermark(data)
    elif kind == "reverted":
        parse_reverted(data)


def _yaml(data: bytes) -> tuple[str, dict[str, Any], int]:
    text, scrubbed = decode(data)
    refuse_conflict_markers(text, first_line=1)
    values, nested = _clean(strictyaml.load_mapping(text))
    return text, values, scrubbed + nested


def _clean(values: dict[str, strictyaml.Value]) -> tuple[dict[str, Any], int]:
    clean, scrubbed = scrub_value(values)
    assert isinstance(clean, dict)
    return clean, scrubbed


def newest(*times: datetime | None) -> datetime | None:
    """The latest of the times that are there."""
    return max((when for when in times if when is not None), default=None)
