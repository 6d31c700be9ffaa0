"""Keeping a repo fast and clean: packs, the commit-graph, what killed processes left behind."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from docmem.git.generation import GENERATION
from docmem.git.process import run
from docmem.git.references import fsync_dir

_LEFT = (
    "objects/pack/tmp_*",
    "objects/pack/.tmp-*",
    "objects/??/tmp_obj_*",
    "objects/tmp_*",
    "objects/incoming-*",
    "objects/info/*.lock",
    "objects/info/commit-graphs/*.lock",
    "objects/info/commit-graphs/tmp_*",
    "fast_import_crash_*",
    "*.lock",
    "refs/**/*.lock",
    "docmem.generation.*",
)
_OURS = {"docmem.lock"}
"""Held by flock: the file itself is never stale."""
_KEPT_BY_GIT = re.compile(rb"fast-import|receive-pack \d+ on ")


def packs(git_dir: Path) -> int:
    """How many packs the repo has."""
    return sum(1 for _ in (git_dir / "objects" / "pack").glob("pack-*.pack"))


def repack(git_dir: Path) -> None:
    """Roll small packs and loose objects up, so that pack sizes grow geometrically. Drops no object. Hold the lock."""
    run(git_dir, "repack", "-d", "-l", "-q", "--geometric=2", "--no-write-bitmap-index")
    fsync_dir(git_dir / "objects" / "pack")


def write_commit_graph(git_dir: Path, *, anew: bool = False) -> None:
    """Write which paths each commit changes, for those commits that the graph lacks; `anew`: for all."""
    if anew:
        shutil.rmtree(git_dir / "objects" / "info" / "commit-graphs", ignore_errors=True)
        (git_dir / "objects" / "info" / "commit-graph").unlink(missing_ok=True)
    run(git_dir, "commit-graph", "write", "--reachable", "--changed-paths", "--split", "--no-progress")


def leftovers(git_dir: Path) -> list[Path]:
    """Files and folders that a git which was killed may have left: proof is the caller's (see `locks`)."""
    found = {path for pattern in _LEFT for path in git_dir.glob(pattern) if path.name not in _OURS}
    return sorted(found | set(_half_packs(git_dir)) | {path for path in keeps(git_dir) if _is_gits(path)})


def keeps(git_dir: Path) -> list[Path]:
    """The `.keep` files: what is in their packs survives every repack."""
    return sorted((git_dir / "objects" / "pack").glob("*.keep"))


def _is_gits(keep: Path) -> bool:
    """Whether git wrote it for the moment; people keep packs on purpose."""
    try:
        return _KEPT_BY_GIT.match(keep.read_bytes()) is not None
    except FileNotFoundError:
        return False


def _half_packs(git_dir: Path) -> Iterator[Path]:
    """Packs without an index and the other way round: no git reads them."""
    for path in (git_dir / "objects" / "pack").glob("pack-*"):
        if path.suffix not in {".pack", ".idx", ".rev"}:
            continue
        if not all(path.with_suffix(suffix).exists() for suffix in (".pack", ".idx")):
            yield path


def drop_unreachable(git_dir: Path) -> None:
    """Keep what refs reach and delete every other object, at once. Nobody else may write to the repo meanwhile."""
    for path in (git_dir / "objects" / "pack").glob("multi-pack-index*"):
        path.unlink()
    run(git_dir, "repack", "-a", "-d", "-q", "--no-write-bitmap-index")
    run(git_dir, "prune", "--expire=now")
    fsync_dir(git_dir / "objects" / "pack")


def drop_notes_of_git(git_dir: Path) -> None:
    """Remove reflogs and the files in which git notes what it did last; they name commits, paths and messages."""
    shutil.rmtree(git_dir / "logs", ignore_errors=True)
    for name in ("FETCH_HEAD", "ORIG_HEAD", "MERGE_MSG", "COMMIT_EDITMSG"):
        (git_dir / name).unlink(missing_ok=True)


def new_generation(git_dir: Path) -> None:
    """Make every reader that is open, in any process, look at the repo anew before it answers again."""
    fresh = git_dir / f"{GENERATION}.{os.getpid()}"
    fresh.write_text(secrets.token_hex(8) + "\n")
    fresh.replace(git_dir / GENERATION)
    fsync_dir(git_dir)
