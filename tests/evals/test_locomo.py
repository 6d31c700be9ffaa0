from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from docmem.config import Settings
from docmem.errors import DocmemError, InputError
from docmem.postgres import Server
from docmem_evals import conversations, locomo

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "locomo"
needs_data = pytest.mark.skipif(not SHARED.is_dir(), reason="LoCoMo may not be shipped, and isn't beside the project")


def published(folder: Path) -> Path:
    """A conversation in LoCoMo's own shape, with its oddities: lists of turns, joined and mistyped labels."""
    turns = [
        {"speaker": "Ana", "dia_id": "D1:1", "text": "I adopted a greyhound called Bolt."},
        {"speaker": "Bo", "dia_id": "D1:2", "text": "Lovely!", "blip_caption": "a photo of a lighthouse"},
        {"speaker": "Ana", "dia_id": "D1:3", "text": "My sister moved to Lisbon for work."},
    ]
    later = [{"speaker": "Bo", "dia_id": "D2:1", "text": "I started to play the violin."}]
    entry = {
        "sample_id": "conv-7",
        "conversation": {
            "speaker_a": "Ana", "speaker_b": "Bo",
            "session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": turns,
            "session_2_date_time": "9:00 am on 2 June, 2023", "session_2": later,
            "session_3_date_time": "9:00 am on 3 June, 2023",
        },
        "observation": {
            "session_1_observation": {
                "Ana": [["Ana adopted a greyhound called Bolt.", "D1:1"], ["Ana's sister moved to Lisbon.", ["D1:3"]]],
                "Bo": [["Nobody said this.", "D9:9"]],
            },
            "session_2_observation": {"Bo": [["Bo plays the violin.", "D2:1"]]},
        },
        "qa": [
            {"question": "What is the name of Ana's greyhound?", "answer": "Bolt", "evidence": ["D1:1"], "category": 4},
            {"question": "Who moved to Lisbon and who plays violin?", "evidence": ["D1:3; D:2:1"], "category": 1},
            {"question": "Which lighthouse photo?", "answer": 1, "evidence": ["D1:2"], "category": 3},
            {"question": "Adversarial?", "evidence": ["D1:1"], "category": 5},
            {"question": "Without evidence?", "evidence": ["D"], "category": 4},
        ],
    }  # fmt: skip
    folder.mkdir()
    (folder / "locomo1.json").write_text(json.dumps([entry]))
    return folder


def test_the_published_shape_is_read_with_its_oddities(tmp_path: Path) -> None:
    (one,) = conversations.load(published(tmp_path / "data"))
    assert [session.number for session in one.sessions] == [1, 2]
    assert [observation.turns for observation in one.sessions[0].observations] == [("D1:1",), ("D1:3",)]
    assert [(query.kind, set(query.relevant)) for query in one.queries] == [
        ("single-hop", {"D1:1"}),
        ("multi-hop", {"D1:3", "D2:1"}),
        ("open-domain", {"D1:2"}),
    ]
    assert one.texts()["D1:2"] == "1:56 pm on 8 May, 2023. Bo: Lovely! [shared a photo: a photo of a lighthouse]"


def test_a_folder_that_is_not_locomo_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no locomo"):
        conversations.load(tmp_path)
    (tmp_path / "locomo.json").write_text('[{"sample_id": "x"}]')
    with pytest.raises(InputError, match="not LoCoMo as published"):
        conversations.load(tmp_path)
    with pytest.raises(InputError, match="none of the conversations"):
        conversations.load(published(tmp_path / "data"), numbers=[99])


def leftovers(server: Server, settings: Settings) -> int:
    """Rows of any tenant, as somebody whom row-level security doesn't bind."""
    database = str(conninfo_to_dict(str(settings.dsn))["dbname"])
    with psycopg.connect(server.dsn("admin", database=database)) as admin:
        counts = admin.execute(
            "SELECT (SELECT count(*) FROM docmem.memory) + (SELECT count(*) FROM docmem.document)"
            " + (SELECT count(*) FROM docmem.sync_state) + (SELECT count(*) FROM docmem.tenant_config)"
        ).fetchone()
    assert counts is not None
    return int(counts[0])


def test_a_run_answers_every_question_twice_and_leaves_nothing(
    tmp_path: Path, indexed: Settings, postgres_server: Server
) -> None:
    folder = published(tmp_path / "data")
    report = locomo.run(indexed, folder, embedding_model="none")
    shown = report.as_json()
    assert shown["samples"] == 3
    assert shown["model"] == "none"
    assert shown["metrics"]["memories.recall@10"] == pytest.approx(2 / 3, abs=1e-4)
    assert shown["metrics"]["turns.recall@10"] == 1
    assert set(shown["by_kind"]) == {"single-hop", "multi-hop", "open-domain"}
    assert shown["counts"]["memories_created"] == 3
    assert shown["gates"] == {}
    assert "single-hop" in report.table()
    assert locomo.run(indexed, folder, embedding_model="none").metrics == report.metrics
    assert leftovers(postgres_server, indexed) == 0


def test_a_run_that_fails_leaves_nothing_either(
    tmp_path: Path, indexed: Settings, postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    refused = replace(indexed, dsn="postgresql://nobody:x@127.0.0.1:1/none")
    with pytest.raises(DocmemError):
        locomo.run(refused, published(tmp_path / "data"), embedding_model="none")
    assert leftovers(postgres_server, indexed) == 0
    assert list(tmp_path.glob("docmem-eval-*")) == []


@needs_data
def test_turns_and_questions_are_those_of_the_published_files() -> None:
    for one in conversations.load(SHARED):
        lines = (SHARED / f"{one.name}.documents.jsonl").read_text().splitlines()
        assert one.texts() == {entry["dia_id"]: entry["text"] for entry in map(json.loads, lines)}


@needs_data
def test_a_real_conversation_is_recalled(settings: Settings) -> None:
    """Conversation 30 with an embedded server of the run's own; the five are measured in evals/README.md."""
    report = locomo.run(settings, SHARED, conversations=[30], embedding_model="none")
    assert report.metrics["turns.recall@10"] >= locomo.BOUND
    assert report.metrics["memories.recall@10"] >= 0.55
    assert report.counts["memories_created"] == report.counts["observations"] - report.counts["rejected"]
