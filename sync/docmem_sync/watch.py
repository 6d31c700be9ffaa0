"""Sync when something changes: `docmem sync --watch`.

The engine and the post-receive hook touch `$DOCMEM_ROOT/poke/<tenant>`. One watch on that folder hears them all: a
watch a repo would be a thread a repo. Who moves a branch without a poke (a store that has no hook, a person's own git
in it) is seen by a glance at each branch's file, and since events get lost every branch is compared now and then too.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import psycopg

from docmem import db, git, repository
from docmem.config import Settings
from docmem.embedding import Embedder
from docmem.errors import DocmemError, InvalidName, ServerUnavailable
from docmem.names import tenant_name
from docmem_sync.backlog import Backlog, settle
from docmem_sync.embed import Embedded, is_current
from docmem_sync.metrics import Metrics
from docmem_sync.origins import looked_at
from docmem_sync.sync import TenantSync, connected, mirror

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent, FileSystemEventHandler

PASS_SECONDS = 30.0
"""How often every branch is compared with the index, poked or not."""

GLANCE_SECONDS = 1.0
"""How often the files of the branches are looked at: two `stat` a tenant."""

AWAY_SECONDS = 2.0
"""How long a Postgres that is away is left alone."""

CLOSE_SECONDS = 10.0
"""How long a call to a model is waited for at the end."""

_PASS_BATCH = 4
_DEBOUNCE_SECONDS = 0.05
_log = logging.getLogger("docmem.sync")


class _Pokes:
    """The tenants that were touched since they were last taken: a handler of watchdog's."""

    def __init__(self) -> None:
        self._tenants: set[str] = set()
        self._lock = threading.Lock()
        self.wake = threading.Event()

    def dispatch(self, event: FileSystemEvent) -> None:
        if event.is_directory or event.event_type in {"opened", "closed_no_write"}:
            return
        try:
            tenant = tenant_name(Path(str(event.src_path)).name)
        except InvalidName:
            return
        with self._lock:
            self._tenants.add(tenant)
        self.wake.set()

    def take(self) -> set[str]:
        with self._lock:
            taken, self._tenants = self._tenants, set()
            self.wake.clear()
        return taken


class _Branches:
    """What the files that hold each tenant's main looked like when the tenant was synced last."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._seen: dict[str, tuple[_Looks, _Looks]] = {}

    def note(self, tenants: Iterable[str]) -> None:
        """Remember how they look now; before they are synced, so that what moves meanwhile is seen."""
        self._seen |= {tenant: self._looks(tenant) for tenant in tenants}

    def moved(self, tenants: Iterable[str]) -> set[str]:
        """Those that look otherwise than when they were noted; new ones too."""
        return {tenant for tenant in tenants if self._looks(tenant) != self._seen.get(tenant)}

    def _looks(self, tenant: str) -> tuple[_Looks, _Looks]:
        git_dir = self._settings.tenants / f"{tenant}.git"
        return _looks(git_dir / git.MAIN), _looks(git_dir / "packed-refs")


_Looks: TypeAlias = tuple[int, int, int] | None


def _looks(path: Path) -> _Looks:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def watch(
    settings: Settings,
    tenants: Collection[str] = (),
    *,
    report: Callable[[TenantSync], None],
    embedder: Embedder | None = None,
    stop: threading.Event | None = None,
    metrics: Metrics | None = None,
) -> None:
    """Sync `tenants` (default: all, new ones too) until `stop` is set, or SIGINT or SIGTERM comes.

    `report` gets every sync that did something or failed. A server that is away is tried again, and said once. Vectors
    are made aside, so that a model's slowness delays no row.
    """
    from watchdog.observers import Observer

    stop = stop or threading.Event()
    pokes = _Pokes()
    folder = settings.root / "poke"
    folder.mkdir(parents=True, exist_ok=True)
    enricher = _Enricher(settings, embedder, stop, metrics) if embedder is not None else None
    syncs = _Syncs(settings, report, metrics, enricher)
    observer = Observer()
    observer.schedule(cast("FileSystemEventHandler", pokes), str(folder))
    observer.start()
    try:
        with _stopping(stop, pokes.wake), looked_at(settings, tenants):
            _loop(_Due(settings, tenants), pokes, stop, syncs)
    finally:
        observer.stop()
        observer.join()
        syncs.close()
        if enricher is not None:
            stop.set()
            enricher.close()


class _Due:
    """Which tenants to look at next: those that moved before those whose turn in the pass over all it is."""

    def __init__(self, settings: Settings, tenants: Collection[str]) -> None:
        self._settings = settings
        self._only = tenants
        self._branches = _Branches(settings)
        self._wanted: set[str] = set()
        self._moved: set[str] = set()
        self._behind: deque[str] = deque()
        self._next_pass = self._next_glance = time.monotonic()

    def next(self, poked: Collection[str]) -> list[str]:
        """Who is next; none where all is done. A pass goes a few at a time, so that it holds up no commit."""
        now = time.monotonic()
        self._moved |= set(poked)
        if now >= self._next_glance or not self._moved <= self._wanted:
            is_first = not self._wanted
            self._wanted = set(self._only or repository.tenants(self._settings))
            if is_first:  # the first pass comes to all of them, and commits go first
                self._branches.note(self._wanted)
            self._moved = (self._moved & self._wanted) | self._branches.moved(self._wanted)
            self._next_glance = now + GLANCE_SECONDS
        if now >= self._next_pass:
            self._behind = deque(sorted(self._wanted))
            self._next_pass = now + PASS_SECONDS
        names = sorted(self._moved) or [self._behind.popleft() for _ in range(min(_PASS_BATCH, len(self._behind)))]
        self._moved = set()
        self._branches.note(names)
        return names

    def again(self, names: Iterable[str]) -> None:
        """These couldn't be synced: they are due at once."""
        self._moved |= set(names)

    def pause(self) -> float:
        """Seconds until somebody may be due who isn't poked."""
        return 0.0 if self._moved or self._behind else max(0.0, self._next_glance - time.monotonic())


def _loop(due: _Due, pokes: _Pokes, stop: threading.Event, syncs: _Syncs) -> None:
    while not stop.is_set():
        names = due.next(pokes.take())
        left = syncs.run(names)
        if left:
            due.again(left)
            stop.wait(AWAY_SECONDS)
        elif pokes.wake.wait(due.pause()):
            stop.wait(_DEBOUNCE_SECONDS)


class _Syncs:
    """Syncs tenants on a connection that is kept, and made again where it breaks."""

    def __init__(
        self,
        settings: Settings,
        report: Callable[[TenantSync], None],
        metrics: Metrics | None,
        enricher: _Enricher | None,
    ) -> None:
        self._settings = settings
        self._report = report
        self._metrics = metrics
        self._enricher = enricher
        self._stack = ExitStack()
        self._connection: psycopg.Connection[Any] | None = None
        self._away = False

    def run(self, names: Sequence[str]) -> Sequence[str]:
        """Sync these; returns those that couldn't be for want of a server."""
        for number, tenant in enumerate(names):
            try:
                self._tell(self._sync(tenant))
            except ServerUnavailable as error:
                if not self._away:
                    _log.warning("%s; tried again every %.0f s", error, AWAY_SECONDS)
                self._away = True
                self.close()
                return names[number:]
            self._away = False
        return ()

    def _sync(self, tenant: str) -> TenantSync:
        if self._connection is None:
            self._connection = self._stack.enter_context(connected(self._settings))
        with db.explained(self._connection):
            return mirror(self._settings, self._connection, tenant)

    def _tell(self, done: TenantSync) -> None:
        if done.error is not None or done.before != done.after:
            self._report(done)
        if self._metrics is not None:
            self._metrics.sync(done)
        if self._enricher is not None and done.error is None and not self._is_embedded(done):
            self._enricher.add([done.tenant])

    def _is_embedded(self, done: TenantSync) -> bool:
        """Whether an unchanged tenant has all its vectors: thousands of those mustn't stand in the line of a few."""
        assert self._enricher is not None
        if done.outcome != "unchanged" or self._connection is None:
            return False
        with db.explained(self._connection):
            return is_current(self._connection, done.tenant, model=self._enricher.model)

    def close(self) -> None:
        """Leave the connection."""
        self._connection = None
        with suppress(DocmemError, psycopg.Error):
            self._stack.close()


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
