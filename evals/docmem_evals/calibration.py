"""`docmem eval calibrate`: the cosine from which two statements say the same, by labelled pairs.

The threshold is the one with the highest F1 on the pairs that say the same; of several the middle one. It is judged on
pairs that it was not chosen on as well: chosen on every second pair, counted on the others, and the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import Field

from docmem.schema import Text
from docmem_evals import counting
from docmem_evals.cosine import Cosine
from docmem_evals.dataset import Strict, file_at


class Pair(Strict):
    """Two statements, and whether they say the same."""

    one: Text
    other: Text
    same: bool
    language: Text = "en"


class _Pairs(Strict):
    pairs: tuple[Pair, ...] = Field(min_length=4)


@dataclass(frozen=True)
class Calibration:
    """What was found. `rows`: (cosine, same) of each pair. `f1` at the threshold; `held_out_f1` see the module."""

    model: str
    rows: tuple[tuple[float, bool], ...]
    threshold: float
    f1: float
    held_out_f1: float

    def as_json(self) -> dict[str, Any]:
        """The shape of `eval calibrate --json`."""
        same, differ = ([cosine for cosine, is_same in self.rows if is_same is wanted] for wanted in (True, False))
        return {
            "model": self.model,
            "pairs": len(self.rows),
            "threshold": self.threshold,
            "f1": round(self.f1, 4),
            "held_out_f1": round(self.held_out_f1, 4),
            "same": {"lowest": round(min(same), 4), "median": round(_median(same), 4)},
            "differ": {"highest": round(max(differ), 4), "median": round(_median(differ), 4)},
        }

    def table(self) -> str:
        """For people."""
        row = self.as_json()
        return "\n".join(
            [
                f"{row['pairs']} pairs, {row['model']}",
                f"say the same: cosine {row['same']['lowest']:.3f} at least, {row['same']['median']:.3f} in the middle",
                f"differ: cosine {row['differ']['highest']:.3f} at most, {row['differ']['median']:.3f} in the middle",
                f"threshold {self.threshold:g}: F1 {self.f1:.3f}, {self.held_out_f1:.3f} on pairs it wasn't chosen on",
                f"use it: --matcher cosine:{self.threshold:g}",
            ]
        )


def pairs(path: Path | None = None) -> tuple[Pair, ...]:
    """The pairs of a file; without one, those that docmem ships. Raises `InputError`."""
    root = path if path is not None else resources.files("docmem_evals").joinpath("data/pairs.yaml")
    file = file_at(root)
    found = file.read(_Pairs).pairs
    if len({pair.same for pair in found}) < 2:
        raise file.error("a threshold needs pairs that say the same and pairs that don't", ("pairs",))
    return found


def calibrate(found: Sequence[Pair], matcher: Cosine) -> Calibration:
    """Find the threshold. Raises like the matcher's embedder."""
    rows = tuple((round(matcher.cosine(pair.one, pair.other), 6), pair.same) for pair in found)
    threshold = best(rows)
    halves = _halves(rows)
    held_out = sum(_right(halves[1 - side], best(halves[side])) for side in (0, 1)) / 2
    return Calibration(matcher.embedder.model, rows, threshold, _right(rows, threshold), held_out)


def best(rows: Sequence[tuple[float, bool]]) -> float:
    """The threshold with the highest F1, to 3 digits; the middle one of those that are equally good. Pure."""
    cosines = sorted({cosine for cosine, _ in rows})
    between = [(low + high) / 2 for low, high in pairwise(cosines)] or cosines
    scores = [_right(rows, bound) for bound in between]
    top = [bound for bound, score in zip(between, scores, strict=True) if score == max(scores)]
    return round(top[len(top) // 2], 3)


def _halves(rows: Sequence[tuple[float, bool]]) -> tuple[list[tuple[float, bool]], list[tuple[float, bool]]]:
    """Every second of the pairs that say the same and of those that don't, and the rest."""
    kinds = [[row for row in rows if row[1] is same] for same in (True, False)]
    return [row for kind in kinds for row in kind[::2]], [row for kind in kinds for row in kind[1::2]]


def _right(rows: Sequence[tuple[float, bool]], threshold: float) -> float:
    taken = [same for cosine, same in rows if cosine >= threshold]
    return counting.f1(sum(taken), extracted=len(taken), expected=sum(same for _, same in rows))


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]
