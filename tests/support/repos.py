"""Short ways to put real files into a real tenant's repo."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from docmem import layout, names, repository
from docmem.config import Settings
from docmem.model import Memory, Source
from docmem.repository import Repository

NOW = datetime(2026, 5, 2, 12, 0, tzinfo=UTC)


def subject(tenant: str = "acme", value: str = "ana") -> str:
    """The key of the person called `value`."""
    return names.subject_of_id(tenant, value)


def memory(text: str, *, tenant: str = "acme", who: str = "ana", number: int = 0, **changes: object) -> Memory:
    """A memory with plausible defaults; `number` tells apart those with equal text."""
    owner = subject(tenant, who)
    memory_id = names.memory_id(
        b"test", tenant=tenant, subject=owner, thread="t", evidence=[f"t{number}"], kind="fact", text=text
    )
    values: dict[str, object] = {
        "id": memory_id,
        "kind": "fact",
        "text": text,
        "subject": owner,
        "path": layout.memory_path(owner, memory_id, text),
        "confidence": 0.9,
        "valid_from": NOW,
        "source": Source(thread="web-1", turns=("t1",), quote="quote"),
    }
    return Memory(**(values | changes))  # type: ignore[arg-type]


def put(settings: Settings, tenant: str, changed: Mapping[str, bytes | None], message: str = "edit by hand") -> str:
    """Commit files to a tenant's repo; returns the revision."""
    repo: Repository = repository.open(settings, tenant)
    with repo.locked():
        return repo.commit(repo.head(), changed, message=message, now=NOW)
