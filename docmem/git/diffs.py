"""What changed: between two revisions, along the history; and git's own diff, grep and merge of texts."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

from docmem.git import values
from docmem.git.process import run, text
from docmem.git.values import EMPTY_TREE, IRREGULAR, REGULAR, Author, Change, Commit


def changes(git_dir: Path, old: str | None, new: str) -> list[Change]:
    """What differs between two revisions or trees, file by file (everything, without `old`).

    A move is a deletion and an addition.
    """
    done = run(git_dir, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old or EMPTY_TREE, new)
    return list(_raw_changes(text(done.stdout).split("\0")[:-1]))


def brought(git_dir: Path, old: str | None, new: str) -> list[tuple[str, datetime]]:
    """Every commit that `new` has and `old` hasn't, oldest first, with its committer's time."""
    arguments = ["rev-list", "--reverse", "--topo-order", "--timestamp", new, *([f"^{old}"] if old else [])]
    rows = [line.split() for line in run(git_dir, *arguments).stdout.decode().splitlines()]
    return [(commit, values.time(int(seconds))) for seconds, commit in rows]


def irregular(git_dir: Path, old: str | None, new: str) -> dict[str, str]:
    """Paths that become a symlink or a submodule between two revisions (of all, without `old`), and its object's id."""
    return {path: facts[3] for path, facts in _raw_rows(git_dir, old, new) if facts[1] in IRREGULAR}


def concerns_irregular(git_dir: Path, old: str, new: str) -> bool:
    """Whether a symlink or a submodule comes, goes or changes between two revisions."""
    return any(facts[0] in IRREGULAR or facts[1] in IRREGULAR for _, facts in _raw_rows(git_dir, old, new))


def _raw_rows(git_dir: Path, old: str | None, new: str) -> Iterator[tuple[str, list[str]]]:
    """Path, and old mode, new mode, old id, new id, of each change."""
    done = run(git_dir, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old or EMPTY_TREE, new)
    fields = text(done.stdout).split("\0")[:-1]
    for facts, path in zip(fields[::2], fields[1::2], strict=True):
        yield path, facts.removeprefix(":").split(" ")


def _raw_changes(fields: Sequence[str]) -> Iterator[Change]:
    for facts, path in zip(fields[::2], fields[1::2], strict=True):
        change = _raw_change(facts, path)
        if change is not None:
            yield change


def _raw_change(facts: str, path: str) -> Change | None:
    old_mode, new_mode, old, new, _ = facts.lstrip("\n").lstrip(":").split(" ")
    before = old if old_mode in REGULAR else None
    after = new if new_mode in REGULAR else None
    if before is None and after is None:
        return None
    status: Literal["A", "M", "D"] = "A" if before is None else "D" if after is None else "M"
    return Change(status, path, before, after, replaced=new_mode in IRREGULAR)


_FIELDS = ("%H", "%P", "%an", "%ae", "%ct", "%s", "%(trailers:only=true,unfold=true,separator=%x1f)")


def history(
    git_dir: Path,
    revision: str,
    *,
    since: str | None = None,
    paths: Sequence[str] = (),
    limit: int | None = None,
    saying: str | None = None,
    whole: bool = False,
) -> Iterator[Commit]:
    """Commits of the first-parent chain of `revision`, newest first, each with its changes against its first parent.

    `since`: only those that `since` doesn't have. `paths`: only commits that change one of these files or folders; a
    single one is answered from the commit-graph's changed paths. `saying`: only those whose message has these words.
    `whole`: such a commit with all its changes, not only with those of `paths`.
    """
    arguments = ["log", "--first-parent", "-m", "--raw", "-z", "--no-renames", "--no-abbrev", "--no-color"]
    arguments += ["--format=" + "%x00".join(_FIELDS)]
    if limit is not None:
        arguments.append(f"--max-count={limit}")
    if whole:
        arguments.append("--full-diff")
    if saying is not None:
        arguments += ["--fixed-strings", f"--grep={saying}"]
    arguments.append(revision)
    if since is not None:
        arguments.append(f"^{since}")
    fields = text(run(git_dir, *arguments, "--", *paths).stdout).split("\0")
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
        when=values.time(int(seconds)),
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
    base = old or run(git_dir, "hash-object", "-t", "tree", "--stdin", stdin=b"").stdout.decode().strip()
    flags = ["--color=always" if color else "--no-color", "--no-ext-diff", "--no-renames"]
    return run(git_dir, "diff", *flags, base, new, "--", *paths).stdout.decode("utf-8", "replace")


def grep(git_dir: Path, revision: str, pattern: str, folder: str, *, ignore_case: bool = False) -> list[str]:
    """Paths below `folder` of the files with a line that the extended regular expression `pattern` finds."""
    flags = ["-i"] if ignore_case else []
    done = run(git_dir, "grep", "-z", "-l", "-E", *flags, "-e", pattern, revision, "--", folder, ok=(0, 1))
    return [text(name).split(":", 1)[1] for name in done.stdout.split(b"\0")[:-1]]


def merge_file(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """git's three-way merge of a text; None where the two changes overlap."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("ours", "base", "theirs")]
        for path, data in zip(paths, (ours, base, theirs), strict=True):
            path.write_bytes(data)
        done = run(Path(folder), "merge-file", "-p", *map(str, paths), ok=tuple(range(128)))
        return done.stdout if done.returncode == 0 else None
