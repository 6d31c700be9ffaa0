"""Near-identical statements are one; a wrong merge is worse than a duplicate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmem.wording import likeness, may_be_one, overlap


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("The user is vegetarian.", "The traveller follows a vegetarian diet.", "same"),
        ("The user prefers mid-range hotels.", "User prefers mid-range hotels", "same"),
        ("The traveller is allergic to peanuts.", "The client has been allergic to peanut", "other"),
        ("The user likes hiking and museums", "The user likes museums and hiking", "same"),
        ("The user wants a hotel near the old town, quiet, breakfast", "wants a quiet hotel near old town", "other"),
        ("wants a quiet hotel near the old town", "The user wants a quiet hotel near old town, breakfast", "more"),
        ("Budget is RM 6,000.", "Budget is RM 7,000.", "other"),
        ("The user travels in May.", "The user travels in June.", "other"),
        ("The user flies on 3 May.", "The user flies on 4 May.", "other"),
        ("The user eats pork.", "The user doesn't eat pork.", "other"),
        ("The user has a dog.", "The user had a dog.", "other"),
        ("The user's name is Ana.", "The user's name is Eva.", "other"),
        ("Anna invited Ben.", "Ben invited Anna.", "other"),
        ("The user prefers tea over coffee.", "The user prefers coffee over tea.", "other"),
        ("The user likes tea, not coffee.", "The user likes coffee, not tea.", "other"),
        ("The user flies from Oslo to Rome.", "The user flies from Rome to Oslo.", "other"),
        ("The dog bit the cat.", "The cat bit the dog.", "other"),
        ("The user likes long walks in high mountains", "The user's wife likes long walks in high mountains", "other"),
        ("The user prefers window seats.", "The user prefers aisle seats.", "other"),
        ("The user likes very spicy Thai food at home", "The user likes very spicy Thai food at home once", "other"),
        ("我喜欢喝茶", "我喜欢喝咖啡", "other"),
        ("我喜欢喝茶", "我喜欢喝茶。", "same"),
        ("the", "a", "other"),
    ],
)
def test_likeness(old: str, new: str, expected: str) -> None:
    assert likeness(old, new) == expected


@given(st.text())
def test_a_statement_is_the_same_as_itself(text: str) -> None:
    assert likeness(text, text) == "same"


@given(st.text(), st.text())
def test_same_holds_both_ways(left: str, right: str) -> None:
    assert (likeness(left, right) == "same") == (likeness(right, left) == "same")


def test_overlap_is_the_share_of_words_found() -> None:
    assert overlap("likes tea", "The user likes tea and cake") == 1
    assert overlap("likes tea", "nothing of the kind") == 0
    assert overlap("the", "the") == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The user is allergic to peanuts.", "The user has a peanut allergy."),
        ("The user loves hiking in the mountains.", "The user enjoys mountain hikes."),
        ("The user collects vinyl records.", "The user has a collection of vinyl records."),
    ],
)
def test_other_forms_of_the_same_words_may_be_one_statement(old: str, new: str) -> None:
    assert may_be_one(old, new)
    assert may_be_one(new, old)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The user teaches maths at a school.", "The user studies maths at a school."),
        ("The user lends money to a neighbour.", "The user borrows money from a neighbour."),
        ("The user is looking for a job.", "The user found a job."),
        ("The user likes early flights.", "The user likes late flights."),
        ("The user is vegetarian.", "The user is vegan."),
        ("The user is careful with money.", "The user is careless with money."),
        ("The user is an employer.", "The user is an employee."),
        ("The user is allergic to peanuts.", "The user has no peanut allergy."),
        ("The user is allergic to peanuts.", "The user's son has a peanut allergy."),
        ("The user hikes 10 km.", "The user went hiking for 12 km."),
        ("The user hikes in May.", "The user goes hiking in June."),
        ("The user hikes with Ana.", "The user goes hiking with Ben."),
        ("The user hikes only on Sunday.", "The user goes hiking on Sunday."),
        ("The user hikes.", "The user swims."),
    ],
)
def test_what_differs_is_never_one_whatever_a_vector_says(old: str, new: str) -> None:
    assert not may_be_one(old, new)
    assert not may_be_one(new, old)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The traveller pays €50.", "The traveller pays $50."),
        ("The traveller pays 50 €.", "The traveller pays 50 $."),
        ("The traveller likes it at -5 degrees.", "The traveller likes it at 5 degrees."),
        ("The traveller wants >2 rooms.", "The traveller wants <2 rooms."),
        ("The blood type is A+.", "The blood type is A-."),
        ("The traveller has 50%.", "The traveller has 50."),
        ("The traveller speaks C.", "The traveller speaks C++."),
        ("The traveller likes ❤️ dogs", "The traveller likes 💔 dogs"),
        ("The traveller wants tea or coffee.", "The traveller wants tea and coffee."),
    ],
)
def test_signs_carry_a_difference(one: str, other: str) -> None:
    assert likeness(one, other) == likeness(other, one) == "other"


@pytest.mark.parametrize("word", ["hardly", "seldom", "pretends to", "não", "tak", "nebo", "wrongly"])
def test_a_word_in_front_may_turn_a_statement_round(word: str) -> None:
    said = "The traveller {}likes quiet small hotels near old harbours with gardens."
    assert likeness(said.format(""), said.format(word + " ")) == "other"
    assert likeness(said.format(""), said.format("").replace(".", " and pools.")) == "more"
