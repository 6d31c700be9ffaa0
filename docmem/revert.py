"""Take something back: undo what one commit, the last change of one memory, or a whole conversation did, on top of
today's state.

What is undone is remembered in `reverted.yaml`, so that the same proposal is held next time; undoing a revert forgets
that again.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from docmem import files, git, history, layout, pairs, transplant
from docmem.errors import Conflict, InputError, NotFound
from docmem.git import Author, Commit
from docmem.repository import Repository, Snapshot
from docmem.transplant import Carried, Version
from docmem.wording import likeness

_TRIES = 8
_COUNTED = {"memory", "profile", "document"}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a revert of the commits `targets` (newest first) will write on revision `base`.

    `conflicts` names the memories and paths that were changed since in the same place. `thread`: the conversation that
    is taken back as a whole.
    """

    targets: tuple[str, ...]
    base: str
    files: Mapping[str, bytes | None]
    conflicts: tuple[str, ...]
    deletes: int
    thread: str | None = None

    @property
    def changed(self) -> list[str]:
        """Paths that will change, `reverted.yaml` left out."""
        return sorted(path for path in self.files if path != layout.REVERTED)


@dataclass(frozen=True, slots=True)
class Reverted:
    """What a revert did."""

    revision: str | None
    changed: tuple[str, ...]
    conflicts: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The object of `revert --json`."""
        return {"revision": self.revision, "changed": list(self.changed), "conflicts": list(self.conflicts)}


@dataclass(frozen=True)
class _Staged(Snapshot):
    """A revision with some files written over it, as if they were committed."""

    written: Mapping[str, bytes | None] = field(default_factory=dict)

    def read(self, path: str) -> bytes | None:
        return self.written[path] if path in self.written else super().read(path)

    def locate(self, memory: str) -> list[str]:
        stay = [path for path in super().locate(memory) if path not in self.written]
        come = (path for path, data in self.written.items() if data is not None)
        return stay + [path for path in come if transplant.id_of(Version(path, self.written[path] or b"")) == memory]


@dataclass(frozen=True, slots=True)
class _Target:
    """What is taken back: commits, newest first, and of these perhaps one memory's changes alone."""

    commits: tuple[Commit, ...]
    memory: str | None = None
    thread: str | None = None


def plan(repository: Repository, target: str, *, relearn: bool = False) -> Plan:
    """Work out what taking back `target` (a commit, a memory's id, or a thread) means today. Changes nothing.

    A memory's last change is undone: what created it removes it, what changed it brings the text before back, what
    moved it moves it back, what deleted it restores it. A revert is no such change, so taking a memory back twice is
    taking it back once.
    Of a thread all that its commits did is undone, the newest first, as if each were taken back in turn.

    `relearn`: the conversation is to be read again from there on: its watermark goes back as well, and what is undone
    isn't remembered as taken back. Raises `NotFound`, `InputError`.
    """
    meant = _resolve(repository, target)
    now = repository.snapshot()
    carried = _undone(repository, now, meant)
    kept, doubled = _without_doubles(now, carried)
    written = kept | _reverted_yaml(now, replace(carried, gone=frozenset()) if relearn else carried)
    if relearn:
        written |= _watermarks(repository, meant)
    return Plan(
        tuple(commit.id for commit in meant.commits),
        now.revision,
        written,
        tuple(dict.fromkeys((*carried.conflicts, *doubled))),
        _deletes(now, written),
        meant.thread,
    )


def _undone(repository: Repository, now: Snapshot, meant: _Target) -> Carried:
    """All commits undone in turn, each on what undoing those after it leaves. What stands as before them all, stays."""
    secret = repository.settings.secret_bytes()
    total = Carried()
    shifts = [transplant.shifts(repository, commit.changes) for commit in meant.commits]
    before = {shift.name: shift for each in shifts for shift in each}
    stands = {name for name, first in before.items() if transplant.stands(transplant.today(now, first), first.old)}
    for each in shifts:
        undo = [
            shift.reversed()
            for shift in each
            if (meant.memory is None or shift.id == meant.memory) and shift.name not in stands
        ]
        step = transplant.carry(_Staged(now.git_dir, now.revision, total.files), undo, secret=secret)
        total = Carried(
            {**total.files, **step.files},
            (*total.conflicts, *step.conflicts),
            (total.gone - step.come) | step.gone,
            (total.come - step.gone) | step.come,
        )
    return replace(total, files={path: data for path, data in total.files.items() if now.read(path) != data})


def _watermarks(repository: Repository, meant: _Target) -> dict[str, bytes | None]:
    """The watermarks as they were before the first of these commits. Raises `InputError` where none moved one."""
    before = {
        change.path: change.old
        for commit in meant.commits
        for change in commit.changes
        if layout.place(change.path).kind == "watermark"
    }
    if not before:
        raise InputError("that read no conversation", hint="there is nothing to learn again: leave --relearn out")
    return {path: git.read_blob(repository.git_dir, blob) if blob else None for path, blob in before.items()}


def _deletes(now: Snapshot, written: Mapping[str, bytes | None]) -> int:
    """How many memories, profiles and documents go; what stands elsewhere afterwards has only moved."""
    before = {path: now.read(path) for path in written if layout.place(path).kind in _COUNTED}
    gone = Counter(_identity(path, data) for path, data in before.items() if data is not None)
    come = Counter(_identity(path, data) for path, data in written.items() if data is not None)
    return sum(count for each, count in (gone - come).items() if each not in written or written[each] is None)


def _identity(path: str, data: bytes) -> str:
    """What tells a memory, or another file, whatever it is called by now."""
    return (pairs.claimed_id(data) if layout.place(path).kind == "memory" else None) or path


def _without_doubles(now: Snapshot, carried: Carried) -> tuple[dict[str, bytes | None], list[str]]:
    """What to write but for memories that would come back while another one says the same by now.

    Of a memory that stands and would get such a text back, the id is returned: a person has to choose between the two.
    """
    kept = dict(carried.files)
    doubled = []
    for path, data in carried.files.items():
        memory = files.parse_memory(path, data) if data and transplant.id_of(Version(path, data)) else None
        if memory is None:
            continue
        stored = {each.memory.id: each for each in now.memories(memory.subject)}
        others = (each.memory for each in stored.values() if each.path not in kept)
        if not any(each.agent == memory.agent and likeness(each.text, memory.text) == "same" for each in others):
            continue
        leaves = now.read(path)
        if memory.id in stored:
            doubled.append(memory.id)
        elif leaves is None:
            del kept[path]
        else:
            kept[path] = None
    return kept, doubled


def _reverted_yaml(now: Snapshot, carried: Carried) -> dict[str, bytes]:
    marks = now.marks.without(carried.come)
    marks = replace(marks, reverted=marks.reverted | carried.gone)
    return {layout.REVERTED: files.render_reverted(marks)} if marks != now.marks else {}


def apply(repository: Repository, target: str, *, now: datetime, author: Author, relearn: bool = False) -> Reverted:
    """Take `target` back in one commit. With a conflict nothing is written; with nothing left to undo, neither.

    Raises what `plan` raises.
    """
    with repository.locked():
        for _ in range(_TRIES):
            with contextlib.suppress(Conflict):  # a push came in between: it doesn't take our lock
                return _applied(repository, plan(repository, target, relearn=relearn), now=now, author=author)
        return _applied(repository, plan(repository, target, relearn=relearn), now=now, author=author)


def _applied(repository: Repository, planned: Plan, *, now: datetime, author: Author) -> Reverted:
    if planned.conflicts or not planned.changed:
        return Reverted(None, (), planned.conflicts)
    revision = repository.commit(planned.base, planned.files, message=_message(planned), now=now, author=author)
    return Reverted(revision, tuple(planned.changed), ())


def _message(planned: Plan) -> str:
    what = "a conversation" if planned.thread else planned.targets[0][:12]
    reverts = "".join(f"{history.REVERTS}: {commit}\n" for commit in planned.targets)
    deletes = f"Docmem-Deletes: {planned.deletes}\n" if planned.deletes else ""
    return f"Revert {what}\n\n{reverts}{deletes}"


def _resolve(repository: Repository, target: str) -> _Target:
    now = repository.snapshot()
    memory = history.find_memory(repository, target, now=now)
    commits = git.commits_with_prefix(repository.git_dir, target) if len(target) >= 4 and memory != target else []
    if memory and commits:
        raise InputError(f"{target} is the start of a memory's id and of a commit's", hint="give more digits")
    if memory:
        return _Target((_undoable(history.last_change(repository, memory, now=now)),), memory=memory)
    if not commits and not repository.has_revision(target):
        return _thread(repository, target)
    commit = _only(commits, target) if commits else repository.revision(target)
    if not git.is_ancestor(repository.git_dir, commit, repository.snapshot().revision):
        raise InputError(f"{target} is not part of main", hint=f"see: docmem log {repository.tenant}")
    return _Target((_undoable(next(git.history(repository.git_dir, commit, limit=1))),))


def _thread(repository: Repository, target: str) -> _Target:
    taught = history.taught(repository, target)
    if not taught:
        raise NotFound(
            f"tenant {repository.tenant} has no commit, memory or conversation {target!r}",
            hint=f"see: docmem log {repository.tenant}",
        )
    return _Target(tuple(taught), thread=target)


def _undoable(commit: Commit) -> Commit:
    if not commit.parents:
        raise InputError(f"{commit.id[:12]} is the first commit: it laid down the format", hint="nothing to take back")
    return commit


def _only(commits: list[str], target: str) -> str:
    if len(commits) > 1:
        raise InputError(f"{target} is the start of {len(commits)} commits", hint="give more digits")
    return commits[0]
