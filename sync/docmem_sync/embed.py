"""Vectors for rows that have none: after the rows are served, in batches, best effort.

A set holds the vectors of one model, dimension and projection. A tenant's first set serves as it grows; another model's
is built beside it, and serves once every text was tried. Until then the old one serves whoever still asks with the old
model, and words serve the others; vectors of two sets are never compared.
"""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import psycopg
from psycopg.rows import DictRow

from docmem import db
from docmem.config import Settings
from docmem.embedding import Embedder, EmbedderMissing, TextRefused, checked, parallel, set_name
from docmem.errors import ConfigError, DocmemError, ModelUnavailable
from docmem.patience import Patience
from docmem.sql import load
from docmem_sync import hot
from docmem_sync.store import join_at_once

BATCH = 64
"""Texts that are embedded and stored at a time: what a crash or an outage loses."""

SLICE = 1_024
"""Texts that are looked up at a time."""

GRACE = 86_400
"""Seconds that a replaced set stays, for processes that still ask with its model."""

PATIENCE = Patience(tries=3, first_pause=0.5, longest_pause=20.0)

AGAIN = "+"
"""What the name of a set ends with while it is made anew beside the one that serves."""

_REFUSALS = 8
_PROBE = "docmem"
"""A text that no model has a reason to refuse: one that does refuses everything."""
_SQL = partial(load, "docmem_sync", "embed.sql")
_log = logging.getLogger("docmem.sync")
_metrics = logging.getLogger("docmem.metrics")

Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Embedded:
    """What came of it: texts that got a vector; whether `limit` ended it with more to do; whether the model is away.

    `replaced`: sets that were dropped and had an index.
    """

    count: int = 0
    left: bool = False
    away: bool = False
    replaced: tuple[str, ...] = ()


def embed(
    connection: psycopg.Connection[Any],
    tenant: str,
    *,
    embedder: Embedder,
    limit: int | None = None,
    again: bool = False,
    refused: list[str] | None = None,
    pause: Callable[[float], object] = time.sleep,
) -> Embedded:
    """Embed what isn't yet, at most about `limit` texts. A model that fails ends it for now: the next call goes on.

    `again`: into a set beside the one there is; see `reembed`. `refused`: hashes of texts that the model is known to
    refuse, and isn't asked for; those that it refuses now are added.
    """
    started = time.monotonic()
    known = [] if refused is None else refused
    done = _embed(_Work(connection, tenant, embedder, pause, known), again=again, limit=limit)
    if done != Embedded():
        seconds = time.monotonic() - started
        told = "embed tenant=%s texts=%d left=%s away=%s seconds=%.3f"
        _metrics.info(told, tenant, done.count, done.left, done.away, seconds)
    return done


def _embed(work: _Work, *, again: bool, limit: int | None) -> Embedded:
    tenant, known = work.tenant, len(work.refused)
    try:
        work.dimension = work.embedder.dimension
        left = work.run(set_name(work.embedder, work.dimension) + (AGAIN if again else ""), limit)
        return Embedded(work.count, left, replaced=tuple(work.replaced))
    except (DocmemError, psycopg.DataError, psycopg.errors.ProgramLimitExceeded) as error:
        if isinstance(error, TextRefused):  # of everything: no text is the reason
            del work.refused[known:]
        _log.warning("%s: texts stay without vectors for now: %s", tenant, str(error).splitlines()[0])
        return Embedded(work.count, away=isinstance(error, ModelUnavailable | ConfigError))
    except psycopg.Error:
        raise
    except Exception as error:  # noqa: BLE001 an embedder may be anybody's code, and rows are served without it
        _log.warning("%s: the embedder failed: %s: %s", tenant, type(error).__name__, error)
        return Embedded(work.count, away=True)


def is_current(connection: psycopg.Connection[Any], tenant: str, *, model: str) -> bool:
    """Whether nothing is to be embedded, told without asking the model or counting rows."""
    with db.tenant_transaction(connection, tenant) as cursor:
        row = cursor.execute(_SQL()["current"], {"tenant": tenant, "model": model}).fetchone()
    return bool(row and row["current"])


def pending(connection: psycopg.Connection[Any], tenant: str, *, model: str) -> int:
    """How many rows have no vector of this model."""
    with db.tenant_transaction(connection, tenant) as cursor:
        join_at_once(cursor)
        row = cursor.execute(_SQL()["pending"], {"tenant": tenant, "model": model}).fetchone()
    return int(row["pending"]) if row else 0


def reembed(
    settings: Settings, connection: psycopg.Connection[Any], tenant: str, *, embedder: Embedder, again: bool = False
) -> tuple[int, int]:
    """Give every text a vector of this model now; returns how many were made and how many texts are without one.

    `again`: also those that have one, beside it; the new ones take over together, once all are there.
    """
    done = embed(connection, tenant, embedder=embedder, again=again)
    if not again:
        return done.count, pending(connection, tenant, model=embedder.model)
    name = set_name(embedder)
    left = pending(connection, tenant, model=name + AGAIN)
    if left == 0:
        hot.drop(settings, connection, tenant, name)  # vectors that move in one by one would take it minutes
        _take_over(connection, tenant, name)
    return done.count, left


def _take_over(connection: psycopg.Connection[Any], tenant: str, name: str) -> None:
    with db.tenant_transaction(connection, tenant) as cursor:
        for statement in _DROP:
            cursor.execute(_SQL()[statement], {"tenant": tenant, "set": name})
        for statement in ("rename_memory_vectors", "rename_document_vectors", "rename_set"):
            cursor.execute(_SQL()[statement], {"tenant": tenant, "set": name + AGAIN, "to": name})


_DROP = ("drop_memory_vectors", "drop_document_vectors", "drop_set")
_SELECT: Mapping[str, str] = {"memory": "memories_without_vector", "document": "documents_without_vector"}
_WHOLE = frozenset({*_SELECT.values(), "settle"})
"""What joins all of a tenant's texts with their vectors."""
_WRITE: Mapping[str, str] = {"memory": "write_memory_vectors", "document": "write_document_vectors"}


@dataclass
class _Work:
    """One tenant's texts and one model."""

    connection: psycopg.Connection[Any]
    tenant: str
    embedder: Embedder
    pause: Callable[[float], object]
    refused: list[str]
    count: int = 0
    dimension: int = 0
    set: str = ""
    replaced: list[str] = field(default_factory=list)
    _known: int = 0
    _accepted: int = 0

    def run(self, name: str, limit: int | None) -> bool:
        """Embed into the set of this name; whether there is more to do."""
        self.set, self._known = name, len(self.refused)
        if self._is_current():
            return False
        for what in ("memory", "document"):
            if self._embed(what, limit):
                return True
        self._settle()
        return False

    def _is_current(self) -> bool:
        found = self._ask("standing")
        if not found:
            self._ask("open_set")
            return False
        [standing] = found
        if standing["stale"]:
            self._ask("touch")
        if standing["others"] and standing["serves"]:
            self._drop_replaced()
        return bool(standing["current"])

    def _settle(self) -> None:
        self._ask("settle")
        self._drop_replaced()
        if len(self.refused) > self._known:
            model = self.embedder.model
            _log.warning("%s: %s refuses %d texts; words find them", self.tenant, model, len(self.refused))

    def _drop_replaced(self) -> None:
        for row in self._ask("replaced_sets", grace=GRACE):
            with db.tenant_transaction(self.connection, self.tenant) as cursor:
                for statement in _DROP:
                    cursor.execute(_SQL()[statement], {"tenant": self.tenant, "set": row["set"]})
            self.replaced += [row["set"]] if row["indexed"] else []
            _log.info("%s: the vectors of %s are replaced, and dropped", self.tenant, row["set"])

    def _embed(self, what: str, limit: int | None) -> bool:
        """Embed rows of a kind; whether `limit` left some."""
        while limit is None or self.count < limit:
            size = SLICE if limit is None else min(SLICE, limit - self.count)
            rows = self._ask(_SELECT[what], refused=self.refused, limit=size)
            if not rows:
                return False
            before = self.count, len(self.refused)
            for batch in self._vectors([rows[at : at + BATCH] for at in range(0, len(rows), BATCH)]):
                self.count += self._write(what, batch)
            if before == (self.count, len(self.refused)):  # every one of them was changed or deleted meanwhile
                return False
        return True

    def _write(self, what: str, rows: Sequence[Row]) -> int:
        with db.tenant_transaction(self.connection, self.tenant) as cursor:
            cursor.execute(_SQL()[_WRITE[what]], {"tenant": self.tenant, "set": self.set, "rows": json.dumps(rows)})
            return cursor.rowcount

    def _ask(self, name: str, **values: Any) -> list[DictRow]:
        with db.tenant_transaction(self.connection, self.tenant) as cursor:
            if name in _WHOLE:
                join_at_once(cursor)
            cursor.execute(_SQL()[name], {"tenant": self.tenant, "set": self.set, **values})
            return cursor.fetchall() if cursor.description else []

    def _vectors(self, batches: Sequence[Sequence[Row]]) -> Iterator[list[Row]]:
        """Each batch with its vectors as it comes, a few asked for at a time. What came before a failure is given."""
        waiting, most = deque(batches), parallel(self.embedder)
        failure: BaseException | None = None
        running: set[Future[list[Row]]] = set()
        with ThreadPoolExecutor(most, thread_name_prefix="docmem-embed") as pool:
            while running or (waiting and failure is None):
                while waiting and failure is None and len(running) < most:
                    running.add(pool.submit(self._embedded, waiting.popleft()))
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    failure = failure or future.exception()
                    if future.exception() is None:
                        yield future.result()
        if failure is not None:
            raise failure

    def _embedded(self, rows: Sequence[Row]) -> list[Row]:
        try:
            vectors = self._patiently([row["projection"] for row in rows])
        except TextRefused:
            if len(rows) > 1:  # one of them is the reason, and the others needn't wait for it
                half = len(rows) // 2
                return [*self._embedded(rows[:half]), *self._embedded(rows[half:])]
            self._refuse(rows[0])
            return []
        self._accepted += len(rows)
        return [
            {**{key: value for key, value in row.items() if key != "projection"}, "embedding": json.dumps(vector)}
            for row, vector in zip(rows, vectors, strict=True)
        ]

    def _refuse(self, row: Row) -> None:
        """Note a refused text. Raises `TextRefused` where the model refuses everything."""
        self.refused.append(row["projection_hash"])
        if len(self.refused) - self._known > _REFUSALS and not self._accepted:
            self._accepted += len(self._patiently([_PROBE]))

    def _patiently(self, texts: Sequence[str]) -> list[list[float]]:
        number = 0
        while True:
            number += 1
            try:
                return checked(self.embedder.passages(texts), count=len(texts), dimension=self.dimension)
            except EmbedderMissing:
                raise
            except ModelUnavailable as error:
                wait = PATIENCE.pause(number, error.retry_after)
                if wait is None:
                    raise
                self.pause(wait)
