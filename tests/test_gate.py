"""The gate before Postgres: a few at once, in the order of coming, and no place is ever lost."""

from __future__ import annotations

import hashlib
import random
import signal
import threading
from types import FrameType

import pytest

from docmem.gate import Gate
from tests.support.waiting import wait_until


def test_a_few_are_inside_at_once_and_the_others_in_the_order_of_coming() -> None:
    gate, came, inside = Gate(2), [], []
    leave = [threading.Event() for _ in range(6)]

    def visit(number: int) -> None:
        assert gate.enter(seconds=30)
        inside.append(number)
        leave[number].wait(30)
        gate.leave()

    threads = [threading.Thread(target=visit, args=(number,)) for number in range(6)]
    for number, thread in enumerate(threads):
        thread.start()
        came.append(number)
        wait_until(lambda: len(inside) + len(gate._waiting) == len(came))
    assert inside == [0, 1]
    for number in (1, 0, 2, 3, 4, 5):
        leave[number].set()
        wait_until(lambda: not threads[number].is_alive())  # noqa: B023 it is asked at once
    assert inside == [0, 1, 2, 3, 4, 5]


def test_who_goes_ahead_is_let_in_before_who_came_earlier() -> None:
    gate, inside = Gate(1), []
    assert gate.enter(seconds=1)

    def visit(name: str, ahead: bool) -> None:
        assert gate.enter(seconds=30, ahead=ahead)
        inside.append(name)
        gate.leave()

    visits = [("first", False), ("second", False), ("short", True), ("shorter", True)]
    threads = [threading.Thread(target=visit, args=visit_) for visit_ in visits]
    for number, thread in enumerate(threads):
        thread.start()
        wait_until(lambda: len(gate._waiting) + len(gate._ahead) == number + 1)  # noqa: B023 it is asked at once
    gate.leave()
    for thread in threads:
        thread.join()
    assert inside == ["short", "shorter", "first", "second"]
    assert (gate._free, len(gate._waiting), len(gate._ahead)) == (1, 0, 0)


def test_who_waited_too_long_is_told_so_and_takes_no_place() -> None:
    gate = Gate(1)
    assert gate.enter(seconds=1)
    refused = []
    thread = threading.Thread(target=lambda: refused.append(gate.enter(seconds=0.02)))
    thread.start()
    thread.join()
    gate.leave()
    assert refused == [False]
    assert gate.enter(seconds=1)


def test_who_leaves_without_having_been_in_makes_no_room() -> None:
    gate, entered = Gate(1), []
    gate.leave()
    assert gate.enter(seconds=1)
    thread = threading.Thread(target=lambda: entered.append(gate.enter(seconds=0.02)))
    thread.start()
    thread.join()
    assert entered == [False]


def test_a_place_that_a_signal_took_its_thread_away_from_is_its_own_still() -> None:
    gate = Gate(1)
    assert gate.enter(seconds=1)  # and it never left: the handler raised right after
    assert gate.enter(seconds=1)
    gate.leave()
    entered: list[bool] = []
    thread = threading.Thread(target=lambda: entered.append(gate.enter(seconds=1)))
    thread.start()
    thread.join()
    assert entered == [True]


def test_who_is_interrupted_while_waiting_leaves_the_place_to_others() -> None:
    gate, held, go = Gate(1), threading.Event(), threading.Event()

    def hold() -> None:
        gate.enter(seconds=1)
        held.set()
        go.wait(30)
        gate.leave()

    def interrupted(number: int, frame: FrameType | None) -> None:
        raise InterruptedError

    thread = threading.Thread(target=hold)
    before = signal.signal(signal.SIGALRM, interrupted)
    try:
        thread.start()
        held.wait(30)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(InterruptedError):
            gate.enter(seconds=30)
    finally:
        signal.signal(signal.SIGALRM, before)
        go.set()
        thread.join()
    assert gate.enter(seconds=1)


def test_no_place_is_lost_however_many_come_and_give_up() -> None:
    """Times that run out just when a place is free, thousands of times."""
    gate, most, inside, lock = Gate(3), [0], [0], threading.Lock()

    def come(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(300):
            if gate.enter(seconds=rng.choice((0.0, 0.0001, 0.0005, 1)), ahead=rng.random() < 0.3):
                with lock:
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                hashlib.sha256(bytes(rng.randrange(200_000))).digest()  # takes a while, without the interpreter's lock
                with lock:
                    inside[0] -= 1
                gate.leave()

    threads = [threading.Thread(target=come, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] <= 3
    assert (gate._free, len(gate._waiting), len(gate._ahead), gate._inside) == (3, 0, 0, set())
