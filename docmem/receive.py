"""What a push may bring into a tenant's main, and what is refused, with the reason. Run by the pre-receive hook.

A push is judged by what it changes between main's old and new tip, and by each commit that it brings.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from docmem import check, config, erased, files, git, inspection, layout, remote
from docmem.errors import Conflict, DocmemError, FormatError
from docmem.git import Change
from docmem.git.diffs import brought
from docmem.git.process import quarantined
from docmem.hooks import REFUSED

AHEAD = timedelta(minutes=5)
"""How far a commit's clock may be ahead of ours: its time becomes the time of what it says."""
DELETES_MIN = 20
DELETES_SHARE = 0.3
"""More deletions than the larger of the two have to be confirmed, as in sync."""
CONFIRM = "docmem.confirm-deletes="
SHOWN = 20
"""How many refusals of one push are printed."""

_CONFIRMED = "docmem.confirmed-deletes"

_COUNTED = {"memory", "profile", "document"}


@dataclass(frozen=True, slots=True)
class Update:
    """One ref that a push moves; None where it isn't there before, or after."""

    old: str | None
    new: str | None
    ref: str


@dataclass(frozen=True)
class Push:
    """A push to main, with what it changes. `new` and its objects are still in quarantine."""

    git_dir: Path
    old: str | None
    new: str
    now: datetime
    confirmed: int | None = None

    @cached_property
    def changes(self) -> list[Change]:
        """Files that differ between main's old and new tip."""
        return git.changes(self.git_dir, self.old, self.new)

    @cached_property
    def commits(self) -> list[tuple[str, datetime]]:
        """Every commit that the push brings, oldest first, with its committer's time."""
        return brought(self.git_dir, self.old, self.new)


Rule: TypeAlias = Callable[[Push], Iterable[str]]
"""What is wrong with a push, in lines for the person who pushes."""


def refusals(git_dir: Path, updates: Sequence[Update], *, now: datetime, options: Sequence[str] = ()) -> list[str]:
    """Why a push is refused; nothing where it may come in."""
    found: list[str] = []
    for update in updates:
        if update.ref != git.MAIN:
            found.append(f"{update.ref}: only main is kept here (git push origin HEAD:main)")
        elif update.new is None:
            found.append("main can't be deleted")
        else:
            push = Push(git_dir, update.old, update.new, now, _confirmed(options))
            found += _broken_history(push) or [line for rule in RULES for line in rule(push)]
    return found


def _confirmed(options: Sequence[str]) -> int | None:
    values = [option.removeprefix(CONFIRM) for option in options if option.startswith(CONFIRM)]
    return int(values[-1]) if values and values[-1].isdigit() else None


def _broken_history(push: Push) -> list[str]:
    if push.old is None:
        return []
    if not git.is_ancestor(push.git_dir, push.old, push.new):
        return ["this would take commits of main away (a force-push): git pull, then push again"]
    if not git.is_first_parent_ancestor(push.git_dir, push.old, push.new):
        return ["this merge makes main a side branch of yours, and its history unreadable: git rebase origin/main"]
    return []


def _times(push: Push) -> Iterator[str]:
    for commit, when in push.commits:
        if when > push.now + AHEAD:
            yield f"commit {commit[:12]} is from the future ({when:%Y-%m-%d %H:%M} UTC): set your clock, commit anew"


def _engine_only(push: Push) -> Iterator[str]:
    marks = [change.path for change in push.changes if change.path.startswith("watermarks/")]
    if marks:
        yield (
            f"{marks[0]}: how far a conversation is read is docmem's alone; to take back what was "
            "learned use docmem revert, or leave these files out: git checkout origin/main -- watermarks"
        )
    for change in push.changes:
        if change.path == layout.REVERTED and _adds_marks(push.git_dir, change):
            yield f"{layout.REVERTED}: lines may be taken out by hand, only docmem adds them (docmem revert, review)"


def _adds_marks(git_dir: Path, change: Change) -> bool:
    if change.new is None:
        return False
    try:
        new = files.parse_reverted(git.read_blob(git_dir, change.new))
        old = files.parse_reverted(git.read_blob(git_dir, change.old) if change.old else b"")
    except FormatError:
        return False  # the check of its form says so
    return bool(new.reverted - old.reverted or new.rejected - old.rejected)


def _faults(push: Push) -> Iterator[str]:
    yield from map(str, inspection.of_changes(push.git_dir, push.old, push.new))
    if len(push.commits) > 1:
        commits = [commit for commit, _ in push.commits]
        yield from map(str, inspection.passing_secrets(push.git_dir, push.old, commits))


def _deletes(push: Push) -> Iterator[str]:
    if push.old is None:
        return
    number = deletions(push)
    if number <= DELETES_MIN or number == push.confirmed:
        return
    there = sum(layout.place(path).kind in _COUNTED for path in git.files(push.git_dir, push.old))
    if number > there * DELETES_SHARE:
        yield f"this deletes {number} of {there} files; if it is meant: git push -o {CONFIRM}{number}"


def deletions(push: Push) -> int:
    """How many memories, profiles and documents go; a move is no deletion."""
    gone = {change.path: change.old for change in push.changes if change.old and _takes(change)}
    if len(gone) <= DELETES_MIN:
        return sum(change.new is None for change in push.changes if _counts(change))
    come = {change.path: change.new for change in push.changes if change.new and _takes(change)}
    return (_identities(push.git_dir, gone) - _identities(push.git_dir, come)).total()


def _takes(change: Change) -> bool:
    """Whether something may go or come here; in a memory's file that stays, another memory may stand afterwards."""
    return _counts(change) and (change.status != "M" or layout.place(change.path).kind == "memory")


def _counts(change: Change) -> bool:
    return layout.place(change.path).kind in _COUNTED


def _identities(git_dir: Path, blobs: Mapping[str, str]) -> Counter[str]:
    bytes_of = dict(git.read_blobs(git_dir, set(blobs.values()))) if blobs else {}
    return Counter(check.memory_id(path, bytes_of[blob]) or blob for path, blob in blobs.items())


def confirmed(git_dir: Path) -> frozenset[str]:
    """The commits whose deletions somebody confirmed when they pushed them: sync needn't ask again."""
    try:
        return frozenset((git_dir / _CONFIRMED).read_text().split())
    except FileNotFoundError:
        return frozenset()


def _note_confirmed(git_dir: Path, updates: Sequence[Update], options: Sequence[str]) -> None:
    if _confirmed(options) is None:
        return
    with (git_dir / _CONFIRMED).open("a") as file:
        for update in updates:
            if update.new is not None:
                file.writelines(f"{commit}\n" for commit, _ in brought(git_dir, update.old, update.new))


def _erased(push: Push) -> Iterator[str]:
    yield from erased.refusals(push.git_dir, _secret(), old=push.old, new=push.new)


def _secret() -> remote.Secret:
    return config.settings().secret_bytes


RULES: tuple[Rule, ...] = (_erased, _times, _engine_only, _faults, _deletes)


def main() -> int:
    """The pre-receive hook's work: the updates on stdin, the repo in the working directory."""
    git_dir = Path.cwd()
    updates = [_update(line) for line in sys.stdin.read().splitlines()]
    try:
        kept_apart = config.quarantine()
        with quarantined(git_dir, kept_apart):
            found = refusals(git_dir, updates, now=datetime.now(UTC), options=config.push_options())
            if not found:
                _note_confirmed(git_dir, updates, config.push_options())
        found = found or _forwarded(git_dir, updates, kept_apart)
    except DocmemError as error:
        found = [f"{error.message} {error.hint}".strip()]
    if not found:
        return 0
    for line in found[:SHOWN]:
        print(f"docmem: {line}", file=sys.stderr)
    if len(found) > SHOWN:
        print(f"docmem: and {len(found) - SHOWN} more; docmem check DIR shows all", file=sys.stderr)
    return REFUSED


def _forwarded(git_dir: Path, updates: Sequence[Update], quarantine: Mapping[str, str]) -> list[str]:
    """Push to the store's own origin first, where it has one: main moves only to what is accepted there."""
    for update in updates:
        try:
            remote.land(git_dir, update.new or "", base=update.old, secret=_secret(), quarantine=quarantine)
        except Conflict:
            with git.lock(git_dir):
                remote.exchange(git_dir, secret=_secret(), own_push=quarantine.get("GIT_QUARANTINE_PATH", ""))
            return ["main has moved upstream meanwhile: git pull, then push again"]
    return []


def _update(line: str) -> Update:
    old, new, ref = line.split(" ", 2)
    return Update(None if old == git.NONE else old, None if new == git.NONE else new, ref)


if __name__ == "__main__":
    sys.exit(main())
