"""Extraction is scored by pure functions over cases that anyone can write."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmem.config import Settings
from docmem.errors import InputError, ModelReplyError
from docmem.prompt import Request
from docmem.reply import NO_PROFILE, Answer, Operation, from_value
from docmem_evals import counting, dataset, extraction, matching
from tests.support.cli import Shell
from tests.support.windows import operation, reply

CASES = dataset.load().cases
WORDS = st.lists(st.sampled_from(["likes tea", "lives in Porto", "plays chess", "hates rain"]), max_size=5)


@dataclass(frozen=True)
class Perfect:
    """A model that replies with what is expected."""

    name: str = "perfect"

    def propose(self, request: Request) -> Answer:
        case = next(case for case in CASES if case.id == request.thread)
        cited = [turn.id for turn in case.turns]
        made = [operation(text, evidence_turns=cited) for text in case.expected.memories]
        profile = case.expected.profile
        return Answer(
            from_value(reply(*made, attributes=profile.attributes, **profile.model_dump(exclude={"attributes"})))
        )


@dataclass(frozen=True)
class Invents:
    """A model that adds a statement without evidence to each window."""

    name: str = "invents"

    def propose(self, request: Request) -> Answer:
        made = operation("The person keeps seven parrots.", evidence_turns=["t1"])
        return Answer(from_value(reply(made)))


@dataclass(frozen=True)
class Fails:
    """A model without a usable reply."""

    name: str = "fails"

    def propose(self, request: Request) -> Answer:
        raise ModelReplyError("no JSON")


def run(model: object, **options: float) -> extraction.Report:
    return extraction.run(Settings(root=Path("/nowhere")), model=model, **options)  # type: ignore[arg-type]


def test_forty_cases_ship_over_five_domains_with_the_hard_kinds() -> None:
    assert len(CASES) == 40
    assert len({case.domain for case in CASES}) == 5
    kinds = {case.kind for case in CASES}
    assert {"correction", "negation", "hypothetical", "third-party", "numbers", "secret", "restated", "joke"} <= kinds


def test_a_perfect_reply_scores_one_and_an_invention_is_junk() -> None:
    perfect = run(Perfect()).metrics
    assert (perfect["f1"], perfect["attribute_f1"], perfect["junk_rate"]) == (1.0, 1.0, 0.0)
    invented = run(Invents()).metrics
    assert (invented["f1"], invented["junk_rate"]) == (0.0, 1.0)


def test_a_reply_that_failed_misses_what_was_expected_and_is_counted() -> None:
    report = run(Fails())
    assert (report.metrics["recall"], report.as_json()["failed"]) == (0.0, 40)


def test_the_stand_in_is_measured_and_labelled() -> None:
    report = run("offline")
    assert 0.3 <= report.metrics["f1"] < 0.8
    assert report.metrics["junk_rate"] == 0.0
    assert report.as_json()["stand_in"] is True
    assert "stand-in" in report.table()


def test_each_gate_turns_red_on_its_own() -> None:
    invents = run(Invents(), min_f1=0.0, max_junk=0.1)
    assert {name: gate["passed"] for name, gate in invents.gates.items()} == {"f1": True, "junk_rate": False}
    fails = run(Fails(), min_f1=0.1, max_junk=0.1)
    assert {name: gate["passed"] for name, gate in fails.gates.items()} == {"f1": False, "junk_rate": True}
    assert not fails.passed


def test_each_expected_statement_claims_one_extracted_one() -> None:
    found = matching.pairs(["The user likes tea.", "The user likes tea."], ["User likes tea", "User lives in Porto"])
    assert found == {0: 0}
    assert matching.pairs([], ["anything"]) == {}
    assert matching.alike("旅客吃素,不吃鸡蛋。", "旅客吃素不吃鸡蛋")


@given(WORDS)
def test_what_is_extracted_as_expected_matches_in_any_order(texts: list[str]) -> None:
    found = matching.pairs(texts, texts[::-1])
    assert sorted(found) == sorted(found.values()) == list(range(len(texts)))


def test_counts_are_defined_where_there_is_nothing_to_count() -> None:
    assert counting.precision(0, 0) == counting.recall(0, 0) == counting.f1(0, extracted=0, expected=0) == 1.0
    assert counting.share(0, 0) == 0.0
    assert counting.f1(2, extracted=4, expected=4) == 0.5
    assert counting.precision(2, 4) == 0.5


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("RM90,000", "90000", True), ("Lisbon ", "lisbon", True), ("RM 9", "RM 10", False), ("tea", "coffee", False)],
)
def test_values_are_compared_by_their_digits(one: str, other: str, same: bool) -> None:
    assert extraction.same_value(one, other) is same


def test_a_case_of_ones_own_is_read_and_a_wrong_one_named_with_its_line(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    head = "domain: mine\ntopics:\n  - {name: food, description: What they eat}\ncases:\n"
    file.write_text(
        head + "  - id: a\n    says: [[user, I'm vegan.]]\n    expected: {memories: [The user is vegan.]}\n"
    )
    done = shell("eval", "extraction", "--model", "offline", "--cases", str(tmp_path), "--min-f1", "0.9", "--json")
    assert (done.code, json.loads(done.out)["metrics"]["f1"]) == (0, 1.0)
    file.write_text(head + "  - id: a\n    says: [[nobody, Hello]]\n    expected: {}\n")
    with pytest.raises(InputError, match=r"mine\.yaml, line"):
        dataset.load(tmp_path)


def test_evidence_is_what_the_user_said_in_a_cited_turn() -> None:
    case = next(case for case in CASES if case.id == "travel-assistant-says")
    spicy = Operation.model_validate(operation("The traveller loves spicy food.", evidence_turns=["t1"]))
    assert not extraction.has_evidence(spicy, case)
    scored = extraction.score(case, [spicy], NO_PROFILE)
    assert (scored.matched, scored.junk) == (0, 1)
