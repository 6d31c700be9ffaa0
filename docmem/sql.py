"""Named SQL: a `.sql` file beside the code, each statement under a line `-- name: x`."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)


@cache
def load(package: str, file: str) -> dict[str, str]:
    """Statements of `file` in `package`, by name. Text before the first name is commentary."""
    parts = _NAME.split(files(package).joinpath(file).read_text(encoding="utf-8"))
    return {name: text.strip().removesuffix(";") for name, text in zip(parts[1::2], parts[2::2], strict=True)}
