"""A tenant's `origin`: another repo that several machines, and people, push to.

A commit is pushed there first, as a compare-and-swap, and the local main moves only to what was accepted. Where main
over there has moved, it is fetched and the writer plans again on it. An upstream that was rewritten is never followed
by itself: it is kept aside, reported, and waits for a person. Nor is one that still holds what was erased here: of
that not even the objects come in.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from docmem import erased, git, layout
from docmem.errors import Conflict, DocmemError, InputError, NotFound, TryAgain
from docmem.git import remotes
from docmem.git.remotes import shown, tenant_of
from docmem.times import format_time

SEEN = "refs/docmem/origin/main"
"""Where main was over there, when it was looked at last."""
ASIDE = "refs/docmem/aside"
"""Below it tips of a rewritten upstream, until somebody settles it."""
KEPT = "refs/docmem/kept"
"""Below it the tips that lost when it was settled."""

Moved: TypeAlias = Literal["nothing", "fetched", "pushed"]
Side: TypeAlias = Literal["ours", "theirs"]
Secret: TypeAlias = Callable[[], bytes]
"""Gives the store's secret; asked for only where something was erased."""

_PUSHES = 5
_FETCHED = "refs/docmem/tmp/fetched"
_INCOMING = "docmem.incoming"
_TROUBLE = "docmem.origin"
_LANDING_SECONDS = 1.0
_SETTLING_SECONDS = 0.1


class Rewritten(DocmemError):
    """The upstream's main no longer holds what it held: a force-push, or two histories that never met."""

    code = "upstream_rewritten"


class StillThere(DocmemError):
    """The upstream holds what was erased here."""

    code = "upstream_holds_erased"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why the last exchange with the origin failed, and since when it does."""

    code: str
    message: str
    hint: str
    since: str


@dataclass(frozen=True, slots=True)
class State:
    """How a store and its origin stand. `aside`: ref to commit. `trouble`: None where the last exchange went well."""

    url: str | None
    local: str | None
    seen: str | None
    aside: Mapping[str, str]
    trouble: Trouble | None = None

    def as_json(self) -> dict[str, Any]:
        """The object of `remote --json`."""
        return {
            "url": shown(self.url) if self.url else None,
            "main": self.local,
            "upstream": self.seen,
            "aside": dict(self.aside),
            "trouble": asdict(self.trouble) if self.trouble else None,
        }


def state(git_dir: Path) -> State:
    """How things stood when they were looked at last; asks nobody."""
    at = remotes.url(git_dir)
    trouble = _trouble(git_dir) if at is not None else None
    return State(at, git.resolve(git_dir), git.resolve(git_dir, SEEN), git.refs(git_dir, ASIDE), trouble)


# -------------------------------------------------------------------------------------------- naming it, or another one


def connect(git_dir: Path, at: str, *, secret: Secret) -> Moved:
    """Make `at` the origin and bring both mains together. Hold the lock.

    It becomes the origin once it has answered and fits: where it holds no tenant, or another history than ours, what
    was the origin before stays so. Raises what `exchange` raises, `InputError` for what is no tenant.
    """
    if at == remotes.url(git_dir):
        return exchange(git_dir, secret=secret)
    local, moved = git.resolve(git_dir), False
    with _fetched(git_dir, at, local, secret) as upstream:
        if upstream is None and local is not None:
            moved = remotes.push(git_dir, at, new=local, old=None)
            upstream = local if moved else None
            if not moved:
                raise Conflict(f"main of {shown(at)} came into being meanwhile", hint="run it again")
        if upstream is not None:
            _refuse_stranger(git_dir, at, upstream)
            if not _fits(git_dir, local, upstream):
                raise _apart(git_dir, at)
        disconnect(git_dir)
        remotes.set_url(git_dir, at)
        if upstream is not None:
            _see(git_dir, upstream)
    return "pushed" if moved else exchange(git_dir, secret=secret)


def disconnect(git_dir: Path) -> None:
    """Forget the origin, and all that was noted about it: another one, even at the same URL, is looked at anew.

    Tips that wait to be settled are kept under `refs/docmem/kept/`. Hold the lock.
    """
    remotes.set_url(git_dir, None)
    _settle(git_dir)
    for ref in (SEEN, _FETCHED):
        _drop(git_dir, ref)
    (git_dir / _TROUBLE).unlink(missing_ok=True)


def place(at: str) -> str:
    """A path as it is meant where it is typed, whole; a URL as it is."""
    return at if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*://|[^/]+:", at) else str(Path(at).absolute())


def _fits(git_dir: Path, local: str | None, upstream: str) -> bool:
    return local is None or git.is_ancestor(git_dir, local, upstream) or git.is_ancestor(git_dir, upstream, local)


def _refuse_stranger(git_dir: Path, at: str, upstream: str) -> None:
    if git.blob_id(git_dir, upstream, layout.CONFIG) is None:
        raise InputError(
            f"main of {shown(at)} has no {layout.CONFIG}: it is no tenant of docmem's",
            hint="name the repo of this tenant, or an empty one",
        )


def _apart(git_dir: Path, at: str) -> Rewritten:
    command = f"{_command(git_dir, at)} --take"
    return Rewritten(
        f"main of {shown(at)} and main here have gone apart: neither holds the other; nothing was changed",
        hint=f"{command} theirs follows it, {command} ours puts this one over it; the other is kept aside",
    )


# ----------------------------------------------------------------------------------------------------- the exchange


def exchange(git_dir: Path, *, secret: Secret, own_push: str = "") -> Moved:
    """Bring main and origin's main together: fetch what is new there, push what is only here. Hold the lock.

    `own_push`: the quarantine of the push that asks, which isn't waited for. Raises `Rewritten` where neither holds the
    other, `StillThere`, `OriginAway` and `OriginUnusable`.
    """
    at = remotes.url(git_dir)
    if at is None:
        return "nothing"
    with _noted(git_dir):
        return _exchanged(git_dir, at, secret, own_push)


def _exchanged(git_dir: Path, at: str, secret: Secret, own_push: str) -> Moved:
    for _ in range(_PUSHES):
        upstream = _looked_up(git_dir, at, secret)
        local = _landed_by_now(git_dir, upstream, own_push)
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
    raise Conflict(f"main of {shown(at)} keeps moving", hint="run it again")


def land(
    git_dir: Path, new: str, *, base: str | None, secret: Secret, quarantine: Mapping[str, str] | None = None
) -> None:
    """Push `new`, which stands on main's tip `base`, to origin; nothing of this repo moves. Without an origin, nothing.

    Raises `Conflict` where origin's main was elsewhere, `Rewritten` where it was rewritten.
    """
    at = remotes.url(git_dir)
    if at is None:
        return
    _refuse_rewritten(git_dir, base, secret)
    with _noted(git_dir):
        if not remotes.push(git_dir, at, new=new, old=base, quarantine=quarantine):
            raise Conflict(f"main of {shown(at)} has moved meanwhile", hint="run it again")


def landed(git_dir: Path, new: str) -> None:
    """Note that origin's main is at `new` now."""
    if remotes.url(git_dir) is not None:
        _see(git_dir, new)


def take(git_dir: Path, which: Side, *, secret: Secret, at: str | None = None) -> str:
    """Settle two mains that have gone apart: push ours over origin's, or follow it. The loser stays below `KEPT`.

    Hold the lock. `at`: make this the origin. Returns main's tip. Raises `NotFound` without an origin, or a main there
    to follow, `Conflict` for one that moves, `StillThere` for following one that holds what was erased here.
    """
    url = at or remotes.url(git_dir)
    if url is None:
        raise NotFound("there is no upstream to take", hint=f"docmem remote {tenant_of(git_dir)} URL names one")
    _take_theirs(git_dir, url, secret) if which == "theirs" else _take_ours(git_dir, url, secret)
    if at is not None and at != remotes.url(git_dir):
        disconnect(git_dir)
        remotes.set_url(git_dir, at)
    _settle(git_dir)
    now = git.resolve(git_dir)
    assert now is not None
    _see(git_dir, now)
    (git_dir / _TROUBLE).unlink(missing_ok=True)
    return now


def _take_theirs(git_dir: Path, at: str, secret: Secret) -> None:
    local = git.resolve(git_dir)
    with _fetched(git_dir, at, local, secret) as upstream:
        if upstream is None:
            raise NotFound(
                f"there is no main at {shown(at)} to take",
                hint=f"docmem remote {tenant_of(git_dir)} --take ours puts this one there",
            )
        _refuse_stranger(git_dir, at, upstream)
        if local is not None and not git.is_ancestor(git_dir, local, upstream):
            _keep(git_dir, local, below=KEPT)
        git.move_ref(git_dir, git.MAIN, new=upstream, old=local)


def _take_ours(git_dir: Path, at: str, secret: Secret) -> None:
    local = git.resolve(git_dir)
    if local is None:
        raise NotFound("there is no main here to put there", hint="--take theirs follows theirs")
    there = remotes.tip(git_dir, at)
    with contextlib.suppress(StillThere), _fetched(git_dir, at, local, secret) as upstream:  # of such nothing is kept
        if upstream is not None and not git.is_ancestor(git_dir, upstream, local):
            _keep(git_dir, upstream, below=KEPT)
        there = upstream
    if there != local and not remotes.push(git_dir, at, new=local, old=there):
        raise Conflict(f"main of {shown(at)} has moved meanwhile", hint="run it again")


def _settle(git_dir: Path) -> None:
    """Nothing waits for a decision any more; the tips stay."""
    for ref, revision in git.refs(git_dir, ASIDE).items():
        _keep(git_dir, revision, below=KEPT)
        git.move_ref(git_dir, ref, new=None, old=revision)


def _refuse_rewritten(git_dir: Path, base: str | None, secret: Secret) -> None:
    """A lease on a tip that isn't the last one seen is no proof: upstream may have been set back to just that."""
    seen = git.resolve(git_dir, SEEN)
    if seen is not None and seen != base:
        exchange(git_dir, secret=secret)


def _landed_by_now(git_dir: Path, upstream: str | None, own_push: str) -> str | None:
    """Main's tip. A push to this store stands upstream a moment before it stands here; that moment is waited for.

    Were main moved under it, whoever pushed would be told that it failed.
    """
    started = time.monotonic()
    until = started
    while (local := git.resolve(git_dir)) != upstream:
        now = time.monotonic()
        if _is_landing(git_dir, own_push):
            until = min(now + _SETTLING_SECONDS, started + _LANDING_SECONDS)
        if now >= until:
            break
        time.sleep(0.01)
    return local


def _is_landing(git_dir: Path, own_push: str) -> bool:
    """Whether other pushes are between their check and main: git keeps what they bring apart until then."""
    own = Path(own_push).name
    return any(path.name != own for path in (git_dir / "objects").glob("tmp_objdir-incoming-*"))


# ------------------------------------------------------------------------------------------------- what comes in


def _looked_up(git_dir: Path, at: str, secret: Secret) -> str | None:
    """Origin's main, its commits fetched. Raises `Rewritten`, `StillThere`."""
    seen = git.resolve(git_dir, SEEN)
    upstream = remotes.tip(git_dir, at)
    if upstream == seen:
        return upstream
    if upstream is None:
        hint = f"docmem remote {tenant_of(git_dir)} --take ours puts it back"
        raise Rewritten(f"main of {shown(at)} is gone", hint=hint)
    with _fetched(git_dir, at, git.resolve(git_dir), secret) as fetched:
        upstream = fetched or upstream
        if seen is not None and not git.is_ancestor(git_dir, seen, upstream):
            raise _kept_aside(git_dir, at, upstream)
        _see(git_dir, upstream)
    return upstream


@contextlib.contextmanager
def _fetched(git_dir: Path, at: str, local: str | None, secret: Secret) -> Iterator[str | None]:
    """Origin's main with its commits here, held by a ref while the block runs. None where there is no main.

    Raises `StillThere` where it brings what was erased here.
    """
    if remotes.tip(git_dir, at) is None:
        yield None
        return
    try:
        if erased.is_recorded(git_dir):
            yield _sifted(git_dir, at, local, secret)
        else:
            yield remotes.fetch(git_dir, at, _FETCHED)
    finally:
        _drop(git_dir, _FETCHED)


def _sifted(git_dir: Path, at: str, local: str | None, secret: Secret) -> str:
    """Fetch into a repo aside, which borrows this one's objects, and from there only what may come in."""
    if erased.is_erasing(git_dir):
        hint = f"docmem erase {tenant_of(git_dir)} --resume"
        raise TryAgain("an erase is at work, or was broken off: nothing is fetched meanwhile", hint=hint)
    aside = git_dir / _INCOMING
    shutil.rmtree(aside, ignore_errors=True)
    try:
        git.borrow(aside, git_dir)
        upstream = remotes.fetch(aside, at, git.MAIN)
        found = erased.refused_paths(git_dir, secret, old=local, new=upstream, objects=aside)
        if found:
            raise _still_there(git_dir, at, found)
        remotes.fetch(git_dir, str(aside), _FETCHED)
    finally:
        git.close(aside)
        shutil.rmtree(aside, ignore_errors=True)
    return upstream


def _still_there(git_dir: Path, at: str, found: list[str]) -> StillThere:
    number = "a file that was" if len(found) == 1 else f"{len(found)} files that were"
    return StillThere(
        f"main of {shown(at)} still holds {number} erased here; nothing of it was fetched",
        hint=f"{_command(git_dir, at)} --take ours puts main as it is here over it; make clones anew, and erase in the "
        "stores of other machines too",
    )


def _command(git_dir: Path, at: str) -> str:
    """`docmem remote …` about this place; its URL is needed where it isn't the origin yet."""
    known = at == remotes.url(git_dir)
    return f"docmem remote {tenant_of(git_dir)}" + ("" if known else f" {shown(at)}")


def _kept_aside(git_dir: Path, at: str, upstream: str) -> Rewritten:
    ref, tenant = _keep(git_dir, upstream, below=ASIDE), tenant_of(git_dir)
    return Rewritten(
        f"main of {shown(at)} was rewritten: it no longer holds what it held. It is kept as {ref}, and main stays as "
        "it is",
        hint=f"compare: docmem diff {tenant} main {ref}; then docmem remote {tenant} --take theirs, or --take ours",
    )


# ----------------------------------------------------------------------------------------------------------- notes


def _keep(git_dir: Path, revision: str, *, below: str) -> str:
    ref = f"{below}/{revision[:12]}"
    remotes.set_ref(git_dir, ref, revision, old=git.resolve(git_dir, ref))
    return ref


def _see(git_dir: Path, revision: str) -> None:
    remotes.set_ref(git_dir, SEEN, revision, old=git.resolve(git_dir, SEEN))


def _drop(git_dir: Path, ref: str) -> None:
    if git.has_ref(git_dir, ref):
        git.move_ref(git_dir, ref, new=None, old=git.resolve(git_dir, ref))


@contextlib.contextmanager
def _noted(git_dir: Path) -> Iterator[None]:
    """Keep what goes wrong for `docmem status`, and forget it once it goes well. Losing a race is nothing wrong."""
    try:
        yield
    except Conflict:
        raise
    except DocmemError as error:
        before = _trouble(git_dir)
        since = before.since if before is not None else format_time(datetime.now(UTC).replace(microsecond=0))
        fresh = git_dir / f"{_TROUBLE}.{os.getpid()}"
        with contextlib.suppress(OSError):  # a full disk must not hide what is wrong
            fresh.write_text(json.dumps(asdict(Trouble(error.code, error.message, error.hint, since))))
            fresh.replace(git_dir / _TROUBLE)
        raise
    (git_dir / _TROUBLE).unlink(missing_ok=True)


def _trouble(git_dir: Path) -> Trouble | None:
    try:
        return Trouble(**json.loads((git_dir / _TROUBLE).read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
