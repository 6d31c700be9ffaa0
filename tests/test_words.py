"""words: what a text is found by, and what a question asks for."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import pytest
import yaml

from docmem.config import Settings
from docmem.document import scrub
from docmem.files import render_memory
from docmem.index import Reader
from docmem.inject import Injector
from docmem.model import Memory
from docmem.recall import search
from docmem_sync.sync import sync_tenant
from tests.support.index import rows
from tests.support.repos import memory, put
from tests.test_recall import NOW, Axes, texts

DATA = Path(__file__).parent / "data"
EXACT: list[dict[str, Any]] = yaml.safe_load((DATA / "exact.yaml").read_text(encoding="utf-8"))
FORMS: list[dict[str, Any]] = yaml.safe_load((DATA / "forms.yaml").read_text(encoding="utf-8"))
TONGUES: dict[str, Any] = yaml.safe_load((DATA / "tongues.yaml").read_text(encoding="utf-8"))
ALIKE = [
    *(
        f"The traveller is booked on {line} {number} to Munich."
        for line in ("LH", "TP")
        for number in range(1235, 1250)
    ),
    *(f"The server answers with TP-{number} since the update." for number in range(1359, 1374)),
    *(f"The customer disputes INV-{2023 + number % 3}-{number:05} because of shipping." for number in range(175, 195)),
    *(f"The customer transferred {number},250.50 euros for the boat." for number in range(2, 17)),
    *(f"The plumber can be called under +49 {number} 76543{number % 10}2." for number in range(31, 46)),
    *(f"The refund goes to DE{number} 3704 0044 0532 0130 {number}." for number in range(10, 25)),
    *(f"The contract was signed on 2024-{month:02}-11 in Rome." for month in range(1, 13)),
    *(f"Frau Meyer {name} liest die Akten." for name in ("Weber", "Huber", "Lang", "Maurer", "Mühl")),
    *(
        "東京は雨です。",
        "妻は元気です。",
        "今日は忙しいです。",
        "他每天跑步。",
        "她住在北京。",
        "ลูกค้าอยู่เชียงใหม่",
        "고객은 서울에 삽니다.",
    ),
]

CHARACTERS = (
    "aZ09-./_,' ()#:+@\\\"&|!*<>\t\n",
    "\u00a0\u202f’“”—…«»¿€½²ﬁ№",
    "äöüßøåéñıİŁŒ\u0308\u0301",
    "東京寿司犬食々〇。、・「」",
    "すしのはがアレルギーー",
    "김치를해요",
    "กาแฟรถเข็นที่๑๒",
    "ລາວ",
    "မြန်မာ",
    "ខ្មែរ",
    "हिन्दी",
    "שלום",
    "العربية٠١",
    "🍕👨\u200d👩🏽\ufe0f",
    "ＬＨ１２３４",
    "\U00020000\U0002a6df\ufeff\u00ad",
)
QUESTIONS = [
    "",
    " ",
    "tea",
    "TEA",
    "茶",
    "犬",
    "の",
    "ชา",
    "차",
    "чай",
    "شاي",
    "दो",
    "🤷",
    "🍵🍵 👨\u200d👩\u200d👧 ❤️",
    "the of and",
    "not",
    "…",
    "—",
    "’",
    "0",
    "-1",
    "Was trinkt sie gern, Tee oder Kaffee?",
    "彼女は何を飲みますか？",
    "她喜欢喝什么？",
    "เธอชอบดื่มอะไร",
    "그녀는 무엇을 마셔요?",
    "Что она пьёт?",
    "'; DROP TABLE docmem.memory; --",
    "' OR 1=1 --",
    "SELECT * FROM docmem.memory WHERE text LIKE '%tea%'",
    "tea'::tsquery",
    "$1 $$ %s %(tenant)s %% {0}",
    "tea & | ! <-> :* ( '",
    "!tea & (coffee | !",
    "tea:*ABCD",
    "tea <2> milk",
    "a:b c\\d 'x''y' \\",
    "\\",
    "'",
    "''",
    "\\'",
    '"',
    "tea\0\ud800",
    "http://example.com/a/b?c=d tea-pot mid-range 4.5 foo@bar.com",
    "tea " * 500,
    "t" * 2_000,
    "東" * 2_000,
    "9" * 2_000,
    "-" * 2_000,
    "1 " * 1_000,
    "1-" * 1_000,
    "2024-05-02 " * 180,
    "99999999-99-99",
    "31.02.2024",
    "0/0/0000",
    "00 May 2024",
    "May 99, 9999",
    " ".join(map(str, range(500))),
    "🍵" * 2_000,
    "e" + "\u0301" * 100_000,
    "\u202etea 14:30\u202c \u200f" + "שלום " * 300,
    "tea & !coffee | (milk <-> sugar):*ABCD <999999> ''",
    "\0tea \udfff INV-2024\0-00174",
    "\\" * 2_000,
    "a@" * 2_000,
    "a@b.cc/" * 300,
    "14:30 2pm 24:60 99:99 " * 90,
    "14 Feb 31.02. ٢٠٢٤ १४:३० ⑭ " * 60,
    "ка1-" * 500,
    f"{'a' * 1_990} 1",
    f"{'x' * 3_000}@y.zz www.{'z' * 900}",
]


@pytest.fixture
def exact(indexed: Settings, tenant: str) -> Settings:
    """Each statement a memory of Ana's, and a document; what looks like them among them."""
    said = [*(one["says"] for one in EXACT), *ALIKE]
    random.Random(1).shuffle(said)
    memories = [memory(text, number=number, valid_from=None) for number, text in enumerate(said)]
    changed: dict[str, bytes | None] = {one.path: render_memory(one) for one in memories}
    put(indexed, tenant, changed | {f"knowledge/d{n}a.md": text.encode() for n, text in enumerate(said)})
    sync_tenant(indexed, tenant)
    return indexed


@pytest.fixture
def reader(exact: Settings) -> Iterator[Reader]:
    made = Reader(exact, timeout=30, opening=30)
    yield made
    made.close()


def test_what_is_exact_is_found_first_however_it_is_written(exact: Settings, reader: Reader) -> None:
    where: list[dict[str, Any]] = [
        {"subject": "ana", "folders": ()}, {"folders": ()}, {"subject": "ana", "kinds": ()},
    ]  # fmt: skip
    missed: list[tuple[str, object, list[str]]] = []
    with Injector(exact, timeout=30, files=False) as injector:
        for one in EXACT:
            for question in one["asked"]:
                for how in where:
                    found = [hit.text.strip() for hit in search(reader, "acme", question, **how).hits]
                    if found[:1] != [one["says"]]:
                        missed.append((question, how, found[:2]))
                mine, all_of_it = (search(reader, "acme", question, subject=whose).hits for whose in ("ana", None))
                assert [(hit.key, hit.shared) for hit in mine] == [(hit.key, hit.shared) for hit in all_of_it]
                if one["says"] not in injector.packet("acme", "ana", question).text:
                    missed.append((question, "packet", []))
    assert missed == []


def test_a_goal_without_spaces_gets_what_it_is_about_and_nothing_where_that_is_nothing(
    indexed: Settings, tenant: str
) -> None:
    memories = [
        memory(text, who=tongue, number=number)
        for tongue, one in TONGUES.items()
        for number, text in enumerate(one["memories"])
    ]
    put(indexed, tenant, {one.path: render_memory(one) for one in memories})
    sync_tenant(indexed, tenant)
    wrong = []
    with Injector(indexed, timeout=30, files=False) as injector:
        for tongue, one in TONGUES.items():
            for goal, word in one["related"].items():
                if word not in (text := injector.packet("acme", tongue, goal).text):
                    wrong.append((goal, text))
            wrong += [(goal, text) for goal in one["unrelated"] if (text := injector.packet("acme", tongue, goal).text)]
    assert wrong == []


NEIGHBOURS = {
    "The customer disputes INV-2024-00173 because of shipping.": [
        "INV-2024-00174", "What about inv 2024 00174?", "INV202400174", "INV-2025-00173", "Is 2024 over?",
    ],
    "The traveller is booked on LH 1234 to Munich.": ["LH1235", "When does lh 1235 leave?", "TP 1234"],
    "The refund goes to DE89 3704 0044 0532 0130 00.": ["DE89370400440532013001", "DE89 3704 0044 0532 0130 01"],
    "Parcels go to SW1A 1AA from now on.": ["SW1A 2AA", "sw1a2aa"],
    "The contract was signed on 3 May 2024 in Rome.": ["2 May 2024", "2024-05-02", "May 4th", "3 June", "3 June 2024"],
    "The plumber comes at 14:30 every other week.": ["14:00", "2:45 pm"],
    "The bills go to bob@example.com for now.": ["ana@example.com", "Does ANA@EXAMPLE.COM work?"],
    "The thread is https://forum.example.com/t/173 for now.": ["https://forum.example.com/t/174"],
}  # fmt: skip


def test_a_goal_about_a_code_gets_nothing_of_its_neighbour_and_a_search_does(indexed: Settings, tenant: str) -> None:
    memories = [memory(text, who=text, valid_from=datetime(2024, 7, 9, tzinfo=UTC)) for text in NEIGHBOURS]
    put(indexed, tenant, {one.path: render_memory(one) for one in memories})
    sync_tenant(indexed, tenant)
    with Injector(indexed, timeout=30, files=False) as injector:
        shown = [
            (goal, text)
            for text, goals in NEIGHBOURS.items()
            for goal in goals
            if injector.packet("acme", text, goal).text
        ]
    assert shown == []
    assert texts(search(indexed, "acme", "INV-2024-00174", subject=memories[0].text)) == [memories[0].text]


def test_a_goal_about_a_code_gets_no_neighbour_that_is_only_near_it(indexed: Settings, tenant: str) -> None:
    said = {"a": "The invoice INV-2042 is open.", "b": "The tea came with order INV-2042.", "c": "She likes tea."}
    put(indexed, tenant, {one.path: render_memory(one) for one in (memory(said[who], who=who) for who in said)})
    sync_tenant(indexed, tenant, embedder=Axes())
    with Injector(indexed, embedder=Axes(), timeout=30, embedding_timeout=30, files=False) as injector:

        def answered(goal: str) -> list[str]:
            return [who for who in said if injector.packet("acme", who, goal).text]

        assert answered("a brew") == ["b", "c"]
        assert answered("a brew, invoice INV-2042") == ["a", "b", "c"]
        assert answered("a brew, order INV-2041") == ["c"]
        assert answered("INV-2041") == answered("What about 14:30?") == answered("invoice 2041") == []


def of_forms() -> list[Memory]:
    """Each statement of forms.yaml the one memory of somebody."""
    usual = date(2024, 7, 9)
    return [
        memory(
            one["says"], who=one["says"], valid_from=datetime.combine(one.get("recorded", usual), time(), tzinfo=UTC)
        )
        for one in FORMS
    ]


def test_a_goal_gets_what_it_means_in_any_form_and_nothing_of_a_neighbour(indexed: Settings, tenant: str) -> None:
    put(indexed, tenant, {one.path: render_memory(one) for one in of_forms()})
    sync_tenant(indexed, tenant)
    with Injector(indexed, timeout=30, files=False) as injector:

        def answered(one: dict[str, Any], goal: str) -> bool:
            return bool(injector.packet("acme", one["says"], goal).text)

        missed = [(one["says"], goal) for one in FORMS for goal in one.get("answers", ()) if not answered(one, goal)]
        shown = [(one["says"], goal) for one in FORMS for goal in one.get("not", ()) if answered(one, goal)]
    assert (missed, shown) == ([], [])


OFTEN = [
    "The traveller loves Porto.", "The flight to Porto is on Friday.", "Porto hotel is booked.", "Porto has good wine.",
    "In Porto she meets Ana.", "The Porto trip takes six days.", "The Porto flat costs 90 euros.",
    "She wants to see the bridge in Porto.", "Porto is where her uncle lives.", "Tom drinks tea.", "Tom drinks milk.",
    "Tom's dog is called Rufus.",
]  # fmt: skip
WHOM = [
    "Ana loves cats.", "Ana loves jazz.", "Ana loves snow.", "Ana loves rye.", "Ana works as a nurse.",
    "Ana's wife is Eva.", "Ana drives a van.", "Ana loves trams.", "Tom met Ana in May.",
]  # fmt: skip
NAMED_OFTEN = [
    "What is planned for Porto?",
    "How is the weather in Porto?",
    "Wie ist das Wetter in Porto?",
    "the Porto menu",
]
SAID_OF_ALL = ["What is Ana's cousin called?", "Can Ana swim?", "Do I love skiing?"]
"""Goals of which memories have but a word that most have: a name for what they are about, or whom they are about."""


def of_often() -> list[Memory]:
    return [memory(text, who=who, valid_from=NOW) for who, said in (("tom", OFTEN), ("ana", WHOM)) for text in said]


def test_a_goal_gets_what_many_memories_are_about_and_not_all_that_are_about_somebody(
    indexed: Settings, tenant: str
) -> None:
    put(indexed, tenant, {one.path: render_memory(one) for one in of_often()})
    sync_tenant(indexed, tenant)
    with Injector(indexed, timeout=30, files=False) as injector:
        for goal in NAMED_OFTEN:
            text = injector.packet("acme", "tom", goal).text
            assert (text.count("Porto"), text.count("Tom")) == (5, 0), goal
        assert "Rufus" in injector.packet("acme", "tom", "Does the dog come to Porto?").text
        assert [goal for goal in SAID_OF_ALL if injector.packet("acme", "ana", goal).text] == []


def test_what_says_a_day_comes_before_what_was_recorded_on_it(indexed: Settings, tenant: str) -> None:
    said = {
        "She lost her keys.": datetime(2026, 6, 14, tzinfo=UTC),
        "The flight is on the 14th of June, 2026.": datetime(2026, 3, 1, tzinfo=UTC),
        "The visit is on 16 June 2026.": datetime(2026, 1, 14, tzinfo=UTC),
    }
    memories = [memory(text, number=n, valid_from=at) for n, (text, at) in enumerate(said.items())]
    put(indexed, tenant, {one.path: render_memory(one) for one in memories})
    sync_tenant(indexed, tenant)
    for asked in ("14 June 2026", "2026-06-14", "14-Jun-2026", "14 juin 2026"):
        assert texts(search(indexed, "acme", asked))[0].startswith("The flight"), asked
        with Injector(indexed, timeout=30, files=False) as injector:
            lines = [line for line in injector.packet("acme", "ana", asked).text.splitlines() if line.startswith("- ")]
        assert [line[2:12] for line in lines] == ["The flight", "She lost h"], asked


def test_a_year_tells_of_what_says_it_and_not_of_all_that_is_dated_by_it(indexed: Settings, tenant: str) -> None:
    said = ["Ana visited Kyoto in 2019.", "Ana likes tea.", "Ana disputes INV-2019-00173."]
    memories = [memory(text, number=n, valid_from=datetime(2019, 7, 9, tzinfo=UTC)) for n, text in enumerate(said)]
    put(indexed, tenant, {one.path: render_memory(one) for one in memories})
    sync_tenant(indexed, tenant)
    with Injector(indexed, timeout=30, files=False) as injector:
        text = injector.packet("acme", "ana", "Where did I go in 2019?").text
    assert [one in text for one in said] == [True, False, False]


def test_a_text_in_another_script_is_found_by_its_stems_whatever_the_language(indexed: Settings) -> None:
    text, question = "У Анны аллергия на арахис.", "Есть ли аллергии на орех?"
    found = "SELECT docmem.words('{0}', %(text)s)::text AS words, docmem.asked('{0}', %(question)s) AS asked"
    for language in ("simple", "english"):
        [row] = rows(indexed, found.format(language), text=text, question=question)
        assert "'аллергия':" in row["words"]
        assert "'аллерг':" in row["words"]
        assert row["asked"] == ["аллерг", "орех"]
    [row] = rows(indexed, found.format("russian"), text=text, question=f"{question} Καφέδες.")
    assert "аллергия" not in row["words"]
    assert sorted(row["asked"]) == sorted(["аллерг", "орех", "καφ"])


def test_any_question_is_answered(indexed: Settings, tenant: str) -> None:
    one = memory("Ana likes tea.", valid_from=NOW)
    put(indexed, tenant, {one.path: render_memory(one), "knowledge/tea.md": b"Milk goes into a tea of 4.5 minutes.\n"})
    sync_tenant(indexed, tenant, embedder=Axes())
    reader = Reader(indexed, timeout=30, opening=30)
    for embedder in (None, Axes()):
        with Injector(indexed, embedder=embedder, timeout=30, embedding_timeout=30, files=False) as injector:
            for question in QUESTIONS:
                for subject in ("ana", None):
                    found = search(reader, "acme", question, subject=subject, embedder=embedder)
                    assert found.degraded in ({None} if embedder else {"no_embedder", "recency"}), question
                    assert one.text in texts(found) or "tea" not in scrub(question)[0].lower().split(), question
                assert injector.packet("acme", "ana", question).degraded in {None, "no_embedder"}, question
    reader.close()


def test_no_text_makes_too_many_words_of_itself(indexed: Settings) -> None:
    chance = random.Random(1)
    pools = [*CHARACTERS, "".join(CHARACTERS)]
    han = "".join(chr(chance.randrange(0x4E00, 0x9FFF)) for _ in range(12_500))
    thai = "".join(chr(chance.randrange(0xE01, 0xE4E)) for _ in range(12_500))
    long = [mark * 3_000 for mark in ("1-", "1 ", "a1", "1(", "1,", "é", "-", "ü ", "LH 1", "00.")]
    numbers = " ".join(str(chance.randrange(10 ** chance.randrange(1, 12))) for _ in range(1_500))
    hostile = [han, thai, numbers, numbers.replace(" ", "-"), *long]
    hostile += ["".join(chance.choices(pool, k=chance.choice((3, 30, 300)))) for pool in pools for _ in range(6)]
    [found] = rows(
        indexed,
        "SELECT max(pg_column_size(docmem.words('german', t))) AS largest, max(a.words) AS asked "
        "FROM json_array_elements_text(%(texts)s) AS t, LATERAL ("
        "SELECT cardinality(docmem.asked('german', left(t, 4000))) AS words) AS a",
        texts=json.dumps(hostile),
    )
    assert found["largest"] < 500_000
    assert found["asked"] == 700


def test_prose_of_ascii_has_the_lexemes_of_postgres_alone(indexed: Settings) -> None:
    for text in ("2 May 2026. trip preferences: She'd like 12 plums, not 5.", "mid-range -5 x (a; b)", ""):
        [found] = rows(
            indexed, "SELECT docmem.words('english', %(text)s) = to_tsvector('english', %(text)s) AS same", text=text
        )
        assert found["same"]


def test_a_question_of_prose_has_the_lexemes_of_postgres_alone(indexed: Settings) -> None:
    chance = random.Random(2)
    letters = "abcdeEoOuUaArdlDL'-.,;:@/ x(\"_)\n"
    made = ["".join(chance.choices(letters, k=chance.choice((3, 9, 40)))) for _ in range(300)]
    goals = [goal for one in FORMS for goal in (*one.get("answers", ()), *one.get("not", ()), one["says"])]
    [found] = rows(
        indexed,
        "SELECT count(*) AS prose, array_agg(t) FILTER (WHERE tsvector_to_array(docmem.lexemes(l::regconfig, t, true)) "
        "<> tsvector_to_array(to_tsvector(l::regconfig, t))) AS other "
        "FROM json_array_elements_text(%(texts)s) AS t, unnest('{english,german,simple}'::text[]) AS l "
        "WHERE docmem.is_prose(t) AND t !~ '^[0-9]'",
        texts=json.dumps([question for question in (*QUESTIONS, *goals, *made) if question.isprintable()]),
    )
    assert found["prose"] > 300
    assert found["other"] is None


def test_a_word_with_accents_counts_no_more_than_another(indexed: Settings) -> None:
    asked = "SELECT docmem.asked('%s', 'José habitações') AS words"
    assert rows(indexed, asked % "english") == [{"words": ["habitaco", "jose"]}]
    assert rows(indexed, asked % "portuguese") == [{"words": ["habit", "habitaco", "jos"]}]
