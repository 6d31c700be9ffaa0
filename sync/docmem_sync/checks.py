"""One thing that the doctor looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from docmem.errors import DocmemError


@dataclass(frozen=True, slots=True)
class Check:
    """One thing the doctor looked at. `hint` says what mends it, where it isn't well."""

    name: str
    ok: bool
    detail: str
    hint: str = ""

    def as_json(self) -> dict[str, Any]:
        """A row of `doctor --json`."""
        return {"name": self.name, "ok": self.ok, "detail": self.detail, "hint": self.hint}


def checked(name: str, look: Callable[[], str], hint: str = "") -> Check:
    """What `look` says, or how it failed. `hint`: where the failure brings none."""
    try:
        return Check(name, True, look())
    except DocmemError as error:
        return Check(name, False, error.message, error.hint or hint)
    except OSError as error:
        return Check(name, False, str(error), "let docmem's user read and write it")
