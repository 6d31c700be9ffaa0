"""A tenant as one file, to keep or to carry elsewhere: a git bundle of main and of what waits for review."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from docmem import git, hooks, names, repository
from docmem.config import Settings
from docmem.errors import AlreadyExists, InputError, NotFound
from docmem.repository import REVIEW, Repository


def export(repo: Repository, file: Path) -> list[str]:
    """Write a tenant's bundle; returns the refs in it. An older bundle is replaced.

    Raises `NotFound` before the first commit, `AlreadyExists` where another file stands there.
    """
    refs = [*git.refs(repo.git_dir, "refs/heads/"), *git.refs(repo.git_dir, "refs/tags/")]
    refs += git.refs(repo.git_dir, f"{REVIEW}/")
    if repo.head() is not None:
        refs.insert(0, "HEAD")  # without it a clone of the bundle has no files
    if not refs:
        raise NotFound(f"tenant {repo.tenant} has no commit to export")
    if file.is_file() and not _is_bundle(file):
        raise AlreadyExists(f"{file} is there already, and is no bundle", hint="give another name, or remove it")
    git.bundle(repo.git_dir, file, refs)
    return refs


def _is_bundle(file: Path) -> bool:
    """An older export, which may be replaced."""
    with file.open("rb") as opened:
        return opened.read(64).startswith(b"# v") or file.stat().st_size == 0


def import_(settings: Settings, tenant: str, file: Path) -> Repository:
    """Make a tenant from a bundle. Subject keys hold the tenant's name, so give it the name that it had.

    Built aside and renamed. Raises `AlreadyExists`, `NotFound` (no such file), `InputError` (no bundle of a tenant),
    and what reading its `docmem.yaml` raises.
    """
    path = settings.tenants / f"{names.tenant_name(tenant)}.git"
    if path.exists():
        raise AlreadyExists(
            f"tenant {tenant} is there already: {path}",
            hint="move or erase that one first, or import under another DOCMEM_ROOT: keys hold the tenant's name",
        )
    if not file.is_file():
        raise NotFound(f"there is no file {file}")
    aside = path.with_name(f".{path.name}.{os.getpid()}.new")
    shutil.rmtree(aside, ignore_errors=True)
    try:
        git.init(aside)
        git.unbundle(aside, file)
        _check(Repository(settings, tenant, aside))
        hooks.install_store(aside, settings.root)
        git.close(aside)
        aside.rename(path)
    finally:
        git.close(aside)
        shutil.rmtree(aside, ignore_errors=True)
    made = repository.open(settings, tenant)
    made.poke()
    return made


def _check(repo: Repository) -> None:
    if repo.head() is None:
        raise InputError("the bundle has no branch main", hint=f"make it with: docmem export {repo.tenant} FILE")
    _ = repo.snapshot().config
