"""The generation of a repo: a file that is a new one once objects may be gone for good."""

from __future__ import annotations

from pathlib import Path

GENERATION = "docmem.generation"


def generation(git_dir: Path) -> tuple[int, int] | None:
    """What tells one generation from the next; None before the first erase. A repo that is gone has another one."""
    try:
        found = (git_dir / GENERATION).stat()
    except FileNotFoundError:
        return None if (git_dir / "HEAD").exists() else (0, 0)
    return found.st_ino, found.st_mtime_ns
