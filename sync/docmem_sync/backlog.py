"""Tenants whose texts may lack vectors, each in its turn: a long backlog of one doesn't delay another's."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import psycopg

from docmem import db
from docmem.config import Settings
from docmem.embedding import Embedder
from docmem_sync import hot
from docmem_sync.embed import Embedded, embed
from docmem_sync.store import Store

TURN = 512
"""Texts of one tenant's turn."""

REFUSED_SECONDS = 86_400.0
"""How long a text that the model refused isn't asked for again."""


@dataclass(frozen=True, slots=True)
class _Refused:
    """Hashes of a tenant's texts that the model refuses, known since a time (monotonic seconds)."""

    since: float
    hashes: list[str] = field(default_factory=list)


class Backlog:
    """Who waits, and how many texts each got embedded so far. Safe between threads; turns are taken by one.

    `settle` is called when a tenant's texts are done and some were embedded, `report` after each turn.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        settle: Callable[[str, Embedded], None],
        report: Callable[[str, Embedded], None] | None = None,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self.counts: dict[str, int] = {}
        self._embedder = embedder
        self._settle = settle
        self._report = report
        self._pause = pause
        self._waiting: deque[str] = deque()
        self._lock = threading.Lock()
        self._refused: dict[str, _Refused] = {}

    def add(self, tenants: Iterable[str]) -> None:
        """Let these wait for a turn too."""
        with self._lock:
            self._waiting.extend(tenant for tenant in tenants if tenant not in self._waiting)

    def turn(self, connection: psycopg.Connection[Any]) -> bool:
        """Give the next one its turn; false where nobody waits, or the model is away and all go on waiting."""
        with self._lock:
            if not self._waiting:
                return False
            tenant = self._waiting.popleft()
        refused = self._refused_by(tenant)
        done = embed(connection, tenant, embedder=self._embedder, limit=TURN, refused=refused, pause=self._pause)
        self.counts[tenant] = self.counts.get(tenant, 0) + done.count
        if self._report is not None:
            self._report(tenant, done)
        if done.count:  # a reader that kept a packet finds more now
            with db.tenant_transaction(connection, tenant) as cursor:
                Store(cursor, tenant).notify(None)
        if done.away:
            with self._lock:
                self._waiting.appendleft(tenant)
            return False
        if done.left:
            self.add([tenant])
        elif done.count or done.replaced:
            self._settle(tenant, done)
        return True

    def _refused_by(self, tenant: str) -> list[str]:
        known, now = self._refused.get(tenant), time.monotonic()
        if known is None or now - known.since > REFUSED_SECONDS:
            known = self._refused[tenant] = _Refused(now)
        return known.hashes

    @property
    def waits(self) -> bool:
        """Whether somebody waits."""
        with self._lock:
            return bool(self._waiting)


def settle(settings: Settings, connection: psycopg.Connection[Any], tenant: str, done: Embedded) -> None:
    """What is to be done about a tenant's index once its texts are embedded."""
    hot.settle(settings, connection, tenant, replaced=done.replaced)
