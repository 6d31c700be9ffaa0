"""Circuit breakers: after failures in a row, stop asking; then let one try through, or try aside."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from docmem import threads

_REST = 10
"""After a try that failed, so many times as long as it took is rest: whatever is broken takes a tenth of a thread."""


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


Try = Callable[[], str | None]
"""Tries again what failed. Gives the reason why it fails still, None once it went well; raises nothing."""


@dataclass(slots=True)
class _Failing:
    why: str
    again: Try
    of: set[Hashable] = field(default_factory=set)
    """Who met the failures in a row, each once."""


class Breakers:
    """Breakers by key that nobody has to try: what failed is tried aside, and its breaker closes once that goes well.

    Each opens after `failures` in a row. The key None is what all the others need: while it is open so are they, and
    it alone is tried. One thread for all of them, which tries one after another, at once and then with a rest of
    `pause` seconds; it is there for as long as one is open. The last `size` keys that failed are known. Safe between
    threads.
    """

    def __init__(self, *, pause: float, failures: int = 2, size: int = 4_096) -> None:
        self._limit = failures
        self._pause = pause
        self._size = size
        self._lock = threading.Lock()
        self._failing: OrderedDict[Hashable, _Failing] = OrderedDict()
        self._running = False
        self._stop = threading.Event()

    def shut(self, *keys: Hashable, again: Try | None = None) -> str | None:
        """Why one of `keys` isn't to be asked now; None where they are. `again`: what is tried next instead of what
        failed.

        With what was refused last, one who asks for what can't be had keeps nobody else out.
        """
        if not self._failing:
            return None
        with self._lock:
            why = None
            for key in (None, *keys):
                failing = self._failing.get(key)
                if failing is not None and self._is_open(failing):
                    if again is not None and key is not None:
                        failing.again = again
                    why = why or failing.why
            if why is not None:
                self._start()
            return why

    def failed(self, key: Hashable, why: str, again: Try, *, by: Hashable = None, surely: bool = False) -> bool:
        """It failed; whether that opened it, as it does at once where it fails `surely`.

        `by`: who met it, where one of them alone tells nothing of the others: then those who differ are counted.
        """
        with self._lock:
            failing = self._failing.setdefault(key, _Failing(why, again))
            was_open = self._is_open(failing)
            failing.why, failing.again = why, again
            if not was_open:
                failing.of |= {object() for _ in range(self._limit)} if surely else {object() if by is None else by}
            if len(self._failing) > self._size:
                del self._failing[next(each for each in self._failing if each is not None)]
            if not self._is_open(failing):
                return False
            self._start()
            return not was_open

    def failing(self, key: Hashable) -> bool:
        """Whether it failed when it was asked last."""
        return key in self._failing

    def succeeded(self, *keys: Hashable) -> None:
        """It went well: close."""
        if self._failing:
            with self._lock:
                for key in keys:
                    self._failing.pop(key, None)

    def close(self) -> None:
        """Try nothing any more."""
        self._stop.set()

    def _start(self) -> None:
        if not self._running and not self._stop.is_set():  # where it can't be started, whoever is refused next does it
            self._running = threads.aside(self._run, name="docmem-recover") is not None

    def _run(self) -> None:
        while not self._stop.is_set():
            for key in self._open():
                began = time.monotonic()
                if not self._closes(key) and self._stop.wait(min(self._pause, _REST * (time.monotonic() - began))):
                    return
            with self._lock:  # whoever opens one from here on starts another thread
                if not self._opened():
                    self._running = False
                    return
            self._stop.wait(self._pause)

    def _open(self) -> list[Hashable]:
        with self._lock:
            return self._opened()

    def _opened(self) -> list[Hashable]:
        opened = [key for key, failing in self._failing.items() if self._is_open(failing)]
        return [None] if None in opened else opened

    def _is_open(self, failing: _Failing) -> bool:
        return len(failing.of) >= self._limit

    def _closes(self, key: Hashable) -> bool:
        """Try one again, unless it closed meanwhile, or all of them opened."""
        with self._lock:
            failing = self._failing.get(key)
            if failing is None or (key is not None and None in self._opened()):
                return True
            again = failing.again
        why = again()
        with self._lock:
            if why is not None:
                failing.why = why
            elif self._failing.get(key) is failing:
                del self._failing[key]
        return why is None
