from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmem_evals.ranking import hit_rate, mean, metrics, ndcg, recall, reciprocal_rank

TURNS = [{"a"}, {"b"}, {"c"}]


def test_recall_is_the_share_that_was_found() -> None:
    assert recall(TURNS, {"a", "z"}, k=2) == 0.5
    assert recall(TURNS, {"c"}, k=2) == 0
    assert recall([{"a", "b"}, {"c"}], {"a", "b", "c"}, k=1) == pytest.approx(2 / 3)
    assert recall([], {"a"}, k=5) == 0


def test_hit_rate_and_reciprocal_rank_ask_for_the_first() -> None:
    assert hit_rate(TURNS, {"b", "z"}, k=2) == 1
    assert hit_rate(TURNS, {"c"}, k=2) == 0
    assert reciprocal_rank(TURNS, {"c", "b"}) == 0.5
    assert reciprocal_rank(TURNS, {"z"}) == 0


def test_ndcg_is_one_for_the_best_order_and_counts_nothing_twice() -> None:
    assert ndcg(TURNS, {"a", "b"}, k=10) == 1
    assert ndcg(TURNS, {"b"}, k=10) == pytest.approx(1 / math.log2(3))
    assert ndcg([{"a"}, {"a"}, {"b"}], {"a", "b"}, k=10) == pytest.approx((1 + 1 / 2) / (1 + 1 / math.log2(3)))
    assert ndcg(TURNS, {"z"}, k=10) == 0


def test_the_mean_counts_each_question_the_same() -> None:
    assert mean([{"x": 1.0}, {"x": 0.0}, {"x": 0.5}]) == {"x": 0.5}
    assert mean([]) == {}


ITEMS = st.sampled_from("abcdefgh")


@given(st.lists(st.frozensets(ITEMS, max_size=3), max_size=40), st.frozensets(ITEMS, min_size=1))
def test_every_metric_lies_between_0_and_1(found: list[frozenset[str]], relevant: frozenset[str]) -> None:
    assert all(0 <= value <= 1 + 1e-9 for value in metrics(found, relevant).values())
