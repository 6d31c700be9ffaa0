"""Refs: compare-and-swap, and looking at them."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from docmem import locks
from docmem.errors import Conflict, TryAgain
from docmem.git import values
from docmem.git.objects import resolve
from docmem.git.process import run
from docmem.git.values import NONE

REF_LOCK_SECONDS = 8.0
"""How long a ref that another git has locked is waited for; git itself holds one for milliseconds."""


def move_ref(git_dir: Path, ref: str, *, new: str | None, old: str | None) -> None:
    """Compare-and-swap: move `ref` from `old` (None: it isn't there) to `new` (None: delete). Raises `Conflict`.

    A ref that another git has locked is waited for; a lock that nobody alive can hold is removed. Raises `TryAgain`
    where the lock stays.
    """
    arguments = ["update-ref", ref, new, old or NONE] if new is not None else ["update-ref", "-d", ref, old or NONE]
    deadline = time.monotonic() + REF_LOCK_SECONDS
    while True:
        done = run(git_dir, *arguments, ok=(0, 1, 128))
        if done.returncode == 0:
            fsync_dir((git_dir / ref).parent)
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


def fsync_dir(path: Path) -> None:
    """git syncs files, never folders: without this a power cut can lose the name of a file that was synced."""
    with contextlib.suppress(FileNotFoundError):
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def refs(git_dir: Path, prefix: str) -> dict[str, str]:
    """Ref name to object id, of the refs below `prefix`."""
    done = run(git_dir, "for-each-ref", "--format=%(refname) %(objectname)", prefix)
    return dict(line.rsplit(" ", 1) for line in done.stdout.decode().splitlines())


def ref_times(git_dir: Path, prefix: str) -> dict[str, tuple[str, datetime]]:
    """Ref name to commit id and time, of the refs below `prefix`."""
    done = run(git_dir, "for-each-ref", "--format=%(refname) %(objectname) %(committerdate:unix)", prefix)
    rows = [line.rsplit(" ", 2) for line in done.stdout.decode().splitlines()]
    return {ref: (commit, values.time(int(seconds))) for ref, commit, seconds in rows}


def has_ref(git_dir: Path, ref: str) -> bool:
    """Whether a ref is there, told without a process."""
    if (git_dir / ref).is_file():
        return True
    try:
        return f" {ref}\n" in (git_dir / "packed-refs").read_text(errors="replace")
    except FileNotFoundError:
        return False
