"""Two runs of one task, sample by sample."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from docmem.errors import InputError
from docmem_evals import bootstrap, tasks
from docmem_evals.bootstrap import Difference
from docmem_evals.run import Run
from docmem_evals.samples import Scored

Change: TypeAlias = Literal["better", "worse", "different", "added", "removed", "reworded"]
CHANGES: tuple[Change, ...] = ("worse", "better", "different", "added", "removed", "reworded")


@dataclass(frozen=True)
class Changed:
    """A sample that isn't as it was. `before`, `after`: None where the run doesn't have it."""

    id: str
    change: Change
    before: Scored | None
    after: Scored | None


@dataclass(frozen=True)
class Comparison:
    """What changed from run `before` to run `after`."""

    before: Run
    after: Run

    @cached_property
    def samples(self) -> tuple[Changed, ...]:
        """The samples that changed, worse ones first."""
        one = {sample.id: sample for sample in self.before.samples}
        other = {sample.id: sample for sample in self.after.samples}
        found = [self._changed(name, one.get(name), other.get(name)) for name in dict.fromkeys([*one, *other])]
        changed = [each for each in found if each is not None]
        return tuple(sorted(changed, key=lambda each: CHANGES.index(each.change)))

    def _changed(self, name: str, before: Scored | None, after: Scored | None) -> Changed | None:
        if before is None or after is None:
            return Changed(name, "added" if before is None else "removed", before, after)
        if before.judged == after.judged and before.unscored == after.unscored:
            return None
        was, now = self._worth(before), self._worth(after)
        change: Change = "different" if was == now else "better" if now > was else "worse"
        if change == "different" and before.judged.problems == after.judged.problems:
            if before.judged.got == after.judged.got:
                return None
            change = "reworded"  # other words, the same verdict
        return Changed(name, change, before, after)

    def _worth(self, sample: Scored) -> tuple[float, float]:
        """What a sample adds to: few problems first, then the leading metric."""
        if sample.unscored is not None:
            return (-1e9, 0.0)
        found = tasks.metrics(self.after.header.task, [sample.judged.counts])
        return (-float(len(sample.judged.problems)), found.get(tasks.TASKS[self.after.header.task].leading, 0.0))

    @cached_property
    def differences(self) -> dict[str, Difference]:
        """The metrics of the samples that both have, with intervals."""
        one = {sample.id: sample for sample in self.before.scored}
        both = [(one[sample.id], sample) for sample in self.after.scored if sample.id in one]
        return bootstrap.differences(
            [before.judged.counts for before, _ in both],
            [after.judged.counts for _, after in both],
            tasks.TASKS[self.after.header.task].metrics,
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why the figures may not compare."""
        one, other = self.before.header, self.after.header
        found = []
        if one.dataset != other.dataset:
            found.append(f"the datasets differ ({one.dataset}, {other.dataset}): only samples of both are compared")
        if one.matcher != other.matcher:
            found.append(f"the matchers differ ({one.matcher}, {other.matcher}): their figures don't compare")
        return tuple(found)

    def as_json(self) -> dict[str, Any]:
        """The shape of `eval compare --json`."""
        return {
            "task": self.after.header.task,
            "before": self.before.header.as_json(),
            "after": self.after.header.as_json(),
            "differences": {
                name: {
                    "before": round(each.baseline, 4),
                    "after": round(each.value, 4),
                    "change": round(each.change, 4),
                    "low": round(each.low, 4),
                    "high": round(each.high, 4),
                    "clear": each.is_clear,
                }
                for name, each in self.differences.items()
            },
            "samples": [
                {
                    "id": each.id,
                    "change": each.change,
                    "before": list(each.before.judged.problems) if each.before else None,
                    "after": list(each.after.judged.problems) if each.after else None,
                    "got_before": list(each.before.judged.got) if each.before else None,
                    "got_after": list(each.after.judged.got) if each.after else None,
                }
                for each in self.samples
            ],
            "warnings": list(self.warnings),
        }


def compare(before: Run, after: Run) -> Comparison:
    """Compare two runs. Raises `InputError` for runs of different tasks."""
    if before.header.task != after.header.task:
        raise InputError(
            f"a run of {before.header.task} doesn't compare with one of {after.header.task}",
            hint="give two runs of one task",
        )
    return Comparison(before, after)
