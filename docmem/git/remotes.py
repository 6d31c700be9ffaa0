"""The other end of a store: see where its main is, fetch it, push to it as a compare-and-swap.

Addressed by URL and never by name, so that no tracking ref moves by itself. What git says when it fails becomes one of
two errors: the other end is away, and the same may work later; or what it was told to use can't be used.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from docmem.errors import GitError, TryAgain
from docmem.git.objects import has_commit
from docmem.git.process import run, run_for_person, text, words_of
from docmem.git.references import move_ref
from docmem.git.values import MAIN

SECONDS = 120.0
"""How long one exchange with a remote may take."""

_RACE = (b"failed to update ref", b"cannot lock ref", b"incorrect old value", b"stale info", b"fetch first")
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "push.gpgSign=false", "-c", "gc.auto=0", "-c", "maintenance.auto=0")
_AWAY = re.compile(
    r"could not resolve|couldn't resolve|name resolution|connection (refused|timed out|reset|closed)|timed out"
    r"|failed to connect|couldn't connect|unable to connect|network is unreachable|no route to host|host is down"
    r"|returned error: (408|429|5\d\d)|early eof|hung up unexpectedly|gnutls_handshake|unexpected disconnect",
    re.IGNORECASE,
)
_CLOSED = re.compile(
    r"authentication failed|could not read (username|password)|permission denied|returned error: 40[13]"
    r"|access denied|host key verification|invalid credentials",
    re.IGNORECASE,
)
_ADVICE = ("Please make sure you have the correct access rights", "and the repository exists.")
_PASSWORD = re.compile(r"(?<=://)[^/@\s]*@")


class OriginAway(TryAgain):
    """The other end can't be reached now."""

    code = "origin_away"


class OriginUnusable(GitError):
    """There is no repo at this path or URL, or docmem's user may not use it."""

    code = "origin_unusable"


def shown(at: str) -> str:
    """A URL as it may be printed: without a name and password in it."""
    return _PASSWORD.sub("", at)


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
    """What main is at, over there; None where there is none. Raises `OriginAway`, `OriginUnusable`."""
    done = _asked(git_dir, at, "ls-remote", "--quiet", at, MAIN)
    return text(done.stdout).split("\t")[0] or None


def fetch(git_dir: Path, at: str, into: str) -> str:
    """Bring main's commits from over there; the ref `into` keeps them. Returns main's tip as it was then.

    Raises `OriginAway`, `OriginUnusable`.
    """
    arguments = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--refmap=", at, f"+{MAIN}:{into}")
    _asked(git_dir, at, *arguments)
    return text(run(git_dir, "rev-parse", "--verify", into).stdout).strip()


def push(git_dir: Path, at: str, *, new: str, old: str | None, quarantine: Mapping[str, str] | None = None) -> bool:
    """Move main over there from `old` (None: it isn't there) to `new`; False where it was elsewhere by then.

    `quarantine`: as `config.quarantine` reads it, to push what pre-receive hasn't agreed to yet. Raises `GitError`
    where the other end refuses, `OriginAway`, `OriginUnusable`.
    """
    # git forbids moving refs while GIT_QUARANTINE_PATH is set, and a remote on this machine inherits it; no ref of
    # this repo moves here.
    objects = {key: value for key, value in (quarantine or {}).items() if key != "GIT_QUARANTINE_PATH"}
    lease = f"--force-with-lease={MAIN}:{old or ''}"
    done = _asked(
        git_dir, at, "push", "--quiet", "--no-verify", lease, at, f"{new}:{MAIN}", raises=False, variables=objects
    )
    if done.returncode == 0:
        return True
    now = tip(git_dir, at)
    if now == old and any(word in done.stderr for word in _RACE):
        return False  # somebody else's push holds the ref this moment
    if now == old and done.returncode != 1:
        raise _told(git_dir, at, done)
    if now == old:
        raise GitError(f"{shown(at)} did not take a commit: {_words(at, done)}", hint="see what it says; run it again")
    return now == new  # the answer was lost, not the push


def _asked(
    git_dir: Path, at: str, *arguments: str, raises: bool = True, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    more = {"LC_ALL": "C.UTF-8", **(variables or {})}  # what git says is read below
    try:
        # Where a transport's helper is gone before git has said a word to it, git dies of SIGPIPE.
        done = run_for_person(git_dir, *_QUIET, *arguments, ok=None, timeout=SECONDS, variables=more)
    except TryAgain:
        raise OriginAway(
            f"{shown(at)} did not answer in {SECONDS:.0f} s", hint="see whether it is up; then run it again"
        ) from None
    if raises and done.returncode != 0:
        raise _told(git_dir, at, done)
    return done


def _told(git_dir: Path, at: str, done: subprocess.CompletedProcess[bytes]) -> OriginAway | OriginUnusable:
    """What git's words mean for whoever runs this."""
    words = _words(at, done)
    if _AWAY.search(words) and not _CLOSED.search(words):
        return OriginAway(f"{shown(at)} can't be reached: {words}", hint="see whether it is up; then run it again")
    if _CLOSED.search(words):
        return OriginUnusable(
            f"{shown(at)} lets nobody in: {words}",
            hint=f"give docmem's user a key or a credential helper; to try: git ls-remote {shown(at)}",
        )
    return OriginUnusable(
        f"{shown(at)} can't be used: {words}",
        hint=f"is this the right path or URL? to try: git ls-remote {shown(at)}; "
        f"then docmem remote {tenant_of(git_dir)} URL, or --remove",
    )


def tenant_of(git_dir: Path) -> str:
    """The tenant whose store this is, to name it in a hint."""
    return git_dir.name.lstrip(".").split(".git")[0]


def _words(at: str, done: subprocess.CompletedProcess[bytes]) -> str:
    """What git said, on one line."""
    lines = [line.strip() for line in words_of(done).replace(at, shown(at)).splitlines()]
    telling = " ".join(line for line in lines if line and line not in _ADVICE)
    return telling[:600] or f"git ended with {done.returncode} and said nothing"


def set_ref(git_dir: Path, ref: str, new: str, *, old: str | None) -> None:
    """Note a revision under one of our refs."""
    if new != old and has_commit(git_dir, new):
        move_ref(git_dir, ref, new=new, old=old)
