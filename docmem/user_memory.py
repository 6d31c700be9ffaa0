"""Memory that an agent writes and reads by itself, for one person: save, recall, forget.

The same admission as consolidation's decides, and the same files and commits come of it. What admission holds waits
for a person (`docmem review`); what it refuses is an error with admission's code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Generic, Literal, TypeVar

from docmem import (
    admission,
    config,
    edits,
    files,
    filesearch,
    git,
    layout,
    names,
    nearness,
    repository,
    review,
    trailers,
)  # fmt: skip
from docmem.admission import Ruling, State
from docmem.config import Settings
from docmem.consolidation import DEFAULT_AGENT
from docmem.document import scrub
from docmem.errors import Conflict, Held, InputError, NotFound, Rejected
from docmem.fence import strip_injected
from docmem.model import Memory, Source
from docmem.nearness import Compared
from docmem.recall import SearchResult
from docmem.repository import Snapshot, StoredMemory
from docmem.strictyaml import load_mapping

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
        `external_id` makes a replay return the memory, whatever has become of it since; of one that waits for a person,
        it raises the same `Held` again, and of one that was forgotten it waits for a person: no replay brings it back.
        `trusted` lets the tenant's own systems save what is of high impact (payment, health, contact details), and
        needs a `uri`.

        Raises `Held` where it waits for a person now, `Rejected` with admission's code, `Conflict` where `external_id`
        was used for something else (kept, waiting or forgotten), `InputError` and `InvalidName` for arguments that
        make no sense.
        """
        _check(kind, turns=turns, thread=thread, trusted=trusted, uri=uri)
        uri = (uri or "").strip() or None
        moment = (now or datetime.now(UTC)).replace(microsecond=0)
        source = Source(thread, tuple(turns), quote, uri or (None if thread else f"agent:{self._agent}"))
        wanted = self._memory(text, kind, topic, external_id, source, moment, trusted=trusted)
        passes = frozenset({"high_impact"}) if trusted else frozenset()
        return nearness.comparing(
            self._settings,
            self._repo.tenant,
            lambda compared: self._locked(lambda: self._save(wanted, external_id, moment, passes, compared)),
        )

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

        It stays in the history, and `docmem revert` brings it back. Said again, or saved again under its external id,
        it waits for a person. Raises `NotFound` where this agent sees no such memory of this person's, `Held` where
        the tenant has every change reviewed (`review: all`), `Rejected` where a reviewer has turned that down before.
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

    def _save(
        self, wanted: Memory, external_id: str | None, now: datetime, passes: frozenset[str], compared: Compared
    ) -> _Write[Memory]:
        snapshot = self._repo.snapshot()
        stored = {each.memory.id: each for each in snapshot.memories(self._subject)}
        known = _known(stored, external_id, wanted)
        if known is not None:
            return _Write(snapshot.revision, {}, "", now, lambda _: known)
        state = self._state(snapshot, stored)
        if external_id is not None:
            self._check_waiting(external_id, wanted, now)
            if self._is_forgotten(snapshot, external_id, wanted):  # also where it said something else by then
                text = snapshot.config.policies.pii.redacted(wanted.text)
                said = names.statement_hash(self._settings.secret_bytes(), self._subject, text)
                state = replace(state, reverted=state.reverted | {said})
        self._check_consent(snapshot)
        bound = snapshot.config.policies.admission.duplicate_cosine
        state = replace(state, one=compared.one(admission.may_repeat(wanted, state), bound))
        ruling = admission.judge(wanted, state=state, now=now, passes=passes)
        if ruling.verdict == "rejected":
            return self._said_already(snapshot, stored, ruling, external_id, wanted, now)
        assert ruling.after is not None
        ruling = replace(ruling, after=edits.with_external(ruling.after, _ids(external_id, wanted)))
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
        noted = edits.with_external(there, _ids(external_id, wanted))
        data = files.edit_memory(stored[there.id].data, {(edits.EXTERNAL,): edits.external(noted)})
        message = self._message("Save: known already", wanted.source, {})
        return _Write(snapshot.revision, {stored[there.id].path: data}, message, now, lambda _: noted)

    def _forget(self, memory_id: str, now: datetime) -> _Write[str]:
        snapshot = self._repo.snapshot()
        stored = {each.memory.id: each for each in snapshot.memories(self._subject)}
        found = stored.get(memory_id)
        if found is None or found.memory.agent not in (None, self._own):
            raise NotFound(f"there is no memory {memory_id} of this person's", hint="recall gives the ids")
        ruling = admission.judge_forgetting(found.memory, state=self._state(snapshot, stored), now=now)
        if ruling.verdict == "rejected":
            raise Rejected("a reviewer wants this to stay", code=ruling.code or "rejected")
        if ruling.verdict == "held":
            raise self._hold(snapshot, stored, ruling, now)
        taken_back = edits.taken_back(found.memory, secret=self._settings.secret_bytes())
        marks = replace(snapshot.marks, reverted=snapshot.marks.reverted | taken_back)
        changed = {found.path: None, layout.REVERTED: files.render_reverted(marks)}
        message = self._message("Forget: 1 deleted", Source(), {"Docmem-Deleted": "1", "Docmem-Deletes": "1"})
        return _Write(snapshot.revision, changed, message, now, lambda revision: revision)

    def _hold(self, snapshot: Snapshot, stored: Mapping[str, StoredMemory], ruling: Ruling, now: datetime) -> Held:
        """The change, where a reviewer finds it. What waits already goes on waiting where it does."""
        memory = ruling.after or ruling.before
        assert memory is not None
        verb = "save" if ruling.after is not None else "forget"
        waits_as = hashlib.sha256(f"{verb}\n{self._subject}\n{memory.id}".encode()).hexdigest()[:16]
        review.expire(self._repo, snapshot.config.policies.review_expires, now=now)
        if not git.has_ref(self._repo.git_dir, f"{repository.REVIEW}/{waits_as}"):
            origin = {"Docmem-Held": f"{ruling.code}=1", "Docmem-Review": waits_as}
            source = memory.source if verb == "save" else Source()
            waits_as = review.hold(
                self._repo,
                waits_as,
                snapshot.revision,
                subject=self._subject,
                held=review.Pending((ruling,), forgets=verb == "forget"),
                files=lambda held: {
                    **edits.of(ruling, stored),
                    review.REASONS: review.reasons(self._subject, held.rulings, forgets=held.forgets),
                },
                message=self._message(f"Held for review: {verb}", source, origin),
                now=now,
            )
        return self._waits(waits_as, ruling.code or "")

    def _waits(self, name: str, code: str) -> Held:
        return Held(
            f"it waits for a person: {review.MEANS.get(code, code)}",
            review=name,
            hint=f"docmem review show {self._repo.tenant} {name}",
        )

    def _check_waiting(self, external_id: str, wanted: Memory, now: datetime) -> None:
        """Raises `Held` where this very save waits already, and `Conflict` where another one does under this id."""
        for waiting, code, ids in review.external_ids_waiting(self._repo, self._subject, now=now):
            saved_as = ids.get(external_id)
            if saved_as == wanted.id:
                raise self._waits(waiting, code)
            if saved_as is not None:
                raise Conflict(
                    f"external id {external_id!r} waits for a person with other content (review {waiting})",
                    hint="use another id for another statement",
                )

    def _is_forgotten(self, snapshot: Snapshot, external_id: str, wanted: Memory) -> bool:
        """Whether this very save was forgotten. Raises `Conflict` where something else under its external id was."""
        secret, marks = self._settings.secret_bytes(), snapshot.marks.reverted
        if edits.external_mark(secret, self._subject, external_id, wanted.id) in marks:
            return True
        if edits.external_mark(secret, self._subject, external_id) in marks:
            raise Conflict(
                f"what was saved under external id {external_id!r} was forgotten, and said something else",
                hint="use another id for another statement",
            )
        return False

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
    if trusted and not (uri or "").strip():
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
        (each.memory, edits.external(each.memory)[under])
        for each in stored.values()
        if under in edits.external(each.memory)
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


def _ids(external_id: str | None, wanted: Memory) -> dict[str, str]:
    return {external_id: wanted.id} if external_id is not None else {}
