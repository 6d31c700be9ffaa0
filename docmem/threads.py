"""Threads that work aside: none of them holds up the end of a process, and without one a turn goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable


def aside(work: Callable[[], object], *, name: str) -> threading.Thread | None:
    """Do `work` in a daemon thread. None where none can be started: there are too many, or the interpreter ends."""
    thread = threading.Thread(target=work, daemon=True, name=name)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread
