"""A bare repo as a store has to be set up, and its writer lock."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from docmem.errors import TryAgain
from docmem.git.process import run, text

LOCK_SECONDS = 30.0
"""How long a writer waits for the repo's lock."""


_STORE = {
    "receive.denyNonFastForwards": "true",
    "receive.denyDeletes": "true",
    "receive.fsckObjects": "true",
    "receive.advertisePushOptions": "true",
    "receive.autogc": "false",
    "gc.auto": "0",
    "transfer.hideRefs": "refs/docmem",
    "uploadpack.hideRefs": "!refs/docmem/review",
    "core.fsync": "committed",
    "core.hooksPath": "hooks",
}
"""How a store is set up: no force-push, no gc behind a writer's back. A checkout may fetch what waits for review, and
somebody's global `core.hooksPath` must not switch off the store's own hooks."""

_HEAD = re.compile(rb"ref: *refs/|[0-9a-f]{40}")


def init(git_dir: Path) -> None:
    """Make a bare repo, as a store has to be set up."""
    git_dir.mkdir(parents=True)
    run(git_dir, "init", "--quiet", "--bare", "--template=", "--initial-branch=main", str(git_dir))
    set_up(git_dir)


def borrow(aside: Path, git_dir: Path) -> None:
    """Make a bare repo that reads the objects of another one beside its own, and hides none of its refs.

    A fetch from one that hid them left out, without a word, all that only refs/docmem/kept or aside reach.
    """
    init(aside)
    run(aside, "config", "--unset-all", "transfer.hideRefs")
    (aside / "objects" / "info").mkdir(exist_ok=True)
    (aside / "objects" / "info" / "alternates").write_text(f"{(git_dir / 'objects').absolute()}\n")


def set_up(git_dir: Path) -> None:
    """Give a store the settings it must have; those that it has stay as they are."""
    for key, value in _missing(git_dir).items():
        run(git_dir, "config", key, value)


def is_set_up(git_dir: Path) -> bool:
    """Whether a store has the settings it must have."""
    return not _missing(git_dir)


def _missing(git_dir: Path) -> dict[str, str]:
    rows = text(run(git_dir, "config", "--local", "--list", "-z").stdout).split("\0")[:-1]
    there = {tuple(row.split("\n", 1)) for row in rows}
    return {key: value for key, value in _STORE.items() if (key.lower(), value) not in there}


def is_repo(git_dir: Path) -> bool:
    """Whether `git_dir` is a git directory, as git itself would tell: a HEAD that names a branch or a commit counts."""
    try:
        head = (git_dir / "HEAD").read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return False
    return _HEAD.match(head) is not None and (git_dir / "objects").is_dir()


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
