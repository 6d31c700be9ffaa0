"""What happened to memory, read from git: log, diff, at, why, and finding a memory by id, prefix or words.

History is the first-parent chain: a commit's changes are those against its first parent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import Any, Literal, TypeAlias

from docmem import files, git, layout, pairs, trailers
from docmem.errors import FormatError, InputError, NotFound
from docmem.git import Change, Commit
from docmem.model import Memory, Source
from docmem.pairs import Half, Pair
from docmem.repository import Repository, Snapshot, StoredMemory
from docmem.times import format_time

Op: TypeAlias = Literal["create", "update", "delete", "move"]

_HEX = re.compile(r"[0-9a-f]{4,40}")
_THREAD = "Docmem-Thread"
_FEW = 64
_TELLING = 10
"""So many digits are told from all others by themselves."""
_LISTED = 20
"""So many memories are named where several fit."""
REVERTS = "Docmem-Reverts"
"""Trailer of a commit that takes another one back."""

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
    approved_by: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The row of `log --json`."""
        return {
            "revision": self.revision,
            "when": format_time(self.when),
            "author": self.author,
            "subject": self.subject,
            "thread": self.thread,
            "turns": list(self.turns),
            "approved_by": self.approved_by,
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
    before: str | None = None

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
    """A memory, or another file, and all that happened to it, oldest first.

    `id`: None for what is no memory. `text` is None once it is gone; where the file can't be read any more (`readable`
    is False) it is what it said last, which stays served.
    """

    id: str | None
    path: str
    text: str | None
    steps: tuple[Step, ...]
    readable: bool = True

    def as_json(self) -> dict[str, Any]:
        """The object of `why --json`."""
        return {
            "id": self.id,
            "path": self.path,
            "text": self.text,
            "readable": self.readable,
            "history": [step.as_json() for step in self.steps],
        }


@dataclass(frozen=True, slots=True)
class Span:
    """The part of main from one time on (`since`) and up to another (`until`), each included.

    Over effective times (see `git.times`), not over the clocks of those who committed.
    """

    since: datetime | None = None
    until: datetime | None = None

    def __bool__(self) -> bool:
        return self.since is not None or self.until is not None


def at(repository: Repository, when: datetime) -> str | None:
    """The revision that main was at then; None before the first commit."""
    head = repository.head()
    if head is None:
        return None
    seconds = when.timestamp()
    return next((commit for commit, time in git.times(repository.git_dir, head).items() if time <= seconds), None)


def ends(repository: Repository, span: Span) -> tuple[str | None, str | None]:
    """(the last revision before the span, the last one in it), None where there is none."""
    head = repository.head()
    if head is None or not span:
        return None, head
    times = git.times(repository.git_dir, head)
    since, until = (limit.timestamp() if limit is not None else None for limit in (span.since, span.until))
    within = (commit for commit, time in times.items() if until is None or time <= until)
    before = (commit for commit, time in times.items() if since is not None and time < since)
    return next(before, None), next(within, None)


def log(
    repository: Repository,
    *,
    paths: Sequence[str] = (),
    memory: str | None = None,
    limit: int | None = None,
    revision: str | None = None,
    thread: str | None = None,
    span: Span | None = None,
) -> list[Entry]:
    """Commits, newest first, with what each did to memory. Watermarks are left out of the changes.

    `paths`: only commits that change one of these files or folders, and only these changes. `memory`: of these only
    those of the memory with this id. `thread`: only those that came of this conversation.
    """
    before, last = ends(repository, span or Span())
    newest = revision or last
    if newest is None or newest == before:
        return []
    with _times(repository, newest) as when:
        commits = _commits(repository, newest, before, paths, limit if memory is None else None, thread)
        commits, contents = _about(repository, commits, paths)
    times = when.result()
    entries = [_entry(commit, contents, git.time(times[commit.id])) for commit in commits]
    told = (replace(entry, edits=tuple(_concerning(entry.edits, paths, memory))) for entry in entries)
    return list(islice((entry for entry in told if memory is None or entry.edits), limit))


@contextmanager
def _times(repository: Repository, revision: str) -> Iterator[Future[dict[str, int]]]:
    """The effective times, which git tells while the block runs."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        yield pool.submit(git.times, repository.git_dir, revision)


def _commits(
    repository: Repository, newest: str, before: str | None, paths: Sequence[str], limit: int | None, thread: str | None
) -> list[Commit]:
    whole = bool(paths)
    if thread is None:
        return list(git.history(repository.git_dir, newest, since=before, paths=paths, limit=limit, whole=whole))
    said = f"{_THREAD}: {trailers.encode(thread)}"
    found = git.history(repository.git_dir, newest, since=before, paths=paths, saying=said, whole=whole)
    return list(islice((commit for commit in found if _thread(commit) == thread), limit))


def taught(repository: Repository, thread: str) -> list[Commit]:
    """The commits that came of a conversation, newest first."""
    head = repository.head()
    return _commits(repository, head, None, (), None, thread) if head is not None else []


def paths_of(repository: Repository, *, subject: str | None = None, memory: str | None = None) -> list[str]:
    """The folder of a subject (a key), and every path at which a memory has stood, for `log` and `diff`."""
    found = [layout.subject_dir(subject)] if subject is not None else []
    return found + (sorted({step.path for step in why(repository, memory).steps}) if memory is not None else [])


def diff(
    repository: Repository, old: str | None, new: str, *, paths: Sequence[str] = (), memory: str | None = None
) -> list[Edit]:
    """What changed between two revisions (without `old`: what `new` changed), read as memory. See `log`."""
    base = old or _parent(repository, new)
    if base is None:
        changed: Sequence[Change] = next(git.history(repository.git_dir, new, limit=1)).changes
    else:
        changed = git.changes(repository.git_dir, base, new)
    return _concerning(_edits(changed, _contents(repository, changed)), paths, memory)


def _concerning(edits: Iterable[Edit], paths: Sequence[str], memory: str | None) -> list[Edit]:
    """Those at these paths, or from there; of one memory, if that is asked for."""
    within = _within(paths)
    here = (edit for edit in edits if within(edit.path) or (edit.moved_from is not None and within(edit.moved_from)))
    return [edit for edit in here if memory is None or edit.id == memory]


def _within(paths: Sequence[str]) -> Callable[[str], bool]:
    exact, prefixes = frozenset(paths), tuple(f"{path}/" for path in paths)
    return lambda path: not exact or path in exact or path.startswith(prefixes)


def thread_diff(repository: Repository, thread: str) -> list[Edit]:
    """What a conversation's commits changed, taken together: each file before the first and after the last of them."""
    first: dict[str, str | None] = {}
    last: dict[str, str | None] = {}
    for commit in reversed(taught(repository, thread)):
        for change in commit.changes:
            first.setdefault(change.path, change.old)
            last[change.path] = change.new
    changed = [_change(path, old, last[path]) for path, old in sorted(first.items()) if old != last[path]]
    return _edits(changed, _contents(repository, changed))


def _change(path: str, old: str | None, new: str | None) -> Change:
    return Change("A" if old is None else "D" if new is None else "M", path, old, new)


def _parent(repository: Repository, revision: str) -> str | None:
    return git.resolve(repository.git_dir, f"{revision}^1")


def patch(repository: Repository, old: str | None, new: str, *, paths: Sequence[str] = (), color: bool = False) -> str:
    """The same as git prints it."""
    return git.patch(repository.git_dir, old or _parent(repository, new), new, paths, color=color)


def _contents(repository: Repository, changed: Iterable[Change]) -> dict[str, bytes]:
    wanted = {
        blob
        for change in changed
        if layout.place(change.path).kind in {"memory", "profile", "document"}
        for blob in (change.old, change.new)
        if blob is not None
    }
    if len(wanted) <= _FEW:  # the reader that is open already answers sooner than a new process starts
        return {blob: git.read_blob(repository.git_dir, blob) for blob in wanted}
    return dict(git.read_blobs(repository.git_dir, sorted(wanted)))


def _entry(commit: Commit, contents: Mapping[str, bytes], when: datetime) -> Entry:
    return Entry(
        revision=commit.id,
        when=when,
        author=commit.author.name,
        subject=commit.subject,
        thread=_thread(commit),
        turns=trailers.decode_list(commit.trailer("Docmem-Turns") or ""),
        edits=tuple(_edits(commit.changes, contents)),
        approved_by=_approved_by(commit),
    )


def _approved_by(commit: Commit) -> str | None:
    return trailers.decode(commit.trailer("Docmem-Approved-By") or "") or None


def _thread(commit: Commit) -> str | None:
    return trailers.decode(commit.trailer(_THREAD) or "") or None


def _edits(changed: Iterable[Change], contents: Mapping[str, bytes]) -> list[Edit]:
    shown = [change for change in changed if layout.place(change.path).kind in _SHOWN]
    return [_edit(pair, contents) for pair in pairs.pairs(shown, contents.__getitem__)]


def _edit(pair: Pair, contents: Mapping[str, bytes]) -> Edit:
    spot = layout.place(pair.path)
    before, after = (_text(half, contents) for half in (pair.old, pair.new))
    moved_from = pair.old.path if pair.old and pair.new and pair.old.path != pair.new.path else None
    op: Op = "create" if pair.old is None else "delete" if pair.new is None else "update"
    if moved_from is not None and before == after:
        op = "move"
    return Edit(op, spot.kind, pair.path, pair.id, spot.subject or None, before, after, moved_from)


def _text(half: Half | None, contents: Mapping[str, bytes]) -> str | None:
    if half is None or half.blob not in contents:
        return None
    if layout.place(half.path).kind != "memory":
        return contents[half.blob].decode("utf-8", "replace")
    memory = _memory(half.path, contents[half.blob])
    return memory.text if memory else None


@lru_cache(maxsize=256)  # along a memory's life each version is asked for as the one after and the one before
def _memory(path: str, data: bytes | None) -> Memory | None:
    try:
        return files.parse_memory(path, data) if data is not None else None
    except FormatError:
        return None


@dataclass(frozen=True, slots=True)
class Remembered:
    """What stood about one subject at a revision. `profile` is the file's text."""

    subject: str
    label: str | None
    memories: tuple[StoredMemory, ...]
    profile: str

    def as_json(self) -> dict[str, Any]:
        """A subject of `at --json`."""
        return {
            "subject": self.subject,
            "label": self.label,
            "memories": [
                {"id": each.memory.id, "path": each.path, "kind": each.memory.kind, "text": each.memory.text}
                for each in self.memories
            ],
            "profile": self.profile or None,
        }


def remembered(repository: Repository, revision: str, subject: str | None = None) -> list[Remembered]:
    """What main said about a subject, or about each, at a revision. Files that can't be read are left out."""
    then = repository.snapshot(revision)
    spots = (layout.place(path) for path in then.subject_paths)
    subjects = [subject] if subject is not None else sorted({spot.subject for spot in spots if spot.subject})
    return [_remembered(then, each) for each in subjects]


def _remembered(then: Snapshot, subject: str) -> Remembered:
    profile = then.profile_bytes(subject)
    try:
        label = then.profile(subject).label
    except FormatError:
        label = None
    return Remembered(subject, label, tuple(then.memories(subject)), profile.decode("utf-8", "replace"))


# ---------------------------------------------------------------------------------------------------- one memory


def find_memory(repository: Repository, wanted: str, *, now: Snapshot | None = None) -> str | None:
    """The full id of the memory that an id or the start of one (4 digits or more) names, at `now` or before.

    None where there is none. Raises `InputError` where several fit.
    """
    if not _HEX.fullmatch(wanted) or len(wanted) > 16:
        return None
    now = now or repository.snapshot()
    fits = {_id_at(repository, now.revision, path) for path in now.locate(wanted)}
    found = sorted(memory for memory in fits if memory is not None)
    if not found and not _is_a_commits(repository, wanted):
        found = sorted(ever(repository, wanted))
    if len(found) > 1:
        raise InputError(f"{wanted} is the start of {len(found)} memories: {', '.join(found)}", hint="give more digits")
    return found[0] if found else None


def _is_a_commits(repository: Repository, wanted: str) -> bool:
    """Whether digits name a commit, as docmem prints one: so many are no memory's as well, and no search is needed."""
    return _TELLING <= len(wanted) < 16 and bool(git.commits_with_prefix(repository.git_dir, wanted))


def ever(repository: Repository, wanted: str) -> dict[str, set[str]]:
    """Each memory whose id is `wanted`, or starts so, and every path at which a commit of any ref has had it.

    Told by what the files say: people rename them. O(history): every version below `subjects/` is read.
    """
    versions = git.versions_ever(repository.git_dir, "subjects")
    contents = git.read_blobs(repository.git_dir, sorted({blob for _, blob in versions})) if versions else ()
    digits = wanted.encode()
    ids = {blob: pairs.claimed_id(data) for blob, data in contents if digits in data}
    found: dict[str, set[str]] = {}
    for path, blob in versions:
        memory = ids.get(blob)
        if memory is not None and memory.startswith(wanted) and layout.place(path).kind == "memory":
            found.setdefault(memory, set()).add(path)
    return found


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
        raise InputError(
            f"{len(found)} memories say {words!r}:\n{_candidates(repository, now, found)}", hint="give the id of one"
        )
    return next(iter(found))


def _candidates(repository: Repository, now: Snapshot, found: Mapping[str, str]) -> str:
    """Memories to choose from, a line each: id, subject and text."""
    lines = []
    for memory, path in sorted(found.items(), key=lambda each: each[1])[:_LISTED]:
        known = _memory(path, git.read_file(repository.git_dir, now.revision, path))
        says = " ".join(known.text.split())[:80] if known is not None else path
        lines.append(f"  {memory}  {layout.place(path).subject[:12]}  {says}")
    more = len(found) - len(lines)
    return "\n".join(lines + ([f"  and {more} more"] if more else []))


def why(repository: Repository, wanted: str) -> Life:
    """The life of a memory, named by id, the start of an id, its file's path or words of its text; or of another file.

    Raises `NotFound`; `InputError` where several fit.
    """
    now = repository.snapshot()
    memory = find_memory(repository, wanted, now=now)
    if memory is None and _is_path(wanted):
        at_path = _life_of_file(repository, now, wanted)
        if at_path is not None and at_path.id is None:
            return at_path
        memory = at_path.id if at_path is not None else None
    memory = memory or find_by_words(repository, wanted)
    with _times(repository, now.revision) as when:
        touched = _touching(repository, now, memory)
    times = when.result()
    life = tuple(
        _step(repository, touched[commit][0], edit, git.time(times[commit]))
        for commit in reversed(times)
        if commit in touched
        for edit in touched[commit][1]
    )
    if not life:
        raise NotFound(f"tenant {repository.tenant} has no memory {wanted}")
    last = life[-1]
    readable = last.op == "delete" or last.text is not None
    said = last.text if readable else next((step.text for step in reversed(life) if step.text is not None), None)
    return Life(id=memory, path=last.path, text=said, steps=life, readable=readable)


def _is_path(wanted: str) -> bool:
    return "/" in wanted or wanted.endswith((".yaml", ".md"))


def _life_of_file(repository: Repository, now: Snapshot, path: str) -> Life | None:
    """What happened at a path; the id of the memory that stood there last, if it is a memory's. None for no file."""
    entries = log(repository, paths=[path], revision=now.revision)
    told = [
        (entry, edit) for entry in reversed(entries) for edit in entry.edits if path in (edit.path, edit.moved_from)
    ]
    if not told:
        return None
    memories = [edit.id for _, edit in told if edit.id is not None]
    steps = tuple(
        Step(
            entry.revision, entry.when, entry.author, edit.op, path, entry.thread, entry.turns, None, edit.after,
            entry.approved_by, edit.before,
        )
        for entry, edit in told
    )  # fmt: skip
    return Life(memories[-1] if memories else None, path, steps[-1].text, steps)


def changed_last(repository: Repository, name: str) -> str | None:
    """The commit that changed a memory (an id) or a file (a path) last; None for what never was."""
    if not _is_path(name):
        steps = why(repository, name).steps if ever(repository, name) else ()
        return steps[-1].revision if steps else None
    return next((each.id for each in git.history(repository.git_dir, git.MAIN, paths=[name], limit=1)), None)


def last_change(repository: Repository, memory: str, *, now: Snapshot) -> Commit:
    """The last commit, whole, that changed a memory, named by its whole id, or moved it; no revert.

    Were a revert one, taking a memory back twice would bring it back. Raises `NotFound`.
    """
    for path in now.locate(memory):
        for commit in git.history(repository.git_dir, now.revision, paths=[path], limit=1, whole=True):
            if not commit.trailer(REVERTS) and _of(repository, commit, path, memory):
                return commit
    touched = _touching(repository, now, memory)
    for revision in git.times(repository.git_dir, now.revision):
        if revision in touched and not touched[revision][0].trailer(REVERTS):
            return next(git.history(repository.git_dir, revision, limit=1))
    raise NotFound(f"tenant {repository.tenant} has no memory {memory}")


def _touching(repository: Repository, now: Snapshot, memory: str) -> dict[str, tuple[Commit, list[Edit]]]:
    """The commits that changed this memory, by id, each with what it did to it.

    Path by path: git answers for one path from the commit-graph, and reads every tree for two. Moves are followed both
    ways. One that is gone, or that a person made, may have stood elsewhere before, and all history is searched for it.
    """
    found: dict[str, tuple[Commit, list[Edit]]] = {}
    seen: set[str] = set()
    _follow(repository, now.locate(memory), memory, now.revision, found, seen)
    if not found or any(_made_by_hand(commit, edits) for commit, edits in found.values()):
        _follow(repository, ever(repository, memory).get(memory, ()), memory, now.revision, found, seen)
    return found


def _made_by_hand(commit: Commit, edits: Sequence[Edit]) -> bool:
    """Whether somebody wrote the memory here, who may have taken it out elsewhere before; docmem names its files."""
    own = commit.author == git.ENGINE or any(key.startswith("Docmem-") for key in commit.trailers)
    return not own and any(edit.op == "create" for edit in edits)


def _follow(
    repository: Repository,
    paths: Iterable[str],
    memory: str,
    revision: str,
    found: dict[str, tuple[Commit, list[Edit]]],
    seen: set[str],
) -> None:
    """Add to `found` what happened to the memory at these paths, and wherever it came from or went."""
    pending = sorted(set(paths) - seen)
    while pending:
        path = pending.pop()
        if path in seen:
            continue
        seen.add(path)
        for commit in git.history(repository.git_dir, revision, paths=[path], whole=True):
            edits = _of(repository, commit, path, memory) if commit.id not in found else []
            if edits:  # the path may have been another memory's then
                found[commit.id] = commit, edits
            for edit in edits:
                pending += [edit.path, *([edit.moved_from] if edit.moved_from else [])]


def _about(
    repository: Repository, commits: Sequence[Commit], paths: Sequence[str]
) -> tuple[list[Commit], dict[str, bytes]]:
    """Commits with their changes at these paths, and what of the others may be another half of one; and the contents.

    Most changes are whole in themselves, and of a commit of a hundred thousand files only these few are read.
    """
    within = _within(paths)
    here = [tuple(change for change in commit.changes if within(change.path)) for commit in commits]
    contents = _contents(repository, (change for changes in here for change in changes))
    there: list[tuple[Change, ...]] = []
    for commit, mine in zip(commits, here, strict=True):
        came, went = _alone(mine, contents)
        others = (each for each in commit.changes if layout.place(each.path).kind == "memory" and not within(each.path))
        there.append(tuple(each for each in others if (came and each.old) or (went and each.new)))
    contents |= _contents(repository, (change for changes in there for change in changes))
    both = zip(commits, here, there, strict=True)
    return [replace(commit, changes=mine + halves) for commit, mine, halves in both], contents


def _alone(changes: Sequence[Change], contents: Mapping[str, bytes]) -> tuple[bool, bool]:
    """Whether memories came among these changes, and whether some went, that aren't known to have been elsewhere."""
    memories = [change for change in changes if layout.place(change.path).kind == "memory"]
    found = pairs.pairs(memories, contents.__getitem__)
    return any(pair.old is None for pair in found), any(pair.new is None for pair in found)


def _of(repository: Repository, commit: Commit, path: str, memory: str) -> list[Edit]:
    """What a commit that changed this path did to a memory there, or from there."""
    [about], contents = _about(repository, [commit], [path])
    return [edit for edit in _edits(about.changes, contents) if edit.id == memory]


def _step(repository: Repository, commit: Commit, edit: Edit, when: datetime) -> Step:
    blob = next((change.new for change in commit.changes if change.path == edit.path), None)
    stands = _memory(edit.path, git.read_blob(repository.git_dir, blob) if blob else None)
    source = stands.source if stands and stands.id == edit.id else Source()
    return Step(
        revision=commit.id,
        when=when,
        author=commit.author.name,
        op=edit.op,
        path=edit.path,
        thread=_thread(commit) or source.thread,
        turns=source.turns,
        quote=source.quote,
        text=edit.after,
        approved_by=_approved_by(commit),
        before=edit.before,
    )
