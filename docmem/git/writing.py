"""Writing a commit: one `git fast-import` and one compare-and-swap of the ref, O(changed files)."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from docmem.git.objects import object_of
from docmem.git.process import run
from docmem.git.references import fsync_dir, move_ref
from docmem.git.values import ENGINE, MAIN, Author


def commit(
    git_dir: Path,
    *,
    base: str | None,
    files: Mapping[str, bytes | None],
    message: str,
    when: datetime,
    author: Author = ENGINE,
    committer: Author = ENGINE,
    ref: str = MAIN,
    old: str | None = None,
) -> str:
    """Write `files` (None deletes) on top of `base` as one commit and move `ref` from `old` (default: `base`) to it.

    Returns the new commit. Raises `Conflict` where the ref has moved; nothing is visible then. The commit's time is
    `when`, or its parent's where a clock went back. Paths are the caller's to check (`names.safe_path`).
    """
    seconds = int(when.timestamp())
    if base is not None:
        seconds = max(seconds, _committed(git_dir, base))
    new = _fast_import(git_dir, base=base, files=files, message=message, seconds=seconds, people=(author, committer))
    move_ref(git_dir, ref, new=new, old=base if old is None and ref == MAIN else old)
    return new


def _committed(git_dir: Path, revision: str) -> int:
    _, data = object_of(git_dir, revision)
    line = next(line for line in data.split(b"\n") if line.startswith(b"committer "))
    return int(line.rsplit(b" ", 2)[1])


def _fast_import(
    git_dir: Path,
    *,
    base: str | None,
    files: Mapping[str, bytes | None],
    message: str,
    seconds: int,
    people: tuple[Author, Author],
) -> str:
    ref = f"refs/docmem/tmp/{os.getpid()}-{secrets.token_hex(4)}"
    stream = [f"commit {ref}\nmark :1\n".encode()]
    for role, who in zip(("author", "committer"), people, strict=True):
        stream.append(f"{role} {_identity(who)} {seconds} +0000\n".encode())
    stream.append(_data(message.replace("\0", "").encode("utf-8", "replace")))
    if base is not None:
        stream.append(f"from {base}\n".encode())
    for path, data in files.items():
        stream.append(b"D " + quoted(path) + b"\n" if data is None else b"M 100644 inline " + quoted(path) + b"\n")
        if data is not None:
            stream.append(_data(data))
    # The ref is reset, so that nothing stays of it. `get-mark` answers before the pack is final: only exit 0 counts.
    stream.append(f"get-mark :1\nreset {ref}\n\ndone\n".encode())
    done = run(git_dir, "-c", "fastimport.unpackLimit=1", "fast-import", "--done", "--quiet", stdin=b"".join(stream))
    fsync_dir(git_dir / "objects" / "pack")
    return done.stdout.decode().split()[0]


def _identity(who: Author) -> str:
    clean = [
        "".join(char for char in part if char not in "<>\n\0").strip().encode("utf-8", "replace").decode()
        for part in (who.name, who.email)
    ]
    return f"{clean[0]} <{clean[1]}>"


def _data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)


def quoted(path: str) -> bytes:
    """A path as fast-import reads it."""
    # Unquoted, a line feed in a path would end it, and the rest would be read as a command.
    raw = path.encode("utf-8", "surrogateescape")
    return b'"' + raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
