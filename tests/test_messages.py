from __future__ import annotations

import copy
from typing import Any

import pytest

from docmem.fence import CLOSE, OPEN
from docmem.messages import inject_messages, inject_system
from docmem.packet import Packet

PACKET = Packet(text=f"{OPEN}\n- likes tea [7f3a]\n{CLOSE}")
NEWER = Packet(text=f"{OPEN}\n- likes coffee [88aa]\n{CLOSE}")

LISTS: list[list[Any]] = [
    [],
    [{"role": "user", "content": "hi"}],
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
    [{"role": "developer", "content": [{"type": "text", "text": "Be brief."}]}, {"role": "user", "content": "hi"}],
    [{"role": "system", "content": ""}, {"role": "user", "content": "hi"}],
    [{"role": "user", "content": [{"type": "text", "text": "hi"}]}, {"role": "assistant", "content": "yes"}],
    [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "4"}]}],
    [{"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]}, {"role": "tool", "content": "4"}],
]


@pytest.mark.parametrize("messages", LISTS)
def test_the_block_stands_in_the_messages_once_and_the_given_list_is_untouched(messages: list[Any]) -> None:
    before = copy.deepcopy(messages)
    injected = inject_messages(messages, PACKET)
    assert str(injected).count("likes tea") == 1
    assert messages == before


@pytest.mark.parametrize("messages", LISTS)
def test_an_empty_packet_adds_nothing(messages: list[Any]) -> None:
    injected = inject_messages(messages, Packet())
    assert injected == messages
    assert injected is not messages


@pytest.mark.parametrize("messages", [messages for messages in LISTS if messages])
@pytest.mark.parametrize("style", ["openai", "anthropic"])
def test_an_old_block_is_replaced_and_never_stacked(messages: list[Any], style: Any) -> None:
    once = inject_messages(messages, PACKET, style=style)
    again = inject_messages(once, NEWER, style=style)
    assert "likes tea" not in str(again)
    assert again == inject_messages(messages, NEWER, style=style) or again[0] == {
        "role": "system",
        "content": NEWER.text,
    }


def test_the_system_message_keeps_what_it_said_and_ends_with_the_block() -> None:
    messages = [{"role": "system", "content": "Be brief.", "name": "rules"}, {"role": "user", "content": "hi"}]
    injected = inject_messages(messages, PACKET)
    assert injected[0] == {"role": "system", "content": f"Be brief.\n\n{PACKET.text}", "name": "rules"}
    assert injected[1] is messages[1]


def test_openai_style_without_a_system_message_gets_one() -> None:
    assert inject_messages([{"role": "user", "content": "hi"}], PACKET) == [
        {"role": "system", "content": PACKET.text},
        {"role": "user", "content": "hi"},
    ]


def test_anthropic_style_holds_user_and_assistant_only() -> None:
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]},
        {"role": "assistant", "content": [{"type": "text", "text": "hello"}]},
    ]
    injected = inject_messages(messages, PACKET)
    assert [message["role"] for message in injected] == ["user", "assistant"]
    assert injected[0]["content"] == [{"type": "text", "text": PACKET.text}, *messages[0]["content"]]
    plain = inject_messages([{"role": "user", "content": "hi"}], PACKET, style="anthropic")
    assert plain == [{"role": "user", "content": f"{PACKET.text}\n\nhi"}]


def test_anthropic_system_is_text_blocks_or_nothing() -> None:
    assert inject_system(None, Packet()) is None
    assert inject_system(None, PACKET) == PACKET.text
    assert inject_system("Be brief.", PACKET) == f"Be brief.\n\n{PACKET.text}"
    blocks = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    assert inject_system(blocks, PACKET) == [*blocks, {"type": "text", "text": PACKET.text}]
    assert inject_system(inject_system(blocks, PACKET), NEWER) == inject_system(blocks, NEWER)


def test_messages_that_are_objects_of_a_framework_pass() -> None:
    reply = object()
    assert inject_messages([{"role": "user", "content": "hi"}, reply], PACKET)[2] is reply
