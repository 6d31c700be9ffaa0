"""Values as rows: plain JSON that one statement spreads into a table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from docmem import git, languages
from docmem.model import Document, Memory, Profile
from docmem.projection import project_document, project_memory, projection_hash
from docmem.tenant_config import TenantConfig
from docmem_sync import chunks
from docmem_sync.ledger import At, Version

_TITLE_MAX = 300
_BATCH_ROWS = 1_000
_BATCH_CHARS = 4_000_000
_NOT_IN_HISTORY = {"projection", "projection_hash", "created_at", "updated_at", "language", "version"}


def memory_row(memory: Memory, version: Version) -> dict[str, Any]:
    """The row of a memory."""
    projection = project_memory(memory)
    return {
        "id": memory.id,
        "path": memory.path,
        "blob": version.blob,
        "revision": version.at.revision,
        "subject": memory.subject,
        "agent": memory.agent,
        "kind": memory.kind,
        "topic": memory.topic,
        "text": memory.text,
        # A double that is too small for a real is an error in Postgres.
        "confidence": None if memory.confidence is None else round(memory.confidence, 6),
        "importance": memory.importance,
        "valid_from": _time(memory.valid_from),
        "valid_until": _time(memory.valid_until),
        "expires": _time(memory.expires),
        "thread": memory.source.thread,
        "turns": list(memory.source.turns),
        "quote": memory.source.quote,
        "uri": memory.source.uri,
        "supersedes": list(memory.supersedes),
        "meta": dict(memory.meta),
        "projection": projection,
        "projection_hash": projection_hash(projection),
        "created_at": time(version.created),
        "updated_at": time(version.at.seconds),
        "language": languages.configuration(memory.language),
    }


def profile_row(profile: Profile, version: Version) -> dict[str, Any]:
    """The row of a profile. Its version is the number of commits that changed what it says."""
    return {
        "subject": profile.subject,
        "path": version.path,
        "blob": version.blob,
        "revision": version.at.revision,
        "version": version.count,
        "label": profile.label,
        "preferred_language": profile.preferred_language,
        "locale": profile.locale,
        "lifecycle_stage": profile.lifecycle_stage,
        "last_interaction_at": _time(profile.last_interaction_at),
        "remember": profile.remember,
        "attributes": dict(profile.attributes),
        "pinned": list(profile.pinned),
        "meta": dict(profile.meta),
        "updated_at": time(version.at.seconds),
    }


def history_row(row: Mapping[str, Any], version: Version) -> dict[str, Any]:
    """The row of a version in the history of memories or profiles, from that of the memory or profile itself."""
    kept = {column: value for column, value in row.items() if column not in _NOT_IN_HISTORY}
    return kept | {"step": version.step, "op": version.op, "recorded_from": time(version.at.seconds)}


def document_rows(document: Document, blob: str, at: At) -> list[dict[str, Any]]:
    """The rows of a document, one a chunk."""
    # The title goes into every chunk's projection: a heading of a megabyte would come back by the gigabyte.
    title = document.title[:_TITLE_MAX]
    pieces = chunks.split(document.text)
    befores = ["", *map(chunks.overlap, pieces, pieces[1:])]
    return [
        _chunk_row(replace(document, title=title, text=text), before, number, blob, at)
        for number, (text, before) in enumerate(zip(pieces, befores, strict=True))
    ]


def _chunk_row(document: Document, before: str, chunk: int, blob: str, at: At) -> dict[str, Any]:
    projection = project_document(document.title, document.text, before=before)
    return {
        "path": document.path,
        "chunk": chunk,
        "id": document_id(document.path),
        "blob": blob,
        "revision": at.revision,
        "folder": document.folder,
        "title": document.title,
        "text": document.text,
        "meta": dict(document.meta),
        "projection": projection,
        "projection_hash": projection_hash(projection),
        "updated_at": time(at.seconds),
        "language": languages.configuration(document.language),
    }


def document_id(path: str) -> str:
    """16 hex digits that stand for a document in a packet's spans."""
    return hashlib.sha256(path.encode()).hexdigest()[:16]


def config_row(config: TenantConfig, blob: str | None, revision: str) -> dict[str, Any]:
    """The row of a tenant's settings. Retention is in seconds, null for ever."""
    policies = config.policies
    retention = {kind: getattr(policies.retention, kind) for kind in type(policies.retention).model_fields}
    return {
        "config": config.model_dump(mode="json"),
        "language": config.language,
        "retention": {kind: age and int(age.total_seconds()) for kind, age in retention.items()},
        "budgets": asdict(policies.budgets),
        "weights": asdict(policies.weights),
        "blob": blob,
        "revision": revision,
    }


DEFAULT_CONFIG = TenantConfig(format=1)
"""What holds for a tenant without a readable docmem.yaml."""


def batches(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Sequence[Mapping[str, Any]], str]]:
    """Rows in handy numbers, each with its JSON."""
    batch: list[Mapping[str, Any]] = []
    texts: list[str] = []
    size = 0
    for row in rows:
        text = json.dumps(row, ensure_ascii=False)
        if batch and (len(batch) >= _BATCH_ROWS or size + len(text) > _BATCH_CHARS):
            yield batch, f"[{','.join(texts)}]"
            batch, texts, size = [], [], 0
        batch.append(row)
        texts.append(text)
        size += len(text)
    if batch:
        yield batch, f"[{','.join(texts)}]"


@lru_cache(maxsize=1024)  # many rows are of one commit
def time(seconds: int) -> str:
    """Seconds since 1970 as Postgres reads a time."""
    return git.time(seconds).isoformat()


def _time(when: datetime | None) -> str | None:
    return when.isoformat() if when is not None else None
