"""A person's clone: made, set up, and read as it stands on disk. With that person's own configuration and keys."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from docmem.git.process import run_for_person, text, words_of
from docmem.git.values import MAIN, NONE

SECONDS = 120.0
"""How long a fetch or a push may take."""


def clone(source: str, folder: Path) -> None:
    """Clone `source` into `folder`: only what its branches reach (a path clone copies unreachable objects too)."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    run_for_person(
        folder.parent, "clone", "--quiet", "--no-local", "--template=", "--origin=origin", source, str(folder)
    )


def top(folder: Path) -> Path | None:
    """The work tree's root that `folder` lies in; None where it is in no work tree."""
    if not folder.is_dir():
        return None
    done = run_for_person(folder, "rev-parse", "--show-toplevel", ok=(0, 128))
    return Path(text(done.stdout).removesuffix("\n")) if done.returncode == 0 and done.stdout.strip() else None


def git_dir_of(folder: Path) -> Path:
    """The git directory of a work tree."""
    done = run_for_person(folder, "rev-parse", "--absolute-git-dir")
    return Path(text(done.stdout).removesuffix("\n"))


def config(folder: Path, key: str) -> list[str]:
    """All values of a setting as it holds in `folder`."""
    done = run_for_person(folder, "config", "--null", "--get-all", key, ok=(0, 1))
    return text(done.stdout).split("\0")[:-1]


def set_config(folder: Path, key: str, *values: str) -> None:
    """Set a setting of the repo in `folder` to these values alone."""
    run_for_person(folder, "config", "--local", "--unset-all", key, ok=(0, 5))
    for value in values:
        run_for_person(folder, "config", "--local", "--add", key, value)


def staged_tree(folder: Path, index: Path | None = None) -> str:
    """The tree that a commit would hold now. Raises `GitError` while a merge is unresolved."""
    return text(run_for_person(folder, "write-tree", index=index).stdout).strip()


def saved_tree(folder: Path, index: Path) -> str:
    """The tree of the files as they are saved, through an index of our own, so that the person's stays untouched.

    `index` is kept between calls: unchanged files are then told by their times. Ignored files are left out.
    """
    if not index.exists():
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(git_dir_of(folder) / "index", index)
    run_for_person(folder, "-c", "advice.addEmbeddedRepo=false", "add", "--all", "--", ".", index=index)
    return staged_tree(folder, index)


def set_index(folder: Path, blobs: Mapping[str, str | None]) -> None:
    """Make the person's index hold these blobs (None: no such file); settles an unmerged path."""
    rows = []
    for path, blob in blobs.items():
        name = os.fsencode(path)
        rows.append(b"0 %b\t%b\0" % (NONE.encode(), name))
        if blob is not None:
            rows.append(b"100644 %b 0\t%b\0" % (blob.encode(), name))
    run_for_person(folder, "update-index", "-z", "--add", "--remove", "--index-info", stdin=b"".join(rows))
    run_for_person(folder, "update-index", "-q", "--refresh", ok=(0, 1))


def set_unmerged(folder: Path, path: str, *, base: str | None, upstream: str | None, own: str | None) -> None:
    """Tell the person's git that `path` is in conflict, as an unfinished merge does: three blobs, None for no file."""
    name = os.fsencode(path)
    rows = [b"0 %b\t%b\0" % (NONE.encode(), name)]
    for stage, blob in enumerate((base, upstream, own), start=1):
        if blob is not None:
            rows.append(b"100644 %b %d\t%b\0" % (blob.encode(), stage, name))
    run_for_person(folder, "update-index", "-z", "--index-info", stdin=b"".join(rows))


def unmerged(folder: Path) -> dict[str, dict[int, str]]:
    """Path to its blobs by stage (1 base, 2 upstream's, 3 one's own), of the files in conflict."""
    found: dict[str, dict[int, str]] = {}
    for row in text(run_for_person(folder, "ls-files", "--unmerged", "-z").stdout).split("\0")[:-1]:
        facts, _, path = row.partition("\t")
        _, blob, stage = facts.split(" ")
        found.setdefault(path, {})[int(stage)] = blob
    return found


def store_blob(folder: Path, data: bytes) -> str:
    """Keep bytes as a blob of the clone; returns its id."""
    return text(run_for_person(folder, "hash-object", "-w", "--stdin", stdin=data).stdout).strip()


def push(folder: Path, revision: str) -> tuple[bool, str]:
    """Push a revision to origin's main: whether it was taken, and what was said."""
    done = run_for_person(folder, "push", "--quiet", "origin", f"{revision}:{MAIN}", ok=None, timeout=SECONDS)
    return done.returncode == 0, words_of(done)


def message(folder: Path, commit: str) -> str:
    """A commit's whole message."""
    return text(run_for_person(folder, "log", "-1", "--format=%B", commit).stdout)


def branch(folder: Path) -> str | None:
    """The ref that HEAD follows; None where it is detached."""
    done = run_for_person(folder, "symbolic-ref", "--quiet", "HEAD", ok=(0, 1))
    return text(done.stdout).strip() or None


def fetch(folder: Path, remote: str = "origin", refspecs: Iterable[str] = ()) -> None:
    """Fetch as the clone is set up to, or these refspecs. Raises `GitError`, `TryAgain`."""
    run_for_person(folder, "fetch", "--quiet", remote, *refspecs, timeout=SECONDS)
