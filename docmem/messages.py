"""A packet into the messages of a model call, whichever of the two styles the call has.

OpenAI style keeps instructions in a message of role `system` or `developer`; Anthropic style passes `system` beside
the list, and the list itself may hold `user` and `assistant` only. Nothing given is changed, only copied. A block
that an earlier call put in is replaced, never stacked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from docmem.fence import CLOSE, OPEN, strip_injected
from docmem.packet import Packet

Content: TypeAlias = "str | list[Any] | None"
Style: TypeAlias = Literal["openai", "anthropic"]

_SYSTEM = ("system", "developer")


def inject_messages(messages: Sequence[Any], packet: Packet, *, style: Style | None = None) -> list[Any]:
    """`messages` with the packet in them, as a new list. An empty packet adds nothing.

    The block ends the first system or developer message. Without one, OpenAI style gets a system message at the
    front; Anthropic style gets the block at the head of its first user message, since its list may hold no other
    role. `style` unset: a list whose contents are blocks is taken as Anthropic's, which both APIs accept; for
    Anthropic lists of plain strings say so, or pass `system` through `inject_system`.
    """
    clean = [_without_block(message) for message in messages]
    if not packet.text:
        return clean
    at = _first(clean, _SYSTEM)
    if at is not None:
        clean[at] = {**clean[at], "content": inject_system(clean[at].get("content"), packet)}
        return clean
    if (style or _style(clean)) == "openai":
        return [{"role": "system", "content": packet.text}, *clean]
    at = _first(clean, ("user",))
    if at is None:
        return [*clean, {"role": "user", "content": packet.text}]
    clean[at] = {**clean[at], "content": _ahead(clean[at].get("content"), packet.text)}
    return clean


def inject_system(system: Content, packet: Packet) -> Content:
    """An Anthropic call's `system` (text, blocks or None) with the packet at its end; None stays None without one."""
    clean = _strip(system)
    if not packet.text:
        return clean
    if isinstance(clean, list):
        return [*clean, {"type": "text", "text": packet.text}]
    return f"{clean}\n\n{packet.text}" if clean else packet.text


def _first(messages: Sequence[Any], roles: tuple[str, ...]) -> int | None:
    return next(
        (at for at, item in enumerate(messages) if isinstance(item, Mapping) and item.get("role") in roles), None
    )


def _style(messages: Sequence[Any]) -> Style:
    """Tool and function roles are OpenAI's alone; contents in blocks are read as Anthropic's."""
    dicts = [message for message in messages if isinstance(message, Mapping)]
    if any(message.get("role") in {"tool", "function"} or message.get("tool_calls") for message in dicts):
        return "openai"
    return "anthropic" if any(isinstance(message.get("content"), list) for message in dicts) else "openai"


def _ahead(content: Content, block: str) -> Content:
    if isinstance(content, list):
        # Results of tools have to come first in a message.
        at = next((at for at, part in enumerate(content) if _type(part) != "tool_result"), len(content))
        return [*content[:at], {"type": "text", "text": block}, *content[at:]]
    return f"{block}\n\n{content}" if content else block


def _type(part: Any) -> Any:
    return part.get("type") if isinstance(part, Mapping) else None


def _without_block(message: Any) -> Any:
    if not isinstance(message, Mapping):
        return message
    content = message.get("content")
    stripped = _strip(content)
    return message if stripped is content else {**message, "content": stripped}


def _strip(content: Content) -> Content:
    if isinstance(content, str):
        return strip_injected(content) if _fenced(content) else content
    if not isinstance(content, list) or not any(_fenced(_text(part)) for part in content):
        return content
    kept = [(part, strip_injected(_text(part))) if _fenced(_text(part)) else (part, None) for part in content]
    return [part if text is None else {**part, "text": text} for part, text in kept if text != ""]


def _text(part: Any) -> str:
    text = part.get("text") if isinstance(part, Mapping) else None
    return text if isinstance(text, str) else ""


def _fenced(text: str) -> bool:
    # Both, or somebody merely writes about a marker.
    return OPEN in text and CLOSE in text
