"""Writing a history anew: `git fast-export`, a rule for each change, `git fast-import` into a repo aside.

The live repo is only read. What comes out is a map from old commits to new ones and where each ref would stand;
fetching that back and swapping the refs are steps of their own.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, Protocol, TypeAlias

from docmem.errors import Conflict, GitError
from docmem.git.process import environment, run, text
from docmem.git.references import refs as refs_below
from docmem.git.repos import borrow
from docmem.git.values import NONE
from docmem.git.writing import quoted

Kept: TypeAlias = bytes | Literal["keep", "drop", "delete"]
"""What becomes of one file's new version: it stays, the change is left out, the file goes, or it has these bytes."""

_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPES = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


class Rule(Protocol):
    """Decides over each commit."""

    def version(self, path: str, blob: str) -> Kept:
        """What becomes of a file's new version."""
        ...

    def is_gone(self, path: str) -> bool:
        """Whether no trace of this path stays, its deletion included."""
        ...

    def message(self, message: bytes, *, touched: bool, emptied: bool) -> bytes:
        """The message to write. `touched`: some change was left out; `emptied`: all were."""
        ...


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Old commit to new one, and where the refs would stand."""

    commits: Mapping[str, str]
    refs: Mapping[str, str]


def rewrite(git_dir: Path, aside: Path, rule: Rule, *, refs: Sequence[str]) -> Rewritten:
    """Write what `refs` reach anew into `aside`, which borrows the live repo's blobs. Signatures are lost."""
    shutil.rmtree(aside, ignore_errors=True)
    borrow(aside, git_dir)
    marks = aside / "marks"
    with tempfile.TemporaryFile() as errors, _exporting(git_dir, refs, errors) as source:
        with _importing(aside, marks, errors) as target:
            assert source.stdout is not None
            assert target.stdin is not None
            olds = dict(_filtered(source.stdout, target.stdin, rule))
            target.stdin.close()
        if source.wait() != 0 or target.wait() != 0:
            errors.seek(0)
            words = errors.read().decode(errors="replace").strip()[-2000:]
            raise GitError(f"the history of {git_dir} could not be written anew: {words}")
    news = dict(line.split() for line in marks.read_text().splitlines())
    commits = {old: news[mark] for mark, old in olds.items() if mark in news}
    return Rewritten(commits, refs_below(aside, "refs/"))


def _exporting(git_dir: Path, refs: Sequence[str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    flags = ["--no-data", "--show-original-ids", "--use-done-feature", "--reencode=no", "--signed-tags=strip"]
    command = ["git", "-c", "core.quotePath=false", "--git-dir", str(git_dir), "fast-export", *flags]
    command += ["--tag-of-filtered-object=rewrite", *refs]
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=environment(git_dir)
    )


def _importing(aside: Path, marks: Path, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    command = ["git", "-c", "fastimport.unpackLimit=1", "--git-dir", str(aside), "fast-import", "--force", "--quiet"]
    command += [f"--export-marks={marks}", "--date-format=raw-permissive"]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors, env=environment(aside)
    )


def _filtered(source: IO[bytes], target: IO[bytes], rule: Rule) -> Iterator[tuple[str, str]]:
    """Pass a stream through the rule; yields (mark, old commit)."""
    line = source.readline()
    while line:
        if line.startswith(b"commit "):
            line, mark, old = _commit(line, source, target, rule)
            yield mark, old
            continue
        target.write(line)
        if line.startswith(b"data "):
            target.write(source.read(int(line[5:])))
        line = source.readline()


def _commit(line: bytes, source: IO[bytes], target: IO[bytes], rule: Rule) -> tuple[bytes, str, str]:
    head, mark, old = [line], "", ""
    while not (line := source.readline()).startswith(b"data "):
        if line.startswith(b"mark "):
            mark = line.split()[1].decode()
        if line.startswith(b"original-oid "):
            old = line.split()[1].decode()
        head.append(line)
    message = source.read(int(line[5:]))
    parents: list[bytes] = []
    changes: list[bytes] = []
    line = source.readline()
    if line == b"\n":  # the optional line feed after data
        line = source.readline()
    while line.startswith((b"from ", b"merge ")):
        parents.append(line)
        line = source.readline()
    while line.startswith((b"M ", b"D ", b"deleteall")):
        changes.append(line)
        line = source.readline()
    kept = [written for change in changes if (written := _change(change, rule)) is not None]
    touched = kept != changes
    message = rule.message(message, touched=touched, emptied=touched and not kept)
    target.write(b"".join([*head, b"data %d\n%b\n" % (len(message), message), *parents, *kept]))
    return line, mark, old


def _change(line: bytes, rule: Rule) -> bytes | None:
    """One change as it is to be written, None where it is left out."""
    if line.startswith(b"deleteall"):
        return line
    if line.startswith(b"D "):
        return None if rule.is_gone(_path(line[2:-1])) else line
    _, mode, blob, name = line[:-1].split(b" ", 3)
    path = _path(name)
    if rule.is_gone(path):
        return None
    became = rule.version(path, blob.decode())
    if became == "keep":
        return line
    if became == "drop":
        return None
    if became == "delete":
        return b"D " + quoted(path) + b"\n"
    assert isinstance(became, bytes)
    return b"M %b inline %b\ndata %d\n%b\n" % (mode, quoted(path), len(became), became)


def _path(name: bytes) -> str:
    if not name.startswith(b'"'):
        return text(name)
    return text(_ESCAPE.sub(_unescaped, name[1:-1]))


def _unescaped(found: re.Match[bytes]) -> bytes:
    code = found[1]
    return bytes([int(code, 8)]) if len(code) == 3 else _ESCAPES.get(code, code)


def fetch(git_dir: Path, source: Path, below: str) -> None:
    """Bring all that another repo's refs reach into this one, with those refs below `below`."""
    flags = ["--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc"]
    command = ["-c", "fetch.unpackLimit=1", "-c", "protocol.file.allow=always", "fetch", *flags]
    run(git_dir, *command, str(source), f"+refs/*:{below}*")


def move_refs(git_dir: Path, moves: Mapping[str, tuple[str | None, str | None]]) -> None:
    """Move many refs at once, each from its old value to its new one (None: no such ref).

    Raises `Conflict` where somebody has moved one meanwhile, `GitError` where git refuses for another reason.
    """
    if not moves:
        return
    lines = ["start"]
    for ref, (old, new) in sorted(moves.items()):
        lines.append(f"update {ref} {new} {old or NONE}" if new is not None else f"delete {ref} {old}")
    done = run(git_dir, "update-ref", "--stdin", stdin="\n".join([*lines, "commit\n"]).encode(), ok=(0, 1, 128))
    if done.returncode != 0:
        words = done.stderr.decode(errors="replace").strip()
        now = refs_below(git_dir, "refs/")
        if b".lock" not in done.stderr and all(now.get(ref) == old for ref, (old, _) in moves.items()):
            raise GitError(f"git could not move the refs of {git_dir}: {words}")
        raise Conflict(f"the refs of {git_dir} moved meanwhile: {words}", hint="run it again")


def _all_objects(git_dir: Path) -> subprocess.Popen[bytes]:
    flags = ["--batch-all-objects", "--batch", "--buffer", "--unordered"]
    command = ["git", "--git-dir", str(git_dir), "cat-file", *flags]
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(git_dir)
    )


def objects(git_dir: Path, *, wanted: Callable[[str], bool] = lambda kind: True) -> Iterator[tuple[str, str, bytes]]:
    """(id, type, content) of every object there is, reachable or not, in packs or loose."""
    with _all_objects(git_dir) as process:
        assert process.stdout is not None
        while line := process.stdout.readline():
            object_id, kind, size = line.decode().split()
            data = process.stdout.read(int(size) + 1)
            if len(data) != int(size) + 1:
                raise GitError(f"git cat-file died while reading {git_dir}", hint="run it again")
            if wanted(kind):
                yield object_id, kind, data[:-1]
    if process.returncode != 0:
        raise GitError(f"git cat-file could not read every object of {git_dir}", hint="see: git fsck --full")
