"""Change YAML that people format by hand, touching only what changes.

The text between the marks of `yaml.compose` is replaced and everything else stays byte for byte: comments, order,
quoting. The result is read again and compared; where splicing can't do it, ruamel.yaml's round trip does.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

import yaml

from docmem import strictyaml
from docmem.errors import FormatError
from docmem.times import format_time

DELETE: Final = object()
"""As a new value: take the key out."""

KeyPath: TypeAlias = tuple[str, ...]

_PLAIN = re.compile(r"[^\W_][\w .;/()+%€$£'-]*(?::[\w/.-]+)*[\w.;/()+%€$£'-]*", re.ASCII)
_FLOAT_LIKE = re.compile(r"[-+.\d]+[eE][-+]?\d+")  # ruamel.yaml reads a hex id such as 12345e7 as a number
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def render(value: Any) -> str:
    """One-line YAML of a value. Text that some other reader could take for a number or date is quoted."""
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{render(key)}: {render(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(render(item) for item in value) + "]"
    if value is None:
        return "null"
    if isinstance(value, bool | int | float):
        return strictyaml.as_written(value)
    return _render_text(str(value))


def _render_text(text: str) -> str:
    if _PLAIN.fullmatch(text) and text == text.strip() and " '" not in text and _is_text_to_all(text):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def _is_text_to_all(text: str) -> bool:
    tag = yaml.SafeDumper(io.StringIO()).resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return bool(tag == "tag:yaml.org,2002:str") and strictyaml.scalar(text) == text and not _FLOAT_LIKE.fullmatch(text)


def edit(text: str, changes: Mapping[KeyPath, Any]) -> str:
    """Set (or `DELETE`) the values at key paths of a YAML mapping, leaving the rest as it stands.

    Raises `FormatError` where `text` isn't valid: what can't be read is never rewritten.
    """
    before = strictyaml.load_mapping(text)
    wanted = _changed(before, changes)
    if before == wanted:
        return text
    spliced = text
    try:
        for path, value in changes.items():
            spliced = _splice(spliced, path, value)
        if strictyaml.load_mapping(spliced) == wanted:
            return spliced
    except (FormatError, yaml.YAMLError, _CannotSplice):
        pass
    rewritten = _round_trip(text, changes)
    if strictyaml.load_mapping(rewritten) != wanted:
        raise FormatError("can't be changed without changing more than was asked", code="yaml")
    return rewritten


class _CannotSplice(Exception):
    """This shape needs the round trip."""


def _changed(mapping: dict[str, Any], changes: Mapping[KeyPath, Any]) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(json.dumps(mapping))
    for path, value in changes.items():
        parent = result
        for key in path[:-1]:
            if not isinstance(parent.get(key), dict):
                parent[key] = {}
            parent = parent[key]
        if value is DELETE:
            parent.pop(path[-1], None)
        else:
            parent[path[-1]] = strictyaml.load(render(value)) if not isinstance(value, str) else value
    return result


def _splice(text: str, path: KeyPath, value: Any) -> str:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None:
        if value is DELETE:
            return text
        joiner = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{joiner}{_entry(path, value)}\n"
    return _splice_mapping(text, root, path, value)


def _entry(path: KeyPath, value: Any, indent: str = "") -> str:
    """`a:`, `  b: value` on lines of their own: what people expect of a file that they edit."""
    key, rest = f"{indent}{render(path[0])}:", path[1:]
    return f"{key}\n{_entry(rest, value, indent + '  ')}" if rest else f"{key} {render(value)}"


def _splice_mapping(text: str, node: yaml.Node, path: KeyPath, value: Any) -> str:
    if not isinstance(node, yaml.MappingNode):
        raise _CannotSplice
    pair = next(((key, item) for key, item in node.value if key.value == path[0]), None)
    if pair is None:
        return text if value is DELETE else _insert(text, node, path, value)
    key_node, value_node = pair
    if len(path) > 1 and isinstance(value_node, yaml.MappingNode):
        return _splice_mapping(text, value_node, path[1:], value)
    if value is DELETE:
        return text if len(path) > 1 else _remove(text, node, key_node, value_node)
    return _replace(text, value_node, _nested(path[1:], value))


def _replace(text: str, node: yaml.Node, value: Any) -> str:
    start, end = node.start_mark.index, _end(text, node)
    space = " " if start == end and not text[start - 1 : start].isspace() else ""
    return text[:start] + space + render(value) + text[end:]


def _insert(text: str, node: yaml.MappingNode, path: KeyPath, value: Any) -> str:
    if node.flow_style:
        at = node.end_mark.index - 1
        entry = f"{render(path[0])}: {render(_nested(path[1:], value))}"
        return text[:at].rstrip() + (", " if node.value else "") + entry + text[at:]
    last = _end(text, node.value[-1][1])
    line_end = text.find("\n", last)
    at = len(text) if line_end < 0 else line_end
    indent = " " * node.value[0][0].start_mark.column
    return f"{text[:at]}\n{_entry(path, value, indent)}{text[at:]}"


def _nested(path: KeyPath, value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _remove(text: str, parent: yaml.MappingNode, key: yaml.Node, value: yaml.Node) -> str:
    if parent.flow_style:
        raise _CannotSplice
    start = text.rfind("\n", 0, key.start_mark.index) + 1
    line_end = text.find("\n", max(_end(text, value), key.end_mark.index))
    return text[:start] + ("" if line_end < 0 else text[line_end + 1 :])


def _end(text: str, node: yaml.Node) -> int:
    """Where a value's own text ends: a block's end mark lies behind the blank and comment lines after it."""
    start, end = node.start_mark.index, node.end_mark.index
    is_block = (
        not node.flow_style if isinstance(node, yaml.CollectionNode) else getattr(node, "style", None) in {"|", ">"}
    )
    if not is_block:
        return int(end)
    lines = text[start:end].split("\n")
    while len(lines) > 1 and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    return int(start) + len("\n".join(lines))


def _round_trip(text: str, changes: Mapping[KeyPath, Any]) -> str:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    reader = YAML(typ="rt")
    reader.preserve_quotes = True
    reader.width = 100_000
    try:
        mapping = reader.load(text) or {}
        for path, value in changes.items():
            _assign(mapping, path, value)
        out = io.StringIO()
        reader.dump(mapping, out)
    except YAMLError as error:
        raise FormatError(f"can't be rewritten safely: {error}", code="yaml") from None
    return out.getvalue()


def _assign(mapping: Any, path: KeyPath, value: Any) -> None:
    for key in path[:-1]:
        if not isinstance(mapping.get(key), Mapping):
            mapping[key] = {}
        mapping = mapping[key]
    if value is DELETE:
        mapping.pop(path[-1], None)
    else:
        mapping[path[-1]] = format_time(value) if isinstance(value, datetime) else value
