"""The file that a ruling comes to: a new one laid out, one that is there changed in place, or none any more. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from docmem import files
from docmem.admission import Ruling
from docmem.errors import FormatError
from docmem.model import Marks, Memory
from docmem.names import proposal_hash, statement_hash
from docmem.repository import StoredMemory
from docmem.splice import KeyPath

EXTERNAL = "external"
"""Key of a memory's head: ids of other systems that it was saved under, each with what it was saved as."""

_KEYS = ("kind", "topic", "confidence", "importance", "valid_from")
_SOURCE = ("thread", "turns", "quote", "uri")


def of(ruling: Ruling, stored: Mapping[str, StoredMemory]) -> dict[str, bytes | None]:
    """Path to new bytes (None for a deletion); nothing for what is rejected. `stored`: the subject's memories by id.

    Raises `FormatError` where a file that people made can't take the change.
    """
    if ruling.verdict == "rejected":
        return {}
    if ruling.after is None:
        assert ruling.before is not None
        return {stored[ruling.before.id].path: None}
    there = stored.get(ruling.after.id) if ruling.before is not None else None
    if there is None:
        return {ruling.after.path: files.render_memory(ruling.after)}
    data = files.edit_memory(there.data, _changes(there.memory, ruling.after), text=_new_text(there, ruling.after))
    if files.parse_memory(there.path, data).text != ruling.after.text:
        raise FormatError("the new text would not read back", code="format")
    return {there.path: data}


def _new_text(there: StoredMemory, after: Memory) -> str | None:
    return after.text if after.text != there.memory.text else None


def _changes(before: Memory, after: Memory) -> dict[KeyPath, Any]:
    """The keys of a memory's head that an update changes."""
    changes: dict[KeyPath, Any] = {
        (key,): getattr(after, key) for key in _KEYS if getattr(before, key) != getattr(after, key)
    }
    changes |= {(key,): value for key, value in after.meta.items() if before.meta.get(key) != value}
    source = {key: getattr(after.source, key) for key in _SOURCE}
    return {
        **changes,
        ("source",): {key: list(value) if key == "turns" else value for key, value in source.items() if value},
    }


def external(memory: Memory) -> Mapping[str, Any]:
    """The ids of other systems that a memory was saved under, each with what it was saved as."""
    noted = memory.meta.get(EXTERNAL)
    return noted if isinstance(noted, dict) else {}


def with_external(memory: Memory, ids: Mapping[str, Any]) -> Memory:
    """The memory with these noted on it as well."""
    return replace(memory, meta={**memory.meta, EXTERNAL: {**external(memory), **ids}}) if ids else memory


def taken_back(memory: Memory, *, secret: bytes) -> frozenset[str]:
    """The hashes under which `reverted.yaml` remembers that a memory was forgotten: its statement, its external ids."""
    said = statement_hash(secret, memory.subject, memory.text)
    ids = external(memory).items()
    return frozenset([said, *(external_mark(secret, memory.subject, each) for each, _ in ids)]) | frozenset(
        external_mark(secret, memory.subject, each, str(saved_as)) for each, saved_as in ids
    )


def external_mark(secret: bytes, subject: str, external_id: str, saved_as: str = "") -> str:
    """The hash under which `reverted.yaml` remembers that what was saved under an external id was forgotten.

    With `saved_as` it says what was saved, whatever somebody made of the memory before it was forgotten.
    """
    return proposal_hash(secret, subject, "external", external_id, *([saved_as] if saved_as else []))


def still_marked(marks: Marks, stored: Mapping[str, StoredMemory], *, secret: bytes, subject: str) -> Marks:
    """The marks, but for the statements that stand: whoever wrote one again by hand wants it remembered."""
    if not marks.reverted and not marks.rejected:
        return marks
    shared = [each.memory for each in stored.values() if each.memory.agent is None]
    return marks.without(frozenset(mark for memory in shared for mark in taken_back(memory, secret=secret)))
