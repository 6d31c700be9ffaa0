"""Recall is asked in tenants made for it, which are gone afterwards."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from docmem import files
from docmem import recall as engine
from docmem.config import Settings
from docmem.errors import DocmemError
from docmem.postgres import Server
from docmem.recall import SearchResult
from docmem_evals import people, recall, rig, seeding
from docmem_evals.people import Asked
from docmem_evals.run import Run
from docmem_evals.scoring import recall as scorer
from docmem_evals.scoring.recall import Found
from docmem_sync.sync import sync_tenant
from tests.evals.test_locomo import leftovers
from tests.support.cli import Shell

CASES = """\
task: recall
domain: mine
search: english
people:
  ana:
    profile: {label: Ana}
    memories:
      dog: {text: "The person has a dog called Bolt.", ago: 20d}
      cat: {text: "The person has a cat called Nut.", ago: 20d}
      city: {text: "The person lives in Porto.", ago: 5d}
      city-before: {text: "The person lives in Lyon.", ago: 90d, ended: 5d}
      fair: {text: "The person has a ticket for the fair.", ago: 30d, expired: 2d}
  ana-2:
    profile: {label: Ana}
    memories:
      boat: {text: "The person has a boat called Gull.", ago: 20d}
questions:
  - {id: dog, kind: near-duplicate, of: ana, ask: "What is the dog called?", relevant: [dog], never: [boat]}
  - {id: city, kind: superseded, of: ana, ask: "Where does the person live, in Porto or Lyon?", relevant: [city]}
  - {id: fair, kind: expired, of: ana, ask: "Is there a ticket for the fair?", relevant: []}
  - {id: boat, kind: same-name, of: ana, ask: "What is the boat called, Gull?", relevant: []}
  - {id: boat-2, kind: same-name, of: ana-2, ask: "What is the boat called?", relevant: [boat]}
  - {id: outage, kind: outage, of: ana, ask: "What is the cat called?", relevant: [cat], outage: true}
  - {id: empty, kind: empty, of: ana, ask: "?", relevant: []}
"""


SECOND = """\
task: recall
domain: mine
people: {bo: {memories: {kite: The person has a kite.}}}
questions:
  - {id: kite, of: bo, ask: "Is there a kite?", relevant: [kite]}
"""


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "mine.yaml").write_text(CASES)
    return folder


def shuffled(*arguments: Any, **options: Any) -> SearchResult:
    """The engine's search in an order of chance."""
    found = engine.search(*arguments, **options)
    hits = list(found.hits)
    random.Random(3).shuffle(hits)
    return replace(found, hits=tuple(hits))


GATES: dict[str, Any] = {
    "min_mrr": 0.85, "min_ndcg": 0.85, "min_abstention": 0.9, "max_leaks": 0.0, "max_stale": 0.0,
}  # fmt: skip


def failed(run: Run) -> set[str]:
    return {name for name, gate in run.gates.items() if not gate["passed"]}


def test_the_shipped_questions_keep_their_gates(indexed: Settings, postgres_server: Server) -> None:
    good = recall.run(indexed, **GATES)
    assert len(good.samples) >= 60
    assert failed(good) == set()
    assert good.passed
    assert leftovers(postgres_server, indexed) == 0


def test_a_shuffled_ranking_turns_the_gates_of_ranking_red_and_no_others(tmp_path: Path, indexed: Settings) -> None:
    shipped = Path(people.__file__).parent / "cases" / "recall" / "travel.yaml"
    (tmp_path / "travel.yaml").write_bytes(shipped.read_bytes())
    assert failed(recall.run(indexed, folder=tmp_path, search=shuffled, **GATES)) == {"mrr", "ndcg@10"}


def test_each_hard_kind_of_a_small_world_comes_out_as_it_should(cases: Path, indexed: Settings) -> None:
    done = recall.run(indexed, folder=cases)
    assert [(sample.id, sample.judged.problems) for sample in done.samples if not sample.right] == []
    assert done.as_json()["matcher"] == "memory ids"
    assert done.as_json()["model"] == "none"
    assert {"hit_rate@10", "precision@5", "recall@5", "recall@10", "mrr", "ndcg@10"} <= set(done.metrics)
    assert set(done.as_json()["by_kind"]) == {
        "near-duplicate", "superseded", "expired", "same-name", "outage", "empty",
    }  # fmt: skip


def test_a_seeding_that_throws_leaves_nothing(
    cases: Path, indexed: Settings, postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cases / "second.yaml").write_text(SECOND)
    done: list[str] = []

    def fails_at_the_second(work: Settings, tenant: str, **options: Any) -> Any:
        if done:
            raise DocmemError("the disk is full")
        done.append(tenant)
        return sync_tenant(work, tenant, **options)

    monkeypatch.setattr(rig, "sync_tenant", fails_at_the_second)
    with pytest.raises(DocmemError, match="the disk is full"):
        recall.run(indexed, folder=cases)
    assert done
    assert leftovers(postgres_server, indexed) == 0


# -------------------------------------------------------------------------------------------------- worked by hand


def asked(name: str, folder: Path) -> Asked:
    return next(each for each in people.recalls(folder).asked if each.id == name)


def counts(name: str, folder: Path, ranked: Sequence[str], packet: Sequence[str], **more: Any) -> dict[str, float]:
    return dict(scorer.score(asked(name, folder), Found(tuple(ranked), tuple(packet), **more)).counts)


def test_what_is_found_is_counted_as_one_would_by_hand(cases: Path) -> None:
    found = counts("dog", cases, ["cat", "dog"], ["dog"])
    assert (found["mrr"], found["recall@5"], found["precision@5"], found["packet_recall"]) == (0.5, 1, 0.2, 1)
    assert found["ndcg@10"] == pytest.approx(1 / 1.584962500721156)
    assert (found["leak_rate"], found["stale_rate"], found["distractor_rate"]) == (0, 0, 0)
    assert "abstention" not in found


def test_what_nothing_answers_is_judged_by_its_packet_alone(cases: Path) -> None:
    assert counts("fair", cases, ["cat"], [])["abstention"] == 1
    assert "mrr" not in counts("fair", cases, ["cat"], [])
    assert counts("fair", cases, [], ["cat"])["abstention"] == 0


def test_what_is_another_s_or_holds_no_more_is_seen(cases: Path) -> None:
    assert counts("dog", cases, ["dog"], ["dog"], others=("boat",))["leak_rate"] == 1
    assert counts("city", cases, ["city", "city-before"], ["city"])["stale_rate"] == 1


def test_metrics_are_means_over_the_questions_that_have_them(cases: Path) -> None:
    rows = [counts("dog", cases, ["dog"], ["dog"]), counts("dog", cases, [], []), counts("fair", cases, [], [])]
    found = scorer.metrics(rows)
    assert (found["mrr"], found["abstention"], found["leak_rate"]) == (0.5, 1, 0)
    assert scorer.metrics([]) == {}
    assert scorer.metrics(rows[::-1]) == found


def test_a_profile_is_laid_down_as_a_file_that_reads_back() -> None:
    card = people.Label(lifecycle_stage="active", attributes={"home: city": "a # b", "x": "yes"}, label="Ana: 1")
    [(path, data)] = seeding.profile("ab" * 32, card, label=card.label).items()
    assert data is not None
    read = files.parse_profile(path, data)
    assert (read.label, read.lifecycle_stage, dict(read.attributes)) == ("Ana: 1", "active", dict(card.attributes))


@pytest.mark.parametrize(
    "words", [("--conversation", "26"), ("--locomo", ".", "--min-mrr", "0.5"), ("--locomo", ".", "--out", "run.jsonl")]
)
def test_what_would_be_ignored_is_refused(shell: Shell, words: tuple[str, ...]) -> None:
    assert shell("eval", "recall", *words).code == 2
