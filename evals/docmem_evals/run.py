"""A run of a task: what was measured, with what, and the file it is kept in.

The file is JSON lines: a header (commit, prompt hash, model, dataset hash, …), one line a sample in the dataset's
order, and the figures last. A run that was broken off leaves a file without figures, which is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from docmem.errors import InputError
from docmem.times import format_time
from docmem_evals import gates, tasks
from docmem_evals.gates import Gate
from docmem_evals.samples import Scored

FORMAT = 1


@dataclass(frozen=True)
class Header:
    """What a run was made with. `commit` is that of the folder it was started in, if that is a git repo."""

    task: str
    model: str
    matcher: str
    dataset: str
    commit: str | None = None
    prompt: str = ""
    docmem: str = ""
    started: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        """The first line of a run's file."""
        started = format_time(self.started) if self.started else None
        return {
            "format": FORMAT,
            "task": self.task,
            "model": self.model,
            "matcher": self.matcher,
            "dataset": self.dataset,
            "commit": self.commit,
            "prompt": self.prompt,
            "docmem": self.docmem,
            "started": started,
        }


@dataclass(frozen=True)
class Run:
    """What was measured. `warnings`: what a reader of the figures must know."""

    header: Header
    samples: tuple[Scored, ...]
    gates_asked: tuple[Gate, ...] = ()
    warnings: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    max_unscored: float = gates.MAX_UNSCORED

    @property
    def scored(self) -> list[Scored]:
        """The samples with a verdict."""
        return [sample for sample in self.samples if sample.unscored is None]

    @cached_property
    def metrics(self) -> dict[str, float]:
        """Over all samples with a verdict."""
        return self._metrics(self.scored)

    @cached_property
    def gates(self) -> dict[str, dict[str, Any]]:
        """The bounds that were asked for; with any of them, and samples unscored, also how many may be."""
        left = len(self.samples) - len(self.scored)
        if not self.gates_asked or not left:
            return gates.judged(self.gates_asked, self.metrics)
        bound = Gate(gates.UNSCORED, self.max_unscored, at_most=True)
        share = round(left / len(self.samples), 4)
        return gates.judged((*self.gates_asked, bound), {**self.metrics, gates.UNSCORED: share})

    @property
    def passed(self) -> bool:
        """Whether every gate is."""
        return all(gate["passed"] for gate in self.gates.values())

    def by(self, what: str) -> dict[str, dict[str, float]]:
        """The metrics by `kind`, `domain` or `language`."""
        return {name: self._metrics(rows) for name, rows in self.grouped(what).items()}

    def grouped(self, what: str) -> dict[str, list[Scored]]:
        """The samples with a verdict, by `kind`, `domain` or `language`."""
        found: dict[str, list[Scored]] = {}
        for sample in self.scored:
            found.setdefault(getattr(sample, what), []).append(sample)
        return dict(sorted(found.items()))

    def _metrics(self, samples: Sequence[Scored]) -> dict[str, float]:
        return tasks.metrics(self.header.task, [sample.judged.counts for sample in samples])

    @property
    def spent(self) -> dict[str, Any]:
        """Tokens and dollars of all samples, and of those that this run asked for."""
        fresh = [sample for sample in self.samples if not sample.cached]
        costs = [sample.spent.cost for sample in self.samples if sample.spent.cost is not None]
        fresh_costs = [sample.spent.cost for sample in fresh if sample.spent.cost is not None]
        return {
            "tokens": {
                "in": sum(sample.spent.tokens_in for sample in self.samples),
                "out": sum(sample.spent.tokens_out for sample in self.samples),
            },
            "cost": round(sum(costs), 6) if costs else None,
            "cost_now": round(sum(fresh_costs), 6) if fresh_costs else None,
            "cached": len(self.samples) - len(fresh),
        }

    def as_json(self) -> dict[str, Any]:
        """The shape of `eval --json`."""
        header = self.header.as_json()
        return {
            **{name: header[name] for name in ("task", "model", "matcher", "dataset", "commit", "prompt")},
            "stand_in": self.header.model == "offline",
            "samples": len(self.samples),
            "unscored": len(self.samples) - len(self.scored),
            "failed": sum(sample.failed for sample in self.samples),
            "metrics": self.metrics,
            "by_kind": self.by("kind"),
            "by_domain": self.by("domain"),
            "by_language": self.by("language"),
            "gates": self.gates,
            "warnings": list(self.warnings),
            **self.spent,
            **self.extra,
        }

    def lines(self) -> list[str]:
        """The lines of its file."""
        rows = [self.header.as_json(), *(sample.as_json() for sample in self.samples), {"figures": self.as_json()}]
        return [line(row) for row in rows]


def line(row: Mapping[str, Any]) -> str:
    """One line of a run's file."""
    return json.dumps(row, ensure_ascii=False) + "\n"


def load(path: Path) -> Run:
    """Read a run's file. Raises `InputError` naming the line that is wrong."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"can't read the run {path}: {error}") from None
    rows = [_row(path, number, text) for number, text in enumerate(lines, start=1) if text.strip()]
    if not rows or rows[0].get("format") != FORMAT or rows[0].get("task") not in tasks.TASKS:
        raise InputError(f"{path} is no run", hint="make one with `docmem eval extraction --out FILE`")
    if "figures" not in rows[-1]:
        raise InputError(
            f"{path} was broken off after {len(rows) - 1} samples", hint="run it again: what it had is kept"
        )
    header = _read(path, 1, lambda: _header(rows[0]))
    samples = [_read(path, number, partial(Scored.from_json, row)) for number, row in enumerate(rows[1:-1], start=2)]
    figures = rows[-1]["figures"]
    bounds = tuple(
        Gate(name, gate["bound"], at_most=name in tasks.TASKS[header.task].smaller)
        for name, gate in figures.get("gates", {}).items()
        if name != gates.UNSCORED
    )
    kept = figures.get("gates", {}).get(gates.UNSCORED, {}).get("bound", gates.MAX_UNSCORED)
    return Run(header, tuple(samples), bounds, tuple(figures.get("warnings", ())), max_unscored=kept)


def _row(path: Path, number: int, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InputError(f"{path}, line {number}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}, line {number}: not a JSON object")
    return value


def _read(path: Path, number: int, reader: Callable[[], Any]) -> Any:
    try:
        return reader()
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}, line {number}: not a line of a run: {error!r}") from None


def _header(row: Mapping[str, Any]) -> Header:
    from docmem.times import parse_time

    started = row.get("started")
    return Header(
        task=row["task"],
        model=row["model"],
        matcher=row["matcher"],
        dataset=row["dataset"],
        commit=row["commit"],
        prompt=row["prompt"],
        docmem=row["docmem"],
        started=parse_time(started) if started else None,
    )
