"""Which tenants a watch looks at next."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from docmem import git, repository
from docmem.config import Settings

PASS_SECONDS = 30.0
"""How often every branch is compared with the index, poked or not."""

GLANCE_SECONDS = 1.0
"""How often the files of the branches are looked at: two `stat` a tenant."""

_Looks: TypeAlias = tuple[int, int, int] | None


class _Branches:
    """What the files that hold each tenant's main looked like when the tenant was synced last."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._seen: dict[str, tuple[_Looks, _Looks]] = {}

    def note(self, tenants: Iterable[str]) -> None:
        """Remember how they look now; before they are synced, so that what moves meanwhile is seen."""
        self._seen |= {tenant: self._looks(tenant) for tenant in tenants}

    def moved(self, tenants: Iterable[str]) -> set[str]:
        """Those that look otherwise than when they were noted; new ones too."""
        return {tenant for tenant in tenants if self._looks(tenant) != self._seen.get(tenant)}

    def keep(self, tenants: Collection[str]) -> None:
        """Forget all others."""
        self._seen = {tenant: looks for tenant, looks in self._seen.items() if tenant in tenants}

    def _looks(self, tenant: str) -> tuple[_Looks, _Looks]:
        git_dir = self._settings.tenants / f"{tenant}.git"
        return _looks(git_dir / git.MAIN), _looks(git_dir / "packed-refs")


def _looks(path: Path) -> _Looks:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


class Due:
    """Those that moved before those whose turn in the pass over all it is.

    `tenants`: only these; none: all, new ones too.
    """

    def __init__(self, settings: Settings, tenants: Collection[str]) -> None:
        self._settings = settings
        self._only = tenants
        self._branches = _Branches(settings)
        self._wanted: set[str] = set()
        self._moved: set[str] = set()
        self._not_before: dict[str, float] = {}
        self._behind: deque[str] = deque()
        self._next_pass = self._next_glance = time.monotonic()

    def next(
        self, poked: Collection[str], *, room: int, pass_room: int, at_work: Collection[str] = frozenset()
    ) -> list[str]:
        """Who is next, none of them `at_work`: of those that moved as many as there is room for, else of the pass."""
        now = time.monotonic()
        self._moved |= set(poked)
        if now >= self._next_glance or not self._moved <= self._wanted:
            self._glance(now)
        if now >= self._next_pass:
            self._behind = deque(sorted(self._wanted))
            self._next_pass = now + PASS_SECONDS
        ready = (tenant for tenant in sorted(self._moved) if self._is_ready(tenant, at_work, now))
        names = list(islice(ready, max(0, room))) or list(islice(self._turns(at_work), max(0, pass_room)))
        self._moved -= set(names)
        self._branches.note(names)
        return names

    def _glance(self, now: float) -> None:
        is_first = not self._wanted
        self._wanted = set(self._only or repository.tenants(self._settings))
        self._branches.keep(self._wanted)
        if is_first:  # the first pass comes to all of them, and commits go first
            self._branches.note(self._wanted)
        self._moved = (self._moved & self._wanted) | self._branches.moved(self._wanted)
        self._next_glance = now + GLANCE_SECONDS

    def _is_ready(self, tenant: str, at_work: Collection[str], now: float) -> bool:
        if tenant in at_work:  # what moved meanwhile is looked at afterwards
            return False
        if now < self._not_before.get(tenant, 0.0):
            return False
        self._not_before.pop(tenant, None)
        return True

    def _turns(self, at_work: Collection[str]) -> Iterator[str]:
        while self._behind:
            tenant = self._behind.popleft()
            if tenant in self._wanted and tenant not in at_work and tenant not in self._moved:
                yield tenant

    def again(self, tenant: str, *, pause: float) -> None:
        """This one couldn't be synced: it is due again after so many seconds, and nobody waits for it."""
        self._moved.add(tenant)
        self._not_before[tenant] = time.monotonic() + pause

    def look(self) -> None:
        """Look at the branches' files at once: pokes may have been missed."""
        self._next_glance = 0.0

    def pause(self) -> float:
        """Seconds until somebody may be due who isn't poked, once `next` has named all for whom there is room."""
        now = time.monotonic()
        return max(0.0, min(self._next_glance, *(at for at in self._not_before.values() if at > now), math.inf) - now)

    @property
    def tenants(self) -> Collection[str]:
        """Those that are watched, as they were when they were last looked at."""
        return self._wanted
