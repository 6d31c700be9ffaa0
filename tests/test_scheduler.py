from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmem.config import Settings
from docmem.errors import ModelUnavailable, ServerUnavailable
from docmem.model import Job, Turn
from docmem.scheduler import DeadLetter, Ended, Queue, Scheduler, Timing, due


def job(thread: str = "t", subject: str = "ana", tenant: str = "acme") -> Job:
    return Job(tenant=tenant, thread=thread, subject=subject)


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Kept:
    letters: list[DeadLetter] = field(default_factory=list)
    broken: bool = False

    def keep(self, letter: DeadLetter) -> None:
        if self.broken:
            raise ServerUnavailable("no Postgres")
        self.letters.append(letter)

    def clear(self, job: Job) -> None:
        if self.broken:
            raise ServerUnavailable("no Postgres")
        self.letters = [letter for letter in self.letters if letter.job.thread != job.thread]


def threads_due(queue: Queue, now: float) -> list[str]:
    return [each.thread for each, _ in queue.take(now=now)]


def test_a_thread_is_due_once_it_has_been_quiet() -> None:
    queue = Queue()
    queue.add(job(), now=0)
    queue.add(job(), now=30)
    assert threads_due(queue, 74.9) == []
    assert threads_due(queue, 75) == ["t"]
    assert threads_due(queue, 1000) == []


def test_later_turns_do_not_reset_the_longest_wait() -> None:
    queue = Queue()
    for second in range(0, 600, 40):
        queue.add(job(), now=second)
        assert threads_due(queue, second) == []
        if second == 560:
            break
    assert threads_due(queue, 600) == ["t"]


def test_many_turns_make_a_thread_due_at_once() -> None:
    queue = Queue(Timing(most_turns=3))
    for second in range(3):
        queue.add(job(), now=second)
    assert threads_due(queue, 2) == ["t"]


def test_one_job_per_subject_runs_at_a_time() -> None:
    queue = Queue()
    for thread, subject in (("a", "ana"), ("b", "ana"), ("c", "bob")):
        queue.add(job(thread, subject), now=0)
    assert threads_due(queue, 100) == ["a", "c"]
    assert threads_due(queue, 200) == []
    queue.end(job("a"), 1, "done", now=200)
    assert threads_due(queue, 200) == ["b"]


def test_equal_subjects_of_two_tenants_are_two() -> None:
    queue = Queue()
    queue.add(job("a", tenant="acme"), now=0)
    queue.add(job("b", tenant="globex"), now=0)
    assert threads_due(queue, 100) == ["a", "b"]


def test_a_turn_that_comes_while_the_job_runs_stays_due() -> None:
    """C3"""
    queue = Queue()
    queue.add(job(), now=0)
    assert threads_due(queue, 45) == ["t"]
    queue.add(job(), now=50)
    queue.end(job(), 1, "done", now=60)
    assert threads_due(queue, 95) == ["t"]


def test_failures_wait_longer_each_time_and_end_as_a_dead_letter() -> None:
    timing = Timing(retries=3, first_pause=10, longest_pause=30)
    queue = Queue(timing)
    queue.add(job(), now=0)
    now, waits, letter = 45.0, [], None
    while letter is None:
        [(each, attempt)] = queue.take(now=now)
        letter = queue.end(each, attempt, "retry", now=now)
        due = queue.next_due()
        if due is not None:
            waits.append(due - now)
            now = due
    assert waits == [10, 20, 30]
    assert letter == DeadLetter(job(), 4, "")
    assert len(queue) == 0


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 50)), max_size=40))
def test_no_thread_is_ever_lost_or_run_twice_at_once(events: list[tuple[int, float]]) -> None:
    queue, now = Queue(Timing(most_turns=3)), 0.0
    wanted: dict[str, float] = {}
    for thread, wait in events:
        now += wait
        each = job(f"t{thread}", f"s{thread % 3}")
        queue.add(each, now=now)
        wanted[each.thread] = now
        running = [taken for taken, _ in queue.take(now=now)]
        assert len({taken.subject for taken in running}) == len(running)
        for taken in running:
            wanted.pop(taken.thread)
            queue.end(taken, 1, "done", now=now)
    left: set[str] = set()
    for _ in range(10):
        now += 1000
        for taken, _ in queue.take(now=now):
            left.add(taken.thread)
            queue.end(taken, 1, "done", now=now)
    assert left == set(wanted)
    assert queue.next_due() is None


def scheduler(run: object, clock: Clock, kept: Kept, **options: object) -> Scheduler:
    return Scheduler(run, dead_letters=kept, clock=clock, **{"enabled": True, **options})  # type: ignore[arg-type]


def test_scheduling_runs_the_job_when_its_time_has_come() -> None:
    clock, ran = Clock(), []

    def run(each: Job) -> Ended:
        ran.append(each.thread)
        return "done"

    one = scheduler(run, clock, Kept())
    one.schedule(job())
    assert one.run_due() == 0
    clock.now = 45
    assert one.run_due() == 1
    assert ran == ["t"]


@pytest.mark.parametrize("error", [ModelUnavailable("the model is away"), ValueError("a bug")])
def test_a_job_that_fails_for_good_is_kept_with_its_reason(error: Exception) -> None:
    clock, kept = Clock(), Kept()

    def run(each: Job) -> Ended:
        raise error

    one = scheduler(run, clock, kept, timing=Timing(retries=1, first_pause=1))
    one.schedule(job())
    for _ in range(2):
        clock.now += 100
        one.run_due()
    [letter] = kept.letters
    assert letter.attempts == 2
    assert str(error) in letter.reason


def test_a_dead_letter_that_cannot_be_kept_is_shouted_and_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()

    def run(each: Job) -> Ended:
        return "retry"

    one = scheduler(run, clock, Kept(broken=True), timing=Timing(retries=0))
    one.schedule(job())
    clock.now = 100
    one.run_due()
    assert [record.levelname for record in caplog.records] == ["CRITICAL"]


def test_switched_off_it_takes_nothing() -> None:
    clock = Clock()
    one = scheduler(lambda each: "done", clock, Kept(), enabled=False)
    one.schedule(job())
    clock.now = 1000
    assert one.run_due() == 0


def test_workers_run_due_jobs_and_stop_after_what_runs() -> None:
    clock, ran, started = Clock(), [], threading.Event()

    def run(each: Job) -> Ended:
        started.set()
        ran.append(each.thread)
        return "done"

    one = scheduler(run, clock, Kept())
    one.start()
    one.schedule(job())
    clock.now = 45
    one.wake()
    assert started.wait(10)
    one.stop()
    assert ran == ["t"]


@pytest.mark.parametrize("said", [None, True, "finished", 0])
def test_a_run_that_says_nothing_of_its_end_is_tried_again_and_kept(said: object) -> None:
    clock, kept, ran = Clock(), Kept(), []

    def run(each: Job) -> object:
        ran.append(each)
        return said

    one = scheduler(run, clock, kept, timing=Timing(retries=1, first_pause=1))
    one.schedule(job())
    for _ in range(3):
        clock.now += 100
        one.run_due()
    assert len(ran) == 2
    assert "neither 'done' nor 'retry'" in kept.letters[0].reason


def test_a_keeper_of_letters_that_breaks_ends_no_worker(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Kept):
        def keep(self, letter: DeadLetter) -> None:
            raise RuntimeError("a foreign error")

    clock, ran = Clock(), []

    def run(each: Job) -> Ended:
        ran.append(each.thread)
        return "retry"

    one = scheduler(run, clock, Broken(), timing=Timing(retries=0))
    one.schedule(job("a", "ana"))
    one.schedule(job("b", "bob"))
    clock.now = 100
    assert one.run_due() == 2
    assert ran == ["a", "b"]
    assert "RuntimeError" in caplog.text


@dataclass
class Threads:
    """A source of threads, some of which can't be read; the last of them may be the end of it."""

    names: tuple[str, ...]
    ends: bool = False

    def threads(self) -> Iterator[str]:
        yield from self.names
        if self.ends:
            raise OSError("the disk is away")

    def after(self, thread: str, turn: str | None) -> list[Turn]:
        if thread.startswith("bad"):
            raise RuntimeError("a foreign error")
        return [Turn("t1", "user", "We plan Portugal.")]


def test_a_thread_or_source_that_breaks_hides_no_other(
    settings: Settings, tenant: str, caplog: pytest.LogCaptureFixture
) -> None:
    def job_of(thread: str) -> Job | None:
        if thread == "nobody":
            raise KeyError(thread)
        return job(thread)

    source = Threads(("bad-1", "a", "nobody", "b"), ends=True)
    assert [each.thread for each in due(settings, source, job_of)] == ["a", "b"]  # type: ignore[arg-type]
    assert "the sweep left out 2 threads" in caplog.text
    assert "OSError" in caplog.text


def test_scheduling_nonsense_never_reaches_the_caller(caplog: pytest.LogCaptureFixture) -> None:
    one = scheduler(lambda each: "done", Clock(), Kept(), enabled=True)
    one.schedule(None)  # type: ignore[arg-type]
    assert "could not be scheduled" in caplog.text
