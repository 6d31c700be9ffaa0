"""What the first-parent chain says about a row: the commit that changed it last, when it began, how often it changed.

Pure. Commits come newest first. A trace that meets the beginning of its file or memory is `whole`; one that doesn't
goes on in the row that is there from an earlier sync. So an index that was brought along commit by commit and one
that is built anew say the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from docmem.git import Commit
from docmem.layout import CONFIG, place

DELETES = "Docmem-Deletes"
"""Trailer by which the engine announces how many memories a commit deletes."""


@dataclass(frozen=True, slots=True)
class Trace:
    """`revision` and `updated` of the last change; `created` and `oldest` (index into the commits) of the first one
    seen; how many were seen."""

    revision: str
    updated: datetime
    created: datetime
    oldest: int
    changes: int
    whole: bool = False


def trace(commits: Iterable[Commit], keys: Mapping[str, str], ids: Mapping[str, str]) -> dict[str, Trace]:
    """Follow files back, each under its key: a memory's id, or the path of another file.

    `keys`: path to key, as things stand at the newest commit. `ids`: blob to memory id. A memory is followed from
    path to path: where its file begins, or held another memory before, it came from the file that held it then.
    """
    traces: dict[str, Trace] = {}
    standing = dict(keys)
    for number, commit in enumerate(commits):
        touched = [change for change in commit.changes if change.path in standing]
        left = _left(commit, ids) if touched else {}
        moved: dict[str, str] = {}
        for change in touched:
            key = standing.pop(change.path)
            origin = change.path if _holds(change.old, key, ids) else left.get(key)
            traces[key] = _touched(traces.get(key), number, commit, whole=origin is None)
            if origin is not None:
                moved[origin] = key
        standing.update(moved)
        if not standing:
            break
    return traces


def _holds(blob: str | None, key: str, ids: Mapping[str, str]) -> bool:
    """Whether a file held this before, in this blob. A head that couldn't be read is taken for it."""
    return blob is not None and ids.get(blob, key) == key


def _left(commit: Commit, ids: Mapping[str, str]) -> dict[str, str]:
    """Memory id to the file that held it before the commit and doesn't after; the first by path of several."""
    left: dict[str, str] = {}
    for change in commit.changes:
        memory = ids.get(change.old or "")
        if memory is not None and ids.get(change.new or "") != memory:
            left[memory] = min(left.get(memory, change.path), change.path)
    return left


def _touched(seen: Trace | None, number: int, commit: Commit, *, whole: bool) -> Trace:
    if seen is None:
        return Trace(commit.id, commit.when, commit.when, oldest=number, changes=1, whole=whole)
    return replace(seen, created=commit.when, oldest=number, changes=seen.changes + 1, whole=whole)


def announced(commits: Iterable[Commit], confirmed: Collection[str] = ()) -> set[str]:
    """Paths whose last deletion its commit announced, with a trailer that gives the number it deletes.

    `confirmed`: commits whose deletions a person confirmed when they pushed them.
    """
    last: dict[str, bool] = {}
    for commit in commits:
        gone = [change for change in commit.changes if change.new is None]
        said = bool(gone) and (commit.id in confirmed or commit.trailer(DELETES) in _counts(commit))
        for change in gone:
            last.setdefault(change.path, said)
    return {path for path, said in last.items() if said}


def _counts(commit: Commit) -> set[str]:
    """The numbers by which a commit may call its deletions: its memories', or all that it takes out of the index.

    A pure move is no deletion: its blob stands elsewhere afterwards.
    """
    kept = {change.new for change in commit.changes if change.new is not None}
    gone = [place(change.path).kind for change in commit.changes if change.new is None and change.old not in kept]
    memories = sum(kind == "memory" for kind in gone)
    return {str(memories), str(sum(kind in {"memory", "profile", "document"} for kind in gone))} - {"0"}


def versions(commits: Iterable[Commit], paths: Collection[str]) -> tuple[dict[str, list[tuple[int, str]]], set[str]]:
    """(index into `commits`, blob) of the states that files had, newest first, back to where each began; and those
    that began in these commits. What a symlink replaced is such a state, and what was deleted before it came is none;
    the settings are never taken for deleted."""
    found: dict[str, list[tuple[int, str]]] = {path: [] for path in paths}
    began: set[str] = set()
    for index, commit in enumerate(commits):
        for change in commit.changes:
            if change.path not in found or change.path in began:
                continue
            if change.new is not None:
                found[change.path].append((index, change.new))
            deleted = change.new is None and not change.replaced and change.path != CONFIG
            if change.old is None or deleted:
                began.add(change.path)
    return found, began


def holder(commits: Sequence[Commit], claimants: Collection[str], memory: str, ids: Mapping[str, str]) -> str:
    """Which of several files with one memory id keeps it: the one that has held it longest, then the first by path.

    A move is no new beginning.
    """
    return min(claimants, key=lambda path: (-trace(commits, {path: memory}, ids)[memory].oldest, path))
