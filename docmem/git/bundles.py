"""A repo as one file, and back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from docmem.errors import GitError, InputError
from docmem.git.process import run


def bundle(git_dir: Path, file: Path, refs: Sequence[str]) -> None:
    """Write what `refs` reach into one file, whole or not at all."""
    fresh = file.with_name(f".{file.name}.new")
    try:
        run(git_dir, "bundle", "create", "--quiet", str(fresh.absolute()), *refs)
        fresh.replace(file)
    finally:
        fresh.unlink(missing_ok=True)


def unbundle(git_dir: Path, file: Path) -> None:
    """Bring all refs of a bundle into an empty repo, every object checked. Raises `InputError`."""
    flags = ["--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc"]
    try:
        run(git_dir, "-c", "fetch.fsckObjects=true", "fetch", *flags, str(file.absolute()), "+refs/*:refs/*")
    except GitError as error:
        raise InputError(f"{file} is no bundle that git takes: {error.message.rpartition(': ')[2]}") from None
