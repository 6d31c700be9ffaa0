"""Files of a tenant's repo as values, or as the reason why they can't be read. In bulk: one `cat-file` for all."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from docmem import files, git
from docmem.document import scrub
from docmem.errors import FormatError, InvalidName
from docmem.git.walk import Touch
from docmem.layout import CONFIG, FOLDERS, FileKind, place
from docmem.model import Document, Memory, Profile
from docmem.names import safe_path
from docmem.tenant_config import TenantConfig, parse_config

Value: TypeAlias = Memory | Profile | Document | TenantConfig

NOT_A_FILE = "not_a_file"
MISSING_CONFIG = "missing_config"

INDEXED: tuple[FileKind, ...] = ("memory", "profile", "document", "config")

_REASON_MAX = 500
_ID = re.compile(rb"""^id:[ \t]*["']?([0-9a-f]{16})["']?[ \t]*(?:#.*)?\r?$""", re.MULTILINE)
_HEAD_MAX = 64 * 1024


@dataclass(frozen=True, slots=True)
class Broken:
    """A file that can't be read: what is wrong, on which line."""

    path: str
    blob: str
    code: str
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Told:
    """What a commit left at a path: a value in this blob, a file that can't be read, or nothing. `before`: the blob
    that stood there before."""

    path: str
    blob: str
    value: Value | Broken | None
    before: str | None = None


def is_indexed(path: str) -> bool:
    """Whether a file at this path is mirrored."""
    return place(path).kind in INDEXED


def belongs(path: str) -> bool:
    """Whether what stands at this path is memory's, file or not."""
    return path == CONFIG or path.partition("/")[0] in {*FOLDERS, "subjects"}


def no_file(path: str, blob: str) -> Broken:
    """A symlink or a submodule where a file belongs."""
    return Broken(path, blob, NOT_A_FILE, 1, "a symlink or a submodule is never followed; put the file itself here")


def no_config() -> Broken:
    """The tenant's settings, where they are gone."""
    return Broken(CONFIG, git.NONE, MISSING_CONFIG, 1, "the tenant's settings were deleted; restore the file")


def printable(path: str) -> str:
    """A path as the index may hold it: valid text, short enough for a key. Nearly every path is that already."""
    shown = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    if len(shown.encode()) <= 1024:
        return shown
    return f"{shown[:200]}…{hashlib.sha256(shown.encode()).hexdigest()[:16]}"


def tell(git_dir: Path, touches: Sequence[Touch]) -> Iterator[Told | None]:
    """What each of these changes left at its path, in order; None for a path that isn't mirrored.

    The files stream through one `cat-file`: one at a time is held.
    """
    wanted = [touch.new for touch in touches if touch.new is not None and is_indexed(touch.path)]
    contents = git.read_blobs(git_dir, wanted) if wanted else iter(())
    for touch in touches:
        yield _told(touch, contents)


def _told(touch: Touch, contents: Iterator[tuple[str, bytes]]) -> Told | None:
    path = printable(touch.path)
    if touch.new is not None and is_indexed(touch.path):
        blob, data = next(contents)
        return Told(path, blob, parse(path, blob, data), touch.old)
    if not belongs(touch.path):
        return None
    if touch.link is not None:
        return Told(path, touch.link, no_file(path, touch.link), touch.old)
    return Told(path, git.NONE, None, touch.old)


def load(git_dir: Path, path: str, blob: str) -> Value | Broken:
    """A file that was read before, again."""
    return parse(path, blob, git.read_blob(git_dir, blob))


def duplicate(git_dir: Path, found: Broken, memory: str, served: str) -> Broken:
    """A file that holds the id of another (`served`): the line of the id, and what to do."""
    _, line = memory_id(git.read_blob(git_dir, found.blob)) or (memory, 1)
    reason = f"the memory id {memory} is that of {served}; give a copy an id of its own"
    return replace(found, line=line, reason=_reason(reason))


def parse(path: str, blob: str, data: bytes) -> Value | Broken:
    """One file as a value, or why not."""
    try:
        return _parse(safe_path(path), data)
    except FormatError as error:
        return Broken(path, blob, error.code, error.line, _reason(error.message))
    except InvalidName as error:
        return Broken(path, blob, "bad_path", 1, _reason(error.message))


def _parse(path: str, data: bytes) -> Value:
    kind = place(path).kind
    if kind not in INDEXED:  # see `printable`
        raise InvalidName("a path of more than 1024 bytes")
    if kind == "memory":
        return files.parse_memory(path, data)
    if kind == "profile":
        return files.parse_profile(path, data)
    if kind == "config":
        return parse_config(data)
    return files.parse_document(path, data)


def _reason(text: str) -> str:
    return scrub(text.encode("utf-8", "backslashreplace").decode())[0][:_REASON_MAX]


def memory_id(data: bytes) -> tuple[str, int] | None:
    """Id and line in a memory file's head, without parsing it; None where they aren't plain to see."""
    if not data.removeprefix(b"\xef\xbb\xbf").startswith(b"---"):
        return None
    found = _ID.search(data, 0, _HEAD_MAX)
    end = data.find(b"\n---", 3, _HEAD_MAX)
    if found is None or 0 <= end < found.start():
        return None
    return found[1].decode(), data.count(b"\n", 0, found.start()) + 1
