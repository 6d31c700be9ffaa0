"""The prompt of consolidation, rendered from the Markdown files in `prompt/`.

Dialogue, memories and profile stand in it as JSON, one line each, with every `<` and every invisible character
escaped: no text can close its fence, start a line of its own or hide.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from docmem.model import Memory, Profile, Turn
from docmem.tenant_config import Agent, Attribute, Topic
from docmem.times import format_time

TURN_SHOWN = 20_000
"""Characters of one turn that are shown; a pasted log or a tool's dump says nothing about a person past that."""

_NOTHING = "(none)"


@dataclass(frozen=True)
class Request:
    """All that a model is given: a window of a thread and what is known already.

    `memories`: short handle (m1, m2, …) to memory. The model never sees an id, so it can't name what it wasn't shown.
    """

    thread: str
    turns: Sequence[Turn]
    agent: Agent
    memories: Mapping[str, Memory]
    profile: Profile

    @cached_property
    def system(self) -> str:
        """The instructions: the same for every window until the agent's topics or attributes change."""
        return _fill(
            "system",
            topics="\n\n".join(map(_topic, self.agent.topics)) or _NOTHING,
            attributes="\n".join(map(_attribute, self.agent.attributes)) or _NOTHING,
        )

    @cached_property
    def window(self) -> str:
        """What to read: memories, profile and dialogue, fenced as data."""
        return _fill(
            "window",
            memories=_lines(_memory(handle, memory) for handle, memory in self.memories.items()),
            profile=data(_profile(self.profile)),
            dialogue=_lines(_turn(turn) for turn in self.turns),
        )

    @property
    def hash(self) -> str:
        """16 hex digits that change with the instructions."""
        return hashlib.sha256(self.system.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def handles(memories: Sequence[Memory]) -> dict[str, Memory]:
    """Short local names for the memories a model is shown."""
    return {f"m{number}": memory for number, memory in enumerate(memories, start=1)}


def schema_note(schema: Mapping[str, Any]) -> str:
    """The schema in words, for a provider that doesn't take one."""
    return _fill("schema", schema=json.dumps(schema, indent=1))


def repair_note(error: str) -> str:
    """What to tell a model whose reply couldn't be read."""
    return _fill("repair", error=error)


def data(value: Any) -> str:
    """One line of JSON that can't close a fence: `<`, `>` and what can't be seen are escaped."""
    plain = json.dumps(value, ensure_ascii=False)
    return "".join(_escaped(char) if _is_unsafe(char) else char for char in plain)


def _is_unsafe(char: str) -> bool:
    return char in "<>" or (not char.isascii() and unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def _escaped(char: str) -> str:
    return json.dumps(char, ensure_ascii=True)[1:-1] if char not in "<>" else f"\\u{ord(char):04x}"


def _fill(name: str, **values: str) -> str:
    """Put the values in, in one pass: a placeholder inside a value stays text."""
    pieces = _template(name).split("{{")
    filled = [pieces[0]]
    for piece in pieces[1:]:
        key, _, rest = piece.partition("}}")
        filled += [values[key], rest]
    return "".join(filled).strip()


@cache
def _template(name: str) -> str:
    return (files("docmem") / "prompt" / f"{name}.md").read_text("utf-8")


def _lines(rows: Any) -> str:
    return "\n".join(data(row) for row in rows) or _NOTHING


def _topic(topic: Topic) -> str:
    lines = [f"### {topic.name}"]
    if topic.kind is not None:
        lines.append(f"Kind: `{topic.kind}`.")
    if topic.description:
        lines.append(topic.description.strip())
    for example in topic.examples:
        kept = f"remember: {example.memory}" if example.memory is not None else "remember nothing"
        lines.append(f"- Said: {example.says}\n  → {kept}")
    return "\n".join(lines)


def _attribute(attribute: Attribute) -> str:
    example = f" Example: {attribute.example}" if attribute.example else ""
    return f"- `{attribute.key}`: {attribute.description.rstrip('.')}.{example}"


def _memory(handle: str, memory: Memory) -> dict[str, Any]:
    since = format_time(memory.valid_from) if memory.valid_from is not None else None
    return {"id": handle, "kind": memory.kind, "topic": memory.topic, "since": since, "text": memory.text}


def _profile(profile: Profile) -> dict[str, Any]:
    core = {key: getattr(profile, key) for key in ("preferred_language", "locale", "lifecycle_stage")}
    return {**core, "attributes": dict(profile.attributes)}


def _turn(turn: Turn) -> dict[str, Any]:
    row: dict[str, Any] = {"turn": turn.id, "role": turn.role}
    if turn.speaker is not None:
        row["speaker"] = turn.speaker
    if turn.at is not None:
        row["at"] = format_time(turn.at)
    if len(turn.text) > TURN_SHOWN:
        row["left_out"] = f"{len(turn.text) - TURN_SHOWN} characters"
    return {**row, "text": turn.text[:TURN_SHOWN]}
