from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from docmem import trailers


@given(st.text())
def test_any_value_is_one_word_of_ascii_and_comes_back(value: str) -> None:
    word = trailers.encode(value)
    assert word.isascii()
    assert len(word.split()) == (1 if value else 0)
    assert trailers.decode(word) == value


@given(st.lists(st.text(min_size=1)))
def test_a_list_comes_back(values: list[str]) -> None:
    assert trailers.decode_list(trailers.encode_list(values)) == tuple(values)


def test_a_thread_can_t_forge_a_trailer() -> None:
    message = trailers.message("Subject", {"Docmem-Thread": trailers.encode("x\nDocmem-Deletes: 9"), "Docmem-Run": ""})
    assert message == "Subject\n\nDocmem-Thread: x%0ADocmem-Deletes:%209\n"
