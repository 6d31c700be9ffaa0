"""Hear the pokes: who moved a branch touches `$DOCMEM_ROOT/poke/<tenant>`.

One watch on that folder hears them all: a watch a repo would be a thread a repo.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from docmem.errors import InvalidName
from docmem.names import tenant_name

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers.api import ObservedWatch

SETTLE_SECONDS = 0.05
"""How long a touch is left alone: it is heard as several events."""

_log = logging.getLogger("docmem.sync")


class Pokes:
    """The tenants that were touched since they were last taken: a handler of watchdog's. `wake` is set at each."""

    def __init__(self, folder: Path, wake: threading.Event) -> None:
        from watchdog.observers import Observer

        self._folder = folder
        self._wake = wake
        self._touched: dict[str, float] = {}
        self._lock = threading.Lock()
        self._observer = Observer()
        self._observer.start()
        self._watch: ObservedWatch | None = None
        self._held: int | None = None  # the folder that is heard, kept open: its inode passes to no other meanwhile
        self._trouble = ""

    def listen(self) -> bool:
        """Hear the folder, anew where it isn't the one that is heard: it was deleted, or moved away. Whether it is."""
        if self._is_heard():
            return False
        if self._held is not None and not self._trouble:
            _log.warning("%s is not the folder any more that was watched: it is watched anew", self._folder)
        self._leave()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._watch = self._observer.schedule(cast("FileSystemEventHandler", self), str(self._folder))
            self._held = os.open(self._folder, os.O_RDONLY)
        except OSError as error:
            if str(error) != self._trouble:
                _log.warning("pokes aren't heard, commits are seen within a second or so: %s", error)
            self._trouble = str(error)
            return False
        self._trouble = ""
        return True

    def _is_heard(self) -> bool:
        if self._held is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._held), self._folder.stat())
        except OSError:
            return False

    def _leave(self) -> None:
        if self._watch is not None:
            with suppress(KeyError):
                self._observer.unschedule(self._watch)
        if self._held is not None:
            os.close(self._held)
        self._watch = self._held = None

    def dispatch(self, event: FileSystemEvent) -> None:
        """Called by watchdog, in its thread."""
        if event.event_type in {"opened", "closed_no_write"}:
            return
        if event.is_directory:
            self._wake.set()  # it may be the folder itself that goes
            return
        try:
            tenant = tenant_name(Path(str(event.src_path)).name)
        except InvalidName:
            return
        with self._lock:
            self._touched.setdefault(tenant, time.monotonic())
        self._wake.set()

    def take(self) -> set[str]:
        """Those whose touch has settled."""
        ripe = time.monotonic() - SETTLE_SECONDS
        with self._lock:
            taken = {tenant for tenant, at in self._touched.items() if at <= ripe}
            for tenant in taken:
                del self._touched[tenant]
        return taken

    def pause(self) -> float:
        """Seconds until the next has settled; infinite where nobody was touched."""
        with self._lock:
            first = min(self._touched.values(), default=float("inf"))
        return max(0.0, first + SETTLE_SECONDS - time.monotonic())

    def close(self) -> None:
        """Hear nothing more."""
        self._leave()
        self._observer.stop()
        self._observer.join()
