"""A bounded cache with a time to live: the least recently used entry goes first. Safe between threads."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def _nothing(_: object) -> int:
    return 0


class Cache(Generic[K, V]):
    """At most `size` entries, each for `ttl` seconds (None: no end).

    `weigh` says what a value weighs; together they weigh `most` at most (None: whatever they do).
    """

    def __init__(
        self,
        size: int,
        *,
        ttl: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        weigh: Callable[[V], int] = _nothing,
        most: int | None = None,
    ) -> None:
        self._size = size
        self._weigh = weigh
        self._most = most
        self._weight = 0
        self._ttl = ttl
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """The value, or None where there is none or its time is over."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            if self._ttl is not None and self._clock() - entry[0] > self._ttl:
                self._forget(key)
                return None
            self._entries.move_to_end(key)
            return entry[1]

    def aged(self, key: K) -> tuple[float, V] | None:
        """The value and the seconds since it was put, or None; for who decides by themselves what is too old."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return self._clock() - entry[0], entry[1]

    def discard(self, key: K) -> None:
        """Forget the value of a key."""
        with self._lock:
            self._forget(key)

    def drop(self, where: Callable[[K, V], bool]) -> None:
        """Forget the entries whose key and value are so."""
        with self._lock:
            for key in [key for key, (_, value) in self._entries.items() if where(key, value)]:
                self._forget(key)

    def put(self, key: K, value: V) -> None:
        """Keep a value; what was unused longest makes room."""
        with self._lock:
            self._forget(key)
            self._entries[key] = (self._clock(), value)
            self._weight += self._weigh(value)
            while len(self._entries) > self._size or (self._most is not None and self._weight > self._most):
                self._forget(next(iter(self._entries)))

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self._weight = 0

    def _forget(self, key: K) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._weight -= self._weigh(entry[1])
