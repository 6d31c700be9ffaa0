"""What a statement brings that nobody said, and what a careful person would still have written."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from docmem import unsaid
from docmem.model import Turn

AT = datetime(2026, 5, 4, 10, tzinfo=UTC)


def said(*texts: str) -> list[Turn]:
    return [Turn(f"t{number}", "user", text, at=AT) for number, text in enumerate(texts, start=1)]


HELD = [
    ("our budget is 900 euros", "The traveller owns a yacht in Monaco."),
    ("our budget is 900 euros", "The budget is 9,000 euros."),
    ("our budget is 900 euros", "The traveller travels on 14 May 2026."),
    ("our budget is 900 euros", "The traveller has a membership number 4711."),
    ("I eat no meat.", "The traveller eats meat."),
    ("I don't like night trains any more.", "The traveller likes night trains."),
    ("I've never been married", "The traveller is married."),
    ("I hate opera", "The traveller loves opera."),
    ("I love opera", "The traveller doesn't love opera."),
    ("We have two dogs", "The traveller has no dogs."),
    ("we fly to Rome on Friday", "The traveller flies to Milan."),
    ("we fly to Rome on the 7th", "The traveller flies to Rome on 9 May."),
    ("three of us travel", "The traveller travels with 5 people."),
    ("my guide was Ana", "The traveller's guide was Eva."),
    ("Austria please", "The traveller goes to Australia."),
    ("meet me at 9:30", "The traveller is met at 9:45."),
    ("it begins in June", "The trip begins in July."),
]
KEPT = [
    ("I hate layovers", "The traveller prefers direct flights."),
    ("we two want the sea", "Two adults want the sea."),
    ("My wife and I are going to the sea.", "The trip is for 2 adults."),
    ("there are three of us: me, my wife and our son", "The party is 2 adults and 1 child."),
    ("from KL please", "The traveller flies from Kuala Lumpur."),
    ("flying out of Kuala Lumpur", "The traveller flies from KL."),
    ("our people must log in through Okta", "The customer's staff sign in with Okta."),
    ("we need single sign-on for all", "The customer needs SSO for all."),
    ("we fly tomorrow", "The traveller flies on 5 May 2026."),
    ("next Friday it is", "The traveller travels on Friday, 8 May 2026."),
    ("we moved last May", "The traveller moved in May 2025."),
    ("we fly on the 7th of June", "The traveller flies on 7 June 2026."),
    ("on 07/06 we fly", "The traveller flies on 7 June 2026."),
    ("around 8000 €", "The budget is about EUR 8,000."),
    ("12k RM is what we have", "The budget is RM 12,000."),
    ("two weeks in the sun", "The traveller wants 14 days of sun."),
    ("dinner at 9pm", "Dinner is at 21:00."),
    ("on the third floor please", "The traveller wants a room on the 3rd floor."),
    ("we go to Lisboa", "The traveller goes to Lisbon."),
    ("Wir fliegen nach München und wollen zu der Messe", "The traveller flies to Munich."),
    ("我们去北京", "The traveller goes to Beijing."),
    ("Nous allons à Londres avec les enfants", "The traveller goes to London with the children."),
    ("I don't eat meat.", "The traveller avoids meat."),
    ("I don't want to spend more than 900", "The traveller wants to spend at most 900."),
    ("I don't mind layovers", "The traveller is fine with layovers."),
    ("I can't eat wheat", "The traveller is intolerant to wheat."),
    ("No stairs please, my knee is bad.", "The traveller has a bad knee."),
    ("I love tea, not coffee", "The traveller loves tea."),
    ("trains make me sick", "The traveller doesn't like trains."),
    ("a portuguese place", "The traveller wants a restaurant from Portugal."),
    ("can you answer in español please", "Always answer in Spanish."),
    ("we stay in barcelna", "The traveller stays in Barcelona."),
    ("call me on +60 12-345 6789", "The traveller's number is 0123456789."),
    ("next goal: 2,000 by Christmas", "The traveller wants to swim 2,000 m by Christmas."),
    ("I work for IBM", "The traveller works for IBM. They like it."),
]


@pytest.mark.parametrize(("turn", "text"), HELD)
def test_a_name_a_number_or_a_not_that_nobody_said_is_seen(turn: str, text: str) -> None:
    turns = said(turn)
    assert unsaid.of_statement(text, cited=turns, window=turns)


@pytest.mark.parametrize(("turn", "text"), KEPT)
def test_what_was_said_in_other_words_brings_nothing(turn: str, text: str) -> None:
    turns = said(turn)
    assert not unsaid.of_statement(text, cited=turns, window=turns)


def test_an_earlier_turn_may_name_what_a_cited_one_speaks_of() -> None:
    turns = said("Lisbon in spring, for my team", "we stay three nights")
    assert not unsaid.of_statement("The team stays in Lisbon for three nights.", cited=turns[1:], window=turns)


def test_a_number_that_was_corrected_is_not_borne_out_by_the_turn_before() -> None:
    turns = said("Our budget is RM 8,000.", "Sorry, our budget is RM 12,000.")
    assert unsaid.of_statement("The budget is RM 8,000.", cited=turns[1:], window=turns)


def test_what_is_changed_may_keep_its_names() -> None:
    turns = said("make it three of us")
    text, known = "The trip to Lisbon is for three.", ["The trip to Lisbon is for two."]
    assert not unsaid.of_statement(text, cited=turns, window=turns, known=known)
    assert unsaid.of_statement(text, cited=turns, window=turns).names == {"Lisbon"}


def test_a_name_that_only_the_assistant_says_back_counts_as_the_users() -> None:
    turns = [*said("our people must log in through Okta"), Turn("t2", "assistant", "So SAML single sign-on.")]
    assert not unsaid.of_statement("The customer needs SAML.", cited=turns[:1], window=turns)
    refused = [*turns, Turn("t3", "user", "No, that's not it.")]
    assert unsaid.of_statement("The customer needs SAML.", cited=turns[:1], window=refused)
