"""An index brought along: what the commits since the last sync open and close, gathered and then written at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from docmem.layout import CONFIG, profile_path
from docmem.model import Document, Memory, Profile
from docmem.tenant_config import TenantConfig
from docmem_sync import rows
from docmem_sync.ledger import At, Version
from docmem_sync.store import Known, join_at_once

_FEW = 100
"""As many rows are found one by one: more are joined at once."""


@dataclass
class Along:
    """A book (see `ledger.Book`) in which the last word on each row counts. `None` is a row that goes."""

    memories: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    profiles: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    documents: dict[str, list[dict[str, Any]] | None] = field(default_factory=dict)
    settings: tuple[TenantConfig, str, str] | None = None
    _opened: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {"memory": [], "profile": []})
    _closed: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {"memory": [], "profile": []})
    _superseded: dict[tuple[str, int], str] = field(default_factory=dict)

    def begin(self, at: At) -> None:
        """See `ledger.Book`."""

    def memory(self, version: Version, memory: Memory) -> None:
        """See `ledger.Book`."""
        row = rows.memory_row(memory, version)
        self.memories[memory.id] = row
        self._opened["memory"].append(rows.history_row(row, version))

    def end_memory(self, memory: str, step: int, at: At) -> None:
        """See `ledger.Book`."""
        self.memories[memory] = None
        self._closed["memory"].append(_closing(memory, step, at))

    def supersede(self, memory: str, step: int, by: str, at: At) -> None:
        """See `ledger.Book`."""
        self._superseded.setdefault((memory, step), by)

    def profile(self, version: Version, profile: Profile) -> None:
        """See `ledger.Book`."""
        row = rows.profile_row(profile, version)
        self.profiles[profile.subject] = row
        self._opened["profile"].append(rows.history_row(row, version))

    def end_profile(self, subject: str, step: int, at: At) -> None:
        """See `ledger.Book`."""
        self.profiles[subject] = None
        self._closed["profile"].append(_closing(subject, step, at))

    def document(self, at: At, blob: str, document: Document) -> None:
        """See `ledger.Book`."""
        self.documents[document.path] = rows.document_rows(document, blob, at)

    def end_document(self, path: str) -> None:
        """See `ledger.Book`."""
        self.documents[path] = None

    def config(self, at: At, blob: str, config: TenantConfig) -> None:
        """See `ledger.Book`."""
        self.settings = (config, blob, at.revision)

    # ------------------------------------------------------------------------------------------------- what it comes to

    def deleted(self, known: Known) -> dict[str, str]:
        """The rows that go: ids of memories and paths of others, to their paths."""
        memories = {memory: known.memories.get(memory) for memory, row in self.memories.items() if row is None}
        profiles = (profile_path(subject) for subject, row in self.profiles.items() if row is None)
        served = {*known.profiles.values(), *known.documents}
        documents = (path for path, found in self.documents.items() if found is None)
        found = {memory: path for memory, path in memories.items() if path is not None}
        return found | {path: path for path in (*profiles, *documents) if path in served}

    def touched(self, known: Known) -> list[str]:
        """The paths of all that changed: those that go, those that come, and where what moved came from."""
        before = (known.memories.get(memory) for memory in self.memories)
        found = (row for rows_ in (self.memories, self.profiles) for row in rows_.values() if row is not None)
        settings = [CONFIG] if self.settings is not None else []
        paths = {path for path in before if path is not None} | {row["path"] for row in found}
        return [*paths, *map(profile_path, self.profiles), *self.documents, *settings]

    def upserts(self) -> int:
        """How many files are written."""
        found = (self.memories, self.profiles, self.documents)
        return sum(row is not None for each in found for row in each.values())

    def write(self, known: Known) -> None:
        """Write it all. Deletions last: rows take their vectors along, and a text that moved keeps its own."""
        store = known.store
        if self.settings is not None:
            store.write_config(*self.settings)
        language = store.language()
        memories = [row for row in self.memories.values() if row is not None]
        documents = [row for found in self.documents.values() for row in found or ()]
        store.run_batches("upsert_memories", memories, language=language)
        store.run_batches("upsert_profiles", (row for row in self.profiles.values() if row is not None))
        store.run_batches("upsert_documents", documents, language=language)
        if memories:
            store.carry_vectors("memory", [row["id"] for row in memories])
        if documents:
            store.carry_vectors("document", [path for path, found in self.documents.items() if found])
        store.run_batches("shorten_documents", _lengths(self.documents))
        self._delete(known)
        if self.memories or self.documents:
            store.run("list_languages")
        self._write_history(known)

    def _delete(self, known: Known) -> None:
        for name, found in (
            ("delete_memories", self.memories),
            ("delete_profiles", self.profiles),
            ("delete_documents", self.documents),
        ):
            keys = [key for key, row in found.items() if row is None]
            if keys:
                known.store.run(name, keys=keys)

    def _write_history(self, known: Known) -> None:
        store = known.store
        if sum(map(len, self._closed.values())) > _FEW:
            join_at_once(store.cursor)
        for kind in ("memory", "profile"):
            store.run_batches(f"open_{kind}_history", self._opened[kind])
            store.run_batches(f"close_{kind}_history", self._closed[kind])
        marks = ({"id": memory, "step": step, "by": by} for (memory, step), by in self._superseded.items())
        store.run_batches("supersede", marks)


def _closing(key: str, step: int, at: At) -> dict[str, Any]:
    return {"key": key, "step": step, "closed_revision": at.revision, "recorded_to": rows.time(at.seconds)}


def _lengths(documents: Mapping[str, list[dict[str, Any]] | None]) -> list[dict[str, Any]]:
    return [{"path": path, "chunks": len(found)} for path, found in documents.items() if found]
