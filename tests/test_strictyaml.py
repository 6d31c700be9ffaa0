import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmem import splice, strictyaml
from docmem.errors import FormatError


def test_what_is_written_as_text_stays_text() -> None:
    """F3: dates, NO, 22:30, 0012 and 1.10 mean what they say."""
    text = "title: 2026-05-26\ncountry: NO\nat: 22:30\ncode: 0012\nver: 1.10\non: x\ndue: 2025-13-45\n"
    text += "wrapped: one\n  two\n"
    assert strictyaml.load(text) == {
        "title": "2026-05-26",
        "country": "NO",
        "at": "22:30",
        "code": "0012",
        "ver": "1.10",
        "on": "x",
        "due": "2025-13-45",
        "wrapped": "one two",
    }


def test_only_true_false_null_and_plain_numbers_are_anything_else() -> None:
    text = "[true, false, null, ~, 5, -3, 0.5, True, yes, 1e3, 0x1F, .5, 1_000, .inf]"
    assert strictyaml.load(text) == [
        True, False, None, None, 5, -3, 0.5, "True", "yes", "1e3", "0x1F", ".5", "1_000", ".inf"
    ]  # fmt: skip


def test_quoted_numbers_are_text() -> None:
    assert strictyaml.load("a: '5'\nb: \"true\"") == {"a": "5", "b": "true"}


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("a: 1\na: 2", "duplicate_key", 2),
        ("x: 1\na: &b 2", "yaml_alias", 2),
        ("title: *x*", "yaml", 1),
        ("title: *x", "yaml_alias", 1),
        ("a: !!str 5", "yaml_tag", 1),
        ('description: "said "hi" twice"', "yaml", 1),
        ("path: C:\\x: y", "yaml", 1),
        ("a: 1\n---\nb: 2", "yaml", 2),
        ("[" * 20_000, "yaml", 1),
        ("{" * 20_000, "yaml", 1),
        ("- " * 20_000, "yaml", 1),
        ("[a]: 1", "yaml", 1),
        ("a: \x01", "yaml", 1),
        ("a: " + "x" * 70_000, "too_large", 1),
    ],
)
def test_what_could_be_misread_is_refused_with_its_line(text: str, code: str, line: int) -> None:
    with pytest.raises(FormatError) as caught:
        strictyaml.load(text)
    assert (caught.value.code, caught.value.line) == (code, line)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=50))
def test_any_text_survives_rendering(text: str) -> None:
    rendered = splice.render(text)
    assert strictyaml.load(f"k: {rendered}") == {"k": text}
    assert strictyaml.load(f"{{{rendered}: [{rendered}]}}") == {text: [text]}


@given(st.text(max_size=200))
def test_reading_never_raises_anything_but_a_format_error(text: str) -> None:
    with contextlib.suppress(FormatError):
        strictyaml.load(text)
