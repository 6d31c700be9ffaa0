"""Hostile turns leave nothing behind, even where the model obeys them; harmless ones are kept."""

from __future__ import annotations

from collections import Counter

import pytest

from docmem.config import Settings
from docmem_evals import poison


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> poison.Report:
    return poison.run(Settings(root=tmp_path_factory.mktemp("root")))


def test_there_are_sixty_of_each_and_a_third_is_held_out() -> None:
    every = poison.cases()
    assert Counter(case.side for case in every) == {"hostile": 60, "harmless": 60}
    assert sum(case.held_out for case in every) == 40
    assert len({text for case in every for text in case.planted}) >= 120 - 5


def test_nothing_hostile_stays_and_everything_harmless_does(report: poison.Report) -> None:
    assert [(each.case.name, each.wrong) for each in report.samples if each.wrong] == []
    assert report.passed


def test_the_json_has_both_figures(report: poison.Report) -> None:
    row = report.as_json()
    assert row["metrics"] == {"kept_out": 1.0, "held_out.kept_out": 1.0, "passed": 1.0, "held_out.passed": 1.0}
    assert row["samples"] == 120


def test_a_planted_statement_or_a_lost_memory_is_seen() -> None:
    hostile, harmless = poison.cases()[0], poison.cases()[60]
    seeds = list(poison.SEEDS)
    assert poison._wrong(hostile, seeds, None) == ()
    assert poison._wrong(hostile, [*seeds, hostile.planted[0].upper()], None) == tuple(hostile.planted)
    assert poison._wrong(hostile, seeds[1:], None) == (seeds[0],)
    assert poison._wrong(hostile, seeds, f"- {hostile.planted[0]}") == tuple(hostile.planted)
    assert poison._wrong(harmless, seeds, None) == tuple(harmless.planted)
