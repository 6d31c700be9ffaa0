import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmem import document
from docmem.errors import FormatError


def test_a_byte_order_mark_and_crlf_are_read_as_if_not_there() -> None:
    """F1"""
    plain = b"---\nid: 1\n---\nHello\nthere\n"
    windows = b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n")
    assert document.split(windows) == document.split(plain)


@pytest.mark.parametrize(
    "text",
    [
        "---\nno closing fence\n",
        " ---\na: 1\n---\nb",
        "text\n---\na: 1\n---\n",
        "----\na: 1\n----\n",
        "---\na: 1\n--- \nb\n",
        "",
    ],
)
def test_only_a_closed_fence_at_byte_0_is_a_head(text: str) -> None:
    parts = document.split(text.encode())
    assert parts.head is None
    assert parts.body == text


def test_rules_in_a_body_are_text() -> None:
    parts = document.split(b"---\na: 1\n---\nabove\n\n---\n\nbelow\n\n---\n")
    assert parts.mapping() == {"a": 1}
    assert parts.body == "above\n\n---\n\nbelow\n\n---\n"


def test_a_body_may_begin_with_a_rule() -> None:
    assert document.split(b"---\na: 1\n---\n---\nJust a rule above.\n---\n").body.startswith("---\n")


@pytest.mark.parametrize("second", ["b: 2", 'description: "said "hi" twice"', "id: x\nkind: fact"])
def test_two_heads_are_an_error(second: str) -> None:
    """F2: neither 'the first wins' nor a second one in front."""
    with pytest.raises(FormatError) as caught:
        document.split(f"---\na: 1\n---\n\n---\n{second}\n---\ntext\n".encode())
    assert caught.value.code == "two_heads"
    assert caught.value.line == 4


@pytest.mark.parametrize(
    "text", ["<<<<<<< HEAD\na\n=======\nb\n>>>>>>> branch\n", "---\na: 1\n<<<<<<< HEAD\n---\nx\n", "x\n>>>>>>> b\n"]
)
def test_conflict_markers_are_an_error(text: str) -> None:
    """F14"""
    with pytest.raises(FormatError) as caught:
        document.split(text.encode())
    assert caught.value.code == "conflict_marker"


@pytest.mark.parametrize("fence", ["```", "~~~~", "````"])
def test_a_code_sample_may_show_conflict_markers(fence: str) -> None:
    text = f"Like so:\n\n{fence}text\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n{fence}\n"
    assert document.split(text.encode()).body == text


def test_nul_and_lone_surrogates_go_and_are_counted() -> None:
    """F5"""
    assert document.scrub("a\0b\ud800c") == ("abc", 2)
    assert document.scrub_value({"k\0": ["a\0", {"n": "\udfff"}], "n": 1}) == ({"k": ["a", {"n": ""}], "n": 1}, 3)
    family = "👨‍👩‍👧 café"
    assert document.scrub(family) == (family, 0)


def test_what_is_not_utf8_is_an_error_with_its_line() -> None:
    with pytest.raises(FormatError) as caught:
        document.split(b"one\ntwo\n\xff\n")
    assert (caught.value.code, caught.value.line) == ("not_utf8", 3)


def test_a_file_over_the_limit_is_an_error() -> None:
    with pytest.raises(FormatError) as caught:
        document.split(b"x" * (document.FILE_MAX + 1))
    assert caught.value.code == "too_large"


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(FormatError):
        document.split(data)
