"""How sure a difference between two runs is: a paired bootstrap over the samples that both have. Pure and seeded.

The same samples are drawn for both runs, so what is hard for both doesn't blur the difference (Efron and Tibshirani,
An Introduction to the Bootstrap, 1993; percentile interval).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from docmem_evals.counting import Counts

DRAWS = 1_000


@dataclass(frozen=True)
class Difference:
    """A metric's change from the baseline, with the interval that holds it in 95 % of the draws."""

    baseline: float
    value: float
    low: float
    high: float

    @property
    def change(self) -> float:
        """Value less baseline."""
        return self.value - self.baseline

    @property
    def is_clear(self) -> bool:
        """Whether no change at all lies outside the interval."""
        return not self.low <= 0 <= self.high


def differences(
    baseline: Sequence[Counts],
    run: Sequence[Counts],
    metrics: Callable[[Sequence[Counts]], dict[str, float]],
    *,
    draws: int = DRAWS,
    seed: int = 1,
) -> dict[str, Difference]:
    """The difference of each metric that both have. The samples stand in the same order in both."""
    if not run or len(baseline) != len(run):
        return {}
    before, after = metrics(baseline), metrics(run)
    drawn: dict[str, list[float]] = {name: [] for name in after if name in before}
    chance = random.Random(seed)
    for _ in range(draws):
        chosen = chance.choices(range(len(run)), k=len(run))
        one, other = metrics([baseline[n] for n in chosen]), metrics([run[n] for n in chosen])
        for name, values in drawn.items():
            if name in one and name in other:
                values.append(other[name] - one[name])
    return {name: _difference(before[name], after[name], sorted(values)) for name, values in drawn.items() if values}


def _difference(before: float, after: float, values: Sequence[float]) -> Difference:
    return Difference(
        before, after, values[int(0.025 * len(values))], values[min(int(0.975 * len(values)), len(values) - 1)]
    )
