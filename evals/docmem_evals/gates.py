"""Bounds that a run has to keep, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Gate:
    """A bound on a metric: at least, or with `at_most` at most."""

    metric: str
    bound: float
    at_most: bool = False

    def passes(self, value: float | None) -> bool:
        """Whether a value keeps it. What wasn't measured doesn't."""
        if value is None:
            return False
        return value <= self.bound if self.at_most else value >= self.bound


def asked(at_least: Mapping[str, float | None], at_most: Mapping[str, float | None]) -> tuple[Gate, ...]:
    """The gates for which a bound was given, by metric."""
    return (
        *(Gate(name, bound) for name, bound in at_least.items() if bound is not None),
        *(Gate(name, bound, at_most=True) for name, bound in at_most.items() if bound is not None),
    )


UNSCORED = "unscored_rate"
"""Share of samples without a verdict. A gate over the remnant that is left says little, so it has a bound itself."""
MAX_UNSCORED = 0.1


def judged(gates: tuple[Gate, ...], metrics: Mapping[str, float]) -> dict[str, dict[str, Any]]:
    """As in `eval --json`: by metric, its value, the bound, and whether it passed."""
    return {
        gate.metric: {
            "value": metrics.get(gate.metric),
            "bound": gate.bound,
            "passed": gate.passes(metrics.get(gate.metric)),
        }
        for gate in gates
    }
