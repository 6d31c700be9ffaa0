"""Fixtures that most tests need: a fresh root and a tenant laid down from the template."""

from __future__ import annotations

from pathlib import Path

import pytest

from docmem.config import Settings

import importlib.util

pytest_plugins = ["tests.support.postgres"] if importlib.util.find_spec("tests.support.postgres") else []


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
