"""A checkout that commits and pushes by itself: one step of it, to be taken whenever something may have changed.

What is saved and valid becomes a commit of the person's; what others pushed is brought into the files. A file is
replaced only if it still says what was last committed of it. Where both sides changed the same thing, the person's
file stays as it is, and their git is told, as an unfinished merge tells it: `git status` names it, `git show :2:PATH`
is upstream's, `git add PATH` settles it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from docmem import check, git, inspection, layout, receive, transplant
from docmem.config import Settings
from docmem.errors import Conflict, DocmemError, GitError
from docmem.git import Author, Change, worktrees
from docmem.repository import Repository, Snapshot
from docmem.transplant import Shift, Version

UPSTREAM = "refs/remotes/origin/main"
CAP_SECONDS = 5.0
"""How long a file that is written to without a pause, or held open, is waited for."""
QUIET_SECONDS = 0.4
"""A file that was written to later than this ago may be half written."""

Kind: TypeAlias = Literal["committed", "pushed", "pulled", "invalid", "conflict", "left", "waiting", "refused", "away"]
_TRIES = 8
_NAMED = 3
"""So many changes are named in a commit's subject; more are counted."""
_ID = re.compile(rb"^id: *[\"']?([0-9a-f]{16})", re.MULTILINE)
_UNFINISHED = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "index.lock")


@dataclass(frozen=True, slots=True)
class Said:
    """One thing for the person at the terminal."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class _Clash:
    """A file that both sides changed: blobs, None for no file."""

    base: str | None
    own: str | None


@dataclass(frozen=True, slots=True)
class _Aside:
    """A file that was replaced. Whoever had it open may still write to it."""

    place: Path
    path: str
    old: bytes
    new: bytes | None


@dataclass
class WorkTree:
    """A person's clone of a tenant, `folder` its root."""

    folder: Path
    settings: Settings
    tenant: str
    author: Author
    url: str
    _asides: list[_Aside] = field(default_factory=list)
    _told: set[tuple[str, str]] = field(default_factory=set)
    _untaken: tuple[str | None, str | None] = (None, None)
    _open_since: dict[str, float] = field(default_factory=dict)
    waits: set[str] = field(default_factory=set)
    """Files that may be half written, at the last step."""

    @property
    def git_dir(self) -> Path:
        """The clone's git directory."""
        return self.folder / ".git"

    # --------------------------------------------------------------------------------------------------- one step

    def settle(self, busy: Collection[str] = (), *, look: bool = True) -> list[Said]:
        """Commit what is saved, bring in what others pushed, push.

        `busy`: paths that somebody is still writing. `look`: whether upstream is asked when there is nothing to push.
        """
        waiting = self._unfinished()
        if waiting:
            return list(self._once("waiting", waiting, waiting))
        self._told = {told for told in self._told if told[0] != "waiting"}
        try:
            self._late_writes()
            done = [*self._save(busy), *self._exchange(look)]
        except DocmemError as error:
            return list(self._once("away", error.message, f"{error.message}; tried again"))
        self._told = {told for told in self._told if told[0] != "away"}
        return done

    def _unfinished(self) -> str:
        if worktrees.branch(self.folder) != git.MAIN:
            return "this checkout is not on main: git switch main; nothing is committed until then"
        for name in _UNFINISHED:
            if (self.git_dir / name).exists():
                return f"your git is in the middle of something ({name}); nothing is committed until it is done"
        return ""

    def _once(self, kind: Kind, key: str, text: str) -> Iterator[Said]:
        """Say something the first time only."""
        if (kind, key) not in self._told:
            self._told.add((kind, key))
            yield Said(kind, text)

    def _head(self) -> str:
        return git.resolve(self.git_dir, "HEAD") or ""

    # ------------------------------------------------------------------------------------------------------ saves

    def _save(self, busy: Collection[str]) -> Iterator[Said]:
        head = self._head()
        self.waits = set()
        tree = worktrees.saved_tree(self.folder, self.git_dir / "docmem-live.index")
        changed = [change for change in git.changes(self.git_dir, head, tree) if change.old != change.new]
        unmerged = worktrees.unmerged(self.folder)
        yield from self._merge_again(head, {change.path: change.new for change in changed}, unmerged, busy)
        if self._head() != head:
            return
        waits = {change.path for change in changed if change.path in busy or self._is_fresh(change.path)}
        self.waits |= waits
        ready = [change for change in changed if change.path not in waits and change.path not in unmerged]
        good = yield from self._valid(tree, ready)
        bad = [change for change in ready if change.old is None and change not in good]
        good = [change for change in good if change.new is not None or not (waits or self._is_half(change, bad))]
        if good:
            yield from self._commit(head, good)

    def _is_half(self, gone: Change, bad: Sequence[Change]) -> bool:
        """Whether a file that went away may be one of the new ones that aren't committed: then the move waits."""
        memory = check.memory_id(gone.path, self._bytes(gone.old) or b"")
        for change in bad:
            said = _ID.search(self._bytes(change.new) or b"")
            same_id = memory is not None and said is not None and said[1].decode() == memory
            if same_id or Path(change.path).name == Path(gone.path).name:
                return True
        return False

    def _is_fresh(self, path: str) -> bool:
        """Whether a file may be half written: it was written to just now, or somebody has it open to write."""
        file = self.folder / path
        with contextlib.suppress(OSError):
            if 0 <= time.time() - file.lstat().st_mtime < QUIET_SECONDS:
                return True
        if not _is_open(file):
            self._open_since.pop(path, None)
            return False
        return time.monotonic() - self._open_since.setdefault(path, time.monotonic()) < CAP_SECONDS

    def _valid(self, tree: str, ready: Sequence[Change]) -> Generator[Said, None, list[Change]]:
        candidates = []
        for change in ready:
            reason = self._left_alone(change)
            if reason:
                yield from self._once("left", f"{change.path} {change.new}", f"{change.path}: {reason}")
            else:
                candidates.append(change)
        bad: set[str] = set()
        blobs = {change.path: change.new for change in candidates}
        for fault in inspection.of_files(self.git_dir, tree, candidates):
            bad.add(fault.path)
            yield from self._once("invalid", f"{fault} {blobs.get(fault.path)}", f"not committed: {fault}")
        return [change for change in candidates if change.path not in bad]

    def _left_alone(self, change: Change) -> str:
        kind = layout.place(change.path).kind
        if kind in {"watermark", "reverted"}:
            return "docmem keeps this file; it is left to you: git restore it, or commit it yourself"
        if kind == "other" and change.old is None:
            return "docmem doesn't read this file; commit it yourself if it belongs here"
        if change.new is None and os.path.lexists(self.folder / change.path):
            return "no plain file any more; left alone"
        return ""

    def _commit(self, head: str, good: Sequence[Change]) -> Iterator[Said]:
        bytes_of = dict(git.read_blobs(self.git_dir, {change.new for change in good if change.new}))
        files = {change.path: bytes_of[change.new] if change.new else None for change in good}
        ref = f"refs/docmem/tmp/live-{os.getpid()}"
        subject = _subject(good, files, {change.path: self._bytes(change.old) for change in good})
        new = self._written(head, files, _message(subject), ref=ref, author=self.author)
        try:
            refused = [line for rule in receive.RULES for line in rule(self._as_push(head, new))]
            if refused:
                for line in refused:
                    yield from self._once("refused", f"{line} {head}", f"not committed: {line}")
                return
            git.move_ref(self.git_dir, git.MAIN, new=new, old=head)
        finally:
            git.move_ref(self.git_dir, ref, new=None, old=new)
        self._set_index({change.path: change.new for change in good})
        yield Said("committed", f"{new[:12]}  {subject}")

    def _as_push(self, head: str, new: str) -> receive.Push:
        return receive.Push(self.git_dir, head, new, datetime.now(UTC))

    def _written(
        self, base: str, files: Mapping[str, bytes | None], message: str, *, ref: str, author: Author,
        old: str | None = None,
    ) -> str:  # fmt: skip
        now = datetime.now(UTC)
        return git.commit(
            self.git_dir, base=base, files=files, message=message, when=now, author=author, committer=self.author,
            ref=ref, old=old if old is not None else git.resolve(self.git_dir, ref),
        )  # fmt: skip

    def _set_index(self, blobs: Mapping[str, str | None]) -> None:
        """Told as often as it takes: with an index that lags, `git commit` would take the change back."""
        for attempt in range(_TRIES):
            try:
                worktrees.set_index(self.folder, blobs)
                return
            except GitError:
                if attempt == _TRIES - 1:
                    raise
                time.sleep(0.05 * 2**attempt)

    # -------------------------------------------------------------------------------------------------- upstream

    def _exchange(self, look: bool) -> Iterator[Said]:
        for attempt in range(_TRIES):
            if look or attempt:
                self._fetch()
            head, upstream = self._head(), git.resolve(self.git_dir, UPSTREAM)
            if upstream is None or head == upstream or (head, upstream) == self._untaken:
                return
            if not git.is_ancestor(self.git_dir, upstream, head):
                try:
                    yield from self._pull(head, upstream)
                except Conflict:  # the person committed by hand meanwhile
                    return
                continue
            taken, said = worktrees.push(self.folder, head)
            if taken:
                yield Said("pushed", f"{head[:12]}")
                return
            self._fetch()
            if git.resolve(self.git_dir, UPSTREAM) == upstream:
                self._untaken = (head, upstream)
                yield Said("refused", f"the push of {head[:12]} was refused:\n{said}")
                return

    def _fetch(self) -> None:
        if self.upstream_moved():
            worktrees.fetch(self.folder)

    def upstream_moved(self) -> bool:
        """Whether origin's main is elsewhere than it was; told without a process for a store on this machine."""
        return not self.is_near() or git.head(Path(self.url)) != git.head(self.git_dir, UPSTREAM)

    def is_near(self) -> bool:
        """Whether origin is a repo on this machine."""
        return git.is_repo(Path(self.url))

    def _pull(self, head: str, upstream: str) -> Iterator[Said]:
        """Bring the files to upstream, with the commits that aren't there yet replayed on it."""
        target, clashes = self._replayed(head, upstream)
        changed = git.changes(self.git_dir, head, target)
        both = dict(clashes)
        clashes |= self._brought(changed, skip=clashes)
        before = worktrees.unmerged(self.folder)
        git.move_ref(self.git_dir, git.MAIN, new=target, old=head)
        self._set_index({change.path: change.new for change in changed if change.path not in clashes})
        for path, clash in clashes.items():
            theirs = git.blob_id(self.git_dir, target, path)
            base = before[path].get(1) if path in before else clash.base  # what one's own version stands on
            worktrees.set_unmerged(self.folder, path, base=base, upstream=theirs, own=clash.own)
        self.waits |= set(clashes)
        new = sum(1 for _ in git.history(self.git_dir, upstream, since=head))
        yield Said("pulled", f"{new} commit{'s' if new != 1 else ''}, now at {target[:12]}")
        for path, clash in both.items():
            yield from self._conflict(path, clash.own)

    def _conflict(self, path: str, own: str | None) -> Iterator[Said]:
        text = (
            f"conflict in {path}: it was changed upstream as well. Your file is as you left it; upstream's: "
            f"git show :2:{path}; when yours is right: git add {path}"
        )
        yield from self._once("conflict", f"{path} {own}", text)

    def _replayed(self, head: str, upstream: str) -> tuple[str, dict[str, _Clash]]:
        """Own commits on top of upstream, by memory and key; and what both sides changed, which is in none of them."""
        tip, clashes = upstream, dict[str, _Clash]()
        own = Repository(self.settings, self.tenant, self.git_dir)
        ref = f"refs/docmem/tmp/replay-{os.getpid()}"
        for commit in reversed(list(git.history(self.git_dir, head, since=upstream))):
            shifts = transplant.shifts(own, commit.changes)
            carried = transplant.carry(Snapshot(self.git_dir, tip), shifts, secret=b"")
            for shift in shifts:
                if shift.name in carried.conflicts:
                    _add_clash(clashes, shift, {change.path: change for change in commit.changes})
            if carried.files:
                message = worktrees.message(self.folder, commit.id)
                tip = self._written(tip, carried.files, message, ref=ref, author=commit.author)
        if tip != upstream:
            git.move_ref(self.git_dir, ref, new=None, old=tip)
        return tip, clashes

    # ----------------------------------------------------------------------------------------------------- files

    def _brought(self, changed: Sequence[Change], *, skip: Collection[str]) -> dict[str, _Clash]:
        """Replace files; those that say something else by now stay, and are returned."""
        bytes_of = dict(
            git.read_blobs(self.git_dir, {blob for each in changed for blob in (each.old, each.new) if blob})
        )
        clashes: dict[str, _Clash] = {}
        for change in changed:
            if change.path in skip:
                continue
            old, new = (bytes_of[blob] if blob else None for blob in (change.old, change.new))
            if not self._swap(change.path, old, new):
                clashes[change.path] = _Clash(change.old, self._own_blob(change.path))
        return clashes

    def _own_blob(self, path: str) -> str | None:
        data = _read(self.folder / path)
        return worktrees.store_blob(self.folder, _plain(data)) if data is not None else None

    def _swap(self, path: str, old: bytes | None, new: bytes | None) -> bool:
        """Replace a file that says `old`, or isn't there (None), by `new`; False where it says something else.

        No instant at which a save could be lost: the file is moved aside, read there, and put back if it isn't the
        one; the new one is linked into its place, which fails where somebody saved meanwhile.
        """
        file = self.folder / path
        fresh = self._fresh_file(new)
        aside = self._shelf / str(time.monotonic_ns()) / path
        aside.parent.mkdir(parents=True)
        try:
            if old is not None:
                try:
                    file.rename(aside)
                except (FileNotFoundError, NotADirectoryError):
                    return new is None
                found = aside.read_bytes()
                if _plain(found) != _plain(old):
                    with contextlib.suppress(FileExistsError):
                        file.hardlink_to(aside)
                    aside.unlink()
                    return new is not None and _plain(found) == _plain(new)
                self._asides.append(_Aside(aside, path, found, new))
            if fresh is None:
                self._drop_empty_folders(file.parent)
                return old is not None or not os.path.lexists(file)
            placed = _link(fresh, file)
            if not placed and old is not None and not os.path.lexists(file):  # a full disk
                file.hardlink_to(aside)
            return placed
        finally:
            if fresh is not None:
                fresh.unlink()

    def _fresh_file(self, data: bytes | None) -> Path | None:
        if data is None:
            return None
        fresh = self.git_dir / f"docmem-new-{os.getpid()}"
        fresh.write_bytes(data)
        return fresh

    def _drop_empty_folders(self, folder: Path) -> None:
        with contextlib.suppress(OSError):
            while folder != self.folder:
                folder.rmdir()
                folder = folder.parent

    def _late_writes(self) -> None:
        """An editor that had a replaced file open may have written to it since: that is the person's, so it is back."""
        asides, self._asides = self._asides, []
        for aside in asides:
            data = _read(aside.place)
            if data is not None and data != aside.old and _read(self.folder / aside.path) == aside.new:
                (self.folder / aside.path).parent.mkdir(parents=True, exist_ok=True)
                aside.place.replace(self.folder / aside.path)
                theirs = git.blob_id(self.git_dir, self._head(), aside.path)
                base = worktrees.store_blob(self.folder, _plain(aside.old))
                own = worktrees.store_blob(self.folder, _plain(data))
                worktrees.set_unmerged(self.folder, aside.path, base=base, upstream=theirs, own=own)
            else:
                aside.place.unlink(missing_ok=True)
        shutil.rmtree(self._shelf, ignore_errors=True)

    @property
    def _shelf(self) -> Path:
        return self.git_dir / "docmem-aside"

    def recover(self) -> None:
        """After a crash: put back what was moved aside and has no successor in its place."""
        head = self._head()
        for place in sorted(path for path in self._shelf.glob("*/**/*") if path.is_file()):
            path = place.relative_to(self._shelf).as_posix().partition("/")[2]
            file = self.folder / path
            if not os.path.lexists(file) and git.blob_id(self.git_dir, head, path) is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.hardlink_to(place)
        shutil.rmtree(self._shelf, ignore_errors=True)

    def _merge_again(
        self, head: str, saved: Mapping[str, str | None], unmerged: Mapping[str, Mapping[int, str]],
        busy: Collection[str],
    ) -> Iterator[Said]:  # fmt: skip
        """Files in conflict that were saved anew: perhaps both sides fit together now."""
        for path, stages in unmerged.items():
            own = saved.get(path, stages.get(2))
            if path in busy or self._is_fresh(path):
                self.waits.add(path)
                continue
            if own == stages.get(2):  # upstream's was taken
                self._set_index({path: own})
                continue
            merged = self._merged(head, path, stages.get(1), own)
            if merged is None or not self._swap(path, self._bytes(own), merged):
                yield from self._conflict(path, own)
                continue
            blob = worktrees.store_blob(self.folder, merged)
            self._set_index({path: git.blob_id(self.git_dir, head, path)})
            yield from self._commit(head, [Change("M", path, git.blob_id(self.git_dir, head, path), blob)])
            return

    def _merged(self, head: str, path: str, base: str | None, own: str | None) -> bytes | None:
        if base is None or own is None:
            return None
        old, new = (Version(path, git.read_blob(self.git_dir, blob)) for blob in (base, own))
        if check.faults({path: new.data}, all_paths=(), ids={}):
            return None
        shift = Shift(transplant.id_of(new), old, new)
        carried = transplant.carry(Snapshot(self.git_dir, head), [shift], secret=b"")
        return carried.files.get(path) if not carried.conflicts else None

    def _bytes(self, blob: str | None) -> bytes | None:
        return git.read_blob(self.git_dir, blob) if blob is not None else None


def _add_clash(clashes: dict[str, _Clash], shift: Shift, changes: Mapping[str, Change]) -> None:
    """The first base of a file and its last version: several commits may have changed it."""
    path = (shift.new or shift.old or Version("", b"")).path
    old = changes[shift.old.path].old if shift.old else None
    new = changes[shift.new.path].new if shift.new else None
    known = clashes.get(path)
    clashes[path] = _Clash(known.base if known else old, new)


def _subject(changed: Sequence[Change], files: Mapping[str, bytes | None], old: Mapping[str, bytes | None]) -> str:
    """What a commit did, in names and keys; never what a memory says. `files` and `old`: path to bytes."""
    done = _without_halves([_done(change, files.get(change.path), old.get(change.path)) for change in changed])
    return ", ".join(done) if len(done) <= _NAMED else f"{', '.join(done[:_NAMED])} and {len(done) - _NAMED} more"


def _done(change: Change, new: bytes | None, old: bytes | None) -> str:
    spot = layout.place(change.path)
    verb = {"A": "Add", "M": "Edit", "D": "Remove"}[change.status]
    if spot.kind == "memory":
        memory = check.memory_id(change.path, new or b"") or check.memory_id(change.path, old or b"")
        what = f"memory {memory}" if memory else Path(change.path).name
    elif spot.kind == "profile":
        what = f"profile of {spot.subject[:12]}"
    else:
        return f"{verb} {change.path}"
    keys = transplant.changed_keys(change.path, old, new) if new is not None and old is not None else []
    return f"{verb} {what}" + (f" ({', '.join(keys[:_NAMED])})" if keys else "")


def _without_halves(done: Sequence[str]) -> list[str]:
    """A memory that goes here and comes there is one that moved."""
    moved = {line.removeprefix("Remove ") for line in done if line.startswith("Remove memory ")}
    moved &= {line.removeprefix("Add ") for line in done}
    halves = {f"{verb} {what}" for verb in ("Remove", "Add") for what in moved}
    return [line for line in done if line not in halves] + [f"Move {what}" for what in sorted(moved)]


def _message(subject: str) -> str:
    return subject.encode("ascii", "replace").decode().replace("\n", "?") + "\n"


def _read(path: Path) -> bytes | None:
    with contextlib.suppress(OSError):
        return path.read_bytes() if path.is_file() else None
    return None


def _is_open(file: Path) -> bool:
    """Whether some process has a file open to write; False where that can't be told (another system than Linux)."""
    if sys.platform != "linux":
        return False
    with contextlib.suppress(OSError):
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            # A read lease is granted only without writers. One who comes in this moment would send SIGIO, which kills.
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False


def _link(fresh: Path, file: Path) -> bool:
    """Put a new file in place unless there is one that says something else."""
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.hardlink_to(fresh)
        return True
    there = _read(file)
    return there is not None and _plain(there) == fresh.read_bytes()


def _plain(data: bytes) -> bytes:
    """Line ends as git keeps them."""
    return data.replace(b"\r\n", b"\n")
