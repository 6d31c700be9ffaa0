"""Near-identical statements are one; a wrong merge is worse than a duplicate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmem.wording import likeness, overlap


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("The user is vegetarian.", "The traveller follows a vegetarian diet.", "same"),
        ("The user prefers mid-range hotels.", "User prefers mid-range hotels", "same"),
        ("The traveller is allergic to peanuts.", "The client has been allergic to peanut", "other"),
        ("The user likes hiking and museums", "The user likes museums and hiking", "same"),
        ("The user wants a hotel near the old town, quiet, breakfast", "wants a quiet hotel near old town", "less"),
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
