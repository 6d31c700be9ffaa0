"""How good a ranking is, for one question. Pure; a run is the mean over its questions, each counting the same.

A ranking is a list of sets: what each hit stands for, best hit first. A document stands for itself, a memory for the
turns that it cites. `relevant` is what the question asks for, and is never empty: such a question is unscored.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

Ranking = Sequence[Collection[str]]


def recall(ranking: Ranking, relevant: Collection[str], *, k: int) -> float:
    """Share of the relevant that the first `k` hits stand for."""
    found = {item for hit in ranking[:k] for item in hit}
    return len(found.intersection(relevant)) / len(set(relevant))


def precision(ranking: Ranking, relevant: Collection[str], *, k: int) -> float:
    """Share of the first `k` places that hold something relevant; places left empty count as wrong."""
    return sum(_is_relevant(hit, relevant) for hit in ranking[:k]) / k


def hit_rate(ranking: Ranking, relevant: Collection[str], *, k: int) -> float:
    """1 if any of the first `k` hits is relevant, else 0."""
    return float(any(_is_relevant(hit, relevant) for hit in ranking[:k]))


def reciprocal_rank(ranking: Ranking, relevant: Collection[str]) -> float:
    """1 / rank of the first relevant hit; 0 where there is none. Its mean is the MRR."""
    ranks = (rank for rank, hit in enumerate(ranking, start=1) if _is_relevant(hit, relevant))
    return 1 / next(ranks, math.inf)


def ndcg(ranking: Ranking, relevant: Collection[str], *, k: int) -> float:
    """Discounted gain of the first `k` hits / the best there is. A hit gains 1 if it brings anything relevant anew."""
    left, gain = set(relevant), 0.0
    for rank, hit in enumerate(ranking[:k], start=1):
        if left.intersection(hit):
            gain += 1 / math.log2(rank + 1)
            left.difference_update(hit)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(set(relevant))) + 1))
    return gain / ideal


def metrics(ranking: Ranking, relevant: Collection[str]) -> dict[str, float]:
    """The metrics that docmem reports, by name."""
    return {
        "recall@5": recall(ranking, relevant, k=5),
        "recall@10": recall(ranking, relevant, k=10),
        "hit_rate@10": hit_rate(ranking, relevant, k=10),
        "mrr": reciprocal_rank(ranking, relevant),
        "ndcg@10": ndcg(ranking, relevant, k=10),
    }


def mean(rows: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The macro average of metrics by name, to 4 digits; empty for no rows."""
    every = list(rows)
    names = list(every[0]) if every else []
    return {name: round(math.fsum(row[name] for row in every) / len(every), 4) for name in names}


def _is_relevant(hit: Collection[str], relevant: Collection[str]) -> bool:
    return any(item in relevant for item in hit)
