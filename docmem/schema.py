"""Shared by the schemas of the files: casts from strict YAML, and pydantic's complaints as `FormatError`s."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from docmem import strictyaml
from docmem.errors import FormatError
from docmem.times import parse_duration, parse_time


def _as_text(value: Any) -> str:
    if value is None:
        raise ValueError("text is required here, and this is null")
    if isinstance(value, list | dict):
        raise ValueError("text is required here, and this is a list or mapping")
    return strictyaml.as_written(value)


def _as_time(value: Any) -> datetime:
    return value if isinstance(value, datetime) else parse_time(_as_text(value))


def _as_duration(value: Any) -> timedelta | None:
    return value if value is None or isinstance(value, timedelta) else parse_duration(_as_text(value))


Text = Annotated[str, BeforeValidator(_as_text)]
Time = Annotated[datetime, BeforeValidator(_as_time)]
Duration = Annotated[timedelta | None, BeforeValidator(_as_duration)]


class Shape(BaseModel):
    """Base of the file schemas: frozen, unknown keys kept."""

    model_config = ConfigDict(extra="allow", frozen=True)


S = TypeVar("S", bound=BaseModel)

_UNKNOWN = {"extra_forbidden", "unexpected_keyword_argument"}
"""What pydantic calls a key that a model, and one that a dataclass, doesn't have."""


def read(shape: type[S], values: Mapping[str, Any], *, source: str = "", first_line: int = 1) -> S:
    """Check `values` against `shape`. The first complaint becomes a `FormatError` that names key and line."""
    refuse_tenant(values, source=source, first_line=first_line)
    try:
        return shape.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        reason = (
            "no such key is known here" if first["type"] in _UNKNOWN else first["msg"].removeprefix("Value error, ")
        )
        line = key_line(source, first["loc"], first_line)
        where = f"{field}: " if field else ""  # a rule about several keys names them itself
        raise FormatError(f"{where}{reason}", code="bad_field", line=line) from None


def refuse_tenant(values: Mapping[str, Any], *, source: str = "", first_line: int = 1) -> None:
    """The tenant comes from the repo alone: a file that names one is an error, wherever it names it."""
    for key in values:
        if key.lower().startswith("tenant"):
            raise FormatError(
                f"{key}: a file can't name its tenant; the repo does",
                code="tenant_in_file",
                line=key_line(source, (key,), first_line),
                hint=f"take the key {key!r} out",
            )


def key_line(source: str, path: tuple[int | str, ...], first_line: int) -> int:
    """The line on which the deepest named key of `path` stands, as far as it is found."""
    lines, at = source.split("\n"), 0
    for part in path:
        if not isinstance(part, str):
            continue
        key = re.compile(rf"""\s*(- )?["']?{re.escape(part)}["']?\s*:""")
        found = next((number for number in range(at, len(lines)) if key.match(lines[number])), None)
        if found is None:
            break
        at = found
    return first_line + at
