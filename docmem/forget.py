"""Forget a memory, or all that is known about a subject: one commit that takes the files away, and can be reverted.

What was forgotten is remembered as a hash in `reverted.yaml`, so that the same statement is held if it is proposed
again. The bytes stay in history: see `erasure` for taking them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from docmem import edits, erasure, files, git, layout, trailers
from docmem.errors import FormatError, NotFound
from docmem.git import Author
from docmem.repository import Repository, Snapshot


@dataclass(frozen=True, slots=True)
class Plan:
    """What forgetting writes on revision `base`. `gone`: the paths that go."""

    base: str
    files: Mapping[str, bytes | None]
    gone: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was forgotten, and in which commit."""

    revision: str
    gone: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The object of `forget --json`."""
        return {"revision": self.revision, "changed": list(self.gone)}


def plan(repository: Repository, wanted: str) -> Plan:
    """What forgetting a subject or a memory means today. Changes nothing. Raises `NotFound`, `InputError`."""
    now = repository.snapshot()
    target = erasure.find(repository, wanted)
    paths = (
        now.locate(target.value)
        if target.kind == "memory"
        else sorted(git.files(repository.git_dir, now.revision, layout.subject_dir(target.value)))
    )
    if not paths:
        raise NotFound(
            f"nothing of {wanted!r} is remembered now",
            hint=f"its past stands in history: docmem log {repository.tenant}; to take it out: docmem erase",
        )
    written: dict[str, bytes | None] = dict.fromkeys(paths)
    return Plan(now.revision, written | _marks(repository, now, paths), tuple(paths))


def _marks(repository: Repository, now: Snapshot, paths: list[str]) -> dict[str, bytes]:
    said = {mark for path in paths for mark in _statement(repository, now, path)}
    marks = replace(now.marks, reverted=now.marks.reverted | said)
    return {layout.REVERTED: files.render_reverted(marks)} if marks != now.marks else {}


def _statement(repository: Repository, now: Snapshot, path: str) -> set[str]:
    if layout.place(path).kind != "memory":
        return set()
    try:
        memory = files.parse_memory(path, now.read(path) or b"")
    except FormatError:
        return set()
    return set(edits.taken_back(memory, secret=repository.settings.secret_bytes()))


def apply(repository: Repository, wanted: str, *, now: datetime, author: Author) -> Forgotten:
    """Forget a subject or a memory in one commit. Raises what `plan` raises."""
    with repository.locked():
        planned = plan(repository, wanted)
        counted = sum(layout.place(path).kind in {"memory", "profile", "document"} for path in planned.gone)
        message = trailers.message("Forget", {"Docmem-Deletes": str(counted)})
        revision = repository.commit(planned.base, planned.files, message=message, now=now, author=author)
    return Forgotten(revision, planned.gone)
