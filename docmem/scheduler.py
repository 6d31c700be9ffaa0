"""When to consolidate: after a conversation goes quiet, once, one job per subject at a time.

`schedule` enqueues and returns; it never raises into the agent's turn. A thread is due when it has been quiet for the
debounce, and in any case after the longest wait (which later turns don't reset) or a number of turns. A failed job is
tried again with growing pauses and then becomes a dead letter, never dropped in silence. Nothing here is the truth:
after a crash `sweep` finds what is due from the dialogue and the watermarks.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from docmem import config, forks
from docmem.config import Settings
from docmem.errors import DocmemError
from docmem.model import Job

if TYPE_CHECKING:
    from docmem.consolidation import Model
    from docmem.dialogue import DialogueSource

Key: TypeAlias = tuple[str, str]
"""Tenant and thread."""
Ended: TypeAlias = Literal["done", "retry"]

_log = logging.getLogger("docmem.scheduler")


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds and counts that say when a thread is due and how failures are retried."""

    debounce: float = 45.0
    longest_wait: float = 600.0
    most_turns: int = 20
    retries: int = 5
    first_pause: float = 30.0
    longest_pause: float = 1800.0

    def pause(self, attempt: int) -> float:
        """Seconds before attempt `attempt` + 1 (counting from 1)."""
        return float(min(self.first_pause * 2 ** (attempt - 1), self.longest_pause))


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A job that failed for good, and why."""

    job: Job
    attempts: int
    reason: str


class DeadLetters(Protocol):
    """Where jobs go that failed for good."""

    def keep(self, letter: DeadLetter) -> None:
        """Keep it where `docmem jobs` finds it. Raises `DocmemError` where it can't."""
        ...

    def clear(self, job: Job) -> None:
        """The job's thread was consolidated after all: take its letter away. Raises `DocmemError` where it can't."""
        ...


@dataclass(slots=True)
class _Pending:
    job: Job
    first: float
    last: float
    turns: int = 1
    attempt: int = 0
    not_before: float = 0.0

    def due(self, timing: Timing) -> float:
        if self.attempt:
            return self.not_before
        if self.turns >= timing.most_turns:
            return self.last
        return min(self.last + timing.debounce, self.first + timing.longest_wait)


@dataclass
class Queue:
    """What waits and what runs. No threads and no clock of its own: the caller says what time it is (seconds)."""

    timing: Timing = Timing()
    _pending: dict[Key, _Pending] = field(default_factory=dict)
    _heap: list[tuple[float, int, Key]] = field(default_factory=list)
    _busy: set[tuple[str, str]] = field(default_factory=set)
    _parked: dict[tuple[str, str], list[Key]] = field(default_factory=dict)
    _number: itertools.count[int] = field(default_factory=itertools.count)

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, job: Job, *, now: float) -> None:
        """A turn came: start or extend the wait of its thread. O(log n)."""
        key = (job.tenant, job.thread)
        known = self._pending.get(key)
        if known is None:
            self._pending[key] = _Pending(job, first=now, last=now)
            self._push(key)
            return
        known.job, known.last, known.turns = job, now, known.turns + 1
        if known.turns == self.timing.most_turns:
            self._push(key)  # sooner than its entry says; a later due time is found when the entry comes up

    def take(self, *, now: float) -> list[tuple[Job, int]]:
        """The jobs to run now, each with its attempt (from 1). Their subjects are busy until `end`."""
        ready = []
        while self._heap and self._heap[0][0] <= now:
            _, _, key = heapq.heappop(self._heap)
            pending = self._pending.get(key)
            if pending is None:
                continue
            subject = (pending.job.tenant, pending.job.subject)
            if pending.due(self.timing) > now:
                self._push(key)
            elif subject in self._busy:
                self._parked.setdefault(subject, []).append(key)
            else:
                self._busy.add(subject)
                del self._pending[key]
                ready.append((pending.job, pending.attempt + 1))
        return ready

    def end(self, job: Job, attempt: int, ended: Ended, *, now: float) -> DeadLetter | None:
        """A job is over. A failed one waits for its next attempt; the last failure is handed back."""
        subject = (job.tenant, job.subject)
        self._busy.discard(subject)
        for key in self._parked.pop(subject, []):
            self._push(key)
        if ended == "done":
            return None
        if attempt > self.timing.retries:
            return DeadLetter(job, attempt, "")
        self._retry(job, attempt, now)
        return None

    def _retry(self, job: Job, attempt: int, now: float) -> None:
        key = (job.tenant, job.thread)
        waiting = self._pending.get(key) or _Pending(job, first=now, last=now)
        waiting.attempt, waiting.not_before = attempt, now + self.timing.pause(attempt)
        self._pending[key] = waiting
        self._push(key)

    def next_due(self) -> float | None:
        """When to look again; None while nothing waits."""
        return self._heap[0][0] if self._heap else None

    def _push(self, key: Key) -> None:
        heapq.heappush(self._heap, (self._pending[key].due(self.timing), next(self._number), key))


class Scheduler:
    """Runs consolidations in threads of this process.

    `run` consolidates one job and says whether it is `done` or to `retry`; whatever it raises, or says instead, is a
    retry, and in the end a dead letter.
    `enabled`: whether `schedule` does anything; None means what `DOCMEM_CONSOLIDATION_ENABLED` says.
    """

    def __init__(
        self,
        run: Callable[[Job], Ended],
        *,
        dead_letters: DeadLetters,
        timing: Timing | None = None,
        workers: int = 2,
        clock: Callable[[], float] = time.monotonic,
        enabled: bool | None = None,
    ) -> None:
        self._run = run
        self._dead_letters = dead_letters
        self._timing = timing or Timing()
        self._workers = workers
        self._clock = clock
        self._enabled = config.settings().consolidation_enabled if enabled is None else enabled
        self._started = self._stopping = False
        self.after_fork()
        forks.anew(self)

    def after_fork(self) -> None:
        """Begin with nothing to do, in threads that start with the first job: what waits is the parent's."""
        self._queue = Queue(self._timing)
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._ready: list[tuple[Job, int]] = []

    def schedule(self, job: Job) -> None:
        """A turn of this thread came in. Enqueues and returns; never raises into the caller."""
        if not self._enabled:
            return
        try:
            with self._changed:
                self._queue.add(job, now=self._clock())
                self._changed.notify()
                if self._started and not self._stopping and not self._threads:
                    self._start()
        except Exception:  # noqa: BLE001 - a door: the agent's turn goes on whatever is wrong with the job
            _log.exception("a job could not be scheduled; a sweep finds its thread")

    def start(self) -> None:
        """Start the worker threads."""
        with self._changed:
            self._started = True
            self._start()

    def _start(self) -> None:
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(self._workers)]
        for thread in self._threads:
            thread.start()

    def stop(self, *, timeout: float = 30.0) -> None:
        """Finish what runs and stop. What still waits is found by a sweep after the next start."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(timeout)

    def run_due(self) -> int:
        """Run everything that is due now in this thread; returns how many jobs ran. For tests and for a cron job."""
        count = 0
        while claimed := self._claim():
            self._perform(*claimed)
            count += 1
        return count

    def wake(self) -> None:
        """Look at the clock again (an injected one has moved)."""
        with self._changed:
            self._changed.notify_all()

    def _claim(self) -> tuple[Job, int] | None:
        with self._changed:
            self._ready += self._queue.take(now=self._clock())
            return self._ready.pop(0) if self._ready else None

    def _work(self) -> None:
        while not self._stopping:
            claimed = self._claim()
            if claimed is not None:
                self._perform(*claimed)
                continue
            with self._changed:
                due = self._queue.next_due()
                wait = None if due is None else max(due - self._clock(), 0.0)
                if not self._stopping and wait != 0.0:
                    self._changed.wait(wait)

    def _perform(self, job: Job, attempt: int) -> None:
        ended, reason = self._attempt(job)
        with self._changed:
            letter = self._queue.end(job, attempt, ended, now=self._clock())
            self._changed.notify_all()
        if letter is not None:
            self._tell("keep", lambda: self._dead_letters.keep(replace(letter, reason=reason)), job)
        elif ended == "done":
            self._tell("clear", lambda: self._dead_letters.clear(job), job)

    def _attempt(self, job: Job) -> tuple[Ended, str]:
        try:
            ended = self._run(job)
        except DocmemError as error:
            _log.warning("consolidation failed: tenant=%s code=%s", job.tenant, error.code)
            return "retry", f"{error.code}: {error.message}"
        except Exception as error:  # noqa: BLE001 - a door: a bug in one job must not end the thread of the others
            _log.exception("consolidation broke: tenant=%s", job.tenant)
            return "retry", f"{type(error).__name__}: {error}"
        if ended == "done":
            return "done", ""
        if ended != "retry":  # a run that forgot its return says nothing of what became of the window
            _log.error("a run ended with %.80r, neither 'done' nor 'retry': tenant=%s", ended, job.tenant)
            return "retry", f"the run ended with {ended!r:.80}, neither 'done' nor 'retry'"
        return "retry", "the run ended without being done"

    def _tell(self, verb: str, write: Callable[[], None], job: Job) -> None:
        try:
            write()
        except Exception as error:  # noqa: BLE001 - a door: whoever keeps the letters, the others' jobs go on
            # Nothing is lost: the watermark hasn't moved, so a sweep finds the thread again.
            level = logging.CRITICAL if verb == "keep" else logging.WARNING
            _log.log(level, "could not %s a dead letter: tenant=%s code=%s", verb, job.tenant, _code(error))


def consolidating(settings: Settings, source: DialogueSource, model: str | Model) -> Callable[[Job], Ended]:
    """What a `Scheduler` runs: consolidate the thread's new turns. A failure or a conflict is raised, to be retried."""
    from docmem.consolidation import consolidate

    def run(job: Job) -> Ended:
        done = consolidate(job, settings=settings, turns=source.after(job.thread, None), model=model)
        if done.error is not None:
            raise done.error
        return "done"

    return run


def due(settings: Settings, source: DialogueSource, job_of: Callable[[str], Job | None]) -> list[Job]:
    """The sweep: jobs of the threads that have turns after their watermark, without any new traffic.

    `job_of` says whom a thread is about; None for nobody (an anonymous thread is never learned from). Never raises: a
    source that can't tell its threads, and a thread that can't be read or placed, is logged and doesn't hide the
    others; the last line says how many were left out.
    """
    found: list[Job] = []
    left_out = 0
    for thread in _threads(source):
        try:
            job = job_of(thread)
            if job is not None and _has_new_turns(settings, source, job):
                found.append(job)
        except Exception as error:  # noqa: BLE001 - a door: one bad thread must not stop the others
            left_out += 1
            _log.warning("a thread can't be swept: thread=%.80r code=%s", thread, _code(error))
    if left_out:
        _log.error("the sweep left out %d threads that can't be read; %d are due", left_out, len(found))
    return found


def _threads(source: DialogueSource) -> Iterator[str]:
    """The source's threads, as far as it tells them."""
    try:
        yield from source.threads()
    except Exception as error:  # noqa: BLE001 - a door: one bad source must not stop the others
        _log.error("a source can't tell its threads: source=%s code=%s", type(source).__name__, _code(error))


def _code(error: Exception) -> str:
    return error.code if isinstance(error, DocmemError) else type(error).__name__


def _has_new_turns(settings: Settings, source: DialogueSource, job: Job) -> bool:
    from docmem import dialogue, erased, repository

    repo = repository.open(settings, job.tenant)
    mark = repo.snapshot().watermark(job.thread)
    turns = source.after(job.thread, mark.last_turn if mark else None)
    if mark is None and turns:
        read = erased.read_up_to(repo.git_dir, settings.secret_bytes, job.thread, [turn.id for turn in turns])
        turns = dialogue.after(turns, read)
    return bool(turns)
