"""What was found for a question, against what answers it. Every question counts the same (macro average).

The ranking metrics are those of a search (ranking.py), over questions that something answers. Of a packet it is asked
whether it holds what answers the question (`packet_recall`), and where nothing does, whether it holds nothing that the
question is about (`abstention`). `leak_rate` and `stale_rate`: questions that were given what is another person's, or
what holds no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from docmem_evals import ranking
from docmem_evals.counting import Counts, means
from docmem_evals.people import Asked
from docmem_evals.samples import Judged

LEADING = ("hit_rate@10", "precision@5", "recall@5", "recall@10", "mrr", "ndcg@10")


@dataclass(frozen=True)
class Found:
    """What a question was given, by names of memories, best first: by a search, and in a packet.

    `others`: names found that are somebody else's, or aren't known here at all. `degraded`: what a search said.
    """

    ranked: tuple[str, ...]
    packet: tuple[str, ...]
    others: tuple[str, ...] = ()
    degraded: str | None = None


def score(asked: Asked, found: Found) -> Judged:
    """Judge what was found."""
    question = asked.question
    relevant = frozenset(question.relevant)
    person = asked.world.people.people[question.of]
    lapsed = {name for name, memory in person.memories.items() if not memory.holds}
    given = [*found.ranked, *found.packet]
    stale = [name for name in dict.fromkeys(given) if name in lapsed]
    unwanted = [name for name in dict.fromkeys(found.packet) if name in question.never and name not in stale]
    counts: dict[str, float] = {"leak_rate": bool(found.others), "stale_rate": bool(stale)}
    problems = [f"somebody else's: {name}" for name in dict.fromkeys(found.others)]
    problems += [f"holds no more: {name}" for name in stale]
    if question.never:
        counts["distractor_rate"] = bool(unwanted)
        problems += [f"not about it: {name}" for name in unwanted]
    if relevant:
        hits = [(name,) for name in found.ranked]
        counts |= ranking.metrics(hits, relevant)
        counts["precision@5"] = ranking.precision(hits, relevant, k=5)
        counts["packet_recall"] = len(relevant & set(found.packet)) / len(relevant)
        problems += [f"not in the first ten: {name}" for name in sorted(relevant - set(found.ranked[:10]))]
        problems += [f"not in the packet: {name}" for name in sorted(relevant - set(found.packet))]
    else:
        counts["abstention"] = not found.packet
        problems += [f"nothing answers it, and the packet has: {name}" for name in found.packet]
    texts = {name: memory.text for each in asked.world.people.people.values() for name, memory in each.memories.items()}
    return Judged(
        counts={name: float(value) for name, value in counts.items()},
        expected=tuple(texts[name] for name in question.relevant) or ("nothing",),
        got=tuple(texts.get(name, name) for name in found.ranked[:10]) or ("nothing",),
        problems=tuple(problems),
    )


def metrics(samples: Sequence[Counts]) -> dict[str, float]:
    """The mean of each metric over the questions that it is defined for."""
    return means(samples)
