"""codes: which of a goal's lexemes are parts of one thing, and what names it."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta

import pytest

from docmem.codes import _ADDRESS, Code, Thing, amounts_in, codes_in, others_in, says_year, things, words_apart


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
        ("1,250.50", "1|1250|1250.50|250.50", ["1250.50"], ["1250", "250.50", "1"]),
        ("pay 120 EUR", "pay|120|eur|120eur", ["120", "120|eur"], ["eur", "pay"]),
        ("de89 3704 0044 0532 0130 00",
         "de|de89|de8937040044|de89370400440532|de893704004405320130|de89370400440532013000|89370400440532013000",
         ["de89370400440532013000"], ["de|de89|de8937040044|de89370400440532|de893704004405320130"]),
        ("+49 30 1234567", "1234567|301234567|49301234567", ["301234567"], ["4930", "1234567"]),
        ("card 4111 1111 1111 1111", "4111|1111|4111111111111111", ["4111111111111111"], ["4111|1111"]),
        ("B-1234-A", "b-1234-a|1234|b1234a", ["b1234a"], ["1234"]),
        ("order 4006381333931", "6381333931|381333931|1333931|4006381333931", ["4006381333931"], ["381333931|1333931"]),
        ("j@acme.com", "j@acme.com|acme.com|acm|com", ["j@acme.com"], ["acme.com|acm|com"]),
        ("to SW1A 1AA", "sw|sw1a|1aa|aa|sw1a1aa|tosw1a1aa", ["sw1a1aa"], ["sw1a|sw", "1aa|aa"]),
        ("v2.14.3", "2.14.3|v2.14.3|v2143", ["2.14.3"], ["v2.15.3", "v2143"]),
        ("10.0.1.25", "10.0.1.25|100125|10", ["10.0.1.25"], ["100125", "10"]),
        ("ana@example.com", "ana@example.com|ana|example.com|exampl|com",
         ["ana@example.com", "ana|exampl|com"], ["example.com|exampl|com", "ana"]),
        ("https://www.x-y.pt/shop/1", "www.x-y.pt|x-y.pt|www.x-y.pt/shop/1|/shop/1|www|pt|shop",
         ["www.x-y.pt/shop/1"], ["www.x-y.pt|x-y.pt|www|pt"]),
        ("on 14 Feb", "14|14th|feb|februari|02-14", ["02-14"], ["14", "feb", "14|feb", "14|03-14"]),
        ("May 2nd, 2024", "2|2nd|may|2024|2024-05-02|--05-02", ["2024-05-02", "--05-02"], ["may|2024", "2|may|2024"]),
        ("at 2:30 pm", "2|30|pm|14:30", ["14:30"], ["2|30|pm"]),
        ("15 percent", "15|percent|15%", ["15%"], ["15|percent"]),
        ("No. 4012", "4012|no4012", ["4012"], ["no4012x"]),
        ("3c:22:fb:1a:9e:07", "3c|22|fb|1a|9e|07|3c22fb1a9e07", ["3c22fb1a9e07"], ["3c|22|fb|1a|9e"]),
        ("O'Brien?", "o|brien|obrien", ["obrien", "o|brien"], ["o", "brien"]),
        ("AB 123 CD", "ab|123|cd|ab123|123cd|ab123cd", ["ab123cd"], ["ab|123", "ab123", "123cd"]),
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
        ("seats 412 413", "seat|412|413", "seat|412|413"),
        ("mid-range tea/coffee", "mid|rang|tea|coffe", "mid|rang|tea|coffe"),
    ],
)
def test_words_and_plain_numbers_are_parts_of_nothing(goal: str, asked: str, free: str) -> None:
    taken = frozenset[str]().union(*(thing.lexemes for thing in things(goal, lexemes(asked))))
    assert taken.isdisjoint(lexemes(free))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("She paid 1,250.50 and 1.250,5.", {("1250.50", True)}),
        ("Il doit 1\u00a0250,50 €, 1'250.- et 19,9", {("1250.50", True), ("1250.00", False), ("19.90", True)}),
        (
            "EUR1250.50, 12.5kg, python3.11, gpt-4.1",
            {("1250.50", True), ("12.50", True), ("3.11", True), ("4.10", True)},
        ),
        ("v2.14.3 at 14:30 on 14.06.2026, INV-1250 and 10.0.0.1", set()),
    ],
)
def test_amounts_are_read_as_amounts(text: str, said: set[tuple[str, bool]]) -> None:
    assert amounts_in(text) == said


def test_a_small_whole_number_says_an_amount_beside_its_unit_only() -> None:
    [large] = things("1250.00", lexemes("1250|1250.00"))
    [small, euros] = (things(goal, lexemes("15|15.00|eur"))[0] for goal in ("15.00", "15.00 EUR"))
    assert large.named_by(lexemes("1250"), amounts_in("They paid 1250."))
    assert not large.named_by(lexemes("1250|1250.50"), amounts_in("They paid 1250.50."))
    assert not small.named_by(lexemes("15"), amounts_in("Her son is 15."))
    assert not euros.named_by(lexemes("15"), amounts_in("Her son is 15."))
    assert euros.named_by(lexemes("15|eur"), amounts_in("It costs 15 EUR."))


def test_an_address_and_a_number_end_before_the_point_behind_them() -> None:
    """Python 3.11.0 to 3.11.4 doesn't go back behind it where a possessive group holds a possessive one."""
    said = "Write to ana@example.com. Or to bob@mail.example.org, now."
    assert [found[0] for found in _ADDRESS.finditer(said)] == ["ana@example.com", "bob@mail.example.org"]
    assert set(codes_in("The exit code is 137.")) == {Code("", "137", "code")}


def test_a_text_says_codes_with_the_noun_before_them_and_no_years() -> None:
    said = codes_in("Invoice no. INV-2042, order #41003; the exit code is 137. In 2024 LH 1234 had 12 seats, 15% off.")
    assert set(said) == {
        Code("inv", "2042", "invoice"), Code("", "41003", "order"), Code("", "137", "code"), Code("lh", "1234", ""),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("goal", "text", "is_of_another"),
    [
        ("INV-2041", "Invoice INV-2042 is open.", True),
        ("INV-2041", "Invoices INV-2041 and INV-2042 are open.", False),
        ("invoice 41003", "The invoice INV-41004 is open.", True),
        ("invoice 41003", "The seat 41004 is free.", False),
        ("Porto 1764554077", "In Porto 250 people came.", False),
        ("X7K9QR", "Booking code X7K9QP.", True),
        ("INV-2041", "The inv file is here.", False),
    ],
)
def test_a_text_of_another_code_of_its_kind_is_told_from_others(goal: str, text: str, is_of_another: bool) -> None:
    assert bool(others_in(text, things(goal, lexemes(goal.lower())))) is is_of_another


@pytest.mark.parametrize(
    ("text", "is_apart"),
    [("Rui moved to Faro.", True), ("Call Rui 912 345 678.", False), ("RUI-17 is done.", False), ("KD52 RUI", False)],
)
def test_letters_of_a_code_are_words_where_a_text_says_them_by_themselves(text: str, is_apart: bool) -> None:
    assert bool(words_apart(lexemes("rui|inv"), text)) is is_apart


@pytest.mark.parametrize(
    ("goal", "asked", "named", "not_named"),
    [
        ("Smith Jones", "smith|jone|smithjon", ["smithjon"], ["smith", "jone"]),
        ("smith-jones", "smith-jon|smith|jone|smithjon", ["smithjon"], ["smith"]),
        ("SmithJones", "smithjon|smith|jone", ["smithjon", "smith|jone"], ["smith", "jone"]),
        ("Does Ana call", "ana|call", [], ["ana"]),
    ],
)
def test_names_in_one_word_and_in_two_name_each_other(
    goal: str, asked: str, named: list[str], not_named: list[str]
) -> None:
    found = things(goal, lexemes(asked))
    assert all(any(thing.named_by(lexemes(text)) for thing in found) for text in named)
    assert not any(thing.named_by(lexemes(text)) for text in not_named for thing in found)


def test_a_thing_without_a_whole_or_parts_is_named_by_nothing() -> None:
    assert Thing(frozenset({"a"})).named_by(frozenset({"a"})) == frozenset()


DAY = "14|14th|june|jun|2026|2026-06-14|--06-14"


def test_a_day_is_that_of_a_text_that_was_recorded_then_and_says_no_other() -> None:
    [asked] = things("14 June 2026", lexemes(DAY))
    on_day, shared = datetime(2026, 6, 14, 23, 30, tzinfo=UTC), lexemes("14|june|2026")
    assert asked.named_by(shared) == frozenset()
    assert asked.is_recorded(shared, "Lost her keys.", on_day)
    assert asked.is_recorded(shared, "Lost her keys.", on_day + timedelta(hours=3))  # elsewhere it is still that day
    assert not asked.is_recorded(shared, "Flies on 16 June.", on_day)
    assert not asked.is_recorded(shared, "Lost her keys.", datetime(2026, 7, 14, tzinfo=UTC))
    assert not asked.is_recorded(lexemes("june|2026"), "Lost her keys.", on_day)
    assert not asked.is_recorded(shared, "Lost her keys.", None)
    assert asked.says("On June 14th she flies.")
    assert not asked.says("On June 14th, 2025, she flew.")


def test_a_month_of_a_year_is_that_of_what_says_a_day_of_it_or_was_recorded_in_it() -> None:
    [asked] = things("in June 2026", lexemes("june|2026"))
    assert all(map(asked.says, ("Flies in June 2026.", "Flies on 2026-06-16.", "Vuela el 3 de junio de 2026.")))
    assert not any(map(asked.says, ("Flies in June.", "Flies on 16 June 2025.", "Flies in July 2026.")))
    assert asked.is_recorded(lexemes("june|2026"), "Flies on 3 July.", datetime(2026, 6, 3, tzinfo=UTC))
    assert not asked.is_recorded(lexemes("june|2026"), "Lost her keys.", datetime(2026, 7, 3, tzinfo=UTC))


def test_a_text_of_another_version_denies_a_word_and_one_of_none_or_this_does_not() -> None:
    [asked] = [thing for thing in things("Is python 3.11 there?", lexemes("python|3.11|311")) if thing.version]
    assert asked.denied_by("Runs Python 3.12 now.") == {"python"}
    assert not any(map(asked.denied_by, ("Likes Python.", "Python3.11", "python-3.11.4, not 3.12", "a python of 3.12")))


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
