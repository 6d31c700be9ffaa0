"""Dialogue as consolidation reads it: the turns of a thread, from JSONL files or anything else that has threads.

One turn a line: `{"id": "t4", "role": "user|assistant|tool|system", "speaker": null, "text": "…", "at": "…Z"}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn, Protocol

from docmem.document import scrub
from docmem.errors import InputError, InvalidName
from docmem.fence import strip_injected
from docmem.model import ROLES, Turn
from docmem.names import thread_id, turn_id
from docmem.times import parse_time

TURN_MAX = 200_000
"""Characters of one turn. A longer one is no conversation and would cost a fortune to send."""


class DialogueSource(Protocol):
    """Where threads come from."""

    def threads(self) -> Sequence[str]:
        """The ids of the threads there are."""
        ...

    def after(self, thread: str, turn: str | None) -> Sequence[Turn]:
        """The turns of `thread` after `turn` (None: all), oldest first."""
        ...


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The turns of a file. `scrubbed` counts characters no index can hold (NUL, lone surrogates), removed."""

    turns: tuple[Turn, ...]
    scrubbed: int = 0


@dataclass(frozen=True, slots=True)
class JsonlFile:
    """One thread in one JSONL file."""

    path: Path
    thread: str

    def threads(self) -> Sequence[str]:
        """The one thread."""
        return (self.thread,)

    def after(self, thread: str, turn: str | None) -> Sequence[Turn]:
        """Its turns after `turn`. Raises `InputError` for another thread, an unknown turn, or an unreadable line."""
        if thread != self.thread:
            raise InputError(f"{self.path} holds thread {self.thread!r}, not {thread!r}")
        return after(read_jsonl(self.path), turn)


@dataclass(frozen=True, slots=True)
class JsonlFolder:
    """A folder of JSONL files, one thread a file; the file's stem is the thread."""

    path: Path

    def threads(self) -> Sequence[str]:
        """The threads, sorted. Raises `InputError` where there is no such folder or a file's name is no thread id."""
        if not self.path.is_dir():
            raise InputError(f"{self.path} is not a folder", hint="give a folder of JSONL files, one thread a file")
        return tuple(_thread_of(file) for file in sorted(self.path.glob("*.jsonl")))

    def after(self, thread: str, turn: str | None) -> Sequence[Turn]:
        """The turns of one thread after `turn`. Raises `InputError`."""
        if thread not in self.threads():  # a thread's name is never a way to another folder
            raise InputError(f"{self.path} has no thread {thread!r}", hint=f"expected a file {thread}.jsonl there")
        return after(read_jsonl(self.path / f"{thread}.jsonl"), turn)


def source(path: Path, *, thread: str | None = None) -> DialogueSource:
    """A JSONL file (its stem is the thread unless `thread` says otherwise) or a folder of them."""
    if path.is_dir():
        return JsonlFolder(path)
    return JsonlFile(path, thread if thread is not None else _thread_of(path))


def _thread_of(path: Path) -> str:
    try:
        return thread_id(path.stem)
    except InvalidName as error:
        raise InputError(f"{path}: {error.message}", hint="rename the file; its stem is the thread's id") from None


def after(turns: Sequence[Turn], turn: str | None) -> tuple[Turn, ...]:
    """The turns behind the one with this id; all for None. Raises `InputError` where no turn has the id.

    Starting over instead would learn everything twice; stopping in silence would lose what was said since.
    """
    if turn is None:
        return tuple(turns)
    for number, each in enumerate(turns):
        if each.id == turn:
            return tuple(turns[number + 1 :])
    raise InputError(
        f"the dialogue has no turn {turn!r}, which is the last one consolidated",
        hint="give the whole dialogue of the thread, or check that it is the right thread",
        code="unknown_turn",
    )


def window(turns: Sequence[Turn], *, most_turns: int, most_characters: int) -> tuple[Turn, ...]:
    """The first turns that fit into one window; at least one.

    A window that is full ends before a turn of the user's, where there is one in its second half: an answer stays
    with its question.
    """
    size = 0
    for number, turn in enumerate(turns):
        size += len(turn.text)
        if number and (number >= most_turns or size > most_characters):
            return tuple(turns[: _seam(turns, number)])
    return tuple(turns)


def _seam(turns: Sequence[Turn], full: int) -> int:
    for number in range(full, full // 2, -1):
        if turns[number].role == "user":
            return number
    return full


def clean(turns: Iterable[Turn]) -> Dialogue:
    """Turns fit to learn from: blocks that docmem injected are gone, and NUL and lone surrogates with them.

    Raises `InputError` for a turn id that stands twice or is none.
    """
    kept: list[Turn] = []
    seen: set[str] = set()
    total = 0
    for turn in turns:
        _check_id(turn.id, seen)
        text, removed = scrub(turn.text)
        speaker, also = scrub(turn.speaker) if turn.speaker is not None else (None, 0)
        total += removed + also
        kept.append(replace(turn, text=strip_injected(text), speaker=speaker))
    return Dialogue(tuple(kept), total)


def _check_id(value: str, seen: set[str]) -> None:
    try:
        turn_id(value)
    except InvalidName as error:
        raise InputError(error.message, hint=error.hint) from None
    if value in seen:
        raise InputError(f"the turn id {value!r} stands twice", hint="turn ids are unique within a thread")
    seen.add(value)


def read_jsonl(path: Path) -> list[Turn]:
    """Read a dialogue file. Raises `InputError` naming file and line."""
    return list(load(path).turns)


def load(path: Path) -> Dialogue:
    """Read a dialogue file, with the count of scrubbed characters. Raises `InputError` naming file and line."""
    try:
        # Only LF ends a line: `splitlines` would also break at U+2028 inside a text.
        lines = path.read_bytes().decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8", hint="save the file as UTF-8") from None
    except OSError as error:
        raise InputError(f"can't read the dialogue {path}: {error.strerror}", hint="check the path") from None
    turns: list[Turn] = []
    lines_of: dict[str, int] = {}
    total = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        line_of = _Line(path, number)
        turn, scrubbed = _turn(_mapping(line, line_of), line_of)
        if turn.id in lines_of:
            line_of.fail(f"the turn id {turn.id!r} stands on line {lines_of[turn.id]} already")
        lines_of[turn.id] = number
        turns.append(turn)
        total += scrubbed
    return Dialogue(tuple(turns), total)


@dataclass(frozen=True, slots=True)
class _Line:
    path: Path
    number: int

    def fail(self, reason: str) -> NoReturn:
        raise InputError(
            f"{self.path}, line {self.number}: {reason}",
            hint='a turn is {"id": "t1", "role": "user", "text": "…", "at": "2026-05-02T10:14:00Z"}',
        )


def _mapping(line: str, at: _Line) -> Mapping[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        at.fail(f"not JSON: {error}")
    if not isinstance(value, dict):
        at.fail("not a JSON object")
    return value


def _turn(values: Mapping[str, Any], at: _Line) -> tuple[Turn, int]:
    identity, in_id = scrub(_text(values, "id", at))
    text, in_text = scrub(_text(values, "text", at))
    speaker, in_speaker = scrub(_optional(values, "speaker", at) or "")
    role = _text(values, "role", at)
    if role not in ROLES:
        at.fail(f"the role {role!r} is none of {', '.join(ROLES)}")
    if len(text) > TURN_MAX:
        at.fail(f"{len(text)} characters of text; a turn has at most {TURN_MAX}")
    try:
        turn_id(identity)
    except InvalidName as error:
        at.fail(error.message)
    known = next(each for each in ROLES if each == role)
    turn = Turn(id=identity, role=known, text=text, at=_time(values, at), speaker=speaker or None)
    return turn, in_id + in_text + in_speaker


def _text(values: Mapping[str, Any], key: str, at: _Line) -> str:
    if key not in values:
        at.fail(f"no {key!r}")
    value = values[key]
    if not isinstance(value, str):
        at.fail(f"{key!r} is not text")
    return value


def _optional(values: Mapping[str, Any], key: str, at: _Line) -> str | None:
    return None if values.get(key) is None else _text(values, key, at)


def _time(values: Mapping[str, Any], at: _Line) -> datetime | None:
    text = _optional(values, "at", at)
    if text is None:
        return None
    try:
        return parse_time(text)
    except ValueError as error:
        at.fail(f"'at': {error}")
