"""Packets from the files of the local repo, for while Postgres is away: the same tiers, found by words alone.

Reading a repo takes longer than a turn may wait, so it happens aside: a turn waits for it as long as it has time left,
and the next one finds it done. What was read is kept for a while, by tenant and subject.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from docmem.assembly import ALWAYS, EPISODES, FACTS, STRATEGY, Gathered, Request, assemble
from docmem.cache import Cache
from docmem.config import Settings
from docmem.errors import DocmemError
from docmem.packet import Packet, Tokenizer, shorten
from docmem.recall import KNOWLEDGE, Hit, Policies, by_recency, telling

if TYPE_CHECKING:
    from docmem.filesearch import Corpus
    from docmem.model import Memory
    from docmem.repository import Repository

KEEP_SECONDS = 30.0
"""How long what was read is served: as long as a packet of the index would be."""

_SUBJECTS = 256
_AT_ONCE = 2
_CHUNK = 1_500
_log = logging.getLogger("docmem.inject")


@dataclass(frozen=True)
class Shelf:
    """One subject's part of a repo at a revision, as an agent may see it."""

    rules: Policies
    standing: tuple[Mapping[str, Any], ...]
    profile: Mapping[str, Any] | None
    memories: tuple[Memory, ...]
    corpus: Corpus

    def gathered(self, request: Request, now: datetime) -> Gathered:
        """What the index would have gathered, as far as files tell."""
        mine = {memory.path: memory for memory in self.memories if memory.agent in {None, request.agent}}
        hits = [_hit(memory, self.rules.revision, now) for memory in mine.values()]
        preferences = [hit for hit in hits if hit.kind == "preference"]
        recent = [hit for hit in hits if hit.kind in FACTS + EPISODES]
        found: tuple[Hit, ...] = ()
        if request.goal is not None:
            ranked = self.corpus.ranked(request.goal)
            best = telling([hit for hit in ranked if hit.kind == "document" or hit.path in mine])
            found = tuple(hit for hit in best if hit.kind != "preference")
        return Gathered(
            standing=self.standing,
            profile=self.profile,
            preferences=by_recency(preferences, self.rules.weights, limit=100),
            found=found if request.goal is not None else recent,
            degraded="files",
        )


class Fallback:
    """Reads local repos, at most two at a time, and makes packets of what it has read. Safe between threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._shelves: Cache[tuple[str, str], Shelf] = Cache(_SUBJECTS, ttl=KEEP_SECONDS)
        self._lock = threading.Lock()
        self._reading: dict[tuple[str, str], threading.Event] = {}

    def packet(self, request: Request, *, wait: float, tokenizer: Tokenizer | None = None) -> Packet | None:
        """A packet with `degraded` = `files`; None where there is no such repo, or it isn't read within `wait` seconds.

        Documents asked for by their path are left out.
        """
        key = request.tenant, request.subject
        shelf = self._shelves.get(key)
        if shelf is None:
            if not (self._settings.tenants / f"{request.tenant}.git").is_dir():
                return None
            done = self._read_aside(key)
            if done is None or not done.wait(wait):
                return None
            shelf = self._shelves.get(key)
        if shelf is None:
            return None
        now = datetime.now(UTC)
        return assemble(request, shelf.rules, shelf.gathered(request, now), now=now, tokenizer=tokenizer)

    def _read_aside(self, key: tuple[str, str]) -> threading.Event | None:
        with self._lock:
            if key in self._reading:
                return self._reading[key]
            if len(self._reading) >= _AT_ONCE:
                return None
            done = self._reading[key] = threading.Event()
        threading.Thread(target=self._read, args=(key, done), daemon=True, name="docmem-files").start()
        return done

    def _read(self, key: tuple[str, str], done: threading.Event) -> None:
        try:
            self._shelves.put(key, read(self._settings, *key))
        except (DocmemError, OSError) as error:
            _log.warning("the files can't serve either: %s", error.code if isinstance(error, DocmemError) else error)
        finally:
            with self._lock:
                del self._reading[key]
            done.set()


def read(settings: Settings, tenant: str, subject: str) -> Shelf:
    """A subject's part of a repo at main's head. Raises `DocmemError`, also for a broken `docmem.yaml`."""
    from docmem import filesearch, repository
    from docmem.errors import NotFound

    repo = repository.open(settings, tenant)
    head = repo.head()
    if head is None:
        raise NotFound(f"{tenant} has no commit yet", hint="write something first")
    config, now = repo.snapshot(head).config, datetime.now(UTC)
    memories = tuple(
        memory for memory in filesearch.memories_at(repo, head, subject) if filesearch.is_current(memory, config, now)
    )
    units = [*filesearch.memory_units(memories, head, now), *filesearch.document_units(repo, head, KNOWLEDGE)]
    rules = Policies(
        revision=head,
        language=config.language,
        budgets=config.policies.budgets,
        weights=config.policies.weights,
        agents=config.model_dump(mode="json")["agents"],
    )
    return Shelf(
        rules, _standing(repo, head), _profile(repo, head, subject), memories, filesearch.Corpus(units, config.language)
    )


def _standing(repo: Repository, head: str) -> tuple[Mapping[str, Any], ...]:
    from docmem.filesearch import documents_at
    from docmem.packet import path_id

    return tuple(
        {
            "id": path_id(document.path),
            "path": document.path,
            "revision": head,
            "folder": document.folder,
            "text": shorten(document.text, _CHUNK),
        }
        for document in documents_at(repo, head, (*ALWAYS, "procedures"))
        if document.folder in ALWAYS or document.path.startswith((f"{STRATEGY}.md", f"{STRATEGY}/"))
    )


def _profile(repo: Repository, head: str, subject: str) -> Mapping[str, Any] | None:
    from docmem.errors import FormatError
    from docmem.layout import profile_path

    try:
        profile = repo.snapshot(head).profile(subject)
    except FormatError:  # sync names it; the rest answers
        return None
    return {
        "path": profile_path(subject),
        "revision": head,
        "label": profile.label,
        "preferred_language": profile.preferred_language,
        "locale": profile.locale,
        "lifecycle_stage": profile.lifecycle_stage,
        "last_interaction_at": profile.last_interaction_at,
        "attributes": dict(profile.attributes),
    }


def _hit(memory: Memory, revision: str, now: datetime) -> Hit:
    age = max(0.0, (now - memory.valid_from).total_seconds()) if memory.valid_from else 0.0
    return Hit(
        id=memory.id,
        path=memory.path,
        revision=revision,
        kind=memory.kind,
        text=memory.text,
        age=age,
        since=memory.valid_from,
        subject=memory.subject,
        importance=memory.importance,
    )
