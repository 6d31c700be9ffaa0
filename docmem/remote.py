"""A tenant's `origin`: another repo that several machines, and people, push to.

A commit is pushed there first, as a compare-and-swap, and the local main moves only to what was accepted. Where main
over there has moved, it is fetched and the writer plans again on it. An upstream that was rewritten is never followed
by itself: it is kept aside, reported, and waits for a person.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from docmem import git
from docmem.errors import Conflict, DocmemError, NotFound
from docmem.git import remotes

SEEN = "refs/docmem/origin/main"
"""Where main was over there, when it was looked at last."""
ASIDE = "refs/docmem/aside"
"""Below it tips of a rewritten upstream, until somebody settles it."""
KEPT = "refs/docmem/kept"
"""Below it the tips that lost when it was settled."""

Moved: TypeAlias = Literal["nothing", "fetched", "pushed"]
_PUSHES = 5


class Rewritten(DocmemError):
    """The upstream's main no longer holds what it held: a force-push, or two histories that never met."""

    code = "upstream_rewritten"


@dataclass(frozen=True, slots=True)
class State:
    """How a store and its origin stand. `aside`: ref to commit."""

    url: str | None
    local: str | None
    seen: str | None
    aside: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """The object of `remote --json`."""
        return {"url": self.url, "main": self.local, "upstream": self.seen, "aside": dict(self.aside)}


def state(git_dir: Path) -> State:
    """How things stood when they were looked at last; asks nobody."""
    return State(remotes.url(git_dir), git.resolve(git_dir), git.resolve(git_dir, SEEN), git.refs(git_dir, ASIDE))


def exchange(git_dir: Path) -> Moved:
    """Bring main and origin's main together: fetch what is new there, push what is only here. Hold the lock.

    Raises `Rewritten` where neither holds the other, `GitError` and `TryAgain` where it can't be reached.
    """
    at = remotes.url(git_dir)
    if at is None:
        return "nothing"
    for _ in range(_PUSHES):
        upstream, local = _looked_up(git_dir, at), git.resolve(git_dir)
        if upstream == local:
            return "nothing"
        if upstream is not None and (local is None or git.is_ancestor(git_dir, local, upstream)):
            git.move_ref(git_dir, git.MAIN, new=upstream, old=local)
            return "fetched"
        if local is not None and (upstream is None or git.is_ancestor(git_dir, upstream, local)):
            if remotes.push(git_dir, at, new=local, old=upstream):
                _see(git_dir, local)
                return "pushed"
            continue
        assert upstream is not None
        raise _kept_aside(git_dir, at, upstream)
    raise Conflict(f"main of {at} keeps moving", hint="run it again")


def land(git_dir: Path, new: str, *, base: str | None, quarantine: Mapping[str, str] | None = None) -> None:
    """Push `new`, which stands on main's tip `base`, to origin; nothing of this repo moves. Without an origin, nothing.

    Raises `Conflict` where origin's main was elsewhere, `Rewritten` where it was rewritten.
    """
    at = remotes.url(git_dir)
    if at is None:
        return
    _refuse_rewritten(git_dir, base)
    if not remotes.push(git_dir, at, new=new, old=base, quarantine=quarantine):
        raise Conflict(f"main of {at} has moved meanwhile", hint="run it again")


def landed(git_dir: Path, new: str) -> None:
    """Note that origin's main is at `new` now."""
    if remotes.url(git_dir) is not None:
        _see(git_dir, new)


def take(git_dir: Path, which: Literal["ours", "theirs"]) -> str:
    """Settle a rewritten upstream: push main over it, or follow it. The other tip stays under `refs/docmem/kept/`.

    Hold the lock. Returns main's tip. Raises `NotFound` without an origin or a main there, `Conflict` for one that
    moves.
    """
    at = remotes.url(git_dir)
    upstream = _fetched(git_dir, at) if at is not None else None
    if at is None or upstream is None:
        raise NotFound("there is no upstream to take", hint="docmem remote TENANT URL")
    local = git.resolve(git_dir)
    if which == "theirs":
        if local is not None:
            _keep(git_dir, local, below=KEPT)
        git.move_ref(git_dir, git.MAIN, new=upstream, old=local)
    elif local is not None:
        _keep(git_dir, upstream, below=KEPT)
        if not remotes.push(git_dir, at, new=local, old=upstream):
            raise Conflict(f"main of {at} has moved meanwhile", hint="run it again")
    for ref, revision in git.refs(git_dir, ASIDE).items():
        _keep(git_dir, revision, below=KEPT)
        git.move_ref(git_dir, ref, new=None, old=revision)
    _see(git_dir, git.resolve(git_dir) or upstream)
    return git.resolve(git_dir) or upstream


def _refuse_rewritten(git_dir: Path, base: str | None) -> None:
    """A lease on a tip that isn't the last one seen is no proof: upstream may have been set back to just that."""
    seen = git.resolve(git_dir, SEEN)
    if seen is not None and seen != base:
        exchange(git_dir)


def _looked_up(git_dir: Path, at: str) -> str | None:
    """Origin's main, its commits fetched. Raises `Rewritten`."""
    seen = git.resolve(git_dir, SEEN)
    upstream = remotes.tip(git_dir, at)
    if upstream == seen:
        return upstream
    if upstream is None:
        raise Rewritten(f"main of {at} is gone", hint="docmem remote TENANT --take ours puts it back")
    upstream = _fetched(git_dir, at) or upstream
    if seen is not None and not git.is_ancestor(git_dir, seen, upstream):
        raise _kept_aside(git_dir, at, upstream)
    _see(git_dir, upstream)
    return upstream


def _fetched(git_dir: Path, at: str) -> str | None:
    """Origin's main with its commits here, noted nowhere that counts."""
    if remotes.tip(git_dir, at) is None:
        return None
    return remotes.fetch(git_dir, at, "refs/docmem/tmp/fetched")


def _kept_aside(git_dir: Path, at: str, upstream: str) -> Rewritten:
    ref = _keep(git_dir, upstream, below=ASIDE)
    return Rewritten(
        f"main of {at} was rewritten: it no longer holds what it held. It is kept as {ref}, and main stays as it is",
        hint="compare the two; then docmem remote TENANT --take theirs, or --take ours, or merge and push",
    )


def _keep(git_dir: Path, revision: str, *, below: str) -> str:
    ref = f"{below}/{revision[:12]}"
    remotes.set_ref(git_dir, ref, revision, old=git.resolve(git_dir, ref))
    return ref


def _see(git_dir: Path, revision: str) -> None:
    remotes.set_ref(git_dir, SEEN, revision, old=git.resolve(git_dir, SEEN))
