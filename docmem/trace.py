"""What a run was given: from the rows that the injector left, back to the files and commits."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from docmem.assembly import MEMORY_CHARS
from docmem.config import Settings
from docmem.errors import DocmemError
from docmem.fence import clean, one_line
from docmem.index import READING, Ask, Reader
from docmem.layout import place
from docmem.names import agent_name
from docmem.packet import MARK, fitting, persona, shorten
from docmem.passage import passages
from docmem.recorder import part_mark
from docmem.times import format_time

if TYPE_CHECKING:
    from docmem.repository import Repository

_OPENING = 30.0
_FROM_THE_START = frozenset({"steering", "conventions", "strategy", "documents"})
"""Blocks that show a document from its first line on, as far as there is room."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One memory, or piece of a document or profile, in a packet.

    `text`: what its file says at that commit, of a longer one as much as was given; None where that can't be told.

    `part` marks which value of a profile it is, as `recorder.part_mark` does; nothing in what older versions recorded.
    """

    start: int
    end: int
    block: str
    id: str
    path: str
    revision: str
    text: str | None = None
    part: str = ""

    def as_json(self) -> dict[str, Any]:
        """As in `trace --json`: a span of `inject --json`, with its block and text."""
        return {
            "start": self.start,
            "end": self.end,
            "id": self.id,
            "path": self.path,
            "revision": self.revision,
            "block": self.block,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class GivenPacket:
    """A packet that a run was given. `packet`: 16 hex digits of the SHA-256 of its text."""

    packet: str
    agent: str
    subject: str
    at: str
    pieces: tuple[Piece, ...]

    def as_json(self) -> dict[str, Any]:
        """One of the packets of `trace --json`."""
        return {
            "packet": self.packet,
            "agent": self.agent,
            "subject": self.subject,
            "at": self.at,
            "spans": [piece.as_json() for piece in self.pieces],
        }


def read(settings: Settings, tenant: str, run: int, *, agent: str | None = None) -> list[GivenPacket]:
    """The packets of a run, oldest first; of all agents without `agent`.

    Raises `InvalidName`, and what `Reader.read` raises.
    """
    if agent is not None:
        agent_name(agent)
    reader = Reader(settings, timeout=READING, opening=_OPENING)
    try:
        [rows] = reader.read(tenant, lambda index: index.run(Ask("trace", {"run": run, "agent": agent})))
    finally:
        reader.close()
    return [_told(settings, tenant, packet) for packet in packets(rows)]


def packets(rows: Iterable[Mapping[str, Any]]) -> list[GivenPacket]:
    """Packets out of the rows of `trace`, which come packet by packet. A row without one only counts a run."""
    given = (row for row in rows if row["packet"])
    found = []
    for (agent, packet), group in groupby(given, key=lambda row: (row["agent"], row["packet"])):
        pieces = list(group)
        found.append(
            GivenPacket(
                packet=packet,
                agent=agent,
                subject=pieces[0]["subject"],
                at=format_time(pieces[0]["at"]),
                pieces=tuple(_piece(row) for row in pieces),
            )
        )
    return found


def _piece(row: Mapping[str, Any]) -> Piece:
    block, _, part = row["block"].partition(".")
    return Piece(row["starts"], row["ends"], block, row["memory"], row["path"], row["revision"], part=part)


def _told(settings: Settings, tenant: str, packet: GivenPacket) -> GivenPacket:
    """With what the files say, where the repo is here."""
    from docmem import repository

    try:
        repo = repository.open(settings, tenant)
    except DocmemError:  # a machine that only serves
        return packet
    said: dict[str, Mapping[str, str]] = {}
    for piece in packet.pieces:
        if piece.block == "persona" and piece.revision not in said:
            said[piece.revision] = _values(repo, packet.subject, piece)
    return replace(
        packet,
        pieces=tuple(
            replace(piece, text=_value(said[piece.revision], piece) if piece.block == "persona" else _text(repo, piece))
            for piece in packet.pieces
        ),
    )


def _values(repo: Repository, subject: str, piece: Piece) -> Mapping[str, str]:
    """All that the profile said at a piece's commit, each value by its mark."""
    from docmem.fallback import profile_at

    try:
        profile = profile_at(repo, piece.revision, subject)
    except DocmemError:  # the commit is gone with an erase
        return {}
    if profile is None:
        return {}
    entries = persona(profile, declared=(), limit=sys.maxsize, value_characters=sys.maxsize)
    return {part_mark(piece.path, entry.part): entry.text for entry in entries}


def _value(said: Mapping[str, str], piece: Piece) -> str | None:
    """As much of its value as the piece shows. Where no part was recorded, of the only value that can be as long."""
    length = piece.end - piece.start
    if piece.part:
        text = said.get(piece.part, "")
        return text[:length] if len(text) >= length else None
    fitting = {text for value in said.values() if len(text := shorten(value, length)) == length}
    return fitting.pop() if len(fitting) == 1 else None


def _text(repo: Any, piece: Piece) -> str | None:
    from docmem import files

    try:
        data = repo.snapshot(piece.revision).read(piece.path)
        if data is None:
            return None
        kind = place(piece.path).kind
        if kind == "memory":
            return _given(files.parse_memory(piece.path, data).text, piece, lines=False)
        if kind == "document":
            return _given(files.parse_document(piece.path, data).text, piece, lines=True)
    except DocmemError:  # the commit is gone with an erase, or the file is broken there
        return None
    return None


def _given(text: str, piece: Piece, *, lines: bool) -> str | None:
    """What of a file's text a piece shows, by its length: all, its beginning, or the one passage that is as long."""
    length = piece.end - piece.start
    shown = _shown(text, lines=lines)
    if len(shown) == length:
        return text
    if piece.block in _FROM_THE_START:
        return shown[:length] if len(shown) > length else None
    possible = {passage.removesuffix(MARK) for passage in passages(clean(text)[0])} | {_beginning(text, lines=lines)}
    as_long = {passage for passage in possible if len(passage) == length}
    if not as_long and lines:  # short chunks are shown in their lines
        parts = shown.split("\n")
        as_long = {part for at in range(len(parts)) if len(part := "\n".join(parts[at:]).strip()) == length}
    return as_long.pop() if len(as_long) == 1 else None


def _shown(text: str, *, lines: bool) -> str:
    """As a packet lays it out."""
    safe = clean(text)[0]
    return "\n  ".join(filter(None, map(one_line, safe.split("\n")))) if lines else one_line(safe)


def _beginning(text: str, *, lines: bool) -> str:
    return _shown(fitting(text, MEMORY_CHARS)[0], lines=lines)
