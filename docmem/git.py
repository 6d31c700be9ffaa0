"""The one door to git. Plain functions over a bare repo that return plain values.

Revisions and blobs are object ids, 40 hex digits. Paths are `str`; names that aren't UTF-8 carry surrogate escapes.
A commit is one `git fast-import` and one compare-and-swap of the ref: O(changed files), and a lost race is seen
(GitPython's index lost 21 of 80 commits of two writers without a word).
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import getpass
import os
import secrets
import subprocess
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Literal

from docmem import locks
from docmem.config import scrubbed_environment
from docmem.errors import Conflict, GitError, NotFound, TryAgain

MAIN = "refs/heads/main"
LOCK_SECONDS = 30.0
"""How long a writer waits for the repo's lock."""
REF_LOCK_SECONDS = 8.0
"""How long a ref that another git has locked is waited for; git itself holds one for milliseconds."""

_NONE = "0" * 40
_OPEN_REPOS = 64
"""Repos that keep a reading process each."""
_REGULAR = ("100644", "100755")


@dataclass(frozen=True, slots=True)
class Author:
    """Who a commit is by."""

    name: str
    email: str


ENGINE = Author("docmem", "engine@docmem.invalid")


@dataclass(frozen=True, slots=True)
class Change:
    """One file's change between two revisions. `old` and `new` are blob ids, None where there is no such file."""

    status: Literal["A", "M", "D"]
    path: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of the first-parent chain, with its changes against its first parent."""

    id: str
    parents: tuple[str, ...]
    author: Author
    when: datetime
    subject: str
    trailers: Mapping[str, tuple[str, ...]]
    changes: tuple[Change, ...]

    def trailer(self, key: str) -> str | None:
        """The last value of a trailer."""
        values = self.trailers.get(key)
        return values[-1] if values else None


# ---------------------------------------------------------------------------------------------------- processes


def _environment(git_dir: Path) -> dict[str, str]:
    """Ours alone: no `GIT_*` of the caller, no configuration of the user or machine, no hooks, no prompts.

    `commit.gpgsign`, `core.hooksPath` or an alias in somebody's ~/.gitconfig must not reach the engine. The repo
    itself was named by whoever set DOCMEM_ROOT, so git's ownership check is answered for it and nothing else.
    """
    settings = {"safe.directory": str(git_dir), "core.hooksPath": os.devnull, "core.fsync": "committed"}
    environment = {
        **scrubbed_environment(),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_COUNT": str(len(settings)),
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C.UTF-8",
    }
    for number, (key, value) in enumerate(settings.items()):
        environment[f"GIT_CONFIG_KEY_{number}"] = key
        environment[f"GIT_CONFIG_VALUE_{number}"] = value
    return environment


def _run(
    git_dir: Path, *arguments: str, stdin: bytes | IO[bytes] | None = None, ok: tuple[int, ...] = (0,)
) -> subprocess.CompletedProcess[bytes]:
    pathspecs = [] if arguments[0] == "--glob-pathspecs" else ["--literal-pathspecs"]
    command = ["git", "--git-dir", str(git_dir), *pathspecs, *arguments]
    source: dict[str, object] = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin or subprocess.DEVNULL}
    try:
        done = subprocess.run(command, capture_output=True, env=_environment(git_dir), check=False, **source)  # type: ignore[call-overload]
    except FileNotFoundError:
        raise GitError("git is not installed, or not on PATH", hint="install git 2.39 or newer") from None
    if done.returncode not in ok:
        words = done.stderr.decode(errors="replace").strip()
        raise GitError(f"git {arguments[0]} failed in {git_dir} (exit {done.returncode}): {words}")
    result: subprocess.CompletedProcess[bytes] = done
    return result


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def version() -> tuple[int, ...]:
    """git's version as numbers. Raises `GitError` where there is no git."""
    words = _run(Path(os.devnull), "version").stdout.decode().split()
    return tuple(int(part) for part in words[2].split(".")[:3] if part.isdigit())


# ---------------------------------------------------------------------------------------------------- repos


def init(git_dir: Path) -> None:
    """Make a bare repo, as a store has to be set up (design: no force-push, no gc behind a writer's back)."""
    git_dir.mkdir(parents=True)
    _run(git_dir, "init", "--quiet", "--bare", "--template=", "--initial-branch=main", str(git_dir))
    for key, value in {
        "receive.denyNonFastForwards": "true",
        "receive.denyDeletes": "true",
        "receive.fsckObjects": "true",
        "receive.advertisePushOptions": "true",
        "receive.autogc": "false",
        "gc.auto": "0",
        "transfer.hideRefs": "refs/docmem",
        "core.fsync": "committed",
    }.items():
        _run(git_dir, "config", key, value)


def is_repo(git_dir: Path) -> bool:
    """Whether `git_dir` is a git directory."""
    return (git_dir / "HEAD").is_file() and (git_dir / "objects").is_dir()


@contextlib.contextmanager
def lock(git_dir: Path, *, timeout: float = LOCK_SECONDS) -> Iterator[None]:
    """Hold the repo's writer lock (flock, so that a dead holder's is free). Raises `TryAgain` after `timeout` s."""
    path = git_dir / "docmem.lock"
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _flock(file, path, time.monotonic() + timeout)
        yield
    finally:
        os.close(file)


def _flock(file: int, path: Path, deadline: float) -> None:
    pause = 0.0005
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TryAgain(
                    f"another writer has held {path} for a long time", hint="see who: fuser " + str(path)
                ) from None
            time.sleep(pause)
            pause = min(pause * 1.5, 0.01)


# ---------------------------------------------------------------------------------------------------- objects


class _Reader:
    """One `cat-file --batch` that stays open: 30 µs an object instead of a process.

    Ours rather than GitPython's: that one obeys the caller's GIT_OBJECT_DIRECTORY when it opens a repo, and takes a
    cat-file that was killed for an object that isn't there.
    """

    def __init__(self, git_dir: Path) -> None:
        self.git_dir = git_dir
        self.lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, object_id: str) -> tuple[str, bytes]:
        """Type and content. Raises `NotFound`; `GitError` where cat-file dies twice."""
        with self.lock:
            for _ in range(2):
                found = self._ask(object_id)
                if found is not None:
                    return found
                self._end()
        raise GitError(f"git cat-file does not stay alive in {self.git_dir}")

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
        command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment(git_dir)
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


def _object(git_dir: Path, object_id: str) -> tuple[str, bytes]:
    """Type and content of an object. Raises `NotFound`."""
    return _reader(git_dir).read(object_id)


def resolve(git_dir: Path, name: str = MAIN) -> str | None:
    """The commit a ref or revision expression names, or None where there is none."""
    done = _run(git_dir, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", ok=(0, 1, 128))
    return done.stdout.decode().strip() or None if done.returncode == 0 else None


def head(git_dir: Path, ref: str = MAIN) -> str | None:
    """What a branch points to, read without a process; None on an unborn branch."""
    try:
        value = (git_dir / ref).read_text().strip()
    except FileNotFoundError:
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

    _, data = _object(git_dir, tree)
    entries = tree_entries_from_data(data)
    return {_text(name) if isinstance(name, bytes) else name: _Entry(mode, sha.hex()) for sha, mode, name in entries}


def _root(git_dir: Path, revision: str) -> str:
    kind, data = _object(git_dir, revision)
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
    listing = _run(git_dir, "ls-tree", "-r", "-z", "--full-tree", revision).stdout
    found = {}
    for row in listing.split(b"\0")[:-1]:
        facts, _, path = row.partition(b"\t")
        mode, _, blob = facts.decode().split(" ")
        if mode in _REGULAR:
            found[_text(path)] = blob
    return found


def read_file(git_dir: Path, revision: str, path: str) -> bytes | None:
    """A regular file's bytes at a revision, or None where there is none."""
    entry = _entry(git_dir, revision, path)
    return _object(git_dir, entry.id)[1] if entry is not None and entry.is_regular else None


def blob_id(git_dir: Path, revision: str, path: str) -> str | None:
    """A regular file's blob id at a revision, or None where there is none."""
    entry = _entry(git_dir, revision, path)
    return entry.id if entry is not None and entry.is_regular else None


def read_blob(git_dir: Path, blob: str) -> bytes:
    """A blob's bytes. Raises `NotFound`."""
    return _object(git_dir, blob)[1]


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
    return _run(git_dir, "merge-base", "--is-ancestor", old, new, ok=(0, 1, 128)).returncode == 0


def is_first_parent_ancestor(git_dir: Path, old: str, new: str) -> bool:
    """Whether `old` lies on the first-parent chain of `new`."""
    if old == new:
        return True
    done = _run(git_dir, "rev-list", "--first-parent", f"{old}..{new}", ok=(0, 128))
    oldest = done.stdout.decode().split()[-1:] if done.returncode == 0 else []
    return bool(oldest) and resolve(git_dir, f"{oldest[0]}^1") == old


# ---------------------------------------------------------------------------------------------------- changes


def changes(git_dir: Path, old: str, new: str) -> list[Change]:
    """What differs between two revisions, file by file. A move is a deletion and an addition."""
    done = _run(git_dir, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new)
    return list(_raw_changes(_text(done.stdout).split("\0")[:-1]))


def _raw_changes(fields: Sequence[str]) -> Iterator[Change]:
    for facts, path in zip(fields[::2], fields[1::2], strict=True):
        change = _raw_change(facts, path)
        if change is not None:
            yield change


def _raw_change(facts: str, path: str) -> Change | None:
    old_mode, new_mode, old, new, _ = facts.lstrip("\n").lstrip(":").split(" ")
    before = old if old_mode in _REGULAR else None
    after = new if new_mode in _REGULAR else None
    if before is None and after is None:
        return None
    return Change("A" if before is None else "D" if after is None else "M", path, before, after)


_FIELDS = ("%H", "%P", "%an", "%ae", "%ct", "%s", "%(trailers:only=true,unfold=true,separator=%x1f)")


def history(
    git_dir: Path,
    revision: str,
    *,
    since: str | None = None,
    paths: Sequence[str] = (),
    limit: int | None = None,
) -> Iterator[Commit]:
    """Commits of the first-parent chain of `revision`, newest first, each with its changes against its first parent.

    `since`: only those that `since` doesn't have. `paths`: only commits that change one of these files or folders.
    """
    arguments = ["log", "--first-parent", "-m", "--raw", "-z", "--no-renames", "--no-abbrev", "--no-color"]
    arguments += ["--format=" + "%x00".join(_FIELDS)]
    if limit is not None:
        arguments.append(f"--max-count={limit}")
    arguments.append(revision)
    if since is not None:
        arguments.append(f"^{since}")
    fields = _text(_run(git_dir, *arguments, "--", *paths).stdout).split("\0")
    return _commits(fields[:-1])


def _commits(fields: Sequence[str]) -> Iterator[Commit]:
    at, width = 0, len(_FIELDS)
    while at + width <= len(fields):
        facts = fields[at : at + width]
        at += width
        end = at
        while end + 1 < len(fields) and fields[end].lstrip("\n").startswith(":"):
            end += 2
        yield _commit(facts, tuple(_raw_changes(fields[at:end])))
        at = end


def _commit(facts: Sequence[str], changed: tuple[Change, ...]) -> Commit:
    commit_id, parents, name, email, seconds, subject, trailers = facts
    return Commit(
        id=commit_id,
        parents=tuple(parents.split()),
        author=Author(name, email),
        when=datetime.fromtimestamp(int(seconds), UTC),
        subject=subject,
        trailers=_trailers(trailers),
        changes=changed,
    )


def _trailers(text: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for line in text.split("\x1f"):
        key, colon, value = line.partition(":")
        if colon:
            found[key.strip()] = (*found.get(key.strip(), ()), value.strip())
    return found


def patch(git_dir: Path, old: str | None, new: str, paths: Sequence[str] = (), *, color: bool = False) -> str:
    """The unified diff between two revisions as git prints it; without `old`, of everything."""
    base = old or _run(git_dir, "hash-object", "-t", "tree", "--stdin", stdin=b"").stdout.decode().strip()
    flags = ["--color=always" if color else "--no-color", "--no-ext-diff", "--no-renames"]
    return _run(git_dir, "diff", *flags, base, new, "--", *paths).stdout.decode("utf-8", "replace")


def grep(git_dir: Path, revision: str, pattern: str, folder: str, *, ignore_case: bool = False) -> list[str]:
    """Paths below `folder` of the files with a line that the extended regular expression `pattern` finds."""
    flags = ["-i"] if ignore_case else []
    done = _run(git_dir, "grep", "-z", "-l", "-E", *flags, "-e", pattern, revision, "--", folder, ok=(0, 1))
    return [_text(name).split(":", 1)[1] for name in done.stdout.split(b"\0")[:-1]]


def paths_ever(git_dir: Path, revision: str, glob: str) -> list[str]:
    """Paths that some commit up to `revision` deleted and that match a glob of git's (`**` spans folders)."""
    arguments = ("log", "--first-parent", "-m", "--diff-filter=D", "--no-renames", "--name-only", "-z", "--format=")
    done = _run(git_dir, "--glob-pathspecs", *arguments, revision, "--", glob)
    return sorted({_text(name).lstrip("\n") for name in done.stdout.split(b"\0") if name.strip()})


def merge_file(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """git's three-way merge of a text; None where the two changes overlap."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("ours", "base", "theirs")]
        for path, data in zip(paths, (ours, base, theirs), strict=True):
            path.write_bytes(data)
        done = _run(Path(folder), "merge-file", "-p", *map(str, paths), ok=tuple(range(128)))
        return done.stdout if done.returncode == 0 else None


def person() -> Author:
    """Who sits at the keyboard: git's user.name and user.email, else the account's name."""
    values = {}
    for key in ("user.name", "user.email"):
        done = subprocess.run(["git", "config", "--get", key], capture_output=True, check=False)
        values[key] = done.stdout.decode(errors="replace").strip()
    account = getpass.getuser()
    return Author(values["user.name"] or account, values["user.email"] or f"{account}@localhost")


def commits_with_prefix(git_dir: Path, prefix: str) -> list[str]:
    """Commits whose id starts with these hex digits."""
    done = _run(git_dir, "rev-parse", f"--disambiguate={prefix}", ok=(0, 128))
    return [name for name in done.stdout.decode().split() if _is_commit(git_dir, name)]


def _is_commit(git_dir: Path, name: str) -> bool:
    return _object(git_dir, name)[0] == "commit"


# ---------------------------------------------------------------------------------------------------- writing


def commit(
    git_dir: Path,
    *,
    base: str | None,
    files: Mapping[str, bytes | None],
    message: str,
    when: datetime,
    author: Author = ENGINE,
    ref: str = MAIN,
    old: str | None = None,
) -> str:
    """Write `files` (None deletes) on top of `base` as one commit and move `ref` from `old` (default: `base`) to it.

    Returns the new commit. Raises `Conflict` where the ref has moved; nothing is visible then. The commit's time is
    `when`, or its parent's where a clock went back. Paths are the caller's to check (`names.safe_path`).
    """
    seconds = int(when.timestamp())
    if base is not None:
        seconds = max(seconds, _committed(git_dir, base))
    new = _fast_import(git_dir, base=base, files=files, message=message, seconds=seconds, author=author)
    move_ref(git_dir, ref, new=new, old=base if old is None and ref == MAIN else old)
    return new


def _committed(git_dir: Path, revision: str) -> int:
    _, data = _object(git_dir, revision)
    line = next(line for line in data.split(b"\n") if line.startswith(b"committer "))
    return int(line.rsplit(b" ", 2)[1])


def _fast_import(
    git_dir: Path, *, base: str | None, files: Mapping[str, bytes | None], message: str, seconds: int, author: Author
) -> str:
    ref = f"refs/docmem/tmp/{os.getpid()}-{secrets.token_hex(4)}"
    stream = [f"commit {ref}\nmark :1\n".encode()]
    for role, who in (("author", author), ("committer", ENGINE)):
        stream.append(f"{role} {_identity(who)} {seconds} +0000\n".encode())
    stream.append(_data(message.replace("\0", "").encode("utf-8", "replace")))
    if base is not None:
        stream.append(f"from {base}\n".encode())
    for path, data in files.items():
        stream.append(b"D " + _quoted(path) + b"\n" if data is None else b"M 100644 inline " + _quoted(path) + b"\n")
        if data is not None:
            stream.append(_data(data))
    # The ref is reset, so that nothing stays of it. `get-mark` answers before the pack is final: only exit 0 counts.
    stream.append(f"get-mark :1\nreset {ref}\n\ndone\n".encode())
    done = _run(git_dir, "-c", "fastimport.unpackLimit=1", "fast-import", "--done", "--quiet", stdin=b"".join(stream))
    _fsync_dir(git_dir / "objects" / "pack")
    return done.stdout.decode().split()[0]


def _identity(who: Author) -> str:
    clean = [
        "".join(char for char in part if char not in "<>\n\0").strip().encode("utf-8", "replace").decode()
        for part in (who.name, who.email)
    ]
    return f"{clean[0]} <{clean[1]}>"


def _data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)


def _quoted(path: str) -> bytes:
    # Unquoted, a line feed in a path would end it, and the rest would be read as a command.
    raw = path.encode("utf-8", "surrogateescape")
    return b'"' + raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'


def move_ref(git_dir: Path, ref: str, *, new: str | None, old: str | None) -> None:
    """Compare-and-swap: move `ref` from `old` (None: it isn't there) to `new` (None: delete). Raises `Conflict`.

    A ref that another git has locked is waited for; a lock that nobody alive can hold is removed. Raises `TryAgain`
    where the lock stays.
    """
    arguments = ["update-ref", ref, new, old or _NONE] if new is not None else ["update-ref", "-d", ref, old or _NONE]
    deadline = time.monotonic() + REF_LOCK_SECONDS
    while True:
        done = _run(git_dir, *arguments, ok=(0, 1, 128))
        if done.returncode == 0:
            _fsync_dir((git_dir / ref).parent)
            return
        now = resolve(git_dir, ref)
        if now == new:  # the same content on the same base in the same second is the same commit
            return
        if now != old:
            raise Conflict(f"{ref} in {git_dir} moved from {old} to {now} meanwhile", hint="run it again")
        held = [path for path in _ref_locks(git_dir, ref) if path.exists()]
        words = done.stderr.decode(errors="replace").strip()
        if b".lock" not in done.stderr or time.monotonic() > deadline:
            raise TryAgain(f"git could not move {ref} in {git_dir}: {words}", hint=_lock_hint(held))
        gone = [locks.removed_if_stale(path, git_dir) for path in held]
        if not all(gone):
            time.sleep(0.05)


def _ref_locks(git_dir: Path, ref: str) -> list[Path]:
    """The locks that moving a ref takes: its own, HEAD's where that follows it, the packed refs' for a deletion."""
    return [git_dir / f"{name}.lock" for name in (ref, "HEAD", "packed-refs")]


def _lock_hint(held: Sequence[Path]) -> str:
    if not held:
        return "run it again"
    names = " ".join(map(str, held))
    return f"a git process holds it, or one that isn't seen from here; if you know that none does: rm {names}"


def _fsync_dir(path: Path) -> None:
    # git syncs files, never folders: without this a power cut can lose the name of a file that was synced.
    with contextlib.suppress(FileNotFoundError):
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def refs(git_dir: Path, prefix: str) -> dict[str, str]:
    """Ref name to object id, of the refs below `prefix`."""
    done = _run(git_dir, "for-each-ref", "--format=%(refname) %(objectname)", prefix)
    return dict(line.rsplit(" ", 1) for line in done.stdout.decode().splitlines())


def ref_times(git_dir: Path, prefix: str) -> dict[str, tuple[str, datetime]]:
    """Ref name to commit id and time, of the refs below `prefix`."""
    done = _run(git_dir, "for-each-ref", "--format=%(refname) %(objectname) %(committerdate:unix)", prefix)
    rows = [line.rsplit(" ", 2) for line in done.stdout.decode().splitlines()]
    return {ref: (commit, datetime.fromtimestamp(int(seconds), UTC)) for ref, commit, seconds in rows}


def has_ref(git_dir: Path, ref: str) -> bool:
    """Whether a ref is there, told without a process."""
    if (git_dir / ref).exists():
        return True
    try:
        return f" {ref}\n" in (git_dir / "packed-refs").read_text()
    except FileNotFoundError:
        return False
