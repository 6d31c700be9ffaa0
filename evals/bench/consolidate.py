"""What consolidating a window of 20 turns costs without the model's call, as the tenant and the subject grow.

    python evals/bench/consolidate.py [--quick] [--json]

Times are CPU times (this process and its gits), the median of the rounds. `subject` rows: a person with 10 memories in
a tenant of n; `person` rows: a person who has n memories alone. Ratios: `growth` = the tenant of 100k / of 1k memories
(asked: at most 1.5); `ms_at_10k` = milliseconds in a tenant of 10k (asked: under 40).
"""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from docmem import files, git, layout, names, repository
from docmem.config import Settings
from docmem.consolidation import consolidate
from docmem.model import Job, Memory, Source, Turn
from docmem.prompt import Request
from docmem.reply import Answer, from_value
from report import Bench, arguments

NOW = datetime(2026, 5, 3, tzinfo=UTC)
TURNS = 20
OF_A_PERSON = 10


class Says:
    """A model that answers at once: 4 creates and an attribute."""

    name = "scripted"

    def propose(self, request: Request) -> Answer:
        """Statements that are new in each window."""
        last = request.turns[-1].id
        texts = [f"The traveller asked for item {last} in shop {number} of the old town." for number in range(4)]
        operations = [_create(text, last) for text in texts]
        pairs = [{"key": "home_city", "value": f"Town {last}"}]
        profile = {"preferred_language": None, "locale": None, "lifecycle_stage": None, "attributes": pairs}
        return Answer(from_value({"operations": operations, "profile": profile}))


def _create(text: str, turn: str) -> dict[str, Any]:
    head = {"op": "create", "id": None, "kind": "fact", "topic": "trip_plans", "text": text}
    return {**head, "confidence": 0.9, "importance": 5, "evidence_turns": [turn], "quote": None}


def memory(subject: str, number: int) -> Memory:
    """A plausible memory; no two are alike."""
    liked = "the food" if number % 2 else "the view"
    text = f"The traveller visited place {number} with guide {number % 97} and liked {liked}."
    return Memory(
        f"{number:016x}",
        "fact",
        text,
        subject,
        layout.memory_path(subject, f"{number:016x}", text),
        topic="past_trips",
        valid_from=NOW,
        source=Source(thread=f"web-{number}", turns=("t1",)),
    )


def filled(folder: Path, tenant: str, size: int, *, of_a_person: int) -> Settings:
    """A tenant with `size` memories, `of_a_person` to each."""
    settings = Settings(root=folder, secret="bench", embedding_model="none")
    repo = repository.create(settings, tenant)
    subjects = [names.subject_of_id(tenant, f"person {n}") for n in range(max(size // of_a_person, 1))]
    made = [memory(subjects[number // of_a_person], number) for number in range(size)]
    with repo.locked():
        changed: dict[str, bytes | None] = {each.path: files.render_memory(each) for each in made}
        git.commit(repo.git_dir, base=repo.head(), files=changed, message="fill", when=NOW)
    return settings


def windows(settings: Settings, tenant: str) -> Callable[[], None]:
    """Consolidates the next 20 turns of a thread of person 0."""
    said: list[Turn] = []

    def window() -> None:
        for _ in range(TURNS):
            number = len(said) + 1
            role = "user" if number % 2 == 0 else "assistant"
            said.append(Turn(f"t{number}", role, f"Sentence {number} about the trip, of usual length.", at=NOW))  # type: ignore[arg-type]
        job = Job(tenant, "bench", names.subject_of_id(tenant, "person 0"))
        done = consolidate(job, settings=settings, turns=said, model=Says(), now=NOW)
        assert (done.outcome, done.operations["create"]) == ("committed", 4), done.as_json()

    return window


def cpu() -> float:
    """CPU seconds of this process and of its ended children."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def measured(work: Callable[[], None], git_dir: Path, rounds: int) -> list[float]:
    """CPU seconds of each round, the repo's reading git ended within it so that its time counts."""
    work()
    found = []
    for _ in range(rounds):
        git.close(git_dir)
        started = cpu()
        work()
        git.close(git_dir)
        found.append(cpu() - started)
    return found


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__ or "")
    bench = Bench("consolidate", options.quick)
    rounds = 5 if options.quick else 30
    tenants = [1_000, 2_000] if options.quick else [1_000, 10_000, 100_000]
    people = [100] if options.quick else [100, 1_000, 10_000]
    found: dict[int, float] = {}
    with tempfile.TemporaryDirectory() as name:
        for size in tenants:
            settings = filled(Path(name), f"tenant-{size}", size, of_a_person=OF_A_PERSON)
            repo = repository.open(settings, f"tenant-{size}").git_dir
            times = measured(windows(settings, f"tenant-{size}"), repo, rounds)
            found[size] = bench.row("subject of 10 memories, tenant", size, times)["p50_ms"]
        for size in people:
            settings = filled(Path(name), f"person-{size}", size, of_a_person=size)
            repo = repository.open(settings, f"person-{size}").git_dir
            bench.row(
                "one person's memories", size, measured(windows(settings, f"person-{size}"), repo, max(rounds // 6, 3))
            )
    bench.ratios = {"growth": found[tenants[-1]] / found[tenants[0]], "ms_at_10k": found[tenants[1]]}
    bench.finish(as_json=options.json)


if __name__ == "__main__":
    main()
