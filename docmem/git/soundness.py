"""Whether a repo holds what its refs name, and what it holds that no branch names."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from docmem.errors import GitError, NotFound
from docmem.git.objects import object_of, read_blobs, resolve
from docmem.git.process import run, text


def kind(git_dir: Path, name: str) -> str | None:
    """`commit`, `tree`, `blob` or `tag`; None where there is no such object."""
    try:  # an open process knows, and one more would cost a small sync a tenth of its time
        return object_of(git_dir, name)[0]
    except NotFound:
        return None
    except GitError:  # what is broken ends that process, and has a type all the same
        pass
    done = run(git_dir, "cat-file", "-t", name, ok=(0, 1, 128))
    return text(done.stdout).strip() if done.returncode == 0 else None


def missing(git_dir: Path, revision: str) -> str | None:
    """What git says of the first object that a commit needs and the repo doesn't hold; None where all are there."""
    done = run(git_dir, "rev-list", "--objects", "--quiet", revision, ok=(0, 1, 128))
    lines = text(done.stderr).splitlines() or ["git gives no reason"]
    return None if done.returncode == 0 else lines[-1].removeprefix("fatal: ")


def unreadable(git_dir: Path, revision: str, *, since: str | None) -> str | None:
    """The id of the first object of `revision` that can't be read, of those that `since` hasn't."""
    known = [f"^{since}"] if since is not None and resolve(git_dir, since) is not None else []
    listing = run(git_dir, "rev-list", "--objects", "--no-object-names", revision, *known)
    wanted = text(listing.stdout).splitlines()
    read = 0
    try:
        for _ in read_blobs(git_dir, wanted):
            read += 1
    except (NotFound, GitError):
        return wanted[read]
    return None


def newest(git_dir: Path, *, but: Collection[str] = ()) -> str | None:
    """The newest commit that no other is made on, whether a ref names it or not, and that isn't one of `but`."""
    listing = run(
        git_dir, "cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objecttype) %(objectname)"
    )
    commits = [name for kind, name in map(str.split, text(listing.stdout).splitlines()) if kind == "commit"]
    wanted = "".join(f"{name}\n" for name in commits if name not in but).encode()
    if not wanted:
        return None
    shown = run(git_dir, "log", "--no-walk=unsorted", "--stdin", "--format=%ct %H %P", stdin=wanted)
    rows = [(int(when), name, parents) for when, name, *parents in map(str.split, text(shown.stdout).splitlines())]
    built_on = {parent for _, _, parents in rows for parent in parents}
    ends = [(when, name) for when, name, _ in rows if name not in built_on]
    return max(ends)[1] if ends else None
