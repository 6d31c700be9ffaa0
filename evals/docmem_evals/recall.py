"""`docmem eval recall`: whether a question finds what answers it, in tenants made for it.

Each file becomes a tenant, synced into a real Postgres; each question is asked twice, as a search and as a packet for a
prompt. What is found is told by id, so no matcher is involved. See scoring/recall.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from docmem import recall
from docmem.config import Settings
from docmem.embedding import QueryVectors
from docmem.index import Reader
from docmem.packet import Packet
from docmem.recall import SearchResult
from docmem_evals import gates, people, rig, runner
from docmem_evals.people import Asked
from docmem_evals.rig import PATIENCE, Outage, Place, Rig
from docmem_evals.run import Header, Run
from docmem_evals.runner import Options
from docmem_evals.samples import Scored
from docmem_evals.scoring import recall as scorer
from docmem_evals.scoring.recall import Found

Search: TypeAlias = Callable[..., SearchResult]
DEPTH = 30
MATCHER = "memory ids"


def run(
    settings: Settings,
    *,
    folder: Path | None = None,
    embedding_model: str | None = None,
    min_mrr: float | None = None,
    min_ndcg: float | None = None,
    min_abstention: float | None = None,
    max_leaks: float | None = None,
    max_stale: float | None = None,
    options: Options | None = None,
    search: Search = recall.search,
) -> Run:
    """Ask every question of a folder (default: the shipped). Raises `InputError`, `ServerUnavailable`, ….

    `search` has the signature of `docmem.recall.search`.
    """
    loaded = people.recalls(folder)
    how = replace(options or Options(), jobs=1)
    questions = how.chosen(loaded.asked)
    with rig.rigged(settings, people.worlds(questions), embedding_model=embedding_model) as made:
        reader = Reader(made.work, timeout=PATIENCE)
        vectors = {
            False: QueryVectors(made.embedder, timeout=PATIENCE) if made.embedder else None,
            True: QueryVectors(Outage(), timeout=PATIENCE),
        }
        try:
            return runner.run(
                Header("recall", made.embedder.model if made.embedder else "none", MATCHER, how.named(loaded.name)),
                questions,
                partial(_scored, rigged=made, reader=reader, vectors=vectors, search=search),
                options=how,
                gates=gates.asked(
                    {"mrr": min_mrr, "ndcg@10": min_ndcg, "abstention": min_abstention},
                    {"leak_rate": max_leaks, "stale_rate": max_stale},
                ),
            )
        finally:
            reader.close()


def _scored(
    asked: Asked, rigged: Rig, reader: Reader, vectors: dict[bool, QueryVectors | None], search: Search
) -> Scored:
    question, place = asked.question, rigged.place(asked)
    result = search(
        reader,
        place.tenant,
        question.ask,
        subject=place.subject(question.of),
        folders=(),
        limit=DEPTH,
        embedder=vectors[question.outage],
    )
    packet = rigged.packet(asked)
    return Scored(
        id=asked.id,
        kind=asked.kind,
        domain=asked.domain,
        language=asked.language,
        judged=scorer.score(asked, found(asked, place, result, packet)),
        said=(f"{question.of}: {question.ask}",),
    )


def found(asked: Asked, place: Place, result: SearchResult, packet: Packet) -> Found:
    """What came, by names. Preferences stand in every packet, so they are no answer to a question."""
    who = asked.question.of
    hits = [hit.id for hit in result.hits]
    spans = [span.id for span in packet.spans if span.path.endswith(".md") and span.path.startswith("subjects/")]
    foreign = [place.ids.get(each, each) for each in [*hits, *spans] if place.owners.get(each) != who]
    memories = asked.world.people.people[who].memories
    own = [place.ids[each] for each in hits if place.owners.get(each) == who]
    shown = [place.ids[each] for each in spans if place.owners.get(each) == who]
    ranked = own if result.degraded != "recency" else []
    return Found(
        ranked=tuple(ranked),
        packet=tuple(name for name in shown if memories[name].kind != "preference" or name in asked.question.relevant),
        others=tuple(foreign),
        degraded=result.degraded,
    )
