"""What happened to memory, read from git: log, diff, why, and finding a memory by id, prefix or words.

History is the first-parent chain: a commit's changes are those against its first parent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from docmem import files, git, layout, trailers
from docmem.errors import FormatError, InputError, NotFound
from docmem.git import Change, Commit
from docmem.model import Memory, Source
from docmem.repository import Repository, Snapshot
from docmem.times import format_time

Op: TypeAlias = Literal["create", "update", "delete", "move"]

_HEX = re.compile(r"[0-9a-f]{4,40}")
_SHOWN = {"memory", "profile", "document", "config", "other"}


@dataclass(frozen=True, slots=True)
class Edit:
    """One file's change, read as memory. `id` for memories; texts where the file is one that has text."""

    op: Op
    kind: layout.FileKind
    path: str
    id: str | None = None
    subject: str | None = None
    before: str | None = None
    after: str | None = None
    moved_from: str | None = None

    def as_json(self) -> dict[str, Any]:
        """`{"op", "id", "path", …}`; texts are left to `diff`."""
        row: dict[str, Any] = {"op": self.op, "id": self.id, "path": self.path, "file": self.kind}
        return row | ({"from": self.moved_from} if self.moved_from else {})


@dataclass(frozen=True, slots=True)
class Entry:
    """One commit of the log."""

    revision: str
    when: datetime
    author: str
    subject: str
    thread: str | None
    turns: tuple[str, ...]
    edits: tuple[Edit, ...]

    def as_json(self) -> dict[str, Any]:
        """The row of `log --json`."""
        return {
            "revision": self.revision,
            "when": format_time(self.when),
            "author": self.author,
            "subject": self.subject,
            "thread": self.thread,
            "turns": list(self.turns),
            "changes": [edit.as_json() for edit in self.edits],
        }


@dataclass(frozen=True, slots=True)
class Step:
    """One change in the life of a memory, and where it came from."""

    revision: str
    when: datetime
    author: str
    op: Op
    path: str
    thread: str | None
    turns: tuple[str, ...]
    quote: str | None
    text: str | None
    approved_by: str | None = None

    def as_json(self) -> dict[str, Any]:
        """A row of `why --json`'s history."""
        return {
            "revision": self.revision,
            "when": format_time(self.when),
            "author": self.author,
            "op": self.op,
            "path": self.path,
            "thread": self.thread,
            "turns": list(self.turns),
            "quote": self.quote,
            "text": self.text,
            "approved_by": self.approved_by,
        }


@dataclass(frozen=True, slots=True)
class Life:
    """A memory and all that happened to it, oldest first. `text` is None once it is gone."""

    id: str
    path: str
    text: str | None
    steps: tuple[Step, ...]

    def as_json(self) -> dict[str, Any]:
        """The object of `why --json`."""
        return {
            "id": self.id,
            "path": self.path,
            "text": self.text,
            "history": [step.as_json() for step in self.steps],
        }


def log(
    repository: Repository, *, paths: Sequence[str] = (), limit: int | None = None, revision: str | None = None
) -> list[Entry]:
    """Commits, newest first, with what each did to memory. Watermarks are left out of the changes."""
    at = revision or repository.head()
    if at is None:
        return []
    commits = list(git.history(repository.git_dir, at, paths=paths, limit=limit))
    contents = _contents(repository, (change for commit in commits for change in commit.changes))
    return [_entry(commit, contents) for commit in commits]


def diff(repository: Repository, old: str | None, new: str) -> list[Edit]:
    """What changed between two revisions (without `old`: what `new` changed), read as memory."""
    base = old or _parent(repository, new)
    if base is None:
        changed: Sequence[Change] = next(git.history(repository.git_dir, new, limit=1)).changes
    else:
        changed = git.changes(repository.git_dir, base, new)
    return _edits(changed, _contents(repository, changed))


def _parent(repository: Repository, revision: str) -> str | None:
    return git.resolve(repository.git_dir, f"{revision}^1")


def patch(repository: Repository, old: str | None, new: str, *, color: bool = False) -> str:
    """The same as git prints it."""
    return git.patch(repository.git_dir, old or _parent(repository, new), new, color=color)


def _contents(repository: Repository, changed: Iterable[Change]) -> dict[str, bytes]:
    wanted = {
        blob
        for change in changed
        if layout.place(change.path).kind in {"memory", "profile", "document"}
        for blob in (change.old, change.new)
        if blob is not None
    }
    return dict(git.read_blobs(repository.git_dir, sorted(wanted))) if wanted else {}


def _entry(commit: Commit, contents: Mapping[str, bytes]) -> Entry:
    return Entry(
        revision=commit.id,
        when=commit.when,
        author=commit.author.name,
        subject=commit.subject,
        thread=trailers.decode(commit.trailer("Docmem-Thread") or "") or None,
        turns=trailers.decode_list(commit.trailer("Docmem-Turns") or ""),
        edits=tuple(_edits(commit.changes, contents)),
    )


def _thread(commit: Commit) -> str | None:
    value = commit.trailer("Docmem-Thread")
    return trailers.decode(value) if value is not None else None


def _edits(changed: Iterable[Change], contents: Mapping[str, bytes]) -> list[Edit]:
    shown = [change for change in changed if layout.place(change.path).kind in _SHOWN]
    return _join_moves([_edit(change, contents) for change in shown])


def _edit(change: Change, contents: Mapping[str, bytes]) -> Edit:
    spot = layout.place(change.path)
    before = contents.get(change.old or "")
    after = contents.get(change.new or "")
    memories = [_memory(change.path, data) if spot.kind == "memory" else None for data in (before, after)]
    known = memories[1] or memories[0]
    texts = [memory.text if memory else None for memory in memories]
    if spot.kind in {"profile", "document"}:
        texts = [data.decode("utf-8", "replace") if data is not None else None for data in (before, after)]
    ops: dict[str, Op] = {"A": "create", "M": "update", "D": "delete"}
    return Edit(
        op=ops[change.status],
        kind=spot.kind,
        path=change.path,
        id=known.id if known else None,
        subject=spot.subject or None,
        before=texts[0],
        after=texts[1],
    )


def _memory(path: str, data: bytes | None) -> Memory | None:
    try:
        return files.parse_memory(path, data) if data is not None else None
    except FormatError:
        return None


def _join_moves(edits: Sequence[Edit]) -> list[Edit]:
    """A deletion and an addition of one id are one memory that moved."""
    gone: dict[str | None, Edit] = {edit.id: edit for edit in edits if edit.op == "delete" and edit.id}
    came = {edit.id for edit in edits if edit.op == "create" and edit.id in gone}
    return [_moved(edit, gone) for edit in edits if not (edit.op == "delete" and edit.id in came)]


def _moved(edit: Edit, gone: Mapping[str | None, Edit]) -> Edit:
    if edit.op != "create" or edit.id not in gone:
        return edit
    old = gone[edit.id]
    op: Op = "move" if old.before == edit.after else "update"
    return Edit(op, edit.kind, edit.path, edit.id, edit.subject, old.before, edit.after, old.path)


# ---------------------------------------------------------------------------------------------------- one memory


def find_memory(repository: Repository, wanted: str) -> str | None:
    """The full id of the memory that an id or the start of one (4 digits or more) names, now or in the past.

    None where there is none. Raises `InputError` where several fit.
    """
    if not _HEX.fullmatch(wanted) or len(wanted) > 16:
        return None
    now = repository.snapshot()
    fits = {_id_at(repository, now.revision, path) for path in now.locate(f"{wanted}[0-9a-f]{{{16 - len(wanted)}}}")}
    found = sorted(memory for memory in fits if memory is not None)
    if not found:
        past = git.paths_ever(repository.git_dir, now.revision, f"subjects/**/*-{wanted}*.md")
        found = sorted({path.removesuffix(".md").rsplit("-", 1)[-1] for path in past})
    if len(found) > 1:
        raise InputError(f"{wanted} is the start of {len(found)} memories: {', '.join(found)}", hint="give more digits")
    return found[0] if found else None


def _id_at(repository: Repository, revision: str, path: str) -> str | None:
    memory = _memory(path, git.read_file(repository.git_dir, revision, path))
    return memory.id if memory else None


def find_by_words(repository: Repository, words: str) -> str:
    """The id of the one memory whose text holds these words, whatever their case. Raises `NotFound`, `InputError`."""
    now = repository.snapshot()
    paths = git.grep(repository.git_dir, now.revision, re.escape(words.strip()), "subjects", ignore_case=True)
    fits = {path: _id_at(repository, now.revision, path) for path in paths}
    found = {memory: path for path, memory in fits.items() if memory}
    if not found:
        raise NotFound(
            f"tenant {repository.tenant} has no memory that says {words!r}", hint="give its id, or words from its text"
        )
    if len(found) > 1:
        listed = "; ".join(sorted(f"{memory} {path}" for memory, path in found.items()))
        raise InputError(f"{len(found)} memories say {words!r}: {listed}", hint="give the id of one")
    return next(iter(found))


def why(repository: Repository, wanted: str) -> Life:
    """The life of a memory, named by id, the start of an id, or words of its text.

    Raises `NotFound`; `InputError` where several fit.
    """
    memory = find_memory(repository, wanted) or find_by_words(repository, wanted)
    now = repository.snapshot()
    commits = list(git.history(repository.git_dir, now.revision, paths=_paths(repository, now, memory)))
    life = tuple(step for commit in reversed(commits) for step in _steps(repository, commit, memory))
    if not life:
        raise NotFound(f"tenant {repository.tenant} has no memory {wanted}")
    return Life(id=memory, path=life[-1].path, text=life[-1].text, steps=life)


def _paths(repository: Repository, now: Snapshot, memory: str) -> list[str]:
    """Every path this memory has stood at: a move is a deletion and an addition in one commit."""
    found: list[str] = []
    pending = now.locate(memory) or git.paths_ever(repository.git_dir, now.revision, f"subjects/**/*-{memory}*.md")
    while pending:
        path = pending.pop()
        if path in found:
            continue
        found.append(path)
        for commit in git.history(repository.git_dir, now.revision, paths=[path]):
            if commit.changes[0].status == "A":
                whole = next(git.history(repository.git_dir, commit.id, limit=1))
                pending += [edit.moved_from for edit in _of(repository, whole, memory) if edit.moved_from]
    return found


def _of(repository: Repository, commit: Commit, memory: str) -> list[Edit]:
    edits = _edits(commit.changes, _contents(repository, commit.changes))
    return [edit for edit in edits if edit.id == memory]


def _steps(repository: Repository, commit: Commit, memory: str) -> list[Step]:
    return [_step(repository, commit, edit) for edit in _of(repository, commit, memory)]


def _step(repository: Repository, commit: Commit, edit: Edit) -> Step:
    stands = _memory(edit.path, git.read_file(repository.git_dir, commit.id, edit.path))
    source = stands.source if stands else Source()
    return Step(
        revision=commit.id,
        when=commit.when,
        author=commit.author.name,
        op=edit.op,
        path=edit.path,
        thread=trailers.decode(commit.trailer("Docmem-Thread") or "") or source.thread,
        turns=source.turns,
        quote=source.quote,
        text=edit.after,
        approved_by=trailers.decode(commit.trailer("Docmem-Approved-By") or "") or None,
    )
