"""Take something back: undo what one commit, or the last change of one memory, did, on top of today's state.

Undoing is three-way and by memory id, not by line: a neighbour edited since is no conflict, and neither is another
key of the same memory. What is undone is remembered in `reverted.yaml`, so that the same proposal is held next time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from docmem import files, git, history, layout
from docmem.document import decode, split
from docmem.errors import FormatError, InputError
from docmem.git import Author, Change
from docmem.names import statement_hash
from docmem.repository import Repository, Snapshot
from docmem.splice import DELETE, KeyPath
from docmem.strictyaml import load_mapping

_NOT_LEARNED = ("last_interaction_at",)  # when somebody last called is no learning, and every window moves it


@dataclass(frozen=True)
class Plan:
    """What a revert will write. `conflicts` names memories and paths that changed since in the same place."""

    target: str
    base: str
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    conflicts: tuple[str, ...] = ()
    taken_back: frozenset[str] = frozenset()
    restored: frozenset[str] = frozenset()
    deletes: int = 0

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
    deleted it restores it. Raises `NotFound`, `InputError`.
    """
    commit_id, memory = _resolve(repository, target)
    commit = next(git.history(repository.git_dir, commit_id, limit=1))
    if not commit.parents:
        raise InputError(f"{commit_id[:12]} is the first commit: it laid down the format", hint="nothing to take back")
    now = repository.snapshot()
    undo = _Undo(repository, now)
    for group in _by_memory(repository, commit.changes, only=memory):
        undo.add(group)
    return undo.plan(commit_id)


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
    return f"Revert {planned.target[:12]}\n\nDocmem-Reverts: {planned.target}\n{deletes}"


def _resolve(repository: Repository, target: str) -> tuple[str, str | None]:
    """(commit, memory id or None)."""
    memory = history.find_memory(repository, target)
    commits = git.commits_with_prefix(repository.git_dir, target) if len(target) >= 4 else []
    if memory and commits:
        raise InputError(f"{target} is the start of a memory's id and of a commit's", hint="give more digits")
    if memory:
        return history.why(repository, memory).steps[-1].revision, memory
    commit = repository.revision(target) if not commits else _only(commits, target)
    head = repository.snapshot().revision
    if not git.is_ancestor(repository.git_dir, commit, head):
        raise InputError(f"{target} is not part of main", hint=f"see: docmem log {repository.tenant}")
    return commit, None


def _only(commits: list[str], target: str) -> str:
    if len(commits) > 1:
        raise InputError(f"{target} is the start of {len(commits)} commits", hint="give more digits")
    return commits[0]


@dataclass(frozen=True, slots=True)
class _Group:
    """All that one commit did to one memory (or other file): where it stood before and after, and its bytes."""

    id: str | None
    before_path: str | None
    before: bytes | None
    after_path: str | None
    after: bytes | None

    @property
    def name(self) -> str:
        return self.id or self.after_path or self.before_path or ""


def _by_memory(repository: Repository, changed: Iterable[Change], *, only: str | None) -> list[_Group]:
    groups: dict[str, _Group] = {}
    for change in changed:
        kind = layout.place(change.path).kind
        if kind in {"watermark", "reverted"}:
            continue
        before = git.read_blob(repository.git_dir, change.old) if change.old else None
        after = git.read_blob(repository.git_dir, change.new) if change.new else None
        memory = _id_of(change.path, after or before) if kind == "memory" else None
        if only is not None and memory != only:
            continue
        fresh = _Group(memory, change.path if change.old else None, before, change.path if change.new else None, after)
        groups[fresh.name] = _joined(groups[fresh.name], fresh) if fresh.name in groups else fresh
    return list(groups.values())


def _joined(one: _Group, other: _Group) -> _Group:
    """Two halves of a move."""
    gone, came = (one, other) if one.before is not None else (other, one)
    return _Group(one.id, gone.before_path, gone.before, came.after_path, came.after)


def _id_of(path: str, data: bytes | None) -> str | None:
    try:
        return files.parse_memory(path, data).id if data is not None else None
    except FormatError:
        return None


class _Undo:
    """Collects what undoing each group means against today's files."""

    def __init__(self, repository: Repository, now: Snapshot) -> None:
        self._repository = repository
        self._now = now
        self._files: dict[str, bytes | None] = {}
        self._conflicts: list[str] = []
        self._taken_back: set[str] = set()
        self._restored: set[str] = set()
        self._deletes = 0

    def add(self, group: _Group) -> None:
        path = self._path_today(group)
        today = self._now.read(path) if path else None
        if today == group.before and path == (group.before_path or path):
            return  # taken back already
        if group.after is None:
            self._restore(group, today)
        elif today is None:
            if group.before is not None:
                self._conflicts.append(group.name)
        elif group.before is None:
            self._remove(group, path or "", today)
        else:
            self._undo_edit(group, path or "", today)

    def _path_today(self, group: _Group) -> str | None:
        path = group.after_path or group.before_path or ""
        if group.id is None or _id_of(path, self._now.read(path)) == group.id:
            return path
        found = self._now.locate(group.id)
        return found[0] if found else None

    def _restore(self, group: _Group, today: bytes | None) -> None:
        if today is not None:
            self._conflicts.append(group.name)
            return
        assert group.before_path is not None
        assert group.before is not None
        self._files[group.before_path] = group.before
        self._statement(group.before_path, group.before, self._restored)

    def _remove(self, group: _Group, path: str, today: bytes) -> None:
        assert group.after is not None
        if today != group.after and not _only_head_changed(group.after, today):
            self._conflicts.append(group.name)
            return
        self._files[path] = None
        self._deletes += 1
        self._statement(path, today, self._taken_back)

    def _undo_edit(self, group: _Group, path: str, today: bytes) -> None:
        assert group.before is not None
        assert group.after is not None
        try:
            undone = _three_way(path, base=group.after, ours=today, theirs=group.before)
        except FormatError:
            undone = git.merge_file(group.after, today, group.before)
        if undone is None:
            self._conflicts.append(group.name)
            return
        moved = group.before_path is not None and group.before_path != group.after_path and path == group.after_path
        if moved:
            self._files[path] = None
        if moved or undone != today:
            self._files[group.before_path or path if moved else path] = undone
            self._statement(path, today, self._taken_back)
            self._statement(path, undone, self._restored)

    def _statement(self, path: str, data: bytes, into: set[str]) -> None:
        if layout.place(path).kind == "memory":
            try:
                memory = files.parse_memory(path, data)
            except FormatError:
                return
            into.add(statement_hash(memory.subject, memory.text))

    def plan(self, commit: str) -> Plan:
        planned = dict(self._files)
        taken_back = self._taken_back - self._restored
        reverted = (self._now.reverted | taken_back) - self._restored
        if planned and reverted != self._now.reverted:
            planned[layout.REVERTED] = files.render_reverted(frozenset(reverted))
        return Plan(
            target=commit,
            base=self._now.revision,
            files=planned,
            conflicts=tuple(self._conflicts),
            taken_back=frozenset(taken_back),
            restored=frozenset(self._restored),
            deletes=self._deletes,
        )


def _only_head_changed(base: bytes, today: bytes) -> bool:
    """Whether a memory still says the same; its importance or a link may have been touched."""
    try:
        return split(base).head is not None and split(base).body.strip() == split(today).body.strip()
    except FormatError:
        return False


def _three_way(path: str, *, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Bring `theirs` back over `base` into `ours`, key by key. None on a conflict. Raises `FormatError`."""
    kind = layout.place(path).kind
    if kind == "memory":
        return _merge_memory(base, ours, theirs)
    if kind == "profile":
        keys = _merge_keys(*(_flat(load_mapping(decode(data)[0])) for data in (base, ours, theirs)))
        return files.edit_yaml(ours, keys) if keys is not None else None
    return git.merge_file(base, ours, theirs)


def _merge_memory(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    parts = [split(data) for data in (base, ours, theirs)]
    keys = _merge_keys(*(_flat(part.mapping()) for part in parts))
    old, today, wanted = (part.body.strip() for part in parts)
    if keys is None or (old != wanted and today not in {old, wanted}):
        return None
    return files.edit_memory(ours, keys, text=wanted if old != wanted else None)


def _flat(values: Mapping[str, Any]) -> dict[KeyPath, Any]:
    """Attributes one by one, other keys whole."""
    flat: dict[KeyPath, Any] = {}
    for key, value in values.items():
        if key == "attributes" and isinstance(value, dict):
            flat |= {(key, name): item for name, item in value.items()}
        elif key not in _NOT_LEARNED:
            flat[(key,)] = value
    return flat


def _merge_keys(
    base: Mapping[KeyPath, Any], ours: Mapping[KeyPath, Any], theirs: Mapping[KeyPath, Any]
) -> dict[KeyPath, Any] | None:
    changes: dict[KeyPath, Any] = {}
    for key in base.keys() | theirs.keys():
        old, today, wanted = (values.get(key, DELETE) for values in (base, ours, theirs))
        if old == wanted or today == wanted:
            continue
        if today != old:
            return None
        changes[key] = wanted
    return changes
