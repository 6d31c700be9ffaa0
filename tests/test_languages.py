"""languages: what people write, and which configuration it means."""

from __future__ import annotations

import pytest

from docmem.languages import configuration, is_language


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (None, None), ("pt", "portuguese"), ("pt-BR", "portuguese"), ("PT_br", "portuguese"), (" German ", "german"),
        ("nb", "norwegian"), ("simple", "simple"), ("ms-MY", "simple"), ("zh-Hant-TW", "simple"),
        ("Klingon", "simple"), ("", "simple"),
    ],
)  # fmt: skip
def test_a_tag_or_a_name_is_its_configuration_and_what_postgres_has_no_words_of_is_simple(
    written: str | None, expected: str | None
) -> None:
    assert configuration(written) == expected


@pytest.mark.parametrize(("written", "expected"), [("pt-BR", True), ("ms", True), ("english", True), ("englsh", False)])
def test_a_mistyped_name_is_no_language(written: str, expected: bool) -> None:
    assert is_language(written) is expected
