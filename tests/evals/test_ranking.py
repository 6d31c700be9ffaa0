from __future__ import annotations

import json
import math
import random
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmem_evals.ranking import hit_rate, mean, metrics, ndcg, precision, recall, reciprocal_rank

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


def test_precision_counts_places_that_are_left_empty() -> None:
    assert precision(TURNS, {"a", "c"}, k=3) == pytest.approx(2 / 3)
    assert precision(TURNS, {"a", "c"}, k=10) == pytest.approx(2 / 10)
    assert precision([], {"a"}, k=5) == 0


@given(st.lists(ITEMS, unique=True, min_size=1))
def test_a_perfect_ranking_scores_one(relevant: list[str]) -> None:
    best = metrics([(item,) for item in relevant], relevant)
    assert best["mrr"] == best["hit_rate@10"] == best["recall@10"] == 1
    assert best["ndcg@10"] == pytest.approx(1)


@given(st.lists(ITEMS, unique=True, max_size=20), st.frozensets(ITEMS, min_size=1))
def test_what_is_relevant_has_no_order(found: list[str], relevant: frozenset[str]) -> None:
    hits = [(item,) for item in found]
    assert metrics(hits, sorted(relevant)) == metrics(hits, sorted(relevant, reverse=True))


RANX = Path(__file__).parents[1] / "data" / "ranx.jsonl"
NAMES = ("recall@5", "recall@10", "hit_rate@10", "mrr", "ndcg@10", "precision@5")


def ours(ranked: list[str], relevant: list[str]) -> dict[str, float]:
    hits = [(item,) for item in ranked]
    return {**metrics(hits, relevant), "precision@5": precision(hits, relevant, k=5)}


def test_the_ranking_metrics_are_those_that_ranx_gave() -> None:
    """Against an independent implementation (Bassani, ECIR 2022; version 0.3.21), on 60 random runs that it scored."""
    rows = [json.loads(line) for line in RANX.read_text().splitlines()]
    assert len(rows) == 60
    for row in rows:
        assert ours(row["ranked"], row["relevant"]) == pytest.approx(row["ranx"], abs=1e-9)


def test_the_ranking_metrics_are_those_of_ranx() -> None:
    """The same with ranx itself, where it is installed: it compiles for a minute."""
    ranx = pytest.importorskip("ranx", reason="needs ranx: pip install 'docmem[bench]'")
    chance = random.Random(7)
    documents = [f"d{number}" for number in range(60)]
    queries = {f"q{n}": chance.sample(documents, chance.randint(1, 12)) for n in range(300)}
    found = {name: chance.sample(documents, chance.randint(1, 40)) for name in queries}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numba's, about its own compiling
        scored = ranx.Run(
            {name: {d: float(len(items) - n) for n, d in enumerate(items)} for name, items in found.items()}
        )
        ranx.evaluate(
            ranx.Qrels({name: dict.fromkeys(items, 1) for name, items in queries.items()}), scored, list(NAMES)
        )
    for name, relevant in queries.items():
        theirs = {metric: scored.scores[metric][name] for metric in NAMES}
        assert ours(found[name], relevant) == pytest.approx(theirs, abs=1e-9)
