"""One strict YAML reader. What is written as text stays text.

PyYAML reads `NO` as False, `22:30` as 1350, `0012` as 10 and takes the last of two equal keys in silence.
Here only `true`, `false`, null and numbers that print back exactly as written are not text; a schema casts the
rest. Duplicate keys, anchors, aliases, tags and heads over 64 KB are refused, with line and column.
"""

from __future__ import annotations

import math
import re
from typing import Any, TypeAlias

import yaml

from docmem.errors import FormatError

Value: TypeAlias = "str | int | float | bool | list[Value] | dict[str, Value] | None"

MAX_CHARS = 64 * 1024
_MAX_DEPTH = 32
_INT = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+")

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(text: str, *, first_line: int = 1) -> Value:
    """Read one YAML document; an empty one is None. `first_line` is the line of the file it starts at.

    Raises `FormatError` (code `yaml`, `too_large`, `duplicate_key`, `yaml_alias`, `yaml_tag`).
    """
    if len(text) > MAX_CHARS:
        raise FormatError(
            f"{len(text)} characters of YAML; the limit is {MAX_CHARS}", code="too_large", line=first_line
        )
    reader = _Reader(first_line)
    try:
        for event in yaml.parse(text, Loader=_Loader):
            reader.feed(event)
    except yaml.MarkedYAMLError as error:
        raise _marked(error, first_line) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise FormatError(f"not readable as YAML: {error}", code="yaml", line=first_line) from None
    return reader.value


def load_mapping(text: str, *, first_line: int = 1) -> dict[str, Value]:
    """Read a YAML document that must be a mapping; an empty one is `{}`."""
    value = load(text, first_line=first_line)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise FormatError("expected `key: value` lines", code="yaml", line=first_line)
    return value


def scalar(text: str) -> Value:
    """The value of a plain scalar: its text, unless it is true, false, null or a number as Python prints it."""
    if text in {"", "~", "null"}:
        return None
    if text in {"true", "false"}:
        return text == "true"
    if _INT.fullmatch(text):
        return int(text) if str(int(text)) == text else text
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) and repr(number) == text else text
    return text


def as_written(value: Value) -> str:
    """The text a scalar was written as (numbers and booleans print back exactly)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class _Reader:
    """Builds values from parser events, so that anchors, tags and positions are seen and depth is bounded."""

    def __init__(self, first_line: int) -> None:
        self.value: Value = None
        self._first_line = first_line
        self._open: list[list[Value] | dict[str, Value]] = []
        self._keys: list[str | None] = []
        self._documents = 0

    def feed(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._refuse_node_properties(event)
            plain = not event.style and event.implicit[0]  # libyaml says "", PyYAML says None
            self._add(scalar(event.value) if plain else event.value, event)
        elif isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
            self._refuse_node_properties(event)
            if len(self._open) >= _MAX_DEPTH:
                raise self._error(event, f"nested deeper than {_MAX_DEPTH} levels", "yaml")
            fresh: list[Value] | dict[str, Value] = [] if isinstance(event, yaml.SequenceStartEvent) else {}
            self._add(fresh, event)
            self._open.append(fresh)
            self._keys.append(None)
        elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            self._open.pop()
            self._keys.pop()
        elif isinstance(event, yaml.AliasEvent):
            raise self._error(event, f"alias *{event.anchor}; write the value out, or quote the text", "yaml_alias")
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise self._error(event, "a second YAML document", "yaml")

    def _add(self, value: Value, event: Any) -> None:
        if not self._open:
            self.value = value
            return
        parent = self._open[-1]
        if isinstance(parent, list):
            parent.append(value)
            return
        key = self._keys[-1]
        if key is not None:
            parent[key] = value
            self._keys[-1] = None
            return
        if isinstance(value, list | dict):
            raise self._error(event, "a key must be plain text", "yaml")
        # The key `on` or `~` is the text it was written as.
        text = event.value
        if text in parent:
            raise self._error(event, f"the key {text!r} stands twice", "duplicate_key")
        self._keys[-1] = text

    def _refuse_node_properties(self, event: Any) -> None:
        if event.anchor is not None:
            raise self._error(event, f"anchor &{event.anchor}; quote the text if it is meant as text", "yaml_alias")
        if event.tag is not None:
            raise self._error(event, f"tag {event.tag}; quote the text if it is meant as text", "yaml_tag")

    def _error(self, event: Any, message: str, code: str) -> FormatError:
        mark = event.start_mark
        return FormatError(message, code=code, line=self._first_line + mark.line, column=mark.column + 1)


def _marked(error: yaml.MarkedYAMLError, first_line: int) -> FormatError:
    mark = error.problem_mark or error.context_mark
    return FormatError(
        f"not readable as YAML: {error.problem or error.context}",
        code="yaml",
        line=first_line + (mark.line if mark else 0),
        column=(mark.column if mark else 0) + 1,
        hint="quote text that holds ': ', '#', '*', '&' or quotes",
    )
