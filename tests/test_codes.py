"""codes: which of a goal's lexemes are parts of one thing, and what names it."""

from __future__ import annotations

import random
import time

import pytest

from docmem.codes import Thing, says_year, things


def lexemes(text: str) -> frozenset[str]:
    return frozenset(text.split("|"))


@pytest.mark.parametrize(
    ("goal", "asked", "named", "not_named"),
    [
        ("INV-2024-00174", "inv|2024|00174|202400174|inv202400174",
         ["inv202400174", "inv|2024|00174", "202400174"], ["inv|2024", "00174", "inv|2024|00173"]),
        ("What about INV–2024–00174?", "inv|2024|00174|202400174|inv202400174|aboutinv202400174",
         ["inv202400174"], ["inv|2024"]),
        ("see inv 2024 00174", "see|inv|2024|00174|inv2024|202400174|inv202400174", ["inv202400174"], ["inv|2024"]),
        ("LH1234", "lh|1234|lh1234", ["lh1234", "lh|1234"], ["lh|1235", "tp|1234"]),
        ("lh 1234", "lh|1234|lh1234", ["lh1234", "lh|1234"], ["lh", "1234"]),
        ("TP-1358 again", "tp|1358|tp1358", ["tp1358"], ["1358", "tp"]),
        ("1,250.50", "1|1250|1250.50|250.50", ["1250.50", "1250"], ["250.50", "1"]),
        ("de89 3704 0044 0532 0130 00",
         "de|de89|de8937040044|de89370400440532|de893704004405320130|de89370400440532013000|89370400440532013000",
         ["de89370400440532013000"], ["de|de89|de8937040044|de89370400440532|de893704004405320130"]),
        ("+49 30 1234567", "1234567|301234567|49301234567", ["301234567"], ["4930", "1234567"]),
        ("card 4111 1111 1111 1111", "4111|1111|4111111111111111", ["4111111111111111"], ["4111|1111"]),
        ("B-1234-A", "b-1234-a|1234|b1234a", ["b1234a"], ["1234"]),
        ("order 4006381333931", "6381333931|381333931|1333931|4006381333931", ["4006381333931"], ["381333931|1333931"]),
        ("j@acme.com", "j@acme.com|acme.com|acm|com", ["j@acme.com"], ["acme.com|acm|com"]),
        ("to SW1A 1AA", "sw|sw1a|1aa|aa|sw1a1aa|tosw1a1aa", ["sw1a1aa"], ["sw1a|sw", "1aa|aa"]),
        ("v2.14.3", "2.14.3|v2.14.3|v2143", ["2.14.3", "v2143"], ["v2.15.3"]),
        ("ana@example.com", "ana@example.com|ana|example.com|exampl|com",
         ["ana@example.com", "ana|exampl|com"], ["example.com|exampl|com", "ana"]),
        ("https://www.x-y.pt/shop/1", "www.x-y.pt|x-y.pt|www.x-y.pt/shop/1|/shop/1|www|pt|shop",
         ["www.x-y.pt/shop/1"], ["www.x-y.pt|x-y.pt|www|pt"]),
        ("on 14 Feb", "14|14th|feb|februari|02-14", ["02-14", "14|feb", "14th|februari"], ["14", "feb", "14|03-14"]),
        ("May 2nd, 2024", "2|2nd|may|2024|20240502", ["20240502", "2|may"], ["may|2024", "3|may|2024"]),
        ("in May 2024", "may|2024|may2024", ["may|2024"], ["may", "2024"]),
        ("at 14:30", "14|30", ["14|30"], ["14", "30"]),
    ],
)  # fmt: skip
def test_a_whole_or_all_of_its_parts_name_a_thing_and_some_do_not(
    goal: str, asked: str, named: list[str], not_named: list[str]
) -> None:
    found = things(goal, lexemes(asked))
    assert all(any(thing.named_by(lexemes(text)) for thing in found) for text in named)
    assert not any(thing.named_by(lexemes(text)) for text in not_named for thing in found)


@pytest.mark.parametrize(
    ("goal", "asked", "free"),
    [
        ("Is covid-19 over?", "covid|19|covid19", "covid"),
        ("My card 4242", "my|card|4242|card4242", "card|4242|my|card4242"),
        ("5 marathons in 3 weeks", "5|marathon|3|week", "5|marathon|3|week"),
        ("Where are the EUR 1250?", "eur|1250|eur1250", "eur|1250|eur1250"),
        ("seats 412 413", "seat|412|413", "seat|412|413"),
        ("mid-range tea/coffee", "mid|rang|tea|coffe", "mid|rang|tea|coffe"),
    ],
)
def test_words_and_plain_numbers_are_parts_of_nothing(goal: str, asked: str, free: str) -> None:
    taken = frozenset[str]().union(*(thing.lexemes for thing in things(goal, lexemes(asked))))
    assert taken.isdisjoint(lexemes(free))


def test_a_thing_without_a_whole_or_parts_is_named_by_nothing() -> None:
    assert Thing(frozenset({"a"})).named_by(frozenset({"a"})) == frozenset()


def test_a_text_says_a_year_by_itself_and_not_within_a_code() -> None:
    assert all(says_year("2019", text) for text in ("in 2019.", "2019", "(2019)", "2019-", "May 2019, then", "2019年"))
    assert not any(says_year("2019", text) for text in ("INV-2019-1", "2019-05-02", "x2019", "02.05.2019", "20190", ""))


def test_no_goal_takes_long() -> None:
    chance = random.Random(1)
    goals = ["1-" * 2_000, "a1 " * 1_300, "1 " * 2_000, "May 1 " * 600, "a@b.cc " * 500, "9" * 4_000, "(1" * 2_000]
    goals += [f"{mark * 1_990} 1" for mark in ("a.", "aa", "a ", "a@", "1,", "a-", "x://", "www.", ". ")]
    goals += ["".join(chance.choices("aZ09-./_,' ()#:@äñ年", k=4_000)) for _ in range(20)]
    for goal in goals:
        asked = set(chance.sample([goal[at : at + size] for at in range(300) for size in (1, 2, 3, 9)], 700))
        started = time.process_time()
        things(goal, asked)
        assert time.process_time() - started < 0.1, goal[:40]
