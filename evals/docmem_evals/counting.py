"""Precision, recall and F1 from counts. Pure, and defined where there is nothing to count."""

from __future__ import annotations


def precision(right: int, extracted: int) -> float:
    """Share of what was extracted that is right; 1 where nothing was."""
    return right / extracted if extracted else 1.0


def recall(right: int, expected: int) -> float:
    """Share of what was expected that was found; 1 where nothing was."""
    return right / expected if expected else 1.0


def f1(right: int, *, extracted: int, expected: int) -> float:
    """Harmonic mean of the two; 1 where there was nothing to find and nothing was."""
    return 2 * right / (extracted + expected) if extracted + expected else 1.0


def share(part: int, whole: int) -> float:
    """`part` of `whole`; 0 of nothing."""
    return part / whole if whole else 0.0
