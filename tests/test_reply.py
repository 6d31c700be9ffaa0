"""Case C1: whatever comes back is either the reply that was asked for, or an error text worth feeding back."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmem import reply
from docmem.reply import InvalidReply

PROFILE: dict[str, Any] = {"preferred_language": None, "locale": None, "lifecycle_stage": None, "attributes": []}
OPERATION: dict[str, Any] = {
    "op": "create",
    "id": None,
    "kind": "fact",
    "topic": "trips",
    "text": "The user plans Portugal.",
    "confidence": 0.9,
    "importance": 6,
    "evidence_turns": ["t1"],
    "quote": "Portugal",
}


def body(**changes: Any) -> dict[str, Any]:
    return {"operations": [OPERATION], "profile": PROFILE, **changes}


def without(mapping: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in mapping.items() if name != key}


GOOD = json.dumps(body())


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"Sure, here is the JSON:\n\n```json\n{GOOD}\n```\nLet me know!",
        f"```\n{GOOD}\n```",
        f"<think>The user said {{something}} about Portugal.</think>\n{GOOD}",
        f'I could answer {{"operations": [], "profile": {{}}}} but better is:\n{GOOD}',
        f"Here you go: {GOOD} Anything else?",
        f"\ufeff {GOOD}".lstrip("\ufeff"),
    ],
)
def test_the_json_is_taken_out_of_its_wrapping(text: str) -> None:
    assert reply.parse(text).reply.operations[0].text == "The user plans Portugal."


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("   \n", "empty"),
        ("<think>hm</think>", "empty"),
        (GOOD[:-20], "can't be read"),
        (GOOD.replace('"', "'"), "can't be read"),
        ("I'm sorry, but I can't help with that.", "no JSON object"),
        ("null", "must be one JSON object, not null"),
        ("[" + GOOD + "]", "must be one JSON object, not a list"),
        ('"operations"', "not text"),
        (json.dumps(body(operations=None)), "operations"),
        (json.dumps(body(operations={})), "operations"),
        (json.dumps(body(operations=[[]])), "operations.0"),
        (json.dumps(without(body(), "operations")), "operations: Field required"),
        (json.dumps(without(body(), "profile")), "profile: Field required"),
        (json.dumps(body(profile=[])), "profile"),
        (json.dumps(body(profile=without(PROFILE, "attributes"))), "profile.attributes: Field required"),
        (json.dumps(body(profile={**PROFILE, "attributes": {"diet": "vegan"}})), "profile.attributes"),
        (json.dumps(body(operations=[{**OPERATION, "op": "merge"}])), "operations.0.op"),
        (json.dumps(body(operations=[{**OPERATION, "confidence": "high"}])), "operations.0.confidence"),
        (json.dumps(body(operations=[{**OPERATION, "importance": 6.5}])), "operations.0.importance"),
        (json.dumps(body(operations=[{**OPERATION, "evidence_turns": "t1"}])), "operations.0.evidence_turns"),
        (json.dumps(body(operations=[{**OPERATION, "id": 7}])), "operations.0.id"),
        (GOOD.replace("0.9", "NaN"), "NaN"),
        ('{"operations": [], "operations": [], "profile": {}}', "stands twice"),
        ("{" * 20_000, "can't be read"),
        ('{"a":' * 20_000, "can't be read"),
        ("[" * 200_000, "no JSON object"),
    ],
)
def test_a_broken_reply_says_what_is_wrong_with_it(text: str, reason: str) -> None:
    with pytest.raises(InvalidReply, match=reason.replace(".", r"\.")):
        reply.parse(text)


@pytest.mark.parametrize("key", list(OPERATION))
def test_no_key_of_an_operation_may_be_absent(key: str) -> None:
    with pytest.raises(InvalidReply, match=rf"operations\.0\.{key}: Field required"):
        reply.from_value(body(operations=[without(OPERATION, key)]))


def test_nothing_to_remember_is_a_reply() -> None:
    assert reply.from_value(body(operations=[])).reply.operations == []


def test_keys_nobody_asked_for_are_dropped_and_counted() -> None:
    profile = {**PROFILE, "mood": "fine", "attributes": [{"key": "diet", "value": "vegan", "sure": True}]}
    parsed = reply.from_value(body(operations=[{**OPERATION, "why": "because"}], profile=profile, note="x"))
    assert parsed.dropped == 4
    assert parsed.reply.profile.attributes[0].value == "vegan"


@pytest.mark.parametrize("key", ["tenant", "tenant_id", "TenantId", " tenant"])
def test_an_operation_that_names_a_tenant_is_marked(key: str) -> None:
    parsed = reply.from_value(body(operations=[OPERATION, {**OPERATION, key: "other"}]))
    assert parsed.tenant_keys == {1}


def test_a_tenant_is_found_however_deep_it_is_named() -> None:
    hidden = {**OPERATION, "meta": [{"scope": {"tenant_id": "other"}}]}
    assert reply.from_value(body(operations=[hidden])).tenant_keys == {0}


def test_a_whole_number_may_be_written_with_a_point() -> None:
    assert reply.from_value(body(operations=[{**OPERATION, "importance": 5.0}])).reply.operations[0].importance == 5
    with pytest.raises(InvalidReply):
        reply.from_value(body(operations=[{**OPERATION, "importance": 5.5}]))


def test_nul_and_lone_surrogates_are_taken_out_and_counted() -> None:
    text = GOOD.replace("Portugal.", "Por\\u0000tugal \\ud83d👩‍👩‍👧 café.")
    parsed = reply.parse(text)
    assert parsed.reply.operations[0].text == "The user plans Portugal 👩‍👩‍👧 café."
    assert parsed.scrubbed == 2


def test_the_schema_is_in_the_dialect_of_strict_structured_output() -> None:
    def objects(node: Any) -> list[dict[str, Any]]:
        if isinstance(node, list):
            return [found for item in node for found in objects(item)]
        if not isinstance(node, dict):
            return []
        own = [node] if node.get("type") == "object" else []
        return own + [found for item in node.values() for found in objects(item)]

    schema = reply.json_schema()
    assert len(objects(schema)) == 4
    for shape in objects(schema):
        assert shape["additionalProperties"] is False
        assert shape["required"] == list(shape["properties"])
    assert "$ref" not in json.dumps(schema)


def test_the_schema_names_the_declared_topics() -> None:
    items = reply.json_schema(["trips", "wishes"])["properties"]["operations"]["items"]
    assert items["properties"]["topic"]["enum"] == ["trips", "wishes"]


@given(st.text())
def test_any_text_is_either_a_reply_or_an_invalid_one(text: str) -> None:
    with contextlib.suppress(InvalidReply):
        assert isinstance(reply.parse(text).reply, reply.Reply)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*OPERATION, "operations", "profile"]), inner),
)


@given(JSON)
def test_any_value_is_either_a_reply_or_an_invalid_one(value: Any) -> None:
    with contextlib.suppress(InvalidReply):
        assert isinstance(reply.from_value(value).reply, reply.Reply)
