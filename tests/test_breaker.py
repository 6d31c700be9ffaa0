from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from docmem.breaker import Breaker, Breakers
from tests.support.waiting import wait_until


def test_opens_after_failures_in_a_row_and_lets_one_try_through_each_pause() -> None:
    now = 0.0
    breaker = Breaker(failures=2, pause=5, clock=lambda: now)
    breaker.failed()
    breaker.succeeded()
    breaker.failed()
    assert breaker.allows()
    breaker.failed()
    assert breaker.open
    assert not breaker.allows()
    now = 5.0
    assert [breaker.allows(), breaker.allows()] == [True, False]
    breaker.succeeded()
    assert [breaker.allows(), breaker.allows(), breaker.open] == [True, True, False]


@pytest.fixture
def breakers() -> Iterator[Breakers]:
    made = Breakers(pause=0.001)
    yield made
    made.close()


class Thing:
    """Something that is asked, and broken for now; who tries it again is counted."""

    def __init__(self) -> None:
        self.why: str | None = "broken"
        self.tries = 0

    def again(self) -> str | None:
        self.tries += 1
        return self.why


def test_what_failed_twice_in_a_row_is_tried_aside_until_it_goes_well(breakers: Breakers) -> None:
    thing = Thing()
    assert not breakers.failed("a", "broken", thing.again)
    breakers.succeeded("a")
    assert not breakers.failed("a", "broken", thing.again)
    assert (breakers.shut("a"), thing.tries) == (None, 0)
    assert breakers.failed("a", "broken", thing.again)
    assert not breakers.failed("a", "broken", thing.again), "it was open"
    assert (breakers.shut("a"), breakers.shut("b")) == ("broken", None)
    thing.why = "otherwise broken"
    wait_until(lambda: breakers.shut("a") == "otherwise broken")
    thing.why = None
    wait_until(lambda: breakers.shut("a") is None)
    assert not breakers.failing("a")
    wait_until(lambda: not breakers._running)


def test_what_all_need_shuts_all_and_is_tried_alone(breakers: Breakers) -> None:
    one, every = Thing(), Thing()
    every.why = "all broken"
    for _ in range(2):
        breakers.failed(None, "all broken", every.again)
        breakers.failed("a", "broken", one.again)
    assert [breakers.shut(key) for key in (None, "a", "b")] == ["all broken"] * 3
    tried = one.tries
    wait_until(lambda: every.tries > 5)
    assert one.tries == tried
    every.why = None
    wait_until(lambda: breakers.shut("b") is None)
    assert breakers.shut("a") == "broken"
    wait_until(lambda: one.tries > tried)


def test_what_is_tried_is_what_was_refused_last(breakers: Breakers) -> None:
    """Or a question that can't be answered would shut out all others for ever."""
    hopeless, fine = Thing(), Thing()
    fine.why = None
    for _ in range(2):
        breakers.failed("a", "broken", hopeless.again)
    assert breakers.shut("a", again=fine.again) == "broken"
    wait_until(lambda: breakers.shut("a") is None)


def test_what_is_well_again_at_once_is_not_waited_for() -> None:
    patient, thing = Breakers(pause=60), Thing()
    thing.why = None
    for _ in range(2):
        patient.failed("a", "broken", thing.again)
    wait_until(lambda: patient.shut("a") is None)
    patient.close()


def test_one_who_fails_alone_shuts_nobody_else_out(breakers: Breakers) -> None:
    thing = Thing()
    for _ in range(5):
        assert not breakers.failed("all", "broken", thing.again, by="ana")
    assert breakers.failed("all", "broken", thing.again, by="bo")
    assert breakers.failed("others", "broken", thing.again, surely=True)


def test_any_of_several_keys_shuts(breakers: Breakers) -> None:
    thing, again = Thing(), Thing()
    for _ in range(2):
        breakers.failed("one", "broken", thing.again)
    assert breakers.shut("all", "one", again=again.again) == "broken"
    assert breakers.shut("all", "other") is None
    wait_until(lambda: again.tries)


def test_many_that_are_broken_take_one_thread_and_hide_none_that_is_well_again(breakers: Breakers) -> None:
    things = {str(number): Thing() for number in range(300)}
    for key, thing in things.items():
        for _ in range(2):
            breakers.failed(key, "broken", thing.again)
    before = {key: thing.tries for key, thing in things.items()}
    things["299"].why = None
    wait_until(lambda: breakers.shut("299") is None)
    assert [thread.name for thread in threading.enumerate()].count("docmem-recover") == 1
    tries = [thing.tries - before[key] for key, thing in things.items() if key != "299"]
    assert max(tries) <= min(tries) + 2, "the first were tried while the last were still opening"


def test_of_too_many_the_oldest_is_forgotten(breakers: Breakers) -> None:
    few, thing = Breakers(pause=60, size=2), Thing()
    for key in (None, "a", "b"):
        for _ in range(2):
            few.failed(key, "broken", thing.again)
    assert (few.failing(None), few.failing("a"), few.failing("b")) == (True, False, True)
    few.close()


def test_one_that_opens_while_the_last_closes_is_tried_too(breakers: Breakers) -> None:
    other = Thing()

    def again() -> None:
        for _ in range(2):
            breakers.failed("b", "broken", other.again)

    for _ in range(2):
        breakers.failed("a", "broken", again)
    wait_until(lambda: other.tries)
    assert breakers.shut("a") is None
