"""Rows of an index without a repo behind them, for benchmarks and checks that need very many of them."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from docmem import db, layout
from docmem.packet import path_id
from docmem.sql import load
from docmem_sync import chunks

_SQL = partial(load, "docmem_evals", "served_rows.sql")
_BATCH = 5_000
REVISION = "a" * 40


def memory(tenant: str, subject: str, text: str, *, number: int, rng: random.Random) -> dict[str, Any]:
    """A memory's row: of any kind, some days old."""
    memory_id = hashlib.sha256(f"{tenant}/{subject}/{number}".encode()).hexdigest()[:16]
    return {
        "id": memory_id,
        "path": layout.memory_path(subject, memory_id, "memory"),
        "subject": subject,
        "kind": rng.choices(("fact", "preference", "episode", "decision"), (6, 1, 2, 1))[0],
        "text": text,
        "importance": rng.randrange(1, 11),
        "days": rng.random() * 80,
    }


def document(path: str, text: str, *, verdict: str | None = None) -> list[dict[str, Any]]:
    """A document's rows, one a chunk."""
    meta = {} if verdict is None else {"verdict": verdict}
    pieces = enumerate(chunks.split(text))
    return [{"path": path, "chunk": at, "id": path_id(path), "text": piece, "meta": meta} for at, piece in pieces]


def fill(
    connection: Any,
    tenant: str,
    memories: Sequence[Mapping[str, Any]],
    *,
    profiles: Mapping[str, Mapping[str, str]] | None = None,
    documents: Sequence[Mapping[str, Any]] = (),
    tokens: int = 1500,
) -> None:
    """Put a tenant's rows in, as the sync role; `profiles`: attributes by subject; `documents`: chunks (`document`)."""
    shown = [
        {"subject": subject, "path": layout.profile_path(subject), "attributes": dict(attributes)}
        for subject, attributes in (profiles or {}).items()
    ]
    with db.tenant_transaction(connection, tenant) as cursor:
        values = {"tenant": tenant, "revision": REVISION}
        cursor.execute(_SQL()["state"], values)
        cursor.execute(_SQL()["config"], {**values, "budgets": json.dumps({"tokens": tokens})})
        cursor.execute(_SQL()["channel"], values)
        cursor.execute(_SQL()["profiles"], {**values, "rows": json.dumps(shown)})
        cursor.execute(_SQL()["documents"], {**values, "rows": json.dumps(list(documents))})
        for at in range(0, len(memories), _BATCH):
            cursor.execute(_SQL()["memories"], {**values, "rows": json.dumps(memories[at : at + _BATCH])})
