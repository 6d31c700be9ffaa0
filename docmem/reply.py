"""The structured reply a model gives: its JSON schema, and the reader that takes it out of whatever came back.

Tolerant about wrapping (prose, code fences, a thinking preamble), strict about shape: a missing key, a wrong type or
a cut-off reply is an error whose text can be fed back to the model. "Nothing worth keeping" is an empty list of
operations, never an unreadable reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NoReturn, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from docmem.document import scrub_value
from docmem.model import KINDS, Spent

REPLY_MAX = 1_000_000
"""Characters of a reply that are looked at."""

_THINKING = re.compile(r"<(think|thinking|reasoning|scratchpad)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_FENCED = re.compile(r"```[ \t]*(?:json5?|JSON)?[ \t]*\n(.*?)\n[ \t]*```", re.DOTALL)


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


def _whole(value: Any) -> Any:
    """JSON knows one kind of number, and JSON Schema's `integer` allows 5.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole: TypeAlias = Annotated[int, BeforeValidator(_whole)]


class Operation(_Strict):
    """One proposed change to memories, as the model says it."""

    op: Literal["create", "update", "delete"]
    id: str | None = Field(description="Handle of the existing memory to update or delete, such as m3; null to create.")
    kind: str = Field(
        description="fact, preference, decision or episode.", json_schema_extra={"enum": [str(kind) for kind in KINDS]}
    )
    topic: str = Field(description="Name of one of the declared topics.")
    text: str = Field(description="One self-contained statement in the third person, with absolute dates.")
    confidence: float = Field(description="0 to 1: how well the cited turns support the statement.")
    importance: Whole = Field(description="1 to 10: how much it will matter in later conversations.")
    evidence_turns: list[str] = Field(description="Ids of the turns that say it, at least one of them the user's.")
    quote: str | None = Field(description="Short literal quote of the user's from one of those turns, or null.")


class AttributePair(_Strict):
    """One profile attribute."""

    key: str
    value: str


class ProfilePatch(_Strict):
    """What the window says about the person's contact card. Null: nothing new."""

    preferred_language: str | None = Field(description="Language the user wants answers in, such as English.")
    locale: str | None = Field(description="BCP 47 tag such as en-GB.")
    lifecycle_stage: str | None = Field(description="lead, comparing, active or churned.")
    attributes: list[AttributePair]


class Reply(_Strict):
    """The whole reply."""

    operations: list[Operation]
    profile: ProfilePatch


NO_PROFILE = ProfilePatch(preferred_language=None, locale=None, lifecycle_stage=None, attributes=[])


class InvalidReply(Exception):
    """The reply isn't what was asked for; the text says why, in words that a model can act on."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A reply in the right shape.

    `tenant_keys`: the positions of operations that named a tenant; they are rejected, whatever else they say.
    `dropped`: keys nobody asked for. `scrubbed`: NUL and lone surrogates taken out.
    """

    reply: Reply
    tenant_keys: frozenset[int] = frozenset()
    dropped: int = 0
    scrubbed: int = 0


def json_schema(topics: Sequence[str] = ()) -> dict[str, Any]:
    """The reply's JSON schema in the dialect of strict structured output: no references, every key required.

    `topics`: the names that an operation's topic may have; any, where none are given.
    """
    schema = Reply.model_json_schema()
    definitions = schema.pop("$defs", {})
    resolved: dict[str, Any] = _resolved(schema, definitions)
    if topics:
        resolved["properties"]["operations"]["items"]["properties"]["topic"]["enum"] = list(topics)
    return resolved


def _resolved(node: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_resolved(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _resolved(definitions[node["$ref"].rsplit("/", 1)[-1]], definitions)
    # `title` is pydantic's decoration; under `properties` the word would name a field, and hold an object.
    return {
        key: _resolved(value, definitions)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str))
    }


def parse(text: str) -> Parsed:
    """Read a model's answer. Raises `InvalidReply`."""
    return from_value(_object_in(text))


def from_value(value: Any) -> Parsed:
    """Check an already decoded reply. Raises `InvalidReply`."""
    clean, scrubbed = scrub_value(value)
    if not isinstance(clean, dict):
        raise InvalidReply(f"the reply must be one JSON object, not {_name_of(clean)}")
    operations = clean.get("operations")
    tenant_keys = frozenset(
        number
        for number, operation in enumerate(operations if isinstance(operations, list) else [])
        if isinstance(operation, dict) and _names_tenant(operation)
    )
    pruned, dropped = _pruned(clean, Reply)
    try:
        return Parsed(Reply.model_validate(pruned), tenant_keys, dropped, scrubbed)
    except ValidationError as error:
        raise InvalidReply("; ".join(_complaints(error))) from None


def _names_tenant(value: Any) -> bool:
    """Whether a key that begins with `tenant` stands in it, however deep."""
    if isinstance(value, list):
        return any(_names_tenant(item) for item in value)
    if not isinstance(value, dict):
        return False
    return any(key.strip().lower().startswith("tenant") or _names_tenant(item) for key, item in value.items())


def _complaints(error: ValidationError) -> Iterator[str]:
    for each in error.errors(include_url=False, include_input=False)[:8]:
        place = ".".join(str(part) for part in each["loc"]) or "reply"
        yield f"{place}: {each['msg']}"


_INSIDE: Mapping[tuple[type[BaseModel], str], type[BaseModel]] = {
    (Reply, "operations"): Operation,
    (Reply, "profile"): ProfilePatch,
    (ProfilePatch, "attributes"): AttributePair,
}


def _pruned(value: Any, shape: type[BaseModel]) -> tuple[Any, int]:
    """Without the keys nobody asked for, and how many those were."""
    if isinstance(value, list):
        pairs = [_pruned(item, shape) for item in value]
        return [item for item, _ in pairs], sum(count for _, count in pairs)
    if not isinstance(value, dict):
        return value, 0
    kept: dict[str, Any] = {}
    dropped = 0
    for key, item in value.items():
        if key not in shape.model_fields:
            dropped += 1
            continue
        inside = _INSIDE.get((shape, key))
        kept[key], more = _pruned(item, inside) if inside else (item, 0)
        dropped += more
    return kept, dropped


def _object_in(text: str) -> Any:
    """The JSON in a reply. A whole reply or a code fence that is JSON is taken at its word, else prose is searched."""
    if len(text) > REPLY_MAX:
        raise InvalidReply(f"the reply has {len(text)} characters; at most {REPLY_MAX} are read")
    answer = _THINKING.sub("", text).strip()
    if not answer:
        raise InvalidReply("the reply is empty; answer with one JSON object")
    for whole in (answer, *reversed(_FENCED.findall(answer))):
        try:
            return _decode(whole)
        except ValueError:
            continue
    found = [value for value in _objects(answer) if "operations" in value]
    if found:
        return found[-1]  # an example in a preamble comes before the answer
    raise InvalidReply(_why_not(answer))


def _why_not(answer: str) -> str:
    start = answer.find("{")
    if start < 0:
        return "the reply holds no JSON object"
    try:
        _DECODER.raw_decode(answer, start)
    except (ValueError, RecursionError) as error:
        return f"the JSON object in the reply can't be read: {error}"
    return "the JSON object in the reply has no key 'operations'"


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in prose, outermost ones only."""
    at = text.find("{")
    while at >= 0:
        try:
            value, end = _DECODER.raw_decode(text, at)
        except ValueError:
            end = at + 1
        except RecursionError:
            return
        else:
            yield value
        at = text.find("{", end)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return result


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_unique)


def _decode(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _name_of(value: Any) -> str:
    names = {list: "a list", str: "text", type(None): "null", bool: "true or false"}
    return names.get(type(value), "a number")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model made of a request. Tokens are counted over all tries; `cost` in dollars where known."""

    parsed: Parsed
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    repairs: int = 0

    @property
    def spent(self) -> Spent:
        """The price of it."""
        return Spent(self.tokens_in, self.tokens_out, self.cost, self.repairs)
