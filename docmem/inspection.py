"""The check of format 1 put to what git holds: a push, what is staged, a folder as it is saved, a whole tenant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from docmem import check, git, layout, pairs
from docmem.check import Fault
from docmem.errors import InputError
from docmem.git import Change, diffs, worktrees
from docmem.git.values import EMPTY_TREE

_NO_CONFIG = Fault(
    layout.CONFIG, "missing", "without it this is no tenant: nothing is learned or served", hint="put it back"
)
_FEW = 50
"""Up to this many ids are looked for by name; more, by listing every id."""


def of_changes(git_dir: Path, old: str | None, tree: str) -> list[Fault]:
    """What is wrong with the files that differ between a revision (None: everything) and a tree or revision."""
    changed = git.changes(git_dir, old, tree)
    gone = [_NO_CONFIG for change in changed if change.path == layout.CONFIG and change.new is None]
    return gone + of_files(git_dir, tree, changed) + _irregular(git_dir, old, tree)


def of_files(git_dir: Path, tree: str, changed: Sequence[Change]) -> list[Fault]:
    """What is wrong with the files that `changed` leads to, as parts of `tree`."""
    there = {change.path: change.new for change in changed if change.new is not None}
    bytes_of = dict(git.read_blobs(git_dir, set(there.values()))) if there else {}
    contents = {path: bytes_of[blob] for path, blob in there.items()}
    added = any(change.status == "A" for change in changed)
    paths = git.files(git_dir, tree) if added else contents
    found = check.faults(contents, all_paths=paths, ids=_elsewhere(git_dir, tree, changed, contents))
    return found + _changed_ids(git_dir, changed)


def _changed_ids(git_dir: Path, changed: Sequence[Change]) -> list[Fault]:
    """Memories whose id was edited: one goes, another comes at its path, and says much the same.

    One that goes for another of its name that says something else is two things that people do.
    """
    memories = [change for change in changed if layout.place(change.path).kind == "memory"]
    wanted = {blob for change in memories for blob in (change.old, change.new) if blob is not None}
    bytes_of = dict(git.read_blobs(git_dir, wanted)) if any(change.status == "M" for change in memories) else {}
    if not bytes_of:
        return []
    alone = [pair for pair in pairs.pairs(memories, bytes_of.__getitem__) if pair.old is None or pair.new is None]
    went = {pair.old.path: pair.old for pair in alone if pair.old is not None}
    came = [pair.new for pair in alone if pair.new is not None and pair.new.path in went]
    return [
        Fault(new.path, "id_changed", f"this was {went[new.path].id}: an id never changes", hint="put it back")
        for new in came
        if check.is_alike(bytes_of[went[new.path].blob], bytes_of[new.blob])
    ]


def of_work_tree(folder: Path) -> list[Fault]:
    """What is wrong with the files of a checkout as they are saved. Raises `InputError` outside of a work tree."""
    top = work_tree(folder)
    git_dir = worktrees.git_dir_of(top)
    tree = worktrees.saved_tree(top, git_dir / "docmem-check.index")
    gone = [_NO_CONFIG] if layout.CONFIG not in git.files(git_dir, tree) else []
    return gone + of_changes(git_dir, None, tree)


def strays_in(folder: Path) -> list[str]:
    """The files of a checkout that docmem will never read. See `check.strays`."""
    top = work_tree(folder)
    git_dir = worktrees.git_dir_of(top)
    return strays(git_dir, worktrees.saved_tree(top, git_dir / "docmem-check.index"))


def strays(git_dir: Path, tree: str) -> list[str]:
    """The same of a tree or revision."""
    return check.strays(git.files(git_dir, tree))


def of_staged(folder: Path, index: Path | None = None) -> list[Fault]:
    """What is wrong with what the next commit would change. `index`: the one git commits from."""
    top = work_tree(folder)
    git_dir = worktrees.git_dir_of(top)
    return of_changes(git_dir, git.resolve(git_dir, "HEAD"), worktrees.staged_tree(top, index))


def work_tree(folder: Path) -> Path:
    """The root of the work tree that `folder` lies in. Raises `InputError`."""
    top = worktrees.top(folder)
    if top is None:
        raise InputError(
            f"{folder} is neither a tenant nor a checkout",
            hint="give a tenant's name, or a folder that docmem checkout made",
        )
    return top


def _irregular(git_dir: Path, old: str | None, tree: str) -> list[Fault]:
    reason = "a symlink or submodule: only plain files are memory"
    paths = diffs.irregular(git_dir, old, tree)
    return [Fault(path, "not_a_file", reason, hint="put the file itself there") for path in paths]


def _elsewhere(git_dir: Path, tree: str, changed: Sequence[Change], contents: Mapping[str, bytes]) -> dict[str, str]:
    """Memory id to path of the files that aren't checked, for the ids that the change brings."""
    ids = {found for path, data in contents.items() if (found := check.memory_id(path, data)) is not None}
    fresh = ids - _before(git_dir, changed)
    return {found: path for path, found in _with_id(git_dir, tree, fresh, skip=contents)} if fresh else {}


def _before(git_dir: Path, changed: Sequence[Change]) -> set[str]:
    old = {change.path: change.old for change in changed if change.old and layout.place(change.path).kind == "memory"}
    bytes_of = dict(git.read_blobs(git_dir, set(old.values()))) if old else {}
    found = {check.memory_id(path, bytes_of[blob]) for path, blob in old.items()}
    return {memory for memory in found if memory is not None}


def _with_id(git_dir: Path, tree: str, ids: Iterable[str], *, skip: Mapping[str, bytes]) -> Iterable[tuple[str, str]]:
    wanted = set(ids)
    which = "|".join(sorted(wanted)) if len(wanted) <= _FEW else "[0-9a-f]{16}"
    paths = [path for path in git.grep(git_dir, tree, rf"^id: *[\"']?({which})[\"']?", "subjects") if path not in skip]
    blobs = git.files(git_dir, tree) if paths else {}
    bytes_of = dict(git.read_blobs(git_dir, {blobs[path] for path in paths if path in blobs})) if paths else {}
    for path in paths:
        memory = check.memory_id(path, bytes_of.get(blobs.get(path, ""), b""))
        if memory in wanted:
            yield path, memory


def passing_secrets(git_dir: Path, old: str | None, commits: Iterable[str]) -> list[Fault]:
    """Secrets in the commits between: a file that a later commit cleans stays readable in the history."""
    found: list[Fault] = []
    before = old or EMPTY_TREE
    for commit in commits:
        changed = git.changes(git_dir, before, commit)
        there = {change.path: change.new for change in changed if change.new is not None}
        bytes_of = dict(git.read_blobs(git_dir, set(there.values()))) if there else {}
        contents = {path: bytes_of[blob] for path, blob in there.items()}
        faults = check.faults(contents, all_paths=(), ids={})
        found += [
            Fault(fault.path, fault.code, f"in commit {commit[:12]}: {fault.reason}", fault.line, fault.hint)
            for fault in faults
            if fault.code == "secret"
        ]
        before = commit
    return found
