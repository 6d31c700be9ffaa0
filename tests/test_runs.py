"""Numbers of runs: many are counted by few statements, none twice, and who counts for others costs them nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from docmem.index import Busy, IndexFailed
from docmem.runs import Runs, _Batch
from tests.support.waiting import wait_until


class Counted:
    """Counts in memory. It waits until `go` before it looks how many are wanted, and `fails` once each."""

    def __init__(self, *fails: BaseException) -> None:
        self.highest = 0
        self.counts: list[int] = []
        self.fails = list(fails)
        self.go = threading.Event()

    def __call__(self, tenant: str, agent: str, many: Callable[[], int], seconds: float) -> int:
        self.go.wait(30)
        if self.fails:
            raise self.fails.pop(0)
        self.counts.append(many())
        self.highest += self.counts[-1]
        return self.highest - self.counts[-1] + 1


def asked(pool: ThreadPoolExecutor, runs: Runs, count: int, *, seconds: float = 30) -> list[Future[int | None]]:
    """So many numbers that are waited for, one after the other."""
    waiting: list[Future[int | None]] = []
    for number in range(count):
        waiting.append(pool.submit(runs.next, "acme", "default", seconds=seconds))
        wait_until(lambda: sum(batch.size for batch in runs._last.values()) == number + 1)  # noqa: B023 asked at once
    return waiting


def test_who_comes_while_others_wait_is_counted_with_them_in_the_order_of_coming() -> None:
    runs = Runs(counted := Counted())
    with ThreadPoolExecutor(20) as pool:
        waiting = asked(pool, runs, 20)
        counted.go.set()
        assert [each.result() for each in waiting] == list(range(1, 21))
    assert counted.counts == [20]
    assert runs.next("acme", "default", seconds=1) == 21
    assert runs._last == {}


def test_each_agent_is_counted_by_itself() -> None:
    numbers: dict[tuple[str, str], int] = {}

    def count(tenant: str, agent: str, many: Callable[[], int], seconds: float) -> int:
        numbers[tenant, agent] = numbers.get((tenant, agent), 0) + many()
        return numbers[tenant, agent]

    runs = Runs(count)
    whose = [("acme", "default"), ("acme", "other"), ("other", "default")]
    assert [runs.next(tenant, agent, seconds=1) for tenant, agent in whose * 2] == [1, 1, 1, 2, 2, 2]


def test_what_counting_raises_is_one_failure_and_the_next_are_counted() -> None:
    runs = Runs(counted := Counted(IndexFailed("the table is gone")))
    with ThreadPoolExecutor(4) as pool:
        waiting = asked(pool, runs, 4)
        counted.go.set()
        assert [type(each.exception()) for each in waiting] == [IndexFailed, Busy, Busy, Busy]
    assert runs.next("acme", "default", seconds=1) == 1


def test_who_has_time_left_when_another_that_counted_for_it_had_none_asks_again() -> None:
    runs = Runs(counted := Counted(Busy("there was no time left")))
    with ThreadPoolExecutor(4) as pool:
        first, *others = asked(pool, runs, 4)
        counted.go.set()
        assert sorted(each.result() or 0 for each in others) == [1, 2, 3]
        assert isinstance(first.exception(), Busy)


def test_who_waited_for_others_for_most_of_its_time_asks_nobody() -> None:
    runs = Runs(counted := Counted())
    with ThreadPoolExecutor(1) as pool:
        waiting = asked(pool, runs, 1)
        runs._sent(next(iter(runs._last.values())))
        with pytest.raises(Busy):
            runs.next("acme", "default", seconds=0.01)
        counted.go.set()
        assert [each.result() for each in waiting] == [1]
    assert counted.counts == [1]


def test_who_waits_too_long_is_told_so_and_the_others_get_their_numbers() -> None:
    runs = Runs(counted := Counted())
    with ThreadPoolExecutor(2) as pool:
        [leads] = asked(pool, runs, 1)
        with pytest.raises(Busy):
            runs.next("acme", "default", seconds=0.01)
        last = pool.submit(runs.next, "acme", "default", seconds=30)
        wait_until(lambda: sum(batch.size for batch in runs._last.values()) == 3)
        counted.go.set()
        assert (leads.result(), last.result()) == (1, 3)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_who_is_stopped_while_it_counts_leaves_nobody_waiting(stop: type[BaseException]) -> None:
    runs = Runs(counted := Counted(stop()))
    with ThreadPoolExecutor(3) as pool:
        first, *others = asked(pool, runs, 3)
        counted.go.set()
        assert isinstance(first.exception(), stop)
        assert [each.result() for each in others] == [None, None]
    assert runs.next("acme", "default", seconds=1) == 1


def test_who_was_stopped_before_it_could_count_keeps_nobody_waiting_for_ever() -> None:
    runs = Runs(counted := Counted())
    counted.go.set()
    left = runs._last["acme", "default"] = _Batch(after=None, until=time.monotonic() + 0.05, size=1)
    with pytest.raises(Busy):
        runs.next("acme", "default", seconds=0.01)
    wait_until(lambda: time.monotonic() > left.until)
    assert runs.next("acme", "default", seconds=30) == 1
    assert runs._last == {}
