"""The branch that is mirrored: where it is, or why there is none."""

from __future__ import annotations

import shlex

from docmem import git
from docmem.errors import NotFound
from docmem.repository import Repository


def head(repo: Repository, indexed: str | None) -> str | None:
    """The commit that main is at; None in a repo without any commit. `indexed`: the one that is served.

    Raises `NotFound` where main is gone, or names what is no commit: that is never "up to date".
    """
    found = repo.head()
    if found is not None and found == indexed:
        return found
    fault = _fault(repo, found, indexed)
    if fault is not None:
        raise NotFound(f"{repo.tenant} has no branch main ({fault})", hint=_mend(repo, found, indexed))
    return found


def _fault(repo: Repository, found: str | None, indexed: str | None) -> str | None:
    if found is not None:
        kind = git.kind(repo.git_dir, found)
        named = f"main names {found[:12]}"
        return {"commit": None, None: f"{named}, which is not there"}.get(kind, f"{named}, which is a {kind}")
    branches = git.refs(repo.git_dir, "refs/heads")
    if branches:
        return f"it has {', '.join(sorted(branches))}"
    if git.resolve(repo.git_dir, "HEAD") is not None:
        return "it has a detached HEAD"
    if git.has_ref(repo.git_dir, git.MAIN):
        return "what stands there is no commit's name"
    if indexed is not None:
        return f"{indexed[:12]} is indexed"
    left = _newest(repo)
    return f"it has commits, the newest is {left[:12]}" if left is not None else None


def _newest(repo: Repository) -> str | None:
    return git.newest(repo.git_dir, but=set(git.refs(repo.git_dir, "refs/docmem").values()))


def _mend(repo: Repository, found: str | None, indexed: str | None) -> str:
    """The command that brings main back: to the only branch, a detached HEAD, or the newest commit that is left."""
    branches = {name for ref, name in git.refs(repo.git_dir, "refs/heads").items() if ref != git.MAIN}
    only = branches.pop() if len(branches) == 1 else git.resolve(repo.git_dir, "HEAD")
    revision = only or _newest(repo) or (indexed if indexed and git.has_commit(repo.git_dir, indexed) else None)
    if revision is None:
        return f"restore {repo.git_dir} from a backup"
    place = shlex.quote(str(repo.git_dir))
    broken = f"rm {place}/{git.MAIN} && " if found is None and (repo.git_dir / git.MAIN).is_file() else ""
    return f"{broken}git --git-dir {place} update-ref {git.MAIN} {revision}"
