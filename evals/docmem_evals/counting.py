"""Precision, recall and F1 from counts. Pure, and defined where there is nothing to count."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Counts: TypeAlias = Mapping[str, float]
"""What a scorer counted in one sample, by name; a name that isn't there is 0."""


def precision(right: float, extracted: float) -> float:
    """Share of what was extracted that is right; 1 where nothing was."""
    return right / extracted if extracted else 1.0


def recall(right: float, expected: float) -> float:
    """Share of what was expected that was found; 1 where nothing was."""
    return right / expected if expected else 1.0


def f1(right: float, *, extracted: float, expected: float) -> float:
    """Harmonic mean of the two; 1 where there was nothing to find and nothing was."""
    return 2 * right / (extracted + expected) if extracted + expected else 1.0


def share(part: float, whole: float) -> float:
    """`part` of `whole`; 0 of nothing."""
    return part / whole if whole else 0.0


def total(samples: Sequence[Counts]) -> defaultdict[str, float]:
    """The counts added up."""
    found: defaultdict[str, float] = defaultdict(float)
    for counts in samples:
        for name, value in counts.items():
            found[name] += value
    return found


def means(samples: Sequence[Counts]) -> dict[str, float]:
    """The mean of each name over the samples that have it: what wasn't scored is not zero."""
    found: dict[str, list[float]] = {}
    for counts in samples:
        for name, value in counts.items():
            found.setdefault(name, []).append(value)
    return {name: math.fsum(values) / len(values) for name, values in found.items()}
