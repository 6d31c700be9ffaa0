"""Consolidation: the turns after a thread's watermark become memories, in one commit with the watermark.

`consolidate` reads at a revision, asks the model once without holding anything, and decides (`_plan`, pure given what
was read). Under the repo's lock it looks again: where the subject moved meanwhile it decides again, and where the
watermark or a memory to be changed moved, it gives way. Whatever happens, the watermark moves only with its effect.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, TypeAlias

from docmem import (
    admission,
    audit,
    dialogue,
    edits,
    erased,
    evidence,
    files,
    llm,
    names,
    nearness,
    prompt,
    repository,
    review,
    trailers,
)
from docmem import profile as profiles
from docmem.admission import Proposal, Ruling, State, Window
from docmem.config import Settings
from docmem.errors import (
    Conflict,
    DocmemError,
    FormatError,
    ModelFailed,
    ModelReplyError,
    ModelUnavailable,
    TryAgain,
)
from docmem.layout import CONFIG, REVERTED, profile_path, watermark_path
from docmem.model import Job, Marks, Profile, Spent, Turn, Watermark
from docmem.prompt import Request
from docmem.reply import Answer
from docmem.repository import Repository, Snapshot, StoredMemory
from docmem.review import Pending
from docmem.selection import by_words, select_existing
from docmem.splice import KeyPath
from docmem.strictyaml import load_mapping
from docmem.tenant_config import TenantConfig

Outcome: TypeAlias = Literal[
    "committed", "nothing_new", "nothing_kept", "no_topics", "no_consent", "held", "conflict", "failed"
]

DEFAULT_AGENT = "default"
_PUSHES = 8
"""How often a commit starts over because a push came in between; pushes don't take our lock."""

_log = logging.getLogger(__name__)


class Model(Protocol):
    """What consolidation asks; see `llm.Model`."""

    @property
    def name(self) -> str:
        """For the trailers and reports."""
        ...

    def propose(self, request: Request) -> Answer:
        """Propose changes for a window. Raises `ModelReplyError` or `ModelUnavailable`."""
        ...


@dataclass(frozen=True)
class Consolidation:
    """What became of a window.

    `revision` is the commit that was made, if any; `watermark` the id of the thread's last consolidated turn.
    `files`: path to (before, after) of what was, or in a dry run would be, written. `review`: where held operations
    wait. `error` goes with the outcomes `conflict` and `failed`. `windows`: how many commits were made of a long
    backlog; `turns_left`: how many turns still wait (after a failure, or in a dry run).
    """

    outcome: Outcome
    revision: str | None = None
    watermark: str | None = None
    operations: Mapping[str, int] = field(default_factory=dict)
    rejected: Mapping[str, int] = field(default_factory=dict)
    held: int = 0
    held_codes: Mapping[str, int] = field(default_factory=dict)
    profile_changed: bool = False
    undeclared: tuple[str, ...] = ()
    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    repairs: int = 0
    dropped_keys: int = 0
    scrubbed: int = 0
    review: str | None = None
    dry_run: bool = False
    files: Mapping[str, tuple[bytes | None, bytes | None]] = field(default_factory=dict)
    error: DocmemError | None = None
    windows: int = 1
    turns_left: int = 0

    def as_json(self) -> dict[str, Any]:
        """The object of `consolidate --json`."""
        row: dict[str, Any] = {
            "outcome": self.outcome,
            "revision": self.revision,
            "watermark": self.watermark,
            "operations": {op: self.operations.get(op, 0) for op in ("create", "update", "delete")},
            "rejected": dict(self.rejected),
            "held": self.held,
            "held_codes": dict(self.held_codes),
            "profile_changed": self.profile_changed,
            "undeclared": list(self.undeclared),
            "model": self.model,
            "tokens": {"in": self.tokens_in, "out": self.tokens_out},
            "cost": self.cost,
            "repairs": self.repairs,
            "dropped_keys": self.dropped_keys,
            "scrubbed": self.scrubbed,
            "review": self.review,
            "dry_run": self.dry_run,
            "windows": self.windows,
            "turns_left": self.turns_left,
        }
        if self.error is not None:
            row["reason"] = {"code": self.error.code, "message": self.error.message, "hint": self.error.hint}
        return row


def consolidate(
    job: Job,
    *,
    settings: Settings,
    turns: Sequence[Turn],
    model: str | Model,
    now: datetime | None = None,
    dry_run: bool = False,
) -> Consolidation:
    """Consolidate what a thread said since its watermark. `turns` is the whole dialogue; `model` see `llm.model`.

    A backlog past the policy's window is consolidated window by window, each its own model call and commit; what is
    returned tells of all of them. A dry run shows the first.

    Returns outcome `failed` where the model gave nothing usable and `conflict` where somebody else changed the same
    thing: nothing is written then, and the same call later does it. Raises `NotFound` for a tenant that isn't there,
    `InputError` for a dialogue that doesn't hold the watermark's turn, `FormatError` for a broken `docmem.yaml` or
    profile, `ConfigError` for a model that can't be used.
    """
    job = replace(
        job,
        thread=names.thread_id(job.thread),
        agent=names.agent_name(job.agent),
        subject=names.subject_key(job.tenant, job.subject),
    )
    repo = repository.open(settings, job.tenant)
    said = dialogue.clean(turns)
    asked = llm.model(model) if isinstance(model, str) else model
    at = (now or datetime.now(UTC)).replace(microsecond=0)
    done: list[Consolidation] = []
    while True:
        view = _view(repo.snapshot(), job)
        rest = dialogue.after(said.turns, view.last_turn or _read_before_an_erase(repo, job, said.turns))
        run = _Run(job, repo, _window(rest, view), at, asked.name, said.scrubbed if not done else 0)
        done.append(_consolidate(run, view, asked, dry_run=dry_run))
        is_last = len(run.window) == len(rest)
        if is_last or dry_run or done[-1].error is not None:
            return _together(done, left=len(rest) - (0 if done[-1].error else len(run.window)))


def _read_before_an_erase(repo: Repository, job: Job, turns: Sequence[Turn]) -> str | None:
    return erased.read_up_to(repo.git_dir, repo.settings.secret_bytes, job.thread, [turn.id for turn in turns])


def _window(rest: Sequence[Turn], view: _View) -> tuple[Turn, ...]:
    bounds = view.config.policies.admission
    return dialogue.window(rest, most_turns=bounds.window_turns, most_characters=bounds.window_characters)


def _consolidate(run: _Run, view: _View, asked: Model, *, dry_run: bool) -> Consolidation:
    """One window."""
    if not run.window:
        return run.result("nothing_new", watermark=view.last_turn)
    try:
        run = replace(run, answer=_ask(run, view, asked))
    except (ModelReplyError, ModelUnavailable) as error:
        return _failed(run, view, error)
    run = _compared(run, view)
    plan = _plan(run, view)
    if dry_run:
        return run.result(plan.outcome, plan=plan, view=view, watermark=view.last_turn, dry_run=True)
    try:
        return _commit(run, view, plan)
    except TryAgain as error:  # somebody else was first, or holds a lock: nothing is written, and it is still due
        return run.result("conflict", watermark=_last_turn(run.repo, run.job), error=error)


_TELLING: tuple[Outcome, ...] = ("committed", "held", "nothing_kept")
"""Of several windows' outcomes the first of these that occurs says what became of them together."""


def _together(windows: Sequence[Consolidation], *, left: int) -> Consolidation:
    """Several windows of one call as one: the last one's revision and watermark, and the sums."""
    last = windows[-1]
    if len(windows) == 1:
        return replace(last, turns_left=left)
    outcomes = {each.outcome for each in windows}
    told = last.outcome if last.error else next((each for each in _TELLING if each in outcomes), last.outcome)
    costs = [each.cost for each in windows if each.cost is not None]
    return replace(
        last,
        outcome=told,
        revision=next((each.revision for each in reversed(windows) if each.revision), None),
        profile_changed=any(each.profile_changed for each in windows),
        undeclared=tuple(dict.fromkeys(key for each in windows for key in each.undeclared)),
        cost=sum(costs) if costs else None,
        review=next((each.review for each in reversed(windows) if each.review), None),
        files={path: change for each in windows for path, change in each.files.items()},
        windows=sum(each.revision is not None for each in windows),
        turns_left=left,
        held=sum(each.held for each in windows),
        tokens_in=sum(each.tokens_in for each in windows),
        tokens_out=sum(each.tokens_out for each in windows),
        repairs=sum(each.repairs for each in windows),
        dropped_keys=sum(each.dropped_keys for each in windows),
        scrubbed=sum(each.scrubbed for each in windows),
        operations=_summed(each.operations for each in windows),
        rejected=_summed(each.rejected for each in windows),
        held_codes=_summed(each.held_codes for each in windows),
    )


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


# -------------------------------------------------------------------------------------------------------- the read


@dataclass(frozen=True)
class _View:
    """All that is read of the repo for one window, at one revision."""

    revision: str
    config: TenantConfig
    stored: Mapping[str, StoredMemory]
    broken: frozenset[str]
    profile: Profile
    profile_bytes: bytes
    kept_out: Marks
    last_turn: str | None
    marks: tuple[str | None, ...]
    """Ids of what the decision rests on: equal marks, equal decision."""
    watermark_blob: str | None
    watermark_bytes: bytes | None
    reverted_bytes: bytes | None


def _view(snapshot: Snapshot, job: Job) -> _View:
    mark = snapshot.watermark(job.thread)
    stored, broken = snapshot.memory_files(job.subject)
    return _View(
        revision=snapshot.revision,
        config=snapshot.config,
        stored={each.memory.id: each for each in stored},
        broken=frozenset(path for path, _ in broken),
        profile=snapshot.profile(job.subject),
        profile_bytes=snapshot.profile_bytes(job.subject),
        kept_out=snapshot.marks,
        last_turn=mark.last_turn if mark is not None else None,
        marks=_marks(snapshot, job),
        watermark_blob=snapshot.blob(watermark_path(job.thread)),
        watermark_bytes=snapshot.read(watermark_path(job.thread)),
        reverted_bytes=snapshot.read(REVERTED),
    )


def _marks(snapshot: Snapshot, job: Job) -> tuple[str | None, ...]:
    return (snapshot.subject_tree(job.subject), snapshot.blob(CONFIG), snapshot.blob(REVERTED))


def _refreshed(view: _View, snapshot: Snapshot, job: Job) -> _View:
    """The view at a later revision; read again only where it may differ. Other subjects' commits cost nothing."""
    unmoved = snapshot.blob(watermark_path(job.thread)) == view.watermark_blob and _marks(snapshot, job) == view.marks
    return replace(view, revision=snapshot.revision) if unmoved else _view(snapshot, job)


@dataclass(frozen=True)
class _Run:
    """One call: the window, and the answer once there is one. None: the model wasn't asked."""

    job: Job
    repo: Repository
    window: tuple[Turn, ...]
    now: datetime
    model: str
    scrubbed: int
    answer: _Asked | None = None
    compared: Mapping[tuple[str, str], bool] = field(default_factory=dict)
    """Pairs of statements that the embedder was asked about, and whether they are one."""

    @property
    def agent(self) -> str | None:
        """The agent that what is learned belongs to; the default agent's is shared by all."""
        return None if self.job.agent == DEFAULT_AGENT else self.job.agent

    @property
    def input_hash(self) -> str:
        """64 hex digits of what was read: thread, subject and the window's turns."""
        rows = [[turn.id, turn.role, turn.speaker, turn.text, str(turn.at)] for turn in self.window]
        read = json.dumps([self.job.thread, self.job.subject, self.job.agent, rows], separators=(",", ":"))
        return hashlib.sha256(read.encode()).hexdigest()

    def result(
        self,
        outcome: Outcome,
        *,
        watermark: str | None,
        plan: _Plan | None = None,
        view: _View | None = None,
        revision: str | None = None,
        dry_run: bool = False,
        error: DocmemError | None = None,
    ) -> Consolidation:
        answer = self.answer.answer if self.answer is not None else None
        spent = error.spent if isinstance(error, ModelFailed) else answer.spent if answer else Spent()
        return Consolidation(
            outcome,
            revision=revision,
            watermark=watermark,
            operations=plan.operations if plan else {},
            rejected=plan.codes("rejected") if plan else {},
            held=sum(plan.codes("held").values()) if plan else 0,
            held_codes=plan.codes("held") if plan else {},
            profile_changed=bool(plan and plan.merge.changes()),
            undeclared=plan.merge.undeclared if plan else (),
            model=self.model,
            tokens_in=spent.tokens_in,
            tokens_out=spent.tokens_out,
            cost=spent.cost,
            repairs=spent.repairs,
            dropped_keys=answer.parsed.dropped if answer else 0,
            scrubbed=self.scrubbed + (answer.parsed.scrubbed if answer else 0),
            review=plan.review if plan and plan.held_files else None,
            dry_run=dry_run,
            files=plan.against(view) if plan and view else {},
            error=error,
        )


# -------------------------------------------------------------------------------------------------------- the call


@dataclass(frozen=True)
class _Asked:
    answer: Answer
    proposals: tuple[Proposal, ...]
    prompt_hash: str


def _ask(run: _Run, view: _View, model: Model) -> _Asked | None:
    """The model's proposals, handles mapped back to ids; None where nothing may be learned anyway."""
    if _barred(run, view) is not None:
        return None
    request = _request(run, view)
    answer = model.propose(request)
    ids = {handle: memory.id for handle, memory in request.memories.items()}
    proposals = tuple(
        Proposal(
            operation,
            target=ids.get(operation.id, operation.id) if operation.id is not None else None,
            names_tenant=number in answer.parsed.tenant_keys,
        )
        for number, operation in enumerate(answer.parsed.reply.operations)
    )
    return _Asked(answer, proposals, request.hash)


def _request(run: _Run, view: _View) -> Request:
    visible = [each.memory for each in view.stored.values() if each.memory.agent in (None, run.agent)]
    said = "\n".join(turn.text for turn in run.window)
    selected = select_existing(visible, lambda: by_words(visible, said))
    _log.info("memories shown: %d of %d (%s)", len(selected.memories), selected.total, selected.strategy)
    return Request(
        thread=run.job.thread,
        turns=run.window,
        agent=view.config.agent(run.job.agent),
        memories=prompt.handles(selected.memories),
        profile=view.profile,
    )


def _barred(run: _Run, view: _View) -> Literal["no_topics", "no_consent"] | None:
    """Why nothing may be learned, if so."""
    if not view.config.agent(run.job.agent).topics:
        return "no_topics"
    if not view.profile.remember:
        return "no_consent"
    if view.config.policies.consent == "required" and not _is_recorded(view.profile_bytes):
        return "no_consent"
    return None


def _is_recorded(profile: bytes) -> bool:
    """Consent is recorded by `remember: true` written in the profile; a default is no consent."""
    return load_mapping(profile.decode("utf-8-sig")).get("remember") is True


def _failed(run: _Run, view: _View, error: ModelReplyError | ModelUnavailable) -> Consolidation:
    """Nothing is written but the reply, for somebody to look at."""
    if isinstance(error, ModelReplyError):
        audit.keep(
            run.repo.settings,
            run.job,
            model=run.model,
            reason=error.message,
            reply=error.reply,
            input_hash=run.input_hash,
            now=run.now,
        )
    return run.result("failed", watermark=view.last_turn, error=error)


def _compared(run: _Run, view: _View) -> _Run:
    """With what the embedder says of statements that may be one. Without one, or if it fails, words alone decide."""
    bound = view.config.policies.admission.duplicate_cosine
    fresh = nearness.compared(run.repo.settings, run.job.tenant, _uncompared(run, view), bound=bound)
    return replace(run, compared={**run.compared, **fresh})


def _uncompared(run: _Run, view: _View) -> list[tuple[str, str]]:
    if run.answer is None:
        return []
    asked = admission.may_be_repeated(run.answer.proposals, _admission_window(run), _state(run, view))
    return sorted(asked - run.compared.keys())


# ---------------------------------------------------------------------------------------------------- the decision


@dataclass(frozen=True)
class _Plan:
    """What a window comes to at one revision. `files` in the order of the commit: memories, profile, watermark."""

    outcome: Outcome
    files: Mapping[str, bytes | None]
    held_files: Mapping[str, bytes | None]
    rulings: tuple[Ruling, ...]
    merge: profiles.Merge
    review: str

    @property
    def operations(self) -> dict[str, int]:
        return dict(Counter(ruling.op for ruling in self.rulings if ruling.verdict == "admitted"))

    @property
    def held(self) -> Pending:
        """What waits for a person."""
        return _held(self.rulings, self.merge)

    def codes(self, verdict: Literal["held", "rejected"]) -> dict[str, int]:
        """Counts by code, of operations and profile values together."""
        decided = [(ruling.verdict, ruling.code) for ruling in self.rulings]
        decided += [(entry.verdict, entry.code) for entry in self.merge.entries]
        return dict(sorted(Counter(code or "" for decision, code in decided if decision == verdict).items()))

    def against(self, view: _View) -> dict[str, tuple[bytes | None, bytes | None]]:
        """Path to (before, after)."""
        before: dict[str, bytes | None] = {stored.path: stored.data for stored in view.stored.values()}
        before[profile_path(view.profile.subject)] = view.profile_bytes or None
        before[REVERTED] = view.reverted_bytes
        before[list(self.files)[-1]] = view.watermark_bytes  # the watermark comes last
        return {path: (before.get(path), after) for path, after in self.files.items()}


def _plan(run: _Run, view: _View) -> _Plan:
    """Decide what the window comes to, given what was read. Pure."""
    waits_as = hashlib.sha256(f"{run.job.thread}\n{run.input_hash}".encode()).hexdigest()[:16]
    barred = _barred(run, view)
    if barred is not None or run.answer is None:
        return _Plan(barred or "nothing_kept", _watermark(run), {}, (), profiles.Merge(), waits_as)
    rulings, changed = _memory_files(_rulings(run, view, run.answer), view)
    merge, profile_file = _profile_file(run, view, run.answer, learned=bool(changed))
    waiting = _held(rulings, merge)
    held = _held_files(waiting.rulings, waiting.entries, view)
    kept = {**changed, **profile_file}
    outcome: Outcome = "committed" if kept else "held" if held else "nothing_kept"
    return _Plan(outcome, {**kept, **_cleared(run, view), **_watermark(run)}, held, rulings, merge, waits_as)


def _held(rulings: Iterable[Ruling], merge: profiles.Merge) -> Pending:
    return Pending(
        tuple(ruling for ruling in rulings if ruling.verdict == "held"),
        tuple(entry for entry in merge.entries if entry.verdict == "held"),
    )


def _cleared(run: _Run, view: _View) -> dict[str, bytes | None]:
    """`reverted.yaml` without the statements that a person has written again since."""
    secret = run.repo.settings.secret_bytes()
    marks = edits.still_marked(view.kept_out, view.stored, secret=secret, subject=run.job.subject)
    return {REVERTED: files.render_reverted(marks)} if marks != view.kept_out else {}


def _rulings(run: _Run, view: _View, asked: _Asked) -> list[Ruling]:
    state = replace(
        _state(run, view), elsewhere=_elsewhere(run, view, asked.proposals), deleted=_deleted_before(run, view, asked)
    )
    return admission.admit(asked.proposals, _admission_window(run), state)


def _elsewhere(run: _Run, view: _View, proposals: Iterable[Proposal]) -> frozenset[str]:
    """Of the ids that are proposed, those of other people's memories. Only a model that makes up an id costs a look."""
    unknown = {each.target for each in proposals if each.target and each.target not in view.stored}
    snapshot = run.repo.snapshot(view.revision)
    return frozenset(each for each in unknown if names.is_memory_id(each) and snapshot.locate(each))


def _deleted_before(run: _Run, view: _View, asked: _Asked) -> int:
    """How many memories earlier windows took away, within the policy's span; asked only where this one deletes."""
    span = view.config.policies.admission.delete_span
    if span is None or all(each.operation.op != "delete" for each in asked.proposals):
        return 0
    return review.deleted_by_windows(run.repo, view.revision, run.job.subject, since=run.now - span)


def _admission_window(run: _Run) -> Window:
    return Window(run.job.tenant, run.job.subject, run.job.thread, run.window, run.now, agent=run.agent)


def _state(run: _Run, view: _View) -> State:
    return State(
        memories={key: stored.memory for key, stored in view.stored.items()},
        topics={topic.name: topic for topic in view.config.agent(run.job.agent).topics},
        policies=view.config.policies,
        secret=run.repo.settings.secret_bytes(),
        reverted=view.kept_out.reverted,
        rejected=view.kept_out.rejected,
        one=frozenset(pair for pair, is_one in run.compared.items() if is_one),
        broken=view.broken,
    )


def _memory_files(rulings: Sequence[Ruling], view: _View) -> tuple[tuple[Ruling, ...], dict[str, bytes | None]]:
    """The files of what is admitted; an edit that a hand-made file can't take is rejected as `format`."""
    kept: list[Ruling] = []
    changed: dict[str, bytes | None] = {}
    for ruling in rulings:
        try:
            written = edits.of(ruling, view.stored)
        except FormatError:
            kept.append(replace(ruling, verdict="rejected", code="format"))
            continue
        kept.append(ruling)
        if ruling.verdict == "admitted":
            changed |= written
    return tuple(kept), changed


def _profile_file(
    run: _Run, view: _View, asked: _Asked, *, learned: bool
) -> tuple[profiles.Merge, dict[str, bytes | None]]:
    """The profile's new bytes, if they change. When somebody last called is noted with what was learned from it."""
    merge = profiles.merge(
        view.profile,
        asked.answer.parsed.reply.profile,
        declared=[attribute.key for attribute in view.config.agent(run.job.agent).attributes],
        policies=view.config.policies,
        was_rejected=_was_rejected(run, view),
        finding=lambda path, value: evidence.of_value(path, value, run.window),
    )
    changes = merge.changes()
    if not changes and not (learned and view.profile_bytes):
        return merge, {}
    path = profile_path(run.job.subject)
    try:
        data = profiles.edited(view.profile_bytes, changes, last_interaction_at=_last_interaction(run, view))
        files.parse_profile(path, data)
    except FormatError:
        return profiles.refused(merge, "format"), {}
    return merge, {path: data} if data != view.profile_bytes else {}


def _was_rejected(run: _Run, view: _View) -> Callable[[KeyPath, str], bool]:
    secret, marks = run.repo.settings.secret_bytes(), view.kept_out.rejected

    def was_rejected(path: KeyPath, value: str) -> bool:
        return bool(marks) and review.value_mark(secret, run.job.subject, path, value) in marks

    return was_rejected


def _last_interaction(run: _Run, view: _View) -> datetime | None:
    """The time of the user's last turn, never back and never in the future; None where it stays."""
    heard = files.newest(*(turn.at for turn in run.window if turn.role == "user"))
    before = view.profile.last_interaction_at
    if heard is None or (before is not None and before >= min(heard, run.now)):
        return None
    return min(heard, run.now)


def _held_files(rulings: Sequence[Ruling], entries: Sequence[profiles.Entry], view: _View) -> dict[str, bytes | None]:
    """What would be written if a reviewer approved, and `review.json` with the reasons."""
    if not rulings and not entries:
        return {}
    changed: dict[str, bytes | None] = {}
    for ruling in rulings:
        changed |= edits.of(ruling, view.stored)
    if entries:
        with contextlib.suppress(FormatError):  # the reasons still say what was proposed
            values = {entry.path: entry.value for entry in entries}
            changed[profile_path(view.profile.subject)] = profiles.edited(
                view.profile_bytes, values, last_interaction_at=None
            )
    return {**changed, review.REASONS: review.reasons(view.profile.subject, rulings, entries)}


def _watermark(run: _Run) -> dict[str, bytes | None]:
    job = run.job
    mark = Watermark(job.thread, job.subject, job.agent, run.window[-1].id, run.input_hash)
    return {watermark_path(job.thread): files.render_watermark(mark)}


# ------------------------------------------------------------------------------------------------------ the commit


def _commit(run: _Run, view: _View, plan: _Plan) -> Consolidation:
    """Write it, on whatever main is by now. Raises `Conflict`."""
    seen = view
    for _ in range(_PUSHES):
        run = _compared(run, seen) if seen is not view else run
        with run.repo.locked():
            now_view = _refreshed(view, run.repo.snapshot(), run.job)
            if now_view.marks != view.marks and _uncompared(run, now_view):
                seen = now_view  # an embedder is asked without the lock
                continue
            current = _replanned(run, view, plan, now_view)
            current = _hold(run, current, now_view)
            try:
                revision = run.repo.commit(
                    now_view.revision, current.files, message=_message(run, current), now=run.now
                )
            except Conflict:
                continue  # a push came in between
        if current.merge.undeclared:
            _log.info("profile keys that no agent declares: %s", ", ".join(current.merge.undeclared))
        return run.result(current.outcome, plan=current, view=now_view, revision=revision, watermark=run.window[-1].id)
    raise Conflict(f"main of {run.job.tenant} moved {_PUSHES} times while committing", hint="run it again")


def _replanned(run: _Run, view: _View, plan: _Plan, now_view: _View) -> _Plan:
    """The plan as it is on the repo of now. Raises `Conflict` where somebody else was at the same thing."""
    if now_view.watermark_blob != view.watermark_blob:
        raise Conflict(f"thread {run.job.thread!r} was consolidated meanwhile", hint="run it again")
    if run.answer is None and _barred(run, now_view) is None:
        raise Conflict("topics or consent were added meanwhile", hint="run it again")
    for ruling in plan.rulings:
        target = ruling.proposal.target if ruling.proposal.operation.op != "create" else None
        if ruling.verdict == "admitted" and target is not None and _blob(view, target) != _blob(now_view, target):
            raise Conflict(f"memory {target} was changed meanwhile", hint="run it again")
    return plan if now_view.marks == view.marks else _plan(run, now_view)


def _blob(view: _View, memory: str) -> str | None:
    stored = view.stored.get(memory)
    return stored.blob if stored is not None else None


def _hold(run: _Run, plan: _Plan, view: _View) -> _Plan:
    """Put the held operations where a reviewer finds them, before the watermark passes them by.

    A review that an attempt of this window left behind, and that would hold nothing now, goes. What waits already in
    another review is noted there, and the plan then names that one.
    """
    if not plan.held_files:
        run.repo.release(plan.review)
        return plan
    review.expire(run.repo, view.config.policies.review_expires, now=run.now)
    waits_in = review.hold(
        run.repo,
        plan.review,
        view.revision,
        subject=run.job.subject,
        held=plan.held,
        files=lambda held: _held_files(held.rulings, held.entries, view),
        message=trailers.message("Held for review", _trailers(run, plan)),
        now=run.now,
    )
    return replace(plan, review=waits_in)


def _message(run: _Run, plan: _Plan) -> str:
    counts = plan.operations
    done = [f"{counts[op]} {word}" for op, word in _DONE.items() if counts.get(op)]
    what = ", ".join([*done, *(["profile"] if plan.merge.changes() else [])]) or plan.outcome.replace("_", " ")
    return trailers.message(f"Consolidate: {what}", _trailers(run, plan))


_DONE = {"create": "created", "update": "updated", "delete": "deleted"}


def _trailers(run: _Run, plan: _Plan) -> dict[str, str]:
    """One-line ASCII, and never a word of the model's."""
    counts, held = plan.operations, plan.codes("held")
    return {
        "Docmem-Thread": trailers.encode(run.job.thread),
        "Docmem-Turns": trailers.encode_list(turn.id for turn in run.window),
        "Docmem-Input": run.input_hash,
        "Docmem-Agent": run.job.agent,
        "Docmem-Run": str(run.job.run) if run.job.run is not None else "",
        "Docmem-Model": trailers.encode(run.model) if run.answer is not None else "",
        "Docmem-Prompt": run.answer.prompt_hash if run.answer is not None else "",
        "Docmem-Outcome": plan.outcome,
        "Docmem-Created": str(counts.get("create", 0)),
        "Docmem-Updated": str(counts.get("update", 0)),
        "Docmem-Deleted": str(counts.get("delete", 0)),
        "Docmem-Deletes": str(counts.get("delete", 0) or ""),
        "Docmem-Held": " ".join(f"{code}={number}" for code, number in held.items()),
        "Docmem-Review": plan.review if held else "",
    }


def _last_turn(repo: Repository, job: Job) -> str | None:
    mark = repo.snapshot().watermark(job.thread)
    return mark.last_turn if mark is not None else None
