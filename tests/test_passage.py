from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from docmem.passage import LIMIT, best, passages


def test_a_paragraph_is_a_passage_and_a_long_one_is_cut_at_sentences() -> None:
    text = "# Title\n\nOne\nparagraph.\n\n" + "A sentence of some length stands here. " * 30
    pieces = passages(text)
    assert pieces[:2] == ["# Title", "One paragraph."]
    assert all(piece.endswith("here.") for piece in pieces[2:])
    assert " ".join(pieces[2:]) == ("A sentence of some length stands here. " * 30).strip()


def test_the_passage_that_answers_is_the_one_that_shares_most() -> None:
    assert best(
        "Trains go hourly.\n\nRefunds take ten days.", "How long does a refund take?", language="english"
    ).text == ("Refunds take ten days.")
    assert best("", "anything", language="english") == ("", True, True)


@given(st.text(max_size=3000), st.integers(0, 3))
def test_no_text_has_a_passage_over_the_limit(text: str, times: int) -> None:
    assert all(0 < len(piece) <= LIMIT for piece in passages(text * times))
