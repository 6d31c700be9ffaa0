"""Memory that an agent writes and reads by itself, for one person: save, recall, forget.

The same admission as consolidation's decides, and the same files and commits come of it. What admission holds waits
for a person (`docmem review`); what it refuses is an error with admission's code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Generic, Literal, TypeVar

from docmem import admission, config, edits, files, filesearch, layout, names, repository, review, trailers
from docmem.admission import Ruling, State
from docmem.config import Settings
from docmem.consolidation import DEFAULT_AGENT
from docmem.document import scrub
from docmem.errors import Conflict, Held, InputError, NotFound, Rejected
from docmem.fence import strip_injected
from docmem.model import Memory, Source
from docmem.recall import SearchResult
from docmem.repository import Snapshot, StoredMemory
from docmem.strictyaml import load_mapping

EXTERNAL = "external"
"""Key of a memory's head: ids of other systems that it was saved under, each with what it was saved as."""

_TRIES = 8
_SAVED = 0.9
_TRUSTED = 1.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Write(Generic[T]):
    """What an attempt would commit on `base` (nothing: no commit), and what the caller then gets."""

    base: str
    files: Mapping[str, bytes | None]
    message: str
    now: datetime
    result: Callable[[str], T]


class UserMemory:
    """What one agent remembers about one person. `subject` is a subject key, or the id that the host knows them by.

    Raises `NotFound` where the tenant has no repo, `InvalidName` for what can't be a tenant, subject or agent.
    """

    def __init__(self, settings: Settings | None, tenant: str, subject: str, *, agent: str = DEFAULT_AGENT) -> None:
        self._settings = settings or config.settings()
        self._subject = names.subject_key(tenant, subject)
        self._agent = names.agent_name(agent)
        self._repo = repository.open(self._settings, tenant)

    def save(
        self,
        text: str,
        kind: Literal["preference", "fact"] = "fact",
        *,
        topic: str | None = None,
        external_id: str | None = None,
        uri: str | None = None,
        trusted: bool = False,
        quote: str | None = None,
        thread: str | None = None,
        turns: Sequence[str] = (),
        now: datetime | None = None,
    ) -> Memory:
        """Remember a statement, in one commit; returns the memory that says it now.

        Where one says it already, that one is returned and nothing is written; where one says less, it takes the new
        text. `thread`, `turns` and `quote`, or a `uri`, say where it comes from; without them the source is the agent.
        `external_id` makes a replay return the memory, whatever has become of it since. `trusted` lets the tenant's
        own systems save what is of high impact (payment, health, contact details), and needs a `uri`.

        Raises `Held` where it waits for a person now, `Rejected` with admission's code, `Conflict` where `external_id`
        was used for something else, `InputError` and `InvalidName` for arguments that make no sense.
        """
        _check(kind, turns=turns, thread=thread, trusted=trusted, uri=uri)
        moment = (now or datetime.now(UTC)).replace(microsecond=0)
        source = Source(thread, tuple(turns), quote, uri or (None if thread else f"agent:{self._agent}"))
        wanted = self._memory(text, kind, topic, external_id, source, moment, trusted=trusted)
        passes = frozenset({"high_impact"}) if trusted else frozenset()
        return self._locked(lambda: self._save(wanted, external_id, moment, passes))

    def recall(self, query: str, *, limit: int = 10) -> SearchResult:
        """The person's memories that answer a question, as this agent may see them, best first.

        It reads the files of the newest commit, so what was saved a moment ago is found, and no Postgres is needed;
        `degraded` is `files`. For a prompt there is `Injector`.
        """
        return filesearch.search(
            self._settings, self._repo.tenant, query, subject=self._subject, agent=self._agent, limit=limit, folders=()
        )

    def forget(self, memory_id: str, *, now: datetime | None = None) -> str:
        """Remove a memory of this person's, in one commit; returns its revision.

        It stays in the history, and `docmem revert` brings it back. Said again, it waits for a person.
        Raises `NotFound` where this agent sees no such memory of this person's.
        """
        return self._locked(lambda: self._forget(memory_id, now or datetime.now(UTC)))

    # ---------------------------------------------------------------------------------------------- one attempt

    def _locked(self, work: Callable[[], _Write[T]]) -> T:
        """Write under the lock, again where a push came in between: it doesn't take our lock."""
        with self._repo.locked():
            for attempt in range(1, _TRIES + 1):
                write = work()
                if not write.files:
                    return write.result("")
                try:
                    return write.result(
                        self._repo.commit(write.base, write.files, message=write.message, now=write.now)
                    )
                except Conflict:
                    if attempt == _TRIES:
                        raise
        raise AssertionError("unreachable")

    def _save(self, wanted: Memory, external_id: str | None, now: datetime, passes: frozenset[str]) -> _Write[Memory]:
        snapshot = self._repo.snapshot()
        stored = {each.memory.id: each for each in snapshot.memories(self._subject)}
        known = _known(stored, external_id, wanted)
        if known is not None:
            return _Write(snapshot.revision, {}, "", now, lambda _: known)
        self._check_consent(snapshot)
        ruling = admission.judge(wanted, state=self._state(snapshot, stored), now=now, passes=passes)
        if ruling.verdict == "rejected":
            return self._said_already(snapshot, stored, ruling, external_id, wanted, now)
        assert ruling.after is not None
        ruling = replace(ruling, after=_with_external(ruling.after, external_id, wanted.id))
        if ruling.verdict == "held":
            raise self._hold(snapshot, stored, ruling, now)
        kept = ruling.after
        assert kept is not None
        changed = edits.of(ruling, stored) | self._cleared(snapshot, stored)
        message = self._message(f"Save: 1 {ruling.op}d", wanted.source, {f"Docmem-{ruling.op.capitalize()}d": "1"})
        return _Write(snapshot.revision, changed, message, now, lambda _: kept)

    def _said_already(
        self,
        snapshot: Snapshot,
        stored: Mapping[str, StoredMemory],
        ruling: Ruling,
        external_id: str | None,
        wanted: Memory,
        now: datetime,
    ) -> _Write[Memory]:
        """The memory that says it, with the external id noted on it. Raises `Rejected` where there is none."""
        there = ruling.before
        if ruling.code != "duplicate" or there is None:
            raise Rejected(
                f"this can't be kept: {ruling.code}",
                code=ruling.code or "rejected",
                hint="see the topics and policies in docmem.yaml" if ruling.code == "undeclared_topic" else "",
            )
        if external_id is None:
            return _Write(snapshot.revision, {}, "", now, lambda _: there)
        noted = _with_external(there, external_id, wanted.id)
        data = files.edit_memory(stored[there.id].data, {(EXTERNAL,): noted.meta[EXTERNAL]})
        message = self._message("Save: known already", wanted.source, {})
        return _Write(snapshot.revision, {stored[there.id].path: data}, message, now, lambda _: noted)

    def _forget(self, memory_id: str, now: datetime) -> _Write[str]:
        snapshot = self._repo.snapshot()
        stored = {each.memory.id: each for each in snapshot.memories(self._subject)}
        found = stored.get(memory_id)
        if found is None or found.memory.agent not in (None, self._own):
            raise NotFound(f"there is no memory {memory_id} of this person's", hint="recall gives the ids")
        secret = self._settings.secret_bytes()
        mark = names.statement_hash(secret, self._subject, found.memory.text)
        marks = replace(snapshot.marks, reverted=snapshot.marks.reverted | {mark})
        changed = {found.path: None, layout.REVERTED: files.render_reverted(marks)}
        message = self._message("Forget: 1 deleted", Source(), {"Docmem-Deleted": "1", "Docmem-Deletes": "1"})
        return _Write(snapshot.revision, changed, message, now, lambda revision: revision)

    def _hold(self, snapshot: Snapshot, stored: Mapping[str, StoredMemory], ruling: Ruling, now: datetime) -> Held:
        memory = ruling.after
        assert memory is not None
        waits_as = hashlib.sha256(f"save\n{self._subject}\n{memory.id}".encode()).hexdigest()[:16]
        changed = {**edits.of(ruling, stored), review.REASONS: review.reasons(self._subject, [ruling])}
        origin = {"Docmem-Held": f"{ruling.code}=1", "Docmem-Review": waits_as}
        review.expire(self._repo, snapshot.config.policies.review_expires, now=now)
        message = self._message("Held for review: save", memory.source, origin)
        self._repo.hold(waits_as, snapshot.revision, changed, message=message, now=now)
        return Held(
            f"it waits for a person: {review.MEANS.get(ruling.code or '', ruling.code)}",
            review=waits_as,
            hint=f"docmem review show {self._repo.tenant} {waits_as}",
        )

    # ------------------------------------------------------------------------------------------------- the parts

    @property
    def _own(self) -> str | None:
        """The agent that what is saved belongs to; the default agent's is shared by all."""
        return None if self._agent == DEFAULT_AGENT else self._agent

    def _memory(
        self,
        text: str,
        kind: Literal["preference", "fact"],
        topic: str | None,
        external_id: str | None,
        source: Source,
        now: datetime,
        *,
        trusted: bool,
    ) -> Memory:
        said = strip_injected(scrub(text)[0]).replace("\r\n", "\n").replace("\r", "\n").strip()
        evidence = [names.external_id(external_id)] if external_id is not None else source.turns or [source.uri or ""]
        identity = names.memory_id(
            self._settings.secret_bytes(),
            tenant=self._repo.tenant,
            subject=self._subject,
            thread=source.thread or "",
            evidence=evidence,
            kind=kind,
            text=said,
        )
        return Memory(
            id=identity,
            kind=kind,
            text=said,
            subject=self._subject,
            path=layout.memory_path(self._subject, identity, said),
            topic=topic,
            agent=self._own,
            confidence=_TRUSTED if trusted else _SAVED,
            valid_from=now,
            source=replace(source, quote=" ".join(source.quote.split())[: admission.QUOTE_MAX] or None)
            if source.quote
            else source,
        )

    def _state(self, snapshot: Snapshot, stored: Mapping[str, StoredMemory]) -> State:
        topics = snapshot.config.agent(self._agent).topics
        return State(
            memories={key: each.memory for key, each in stored.items()},
            topics={topic.name: topic for topic in topics},
            policies=snapshot.config.policies,
            secret=self._settings.secret_bytes(),
            reverted=snapshot.marks.reverted,
            rejected=snapshot.marks.rejected,
            broken=frozenset(path for path, _ in snapshot.broken(self._subject)),
        )

    def _check_consent(self, snapshot: Snapshot) -> None:
        recorded = load_mapping(snapshot.profile_bytes(self._subject).decode("utf-8-sig")).get("remember") is True
        required = snapshot.config.policies.consent == "required"
        if not snapshot.profile(self._subject).remember or (required and not recorded):
            raise Rejected("there is no consent to remember this person", code="no_consent")

    def _cleared(self, snapshot: Snapshot, stored: Mapping[str, StoredMemory]) -> dict[str, bytes | None]:
        secret = self._settings.secret_bytes()
        marks = edits.still_marked(snapshot.marks, stored, secret=secret, subject=self._subject)
        return {layout.REVERTED: files.render_reverted(marks)} if marks != snapshot.marks else {}

    def _message(self, subject: str, source: Source, more: Mapping[str, str]) -> str:
        origin = {
            "Docmem-Thread": trailers.encode(source.thread or ""),
            "Docmem-Turns": trailers.encode_list(source.turns),
            "Docmem-Agent": self._agent,
        }
        return trailers.message(subject, {**origin, **more})


def _check(kind: str, *, turns: Sequence[str], thread: str | None, trusted: bool, uri: str | None) -> None:
    if kind not in {"preference", "fact"}:
        raise InputError(f"an agent saves a preference or a fact, not {kind!r}", code="unknown_kind")
    if trusted and not uri:
        raise InputError("what is trusted needs a uri: who vouches for it?", code="no_uri", hint="give uri=…")
    if thread is not None:
        names.thread_id(thread)
    elif turns:
        raise InputError("turns belong to a thread", hint="give thread=… as well")
    for turn in turns:
        names.turn_id(turn)


def _known(stored: Mapping[str, StoredMemory], external_id: str | None, wanted: Memory) -> Memory | None:
    """The memory that was saved under this id. Raises `Conflict` where something else was."""
    under = external_id or ""
    saved = [
        (each.memory, _external(each.memory)[under]) for each in stored.values() if under in _external(each.memory)
    ]
    for memory, saved_as in saved:
        if saved_as == wanted.id:
            return memory
    if saved:
        raise Conflict(
            f"external id {external_id!r} is memory {saved[0][0].id}, which was saved with other content",
            hint="use another id for another statement",
        )
    return None


def _external(memory: Memory) -> Mapping[str, Any]:
    noted = memory.meta.get(EXTERNAL)
    return noted if isinstance(noted, dict) else {}


def _with_external(memory: Memory, external_id: str | None, saved_as: str) -> Memory:
    if external_id is None:
        return memory
    return replace(memory, meta={**memory.meta, EXTERNAL: {**_external(memory), external_id: saved_as}})
