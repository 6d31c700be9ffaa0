"""The rows of one tenant, in one transaction: what is served of some files, and the watermark."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg
from psycopg import Cursor
from psycopg.rows import DictRow

from docmem import db
from docmem.errors import TryAgain
from docmem.layout import CONFIG, place
from docmem.projection import VERSION
from docmem.sql import load
from docmem.tenant_config import TenantConfig
from docmem_sync import rows
from docmem_sync.ledger import At, Standing, Waiting
from docmem_sync.reading import Broken

_SQL = partial(load, "docmem_sync", "queries.sql")
_BEFORE = -1
"""Where what an earlier sync wrote was opened, as the ledger counts commits."""


def join_at_once(cursor: Cursor[DictRow]) -> None:
    """For this transaction: join whole tables of a tenant by hashing, and not row by row."""
    cursor.execute(_SQL()["join_at_once"])


class Busy(TryAgain):
    """Another sync of the tenant is at work."""


def open_lock(connection: psycopg.Connection[Any], tenant: str) -> None:
    """Make what a sync of this tenant locks, where it isn't there yet: others see it once it is committed."""
    with db.tenant_transaction(connection, tenant) as cursor:
        Store(cursor, tenant).run("open_channel")


@dataclass(frozen=True, slots=True)
class Mark:
    """Where the index stands: at which revision, of what effective time (seconds since 1970; None: history is still to
    be filled), with which version of the projection, and with how many files."""

    revision: str
    projection: int
    recorded: int | None
    files: int | None


@dataclass(frozen=True)
class Store:
    """One tenant's rows. `cursor` comes out of `db.tenant_transaction`."""

    cursor: Cursor[DictRow]
    tenant: str

    def run(self, name: str, **values: Any) -> list[DictRow]:
        """Run a named statement of queries.sql; its rows, if it gives any."""
        self.cursor.execute(_SQL()[name], {"tenant": self.tenant, **values})
        return self.cursor.fetchall() if self.cursor.description else []

    def run_batches(self, name: str, found: Iterable[Mapping[str, Any]], **values: Any) -> None:
        """Run a statement that takes `rows`, for as many rows at a time as are handy."""
        for _, text in rows.batches(found):
            self.run(name, rows=text, **values)

    def try_lock(self) -> bool:
        """Become the one that syncs this tenant, until the transaction ends. What is locked, `open_lock` has made."""
        return bool(self.run("lock"))

    def state(self) -> Mark | None:
        """Where the index stands; None where this tenant was never synced."""
        found = self.run("state")
        return Mark(**found[0]) if found else None

    def write_state(self, at: At, *, files: int) -> None:
        """Move the watermark, in the transaction of its effect."""
        self.run("write_state", revision=at.revision, projection=VERSION, recorded=rows.time(at.seconds), files=files)
        self.run("recheck_vectors", revision=at.revision)

    # ------------------------------------------------------------------------------------------------ standing

    def memories(self, ids: Collection[str], paths: Collection[str]) -> list[DictRow]:
        """(id, path, blob, created, step) of these memories, and of those that are served from these paths.

        `path` is None for one that is served no more; one that never was isn't there.
        """
        return self.run("standing_memories", ids=list(ids), paths=list(paths))

    def profiles(self, subjects: Collection[str]) -> list[DictRow]:
        """(subject, path, blob, version, step); `version` is 0 for one that is gone."""
        return self.run("standing_profiles", subjects=list(subjects))

    def documents(self, paths: Collection[str]) -> list[DictRow]:
        """(path, blob) of those that are served."""
        return self.run("standing_documents", paths=list(paths))

    def quarantine(self) -> dict[str, tuple[Broken, At]]:
        """What waits, by path, and since which commit."""
        return {
            row["path"]: (
                Broken(row["path"], row["blob"], row["code"], row["line"], row["reason"]),
                At(_BEFORE, row["revision"], row["since"]),
            )
            for row in self.run("waiting")
        }

    def config_blob(self) -> str | None:
        """The blob of the last valid settings; None where there are none."""
        found = self.run("config")
        return found[0]["blob"] if found else None

    def language(self) -> str | None:
        """The text search configuration of the tenant's rows; None before its first settings."""
        found = self.run("config")
        return str(found[0]["language"]) if found else None

    # ------------------------------------------------------------------------------------------------- writing

    def write_config(self, config: TenantConfig, blob: str | None, revision: str) -> None:
        """Put the tenant's settings in. Another language means that every text is indexed again."""
        before = self.language()
        self.run("write_config", row=json.dumps(rows.config_row(config, blob, revision)))
        if before not in {None, config.language}:
            self.run("index_memories_again", language=config.language)
            self.run("index_documents_again", language=config.language)

    def notify(self, subjects: Collection[str] | None) -> None:
        """Tell caches, at the commit, that something about these subjects changed; None: of the whole tenant."""
        self.run("open_channel")
        self.run("notify", subjects=None if subjects is None else list(subjects))

    def carry_vectors(self, what: str, keys: Collection[str] | None) -> None:
        """Let texts (of these ids of memories or paths of documents; None: all) keep their vectors, wherever they went.

        Changed ones never keep their old. To be run before rows are deleted.
        """
        for name in (f"keep_{what}_vectors", f"forget_{what}_vectors"):
            self.run(name, keys=None if keys is None else list(keys))

    def prune(self) -> None:
        """Let traces go that are past their time."""
        self.run("prune_traces")

    def write_quarantine(self, waiting: Mapping[str, Waiting], before: Mapping[str, tuple[Broken, At]]) -> None:
        """Let exactly these files wait. `before`: those that do."""
        found = {path: (item.broken, item.since) for path, item in waiting.items()}
        released = [path for path in before if path not in found]
        if released:
            self.run("release", paths=released)
        self.run_batches(
            "quarantine",
            (
                {
                    "path": path,
                    "blob": broken.blob,
                    "code": broken.code,
                    "line": broken.line,
                    "reason": broken.reason,
                    "revision": since.revision,
                    "since": rows.time(since.seconds),
                }
                for path, (broken, since) in sorted(found.items())
                if path not in before or _differs((broken, since), before[path])
            ),
        )


def _differs(new: tuple[Broken, At], old: tuple[Broken, At]) -> bool:
    return new[0] != old[0] or new[1].revision != old[1].revision


@dataclass(frozen=True)
class Known:
    """The standing of some files and ids as it is brought in from the index, each once."""

    store: Store
    standing: Standing
    memories: dict[str, str | None]
    """Where each memory that was asked for was served when it was: a deletion is told by it."""
    profiles: dict[str, str | None]
    documents: set[str]

    @classmethod
    def begin(cls, store: Store) -> Known:
        """Nothing but what waits in quarantine."""
        found = cls(store, Standing(), {}, {}, set())
        before = store.quarantine()
        good = found.bring((), before)
        config = store.config_blob()
        found.standing.has_config = config is not None
        if config is not None:
            good[CONFIG] = config
        for path, (broken, since) in before.items():
            found.standing.waiting[path] = Waiting(broken, since, good=good.get(path))
        return found

    def grown(self) -> int:
        """How many files more are served than when they were brought in."""
        before = sum(path is not None for path in (*self.memories.values(), *self.profiles.values()))
        return self.standing.files - before - len(self.documents)

    def bring(self, ids: Collection[str], paths: Iterable[str]) -> dict[str, str]:
        """Bring in what the index has of these memories and of these paths; path to blob of what it serves there."""
        kinds: dict[str, list[str]] = {}
        for path in paths:
            kinds.setdefault(place(path).kind, []).append(path)
        good: dict[str, str] = {}
        if ids or "memory" in kinds:
            self._bring_memories(ids, kinds.get("memory", []), good)
        if "profile" in kinds:
            self._bring_profiles([place(path).subject for path in kinds["profile"]], good)
        if "document" in kinds:
            self._bring_documents(kinds["document"], good)
        return good

    def _bring_memories(self, ids: Collection[str], paths: Collection[str], good: dict[str, str]) -> None:
        for row in self.store.memories(ids, paths):
            if row["path"] is not None:
                good[row["path"]] = row["blob"]
            if row["id"] not in self.memories:
                self.memories[row["id"]] = row["path"]
                self.standing.put(row["id"], row["path"], step=row["step"], created=row["created"] or 0, opened=_BEFORE)

    def _bring_profiles(self, subjects: Collection[str], good: dict[str, str]) -> None:
        for row in self.store.profiles(subjects):
            if row["path"] is not None:
                good[row["path"]] = row["blob"]
            if row["subject"] not in self.profiles:
                self.profiles[row["subject"]] = row["path"]
                self.standing.profiles[row["subject"]] = (row["step"], row["version"], _BEFORE)

    def _bring_documents(self, paths: Collection[str], good: dict[str, str]) -> None:
        for row in self.store.documents(paths):
            good[row["path"]] = row["blob"]
            if row["path"] not in self.documents:
                self.documents.add(row["path"])
                self.standing.documents[hash(row["path"])] = _BEFORE
