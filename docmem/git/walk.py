"""The first-parent chain from its beginning, as a stream: what each commit did to each path, symlinks included.

A commit of a hundred thousand files comes in pieces, so that nobody has to hold it.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from docmem.errors import GitError
from docmem.git.process import environment, text
from docmem.git.values import ENGINE, IRREGULAR, REGULAR

PIECE = 1_000
"""Changes of one commit that come at a time."""

_FORMAT = "%x00".join(("%H", "%P", "%ct", "%cn <%ce>", "%(trailers:only=true,unfold=true,separator=%x1f)"))
_CHUNK = 256 * 1024
_OURS = f"{ENGINE.name} <{ENGINE.email}>"


@dataclass(frozen=True, slots=True)
class Touch:
    """What a commit did to a path. `old` and `new`: the blob of a regular file before and after, or None.

    `link`: the object of the symlink or submodule that stands there now.
    """

    path: str
    old: str | None
    new: str | None
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A commit of the chain. `seconds`: its committer's time, since 1970; `trailers`: their lines. `is_ours`: the
    engine committed it, whoever wrote it."""

    id: str
    parent: str | None
    seconds: int
    trailers: tuple[str, ...]
    is_ours: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """Some of a commit's changes. `ends`: these are the last of them."""

    commit: Link
    touches: tuple[Touch, ...]
    ends: bool


def walk(git_dir: Path, head: str, *, since: str | None = None) -> Iterator[Piece]:
    """Every commit of `head`'s first-parent chain that `since` doesn't have, oldest first. Raises `GitError`."""
    arguments = ["log", "--reverse", "--first-parent", "-m", "--root", "--raw", "-z", "--no-renames", "--no-abbrev"]
    arguments += ["--no-color", f"--format={_FORMAT}", head, *([f"^{since}"] if since else [])]
    return _pieces(_fields(git_dir, arguments))


def listing(git_dir: Path, revision: str) -> Iterator[tuple[str, str]]:
    """(path, blob) of each regular file at a revision. Raises `GitError`."""
    for row in _fields(git_dir, ["ls-tree", "-r", "-z", "--full-tree", revision]):
        facts, _, path = row.partition("\t")
        mode, _, blob = facts.split(" ")
        if mode in REGULAR:
            yield path, blob


def _fields(git_dir: Path, arguments: Sequence[str]) -> Iterator[str]:
    """What git prints, cut at its NULs, while it prints."""
    command = ["git", "--git-dir", str(git_dir), *arguments]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=environment(git_dir)
        )
        with process:
            assert process.stdout is not None
            try:
                yield from _cut(process.stdout)
            finally:
                process.stdout.close()
        if process.returncode != 0:
            errors.seek(0)
            words = errors.read().decode(errors="replace").strip()[-500:]
            raise GitError(f"git {arguments[0]} failed in {git_dir} (exit {process.returncode}): {words}")


def _cut(out: IO[bytes]) -> Iterator[str]:
    rest = b""
    while chunk := out.read(_CHUNK):
        *whole, rest = (rest + chunk).split(b"\0")
        yield from map(text, whole)
    if rest:
        yield text(rest)


def _pieces(fields: Iterator[str]) -> Iterator[Piece]:
    field = next(fields, None)
    while field is not None:
        parent, seconds, committer, trailers = (next(fields) for _ in range(4))
        is_ours = committer == _OURS
        commit = Link(field, parent.split(" ")[0] or None, int(seconds), _lines(trailers), is_ours)
        touches: list[Touch] = []
        field = next(fields, None)
        while field is not None and field.lstrip("\n").startswith(":"):
            touch = _touch(field, next(fields))
            if touch is not None:
                if len(touches) >= PIECE:
                    yield Piece(commit, tuple(touches), ends=False)
                    touches = []
                touches.append(touch)
            field = next(fields, None)
        yield Piece(commit, tuple(touches), ends=True)


def _lines(trailers: str) -> tuple[str, ...]:
    return tuple(line for line in trailers.split("\x1f") if line)


def _touch(facts: str, path: str) -> Touch | None:
    old_mode, new_mode, old, new, _ = facts.lstrip("\n:").split(" ")
    before = old if old_mode in REGULAR else None
    after = new if new_mode in REGULAR else None
    link = new if new_mode in IRREGULAR else None
    if before == after and link is None and old_mode not in IRREGULAR:
        return None  # its mode alone
    return Touch(path, before, after, link)
