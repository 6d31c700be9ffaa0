"""The other end of a store: see where its main is, fetch it, push to it as a compare-and-swap.

Addressed by URL and never by name, so that no tracking ref moves by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from docmem.errors import GitError
from docmem.git.objects import has_commit
from docmem.git.process import run, run_for_person, text, words_of
from docmem.git.references import move_ref
from docmem.git.values import MAIN

SECONDS = 120.0
"""How long one exchange with a remote may take."""

_RACE = (b"failed to update ref", b"cannot lock ref", b"incorrect old value", b"stale info", b"fetch first")
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "push.gpgSign=false", "-c", "gc.auto=0", "-c", "maintenance.auto=0")


def url(git_dir: Path) -> str | None:
    """Where `origin` is; None where there is none, told without a process."""
    try:
        if '[remote "origin"]' not in (git_dir / "config").read_text(errors="replace"):
            return None
    except FileNotFoundError:
        return None
    done = run(git_dir, "config", "--local", "--get", "remote.origin.url", ok=(0, 1))
    return text(done.stdout).strip() or None


def set_url(git_dir: Path, value: str | None) -> None:
    """Name `origin`; None takes it away."""
    run(git_dir, "config", "--local", "--remove-section", "remote.origin", ok=(0, 5, 128))
    if value is not None:
        run(git_dir, "config", "--local", "remote.origin.url", value)


def tip(git_dir: Path, at: str) -> str | None:
    """What main is at, over there; None where there is none. Raises `GitError`, `TryAgain`."""
    done = run_for_person(git_dir, *_QUIET, "ls-remote", "--quiet", at, MAIN, timeout=SECONDS)
    return text(done.stdout).split("\t")[0] or None


def fetch(git_dir: Path, at: str, into: str) -> str:
    """Bring main's commits from over there; the ref `into` keeps them. Returns main's tip as it was then."""
    arguments = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--refmap=", at, f"+{MAIN}:{into}")
    run_for_person(git_dir, *_QUIET, *arguments, timeout=SECONDS)
    return text(run(git_dir, "rev-parse", "--verify", into).stdout).strip()


def push(git_dir: Path, at: str, *, new: str, old: str | None, quarantine: Mapping[str, str] | None = None) -> bool:
    """Move main over there from `old` (None: it isn't there) to `new`; False where it was elsewhere by then.

    `quarantine`: as `config.quarantine` reads it, to push what pre-receive hasn't agreed to yet. Raises `GitError`
    where the other end refuses, or can't be reached.
    """
    # git forbids moving refs while GIT_QUARANTINE_PATH is set, and a remote on this machine inherits it; no ref of
    # this repo moves here.
    objects = {key: value for key, value in (quarantine or {}).items() if key != "GIT_QUARANTINE_PATH"}
    lease = f"--force-with-lease={MAIN}:{old or ''}"
    done = run_for_person(
        git_dir, *_QUIET, "push", "--quiet", "--no-verify", lease, at, f"{new}:{MAIN}",
        ok=(0, 1, 128), timeout=SECONDS, variables=objects,
    )  # fmt: skip
    if done.returncode == 0:
        return True
    now = tip(git_dir, at)
    if now == old and any(word in done.stderr for word in _RACE):
        return False  # somebody else's push holds the ref this moment
    if now == old:
        raise GitError(f"{at} did not take a commit: {words_of(done)}", hint="see what it says; then run it again")
    return now == new  # the answer was lost, not the push


def set_ref(git_dir: Path, ref: str, new: str, *, old: str | None) -> None:
    """Note a revision under one of our refs."""
    if new != old and has_commit(git_dir, new):
        move_ref(git_dir, ref, new=new, old=old)
