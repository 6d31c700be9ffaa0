"""`docmem checkout --live`: watch a checkout, and take a step of `WorkTree` whenever something was saved.

Events only say that, and where, somebody writes; what changed is read from the files, so a lost event, a folder that
moved or a queue that ran over costs no more than a look at all of them. docmem's own writes find nothing to commit.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, cast

from docmem import checkout, git
from docmem.config import Settings
from docmem.errors import AlreadyExists
from docmem.worktree import CAP_SECONDS, QUIET_SECONDS, Said, WorkTree

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers.api import BaseObserver, ObservedWatch

NEAR_SECONDS = 0.5
"""How often a store on this machine is looked at."""
FAR_SECONDS = 10.0
"""How often a remote is asked."""
SCAN_SECONDS = 15.0
"""How often all files are looked at, whatever events there were: events get lost."""

_IGNORED = {"opened", "closed_no_write"}


@dataclass(frozen=True, slots=True)
class _Writing:
    """A file that events are coming from. Times are monotonic."""

    first: float
    last: float


class Saves:
    """Which files somebody is writing: a handler of watchdog's."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writing: dict[str, _Writing] = {}
        self._lock = threading.Lock()
        self.wake = threading.Event()

    def dispatch(self, event: FileSystemEvent) -> None:
        """Note an event."""
        if event.event_type in _IGNORED:
            return
        paths = [self._relative(path) for path in (event.src_path, event.dest_path) if path]
        for path in paths:
            if path is not None:
                self.note(path, now=time.monotonic())

    def note(self, path: str, *, now: float) -> None:
        """Something happened to `path`."""
        with self._lock:
            known = self._writing.get(path) or _Writing(now, now)
            self._writing[path] = replace(known, last=now)
        self.wake.set()

    def due(self, now: float) -> bool:
        """Whether some file is written by now; such files are forgotten."""
        with self._lock:
            done = [path for path, writing in self._writing.items() if not _is_busy(writing, now)]
            for path in done:
                del self._writing[path]
        return bool(done)

    def busy(self) -> set[str]:
        """The files that are still written to."""
        with self._lock:
            return set(self._writing)

    def _relative(self, path: str | bytes) -> str | None:
        with contextlib.suppress(ValueError):
            found = Path(os.fsdecode(path)).relative_to(self._folder).as_posix()
            return None if found == "." or found.split("/")[0] == ".git" else found
        return None


def _is_busy(writing: _Writing, now: float) -> bool:
    return now - writing.first < CAP_SECONDS and now - writing.last < QUIET_SECONDS


def live(
    settings: Settings,
    tenant: str,
    folder: Path,
    *,
    report: Callable[[Said], None],
    stop: threading.Event | None = None,
) -> None:
    """Watch a checkout of `tenant` until `stop` is set, or SIGINT or SIGTERM comes; what is saved then is settled.

    Raises `AlreadyExists` where another process watches it.
    """
    from watchdog.observers import Observer

    stop = stop or threading.Event()
    folder = folder.resolve()
    tree = WorkTree(folder, settings, tenant, git.person(folder), checkout.store_of(folder))
    saves = Saves(folder)
    with _alone(tree.git_dir / "docmem-live.lock", folder), _stopping(stop, saves.wake):
        # watchdog says so of a folder that is made, dropped and made again within moments; it watches the new one.
        warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)
        observer = Observer()
        observer.start()
        try:
            _loop(tree, _Watch(observer, saves, folder), stop, report)
        finally:
            observer.stop()
            observer.join()


class _Watch:
    """Hears of saves in a work tree; `.git` is left out, where git makes and drops folders by the second."""

    def __init__(self, observer: BaseObserver, saves: Saves, folder: Path) -> None:
        self._observer, self.saves, self._folder = observer, saves, folder
        self._watched: dict[Path, ObservedWatch] = {folder: self._watch(folder, recursive=False)}

    def follow(self) -> bool:
        """Watch the folders that are new at the top; whether there were any."""
        there = {each for each in self._folder.iterdir() if each.name != ".git" and each.is_dir()}
        for gone in set(self._watched) - there - {self._folder}:
            self._observer.unschedule(self._watched.pop(gone))
        fresh = there - set(self._watched)
        for each in fresh:
            with contextlib.suppress(OSError):  # gone again
                self._watched[each] = self._watch(each, recursive=True)
        return bool(fresh)

    def _watch(self, folder: Path, *, recursive: bool) -> ObservedWatch:
        return self._observer.schedule(cast("FileSystemEventHandler", self.saves), str(folder), recursive=recursive)


def _loop(tree: WorkTree, watch: _Watch, stop: threading.Event, report: Callable[[Said], None]) -> None:
    saves = watch.saves
    tree.recover()
    every = NEAR_SECONDS if tree.is_near() else FAR_SECONDS
    next_look = next_scan = time.monotonic()
    while not stop.is_set():
        now = time.monotonic()
        saved, scan, look = saves.due(now) or bool(tree.waits), now >= next_scan, now >= next_look
        scan = watch.follow() or scan
        if look:
            next_look = now + every
            look = scan or tree.upstream_moved()
        if saved or scan or look:
            for said in tree.settle(saves.busy(), look=look):
                report(said)
            next_scan = time.monotonic() + SCAN_SECONDS
        saves.wake.clear()
        pause = QUIET_SECONDS / 2 if saves.busy() or tree.waits else max(0.0, next_look - time.monotonic())
        saves.wake.wait(pause)
    time.sleep(QUIET_SECONDS)  # what was saved last is no half-written file
    for said in tree.settle():
        report(said)


@contextlib.contextmanager
def _alone(lock: Path, folder: Path) -> Iterator[None]:
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyExists(f"{folder} is live already, in another process", hint="one is enough") from None
        yield


@contextlib.contextmanager
def _stopping(stop: threading.Event, wake: threading.Event) -> Iterator[None]:
    """SIGINT and SIGTERM end it after the step at work; in other threads the caller's event does."""

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
