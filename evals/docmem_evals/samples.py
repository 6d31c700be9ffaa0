"""What a scorer makes of one sample, and what a run keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from docmem.model import Spent
from docmem_evals.counting import Counts


@dataclass(frozen=True)
class Judged:
    """A scorer's verdict. `problems`: what is wrong, in words; none where all is right."""

    counts: Counts
    expected: tuple[str, ...] = ()
    got: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scored:
    """One sample of a run: a line of its file.

    `unscored`: why there is no verdict (a judge without an answer); such a sample counts nowhere. `cached`: the
    model's answer was kept from an earlier run, and `spent` is what it took then. `seconds` of this run. `prompt` and
    `input` are hashes of what the model was given.
    """

    id: str
    kind: str
    domain: str
    language: str
    judged: Judged
    said: tuple[str, ...] = ()
    unscored: str | None = None
    cached: bool = False
    spent: Spent = field(default_factory=Spent)
    seconds: float = 0.0
    prompt: str = ""
    input: str = ""

    @property
    def right(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.unscored is None and not self.judged.problems

    @property
    def failed(self) -> bool:
        """Whether there was no usable reply."""
        return bool(self.judged.counts.get("failed"))

    def as_json(self) -> dict[str, Any]:
        """A line of a run's file."""
        row = asdict(self)
        row.update(row.pop("judged"))
        row["counts"] = {name: value for name, value in row["counts"].items() if value}
        row["scored"] = sorted(self.judged.counts)
        row["tokens"] = {"in": self.spent.tokens_in, "out": self.spent.tokens_out}
        row["cost"] = self.spent.cost
        row["repairs"] = self.spent.repairs
        row["seconds"] = round(self.seconds, 3)
        del row["spent"]
        return row

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Scored:
        """Read a line of a run's file. Raises `KeyError` or `TypeError` for what isn't one."""
        tokens = row["tokens"]
        counts = {**dict.fromkeys(row["scored"], 0.0), **row["counts"]}
        return cls(
            id=row["id"],
            kind=row["kind"],
            domain=row["domain"],
            language=row["language"],
            judged=Judged(counts, tuple(row["expected"]), tuple(row["got"]), tuple(row["problems"])),
            said=tuple(row["said"]),
            unscored=row["unscored"],
            cached=row["cached"],
            spent=Spent(tokens["in"], tokens["out"], row["cost"], row["repairs"]),
            seconds=row["seconds"],
            prompt=row["prompt"],
            input=row["input"],
        )
