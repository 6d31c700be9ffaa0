"""Lock files, and other things, that a killed git has left: removed only on proof that nobody alive holds them.

git writes no owner into `main.lock`. The proof is therefore: the file has been there, unchanged, for longer than git
ever holds one; the processes of this machine can all be seen; none of them has the file open; and none of them is a
git that may write in this repo. What can't be seen is no proof, and the lock stays.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

STALE_SECONDS = 2.0
"""A lock younger than this may be in use by a git that can't be seen from here; git needs milliseconds."""

_PROCESSES = Path("/proc")
_READERS = frozenset(
    ["cat-file", "rev-parse", "rev-list", "log", "diff", "diff-tree", "ls-tree", "for-each-ref", "grep", "merge-base",
     "upload-pack", "hash-object", "show", "blame"]
)  # fmt: skip
"""Commands that take no lock; docmem keeps a `cat-file` running in each repo."""

_REMEMBERED = 4096
_first_seen: dict[tuple[Path, int, int], float] = {}


def removed_if_stale(path: Path, git_dir: Path) -> bool:
    """Remove the lock `path` of `git_dir`, or another file or folder that a git left, if it is proven stale.

    True where it is gone.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        return True
    if not _has_aged(path, found) or not _proven_unheld(found, git_dir):
        return False
    # Between the look and the removal a new owner may have come; its file is another one.
    with contextlib.suppress(FileNotFoundError):
        now = path.stat()
        if (now.st_ino, now.st_mtime_ns) != (found.st_ino, found.st_mtime_ns):
            return False
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return True


def is_idle(git_dir: Path) -> bool:
    """Whether it is proven that no git of another process may write in this repo now."""
    if not sees_processes():
        return False
    return not any(_may_hold(process, None, git_dir.resolve()) for process in _running())


def _has_aged(path: Path, found: os.stat_result) -> bool:
    """Unchanged for `STALE_SECONDS` by this process's own watch. File times aren't asked: a clock may go back."""
    key = (path, found.st_ino, found.st_mtime_ns)
    if len(_first_seen) > _REMEMBERED:
        _first_seen.clear()
    return time.monotonic() - _first_seen.setdefault(key, time.monotonic()) >= STALE_SECONDS


def _proven_unheld(lock: os.stat_result, git_dir: Path) -> bool:
    if not sees_processes():
        return False
    return not any(_may_hold(process, lock, git_dir.resolve()) for process in _running())


def sees_processes() -> bool:
    """Whether there is a /proc, and it hides nobody's processes."""
    return (_PROCESSES / "1" / "stat").exists()


def _running() -> Iterator[Path]:
    return (each for each in _PROCESSES.iterdir() if each.name.isdigit() and int(each.name) != os.getpid())


def _may_hold(process: Path, lock: os.stat_result | None, git_dir: Path) -> bool:
    try:
        words = (process / "cmdline").read_bytes().decode(errors="surrogateescape").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return False
    is_git = Path(words[0]).name.startswith("git")
    try:
        return (lock is not None and _has_open(process, lock)) or (is_git and _may_write(process, words, git_dir))
    except (FileNotFoundError, ProcessLookupError):
        return False  # it has just ended
    except PermissionError:
        return is_git and not _READERS.intersection(words)  # another user's: only what it is called can be seen


def _has_open(process: Path, lock: os.stat_result) -> bool:
    for name in (process / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            file = name.stat()
            if (file.st_dev, file.st_ino) == (lock.st_dev, lock.st_ino):
                return True
    return False


def _may_write(process: Path, words: list[str], git_dir: Path) -> bool:
    """Whether a git process is at work in this repo, with a command that may take a lock."""
    if _READERS.intersection(words[1:]):
        return False
    at = (process / "cwd").resolve()
    named = (process / "environ").read_bytes() + "\0".join(words).encode(errors="surrogateescape")
    return at == git_dir or git_dir in at.parents or os.fsencode(git_dir) in named
