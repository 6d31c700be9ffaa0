"""What sync changed, heard as it is committed, so that a cache may keep a packet for longer than a moment.

Everybody on a server hears a channel, so what is said there is hashed with a key that only the tenant's own rows hold.
Behind a transaction pooler LISTEN is accepted and then silent for ever; so the listener sends itself something now and
then, over another connection, and counts as deaf until it has come back.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from typing import Any

import psycopg

from docmem import db, threads
from docmem.config import Settings
from docmem.errors import DocmemError

PROBE_SECONDS = 10.0
"""How often it sends itself something; how long it may have gone deaf unnoticed."""

_ANSWER_SECONDS = 1.0
_PAUSES = (0.1, 5.0)
_TENANTS = 10_000
_PROBE = "? "


def name_of(key: str, what: str) -> str:
    """What a notification calls a subject, or `tenant` itself: 16 hex digits; `key` is the tenant's channel's."""
    return sha256(f"{key}{what}".encode()).hexdigest()[:16]


class Listener:
    """Hears the channel in a thread of its own, which never raises and reconnects by itself.

    `changed(tenant, subjects)` is called with hashed names, `subjects` None for all of them; `lost()` when nobody knows
    any more what was missed. Both are called with `lock` held. `tell` sends a payload over another connection.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        tell: Callable[[str], None],
        changed: Callable[[str, frozenset[str] | None], None],
        lost: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._tell = tell
        self._changed = changed
        self._lost = lost
        self.lock = threading.Lock()
        self._count = 0
        self._floor = 0
        self._last: dict[str, int] = {}
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._connection: psycopg.Connection[Any] | None = None
        self.hears = False
        """Whether what changes is heard, by proof."""

    def start(self) -> None:
        """Begin to listen, once."""
        if self._thread is None:
            with self.lock:
                if self._thread is None and not self._stop.is_set():
                    self._thread = threads.aside(self._run, name="docmem-listen")  # or the next packet starts it

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=2.0)

    def mark(self) -> int | None:
        """How much was heard so far, for `is_news`; None while nothing is heard."""
        return self._count if self.hears else None

    def is_news(self, tenant: str, since: int) -> bool:
        """Whether something of this tenant (its hashed name) was heard after `since`. Ask with `lock` held."""
        return max(self._last.get(tenant, 0), self._floor) > since

    def _run(self) -> None:
        pause = _PAUSES[0]
        while not self._stop.is_set():
            try:
                with closing(db.listen(self._settings)) as connection:
                    self._hear(connection)
                pause = _PAUSES[0]
            except (DocmemError, psycopg.Error, OSError):
                # The turns say what is wrong; without a listener they only keep packets for a shorter time.
                pause = min(2 * pause, _PAUSES[1])
            finally:
                self._deaf()  # a thread that ends here by anything else isn't believed to hear for ever
            self._stop.wait(pause)

    def _hear(self, connection: psycopg.Connection[Any]) -> None:
        sent, due = "", time.monotonic()
        while not self._stop.is_set():
            if time.monotonic() >= due:
                if sent:
                    self._deaf()
                sent = secrets.token_hex(8)
                if not self._probe(sent):
                    sent = "-"
                due = time.monotonic() + _ANSWER_SECONDS
            for notice in connection.notifies(timeout=min(0.2, max(0.0, due - time.monotonic())), stop_after=1):
                if notice.payload == _PROBE + sent:
                    sent, due = "", time.monotonic() + PROBE_SECONDS
                    self.hears = True
                elif not notice.payload.startswith(_PROBE):
                    self._take(notice.payload)

    def _probe(self, token: str) -> bool:
        try:
            self._tell(_PROBE + token)
        except DocmemError:
            return False
        return True

    def _take(self, payload: str) -> None:
        tenant, *subjects = payload.split() or [""]  # anybody on the server may say anything, or nothing
        with self.lock:
            self._count += 1
            if len(self._last) >= _TENANTS:
                self._last.clear()
                self._floor = self._count
            self._last[tenant] = self._count
            self._changed(tenant, None if subjects in ([], ["*"]) else frozenset(subjects))

    def _deaf(self) -> None:
        with self.lock:
            if self.hears:
                self.hears = False
                self._count += 1
                self._floor = self._count
                self._lost()
