"""projection: the text under which something is searched."""

from __future__ import annotations

from docmem.projection import project_document, project_memory, projection_hash
from tests.support.repos import memory


def test_a_memory_is_searched_by_its_day_its_topic_and_its_text() -> None:
    assert project_memory(memory("Likes tea.", topic="hot_drinks")) == "2 May 2026. hot drinks: Likes tea."
    assert project_memory(memory("Likes tea.", valid_from=None)) == "Likes tea."


def test_a_document_is_searched_by_its_title_once() -> None:
    assert project_document("Visa", "# Visa\nNone needed.") == "# Visa\nNone needed."
    assert project_document("Visa", "None needed.") == "Visa\nNone needed."


def test_a_chunk_is_searched_by_the_end_of_the_one_before_it() -> None:
    assert project_document("Visa", "So take it along.", before="A passport.") == "Visa\nA passport.\nSo take it along."


def test_another_text_has_another_hash() -> None:
    assert projection_hash("a") != projection_hash("b")
    assert len(projection_hash("a")) == 32
