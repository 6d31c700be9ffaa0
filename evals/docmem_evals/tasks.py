"""The four tasks: what their samples are counted into, and which metric says most."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from docmem_evals.counting import Counts
from docmem_evals.gates import UNSCORED
from docmem_evals.scoring import answer, extraction, merge, recall


@dataclass(frozen=True)
class Task:
    """A task. `leading`: the metric that says most; `shown`: a table's; `smaller`: those where less is better."""

    name: str
    metrics: Callable[[Sequence[Counts]], dict[str, float]]
    leading: str
    shown: tuple[str, ...]
    smaller: frozenset[str] = frozenset()

    def is_bounded_above(self, name: str) -> bool:
        """Whether less of a metric is better."""
        return name in self.smaller or name == UNSCORED


TASKS: Mapping[str, Task] = {
    task.name: task
    for task in (
        Task(
            "extraction",
            extraction.metrics,
            "f1",
            ("precision", "recall", "f1", "attribute_f1", "routing_accuracy", "junk_rate"),
            frozenset({"junk_rate", "unexpected_rate"}),
        ),
        Task(
            "merge",
            merge.metrics,
            "value",
            ("new_f1", "update_recall", "delete_recall", "duplicate_rate", "wrong_merge_rate", "op_economy", "value"),
            frozenset({"duplicate_rate", "wrong_merge_rate"}),
        ),
        Task(
            "recall",
            recall.metrics,
            "ndcg@10",
            ("hit_rate@10", "precision@5", "recall@5", "recall@10", "mrr", "ndcg@10", "packet_recall", "abstention"),
            frozenset({"leak_rate", "stale_rate", "distractor_rate"}),
        ),
        Task(
            "answer",
            answer.metrics,
            "accuracy",
            ("accuracy", "answer_accuracy", "abstention_accuracy", "withheld_rate"),
            frozenset({"withheld_rate"}),
        ),
    )
}


def metrics(task: str, samples: Sequence[Counts]) -> dict[str, float]:
    """The metrics of some samples together, to 4 digits; empty for none."""
    return {name: round(value, 4) for name, value in TASKS[task].metrics(samples).items()} if samples else {}
