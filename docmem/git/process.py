"""Running git: which environment it sees, and what its failures become."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from docmem.config import person_environment, scrubbed_environment
from docmem.errors import GitError, TryAgain

_quarantines: dict[Path, Mapping[str, str]] = {}


@contextlib.contextmanager
def quarantined(git_dir: Path, variables: Mapping[str, str]) -> Iterator[None]:
    """Let git see the objects of a push that pre-receive hasn't agreed to. `variables` as `config.quarantine` reads."""
    _quarantines[git_dir] = variables
    try:
        yield
    finally:
        del _quarantines[git_dir]


def environment(git_dir: Path) -> dict[str, str]:
    """Ours alone: no `GIT_*` of the caller, no configuration of the user or machine, no hooks, no prompts.

    `commit.gpgsign`, `core.hooksPath` or an alias in somebody's ~/.gitconfig must not reach the engine. The repo
    itself was named by whoever set DOCMEM_ROOT, so git's ownership check is answered for it and nothing else.
    """
    settings = {"safe.directory": str(git_dir), "core.hooksPath": os.devnull, "core.fsync": "committed"}
    variables = {
        **scrubbed_environment(),
        **_quarantines.get(git_dir, {}),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_COUNT": str(len(settings)),
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C.UTF-8",
    }
    for number, (key, value) in enumerate(settings.items()):
        variables[f"GIT_CONFIG_KEY_{number}"] = key
        variables[f"GIT_CONFIG_VALUE_{number}"] = value
    return variables


def run(
    git_dir: Path, *arguments: str, stdin: bytes | IO[bytes] | None = None, ok: tuple[int, ...] = (0,)
) -> subprocess.CompletedProcess[bytes]:
    """Run one git command. Raises `GitError` for an exit code that isn't in `ok`."""
    command = ["git", "--git-dir", str(git_dir), "--literal-pathspecs", *arguments]
    done = _completed(command, environment(git_dir), stdin)
    if done.returncode not in ok:
        if b"No space left on device" in done.stderr:
            raise TryAgain(f"the disk is full: git can't write in {git_dir}", hint="make room, and run it again")
        raise GitError(f"git {arguments[0]} failed in {git_dir} (exit {done.returncode}): {words_of(done)}")
    return done


def run_for_person(
    folder: Path,
    *arguments: str,
    stdin: bytes | None = None,
    index: Path | None = None,
    ok: tuple[int, ...] | None = (0,),
    timeout: float | None = None,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run one git command in `folder` with its user's own configuration and keys. Raises `GitError`, `TryAgain`.

    `index`: instead of the work tree's own. `ok` None: the caller looks at how it ended, be it by a signal.
    `timeout`: seconds, for what goes over a network.
    `variables`: added to the environment.
    """
    more = dict(variables or {}) | ({"GIT_INDEX_FILE": str(index)} if index is not None else {})
    command = ["git", "-C", str(folder), "--literal-pathspecs", *arguments]
    done = _completed(command, person_environment() | more, stdin, timeout)
    if ok is not None and done.returncode not in ok:
        raise GitError(f"git {arguments[0]} failed in {folder} (exit {done.returncode}): {words_of(done)}")
    return done


def words_of(done: subprocess.CompletedProcess[bytes]) -> str:
    """What git said about it."""
    return done.stderr.decode(errors="replace").strip()


def _completed(
    command: list[str], variables: Mapping[str, str], stdin: bytes | IO[bytes] | None, timeout: float | None = None
) -> subprocess.CompletedProcess[bytes]:
    source: dict[str, object] = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin or subprocess.DEVNULL}
    try:
        done: subprocess.CompletedProcess[bytes] = subprocess.run(  # type: ignore[call-overload]
            command, capture_output=True, env=variables, check=False, timeout=timeout, **source
        )
    except FileNotFoundError:
        raise GitError("git is not installed, or not on PATH", hint="install git 2.39 or newer") from None
    except subprocess.TimeoutExpired:
        raise TryAgain(f"{' '.join(command[:2])} … took longer than {timeout:.0f} s", hint="run it again") from None
    return done


def text(data: bytes) -> str:
    """What git printed; bytes that aren't UTF-8 become surrogate escapes."""
    return data.decode("utf-8", "surrogateescape")


def version() -> tuple[int, ...]:
    """git's version as numbers. Raises `GitError` where there is no git."""
    words = run(Path(os.devnull), "version").stdout.decode().split()
    return tuple(int(part) for part in words[2].split(".")[:3] if part.isdigit())
