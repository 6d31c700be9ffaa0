"""A person's clone of a tenant's repo: made so that plain git works, with the check before each commit."""

from __future__ import annotations

from pathlib import Path

from docmem import hooks, repository
from docmem.config import Settings
from docmem.errors import AlreadyExists, NotFound
from docmem.git import repos, worktrees
from docmem.repository import Repository

TENANT = "docmem.tenant"
"""The clone's setting that names its tenant."""

_BRANCHES = "+refs/heads/*:refs/remotes/origin/*"
_REVIEWS = "+refs/docmem/review/*:refs/remotes/review/*"
_EDITORS = (
    "*~", ".*.sw?", "4913", "#*#", ".#*", ".goutputstream-*", "*___jb_tmp___", "*___jb_old___", ".*.kate-swp",
    "*.tmp", "*.bak", "*.orig", "*.sb-*", ".~lock.*", ".DS_Store", "Thumbs.db",
)  # fmt: skip
"""What editors put beside a file while they save it: never a memory."""


def checkout(settings: Settings, tenant: str, folder: Path) -> bool:
    """Clone a tenant into `folder` and set the clone up; True where it wasn't there before.

    A clone of this tenant that is there already, made with plain git or by this, is set up and fetched, nothing else of
    it changes. Raises
    `AlreadyExists` for a folder that holds something else, and what `repository.open` raises.
    """
    repo = repository.open(settings, tenant)
    repair(repo)
    fresh = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    if fresh:
        worktrees.clone(str(repo.git_dir), folder)
    elif tenant_of(folder) != tenant and not _is_clone_of(folder, repo.git_dir):
        raise AlreadyExists(f"{folder} holds something else", hint="name a folder that is empty, or not there")
    _set_up(folder, tenant)
    worktrees.fetch(folder)
    return fresh


def _is_clone_of(folder: Path, git_dir: Path) -> bool:
    """Whether a folder is a plain `git clone` of this store, which lacks only what `checkout` sets up."""
    top = worktrees.top(folder)
    if top is None or top.resolve() != folder.resolve() or tenant_of(folder) is not None:
        return False
    urls = worktrees.config(folder, "remote.origin.url")
    return bool(urls) and Path(urls[-1].removeprefix("file://")).resolve() == git_dir.resolve()


def repair(repo: Repository) -> None:
    """Give a store the hooks and settings it must have: one that an older docmem made has none."""
    repos.set_up(repo.git_dir)
    hooks.install_store(repo.git_dir, repo.settings.root)


def fault(repo: Repository) -> str | None:
    """What a store lacks of its hooks and settings; None where it is in order."""
    if not repos.is_set_up(repo.git_dir):
        return "its git settings are not those of this version"
    return hooks.store_fault(repo.git_dir, repo.settings.root)


def tenant_of(folder: Path) -> str | None:
    """The tenant that a checkout is of; None for what is no checkout of docmem's."""
    if worktrees.top(folder) is None:
        return None
    values = worktrees.config(folder, TENANT)
    return values[-1] if values else None


def store_of(folder: Path) -> str:
    """Where a checkout pushes to. Raises `NotFound`."""
    found = worktrees.config(folder, "remote.origin.url")
    if not found:
        raise NotFound(f"{folder} has no remote origin", hint="git remote add origin PATH-OF-THE-STORE")
    return found[-1]


def _set_up(folder: Path, tenant: str) -> None:
    git_dir = worktrees.git_dir_of(folder)
    worktrees.set_config(folder, TENANT, tenant)
    worktrees.set_config(folder, "pull.rebase", "true")
    worktrees.set_config(folder, "remote.origin.prune", "true")
    worktrees.set_config(folder, "remote.origin.fetch", _BRANCHES, _REVIEWS)
    hooks.install_checkout(git_dir)
    if worktrees.config(folder, "core.hooksPath"):  # a global one would switch the check off
        worktrees.set_config(folder, "core.hooksPath", ".git/hooks")
    _exclude(git_dir / "info" / "exclude")


def _exclude(path: Path) -> None:
    there = path.read_text().splitlines() if path.is_file() else []
    missing = [pattern for pattern in _EDITORS if _escaped(pattern) not in there]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in [*there, *map(_escaped, missing)]))


def _escaped(pattern: str) -> str:
    return f"\\{pattern}" if pattern.startswith("#") else pattern
