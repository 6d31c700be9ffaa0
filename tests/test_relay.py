"""The relay: a few questions under way at once, sent in the order of coming, and no place is ever lost."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from psycopg_pool import PoolTimeout

from docmem import db
from docmem.config import Settings
from docmem.relay import Parcel, Relay


class Sent(list[str]):
    """The names of parcels in the order in which they were sent."""

    def parcel(self, name: str, error: Exception | None = None) -> Parcel:
        def send() -> Exception | None:
            self.append(name)
            return error

        return Parcel(send)


def test_a_few_are_under_way_at_once_and_each_that_ends_sends_the_one_that_came_first() -> None:
    relay, sent = Relay(2), Sent()
    parcels = [sent.parcel(name) for name in "abcde"]
    for parcel in parcels:
        relay.post(parcel)
    assert sent == ["a", "b"]
    assert [parcel.is_sent() for parcel in parcels] == [True, True, False, False, False]
    relay.end(parcels[1])
    assert sent == ["a", "b", "c"]
    relay.end(parcels[0])
    relay.end(parcels[2])
    assert sent == ["a", "b", "c", "d", "e"]


def test_what_is_given_up_before_it_is_sent_never_is_and_takes_no_place() -> None:
    relay, sent = Relay(1), Sent()
    first, second, third = (sent.parcel(name) for name in "abc")
    for parcel in (first, second, third):
        relay.post(parcel)
    relay.end(second)
    relay.end(second)
    assert sent == ["a"]
    relay.end(first)
    assert sent == ["a", "c"]


def test_who_ends_what_was_never_posted_or_ends_twice_gives_no_place_away() -> None:
    relay, sent = Relay(1), Sent()
    never, first, second, third = (sent.parcel(name) for name in "nabc")
    relay.end(never)
    for parcel in (first, second, third):
        relay.post(parcel)
    relay.end(first)
    relay.end(first)
    assert sent == ["a", "b"]


def test_what_is_given_up_while_somebody_is_about_to_send_it_is_not_sent() -> None:
    relay, sent = Relay(1), Sent()
    first, second, third = (sent.parcel(name) for name in "abc")
    for parcel in (first, second, third):
        relay.post(parcel)
    relay._under_way.discard(first)
    taken = relay._next()
    assert taken is second
    relay.end(second)
    taken.send()
    assert sent == ["a", "c"]


def test_who_gives_up_what_is_being_sent_waits_until_it_is() -> None:
    begun, go, ended = threading.Event(), threading.Event(), threading.Event()

    def send() -> None:
        begun.set()
        go.wait(30)

    relay, parcel = Relay(1), Parcel(send)
    posts = threading.Thread(target=relay.post, args=(parcel,))
    posts.start()
    assert begun.wait(30)

    def give_up() -> None:
        relay.end(parcel)
        ended.set()

    gives_up = threading.Thread(target=give_up)
    gives_up.start()
    assert not ended.wait(0.05)
    go.set()
    posts.join()
    gives_up.join()
    assert not relay._under_way


def test_what_cannot_be_sent_is_told_to_whose_it_is_and_to_nobody_else() -> None:
    relay, sent = Relay(1), Sent()
    first, broken, third = sent.parcel("a"), sent.parcel("b", OSError("gone")), sent.parcel("c")
    for parcel in (first, broken, third):
        relay.post(parcel)
    relay.end(first)
    with pytest.raises(OSError, match="gone"):
        broken.is_sent()
    assert sent == ["a", "b"]
    relay.end(broken)
    assert sent == ["a", "b", "c"]
    assert third.is_sent()


def test_each_gets_its_own_answer_whoever_sends_and_whatever_is_given_up(indexed: Settings) -> None:
    relay, pool = Relay(2), db.reader_pool(indexed, max_size=6)
    whose = "SELECT to_json(current_setting('app.current_tenant', true)) FROM pg_sleep(%(seconds)s::float8)"
    answered, given_up = list[bool](), list[str]()

    def turns(number: int) -> None:
        chance = random.Random(number)
        for turn in range(25):
            tenant, seconds = f"t{number}-{turn}", chance.choice((0.0, 0.001, 0.03))
            until = time.monotonic() + chance.choice((0.0, 0.0, 30.0))
            connection = pool.getconn(timeout=30)
            try:
                found = db.answer(
                    connection, tenant, whose, {"seconds": str(seconds)}, seconds=lambda: 30, until=until, relay=relay
                )
                answered.append(found == tenant)
            except PoolTimeout:
                given_up.append(tenant)
            finally:
                pool.putconn(connection)

    with pool, ThreadPoolExecutor(6) as threads:
        for done in [threads.submit(turns, number) for number in range(6)]:
            done.result()
    assert all(answered)
    assert len(answered) > 40
    assert len(given_up) > 10
    assert not relay._under_way
    assert not relay._waiting


def test_a_question_that_no_socket_takes_at_once_is_answered(indexed: Settings) -> None:
    said = "it's long " * 400_000
    with closing(db.connect(indexed, "reader")) as connection:
        found = db.answer(
            connection, "acme", "SELECT to_json(length(%(said)s))", {"said": said},
            seconds=lambda: 30, until=time.monotonic() + 30, relay=Relay(1),
        )  # fmt: skip
    assert found == len(said)
