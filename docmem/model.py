"""The values that pass between the parts. All frozen: change makes a new one.

Times are timezone-aware `datetime`s in UTC. Revisions and blobs are git object ids, 40 hex digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["preference", "fact", "decision", "episode"]
KINDS: tuple[Kind, ...] = ("preference", "fact", "decision", "episode")

Role: TypeAlias = Literal["user", "assistant", "tool", "system"]
ROLES: tuple[Role, ...] = ("user", "assistant", "tool", "system")

TEXT_MAX = 12_000
"""Characters of one memory's text."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a thread."""

    id: str
    role: Role
    text: str
    at: datetime | None = None
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """Where a memory came from: turns of a thread with a short quote, or a `uri`."""

    thread: str | None = None
    turns: tuple[str, ...] = ()
    quote: str | None = None
    uri: str | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """One remembered statement about a subject: one Markdown file."""

    id: str
    kind: Kind
    text: str
    subject: str
    path: str
    topic: str | None = None
    agent: str | None = None
    confidence: float | None = None
    importance: int = 5
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    expires: datetime | None = None
    source: Source = Source()
    supersedes: tuple[str, ...] = ()
    language: str | None = None
    """What its text is written in, as a tag (`pt-BR`); None: the tenant's language."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    scrubbed: int = 0
    """Characters that no index can hold (NUL, lone surrogates), removed while reading."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A subject's contact card: one YAML file."""

    subject: str
    label: str | None = None
    preferred_language: str | None = None
    locale: str | None = None
    lifecycle_stage: str | None = None
    last_interaction_at: datetime | None = None
    remember: bool = True
    attributes: Mapping[str, str] = field(default_factory=dict)
    pinned: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    scrubbed: int = 0


@dataclass(frozen=True, slots=True)
class Document:
    """A tenant-level Markdown file. `folder` is its first path part; `title` the head's or the first heading's."""

    path: str
    folder: str
    title: str
    text: str
    language: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    scrubbed: int = 0


@dataclass(frozen=True, slots=True)
class Marks:
    """What people don't want learned again, as hashes: statements taken back, and proposals turned down in review.

    See `names.statement_hash` and `names.proposal_hash`.
    """

    reverted: frozenset[str] = frozenset()
    rejected: frozenset[str] = frozenset()

    def without(self, hashes: frozenset[str]) -> Marks:
        """The marks with these cleared."""
        return Marks(self.reverted - hashes, self.rejected - hashes)


@dataclass(frozen=True, slots=True)
class Watermark:
    """How far a thread is consolidated. Lives in the repo, in the same commit as its effect."""

    thread: str
    subject: str
    agent: str
    last_turn: str
    input_hash: str


@dataclass(frozen=True, slots=True)
class Spent:
    """What asking a model took, over all tries: tokens, dollars where known, and how often a reply was sent back."""

    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    repairs: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """One consolidation to do: the turns of `thread` after its watermark, about `subject`."""

    tenant: str
    thread: str
    subject: str
    agent: str = "default"
    run: int | None = None
    trigger: str = "command"
