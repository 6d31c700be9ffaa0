"""Upkeep of a tenant's repo: few packs, a commit-graph with changed paths, nothing left of killed processes.

Under the writer lock, and without dropping any object: one that no ref reaches yet may be a push's that is under way.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docmem import git, locks
from docmem.errors import TryAgain
from docmem.repository import Repository

PACKS = 50
"""At so many packs sync maintains by itself: from there on each commit gets dearer."""
PATIENCE = locks.STALE_SECONDS + 1.0
"""Seconds for which `maintain` watches what looks left behind, before it is proven to be."""
_BUSY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Maintained:
    """What a maintenance did. `removed` and `kept`: paths of what killed processes left, and of what may be in use."""

    tenant: str
    packs_before: int
    packs: int
    removed: tuple[str, ...]
    kept: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """A row of `maintain --json`."""
        return {
            "tenant": self.tenant,
            "packs_before": self.packs_before,
            "packs": self.packs,
            "removed": list(self.removed),
            "kept": list(self.kept),
        }


def maintain(repository: Repository, *, patience: float = PATIENCE) -> Maintained:
    """Roll up packs, write the commit-graph, remove what is proven to be left behind.

    `patience`: how many seconds to watch the latter. Raises `TryAgain` while another writer holds the lock.
    """
    removed = clean(repository.git_dir, patience)
    with repository.locked():
        return _maintain(repository, removed)


def if_due(repository: Repository) -> Maintained | None:
    """Maintain where there are many packs, unless somebody is busy; None where nothing was done."""
    if git.packs(repository.git_dir) < PACKS:
        return None
    try:
        with git.lock(repository.git_dir, timeout=_BUSY_SECONDS):
            return _maintain(repository, clean(repository.git_dir, 0.0))
    except TryAgain:
        return None


def _maintain(repository: Repository, removed: Sequence[Path]) -> Maintained:
    here = repository.git_dir
    before = git.packs(here)
    git.repack(here)
    if repository.head() is not None:
        git.write_commit_graph(here)
    return Maintained(
        repository.tenant,
        before,
        git.packs(here),
        tuple(path.relative_to(here).as_posix() for path in removed),
        tuple(path.relative_to(here).as_posix() for path in git.leftovers(here)),
    )


def clean(git_dir: Path, patience: float) -> list[Path]:
    """Remove what is left behind, on proof; returns what was."""
    deadline = time.monotonic() + patience
    left = git.leftovers(git_dir)
    removed: list[Path] = []
    while left:
        gone = [path for path in left if locks.removed_if_stale(path, git_dir)]
        removed += gone
        left = [path for path in left if path not in gone]
        if not left or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    return removed
