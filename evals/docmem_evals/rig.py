"""The worlds of recall and answer as synced tenants, and what a question is given there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from docmem import embedding, layout, names
from docmem.config import Settings
from docmem.embedding import Embedder
from docmem.errors import DocmemError, ModelUnavailable
from docmem.inject import Injector
from docmem.model import Memory
from docmem.packet import Packet
from docmem_evals import seeding
from docmem_evals.people import Asked, Remembered, World
from docmem_evals.workplace import workplace
from docmem_sync.sync import sync_tenant

PATIENCE = 30.0
"""Seconds that a search may take: what is measured is what is found, and not how fast this machine is."""


@dataclass(frozen=True)
class Place:
    """A world's tenant. `ids`: a memory's id to its name; `owners`: to the person's name."""

    tenant: str
    ids: Mapping[str, str]
    owners: Mapping[str, str]

    def subject(self, who: str) -> str:
        """The key of a person."""
        return names.subject_of_id(self.tenant, who)


class Outage:
    """An embedder that is away."""

    model = "away"
    dimension = 384

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        """Fails."""
        raise ModelUnavailable("the embedder is away")

    def query(self, text: str) -> list[float]:
        """Fails."""
        raise ModelUnavailable("the embedder is away")


@dataclass
class Rig:
    """All worlds, synced; the embedder that is used, if any."""

    work: Settings
    places: Mapping[str, Place]
    embedder: Embedder | None
    _injectors: dict[bool, Injector] = field(default_factory=dict)

    def place(self, asked: Asked) -> Place:
        """Where a question is asked."""
        return self.places[asked.world.name]

    def packet(self, asked: Asked) -> Packet:
        """What a prompt would be given for a question. Raises `DocmemError` where there is no packet at all."""
        outage = asked.question.outage
        if outage not in self._injectors:
            self._injectors[outage] = Injector(
                self.work,
                embedder=Outage() if outage else self.embedder,
                timeout=PATIENCE,
                embedding_timeout=PATIENCE,
                opening=PATIENCE,
            )
        place = self.place(asked)
        made = self._injectors[outage].packet(place.tenant, place.subject(asked.question.of), asked.question.ask)
        if made.degraded not in (None, "no_embedder", "embedder_failed", "recency"):
            raise DocmemError(f"no packet for {asked.id}: {made.degraded}", hint="docmem doctor says what is wrong")
        return made

    def close(self) -> None:
        """Close the connections."""
        for injector in self._injectors.values():
            injector.close()


@contextmanager
def rigged(settings: Settings, worlds: Sequence[World], *, embedding_model: str | None = None) -> Iterator[Rig]:
    """Lay down and sync a tenant for each world. Whatever happens, they are gone afterwards, rows and all."""
    model = embedding.embedder(settings, name=embedding_model)
    labels = [f"eval-{number}" for number in range(len(worlds))]
    with workplace(settings, labels) as (work, tenants):
        if model is None:
            work = replace(work, embedding_model="none")
        now = datetime.now(UTC).replace(microsecond=0)
        places = {
            world.name: _lay_down(work, tenant, world, now) for world, tenant in zip(worlds, tenants, strict=True)
        }
        for tenant in tenants:
            sync_tenant(work, tenant, embedder=model)
        rig = Rig(work, places, model)
        try:
            yield rig
        finally:
            rig.close()


def _lay_down(work: Settings, tenant: str, world: World, now: datetime) -> Place:
    people = world.people
    contents: dict[str, bytes | None] = {
        layout.CONFIG: seeding.config(people.agent, language=people.search, policies=people.policies),
        **{path: f"{text.strip()}\n".encode() for path, text in people.documents.items()},
    }
    memories, ids, owners = [], {}, {}
    for who, person in people.people.items():
        subject = names.subject_of_id(tenant, who)
        contents |= seeding.profile(subject, person.profile, label=person.profile.label)
        for number, (name, remembered) in enumerate(person.memories.items()):
            made = _memory(tenant, subject, remembered, number, now)
            memories.append(made)
            ids[made.id], owners[made.id] = name, who
    seeding.lay_down(work, tenant, contents, memories, now=now - timedelta(minutes=1))
    return Place(tenant, ids, owners)


def _memory(tenant: str, subject: str, remembered: Remembered, number: int, now: datetime) -> Memory:
    at = (
        now
        - (remembered.ago or timedelta(0))
        - max(remembered.ended or timedelta(0), remembered.expired or timedelta(0))
    )
    return seeding.memory(
        tenant,
        subject,
        remembered.text,
        number=number,
        kind=remembered.kind,
        topic=remembered.topic,
        at=at,
        importance=remembered.importance,
        valid_until=None if remembered.ended is None else now - remembered.ended,
        expires=None if remembered.expired is None else now - remembered.expired,
    )
