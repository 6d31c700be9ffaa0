"""A watch that runs while a test looks on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from docmem.config import Settings
from docmem.embedding import Embedder
from docmem_sync.metrics import Metrics
from docmem_sync.sync import JOBS, TenantSync
from docmem_sync.watch import watch


@contextmanager
def watching(
    settings: Settings, *, embedder: Embedder | None = None, metrics: Metrics | None = None, jobs: int = JOBS
) -> Iterator[list[TenantSync]]:
    """`docmem sync --watch` in a thread; what it reports."""
    done: list[TenantSync] = []
    stop = threading.Event()
    thread = threading.Thread(
        target=lambda: watch(settings, report=done.append, stop=stop, embedder=embedder, metrics=metrics, jobs=jobs)
    )
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        (settings.root / "poke" / "acme").touch()
        thread.join(timeout=30)
        assert not thread.is_alive()
