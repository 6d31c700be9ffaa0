"""chunks: a long document in pieces, none of it lost."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from docmem_sync.chunks import SIZE, split


@settings(max_examples=50, deadline=None)
@given(st.text(alphabet="a b\n#.é", max_size=6 * SIZE))
def test_joined_the_chunks_are_the_text(text: str) -> None:
    chunks = split(text)
    assert "".join(chunks) == text
    assert all(len(chunk) <= SIZE for chunk in chunks)


def test_a_short_text_is_one_chunk_and_an_empty_one_too() -> None:
    assert split("short") == ["short"]
    assert split("") == [""]


def test_headings_begin_chunks() -> None:
    part = "## Head\n" + "word " * 200
    chunks = split("\n".join([part, part, part]))
    assert len(chunks) == 3
    assert all(chunk.startswith("## Head\n") for chunk in chunks)


def test_a_line_without_any_blank_is_cut_hard() -> None:
    assert [len(chunk) for chunk in split("x" * (2 * SIZE + 1))] == [SIZE, SIZE, 1]
