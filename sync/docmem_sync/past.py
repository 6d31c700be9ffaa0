"""What the index remembers of the past: what it served at a time, and to whom it gave a memory last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from docmem import db, files, postgres
from docmem.config import Settings
from docmem.errors import DocmemError, NotFound
from docmem.history import Remembered
from docmem.model import Memory
from docmem.repository import StoredMemory
from docmem.splice import KeyPath
from docmem.sql import load
from docmem.times import format_time

_SQL = partial(load, "docmem_sync", "past.sql")
_CORE = ("label", "preferred_language", "locale", "lifecycle_stage")


def remembered(
    settings: Settings, tenant: str, when: datetime, subject: str | None = None
) -> tuple[str, list[Remembered]]:
    """(the revision that the index is at, what it served about a subject, or about each, at a time).

    The same as `history.remembered` says of the revision of that time, but for a file that couldn't be read then: here
    it stands as it was served, which is as it said last. A profile is written out anew from its columns. Raises
    `NotFound` for a tenant that was never synced, and what `db.connect` raises.
    """
    named = {"tenant": tenant, "at": when, "subject": subject}
    with db.session(settings, "reader") as connection, db.tenant_transaction(connection, tenant) as cursor:
        db.check_schema(connection)
        synced = cursor.execute(_SQL()["synced"], named).fetchone()
        memories = cursor.execute(_SQL()["memories_at"], named).fetchall()
        profiles = {row["subject"]: row for row in cursor.execute(_SQL()["profiles_at"], named)}
    if synced is None:
        raise NotFound(f"tenant {tenant} is not in the index", hint=f"docmem sync {tenant}")
    subjects = {row["subject"] for row in memories} | profiles.keys()
    wanted = sorted(subjects) if subject is None else [subject]
    return synced["revision"], [_remembered(each, memories, profiles.get(each)) for each in wanted]


def _remembered(subject: str, memories: list[dict[str, Any]], profile: Mapping[str, Any] | None) -> Remembered:
    stored = tuple(
        StoredMemory(_memory(row), row["path"], row["blob"], b"") for row in memories if row["subject"] == subject
    )
    label = profile["label"] if profile is not None else None
    return Remembered(subject, label, stored, _text(profile) if profile is not None else "")


def _memory(row: Mapping[str, Any]) -> Memory:
    return Memory(
        id=row["id"], kind=row["kind"], text=row["text"], subject=row["subject"], path=row["path"],
        agent=row["agent"], topic=row["topic"],
    )  # fmt: skip


def _text(profile: Mapping[str, Any]) -> str:
    called = profile["last_interaction_at"]
    keys: dict[KeyPath, Any] = {(key,): profile[key] for key in _CORE if profile[key] is not None}
    keys |= {("last_interaction_at",): format_time(called)} if called is not None else {}
    keys |= {("remember",): False} if not profile["remember"] else {}
    keys |= {("attributes", key): value for key, value in profile["attributes"].items()}
    keys |= {("pinned",): list(profile["pinned"])} if profile["pinned"] else {}
    keys |= {(key,): value for key, value in profile["meta"].items()}
    return files.edit_yaml(b"", keys).decode()


@dataclass(frozen=True, slots=True)
class Served:
    """That an agent was given a memory: in which run last, when, and how often in all."""

    agent: str
    run: int
    uses: int
    at: datetime

    def as_json(self) -> dict[str, Any]:
        """A row of `why --json`'s `served`."""
        return {"agent": self.agent, "run": self.run, "uses": self.uses, "at": format_time(self.at)}


def served(settings: Settings, tenant: str, memory: str) -> list[Served] | None:
    """Where a memory was served, the latest first; None where no index can be asked now. Starts no server."""
    try:
        if not settings.external and postgres.running(settings) is None:
            return None
        with db.session(settings, "reader") as connection, db.tenant_transaction(connection, tenant) as cursor:
            db.check_schema(connection)
            return [Served(**row) for row in cursor.execute(_SQL()["served"], {"tenant": tenant, "memory": memory})]
    except DocmemError:
        return None
