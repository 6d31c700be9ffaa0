from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmem import files, layout
from docmem.errors import FormatError
from docmem.model import Marks, Watermark
from tests.support.repos import memory, subject

PATH = layout.memory_path(subject(), "7f3a9c21d0b48e15", "Plans Portugal")
EXAMPLE = b"""---
id: 7f3a9c21d0b48e15
kind: fact
topic: trip_preferences
confidence: 0.9
importance: 6
valid_from: 2026-05-02T10:14:00Z
source: {thread: web-812, turns: [t4, t6], quote: mid-range budget}
---
The traveller plans Portugal in early May for two adults on a mid-range budget.
"""


def test_the_example_of_the_format_reads_and_writes_back_to_itself() -> None:
    read = files.parse_memory(PATH, EXAMPLE)
    assert read.topic == "trip_preferences"
    assert read.source.turns == ("t4", "t6")
    assert read.subject == subject()
    assert files.render_memory(read) == EXAMPLE


def test_a_file_and_its_windows_twin_read_alike() -> None:
    """F1"""
    twin = b"\xef\xbb\xbf" + EXAMPLE.replace(b"\n", b"\r\n")
    assert files.parse_memory(PATH, twin) == files.parse_memory(PATH, EXAMPLE)


@pytest.mark.parametrize(
    ("old", "new", "code", "line"),
    [
        ("id: 7f3a9c21d0b48e15\n", "", "bad_field", 2),
        ("id: 7f3a9c21d0b48e15", "id: ../../x", "bad_field", 2),
        ("kind: fact", "kind: rumour", "bad_field", 3),
        ("importance: 6", "importance: 11", "bad_field", 6),
        ("importance: 6", "importance: much", "bad_field", 6),
        ("confidence: 0.9", "confidence: 2", "bad_field", 5),
        ("confidence: 0.9", "confidence: .nan", "bad_field", 5),
        ("topic: trip_preferences", "topic: [a]", "bad_field", 4),
        ("2026-05-02T10:14:00Z", "2026-13-45", "bad_field", 7),
        ("2026-05-02T10:14:00Z", "22:30", "bad_field", 7),
        ("[t4, t6]", "t4", "bad_field", 8),
        ("[t4, t6]", "[t4, ~]", "bad_field", 8),
        ("importance: 6", "importance: 6\nimportance: 7", "duplicate_key", 7),
        ("kind: fact", "kind: fact\ntenant: other", "tenant_in_file", 4),
        ("kind: fact", "kind: fact\nTenant_Id: other", "tenant_in_file", 4),
    ],
)
def test_a_memory_that_breaks_the_format_names_its_line(old: str, new: str, code: str, line: int) -> None:
    with pytest.raises(FormatError) as caught:
        files.parse_memory(PATH, EXAMPLE.replace(old.encode(), new.encode()))
    assert (caught.value.code, caught.value.line) == (code, line)


@pytest.mark.parametrize("data", [b"", b"no head\n", EXAMPLE.split(b"The")[0], b"---\n---\n"])
def test_a_memory_without_head_or_text_is_an_error(data: bytes) -> None:
    with pytest.raises(FormatError):
        files.parse_memory(PATH, data)


def test_text_over_the_limit_is_an_error() -> None:
    with pytest.raises(FormatError) as caught:
        files.parse_memory(PATH, EXAMPLE + b"x" * 12_000)
    assert caught.value.code == "text_size"


def test_unknown_keys_survive_as_meta_and_through_an_edit() -> None:
    data = EXAMPLE.replace(b"kind: fact", b"kind: fact\nver: 1.10   # as printed\ncountry: NO\nnick: ~")
    assert files.parse_memory(PATH, data).meta == {"ver": "1.10", "country": "NO", "nick": None}
    edited = files.edit_memory(data, {("importance",): 7}, text="Shorter.")
    assert b"ver: 1.10   # as printed\ncountry: NO\nnick: ~\n" in edited
    assert files.parse_memory(PATH, edited) == replace(files.parse_memory(PATH, data), importance=7, text="Shorter.")


def test_a_broken_head_is_never_rewritten() -> None:
    """F2"""
    with pytest.raises(FormatError):
        files.edit_memory(b'---\ndescription: "said "hi" twice"\n---\ntext\n', {("importance",): 7})


def test_null_where_text_is_required_names_the_field() -> None:
    """F3"""
    with pytest.raises(FormatError, match=r"attributes\.nick"):
        files.parse_profile(layout.profile_path(subject()), b"attributes:\n  nick: ~\n")


def test_profile_texts_are_as_written() -> None:
    data = b"locale: NO\nattributes:\n  code: 0012\n  at: 22:30\n  ver: 1.10\n  n: 5\n  b: true\n"
    profile = files.parse_profile(layout.profile_path(subject()), data)
    assert profile.locale == "NO"
    assert profile.attributes == {"code": "0012", "at": "22:30", "ver": "1.10", "n": "5", "b": "true"}


@pytest.mark.parametrize(
    "line", ["tenant: x", "remember: perhaps", "attributes: 5", "pinned: x", "last_interaction_at: x"]
)
def test_a_profile_that_breaks_the_format_is_an_error(line: str) -> None:
    with pytest.raises(FormatError):
        files.parse_profile(layout.profile_path(subject()), line.encode())


def test_a_document_is_titled_by_head_heading_or_name() -> None:
    assert files.parse_document("knowledge/a.md", b"---\ntitle: 2026-05-26\n---\n# No\n").title == "2026-05-26"
    assert files.parse_document("knowledge/a.md", b"text\n\n## Yes #\n").title == "Yes"
    assert files.parse_document("knowledge/b/a.md", b"text\n").title == "a"


def test_a_document_may_begin_with_a_rule() -> None:
    """F4"""
    assert files.parse_document("knowledge/a.md", b"---\nnever closed\n").text == "---\nnever closed"


def test_watermark_and_reverted_read_back() -> None:
    mark = Watermark(thread="a: 'b' #c", subject=subject(), agent="default", last_turn="0012", input_hash="ab")
    assert files.parse_watermark(files.render_watermark(mark)) == mark
    for marks in (Marks(), Marks(frozenset({"b", "a"})), Marks(frozenset({"a"}), frozenset({"c", "d"}))):
        assert files.parse_reverted(files.render_reverted(marks)) == marks
    assert files.parse_reverted(b"reverted: [a]\n") == Marks(frozenset({"a"})), "as files of before had it"


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), min_size=1, max_size=80)


@given(TEXT, TEXT, st.lists(TEXT, max_size=3))
def test_any_memory_reads_back_as_written(text: str, quote: str, turns: list[str]) -> None:
    if not text.strip() or text.lstrip().startswith("---") or "<<<" in text or ">>>" in text or "===" in text:
        return
    one = memory("x")
    written = replace(
        one, text=text.strip(), topic=quote, source=replace(one.source, quote=quote, turns=tuple(turns), thread=quote)
    )
    assert files.parse_memory(written.path, files.render_memory(written)) == written


def test_a_heading_with_a_long_run_of_blanks_costs_no_more_than_its_length() -> None:
    document = files.parse_document("knowledge/a.md", b"# a" + b" " * 100_000 + b"b ##\ntext\n")
    assert document.title == "a" + " " * 100_000 + "b"
    assert files.parse_document("knowledge/a.md", b"# C#\n").title == "C#"
