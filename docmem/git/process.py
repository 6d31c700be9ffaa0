"""Running git: which environment it sees, and what its failures become."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import IO

from docmem.config import scrubbed_environment
from docmem.errors import GitError


def environment(git_dir: Path) -> dict[str, str]:
    """Ours alone: no `GIT_*` of the caller, no configuration of the user or machine, no hooks, no prompts.

    `commit.gpgsign`, `core.hooksPath` or an alias in somebody's ~/.gitconfig must not reach the engine. The repo
    itself was named by whoever set DOCMEM_ROOT, so git's ownership check is answered for it and nothing else.
    """
    settings = {"safe.directory": str(git_dir), "core.hooksPath": os.devnull, "core.fsync": "committed"}
    variables = {
        **scrubbed_environment(),
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
    pathspecs = [] if arguments[0] == "--glob-pathspecs" else ["--literal-pathspecs"]
    command = ["git", "--git-dir", str(git_dir), *pathspecs, *arguments]
    source: dict[str, object] = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin or subprocess.DEVNULL}
    try:
        done = subprocess.run(command, capture_output=True, env=environment(git_dir), check=False, **source)  # type: ignore[call-overload]
    except FileNotFoundError:
        raise GitError("git is not installed, or not on PATH", hint="install git 2.39 or newer") from None
    if done.returncode not in ok:
        words = done.stderr.decode(errors="replace").strip()
        raise GitError(f"git {arguments[0]} failed in {git_dir} (exit {done.returncode}): {words}")
    result: subprocess.CompletedProcess[bytes] = done
    return result


def text(data: bytes) -> str:
    """What git printed; bytes that aren't UTF-8 become surrogate escapes."""
    return data.decode("utf-8", "surrogateescape")


def version() -> tuple[int, ...]:
    """git's version as numbers. Raises `GitError` where there is no git."""
    words = run(Path(os.devnull), "version").stdout.decode().split()
    return tuple(int(part) for part in words[2].split(".")[:3] if part.isdigit())
