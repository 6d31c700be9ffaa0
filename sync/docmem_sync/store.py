"""The rows of one tenant, in one transaction: read what a plan needs, write what it decided."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from psycopg import Cursor
from psycopg.rows import DictRow

from docmem.layout import place
from docmem.model import Document, Memory, Profile
from docmem.projection import VERSION
from docmem.sql import load
from docmem.tenant_config import TenantConfig
from docmem_sync import rows
from docmem_sync.plan import Index, Plan, Row, Waiting
from docmem_sync.reading import Broken
from docmem_sync.trace import Trace

_SQL = partial(load, "docmem_sync", "queries.sql")


@dataclass(frozen=True, slots=True)
class Mark:
    """Where the index stands: at which revision, and with which version of the projection."""

    revision: str
    projection: int


@dataclass(frozen=True)
class Store:
    """One tenant's rows. `cursor` comes out of `db.tenant_transaction`."""

    cursor: Cursor[DictRow]
    tenant: str

    def run(self, name: str, **values: Any) -> list[DictRow]:
        """Run a named statement of queries.sql; its rows, if it gives any."""
        self.cursor.execute(_SQL()[name], {"tenant": self.tenant, **values})
        return self.cursor.fetchall() if self.cursor.description else []

    def try_lock(self) -> bool:
        """Become the one that syncs this tenant, until the transaction ends."""
        return bool(self.run("lock")[0]["locked"])

    def state(self) -> Mark | None:
        """Where the index stands; None where this tenant was never synced."""
        found = self.run("state")
        return Mark(**found[0]) if found else None

    def index(self, paths: Iterable[str] | None) -> Index:
        """What is there of these files; of all files without `paths`."""
        if paths is None:
            found = self.run("all_rows")
        else:
            listed = list(paths)
            subjects = [place(path).subject for path in listed if place(path).kind == "profile"]
            found = self.run("rows_of", paths=listed, subjects=subjects)
        config = self.run("config")
        return Index(
            rows={row["key"]: Row(**row) for row in found},
            waiting={row["path"]: Waiting(**row) for row in self.run("waiting")},
            config_blob=config[0]["blob"] if config else None,
            served=self.served(),
        )

    def with_memories(self, index: Index, ids: Collection[str]) -> Index:
        """The index with the rows of these memories too, wherever their files stand."""
        missing = [memory for memory in ids if memory not in index.rows]
        found = self.run("memories_of", ids=missing) if missing else []
        more = {row["key"]: Row(**row) for row in found}
        return Index({**index.rows, **more}, index.waiting, index.config_blob, index.served)

    def served(self) -> int:
        """How many files the index serves."""
        return int(self.run("served")[0]["served"])

    def waiting(self) -> list[Waiting]:
        """The files in quarantine, by path."""
        return [Waiting(**row) for row in self.run("waiting")]

    def language(self) -> str | None:
        """The text search configuration of the tenant's rows; None before its first settings."""
        found = self.run("config")
        return str(found[0]["language"]) if found else None

    def write_config(self, config: TenantConfig, blob: str | None, revision: str) -> None:
        """Put the tenant's settings in. Another language means that every text is indexed again."""
        before = self.language()
        self.run("write_config", row=json.dumps(rows.config_row(config, blob, revision)))
        if before not in {None, config.language}:
            self.run("index_memories_again", language=config.language)
            self.run("index_documents_again", language=config.language)

    def apply(self, plan: Plan, traces: Mapping[tuple[str, int], Trace], revision: str) -> None:
        """Write what the plan decided. Deletions first: a path or an id may pass to another file."""
        self._delete(plan.delete)
        language = self.language()
        found = [(item, traces[item.key, item.commit]) for item in plan.serve]
        memories = [
            rows.memory_row(item.value, item.blob, trace) for item, trace in found if isinstance(item.value, Memory)
        ]
        profiles = [
            rows.profile_row(item.value, item.path, item.blob, trace)
            for item, trace in found
            if isinstance(item.value, Profile)
        ]
        documents = [
            row
            for item, trace in found
            if isinstance(item.value, Document)
            for row in rows.document_rows(item.value, item.blob, trace)
        ]
        self._shorten(documents)
        for batch, text in rows.batches(memories):
            self.run("upsert_memories", rows=text, language=language)
            self.run("forget_memory_vectors", keys=[row["id"] for row in batch])
        for _, text in rows.batches(profiles):
            self.run("upsert_profiles", rows=text)
        for batch, text in rows.batches(documents):
            self.run("upsert_documents", rows=text, language=language)
            self.run("forget_document_vectors", keys=list({row["path"] for row in batch}))
        if plan.serve or plan.delete:
            self.run("list_languages")
        self._quarantine(plan.quarantine, revision)
        if plan.release:
            self.run("release", paths=list(plan.release))

    def restamp(self, changed: Sequence[tuple[Row, Trace]]) -> None:
        """Give rows whose files are as they were what history says of them now."""
        for _, text in rows.batches(_stamp(row, trace) for row, trace in changed):
            for name in ("restamp_memories", "restamp_profiles", "restamp_documents"):
                self.run(name, rows=text)

    def write_state(self, revision: str) -> None:
        """Move the watermark, in the transaction of its effect."""
        self.run("write_state", revision=revision, projection=VERSION)
        self.run("recheck_vectors", revision=revision)

    def notify(self, subjects: Collection[str] | None) -> None:
        """Tell caches, at the commit, that something about these subjects changed; None: of the whole tenant."""
        self.run("open_channel")
        self.run("notify", subjects=None if subjects is None else list(subjects))

    def prune(self) -> None:
        """Let traces go that are past their time."""
        self.run("prune_traces")

    def _delete(self, deleted: Sequence[Row]) -> None:
        kinds: dict[str, list[str]] = {}
        for row in deleted:
            kinds.setdefault(place(row.path).kind, []).append(row.key)
        for kind, name in (
            ("memory", "delete_memories"),
            ("profile", "delete_profiles"),
            ("document", "delete_documents"),
        ):
            if kind in kinds:
                self.run(name, keys=kinds[kind])

    def _shorten(self, documents: Sequence[Mapping[str, Any]]) -> None:
        counts: dict[str, int] = {}
        for row in documents:
            counts[row["path"]] = row["chunk"] + 1
        for _, text in rows.batches({"path": path, "chunks": count} for path, count in counts.items()):
            self.run("shorten_documents", rows=text)

    def _quarantine(self, broken: Sequence[Broken], revision: str) -> None:
        found = (
            {"path": item.path, "blob": item.blob, "code": item.code, "line": item.line, "reason": item.reason}
            for item in broken
        )
        for _, text in rows.batches(found):
            self.run("quarantine", rows=text, revision=revision)


def _stamp(row: Row, trace: Trace) -> dict[str, Any]:
    return {
        "key": row.key,
        "revision": trace.revision,
        "version": trace.changes,
        "created_at": trace.created.isoformat(),
        "updated_at": trace.updated.isoformat(),
    }
