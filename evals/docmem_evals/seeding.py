"""Tenants made for an evaluation: what is known before it begins, as files of their repos."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from docmem import files, layout, names, repository, splice
from docmem.config import Settings
from docmem.model import Kind, Memory, Source
from docmem.repository import Repository
from docmem.tenant_config import Agent
from docmem_evals.dialogues import Card

THREAD = "before"


def config(agent: Agent, *, language: str = "simple", policies: Mapping[str, Any] | None = None) -> bytes:
    """A `docmem.yaml` for the agent of a file's cases: as JSON, which YAML reads, so that no text breaks it."""
    declared = {
        "topics": [topic.model_dump(mode="json", exclude_none=True) for topic in agent.topics],
        "attributes": [attribute.model_dump(mode="json") for attribute in agent.attributes],
    }
    values = {"format": 1, "language": language, "agents": {"default": declared}, "policies": dict(policies or {})}
    return (json.dumps(values, ensure_ascii=False, indent=1) + "\n").encode()


def memory(
    tenant: str,
    subject: str,
    text: str,
    *,
    number: int = 0,
    kind: Kind = "fact",
    topic: str | None = None,
    at: datetime | None = None,
    importance: int = 5,
    valid_until: datetime | None = None,
    expires: datetime | None = None,
) -> Memory:
    """A memory that was there before. `number` tells apart those with equal text."""
    identity = names.memory_id(
        b"seed", tenant=tenant, subject=subject, thread=THREAD, evidence=[f"t{number}"], kind=kind, text=text
    )
    return Memory(
        identity,
        kind,
        text,
        subject,
        layout.memory_path(subject, identity, text),
        topic=topic,
        confidence=0.9,
        importance=importance,
        valid_from=at,
        valid_until=valid_until,
        expires=expires,
        source=Source(thread=THREAD, turns=(f"t{number}",)),
    )


def profile(subject: str, card: Card, *, label: str | None = None) -> dict[str, bytes | None]:
    """A profile's file, by its path; none where the card is empty."""
    values: dict[str, Any] = {"label": label} if label else {}
    values |= {name: value for name, value in card.values.items() if name not in card.attributes}
    if card.attributes:
        values["attributes"] = dict(card.attributes)
    if not values:
        return {}
    lines = [f"{name}: {splice.render(value)}" for name, value in values.items() if name != "attributes"]
    if card.attributes:
        lines.append("attributes:")
        lines += [f"  {splice.render(key)}: {splice.render(value)}" for key, value in card.attributes.items()]
    return {layout.profile_path(subject): ("\n".join(lines) + "\n").encode()}


def lay_down(
    work: Settings, tenant: str, contents: Mapping[str, bytes | None], memories: Sequence[Memory], *, now: datetime
) -> Repository:
    """Make a tenant with this content, in one commit after the template's."""
    repo = repository.create(work, tenant)
    written = {each.path: files.render_memory(each) for each in memories}
    with repo.locked():
        repo.commit(repo.head(), {**contents, **written}, message="What is known already\n", now=now)
    return repo
