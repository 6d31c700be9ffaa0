"""What the system says when a folder can't be used, as an error a user can act on: above all `DOCMEM_ROOT`'s."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from docmem.errors import ConfigError, DocmemError, TryAgain

_FULL = {errno.ENOSPC, errno.EDQUOT}
_CLOSED = {errno.EACCES, errno.EPERM, errno.EROFS}
_IMPOSSIBLE = {errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL}
"""What making a root below `/proc`, below a file, or in its place, ends as."""


def explanation(error: OSError, root: Path) -> DocmemError | None:
    """`error` in words; None where it is none of the user's doing, and so a bug of ours."""
    reason = os.strerror(error.errno) if error.errno else ""
    path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
    if error.errno in _FULL:
        return TryAgain(
            f"the disk is full{f': {path} can not be written' if path else ''}", hint="make room, and run it again"
        )
    if path is None or error.errno not in _CLOSED | _IMPOSSIBLE:
        return None
    if _concerns(path, root, error.errno):
        return _unusable(root, path, reason)
    if error.errno in _CLOSED:
        return ConfigError(f"{path} can't be used: {reason}", hint="name another, or have it opened to you")
    return None


def _concerns(path: Path, root: Path, number: int | None) -> bool:
    """Whether the root can't be used. Something that is missing or in the way deep inside is our own fault."""
    if path == root or path in root.parents:
        return True
    return root in path.parents and (number in _CLOSED or not _is_folder(root))


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _unusable(root: Path, path: Path, reason: str) -> ConfigError:
    hint = "set DOCMEM_ROOT to a folder you may write"
    owner = _owner(root)
    if owner is not None and owner != os.geteuid():
        return ConfigError(
            f"{root} belongs to another user, and {path} is closed to us: {reason}",
            hint=f"run docmem as the user who made it, or {hint}",
        )
    where = "" if path == root else f" ({path})"
    return ConfigError(f"{root} can't be used as docmem's root: {reason}{where}", hint=hint)


def _owner(root: Path) -> int | None:
    try:
        return root.stat().st_uid if root.is_dir() else None
    except OSError:
        return None
