"""What waits for a person: held operations, each review one commit below `refs/docmem/review/`.

Such a commit stands on the revision it was decided on and holds what would be written, with the reasons beside it in
`review.json`. It is never served. Approving carries the change onto today's files (see `transplant`): what was edited
elsewhere since stays, and a real conflict is named and nothing is written. Rejecting is remembered in `reverted.yaml`.
"""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar

from docmem import admission, edits, files, git, layout, nearness, trailers, transplant
from docmem import profile as profiles
from docmem.admission import Ruling, State
from docmem.errors import Conflict, FormatError, InputError, NotFound, Rejected
from docmem.git import Author, Commit
from docmem.model import Marks, Memory
from docmem.names import normalized, proposal_hash, said, statement_hash
from docmem.nearness import Compared
from docmem.repository import REVIEW, Repository, Snapshot, StoredMemory
from docmem.splice import DELETE, KeyPath
from docmem.strictyaml import load_mapping
from docmem.tenant_config import Policies
from docmem.times import format_time
from docmem.transplant import Carried, Shift, Version

Op: TypeAlias = Literal["create", "update", "delete", "profile"]

REASONS = "review.json"
"""The file of a review's commit that says why; it is never carried over."""

MEANS: Mapping[str, str] = {
    "reverted_before": "a person took this statement back before",
    "instruction": "it reads like an instruction to the assistant",
    "high_impact": "it is about payment, health, permissions or contact details",
    "low_confidence": "the evidence is weak",
    "review_all": "this tenant has every change reviewed",
    "delete_share": "it would delete, with what was deleted lately, a large part of what is known about the person",
    "incomplete_merge": "it may be one half of a merge whose other half was not kept",
    "unsupported": "nothing that the person said in so many words bears it out",
    "pinned": "people alone change this key",
}
"""What a code means to a reviewer."""

_NAMED = 3
"""So many operations are named in a commit's subject; more are counted."""
_ORIGIN = ("Docmem-Thread", "Docmem-Turns", "Docmem-Agent", "Docmem-Run", "Docmem-Model")
_PREFIX = 4
_PLACES = 10
"""Of a proposal that is made again and again, the newest places that are kept."""
_LOOKED_BACK = 500
"""Commits of a subject that are looked at for what was deleted lately."""
_TRIES = 8
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Item:
    """One operation of a review. `key`: a memory's id, or a profile key such as `attributes.diet`.

    `shift` is the change to its file; None where a file that people made couldn't take the change.
    """

    number: int
    op: Op
    key: str
    code: str
    path: str
    before: str | None
    after: str | None
    quote: str | None
    turns: tuple[str, ...]
    reason: Mapping[str, Any]
    shift: Shift | None

    @property
    def times(self) -> int:
        """How often it has been proposed."""
        return int(self.reason.get("times", 1))

    def as_json(self) -> dict[str, Any]:
        """An operation of `review list --json` and `review show --json`."""
        return {
            "number": self.number,
            "op": self.op,
            "id": self.key,
            "code": self.code,
            "reason": MEANS.get(self.code, self.code),
            "path": self.path,
            "before": self.before,
            "after": self.after,
            "quote": self.quote,
            "turns": list(self.turns),
            "times": self.times,
            "again": list(self.reason.get("again", ())),
        }

    def diff(self) -> str:
        """Its file as a unified diff, from what it was decided on to what is proposed."""
        old, new = (self.shift.old, self.shift.new) if self.shift is not None else (None, None)
        return unified(self.path, old.data if old else None, new.data if new else None)


@dataclass(frozen=True, slots=True)
class Review:
    """What one window (or one save) left for a person. `revision`: its commit; `base`: what that stands on."""

    id: str
    revision: str
    base: str
    when: datetime
    expires: datetime | None
    thread: str | None
    turns: tuple[str, ...]
    subject: str
    agent: str | None
    items: tuple[Item, ...]
    commit: Commit = field(repr=False)

    def is_expired(self, now: datetime) -> bool:
        """Whether it has waited longer than policy lets it."""
        return self.expires is not None and self.expires <= now

    def as_json(self, now: datetime) -> dict[str, Any]:
        """A row of `review list --json`."""
        return {
            "id": self.id,
            "thread": self.thread,
            "turns": list(self.turns),
            "subject": self.subject,
            "agent": self.agent,
            "when": format_time(self.when),
            "expires": format_time(self.expires) if self.expires else None,
            "expired": self.is_expired(now),
            "operations": [item.as_json() for item in self.items],
        }


@dataclass(frozen=True, slots=True)
class Drift:
    """What has become of an operation's place since it was held."""

    name: str
    then: str | None
    now: str | None

    def as_json(self) -> dict[str, Any]:
        """`{"id", "then", "now"}`: the texts, null where there was or is none."""
        return {"id": self.name, "then": self.then, "now": self.now}


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of operations that a person decided on. With conflicts nothing was written, and they still wait.

    `merged`: proposed memory to the one there now that says less, and took its text. `left`: how many still wait.
    """

    review: str
    decision: Literal["approved", "rejected"]
    revision: str | None
    keys: tuple[str, ...]
    changed: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    drift: tuple[Drift, ...] = ()
    merged: Mapping[str, str] = field(default_factory=dict)
    left: int = 0

    def as_json(self) -> dict[str, Any]:
        """The object of `review approve|reject|edit --json`."""
        return {
            "review": self.review,
            "decision": self.decision if not self.conflicts else None,
            "revision": self.revision,
            "operations": list(self.keys),
            "changed": list(self.changed),
            "conflicts": list(self.conflicts),
            "drift": [each.as_json() for each in self.drift],
            "merged": dict(self.merged),
            "left": self.left,
        }


# -------------------------------------------------------------------------------------------------------- holding


@dataclass(frozen=True, slots=True)
class Pending:
    """What waits for a person: operations and profile values. `forgets`: an agent forgot it because it was told to."""

    rulings: tuple[Ruling, ...] = ()
    entries: tuple[profiles.Entry, ...] = ()
    forgets: bool = False


def reasons(
    subject: str, rulings: Iterable[Ruling], entries: Iterable[profiles.Entry] = (), *, forgets: bool = False
) -> bytes:
    """`review.json`: what is held, and why."""
    held = {
        "subject": subject,
        "operations": [_reason(ruling) | ({"forgets": True} if forgets else {}) for ruling in rulings],
        "profile": [_entry_reason(entry) for entry in entries],
    }
    return json.dumps(held, indent=1).encode() + b"\n"


def _reason(ruling: Ruling) -> dict[str, Any]:
    memory = ruling.after or ruling.before
    assert memory is not None
    return {
        "op": ruling.op,
        "id": memory.id,
        "path": memory.path,
        "code": ruling.code,
        "agent": memory.agent,
        "external": dict(edits.external(memory)),
        "proposal": ruling.proposal.operation.model_dump(),
    }


def _entry_reason(entry: profiles.Entry) -> dict[str, Any]:
    return {"key": list(entry.path), "value": entry.value, "code": entry.code}


_Same: TypeAlias = tuple[str, ...]
"""What two proposals have in common that ask a person the same thing."""


def hold(
    repository: Repository,
    name: str,
    base: str,
    *,
    subject: str,
    held: Pending,
    files: Callable[[Pending], Mapping[str, bytes | None]],
    message: str,
    now: datetime,
) -> str:
    """Let operations wait in the review `name`, on `base`; returns the review that they wait in. Hold the lock.

    What another review asks already isn't asked again: it is noted there, with where it was said this time. Only the
    rest makes a review of its own; the same name again (a window that is replayed) takes the place of the one before.
    """
    waiting = _waiting(repository, subject, but=name, now=now)
    again: dict[str, dict[_Same, dict[str, Any]]] = {}
    for same, place in _places(held).items():
        if same in waiting:
            again.setdefault(waiting[same], {})[same] = place
    for known, places in again.items():
        review = _review(repository, known, git.head(repository.git_dir, f"{REVIEW}/{known}") or "", None)
        _rewrite(repository, review, [_noted(item, places.get(_same(item.reason))) for item in review.items])
    rest = replace(
        held,
        rulings=tuple(each for each in held.rulings if _same(_reason(each)) not in waiting),
        entries=tuple(each for each in held.entries if _same(_entry_reason(each)) not in waiting),
    )
    if not rest.rulings and not rest.entries:
        repository.release(name)
        return next(iter(again))
    repository.hold(name, base, files(rest), message=message, now=now)
    return name


def _places(held: Pending) -> dict[_Same, dict[str, Any]]:
    """Where each of the held was said."""
    found: dict[_Same, dict[str, Any]] = {}
    for ruling in held.rulings:
        source = ruling.after.source if ruling.after is not None else None
        operation = ruling.proposal.operation
        found[_same(_reason(ruling))] = {
            "thread": source.thread if source else None,
            "turns": list(operation.evidence_turns),
            "quote": operation.quote,
        }
    return found | {_same(_entry_reason(entry)): {} for entry in held.entries}


def _waiting(repository: Repository, subject: str, *, but: str, now: datetime) -> dict[_Same, str]:
    """What waits about a subject, and in which review; the oldest of several."""
    return {
        _same(reason): name
        for name, reason in reversed(list(_reasons_waiting(repository, subject, now=now)))
        if name != but
    }


def external_ids_waiting(
    repository: Repository, subject: str, *, now: datetime
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Of each save about a subject that waits: its review, its code, its external ids with what each was saved as."""
    for name, reason in _reasons_waiting(repository, subject, now=now):
        if reason.get("external"):
            yield name, reason["code"], reason["external"]


def _reasons_waiting(repository: Repository, subject: str, *, now: datetime) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The reasons of what waits about a subject, oldest first: a file each, and no process."""
    limit = repository.snapshot().config.policies.review_expires
    refs = sorted(git.ref_times(repository.git_dir, REVIEW).items(), key=lambda each: each[1][1])
    for ref, (revision, when) in refs:
        if limit is not None and when + limit <= now:
            continue
        held = json.loads(git.read_file(repository.git_dir, revision, REASONS) or b"{}")
        if held.get("subject") == subject:
            for reason in (*held["operations"], *held["profile"]):
                yield ref.rsplit("/", 1)[-1], reason


def _same(reason: Mapping[str, Any]) -> _Same:
    if "op" not in reason:
        return ("profile", ".".join(reason["key"]), normalized(reason["value"]))
    if reason["op"] == "delete":
        return ("delete", reason["id"])
    memory = "" if reason["op"] == "create" else reason["id"]
    return (reason["op"], memory, reason.get("agent") or "", said(reason["proposal"]["text"]))


def _noted(item: Item, said_again: dict[str, Any] | None) -> Item:
    """The item, said once more. The newest places are kept; the same place again (a replay) counts once."""
    if said_again is None or said_again in item.reason.get("again", ()):
        return item
    again = [*item.reason.get("again", ()), said_again]
    return replace(item, reason={**item.reason, "times": item.times + 1, "again": again[-_PLACES:]})


def value_mark(secret: bytes, subject: str, path: KeyPath, value: str) -> str:
    """The hash under which a profile value that was turned down is remembered."""
    return proposal_hash(secret, subject, "profile", ".".join(path), value)


def expire(repository: Repository, limit: timedelta | None, *, now: datetime) -> None:
    """Take away the reviews that have waited longer than `limit` (None: none); hold the lock."""
    if limit is None:
        return
    for ref, (revision, when) in git.ref_times(repository.git_dir, REVIEW).items():
        if when + limit <= now:
            git.move_ref(repository.git_dir, ref, new=None, old=revision)


def deleted_by_windows(repository: Repository, revision: str, subject: str, *, since: datetime) -> int:
    """How many of a subject's memories consolidation took away since then, or since a person last changed anything.

    A memory that another one supersedes isn't lost, and doesn't count.
    """
    lost = 0
    folder = f"{layout.subject_dir(subject)}/memories"
    for commit in git.history(repository.git_dir, revision, paths=(folder,), limit=_LOOKED_BACK):
        if commit.when < since or commit.author != git.ENGINE:
            break
        if commit.trailer("Docmem-Input"):
            lost += _lost(repository, commit)
    return lost


def _lost(repository: Repository, commit: Commit) -> int:
    moved = transplant.shifts(repository, commit.changes)
    gone = {shift.id for shift in moved if shift.id is not None and shift.new is None}
    made = [shift.new for shift in moved if shift.id is not None and shift.old is None and shift.new is not None]
    kept = {each for version in made for each in _parsed(version.path, version.data).supersedes} if gone else set()
    return len(gone - kept)


# -------------------------------------------------------------------------------------------------------- reading


def reviews(repository: Repository) -> list[Review]:
    """All that waits, oldest first."""
    limit = repository.snapshot().config.policies.review_expires
    found = git.refs(repository.git_dir, REVIEW)
    waiting = [_review(repository, ref.rsplit("/", 1)[-1], revision, limit) for ref, revision in found.items()]
    return sorted(waiting, key=lambda each: (each.when, each.id))


def select(repository: Repository, target: str, operation: str | None = None) -> tuple[Review, tuple[Item, ...]]:
    """A review and those of its operations that are meant.

    `target` is a review's id, the start of one (4 digits or more), or likewise the id of a held memory, which means
    that operation alone. `operation` is one operation's number, memory id or profile key. Raises `NotFound`;
    `InputError` where several fit.
    """
    refs = {ref.rsplit("/", 1)[-1]: revision for ref, revision in git.refs(repository.git_dir, REVIEW).items()}
    fits = [each for each in refs if each.startswith(target)] if len(target) >= _PREFIX else []
    if len(fits) > 1:
        raise InputError(f"{target} is the start of {len(fits)} reviews: {', '.join(fits)}", hint="give more digits")
    if fits:
        limit = repository.snapshot().config.policies.review_expires
        found = _review(repository, fits[0], refs[fits[0]], limit)
        return found, (_item(found, operation),) if operation else found.items
    return _by_memory(repository, target)


def _by_memory(repository: Repository, target: str) -> tuple[Review, tuple[Item, ...]]:
    pairs = [
        (each, item)
        for each in (reviews(repository) if len(target) >= _PREFIX else ())
        for item in each.items
        if item.op != "profile" and item.key.startswith(target)
    ]
    if not pairs:
        raise NotFound(
            f"tenant {repository.tenant} has no review {target!r}", hint=f"see: docmem review list {repository.tenant}"
        )
    if len(pairs) > 1:
        listed = ", ".join(sorted({each.id for each, _ in pairs}))
        raise InputError(f"{target} waits in several places: {listed}", hint="give the review's id and the operation")
    return pairs[0][0], (pairs[0][1],)


def _item(review: Review, wanted: str) -> Item:
    fits = [
        item
        for item in review.items
        if wanted in {str(item.number), item.key, item.key.split(".", 1)[-1]}
        or (item.op != "profile" and len(wanted) >= _PREFIX and item.key.startswith(wanted))
    ]
    if len(fits) != 1:
        known = ", ".join(f"{item.number} ({item.key})" for item in review.items)
        raise NotFound(f"review {review.id} has no one operation {wanted!r}", hint=f"it has: {known}")
    return fits[0]


def _review(repository: Repository, name: str, revision: str, limit: timedelta | None) -> Review:
    commit = next(git.history(repository.git_dir, revision, limit=1))
    held = json.loads(git.read_file(repository.git_dir, revision, REASONS) or b"{}")
    changed = [change for change in commit.changes if change.path != REASONS]
    found = {shift.name: shift for shift in transplant.shifts(repository, changed)}
    items = [*_memory_items(held, found), *_profile_items(held, found)]
    thread = commit.trailer("Docmem-Thread")
    return Review(
        id=name,
        revision=revision,
        base=commit.parents[0],
        when=commit.when,
        expires=commit.when + limit if limit is not None else None,
        thread=trailers.decode(thread) if thread else None,
        turns=trailers.decode_list(commit.trailer("Docmem-Turns") or ""),
        subject=str(held.get("subject") or (layout.place(items[0].path).subject if items else "")),
        agent=commit.trailer("Docmem-Agent"),
        items=tuple(replace(item, number=_number(item, place)) for place, item in enumerate(items, start=1)),
        commit=commit,
    )


def _number(item: Item, place: int) -> int:
    """An operation keeps its number while others of its review are decided: the same command never means another."""
    return int(item.reason.get("number") or place)


def _memory_items(held: Mapping[str, Any], found: Mapping[str, Shift]) -> Iterator[Item]:
    for reason in held.get("operations", ()):
        shift = found.get(reason["id"])
        proposal = reason["proposal"]
        yield Item(
            number=0,
            op=reason["op"],
            key=reason["id"],
            code=reason["code"],
            path=reason["path"],
            before=_text(shift.old) if shift else None,
            after=_text(shift.new) if shift else None,
            quote=proposal["quote"],
            turns=tuple(proposal["evidence_turns"]),
            reason=reason,
            shift=shift,
        )


def _profile_items(held: Mapping[str, Any], found: Mapping[str, Shift]) -> Iterator[Item]:
    for reason in held.get("profile", ()):
        path = layout.profile_path(held["subject"])
        whole = found.get(path)
        key: KeyPath = tuple(reason["key"])
        before = _value(whole.old, key) if whole else None
        shift = Shift(None, whole.old, _with_value(path, whole.old, key, reason["value"])) if whole else None
        yield Item(
            number=0,
            op="profile",
            key=".".join(key),
            code=reason["code"],
            path=path,
            before=before,
            after=reason["value"],
            quote=None,
            turns=(),
            reason=reason,
            shift=shift,
        )


def _text(version: Version | None) -> str | None:
    try:
        return files.parse_memory(version.path, version.data).text if version is not None else None
    except FormatError:
        return version.data.decode("utf-8", "replace") if version is not None else None


def _value(version: Version | None, key: KeyPath) -> str | None:
    value: Any = load_mapping(version.data.decode("utf-8-sig")) if version is not None else None
    for part in key:
        value = value.get(part) if isinstance(value, dict) else None
    return None if value is None else str(value)


def _with_value(path: str, old: Version | None, key: KeyPath, value: str) -> Version:
    data = profiles.edited(old.data if old else b"", {key: value}, last_interaction_at=None)
    return Version(path, data)


def drift(repository: Repository, items: Iterable[Item]) -> tuple[Drift, ...]:
    """What has changed since at the places that these operations change."""
    return _drift(repository.snapshot(), items)


def _drift(now: Snapshot, items: Iterable[Item]) -> tuple[Drift, ...]:
    found = []
    for item in items:
        today = transplant.today(now, item.shift) if item.shift is not None else None
        then = item.shift.old if item.shift is not None else None
        if item.op == "profile":
            stands = _value(today, _key(item))
            if stands != item.before:
                found.append(Drift(item.key, item.before, stands))
        elif then is not None and today != then:
            found.append(Drift(item.key, _text(then), _text(today)))
    return tuple(found)


def _key(item: Item) -> KeyPath:
    return tuple(item.reason["key"])


# -------------------------------------------------------------------------------------------------------- deciding


@dataclass(frozen=True, slots=True)
class _Plan:
    """What approving writes on `base`."""

    base: str
    files: Mapping[str, bytes | None]
    counts: Mapping[str, int]
    conflicts: tuple[str, ...]
    drift: tuple[Drift, ...]
    merged: Mapping[str, str]


def approve(
    repository: Repository,
    target: str,
    operation: str | None = None,
    *,
    now: datetime,
    author: Author,
    text: str | None = None,
) -> Settled:
    """Write what was held, in one commit by `author` on today's state. `target` and `operation` see `select`.

    `text`: what the one operation is to say instead. Where a memory was changed since in the same place, nothing is
    written and `conflicts` names it. Raises `Rejected` where admission would refuse it whoever asks (a secret, its
    size, a duplicate of what is there now, no consent) or it has expired; else what `select` raises.
    """
    attempt = partial(_approve, repository, target, operation, now, author, text)
    return nearness.comparing(
        repository.settings, repository.tenant, lambda compared: _retrying(repository, partial(attempt, compared))
    )


def _approve(
    repository: Repository,
    target: str,
    operation: str | None,
    now: datetime,
    author: Author,
    text: str | None,
    compared: Compared,
) -> Settled:
    review, items = select(repository, target, operation)
    if review.is_expired(now):
        raise Rejected(
            f"review {review.id} expired on {format_time(review.expires or now)}",
            code="expired",
            hint="the next conversation that says it proposes it again; or write it by hand",
        )
    chosen = [_edited(_the_one(review, items), text)] if text is not None else list(items)
    planned = _plan(repository, review, chosen, now, compared)
    keys = tuple(item.key for item in items)
    if planned.conflicts:
        left = len(review.items)
        return Settled(review.id, "approved", None, keys, conflicts=planned.conflicts, drift=planned.drift, left=left)
    revision = None
    if planned.files:
        message = _message(review, chosen, planned.counts, author, edited=text is not None)
        revision = repository.commit(planned.base, planned.files, message=message, now=now, author=author)
    left = _settle(repository, review, items)
    changed = tuple(sorted(path for path in planned.files if path != layout.REVERTED))
    return Settled(
        review.id, "approved", revision, keys, changed, drift=planned.drift, merged=planned.merged, left=left
    )


def reject(
    repository: Repository, target: str, operation: str | None = None, *, now: datetime, author: Author
) -> Settled:
    """Turn down what was held, and remember it in `reverted.yaml`: the same proposal is dropped from now on.

    Raises what `select` raises.
    """
    return _retrying(repository, partial(_reject, repository, target, operation, now, author))


def _reject(repository: Repository, target: str, operation: str | None, now: datetime, author: Author) -> Settled:
    review, items = select(repository, target, operation)
    snapshot = repository.snapshot()
    secret = repository.settings.secret_bytes()
    fresh = frozenset(_mark(review, item, secret) for item in items)
    marks = replace(snapshot.marks, rejected=snapshot.marks.rejected | fresh)
    revision = None
    if marks != snapshot.marks:
        message = trailers.message(
            f"Reject {review.id}: {_counted(len(items))}",
            {"Docmem-Review": review.id, "Docmem-Rejected-By": _person(author)},
        )
        changed = {layout.REVERTED: files.render_reverted(marks)}
        revision = repository.commit(snapshot.revision, changed, message=message, now=now, author=author)
    left = _settle(repository, review, items)
    return Settled(review.id, "rejected", revision, tuple(item.key for item in items), left=left)


def proposed_text(repository: Repository, target: str, operation: str | None = None) -> str:
    """What the one operation that is meant would write, for somebody to edit. Raises `InputError`, `NotFound`."""
    return _the_one(*select(repository, target, operation)).after or ""


def _retrying(repository: Repository, work: Callable[[], T]) -> T:
    with repository.locked():
        for _ in range(_TRIES):
            try:
                return work()
            except Conflict:  # a push came in between: it doesn't take our lock
                continue
        return work()


def _the_one(review: Review, items: Sequence[Item]) -> Item:
    texts = [item for item in items if item.op != "delete"]
    if len(texts) != 1 or len(items) != 1:
        known = ", ".join(f"{item.number} ({item.key})" for item in review.items if item.op != "delete")
        raise InputError(
            f"review {review.id} has {len(texts)} texts to edit; name one operation", hint=f"it has: {known or 'none'}"
        )
    return texts[0]


def _edited(item: Item, text: str) -> Item:
    """The operation saying `text` instead. Raises `Rejected` where no file can say it."""
    if item.shift is None or item.shift.new is None:
        return item
    plain = text.strip()
    try:
        if item.op == "profile":
            plain = " ".join(plain.split())
            version = _with_value(item.path, item.shift.old, _key(item), plain)
        else:
            version = _rewritten(item.op, item.shift.new, plain)
    except FormatError as error:
        raise Rejected(f"{item.key}: {error.message}", code=error.code) from None
    return replace(item, after=plain, shift=replace(item.shift, new=version))


def _rewritten(op: Op, version: Version, text: str) -> Version:
    data = files.edit_memory(version.data, {}, text=text)
    memory = files.parse_memory(version.path, data)
    if memory.text != text:
        raise FormatError("the text would not read back as it is", code="format")
    return Version(layout.memory_path(memory.subject, memory.id, text) if op == "create" else version.path, data)


def _plan(repository: Repository, review: Review, items: Sequence[Item], now: datetime, compared: Compared) -> _Plan:
    snapshot = repository.snapshot()
    secret = repository.settings.secret_bytes()
    stored = {each.memory.id: each for each in snapshot.memories(review.subject)}
    _check_consent(snapshot, review, items)
    carried = transplant.carry(snapshot, _shifts(items), secret=secret)
    moved = _drift(snapshot, items)
    if carried.conflicts:
        return _Plan(snapshot.revision, {}, {}, carried.conflicts, moved, {})
    state = _state(snapshot, stored, carried, secret)
    written, merged, approved = _admitted(carried, state, stored, now, compared)
    _check_profile(review, items, written, state.policies)
    deletes = sum(item.op == "delete" for item in items)
    counts = Counter("update" if memory.id in {*stored, *merged} else "create" for memory in approved)
    counts["delete"] = min(deletes, carried.deletes)
    cleared = [_mark(review, item, secret) for item in items]
    cleared += [statement_hash(secret, review.subject, memory.text) for memory in approved]
    marks = snapshot.marks.without(frozenset(cleared))
    forgotten = [stored[item.key].memory for item in items if item.reason.get("forgets") and item.key in stored]
    taken_back = frozenset(mark for memory in forgotten for mark in edits.taken_back(memory, secret=secret))
    marks = replace(marks, reverted=marks.reverted | taken_back)
    return _Plan(snapshot.revision, {**written, **_marks_file(snapshot.marks, marks)}, counts, (), moved, merged)


def _marks_file(before: Marks, after: Marks) -> dict[str, bytes]:
    return {layout.REVERTED: files.render_reverted(after)} if after != before else {}


def _shifts(items: Sequence[Item]) -> list[Shift]:
    """The changes to carry; those of one profile are one change."""
    shifts = []
    profile: Shift | None = None
    for item in items:
        if item.shift is None:
            raise Rejected(f"{item.key}: the file that was there couldn't take the change", code="format")
        if item.op != "profile":
            shifts.append(item.shift)
            continue
        before = profile.new if profile is not None else item.shift.old
        old = profile.old if profile is not None else item.shift.old
        profile = Shift(None, old, _with_value(item.path, before, _key(item), item.after or ""))
    return [*shifts, *([profile] if profile is not None else [])]


def _check_consent(snapshot: Snapshot, review: Review, items: Sequence[Item]) -> None:
    if snapshot.profile(review.subject).remember or all(item.op == "delete" for item in items):
        return
    raise Rejected(
        "the person doesn't want to be remembered", code="no_consent", hint="their profile says remember: false"
    )


def _state(snapshot: Snapshot, stored: Mapping[str, StoredMemory], carried: Carried, secret: bytes) -> State:
    """What is there once the deletions are done."""
    gone = {path for path, data in carried.files.items() if data is None}
    policies: Policies = snapshot.config.policies
    stays = {key: each.memory for key, each in stored.items() if each.path not in gone or _comes(key, carried)}
    return State(memories=stays, topics={}, policies=policies, secret=secret)


def _comes(memory: str, carried: Carried) -> bool:
    return any(
        data is not None and transplant.id_of(Version(path, data)) == memory for path, data in carried.files.items()
    )


def _admitted(
    carried: Carried, state: State, stored: Mapping[str, StoredMemory], now: datetime, compared: Compared
) -> tuple[dict[str, bytes | None], dict[str, str], list[Memory]]:
    """The files to write once admission has looked at them, what was merged into what, and the memories as approved.

    Raises `Rejected`.
    """
    written = dict(carried.files)
    merged: dict[str, str] = {}
    approved: list[Memory] = []
    for path, data in carried.files.items():
        if data is None or layout.place(path).kind != "memory":
            continue
        memory = _parsed(path, data)
        _check_external(memory, state)
        bound = state.policies.admission.duplicate_cosine
        state = replace(state, one=compared.one(admission.may_repeat(memory, state), bound))
        ruling = admission.judge(
            memory, state=state, now=now, before=state.memories.get(memory.id), passes=admission.PERSON_PASSES
        )
        if ruling.verdict == "rejected" or ruling.after is None:
            raise _refusal(memory, ruling)
        if ruling.after.id != memory.id:  # more of what another one says: that one takes it
            del written[path]
            written |= edits.of(_noting(ruling, memory), stored)
            merged[memory.id] = ruling.after.id
        elif ruling.after != memory:  # policy takes personal data out
            del written[path]
            written[ruling.after.path] = _as_ruled(data, ruling.after)
            if state.memories.get(memory.id) is not None and ruling.after.path != path:
                written[path] = None
        approved.append(ruling.after)
        state = replace(state, memories={**state.memories, ruling.after.id: ruling.after})
    return written, merged, approved


def _noting(ruling: Ruling, memory: Memory) -> Ruling:
    """The ruling with the external ids of the memory that it merges noted on the one that takes its text."""
    assert ruling.after is not None
    return replace(ruling, after=edits.with_external(ruling.after, edits.external(memory)))


def _check_external(memory: Memory, state: State) -> None:
    """One external id is one memory, also where the other one came while this one waited. Raises `Rejected`."""
    for there in state.memories.values():
        shared = edits.external(memory).keys() & edits.external(there).keys()
        if there.id != memory.id and shared:
            raise Rejected(
                f"memory {memory.id} can't be kept (id_taken): {there.id} has the external id {sorted(shared)[0]!r}",
                code="id_taken",
                hint="reject it, or take the external id out of one of them",
            )


def _as_ruled(data: bytes, memory: Memory) -> bytes:
    quote = memory.source.quote if memory.source.quote is not None else DELETE
    return files.edit_memory(data, {("source", "quote"): quote}, text=memory.text)


def _parsed(path: str, data: bytes) -> Memory:
    try:
        return files.parse_memory(path, data)
    except FormatError as error:
        raise Rejected(f"{path}: {error.message}", code=error.code) from None


def _refusal(memory: Memory, ruling: Ruling) -> Rejected:
    there = f": {ruling.before.id} says it already" if ruling.before is not None else ""
    return Rejected(
        f"memory {memory.id} can't be kept ({ruling.code}){there}",
        code=ruling.code or "rejected",
        hint="edit it (docmem review edit), or reject it",
    )


def _check_profile(
    review: Review, items: Sequence[Item], written: Mapping[str, bytes | None], policies: Policies
) -> None:
    for item in items:
        if item.op != "profile":
            continue
        code = profiles.objection(_key(item), item.after or "")
        if code is None and policies.pii.strictest(item.after or "") == "reject":
            code = "pii"
        if code is not None:
            raise Rejected(f"{item.key} can't be kept ({code})", code=code, hint="edit it, or reject it")
    path = layout.profile_path(review.subject)
    data = written.get(path)
    if data is not None:
        try:
            files.parse_profile(path, data)
        except FormatError as error:
            raise Rejected(f"{path}: {error.message}", code=error.code) from None


def _mark(review: Review, item: Item, secret: bytes) -> str:
    if item.op == "profile":
        return value_mark(secret, review.subject, _key(item), str(item.reason["value"]))
    if item.op == "delete":
        return proposal_hash(secret, review.subject, "delete", item.key, item.before or "")
    return statement_hash(secret, review.subject, item.after or "")


def _settle(repository: Repository, review: Review, items: Sequence[Item]) -> int:
    """Take decided operations out of a review; returns how many still wait in it."""
    numbers = {item.number for item in items}
    rest = [item for item in review.items if item.number not in numbers]
    ref = f"{REVIEW}/{review.id}"
    if not rest:
        git.move_ref(repository.git_dir, ref, new=None, old=review.revision)
        return 0
    _rewrite(repository, review, rest)
    return len(rest)


def _rewrite(repository: Repository, review: Review, items: Sequence[Item]) -> None:
    """Leave these items in a review, and nothing else; what it stands on and how long it waits stay."""
    held: dict[str, bytes | None] = {}
    for shift in _shifts([item for item in items if item.shift is not None]):
        version = shift.new or shift.old
        if version is not None:
            held[version.path] = shift.new.data if shift.new is not None else None
    kept = {
        "subject": review.subject,
        "operations": [{**item.reason, "number": item.number} for item in items if item.op != "profile"],
        "profile": [{**item.reason, "number": item.number} for item in items if item.op == "profile"],
    }
    held[REASONS] = json.dumps(kept, indent=1).encode() + b"\n"
    message = trailers.message(
        review.commit.subject, {key: values[-1] for key, values in review.commit.trailers.items()}
    )
    git.commit(
        repository.git_dir, base=review.base, files=held, message=message, when=review.when,
        ref=f"{REVIEW}/{review.id}", old=review.revision,
    )  # fmt: skip


def _message(review: Review, items: Sequence[Item], counts: Mapping[str, int], author: Author, *, edited: bool) -> str:
    done = [f"{counts[op]} {op}d" for op in ("create", "update", "delete") if counts.get(op)]
    changed = [
        f"profile of {review.subject[:12]}" if item.op == "profile" else f"{item.op} {item.key}" for item in items
    ]
    what = ", ".join(dict.fromkeys(changed)) if len(changed) <= _NAMED else ", ".join(done) or "profile"
    origin = {key: review.commit.trailer(key) or "" for key in _ORIGIN}
    return trailers.message(
        f"Approve {review.id}{', with another text' if edited else ''}: {what}",
        {
            **origin,
            "Docmem-Review": review.id,
            "Docmem-Approved-By": _person(author),
            "Docmem-Edited": "yes" if edited else "",
            "Docmem-Deletes": str(counts.get("delete", 0) or ""),
        },
    )


def _person(author: Author) -> str:
    return trailers.encode(f"{author.name} <{author.email}>")


def _counted(number: int) -> str:
    return "1 operation" if number == 1 else f"{number} operations"


def unified(path: str, before: bytes | None, after: bytes | None) -> str:
    """A file's change as a unified diff."""
    old, new = ((data or b"").decode("utf-8", "replace").replace("\r\n", "\n").splitlines() for data in (before, after))
    names = (f"a/{path}" if before is not None else "/dev/null", f"b/{path}" if after is not None else "/dev/null")
    return "".join(f"{line}\n" for line in difflib.unified_diff(old, new, *names, lineterm=""))
