from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from docmem import llm
from docmem.errors import InputError, ModelReplyError
from docmem.model import Profile, Turn
from docmem.prompt import Request
from docmem.tenant_config import Agent

REPLY: dict[str, Any] = {
    "operations": [],
    "profile": {"preferred_language": "Malay", "locale": None, "lifecycle_stage": None, "attributes": []},
}


def request(*turns: str, thread: str = "web-1") -> Request:
    return Request(thread, [Turn(turn, "user", "x") for turn in turns], Agent(), {}, Profile("s"))


def recording(path: Path, *entries: Any) -> str:
    path.write_text("\n".join(json.dumps(entry) for entry in entries))
    return f"replay:{path}"


def test_a_recorded_window_is_answered(tmp_path: Path) -> None:
    whole = {"thread": "web-1", "turns": ["t1", "t2", "t3"], "reply": REPLY}
    ends = {"thread": "web-1", "turns": ["t4", "t9"], "reply": REPLY}
    model = llm.model(recording(tmp_path / "a.jsonl", whole, ends))
    assert model.propose(request("t1", "t2", "t3")).parsed.reply.profile.preferred_language == "Malay"
    assert model.propose(request("t4", "t5", "t9")).parsed.reply.operations == []


def test_a_json_list_is_a_recording_too(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"thread": "web-1", "turns": ["t1"], "reply": REPLY}], indent=1))
    assert llm.model(f"replay:{path}").propose(request("t1")).parsed.reply.operations == []


def test_a_window_that_is_not_recorded_is_no_empty_answer(tmp_path: Path) -> None:
    model = llm.model(recording(tmp_path / "a.jsonl", {"thread": "web-1", "turns": ["t1"], "reply": REPLY}))
    for other in (request("t2"), request("t1", "t2"), request("t1", thread="web-2")):
        with pytest.raises(ModelReplyError, match="has no reply"):
            model.propose(other)


def test_a_recorded_reply_of_the_wrong_shape_fails(tmp_path: Path) -> None:
    broken = {"thread": "web-1", "turns": ["t1"], "reply": {"operations": None}}
    with pytest.raises(ModelReplyError, match="operations"):
        llm.model(recording(tmp_path / "a.jsonl", broken)).propose(request("t1"))


@pytest.mark.parametrize(
    "entry", [{}, [], {"thread": "web-1", "turns": [], "reply": REPLY}, {"thread": 1, "turns": ["t1"], "reply": REPLY}]
)
def test_an_entry_that_is_no_window_is_named(tmp_path: Path, entry: Any) -> None:
    good = {"thread": "web-1", "turns": ["t1"], "reply": REPLY}
    with pytest.raises(InputError, match="entry 2: not a recorded window"):
        llm.model(recording(tmp_path / "a.jsonl", good, entry))


def test_a_recording_that_can_t_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't read"):
        llm.model(f"replay:{tmp_path / 'none.jsonl'}")
    (tmp_path / "a.jsonl").write_text("{oops")
    with pytest.raises(InputError, match="entry 1: not JSON"):
        llm.model(f"replay:{tmp_path / 'a.jsonl'}")
    twice = {"thread": "web-1", "turns": ["t1"], "reply": REPLY}
    with pytest.raises(InputError, match="recorded twice"):
        llm.model(recording(tmp_path / "b.jsonl", twice, twice))
