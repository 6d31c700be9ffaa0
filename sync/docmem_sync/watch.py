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
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, TypeAlias, cast

from docmem import git, repository
from docmem.config import Settings
from docmem.embedding import Embedder
from docmem.errors import InvalidName, ServerUnavailable
from docmem.names import tenant_name
from docmem_sync.origins import looked_at
from docmem_sync.sync import TenantSync, sync_all

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent, FileSystemEventHandler

PASS_SECONDS = 30.0
"""How often every branch is compared with the index, poked or not."""

GLANCE_SECONDS = 1.0
"""How often the files of the branches are looked at: two `stat` a tenant."""

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
) -> None:
    """Sync `tenants` (default: all, new ones too) until `stop` is set, or SIGINT or SIGTERM comes.

    `report` gets every sync that did something or failed. A server that is away is tried again at the next pass.
    """
    from watchdog.observers import Observer

    stop = stop or threading.Event()
    pokes = _Pokes()
    folder = settings.root / "poke"
    folder.mkdir(parents=True, exist_ok=True)
    observer = Observer()
    observer.schedule(cast("FileSystemEventHandler", pokes), str(folder))
    observer.start()
    try:
        with _stopping(stop, pokes.wake), looked_at(settings, tenants):
            _loop(settings, tenants, pokes, stop, lambda names: _sync(settings, names, embedder, report))
    finally:
        observer.stop()
        observer.join()


def _loop(
    settings: Settings,
    tenants: Collection[str],
    pokes: _Pokes,
    stop: threading.Event,
    run: Callable[[Collection[str]], None],
) -> None:
    next_pass = time.monotonic()
    branches = _Branches(settings)
    while not stop.is_set():
        due = time.monotonic() >= next_pass
        poked = pokes.take()
        wanted = set(tenants or repository.tenants(settings))
        names = sorted(wanted if due else wanted & (poked | branches.moved(wanted)))
        if names:
            branches.note(names)
            run(names)
        if due:
            next_pass = time.monotonic() + PASS_SECONDS
        if pokes.wake.wait(max(0.0, min(GLANCE_SECONDS, next_pass - time.monotonic()))):
            stop.wait(_DEBOUNCE_SECONDS)


def _sync(
    settings: Settings, names: Collection[str], embedder: Embedder | None, report: Callable[[TenantSync], None]
) -> None:
    try:
        done = sync_all(settings, names, embedder=embedder)
    except ServerUnavailable as error:
        _log.warning("%s; tried again in %.0f s", error, PASS_SECONDS)
        return
    for one in done:
        if one.error or one.before != one.after or one.embedded:
            report(one)


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
