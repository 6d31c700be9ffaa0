"""Reading by revision: commits, trees, files, through one `cat-file` that stays open for each repo."""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from docmem.errors import GitError, NotFound
from docmem.git.generation import generation
from docmem.git.process import environment, run, text
from docmem.git.values import MAIN, REGULAR

_OPEN_REPOS = 64
"""Repos that keep a reading process each."""


class _Reader:
    """One `cat-file --batch` that stays open: 30 µs an object instead of a process.

    Ours rather than GitPython's: that one obeys the caller's GIT_OBJECT_DIRECTORY when it opens a repo, and takes a
    cat-file that was killed for an object that isn't there.
    """

    def __init__(self, git_dir: Path) -> None:
        self.git_dir = git_dir
        self.lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._generation: tuple[int, int] | None = None

    def read(self, object_id: str) -> tuple[str, bytes]:
        """Type and content. Raises `NotFound`; `GitError` where cat-file dies twice."""
        with self.lock:
            self._renew()
            for _ in range(2):
                found = self._ask(object_id)
                if found is not None:
                    return found
                self._end()
        if not (self.git_dir / "HEAD").exists():
            raise NotFound(f"the repo {self.git_dir} is gone")
        raise GitError(f"git cat-file does not stay alive in {self.git_dir}")

    def _renew(self) -> None:
        # An open cat-file keeps its packs mapped: it would serve what was erased since it started.
        now = generation(self.git_dir)
        if now != self._generation:
            self._end()
            self._generation = now

    def _ask(self, object_id: str) -> tuple[str, bytes] | None:
        if self._process is None:
            self._process = _cat_file(self.git_dir, subprocess.PIPE)
        source, out = self._process.stdin, self._process.stdout
        assert source is not None
        assert out is not None
        try:
            source.write(object_id.encode() + b"\n")
            source.flush()
            line = out.readline()
        except BrokenPipeError:
            return None
        return _object_after(self.git_dir, line, out) if line else None

    def close(self) -> None:
        with self.lock:
            self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()
        process.wait()

    def abandon(self) -> None:
        """Drop the process without a word to it: after a fork it is the parent's."""
        self._process = None


def _cat_file(git_dir: Path, stdin: int | IO[bytes], *flags: str) -> subprocess.Popen[bytes]:
    command = ["git", "--git-dir", str(git_dir), "cat-file", "--batch", *flags]
    return subprocess.Popen(
        command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(git_dir)
    )


def _object_after(git_dir: Path, line: bytes, out: IO[bytes]) -> tuple[str, bytes] | None:
    """The object that a line of `cat-file --batch` announces; None where the process died in the middle."""
    facts = line.decode().split()
    if len(facts) != 3:
        raise NotFound(f"{git_dir} has no object {facts[0]}")
    data = out.read(int(facts[2]) + 1)
    return (facts[1], data[:-1]) if len(data) == int(facts[2]) + 1 else None


_readers: OrderedDict[Path, _Reader] = OrderedDict()
_readers_lock = threading.Lock()


def _reader(git_dir: Path) -> _Reader:
    with _readers_lock:
        reader = _readers.pop(git_dir, None) or _Reader(git_dir)
        _readers[git_dir] = reader
        dropped = [_readers.popitem(last=False)[1] for _ in range(len(_readers) - _OPEN_REPOS)]
    for old in dropped:
        old.close()
    return reader


def close(git_dir: Path | None = None) -> None:
    """End the reading processes of one repo, or of all."""
    with _readers_lock:
        keys = [git_dir] if git_dir is not None else list(_readers)
        dropped = [_readers.pop(key) for key in keys if key in _readers]
    for reader in dropped:
        reader.close()


def _abandon_readers_after_fork() -> None:
    # A child would talk to its parent's cat-file, and each would read the other's answers.
    global _readers_lock
    _readers_lock = threading.Lock()
    for reader in _readers.values():
        reader.abandon()
    _readers.clear()


os.register_at_fork(after_in_child=_abandon_readers_after_fork)
atexit.register(close)


def object_of(git_dir: Path, object_id: str) -> tuple[str, bytes]:
    """Type and content of an object. Raises `NotFound`."""
    return _reader(git_dir).read(object_id)


def resolve(git_dir: Path, name: str = MAIN) -> str | None:
    """The commit a ref or revision expression names, or None where there is none."""
    done = run(git_dir, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", ok=(0, 1, 128))
    return done.stdout.decode().strip() or None if done.returncode == 0 else None


def head(git_dir: Path, ref: str = MAIN) -> str | None:
    """What a branch points to, read without a process; None on an unborn branch."""
    try:
        value = (git_dir / ref).read_bytes().decode(errors="replace").strip()
    except (FileNotFoundError, IsADirectoryError):
        return resolve(git_dir, ref)
    return value if len(value) == 40 else resolve(git_dir, ref)


@dataclass(frozen=True, slots=True)
class _Entry:
    mode: int
    id: str

    @property
    def is_tree(self) -> bool:
        return self.mode == 0o040000

    @property
    def is_regular(self) -> bool:
        return self.mode in {0o100644, 0o100755}


def _tree(git_dir: Path, tree: str) -> dict[str, _Entry]:
    from git.objects.fun import tree_entries_from_data

    _, data = object_of(git_dir, tree)
    entries = tree_entries_from_data(data)
    return {text(name) if isinstance(name, bytes) else name: _Entry(mode, sha.hex()) for sha, mode, name in entries}


def _root(git_dir: Path, revision: str) -> str:
    kind, data = object_of(git_dir, revision)
    if kind != "commit":
        raise NotFound(f"{revision} in {git_dir} is a {kind}, not a commit")
    return data[5:45].decode()


def _entry(git_dir: Path, revision: str, path: str) -> _Entry | None:
    at = _Entry(0o040000, _root(git_dir, revision))
    for part in path.rstrip("/").split("/") if path else []:
        if not at.is_tree:
            return None
        found = _tree(git_dir, at.id).get(part)
        if found is None:
            return None
        at = found
    return at


def obstructed(git_dir: Path, revision: str, paths: Iterable[str]) -> str | None:
    """The first of `paths` that is a folder at the revision, or lies below a file. Each folder is read once."""
    trees: dict[str, dict[str, _Entry]] = {}
    root = _Entry(0o040000, _root(git_dir, revision))
    for path in paths:
        at: _Entry | None = root
        for part in path.split("/"):
            if at is None or not at.is_tree:
                break
            if at.id not in trees:
                trees[at.id] = _tree(git_dir, at.id)
            at = trees[at.id].get(part)
        else:
            if at is None or not at.is_tree:
                continue
        if at is not None:
            return path
    return None


def tree_id(git_dir: Path, revision: str, path: str) -> str | None:
    """The id of a folder's tree: equal ids, equal content below."""
    entry = _entry(git_dir, revision, path)
    return entry.id if entry is not None and entry.is_tree else None


def files(git_dir: Path, revision: str, prefix: str = "") -> dict[str, str]:
    """Path to blob id of the regular files, all or those in the folder `prefix`. Symlinks and submodules are none."""
    if not prefix:
        return _all_files(git_dir, revision)
    entry = _entry(git_dir, revision, prefix)
    return dict(_walk(git_dir, entry, prefix.rstrip("/"))) if entry is not None else {}


def _walk(git_dir: Path, entry: _Entry, path: str) -> Iterator[tuple[str, str]]:
    if entry.is_tree:
        for name, child in _tree(git_dir, entry.id).items():
            yield from _walk(git_dir, child, f"{path}/{name}")
    elif entry.is_regular:
        yield path, entry.id


def _all_files(git_dir: Path, revision: str) -> dict[str, str]:
    listing = run(git_dir, "ls-tree", "-r", "-z", "--full-tree", revision).stdout
    found = {}
    for row in listing.split(b"\0")[:-1]:
        facts, _, path = row.partition(b"\t")
        mode, _, blob = facts.decode().split(" ")
        if mode in REGULAR:
            found[text(path)] = blob
    return found


def read_file(git_dir: Path, revision: str, path: str) -> bytes | None:
    """A regular file's bytes at a revision, or None where there is none."""
    entry = _entry(git_dir, revision, path)
    return object_of(git_dir, entry.id)[1] if entry is not None and entry.is_regular else None


def blob_id(git_dir: Path, revision: str, path: str) -> str | None:
    """A regular file's blob id at a revision, or None where there is none."""
    entry = _entry(git_dir, revision, path)
    return entry.id if entry is not None and entry.is_regular else None


def read_blob(git_dir: Path, blob: str) -> bytes:
    """A blob's bytes. Raises `NotFound`."""
    return object_of(git_dir, blob)[1]


def read_blobs(git_dir: Path, blobs: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """(blob id, bytes) of many blobs, in order, streamed from one `cat-file`. Raises `NotFound`."""
    with tempfile.TemporaryFile() as wanted:
        wanted.write("".join(f"{blob}\n" for blob in blobs).encode())
        wanted.seek(0)
        with _cat_file(git_dir, wanted, "--buffer") as process:
            assert process.stdout is not None
            try:
                yield from _batch(git_dir, process.stdout)
            finally:
                process.stdout.close()


def _batch(git_dir: Path, out: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    while line := out.readline():
        found = _object_after(git_dir, line, out)
        if found is None:
            raise GitError(f"git cat-file died while reading {git_dir}", hint="run it again")
        yield line.split()[0].decode(), found[1]


def has_commit(git_dir: Path, revision: str) -> bool:
    """Whether the repo still holds this commit."""
    return resolve(git_dir, revision) is not None


def is_ancestor(git_dir: Path, old: str, new: str) -> bool:
    """Whether `old` is `new` or comes before it; False too where the repo no longer holds `old`."""
    return run(git_dir, "merge-base", "--is-ancestor", old, new, ok=(0, 1, 128)).returncode == 0


def is_first_parent_ancestor(git_dir: Path, old: str, new: str) -> bool:
    """Whether `old` lies on the first-parent chain of `new`."""
    if old == new:
        return True
    done = run(git_dir, "rev-list", "--first-parent", f"{old}..{new}", ok=(0, 128))
    oldest = done.stdout.decode().split()[-1:] if done.returncode == 0 else []
    return bool(oldest) and resolve(git_dir, f"{oldest[0]}^1") == old


def commits_with_prefix(git_dir: Path, prefix: str) -> list[str]:
    """Commits whose id starts with these hex digits."""
    done = run(git_dir, "rev-parse", f"--disambiguate={prefix}", ok=(0, 128))
    return [name for name in done.stdout.decode().split() if _is_commit(git_dir, name)]


def _is_commit(git_dir: Path, name: str) -> bool:
    return object_of(git_dir, name)[0] == "commit"
