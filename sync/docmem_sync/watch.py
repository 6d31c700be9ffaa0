"""Sync when something changes: `docmem sync --watch`.

The engine and the post-receive hook touch `$DOCMEM_ROOT/poke/<tenant>`, which is heard at once. Who moves a branch
without a poke (a store that has no hook, a person's own git in it) is seen by a glance at each branch's file, and since
events get lost every branch is compared now and then too. Several tenants are synced at once, and nobody waits for one
that somebody else syncs.
"""

from __future__ import annotations

import logging
import math
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from queue import SimpleQueue
from types import FrameType
from typing import Any

import psycopg

from docmem import db
from docmem.config import Settings
from docmem.embedding import Embedder
from docmem.errors import DocmemError, ServerUnavailable, TryAgain
from docmem_sync.backlog import Backlog, settle
from docmem_sync.due import Due
from docmem_sync.embed import Embedded, is_current
from docmem_sync.metrics import Metrics
from docmem_sync.origins import looked_at
from docmem_sync.pokes import Pokes
from docmem_sync.store import Busy
from docmem_sync.sync import JOBS, TenantSync, connected, mirror

AWAY_SECONDS = 2.0
"""How long a Postgres that is away is left alone."""

BUSY_SECONDS = 0.2
"""How long a tenant is left alone that somebody else syncs."""

LONG_SECONDS = 1.0
"""A sync at work for longer doesn't count towards the limit any more: others go past it."""

CLOSE_SECONDS = 10.0
"""How long a call to a model is waited for at the end."""

_MOST = 4
"""So many times the limit are at work at most, however long they take."""
_SAID_AFTER_SECONDS = 10.0
_log = logging.getLogger("docmem.sync")


def watch(
    settings: Settings,
    tenants: Collection[str] = (),
    *,
    report: Callable[[TenantSync], None],
    embedder: Embedder | None = None,
    stop: threading.Event | None = None,
    metrics: Metrics | None = None,
    jobs: int = JOBS,
) -> None:
    """Sync `tenants` (default: all, new ones too), `jobs` at once, until `stop` is set, or SIGINT or SIGTERM comes.

    `report` gets every sync that did something or failed, one at a time. A server that is away is tried again, and said
    once. Vectors are made aside, so that a model's slowness delays no row.
    """
    stop = stop or threading.Event()
    wake = threading.Event()
    pokes = Pokes(settings.root / "poke", wake)
    enricher = _Enricher(settings, embedder, stop, metrics) if embedder is not None else None
    crew = _Crew(settings, report, metrics, enricher, jobs, wake)
    try:
        with _stopping(stop, wake), looked_at(settings, tenants):
            _loop(Due(settings, tenants), pokes, stop, crew, wake, metrics)
    finally:
        pokes.close()
        crew.close()
        if enricher is not None:
            stop.set()
            enricher.close()


def _loop(
    due: Due, pokes: Pokes, stop: threading.Event, crew: _Crew, wake: threading.Event, metrics: Metrics | None
) -> None:
    while not stop.is_set():
        wake.clear()
        if pokes.listen():
            due.look()
        for tenant, pause in crew.ended():
            if pause is not None:
                due.again(tenant, pause=pause)
        for tenant in _next(due, pokes, crew):
            crew.begin(tenant)
        if metrics is not None:
            metrics.keep(due.tenants)
        wake.wait(min(due.pause(), pokes.pause(), crew.pause()))


def _next(due: Due, pokes: Pokes, crew: _Crew) -> Iterator[str]:
    """Who begins now, each named once the one before has begun."""
    while names := due.next(pokes.take(), room=crew.room(), pass_room=crew.pass_room(), at_work=crew.at_work):
        yield from names


class _Crew:
    """Syncs several tenants at once, each in a thread and a session of its own.

    One that takes long is soon gone past, so that the first sync of a large tenant holds up no commit of another.
    """

    def __init__(
        self,
        settings: Settings,
        report: Callable[[TenantSync], None],
        metrics: Metrics | None,
        enricher: _Enricher | None,
        jobs: int,
        wake: threading.Event,
    ) -> None:
        self.at_work: dict[str, float] = {}
        self._jobs = jobs
        self._report = report
        self._metrics = metrics
        self._enricher = enricher
        self._wake = wake
        self._settings = settings
        self._sessions = _Sessions(settings, keep=jobs)
        self._pool = ThreadPoolExecutor(_MOST * jobs, thread_name_prefix="docmem-sync")
        self._ended: SimpleQueue[tuple[str, Future[float | None]]] = SimpleQueue()
        self._telling = threading.Lock()
        self._waiting: dict[str, float] = {}  # since when somebody else has synced it
        self._told: set[str] = set()
        self._is_away = False
        self._away_until = 0.0

    def room(self) -> int:
        """How many more tenants may begin now."""
        if time.monotonic() < self._away_until:
            return 0
        return min(self._jobs - len(self._short()), _MOST * self._jobs - len(self.at_work))

    def pass_room(self) -> int:
        """How many more of the pass over all: it leaves room for commits."""
        return min(self.room(), max(1, self._jobs // 2) - len(self._short()))

    def pause(self) -> float:
        """Seconds until there may be more room, but for one that ends, which wakes; infinite where there is room."""
        if self.room() > 0:
            return math.inf
        free = max(self._away_until, min(self._short(), default=0.0) + LONG_SECONDS)
        return max(0.01, free - time.monotonic())

    def _short(self) -> list[float]:
        long_ago = time.monotonic() - LONG_SECONDS
        return [began for began in self.at_work.values() if began > long_ago]

    def begin(self, tenant: str) -> None:
        """Sync this one, aside."""
        self.at_work[tenant] = time.monotonic()
        self._pool.submit(self._run, tenant).add_done_callback(partial(self._end, tenant))

    def _end(self, tenant: str, done: Future[float | None]) -> None:
        self._ended.put((tenant, done))
        self._wake.set()

    def ended(self) -> Iterator[tuple[str, float | None]]:
        """Those that ended, with the seconds after which they are to be tried again, if at all. A bug is raised."""
        while not self._ended.empty():
            tenant, done = self._ended.get()
            del self.at_work[tenant]
            yield tenant, done.result()

    # ---------------------------------------------------------------------------------------- in a thread of the pool

    def _run(self, tenant: str) -> float | None:
        try:
            with self._sessions.one() as connection:
                done = mirror(self._settings, connection, tenant, patience=0.0)
                if isinstance(done.error, Busy):
                    return self._wait(tenant)
                is_embedded = self._is_embedded(done, connection)
        except ServerUnavailable as error:
            self._leave_alone(error)
            return AWAY_SECONDS
        self._is_away = False
        self._waiting.pop(tenant, None)
        return self._tell(done, is_embedded)

    def _leave_alone(self, error: ServerUnavailable) -> None:
        with self._telling:
            if not self._is_away:
                _log.warning("%s; tried again every %.0f s", error, AWAY_SECONDS)
            self._is_away = True
            self._away_until = time.monotonic() + AWAY_SECONDS
        self._sessions.close()

    def _wait(self, tenant: str) -> float:
        """Somebody else syncs it: it is tried again soon."""
        now = time.monotonic()
        since = self._waiting.setdefault(tenant, now)
        if since <= now - _SAID_AFTER_SECONDS:
            _log.warning("%s: another sync is at work for %.0f s; its commits wait", tenant, now - since)
            self._waiting[tenant] = math.inf
        return BUSY_SECONDS

    def _tell(self, done: TenantSync, is_embedded: bool) -> float | None:
        again = AWAY_SECONDS if isinstance(done.error, TryAgain) else None
        with self._telling:
            if (done.error is not None or done.before != done.after) and not (again and done.tenant in self._told):
                self._report(done)
            (self._told.add if again else self._told.discard)(done.tenant)
            if self._metrics is not None:
                self._metrics.sync(done)
        if self._enricher is not None and done.error is None and not is_embedded:
            self._enricher.add([done.tenant])
        return again

    def _is_embedded(self, done: TenantSync, connection: psycopg.Connection[Any]) -> bool:
        """Whether an unchanged tenant has all its vectors: thousands of those mustn't stand in the line of a few."""
        if self._enricher is None or done.outcome != "unchanged":
            return False
        with db.explained(connection):
            return is_current(connection, done.tenant, model=self._enricher.model)

    def close(self) -> None:
        """Wait for those at work, and leave the sessions."""
        self._pool.shutdown(cancel_futures=True)
        self._sessions.close()


class _Sessions:
    """Sync sessions, of which some are kept for whoever needs one next."""

    def __init__(self, settings: Settings, *, keep: int) -> None:
        self._settings = settings
        self._keep = keep
        self._idle: list[tuple[ExitStack, psycopg.Connection[Any]]] = []
        self._opening = threading.Lock()  # the first brings the schema up to date

    @contextmanager
    def one(self) -> Iterator[psycopg.Connection[Any]]:
        """A session; after a failure it isn't used again. Raises what `connected` raises."""
        stack, connection = self._take() or self._open()
        try:
            yield connection
        except BaseException:
            _close(stack)
            raise
        if connection.closed or len(self._idle) >= self._keep:
            _close(stack)
        else:
            self._idle.append((stack, connection))

    def _take(self) -> tuple[ExitStack, psycopg.Connection[Any]] | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _open(self) -> tuple[ExitStack, psycopg.Connection[Any]]:
        stack = ExitStack()
        with self._opening:
            return stack, stack.enter_context(connected(self._settings))

    def close(self) -> None:
        """Leave those that nobody uses."""
        while (left := self._take()) is not None:
            _close(left[0])


def _close(stack: ExitStack) -> None:
    with suppress(DocmemError, psycopg.Error):
        stack.close()


class _Enricher:
    """Makes vectors in a thread of its own, and the indexes of large sets in another."""

    def __init__(self, settings: Settings, embedder: Embedder, stop: threading.Event, metrics: Metrics | None) -> None:
        self.model = embedder.model
        self._settings = settings
        self._stop = stop
        self._wake = threading.Event()
        report = metrics.embedding if metrics is not None else None
        self._backlog = Backlog(embedder, settle=self._settle_aside, report=report, pause=stop.wait)
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="docmem-index")
        self._thread = threading.Thread(target=self._run, name="docmem-enrich", daemon=True)
        self._thread.start()

    def add(self, tenants: Iterable[str]) -> None:
        """These may have texts without vectors."""
        self._backlog.add(tenants)
        self._wake.set()

    def close(self) -> None:
        """End after the call at work. `stop` is set. A provider that hangs isn't waited for: it holds no row up."""
        self._wake.set()
        self._thread.join(timeout=CLOSE_SECONDS)
        self._aside.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        pauses = iter(_pauses())
        while not self._stop.is_set():
            self._wake.wait()
            self._wake.clear()
            try:
                with db.session(self._settings, "sync") as connection:
                    while not self._stop.is_set() and self._backlog.turn(connection):
                        pauses = iter(_pauses())
            except DocmemError as error:
                _log.warning("no vectors for now: %s", error)
            if self._backlog.waits and not self._stop.wait(next(pauses)):
                self._wake.set()

    def _settle_aside(self, tenant: str, done: Embedded) -> None:
        self._aside.submit(self._settle, tenant, done)

    def _settle(self, tenant: str, done: Embedded) -> None:
        try:
            with db.session(self._settings, "sync") as connection:
                settle(self._settings, connection, tenant, done)
        except DocmemError as error:
            _log.warning("%s: the index over its vectors can't be seen to: %s", tenant, error)


def _pauses() -> Iterator[float]:
    """How long to leave a model or a server alone that was away: ever longer, a minute at most."""
    pause = 1.0
    while True:
        yield pause
        pause = min(2 * pause, 60.0)


@contextmanager
def _stopping(stop: threading.Event, wake: threading.Event) -> Iterator[None]:
    """SIGINT and SIGTERM end the watch after the sync at work; in other threads the caller's event does."""

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()
        wake.set()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
