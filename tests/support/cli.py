"""Run the command line in this process, as a shell would."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from docmem.cli import main


@dataclass(frozen=True)
class Ran:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON value on stdout."""
        return json.loads(self.out)


class Shell:
    """Runs commands against one root."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch
        self.set("DOCMEM_ROOT", str(root))
        for name in ("DOCMEM_DSN", "DOCMEM_SYNC_DSN", "DOCMEM_OWNER_DSN", "DOCMEM_MODEL", "DOCMEM_SECRET"):
            monkeypatch.delenv(name, raising=False)

    def set(self, name: str, value: str) -> None:
        """Set an environment variable."""
        self._monkeypatch.setenv(name, value)

    def __call__(self, *words: str) -> Ran:
        self._capsys.readouterr()
        code = main(words)
        out, err = self._capsys.readouterr()
        return Ran(code, out, err)
