"""Inject: an agent's packet in a turn, and never at the price of the turn.

Whatever fails, `Injector.packet` returns: an empty packet that says in `degraded` what was away. A broken server
costs the first two turns a fifth of a second each and later ones nothing, until it is back. Isolation alone fails
closed: a tenant that can't be one, or a role that row-level security doesn't bind, is never served.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from types import TracebackType
from typing import Any

from docmem import config, embedding
from docmem.breaker import Breaker
from docmem.cache import Cache
from docmem.config import Settings
from docmem.embedding import Embedder, QueryVector, QueryVectors
from docmem.errors import DocmemError, InputError, InvalidName, RoleRefused
from docmem.index import Index, Reader, Scope
from docmem.names import agent_name, subject_key, tenant_name
from docmem.packet import BLOCKS, Block, Entry, Packet, Tier, build, persona
from docmem.passage import LIMIT, best
from docmem.recall import KNOWLEDGE, Hit, Policies, Question, by_recency, find, judge, policies, recent, telling

TURN_TIMEOUT = 0.2
"""Seconds that Postgres may hold up a turn."""

TTL = 30.0
"""Seconds that a packet is kept. Before it is served again its revision is compared with the index's."""

PATIENCE = 30.0
"""Seconds for where nobody waits for a turn: the start of a process, or of a server."""

_CACHED = 2_048
_DOCUMENTS = 40
_PREFERENCES = 100
_EXPERIMENTS = 3
_ALWAYS: tuple[Block, ...] = ("steering", "conventions")
"""Blocks that show the whole folder of their name."""

_SEARCHED = frozenset({"facts", "episodes"})
_FACTS = ("fact", "decision")
_EPISODES = ("episode",)

_log = logging.getLogger("docmem.inject")


@dataclass(frozen=True, slots=True)
class Request:
    """What a packet is asked for."""

    tenant: str
    subject: str
    agent: str
    goal: str | None
    blocks: tuple[str, ...]
    documents: tuple[str, ...]

    @property
    def searches(self) -> bool:
        """Whether there is something to search, and somebody who wants it."""
        return bool(self.goal) and not _SEARCHED.isdisjoint(self.blocks)

    @property
    def key(self) -> tuple[object, ...]:
        """What it is cached under; the goal as a hash."""
        goal = sha256(self.goal.encode("utf-8", "surrogatepass")).digest() if self.goal else None
        return self.tenant, self.subject, self.agent, self.blocks, goal, self.documents


class Injector:
    """Makes packets. One for a process: it keeps a pool, a cache and a breaker. Safe between threads.

    `embedder` None means what `DOCMEM_EMBEDDING_MODEL` says. `opening`: seconds for the first connection, where it may
    take longer than `timeout`. Under `DOCMEM_REQUIRE_MEMORY` it opens the index at once and raises what is wrong with
    it; otherwise nothing is opened before the first packet.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        embedder: Embedder | None = None,
        timeout: float = TURN_TIMEOUT,
        embedding_timeout: float = embedding.QUERY_TIMEOUT,
        ttl: float = TTL,
        opening: float | None = None,
    ) -> None:
        self._settings = settings or config.settings()
        model = embedder or embedding.embedder(self._settings)
        self._vectors = QueryVectors(model, timeout=embedding_timeout) if model is not None else None
        self._reader = Reader(self._settings, timeout=timeout, opening=opening)
        self._cache: Cache[tuple[object, ...], tuple[str, Packet]] = Cache(_CACHED, ttl=ttl)
        self._breaker = Breaker(failures=2, pause=2.0)
        self._failure = ""
        self._warned = False
        if self._settings.require_memory:
            self._reader.open(seconds=PATIENCE)

    def packet(
        self,
        tenant: str,
        subject: str,
        goal: str | None = None,
        *,
        agent: str | None = None,
        run: int | None = None,
        blocks: Iterable[str] | None = None,
        documents: Sequence[str] = (),
    ) -> Packet:
        """What a prompt should hold about `subject` (a key, or an id) for `goal`, the turn's question or task.

        `blocks`: only these (see `packet.BLOCKS`); `documents`: paths to show in full as well; `run` labels the log
        line. Never raises; see `Packet.degraded`: `no_embedder` (configured, and not installed), `embedder_failed`,
        `recency` (no search could run), or, with an empty text, the code of what failed.
        """
        started = time.perf_counter()
        try:
            made = self._guarded(_request(tenant, subject, goal, agent, blocks, documents))
        except DocmemError as error:
            # The code and the hint only: a message may hold what somebody wrote, or who.
            _log.log(self._level(error), "a turn goes on without memory: %s (%s)", error.code, error.hint)
            made = Packet(degraded=error.code)
        except Exception as error:  # noqa: BLE001 the turn goes on, whatever it is
            _log.error("packet failed: %s", type(error).__name__)
            made = Packet(degraded="error")
        _log.info(
            "packet run=%s chars=%d tokens=%d items=%d omitted=%d scrubbed=%d cached=%s degraded=%s empty=%s ms=%.1f",
            run, made.chars, made.tokens, len(made.spans), made.omitted, made.scrubbed, made.cached, made.degraded,
            not made.text, (time.perf_counter() - started) * 1000,
        )  # fmt: skip
        return made

    async def apacket(
        self,
        tenant: str,
        subject: str,
        goal: str | None = None,
        *,
        agent: str | None = None,
        run: int | None = None,
        blocks: Iterable[str] | None = None,
        documents: Sequence[str] = (),
    ) -> Packet:
        """`packet`, in a thread."""
        return await asyncio.to_thread(
            self.packet, tenant, subject, goal, agent=agent, run=run, blocks=blocks, documents=documents
        )

    def close(self) -> None:
        """Close the connections."""
        self._reader.close()

    def __enter__(self) -> Injector:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _guarded(self, request: Request) -> Packet:
        if not self._breaker.allows():
            return Packet(degraded=self._failure)
        try:
            made = self._fresh_or_cached(request)
        except Exception as error:
            self._failure = error.code if isinstance(error, DocmemError) else "error"
            self._breaker.failed()
            if self._breaker.open:
                self._cache.clear()
                self._reader.reset()
            raise
        self._breaker.succeeded()
        self._warned = False
        return made

    def _fresh_or_cached(self, request: Request) -> Packet:
        kept = self._cache.get(request.key)
        if kept is not None:
            revision, made = kept
            if self._reader.read(request.tenant, lambda index: index.revision()) == revision:
                return replace(made, cached=True)
        vector = self._vectors(request.goal) if self._vectors and request.goal and request.searches else None
        revision, made = self._reader.read(request.tenant, lambda index: read(index, request, vector))
        if made.degraded is None:
            self._cache.put(request.key, (revision, made))
        return made

    def _level(self, error: DocmemError) -> int:
        """An outage is CRITICAL once, until it is over; a caller's mistake or a refused role is an error each time."""
        if isinstance(error, InvalidName | InputError | RoleRefused):
            return logging.ERROR
        level = logging.WARNING if self._warned else logging.CRITICAL
        self._warned = True
        return level


def _request(
    tenant: str,
    subject: str,
    goal: str | None,
    agent: str | None,
    blocks: Iterable[str] | None,
    documents: Sequence[str],
) -> Request:
    wanted = tuple(dict.fromkeys(BLOCKS if blocks is None else blocks))
    unknown = [block for block in wanted if block not in BLOCKS]
    if unknown:
        raise InputError(f"there is no block {unknown[0]!r}", hint=f"blocks are: {', '.join(BLOCKS)}")
    return Request(
        tenant=tenant_name(tenant),
        subject=subject_key(tenant, subject),
        agent=agent_name(agent or "default"),
        goal=(goal or "").strip() or None,
        blocks=wanted,
        documents=tuple(documents),
    )


def read(index: Index, request: Request, vector: QueryVector | None) -> tuple[str, Packet]:
    """A packet from the index, and the revision it is of. A tenant that was never synced has `not_synced`."""
    row = index.tenant()
    if row is None:
        return "", Packet(degraded="not_synced")
    rules = policies(row)
    found, degraded = _found(index, request, rules, vector)
    tiers = [*_standing(index, request, rules), *found]
    now = datetime.now(UTC)
    return rules.revision, build(tiers, tokens=rules.budgets.tokens, now=now, degraded=degraded)


def _standing(index: Index, request: Request, rules: Policies) -> Iterable[Tier]:
    """What is shown whatever the goal is."""
    budgets = rules.budgets
    folders = [block for block in _ALWAYS if block in request.blocks]
    rows = index.documents_in(folders, limit=_DOCUMENTS * len(folders)) if folders else []
    for block in _ALWAYS:
        yield Tier(block, _chunks([row for row in rows if row["folder"] == block][:_DOCUMENTS]))
    if "preferences" in request.blocks:
        scope = Scope(request.subject, request.agent, ("preference",), rules.retention)
        hits = recent(index, scope, rules, limit=_PREFERENCES)
        yield Tier("preferences", [_entry(hit) for hit in hits], limit=budgets.preferences)
    if "persona" in request.blocks:
        profile = index.profile(request.subject)
        if profile is not None:
            declared = rules.attributes(request.agent)
            entries = persona(
                profile, declared=declared, limit=budgets.attributes, value_characters=budgets.value_characters
            )
            yield Tier("persona", entries)
    if request.documents:
        yield Tier("documents", _chunks(index.documents_at(request.documents, limit=_DOCUMENTS)))


def _found(
    index: Index, request: Request, rules: Policies, vector: QueryVector | None
) -> tuple[list[Tier], str | None]:
    """What is shown because of the goal; without one, what is recent."""
    if _SEARCHED.isdisjoint(request.blocks):
        return [], None
    kinds = _FACTS + _EPISODES
    if request.goal is None:
        scope = Scope(request.subject, request.agent, kinds, rules.retention)
        hits, degraded, choose = recent(index, scope, rules, limit=_PREFERENCES), None, by_recency
    else:
        question = Question(request.goal, request.subject, request.agent, kinds, KNOWLEDGE, is_goal=True)
        result = find(index, question, rules, vector)
        hits, choose = telling(result.hits), judge
        # Without an embedder, searching words alone is what was chosen.
        degraded = None if vector is None and result.degraded == "no_embedder" else result.degraded
    return list(_tiers(hits, request, rules, choose)), degraded


def _tiers(hits: Sequence[Hit], request: Request, rules: Policies, choose: Any) -> Iterable[Tier]:
    budgets, weights = rules.budgets, rules.weights
    experiments = [hit for hit in hits if hit.path.startswith("experiments/")]
    known = [hit for hit in hits if hit.kind == "document" and hit not in experiments]

    def chosen(of: Sequence[Hit], limit: int) -> list[Entry]:
        return [_entry(hit, question=request.goal, rules=rules) for hit in choose(of, weights, limit=limit)]

    if "facts" in request.blocks:
        facts = [hit for hit in hits if hit.kind in _FACTS]
        yield Tier("facts", chosen(facts, budgets.facts) + chosen(known, budgets.knowledge))
    if "episodes" in request.blocks:
        episodes = [hit for hit in hits if hit.kind in _EPISODES]
        yield Tier("episodes", chosen(episodes, budgets.episodes) + chosen(experiments, _EXPERIMENTS))


def _entry(hit: Hit, *, question: str | None = None, rules: Policies | None = None) -> Entry:
    """A memory in full, or of a document the passage that answers the question."""
    if hit.kind != "document":
        return Entry(hit.text, id=hit.id, path=hit.path, revision=hit.revision, when=hit.since)
    text = hit.text
    if question and rules and len(text) > LIMIT:
        text = best(text, question, language=rules.language)
    return Entry(text, id=hit.id, path=hit.path, revision=hit.revision, label=hit.path, multiline=True)


def _chunks(rows: Sequence[Any]) -> list[Entry]:
    return [
        Entry(
            row["text"],
            id=row["id"],
            path=row["path"],
            revision=row["revision"],
            label=row["path"],
            multiline=True,
        )
        for row in rows
    ]
