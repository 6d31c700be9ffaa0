"""Vectors for rows that have none: after the rows are served, in batches, best effort."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import psycopg

from docmem import db
from docmem.embedding import Embedder, set_name
from docmem.errors import DocmemError, ModelReplyError
from docmem.sql import load

BATCH = 64
"""Texts that are embedded and stored at a time: what a crash or an outage loses."""

_SQL = partial(load, "docmem_sync", "embed.sql")
_log = logging.getLogger("docmem.sync")


def embed(connection: psycopg.Connection[Any], tenant: str, *, embedder: Embedder) -> int:
    """Embed what isn't yet; returns how many. A model that fails ends it for now: the next sync goes on."""
    done = 0
    try:
        name = set_name(embedder)
        for what in ("memory", "document"):
            for stored in _batches(connection, tenant, embedder, name, what=what):
                done += stored
    except (DocmemError, psycopg.DataError, psycopg.errors.ProgramLimitExceeded) as error:
        _log.warning("%s: texts stay without vectors for now: %s", tenant, str(error).splitlines()[0])
    except psycopg.Error:
        raise
    except Exception as error:  # noqa: BLE001 an embedder may be anybody's code, and rows are served without it
        _log.warning("%s: the embedder failed: %s: %s", tenant, type(error).__name__, error)
    return done


def pending(connection: psycopg.Connection[Any], tenant: str, *, model: str) -> int:
    """How many rows have no vector of this model."""
    with db.tenant_transaction(connection, tenant) as cursor:
        row = cursor.execute(_SQL()["pending"], {"tenant": tenant, "model": model}).fetchone()
    return int(row["pending"]) if row else 0


def _batches(
    connection: psycopg.Connection[Any], tenant: str, embedder: Embedder, name: str, *, what: str
) -> Iterator[int]:
    """Embed and store batch after batch; gives how many rows each stored."""
    while True:
        values = {"tenant": tenant, "set": name, "limit": BATCH}
        with db.tenant_transaction(connection, tenant) as cursor:
            rows = cursor.execute(_SQL()[_SELECT[what]], values).fetchall()
        if not rows:
            return
        vectors = _vectors(embedder, [row.pop("projection") for row in rows])
        found = [{**row, "embedding": vector} for row, vector in zip(rows, vectors, strict=True)]
        with db.tenant_transaction(connection, tenant) as cursor:
            cursor.execute(_SQL()[_WRITE[what]], {**values, "rows": json.dumps(found)})
            stored = cursor.rowcount
        yield stored
        if stored == 0:  # every one of them was changed or deleted meanwhile
            return


_SELECT: Mapping[str, str] = {"memory": "memories_without_vector", "document": "documents_without_vector"}
_WRITE: Mapping[str, str] = {"memory": "write_memory_vectors", "document": "write_document_vectors"}


def _vectors(embedder: Embedder, texts: Sequence[str]) -> list[str]:
    vectors = embedder.passages(texts)
    if len(vectors) != len(texts) or any(len(vector) != embedder.dimension for vector in vectors):
        raise ModelReplyError(f"{embedder.model} doesn't give one vector of {embedder.dimension} numbers a text")
    return [json.dumps(list(vector)) for vector in vectors]
