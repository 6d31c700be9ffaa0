"""Take something back: undo what one commit, or the last change of one memory, did, on top of today's state.

What is undone is remembered in `reverted.yaml`, so that the same proposal is held next time; undoing a revert forgets
that again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from docmem import files, git, history, layout, transplant
from docmem.errors import InputError
from docmem.git import Author
from docmem.repository import Repository, Snapshot
from docmem.transplant import Carried, Version
from docmem.wording import likeness


@dataclass(frozen=True, slots=True)
class Plan:
    """What a revert of commit `target` will write on revision `base`.

    `conflicts` names the memories and paths that were changed since in the same place.
    """

    target: str
    base: str
    files: Mapping[str, bytes | None]
    conflicts: tuple[str, ...]
    deletes: int

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


def plan(repository: Repository, target: str) -> Plan:
    """Work out what taking back `target` (a commit, or a memory's id) means today. Changes nothing.

    A memory's last change is undone: what created it removes it, what changed it brings the text before back, what
    deleted it restores it. A revert is no such change, so taking a memory back twice is taking it back once.
    Raises `NotFound`, `InputError`.
    """
    commit_id, memory = _resolve(repository, target)
    commit = next(git.history(repository.git_dir, commit_id, limit=1))
    if not commit.parents:
        raise InputError(f"{commit_id[:12]} is the first commit: it laid down the format", hint="nothing to take back")
    undo = [
        shift.reversed()
        for shift in transplant.shifts(repository, commit.changes)
        if memory is None or shift.id == memory
    ]
    now = repository.snapshot()
    carried = transplant.carry(now, undo, secret=repository.settings.secret_bytes())
    kept, doubled = _without_doubles(now, carried)
    written = kept | _reverted_yaml(now, carried)
    return Plan(commit_id, now.revision, written, (*carried.conflicts, *doubled), carried.deletes)


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
        if memory.id in stored:
            doubled.append(memory.id)
        else:
            del kept[path]
    return kept, doubled


def _reverted_yaml(now: Snapshot, carried: Carried) -> dict[str, bytes]:
    marks = now.marks.without(carried.come)
    marks = replace(marks, reverted=marks.reverted | carried.gone)
    return {layout.REVERTED: files.render_reverted(marks)} if marks != now.marks else {}


def apply(repository: Repository, target: str, *, now: datetime, author: Author) -> Reverted:
    """Take `target` back in one commit. With a conflict nothing is written; with nothing left to undo, neither.

    Raises what `plan` raises.
    """
    with repository.locked():
        planned = plan(repository, target)
        if planned.conflicts or not planned.changed:
            return Reverted(None, (), planned.conflicts)
        revision = repository.commit(planned.base, planned.files, message=_message(planned), now=now, author=author)
    return Reverted(revision, tuple(planned.changed), ())


def _message(planned: Plan) -> str:
    deletes = f"Docmem-Deletes: {planned.deletes}\n" if planned.deletes else ""
    return f"Revert {planned.target[:12]}\n\n{history.REVERTS}: {planned.target}\n{deletes}"


def _resolve(repository: Repository, target: str) -> tuple[str, str | None]:
    """(commit, memory id or None)."""
    now = repository.snapshot()
    memory = history.find_memory(repository, target, now=now)
    commits = git.commits_with_prefix(repository.git_dir, target) if len(target) >= 4 and memory != target else []
    if memory and commits:
        raise InputError(f"{target} is the start of a memory's id and of a commit's", hint="give more digits")
    if memory:
        return history.last_change(repository, memory, now=now), memory
    commit = _only(commits, target) if commits else repository.revision(target)
    if not git.is_ancestor(repository.git_dir, commit, repository.snapshot().revision):
        raise InputError(f"{target} is not part of main", hint=f"see: docmem log {repository.tenant}")
    return commit, None


def _only(commits: list[str], target: str) -> str:
    if len(commits) > 1:
        raise InputError(f"{target} is the start of {len(commits)} commits", hint="give more digits")
    return commits[0]
