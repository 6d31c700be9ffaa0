"""Numbers of runs: one statement counts all that are asked for at once.

A tenant's runs are counted one after another, behind a lock in Postgres. Asked for one by one, those of a burst stood
in each other's way and in the packets': of 60 turns at once up to an eighth went without a number.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from docmem.index import Busy

Count = Callable[[str, str, Callable[[], int], float], int | None]
"""Counts runs of a tenant's agent within some seconds: as many as the function says when it comes to it. Gives the
number of the first, None for a tenant that has no runs; may raise."""


@dataclass(slots=True, eq=False)
class _Batch:
    """Runs that are counted together, until a time. `after`: those of the same agent that are being counted before.

    Where its thread was stopped by a signal before it could say so, it is never done; past its time nobody joins it.
    """

    after: _Batch | None
    until: float
    size: int = 0
    is_sent: bool = False
    first: int | None = None
    error: Exception | None = None
    done: threading.Event = field(default_factory=threading.Event)


class Runs:
    """Hands numbers out. Who comes while others wait is counted with them. Safe between threads."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._lock = threading.Lock()
        self._last: dict[tuple[str, str], _Batch] = {}

    def next(self, tenant: str, agent: str, *, seconds: float) -> int | None:
        """A number greater than any that was handed out before.

        Raises what counting raises to the one who counted, since it is one failure; to the others, and who had to wait
        for too long, `Busy`.
        """
        key, deadline = (tenant, agent), time.monotonic() + seconds
        while True:
            with self._lock:
                batch = self._last.get(key)
                leads = batch is None or batch.is_sent or time.monotonic() >= batch.until
                if batch is None or leads:
                    batch = self._last[key] = _Batch(after=batch, until=deadline)
                place = batch.size
                batch.size += 1
            if leads:
                self._fill(key, batch, seconds, deadline)
            elif not batch.done.wait(max(0.0, deadline - time.monotonic())):
                raise _late(seconds)
            if batch.error is None:
                return None if batch.first is None else batch.first + place
            if leads:
                raise batch.error
            # Who led had less time, be it none: whoever has some left asks again.
            if not isinstance(batch.error, Busy) or time.monotonic() >= deadline:
                raise Busy(f"counted with others, and that failed: {batch.error}", hint="see: docmem status")

    def _fill(self, key: tuple[str, str], batch: _Batch, seconds: float, deadline: float) -> None:
        try:
            if batch.after is not None:
                batch.after.done.wait(max(0.0, min(deadline, batch.after.until) - time.monotonic()))
            left = deadline - time.monotonic()
            if batch.after is not None and left < seconds / 2:  # a failure then would tell nothing of Postgres
                raise _late(seconds - left)
            batch.first = self._count(*key, lambda: self._sent(batch), max(0.0, left))
        except Exception as error:  # noqa: BLE001 it is raised to all of them
            batch.error = error
        finally:
            self._sent(batch)
            with self._lock:
                batch.after = None
                if self._last.get(key) is batch:
                    del self._last[key]
            batch.done.set()

    def _sent(self, batch: _Batch) -> int:
        """Let nobody join any more; how many there are."""
        with self._lock:
            batch.is_sent = True
            return batch.size


def _late(seconds: float) -> Busy:
    return Busy(f"runs before this one were still being counted after {seconds:.2g} s", hint="see: docmem status")
