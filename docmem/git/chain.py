"""The first-parent chain: when each commit took effect; and what a path or a revision ever held."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path

from docmem.errors import NotFound
from docmem.git.process import environment, run, text
from docmem.git.values import REGULAR


def times(git_dir: Path, revision: str, *, since: str | None = None) -> dict[str, int]:
    """The effective time of each commit of the first-parent chain, newest first: its own, or its parent's if later.

    `since`: only those after it; their times are told without it.

    In seconds since 1970; `values.time` makes one a datetime, and for a long chain that costs more than git does.

    A clock that went back makes no commit older than the one it stands on, so these never fall along the chain.
    """
    words = (
        _output(git_dir, "rev-list", "--first-parent", "--timestamp", revision, *([f"^{since}"] if since else []))
        .decode()
        .split()
    )
    seconds = list(accumulate(map(int, words[-2::-2]), max))
    return dict(zip(words[1::2], reversed(seconds), strict=True))


def paths(git_dir: Path, revision: str, folder: str) -> list[str]:
    """Every path below a folder, by one process."""
    listing = _output(git_dir, "ls-tree", "-r", "-z", "--name-only", "--full-tree", revision, folder)
    return text(listing).split("\0")[:-1]


def _output(git_dir: Path, *arguments: str) -> bytes:
    """What a command prints. One pipe alone is read in large pieces; two take turns, 32 KB at a time."""
    done = subprocess.run(
        ["git", "--git-dir", str(git_dir), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(git_dir),
        check=False,
    )
    if done.returncode != 0:
        raise NotFound(f"git {arguments[0]} can't read {arguments[-1]} in {git_dir}")
    return done.stdout


def versions_ever(git_dir: Path, path: str) -> set[tuple[str, str]]:
    """(path, blob id) of each version that any commit of any ref has of a file, or of the files in a folder."""
    return _versions(run(git_dir, *_VERSIONS, "--", path).stdout)


def places_ever(git_dir: Path, blobs: Sequence[str]) -> set[tuple[str, str]]:
    """(path, blob id) of wherever any commit of any ref has one of these blobs."""
    if not blobs:
        return set()
    sought = [f"--find-object={blob}" for blob in blobs]
    wanted = frozenset(blobs)
    return {each for each in _versions(run(git_dir, *_VERSIONS, *sought).stdout) if each[1] in wanted}


_VERSIONS = ("log", "--all", "--full-history", "-m", "--raw", "-z", "--no-renames", "--no-abbrev", "--format=")


def _versions(listing: bytes) -> set[tuple[str, str]]:
    fields = text(listing).split("\0")
    found: set[tuple[str, str]] = set()
    for facts, name in pairwise(fields):
        if facts.lstrip("\n").startswith(":"):
            old_mode, new_mode, old, new, _ = facts.lstrip("\n").lstrip(":").split(" ")
            found |= {(name, blob) for mode, blob in ((old_mode, old), (new_mode, new)) if mode in REGULAR}
    return found


def brought_objects(git_dir: Path, old: str | None, new: str) -> list[tuple[str, str]]:
    """(object id, a path it stands at) of what `new` reaches and `old` doesn't; the path is empty for commits."""
    arguments = ["rev-list", "--objects", new, *([f"^{old}"] if old else [])]
    rows = (line.partition(" ") for line in text(run(git_dir, *arguments).stdout).splitlines())
    return [(object_id, path) for object_id, _, path in rows]
