"""chunks: a long document in pieces, none of it lost."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docmem_sync.chunks import OVERLAP, SIZE, overlap, split


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


def test_a_chunk_is_searched_with_the_last_paragraph_of_the_one_before() -> None:
    text = "\n\n".join(f"{number} {'word ' * 30}end{number}." for number in range(30))
    chunks = split(text)
    assert len(chunks) > 2
    for before, chunk in pairwise(chunks):
        found = overlap(before, chunk)
        assert 0 < len(found) <= OVERLAP
        assert before.rstrip().endswith(found)
        assert found.split()[0].isdigit()  # the whole paragraph
        assert found not in chunk


def test_where_a_heading_begins_a_chunk_the_section_before_is_left_alone() -> None:
    part = "## Head\n" + "word " * 200
    chunks = split("\n".join([part, part]))
    assert overlap(chunks[0], chunks[1]) == ""
    assert overlap("Long ago.\n\n## New\n\nBegun.\n\n", "So it went on.") == "Long ago.\n\n## New\n\nBegun."
    assert overlap("x " * 300 + "\n\n## New\n\nBegun.\n\n", "So it went on.") == "## New\n\nBegun."


@pytest.mark.parametrize(
    "before", ["", "x" * SIZE, "记" * SIZE, "One. " * 300, "a\n" * 700, "b " * 700 + "\n\nOk.\n\n"]
)
def test_an_overlap_is_an_end_and_never_long(before: str) -> None:
    found = overlap(before, "next")
    assert before.rstrip().endswith(found)
    assert len(found) <= OVERLAP
    assert found or not before


def test_what_is_put_in_near_the_top_leaves_the_other_chunks_as_they_are() -> None:
    random = Random(1)
    paragraphs = [" ".join(f"w{random.randrange(999)}" for _ in range(random.randrange(30, 70))) for _ in range(200)]
    before = split("\n\n".join(paragraphs))
    after = split("\n\n".join([*paragraphs[:3], "A new short paragraph.", *paragraphs[3:]]))
    assert len({*before} & {*after}) >= len(before) * 0.9
