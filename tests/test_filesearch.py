from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Plus

from docmem import filesearch
from docmem.config import Settings
from docmem.errors import NotFound
from docmem.files import render_memory
from docmem.model import Memory
from tests.support.repos import NOW, memory, put, subject

LATER = NOW + timedelta(days=1)


def keep(settings: Settings, *memories: Memory, **documents: bytes) -> str:
    changed: dict[str, bytes | None] = {one.path: render_memory(one) for one in memories}
    return put(settings, "acme", changed | {path.replace("__", "/") + ".md": data for path, data in documents.items()})


def found(settings: Settings, query: str, **options: object) -> list[str]:
    result = filesearch.search(settings, "acme", query, now=LATER, **options)  # type: ignore[arg-type]
    assert result.degraded == "files"
    return [hit.text for hit in result.hits]


def test_finds_memories_and_documents_without_postgres(settings: Settings, tenant: str) -> None:
    fact = memory("The traveller researches adoption agencies.")
    revision = keep(
        settings, fact, memory("Likes the sea."), knowledge__refunds=b"# Refunds\n\nRefunds take ten days.\n"
    )
    hit = filesearch.search(settings, tenant, "What agency did she research?", subject="ana", now=LATER).as_json()
    assert hit["degraded"] == "files"
    assert hit["hits"][0] | {"signals": None, "score": None} == {
        "id": fact.id, "path": fact.path, "kind": "fact", "subject": subject(), "text": fact.text, "score": None,
        "source": {"thread": "web-1", "turns": ["t1"]}, "revision": revision, "signals": None,
    }  # fmt: skip
    assert found(settings, "how long does a refund take") == ["Refunds take ten days."]


def test_answers_the_paragraph_and_not_the_file(settings: Settings, tenant: str) -> None:
    pages = "\n\n".join(f"Paragraph {number} about topic{number}." for number in range(100))
    keep(settings, knowledge__long=f"# Long\n\n{pages}\n\n{'Tigers sleep. ' * 60}\n".encode())
    assert found(settings, "topic42") == ["Paragraph 42 about topic42."]
    assert all(len(text) <= 500 for text in found(settings, "tigers"))
    assert len(found(settings, "tigers")) == 1


def test_says_of_each_hit_its_place_and_what_it_counts_beside_the_best(settings: Settings, tenant: str) -> None:
    keep(settings, memory("Black tea."), memory("Green tea.", who="bo"), memory("Green tea and coffee with milk."))
    signals = [hit.as_json()["signals"] for hit in filesearch.search(settings, tenant, "green tea", now=LATER).hits]
    assert [of["lexical_rank"] for of in signals] == [1, 2, 3]
    assert signals[0]["relevance"] == 1 > signals[1]["relevance"] > signals[2]["relevance"] > 0


def test_sees_a_subjects_memories_as_the_index_would(settings: Settings, tenant: str) -> None:
    keep(
        settings,
        memory("tea of Ana"),
        memory("tea of Bo", who="bo"),
        memory("tea for sales", agent="sales"),
        memory("tea expired", expires=NOW),
        memory("tea that was", valid_until=NOW),
        memory("tea to come", valid_from=LATER + timedelta(days=1)),
        memory("tea long ago", kind="episode", valid_from=LATER - timedelta(days=91)),
    )
    assert set(found(settings, "tea", subject="ana", agent="default")) == {"tea of Ana"}
    assert set(found(settings, "tea", subject="ana")) == {"tea of Ana", "tea for sales"}
    assert set(found(settings, "tea")) == {"tea of Ana", "tea of Bo", "tea for sales"}
    assert found(settings, "tea", kinds=()) == []


@pytest.mark.parametrize("query", ["", "of the", "🤷", "'; DROP TABLE x", "tea\0\ud800", "submarine " * 900])
def test_any_question_is_answered(settings: Settings, tenant: str, query: str) -> None:
    keep(settings, memory("Ana likes tea."))
    assert set(found(settings, query)) <= {"Ana likes tea."}


def test_an_unrelated_question_finds_nothing(settings: Settings, tenant: str) -> None:
    keep(settings, *(memory(f"Likes walking tour {number} in the old town.") for number in range(20)))
    assert found(settings, "What is the boiling point of nitrogen in the sea?", folders=()) == []


def test_a_file_that_does_not_parse_leaves_the_others(settings: Settings, tenant: str) -> None:
    good = memory("Ana likes tea.")
    put(settings, "acme", {good.path: render_memory(good), good.path.replace(".md", "-bad.md"): b"no head, tea"})
    assert found(settings, "tea") == ["Ana likes tea."]


def test_an_older_commit_can_be_searched(settings: Settings, tenant: str) -> None:
    one = memory("Ana likes tea.")
    before = keep(settings, one)
    put(settings, "acme", {one.path: None})
    assert found(settings, "tea") == []
    assert found(settings, "tea", revision=before) == ["Ana likes tea."]


WORDS = ["tea", "boat", "train", "hotel", "refund", "seat", "Lisbon", "Porto"]


@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12), min_size=1, max_size=8),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True),
    st.integers(0, 8),
)
def test_the_ranking_is_that_of_rank_bm25(texts: list[list[str]], question: list[str], cut: int) -> None:
    parts = [filesearch.Passages("simple"), filesearch.Passages("simple")]
    for number, words in enumerate(texts):
        one = replace(memory(" ".join(words), number=number), valid_from=None, topic=None)
        parts[number >= cut].add_memory(replace(one, path=f"{number}.md"), "r", NOW)
    model = BM25Plus([[word.casefold() for word in words] for words in texts], k1=1.5, b=filesearch.B, delta=0)
    scores = model.get_scores([word.casefold() for word in question])
    wanted = {f"{number}.md": float(score) for number, score in enumerate(scores) if score > 0}
    found = filesearch.ranked(" ".join(question), parts, limit=100)
    assert {hit.path: hit.score for hit in found} == pytest.approx(wanted)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


def test_a_broken_config_leaves_the_last_good_one(settings: Settings, tenant: str) -> None:
    good = b"format: 1\nlanguage: english\nagents: {default: {}}\n"
    keep(settings, memory("Ana researches adoption agencies."))
    put(settings, "acme", {"docmem.yaml": good})
    put(settings, "acme", {"docmem.yaml": b"format: ["})
    assert found(settings, "agency") == ["Ana researches adoption agencies."]


def test_an_unknown_tenant_is_an_error(settings: Settings, tenant: str) -> None:
    with pytest.raises(NotFound):
        filesearch.search(settings, "nobody", "tea")
