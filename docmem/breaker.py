"""A circuit breaker: after failures in a row, stop asking for a while; then let one try through."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Breaker:
    """Closed until `failures` in a row; then open for `pause` seconds, then half-open: one try each `pause`."""

    def __init__(self, *, failures: int, pause: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = failures
        self._pause = pause
        self._clock = clock
        self._lock = threading.Lock()
        self._failed = 0
        self._shut_until = 0.0

    @property
    def open(self) -> bool:
        """Whether it stands open now, be it half."""
        return self._failed >= self._limit

    @property
    def failing(self) -> bool:
        """Whether the last try failed."""
        return self._failed > 0

    def allows(self) -> bool:
        """Whether to try. In the half-open state only the first of several callers is let through."""
        with self._lock:
            if self._failed < self._limit:
                return True
            now = self._clock()
            if now < self._shut_until:
                return False
            self._shut_until = now + self._pause
            return True

    def succeeded(self) -> None:
        """A try went well: close."""
        with self._lock:
            self._failed = 0

    def failed(self) -> None:
        """A try failed."""
        with self._lock:
            self._failed += 1
            if self._failed >= self._limit:
                self._shut_until = self._clock() + self._pause
