"""Extraction is scored by pure functions over cases that anyone can write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from docmem import prompt
from docmem.config import Settings
from docmem.reply import NO_PROFILE, AttributePair, Operation
from docmem_evals import dialogues, extraction
from docmem_evals.matching import Jaccard
from docmem_evals.run import Run
from docmem_evals.samples import Judged
from docmem_evals.scoring import extraction as scorer
from tests.support import note_takers
from tests.support.cli import Shell
from tests.support.model_server import ModelServer, Says
from tests.support.windows import operation

CASES = dialogues.extractions().cases


def run(model: Any, **options: Any) -> Run:
    return extraction.run(Settings(root=Path("/nowhere")), model=model, **options)


def test_a_perfect_reply_scores_one_whatever_the_language() -> None:
    perfect = run(note_takers.Scripted(note_takers.careful))
    assert [sample.id for sample in perfect.samples if not sample.right] == []
    assert {name: value for name, value in perfect.metrics.items() if not name.endswith("_rate")} == dict.fromkeys(
        ["precision", "recall", "f1", "attribute_f1", "routing_accuracy", "lifecycle_accuracy"], 1.0
    )
    assert perfect.metrics["junk_rate"] == perfect.metrics["unexpected_rate"] == 0


def test_a_reply_that_failed_misses_what_was_expected_and_is_counted() -> None:
    report = run(note_takers.Fails())
    assert (report.metrics["recall"], report.as_json()["failed"]) == (0.0, len(CASES))
    assert report.metrics["lifecycle_accuracy"] == 0


def test_the_stand_in_is_measured_and_labelled() -> None:
    report = run("offline")
    assert 0.1 <= report.metrics["f1"] < 0.8
    assert report.metrics["junk_rate"] <= 0.1
    assert report.as_json()["stand_in"] is True


def test_the_json_has_the_shape_that_scripts_read() -> None:
    row = run("offline", min_f1=0.1).as_json()
    assert {"task", "model", "matcher", "dataset", "samples", "metrics", "by_kind", "gates"} <= set(row)
    assert (row["task"], row["matcher"], row["samples"]) == ("extraction", "jaccard 0.5", len(CASES))
    assert {"precision", "recall", "f1", "junk_rate", "attribute_f1", "lifecycle_accuracy", "routing_accuracy"} <= set(
        row["metrics"]
    )
    assert row["gates"]["f1"] == {"value": row["metrics"]["f1"], "bound": 0.1, "passed": True}


def test_each_gate_turns_red_on_its_own() -> None:
    invents = run(note_takers.Scripted(note_takers.inventing), min_f1=0.5, max_junk=0.1)
    assert {name: gate["passed"] for name, gate in invents.gates.items()} == {"f1": True, "junk_rate": False}
    silent = run(note_takers.Scripted(note_takers.nothing), min_f1=0.5, max_junk=0.1)
    assert {name: gate["passed"] for name, gate in silent.gates.items()} == {"f1": False, "junk_rate": True}
    assert not silent.passed


# -------------------------------------------------------------------------------------------------- worked by hand


def case_(name: str) -> dialogues.Case:
    return next(case for case in CASES if case.id == name)


def made(text: str, *turns: str, **more: Any) -> Operation:
    return Operation.model_validate(operation(text, evidence_turns=list(turns or ["t1"]), **more))


def test_counts_are_those_that_one_finds_by_hand() -> None:
    case = case_("travel-diet")  # "I'm vegetarian, and my wife can't climb stairs."
    found = scorer.score(
        case,
        [
            made("The traveller is a vegetarian."),
            made("The traveller owns a yacht in Monaco."),
            made("The traveller and the wife are vegetarian."),
        ],
        NO_PROFILE,
        Jaccard(),
    )
    # The first claims the diet; the third matches nothing that is left, but its words were said; the second is junk.
    assert found.counts["matched"] == 1
    assert (found.counts["extracted"], found.counts["expected"], found.counts["junk"]) == (3, 2, 1)
    assert (found.counts["values_expected"], found.counts["values_routed"]) == (1, 0)
    metrics = scorer.metrics([found.counts])
    assert metrics["precision"] == pytest.approx(1 / 3)
    assert metrics["recall"] == pytest.approx(1 / 2)
    assert metrics["f1"] == pytest.approx(2 / 5)
    assert metrics["junk_rate"] == pytest.approx(1 / 3)
    assert (metrics["routing_accuracy"], metrics["attribute_f1"]) == (0, 0)


def test_what_is_optional_is_neither_missed_nor_junk() -> None:
    case = case_("travel-third-party")
    loves, friend = made("The traveller loves cruises."), made("The traveller's friend hates cruises.")
    for texts in ([loves], [loves, friend]):
        found = scorer.score(case, texts, NO_PROFILE, Jaccard())
        assert found.problems == ()
        assert scorer.metrics([found.counts])["f1"] == 1
    twice = scorer.score(case, [loves, friend, friend], NO_PROFILE, Jaccard())
    assert twice.counts["extracted"] == 2


@pytest.mark.parametrize(
    ("case", "key", "value"),
    [
        ("chinese-home", "home_city", "Chengdu"),
        ("arabic-home", "home_city", "عمان"),
        ("chinese-numbers", "budget", "8,000元"),
        ("german-numbers", "budget", "2500 EUR"),
    ],
)
def test_a_value_may_have_several_wordings(case: str, key: str, value: str) -> None:
    patch = NO_PROFILE.model_copy(update={"attributes": [AttributePair(key=key, value=value)]})
    assert scorer.score(case_(case), [], patch, Jaccard()).counts["values_right"] == 1


def test_a_language_may_be_a_code() -> None:
    patch = NO_PROFILE.model_copy(update={"preferred_language": "ms"})
    [case] = [
        each
        for each in CASES
        if each.language == "en" and "ms" in each.expected.profile.wordings.get("preferred_language", ())
    ]
    assert scorer.score(case, [], patch, Jaccard()).counts["values_right"] == 1


def test_a_fact_that_reached_the_profile_is_routed_whatever_its_value() -> None:
    case = case_("travel-home")  # lives in Penang
    patch = NO_PROFILE.model_copy(update={"attributes": [AttributePair(key="home_city", value="Ipoh")]})
    counts = scorer.score(case, [], patch, Jaccard()).counts
    metrics = scorer.metrics([counts])
    assert (metrics["routing_accuracy"], metrics["attribute_f1"]) == (1, 0)


def test_a_stage_is_scored_only_where_a_case_says_which() -> None:
    booked, plain = case_("travel-booked"), case_("travel-diet")
    patch = NO_PROFILE.model_copy(update={"lifecycle_stage": "Active "})
    assert scorer.metrics([scorer.score(booked, [], patch, Jaccard()).counts])["lifecycle_accuracy"] == 1
    assert scorer.metrics([scorer.score(booked, [], NO_PROFILE, Jaccard()).counts])["lifecycle_accuracy"] == 0
    assert "lifecycle_accuracy" not in scorer.metrics([scorer.score(plain, [], patch, Jaccard()).counts])


def test_metrics_are_defined_for_nothing_and_don_t_depend_on_the_order() -> None:
    assert scorer.metrics([])["f1"] == 1
    samples = [sample.judged.counts for sample in run(note_takers.Scripted(note_takers.inventing)).samples]
    assert scorer.metrics(samples) == scorer.metrics(samples[::-1])


def test_evidence_is_what_the_user_said_in_a_cited_turn() -> None:
    case = case_("travel-assistant-says")
    spicy = made("The traveller loves spicy food.")
    assert not scorer.has_evidence(spicy, case)
    scored = scorer.score(case, [spicy], NO_PROFILE, Jaccard())
    assert (scored.counts["matched"], scored.counts["junk"]) == (0, 1)


@pytest.mark.parametrize("name", ["chinese-diet", "arabic-negation", "german-train", "malay-food"])
def test_evidence_is_seen_in_scripts_without_spaces_and_in_other_languages(name: str) -> None:
    case = case_(name)
    assert scorer.has_evidence(made(case.expected.memories[0][0]), case)


def test_what_went_wrong_is_said_in_words() -> None:
    found = scorer.score(case_("travel-home"), [made("The traveller breeds llamas.")], NO_PROFILE, Jaccard())
    assert isinstance(found, Judged)
    assert found.problems == (
        "missed: The traveller lives in Penang.",
        "junk: The traveller breeds llamas.",
        "profile: home_city is missing, not Penang",
    )


# ------------------------------------------------------------------------------------------------- over real HTTP


@pytest.fixture
def obedient(shell: Shell) -> Iterator[ModelServer]:
    """A model that does what its prompt says: without the rule about evidence it writes down what nobody said."""

    def answer(request: dict[str, Any]) -> Says:
        system, window = (message["content"] for message in request["messages"])
        asked = next(case for case in CASES if extraction.request(case).window == window)
        wanted = extraction.request(replace(asked))
        by = note_takers.careful if "is no evidence" in system else note_takers.inventing
        return Says(json.dumps(by(wanted)))

    with ModelServer(answer).running() as server:
        shell.set("OPENAI_API_BASE", server.url)
        shell.set("OPENAI_API_KEY", "none")
        yield server


@pytest.fixture
def coding(tmp_path: Path) -> Path:
    """A folder with the first six cases about coding."""
    folder = tmp_path / "coding"
    folder.mkdir()
    shipped = (Path(dialogues.__file__).parent / "cases" / "extraction" / "coding.yaml").read_text("utf-8")
    (folder / "coding.yaml").write_text("  - id:".join(shipped.split("  - id:")[:7]), encoding="utf-8")
    return folder


def test_a_bad_prompt_turns_the_gate_for_junk_red_and_no_other(
    shell: Shell, obedient: ModelServer, coding: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = (
        *("eval", "extraction", "--model", "openai/obedient", "--cases", str(coding)),
        *("--min-f1", "0.5", "--max-junk", "0.1", "--json"),
    )
    good = shell(*command)
    assert (good.code, good.json["metrics"]["f1"], good.json["tokens"]["in"]) == (0, 1.0, 600)
    asked = len(obedient.requests)
    again = shell(*command)
    assert (again.json["cached"], len(obedient.requests)) == (6, asked)

    rules = prompt._template("system").replace("is no evidence", "is worth noting too")
    template = prompt._template
    monkeypatch.setattr(prompt, "_template", lambda name: rules if name == "system" else template(name))
    bad = shell(*command)
    assert {name: gate["passed"] for name, gate in bad.json["gates"].items()} == {"f1": True, "junk_rate": False}
    assert (bad.code, bad.json["cached"]) == (1, 0)
    assert bad.json["prompt"] != good.json["prompt"]


def test_a_case_of_ones_own_is_run(shell: Shell, tmp_path: Path) -> None:
    head = "domain: mine\ntopics:\n  - {name: food, description: What they eat}\ncases:\n"
    case = "  - id: a\n    says: [[user, I'm vegan.]]\n    expected: {memories: [The user is vegan.]}\n"
    (tmp_path / "mine.yaml").write_text(head + case)
    done = shell("eval", "extraction", "--model", "offline", "--cases", str(tmp_path), "--min-f1", "0.9", "--json")
    assert (done.code, done.json["metrics"]["f1"]) == (0, 1.0)
