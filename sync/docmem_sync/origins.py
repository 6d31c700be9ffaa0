"""Look at the tenants' origins now and then, while `sync --watch` runs: what others pushed there is served here too.

In a thread of its own, since a host that doesn't answer must not hold up what is served.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from docmem import repository
from docmem.config import Settings

LOOK_SECONDS = 30.0
"""How long a host is left alone between two looks."""

_PATIENCE_SECONDS = 1.0
_log = logging.getLogger("docmem.sync")


@contextmanager
def looked_at(settings: Settings, tenants: Collection[str]) -> Iterator[None]:
    """Bring these tenants (none named: all) and their origins together, again and again while the block runs.

    A commit that came wakes the watch, as any other does. What goes wrong is logged when it begins, and is what
    `docmem status` tells until it is over.
    """
    stop = threading.Event()
    thread = threading.Thread(target=_look, args=(settings, tenants, stop), daemon=True, name="docmem-origins")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_PATIENCE_SECONDS)  # one that waits for a host is left behind: a crash there loses nothing


def _look(settings: Settings, tenants: Collection[str], stop: threading.Event) -> None:
    told: dict[str, str] = {}
    while not stop.is_set():
        failed = repository.exchange_all(settings, tenants or repository.tenants(settings))
        for tenant, error in failed.items():
            if told.get(tenant) != error.message:
                _log.warning("%s: origin: %s (%s)", tenant, error.message, error.hint)
        told = {tenant: error.message for tenant, error in failed.items()}
        stop.wait(LOOK_SECONDS)
