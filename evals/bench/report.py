"""What every benchmark prints: a table, and with `--json` one object last. Times in milliseconds."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Bench:
    """One run of one benchmark: rows of measurements, and the ratios that are its result."""

    name: str
    quick: bool
    rows: list[dict[str, Any]] = field(default_factory=list)
    ratios: dict[str, float] = field(default_factory=dict)

    def row(self, name: str, n: int, times: Sequence[float], **more: Any) -> dict[str, Any]:
        """Add a row: p50 and p99 of `times` (seconds)."""
        ordered = sorted(times)
        found = {
            "name": name,
            "n": n,
            "p50_ms": _at(ordered, 0.50),
            "p95_ms": _at(ordered, 0.95),
            "p99_ms": _at(ordered, 0.99),
            **more,
        }
        self.rows.append(found)
        return found

    def finish(self, *, as_json: bool) -> None:
        """Print the table, then the object."""
        for row in self.rows:
            extra = "".join(
                f"  {key} {value}"
                for key, value in row.items()
                if key not in {"name", "n", "p50_ms", "p95_ms", "p99_ms"}
            )
            print(
                f"{row['name']:<32} n={row['n']:<8} p50 {row['p50_ms']:>9.3f} ms  p99 {row['p99_ms']:>9.3f} ms{extra}"
            )
        for name, value in self.ratios.items():
            print(f"{name:<32} {value:.3f}")
        if as_json:
            print(json.dumps({"bench": self.name, "quick": self.quick, "rows": self.rows, "ratios": self.ratios}))


def _at(ordered: Sequence[float], share: float) -> float:
    return round(ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000, 4)


def timed(work: Callable[[], object], times: int) -> list[float]:
    """Seconds of each of `times` calls."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return found


def arguments(description: str) -> argparse.Namespace:
    """`--quick` and `--json`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--json", action="store_true", help="one JSON object last")
    return parser.parse_args()
