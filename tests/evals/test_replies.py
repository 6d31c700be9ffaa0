"""Replies written down as a model gives them, faults and all: what the figures make of them was counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from docmem.config import Settings
from docmem.errors import InputError
from docmem_evals import extraction, merge
from docmem_evals.run import Run
from docmem_evals.runner import Options

REPLIES = Path(__file__).parents[2] / "evals" / "replies"
SETTINGS = Settings(root=Path("/nowhere"), embedding_model="none")
TRAVEL = Options(domains=("travel",))


def wrong(run: Run) -> set[str]:
    return {sample.id for sample in run.samples if not sample.right}


def test_the_replies_to_travel_cases_come_to_what_one_counts_by_hand() -> None:
    run = extraction.run(SETTINGS, model=f"replay:{REPLIES / 'extraction-travel.jsonl'}", options=TRAVEL)
    # 22 statements, 15 of the 18 expected ones; two that nobody said; 7 of 7 values.
    assert run.metrics["precision"] == pytest.approx(15 / 22, abs=1e-4)
    assert run.metrics["recall"] == pytest.approx(15 / 18, abs=1e-4)
    assert run.metrics["junk_rate"] == pytest.approx(2 / 22, abs=1e-4)
    assert (run.metrics["attribute_f1"], run.metrics["lifecycle_accuracy"], run.metrics["routing_accuracy"]) == (
        1,
        1,
        1,
    )
    assert run.header.dataset.endswith("/travel")
    # Words alone don't see that these two say what was expected.
    assert {"travel-plan", "travel-negation"} < wrong(run)


def test_the_replies_to_known_memories_come_to_what_one_counts_by_hand() -> None:
    run = merge.run(SETTINGS, model=f"replay:{REPLIES / 'merge-travel.jsonl'}", options=TRAVEL)
    # Two of three new facts, one too many; all updates and deletions; one of six changes mixed two things.
    assert run.metrics["new_f1"] == pytest.approx(2 * 2 / (3 + 3), abs=1e-4)
    assert run.metrics["wrong_merge_rate"] == pytest.approx(1 / 6, abs=1e-4)
    assert run.metrics["op_economy"] == pytest.approx(11 / 12, abs=1e-4)
    assert run.metrics["value"] == pytest.approx(((2 / 3 + 1 + 1) / 3 + 11 / 12 + 1) / 3, abs=1e-4)
    assert wrong(run) == {"merge-travel-two-at-once", "merge-travel-no-step-back"}


def test_a_domain_that_no_case_is_of_is_refused() -> None:
    with pytest.raises(InputError, match="no case is of cooking"):
        extraction.run(SETTINGS, model="offline", options=Options(domains=("cooking",)))
