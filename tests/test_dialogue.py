from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from docmem import dialogue
from docmem.errors import InputError
from docmem.model import Turn


def write(path: Path, *lines: Any) -> Path:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


TURN = {"id": "t1", "role": "user", "text": "Hello"}


def test_a_turn_has_id_role_text_and_perhaps_speaker_and_time(tmp_path: Path) -> None:
    full = {**TURN, "speaker": "Ana", "at": "2026-05-02T12:14:00+02:00"}
    path = write(tmp_path / "web-1.jsonl", full, "", {**TURN, "id": "t2", "speaker": None, "at": None})
    assert dialogue.read_jsonl(path) == [
        Turn("t1", "user", "Hello", at=datetime(2026, 5, 2, 10, 14, tzinfo=UTC), speaker="Ana"),
        Turn("t2", "user", "Hello"),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{not json", "not JSON"),
        ("[]", "not a JSON object"),
        ("[" * 100_000, "not JSON"),
        ({"role": "user", "text": "x"}, "no 'id'"),
        ({"id": "t2", "text": "x"}, "no 'role'"),
        ({"id": "t2", "role": "user"}, "no 'text'"),
        ({**TURN, "id": 2}, "'id' is not text"),
        ({**TURN, "id": ""}, "turn id"),
        ({**TURN, "id": "a\nb"}, "turn id"),
        ({**TURN, "id": "t2", "text": None}, "'text' is not text"),
        ({**TURN, "id": "t2", "role": "admin"}, "the role 'admin' is none of user, assistant, tool, system"),
        (TURN, "the turn id 't1' stands on line 1 already"),
        ({**TURN, "id": "t2", "at": "yesterday"}, "'yesterday' is not a time"),
        ({**TURN, "id": "t2", "at": 1700000000}, "'at' is not text"),
        ({**TURN, "id": "t2", "text": "x" * 200_001}, "200001 characters"),
    ],
)
def test_an_unreadable_line_is_named(tmp_path: Path, line: Any, reason: str) -> None:
    path = write(tmp_path / "web-1.jsonl", TURN, line)
    with pytest.raises(InputError, match=r"web-1\.jsonl, line 2: ") as caught:
        dialogue.read_jsonl(path)
    assert reason in caught.value.message


def test_a_file_that_is_no_text_or_isn_t_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8"):
        dialogue.read_jsonl(tmp_path / "bad.jsonl")
    with pytest.raises(InputError, match=r"none\.jsonl"):
        dialogue.read_jsonl(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="can't read"):
        dialogue.read_jsonl(tmp_path)


def test_nul_and_lone_surrogates_are_taken_out_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", r'{"id": "t1", "role": "user", "text": "a\u0000b \ud800 👩‍👩‍👧 café"}')
    loaded = dialogue.load(path)
    assert loaded.turns[0].text == "ab  👩‍👩‍👧 café"
    assert loaded.scrubbed == 2


def test_a_line_separator_inside_a_text_ends_no_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes('\ufeff{"id": "t1", "role": "user", "text": "a\u2028b"}\r\n'.encode())
    assert dialogue.read_jsonl(path)[0].text == "a\u2028b"


def test_a_folder_holds_one_thread_a_file(tmp_path: Path) -> None:
    write(tmp_path / "web-2.jsonl", TURN)
    write(tmp_path / "web-1.jsonl", TURN, {**TURN, "id": "t2"})
    (tmp_path / "notes.txt").write_text("not a dialogue")
    source = dialogue.source(tmp_path)
    assert source.threads() == ("web-1", "web-2")
    assert [turn.id for turn in source.after("web-1", "t1")] == ["t2"]
    with pytest.raises(InputError, match="no thread"):
        source.after("../web-1", None)


def test_a_file_is_one_thread(tmp_path: Path) -> None:
    path = write(tmp_path / "web-1.jsonl", TURN)
    assert dialogue.source(path).threads() == ("web-1",)
    named = dialogue.source(path, thread="other")
    assert [turn.id for turn in named.after("other", None)] == ["t1"]
    with pytest.raises(InputError, match="holds thread"):
        named.after("web-1", None)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a folder"):
        dialogue.JsonlFolder(tmp_path / "none").threads()


def test_an_unknown_last_turn_is_an_error_and_not_a_fresh_start() -> None:
    with pytest.raises(InputError, match="no turn 't9'"):
        dialogue.after([Turn("t1", "user", "Hello")], "t9")


def test_what_docmem_injected_is_gone_before_anything_is_learned() -> None:
    block = "<docmem:memory>\n- likes tea\n</docmem:memory>\n\nok thanks"
    assert dialogue.clean([Turn("t1", "user", block)]).turns[0].text == "ok thanks"


def test_turns_from_a_host_are_checked_like_those_from_a_file() -> None:
    with pytest.raises(InputError, match="stands twice"):
        dialogue.clean([Turn("t1", "user", "a"), Turn("t1", "user", "b")])
    with pytest.raises(InputError, match="turn id"):
        dialogue.clean([Turn("", "user", "a")])
    assert dialogue.clean([Turn("t1", "user", "a\0b", speaker="A\0")]).scrubbed == 2


def _said(*roles: str, characters: int = 10) -> list[Turn]:
    return [Turn(f"t{number}", role, "x" * characters) for number, role in enumerate(roles)]  # type: ignore[arg-type]


def test_a_window_ends_before_a_turn_of_the_users() -> None:
    turns = _said("user", "assistant", "user", "assistant", "tool", "assistant", "user")
    assert len(dialogue.window(turns, most_turns=5, most_characters=1000)) == 5
    assert len(dialogue.window(turns, most_turns=6, most_characters=1000)) == 6
    assert len(dialogue.window(turns, most_turns=3, most_characters=1000)) == 2
    assert len(dialogue.window(turns, most_turns=7, most_characters=1000)) == 7


def test_a_window_is_bounded_by_characters_and_holds_at_least_one_turn() -> None:
    turns = _said("user", "user", "user", characters=100)
    assert len(dialogue.window(turns, most_turns=10, most_characters=250)) == 2
    assert len(dialogue.window(turns, most_turns=10, most_characters=10)) == 1
    assert dialogue.window([], most_turns=1, most_characters=1) == ()
