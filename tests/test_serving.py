"""What the index holds of `docmem.yaml` is read as the file was, and what can't be there serves nobody wrongly."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from docmem.errors import FormatError
from docmem.schema import read
from docmem.serving import RETENTION, Budgets, Weights, served
from docmem.tenant_config import Policies, Retention, TenantConfig


def test_what_was_written_is_served() -> None:
    budgets = Budgets(facts=0, tokens=100_000, blocks={"facts": 0, "documents": 20})
    weights = Weights(relevance=1, half_life_days=0.5, stale_runs=0)
    assert served(Budgets, asdict(budgets)) == budgets
    assert served(Weights, asdict(weights)) == weights
    assert served(Budgets, {"facts": 9}) == Budgets(facts=9)


@pytest.mark.parametrize(
    "values",
    [
        None,
        {},
        [],
        "facts",
        {"facts": -1},
        {"facts": 101},
        {"facts": True},
        {"facts": 2.5},
        {"facts": "7"},
        {"facts": None},
        {"tokens": 99},
        {"facts": 9, "fact": 3},
        {"facts": 9, "blocks": {"nowhere": 3}},
        {"blocks": {"facts": -1}},
        {"blocks": {"facts": "1"}},
        {"blocks": [1]},
    ],
    ids=str,
)
def test_budgets_that_cannot_be_are_the_defaults(values: Any) -> None:
    assert served(Budgets, values) == Budgets()


@pytest.mark.parametrize(
    "values", [{"half_life_days": 0}, {"rrf_k": 0}, {"relevance": -0.1}, {"recency": False}, {"x": 1}, {1: 1}], ids=str
)
def test_weights_that_cannot_be_are_the_defaults(values: Any) -> None:
    assert served(Weights, values) == Weights()


@pytest.mark.parametrize("values", [{"facts": 101}, {"facts": -1}, {"tokens": 99}, {"blocks": {"facts": -1}}], ids=str)
def test_the_file_and_the_index_have_the_same_bounds(values: Any) -> None:
    with pytest.raises(FormatError, match=r"policies\.budgets"):
        read(TenantConfig, {"format": 1, "policies": {"budgets": values}})
    assert served(Budgets, values) == Budgets()


def test_retention_is_what_a_file_that_says_nothing_means() -> None:
    assert Retention().model_dump() == dict(RETENTION)
    assert Policies().budgets == Budgets()
    assert Policies().weights == Weights()
