"""Fixtures that most tests need: a fresh root and a tenant laid down from the template."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from docmem.config import Settings
from tests.support.cli import Shell

# A busy machine is no failure, and a red run must be the same run again: examples come from the test's own name.
hypothesis.settings.register_profile("docmem", deadline=None, derandomize=True)
hypothesis.settings.load_profile("docmem")

pytest_plugins = ["tests.support.postgres"]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings with a root of their own and no Postgres configured."""
    return Settings(root=tmp_path / "root", secret="a secret for tests")


@pytest.fixture
def tenant(settings: Settings) -> str:
    """A tenant laid down from the template."""
    from docmem import repository

    repository.create(settings, "acme")
    return "acme"


@pytest.fixture
def shell(settings: Settings, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """The command line on the root of `settings`, without Postgres; one that a command started ends with the test."""
    yield Shell(settings.root, capsys, monkeypatch)
    if (settings.root / "postgres").exists():
        from docmem import postgres

        postgres.remove(settings)
