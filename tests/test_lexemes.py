"""lexemes: without Postgres a text is found by what the index finds it by (tests/test_words.py has the same texts)."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from docmem.assembly import requested
from docmem.config import Settings
from docmem.fallback import Fallback
from docmem.files import render_memory
from docmem.filesearch import Passages, ranked
from docmem.lexemes import lexemes
from docmem.model import Document
from tests.support.repos import NOW, memory, put
from tests.test_words import (
    ALIKE,
    CHARACTERS,
    EXACT,
    FORMS,
    NAMED_OFTEN,
    QUESTIONS,
    SAID_OF_ALL,
    TONGUES,
    of_forms,
    of_often,
)

SAID = random.Random(1).sample([*(one["says"] for one in EXACT), *ALIKE], len(EXACT) + len(ALIKE))


def test_words_are_folded_stemmed_and_stop_words_go() -> None:
    assert lexemes("What agencies did She RESEARCH?", language="english") == ["agenc", "research"]
    assert lexemes("Straße, trip_preferences", language="simple") == ["strasse", "trip", "preferences"]


def test_letters_of_another_form_are_the_same_letters() -> None:
    assert lexemes("ＺＥＢＲＡ zeb\u202era", language="simple") == ["zebra", "zebra"]


def test_a_word_with_accents_counts_no_more_than_another() -> None:
    assert lexemes("José habitações", language="english", asked=True) == ["jose", "habitaco"]
    assert lexemes("José habitações", language="portuguese", asked=True) == ["jos", "habit", "habitaco"]


def test_words_in_the_script_of_another_language_have_its_stems_too() -> None:
    assert lexemes("हिन्दी में", language="simple") == ["हिन्दी", "में", "हिन्द", "म"]
    assert lexemes("हिन्दी में", language="hindi") == ["हिन्द", "म"]
    assert lexemes("Ana: аллергии", language="english", asked=True) == ["ana", "аллерг"]


def test_prose_has_its_words_alone() -> None:
    said = "2 May 2026. trip preferences: She'd like 12 plums, not 5."
    assert lexemes(said, language="simple") == [
        "2", "may", "2026", "trip", "preferences", "d", "like", "12", "plums", "5",
    ]  # fmt: skip


def of_memories(language: str) -> Passages:
    made = Passages(language)
    for number, text in enumerate(SAID):
        made.add_memory(memory(text, number=number, valid_from=None), "r", NOW)
    return made


def of_documents(language: str) -> Passages:
    made = Passages(language)
    for number, text in enumerate(SAID):
        page = Document(path=f"knowledge/d{number}a.md", folder="knowledge", title=f"d{number}a", text=text)
        made.add_document(page, "r", "")
    return made


@pytest.mark.parametrize("language", ["simple", "english", "german"])
@pytest.mark.parametrize("made", [of_memories, of_documents])
def test_what_is_exact_is_found_first_however_it_is_written(made: Callable[[str], Passages], language: str) -> None:
    passages = made(language)
    found = {
        (question, one["says"]): [hit.text for hit in ranked(question, [passages], limit=1)]
        for one in EXACT
        for question in one["asked"]
    }
    assert {asked: hits for asked, hits in found.items() if hits != [asked[1]]} == {}


def test_a_goal_without_spaces_gets_what_it_is_about_and_nothing_where_that_is_nothing(
    settings: Settings, tenant: str
) -> None:
    memories = [
        memory(text, who=tongue, number=number)
        for tongue, one in TONGUES.items()
        for number, text in enumerate(one["memories"])
    ]
    put(settings, tenant, {one.path: render_memory(one) for one in memories})
    files = Fallback(settings)

    def text(who: str, goal: str) -> str:
        asked = requested(tenant, who, goal, agent=None, run=None, blocks=None, documents=())
        made = files.packet(asked, wait=60)
        assert made is not None
        return made.text

    for tongue, one in TONGUES.items():
        assert [goal for goal, word in one["related"].items() if word not in text(tongue, goal)] == []
        assert [goal for goal in one["unrelated"] if text(tongue, goal)] == []


def test_a_goal_gets_of_files_what_it_means_in_any_form_and_nothing_of_a_neighbour(
    settings: Settings, tenant: str
) -> None:
    put(settings, tenant, {one.path: render_memory(one) for one in of_forms()})
    files = Fallback(settings)

    def answered(one: dict[str, Any], goal: str) -> bool:
        asked = requested(tenant, one["says"], goal, agent=None, run=None, blocks=None, documents=())
        made = files.packet(asked, wait=60)
        return made is not None and bool(made.text)

    missed = [(one["says"], goal) for one in FORMS for goal in one.get("answers", ()) if not answered(one, goal)]
    shown = [(one["says"], goal) for one in FORMS for goal in one.get("not", ()) if answered(one, goal)]
    assert (missed, shown) == ([], [])


def test_a_goal_gets_of_files_what_many_memories_are_about_and_not_all_that_are_about_somebody(
    settings: Settings, tenant: str
) -> None:
    put(settings, tenant, {one.path: render_memory(one) for one in of_often()})
    files = Fallback(settings)

    def text(who: str, goal: str) -> str:
        made = files.packet(requested(tenant, who, goal, agent=None, run=None, blocks=None, documents=()), wait=60)
        assert made is not None
        return made.text

    for goal in NAMED_OFTEN:
        assert (text("tom", goal).count("Porto"), text("tom", goal).count("Tom")) == (5, 0), goal
    assert [goal for goal in SAID_OF_ALL if text("ana", goal)] == []


def test_any_text_has_words_and_not_many_times_its_characters() -> None:
    chance = random.Random(1)
    hostile = [
        mark * 1_000 for mark in ("1-", "1 ", "a1", "1(", "a.", "-", "ü ", "LH 1", "2024-05-02 ", "1.1.1.1 ", "´")
    ]
    hostile += ["".join(chance.choices(pool, k=3_000)) for pool in (*CHARACTERS, "".join(CHARACTERS))]
    for text in (*hostile, *QUESTIONS, ""):
        for asked in (False, True):
            words = lexemes(text, language="german", asked=asked)
            assert len(words) <= 3 * len(text) + 20
            assert "" not in words
