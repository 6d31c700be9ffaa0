"""A gate that lets a few through at once; who waits is let in in the order of coming."""

from __future__ import annotations

import threading
from collections import deque


class Gate:
    """At most `places` are inside at once. Safe between threads, of which each is inside once.

    A semaphore wakes whom the system likes, and a pool's own queue costs as much as a short read: behind it eight
    readers were answered by a seventh less.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._lock = threading.Lock()
        self._ahead: deque[threading.Lock] = deque()
        self._waiting: deque[threading.Lock] = deque()
        self._inside: set[int] = set()

    def enter(self, *, seconds: float, ahead: bool = False) -> bool:
        """Take a place, waiting for it at most so long; whether there was one. `leave` gives it back.

        Who goes `ahead` goes before all who don't: for what is short, and rare beside them.
        """
        waiting = self._ahead if ahead else self._waiting
        me = threading.get_ident()
        with self._lock:
            if (
                me in self._inside
            ):  # a signal's handler raised when it was in and on its way: the place is its own still
                return True
            if self._free:
                self._free -= 1
                self._inside.add(me)
                return True
            turn = threading.Lock()
            turn.acquire()
            waiting.append(turn)
        passed = waited = False
        try:
            passed = turn.acquire(timeout=seconds)
            waited = True
        finally:
            with self._lock:
                if not passed and turn in waiting:
                    waiting.remove(turn)
                elif waited:  # also who was let in just when the time was over
                    passed = True
                    self._inside.add(me)
                else:  # a signal's handler raised, and the place was given to it meanwhile
                    self._pass_on()
        return passed

    def leave(self) -> None:
        """Give the place to who has waited longest."""
        with self._lock:
            me = threading.get_ident()
            if me in self._inside:
                self._inside.remove(me)
                self._pass_on()

    def _pass_on(self) -> None:
        waiting = self._ahead or self._waiting
        if waiting:
            waiting.popleft().release()
        else:
            self._free += 1
