"""`docmem eval recall --locomo`: real conversations through the whole engine, then every question.

Each session is a window of one thread; the annotators' observations are the recorded reply to it. What admission
lets through is committed, synced and searched in the served copy: once over the memories, where a memory counts for
the turns that it cites, and once over the raw turns as documents. The same input gives the same figures.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from docmem import embedding, llm, repository, splice
from docmem.config import Settings
from docmem.consolidation import consolidate
from docmem.embedding import Embedder, QueryVectors
from docmem.index import Reader
from docmem.model import Job
from docmem.names import subject_of_id
from docmem.recall import search
from docmem_evals import conversations, ranking
from docmem_evals.conversations import Conversation, Session
from docmem_evals.workplace import workplace
from docmem_sync.sync import sync_tenant

BOUND = 0.68
"""What turns.recall@10 over all five conversations must reach without an embedder."""

SUBJECT = "speakers"
_THREAD = "locomo"
_TOPIC = "observation"
_DEPTH = 30
_TITLE = 60
_FIVE = 760
"""Questions of the five conversations that the bound was set on."""

_CONFIG = f"""\
format: 1
language: english
agents:
  default:
    topics:
      - name: {_TOPIC}
        description: Anything that either speaker says about their life.
policies:
  admission: {{max_operations: 1000, delete_share: 1}}
"""


@dataclass(frozen=True, slots=True)
class Scored:
    """One question's figures, over `memories` and over `turns`."""

    kind: str
    metrics: dict[str, float]


@dataclass(frozen=True)
class Report:
    """What a run measured."""

    model: str
    samples: tuple[Scored, ...]
    counts: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def by_kind(self) -> dict[str, dict[str, float]]:
        """The mean by kind of question."""
        kinds = sorted({scored.kind for scored in self.samples})
        return {kind: ranking.mean(scored.metrics for scored in self.samples if scored.kind == kind) for kind in kinds}

    @property
    def metrics(self) -> dict[str, float]:
        """The mean over all questions."""
        return ranking.mean(scored.metrics for scored in self.samples)

    @property
    def gates(self) -> dict[str, dict[str, Any]]:
        """The bound, where it was all of the five conversations."""
        if len(self.samples) != _FIVE:
            return {}
        value = self.metrics["turns.recall@10"]
        return {"turns.recall@10": {"value": value, "bound": BOUND, "passed": value >= BOUND}}

    @property
    def passed(self) -> bool:
        """Whether every gate is."""
        return all(gate["passed"] for gate in self.gates.values())

    def as_json(self) -> dict[str, Any]:
        """The shape of `eval --json`."""
        return {
            "task": "recall",
            "model": self.model,
            "matcher": "turn ids",
            "dataset": "locomo",
            "samples": len(self.samples),
            "metrics": self.metrics,
            "by_kind": self.by_kind,
            "gates": self.gates,
            "counts": dict(sorted(self.counts.items())),
            "seconds": {name: round(value, 2) for name, value in self.seconds.items()},
        }

    def table(self) -> str:
        """The figures for people."""
        names = ("recall@5", "recall@10", "mrr", "ndcg@10")
        asked = Counter(scored.kind for scored in self.samples)
        lines = [f"{'':<10}{'':<14}{'questions':>10}" + "".join(f"{name:>11}" for name in names)]
        rows = [*self.by_kind.items(), ("all", self.metrics)]
        for what in ("memories", "turns"):
            for kind, metrics in rows:
                figures = "".join(f"{metrics[f'{what}.{name}']:>11.3f}" for name in names)
                lines.append(f"{what:<10}{kind:<14}{asked.get(kind, len(self.samples)):>10}{figures}")
        counts = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in sorted(self.counts.items()))
        times = ", ".join(f"{name} {value:.1f} s" for name, value in self.seconds.items())
        return "\n".join([*lines, "", f"embedder: {self.model}", counts, times])


def run(
    settings: Settings, folder: Path, *, conversations: Sequence[int] = (), embedding_model: str | None = None
) -> Report:
    """Measure recall on the conversations of a folder (all, or these numbers).

    Works in a temporary root. Without a configured Postgres it starts one there; in a configured one, its tenants
    have names of their own and their rows are deleted at the end. Raises `DocmemError` for bad input, a missing
    server or model, or a window that could not be consolidated.
    """
    loaded = _load(folder, conversations)
    model = embedding.embedder(settings, name=embedding_model)
    with workplace(settings, [conversation.name for conversation in loaded]) as (work, tenants):
        report = Report(model.model if model else "none", ())
        for conversation, tenant in zip(loaded, tenants, strict=True):
            report = _measure(report, work, tenant, conversation, model)
    return report


def _load(folder: Path, numbers: Sequence[int]) -> list[Conversation]:
    return conversations.load(folder, numbers=numbers)


def _measure(report: Report, work: Settings, tenant: str, conversation: Conversation, model: Embedder | None) -> Report:
    clock = _Clock(dict(report.seconds))
    counts = Counter(report.counts)
    repository.create(work, tenant)
    with clock("commit"):
        _commit_turns(work, tenant, conversation)
    with clock("consolidate"):
        for session in conversation.sessions:
            counts += _consolidate(work, tenant, conversation, session)
    with clock("sync"):
        done = sync_tenant(work, tenant, embedder=model)
    with clock("search"):
        samples = _ask(work, tenant, conversation, model)
    counts += Counter(
        conversations=1,
        sessions=len(conversation.sessions),
        turns=len(conversation.texts()),
        questions=len(conversation.queries),
        embedded=done.embedded,
    )
    return replace(report, samples=report.samples + tuple(samples), counts=counts, seconds=clock.seconds)


def _commit_turns(work: Settings, tenant: str, conversation: Conversation) -> None:
    """The policies, and every turn as a document, in one commit before the conversation begins."""
    files: dict[str, bytes | None] = {"docmem.yaml": _CONFIG.encode()}
    for turn, text in conversation.texts().items():
        # A title that the text begins with adds no word of its own.
        head = f"title: {splice.render(text[:_TITLE].strip())}\n"
        files[_document_path(turn)] = f"---\n{head}---\n{text}\n".encode()
    repo = repository.open(work, tenant)
    start = conversation.sessions[0].turns[0].at
    assert start is not None
    with repo.locked():
        repo.commit(repo.head(), files, message="Lay down the turns\n", now=start)


def _document_path(turn: str) -> str:
    return f"corpus/{turn.replace(':', '-')}.md"


def _consolidate(work: Settings, tenant: str, conversation: Conversation, session: Session) -> Counter[str]:
    """One window: the session, and its observations as the recorded reply."""
    recording = work.root / f"{tenant}-{session.number}.jsonl"
    recording.write_text(json.dumps(_recorded(session)), encoding="utf-8")
    turns = [turn for past in conversation.sessions if past.number <= session.number for turn in past.turns]
    done = consolidate(
        Job(tenant=tenant, thread=_THREAD, subject=subject_of_id(tenant, SUBJECT)),
        settings=work,
        turns=turns,
        model=llm.model(f"replay:{recording}"),
        now=session.turns[-1].at,
    )
    if done.error is not None:
        raise done.error
    kept = Counter({f"memories_{op}d": count for op, count in done.operations.items()})
    return kept + Counter(observations=len(session.observations), rejected=sum(done.rejected.values()), held=done.held)


def _recorded(session: Session) -> dict[str, Any]:
    operations = [
        {
            "op": "create",
            "id": None,
            "kind": "fact",
            "topic": _TOPIC,
            "text": observation.text,
            "confidence": 0.9,
            "importance": 5,
            "evidence_turns": list(observation.turns),
            "quote": next((turn.text for turn in session.turns if turn.id in observation.turns), None),
        }
        for observation in session.observations
    ]
    profile: dict[str, Any] = {"preferred_language": None, "locale": None, "lifecycle_stage": None, "attributes": []}
    return {
        "thread": _THREAD,
        "turns": [session.turns[0].id, session.turns[-1].id],
        "reply": {"operations": operations, "profile": profile},
    }


def _ask(work: Settings, tenant: str, conversation: Conversation, model: Embedder | None) -> list[Scored]:
    turn_of = {_document_path(turn): turn for turn in conversation.texts()}
    vectors = QueryVectors(model, timeout=60) if model else None
    reader = Reader(work, timeout=60)
    try:
        scored = []
        for query in conversation.queries:
            memories = search(
                reader, tenant, query.text, subject=SUBJECT, folders=(), limit=_DEPTH, embedder=vectors
            ).hits
            documents = search(reader, tenant, query.text, kinds=(), limit=_DEPTH, embedder=vectors).hits
            over: dict[str, ranking.Ranking] = {
                "memories": [hit.turns for hit in memories],
                "turns": [(turn_of.get(hit.path, ""),) for hit in documents],
            }
            metrics = {
                f"{what}.{name}": value
                for what, found in over.items()
                for name, value in ranking.metrics(found, query.relevant).items()
            }
            scored.append(Scored(query.kind, metrics))
        return scored
    finally:
        reader.close()


class _Clock:
    """Adds up seconds by name."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds = seconds

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - started
