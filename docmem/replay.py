"""A model that answers from a recording: what was proposed for a window once, proposed again.

Format: a JSONL file (or a JSON file with a list), one window each:

    {"thread": "web-812", "turns": ["t1", "t6"], "reply": {"operations": [...], "profile": {...}}}

`turns` holds all turn ids of the window, or just the first and the last. `reply` is the structured reply; instead of a
memory's handle, an operation's `id` may be the id of a memory (16 hex digits), since a recording can't know which
handles a window will be given. A window that isn't recorded is an error, not an empty answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docmem.errors import InputError, ModelReplyError
from docmem.prompt import Request
from docmem.reply import Answer, InvalidReply, from_value

Key = tuple[str, str, str]
"""Thread, first and last turn id."""


@dataclass(frozen=True)
class Replay:
    """Recorded replies by window."""

    name: str
    replies: dict[Key, Any] = field(repr=False)

    def propose(self, request: Request) -> Answer:
        """The recorded reply to this window. Raises `ModelReplyError` where it has the wrong shape, or isn't there."""
        first, last = request.turns[0].id, request.turns[-1].id
        key = (request.thread, first, last)
        if key not in self.replies:
            raise ModelReplyError(
                f"{self.name} has no reply to turns {first} to {last} of thread {request.thread!r}",
                hint="record that window, or consolidate the dialogue in the windows that were recorded",
            )
        try:
            return Answer(from_value(self.replies[key]))
        except InvalidReply as error:
            raise ModelReplyError(
                f"{self.name}, turns {first} to {last} of {request.thread!r}: {error}",
                reply=json.dumps(self.replies[key], ensure_ascii=False),
            ) from None


def load(path: Path) -> Replay:
    """Read a recording. Raises `InputError` naming the entry that is wrong."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"can't read the recording {path}: {error}") from None
    replies: dict[Key, Any] = {}
    for number, entry in _entries(path, text):
        key = _key(entry)
        if key is None or "reply" not in entry:
            raise InputError(
                f"{path}, entry {number}: not a recorded window",
                hint='one looks like {"thread": "web-1", "turns": ["t1", "t6"], "reply": {…}}',
            )
        if key in replies:
            raise InputError(f"{path}, entry {number}: this window of {key[0]!r} is recorded twice")
        replies[key] = entry["reply"]
    return Replay(f"replay:{path}", replies)


def _entries(path: Path, text: str) -> Iterator[tuple[int, Any]]:
    if text.lstrip().startswith("["):
        values = _decoded(path, 1, text)
        yield from enumerate(values, start=1)
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, _decoded(path, number, line)


def _decoded(path: Path, number: int, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}, entry {number}: not JSON: {error}") from None


def _key(entry: Any) -> Key | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("thread"), str):
        return None
    turns: Sequence[Any] = entry["turns"] if isinstance(entry.get("turns"), list) else ()
    if not turns or not all(isinstance(turn, str) for turn in turns):
        return None
    return entry["thread"], turns[0], turns[-1]
