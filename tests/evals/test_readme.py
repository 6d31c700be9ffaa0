"""evals/README.md is what a newcomer has: its cases run as written, its workflow is one that GitHub takes."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import click.testing
import pytest
import yaml

from docmem.cli import cli
from docmem.config import Settings
from docmem_evals import answer, dialogues, matching, people, recall
from docmem_evals.matching import Jaccard
from tests.support.cli import Shell

README = (Path(__file__).parents[2] / "evals" / "README.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^```yaml (\S+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL))
WORKFLOW = ".github/workflows/memory.yml"


@pytest.fixture
def bakery(tmp_path: Path) -> Path:
    """A folder with the README's cases."""
    folder = tmp_path / "bakery"
    folder.mkdir()
    for name in ("bakery.yaml", "regulars.yaml", "counter.yaml", "questions.yaml"):
        (folder / name).write_text(BLOCKS[name], encoding="utf-8")
    return folder


def test_three_cases_are_written_and_run_as_the_readme_says(shell: Shell, bakery: Path) -> None:
    done = shell("eval", "extraction", "--cases", str(bakery), "--model", "offline")
    assert done.code == 0, done.err
    assert re.search(r"^bakery\s+3\s", done.out, re.MULTILINE)
    assert shell("eval", "merge", "--cases", str(bakery), "--model", "offline").code == 0


def test_the_corrected_order_of_the_readme_is_not_the_one_before(bakery: Path) -> None:
    [wanted] = next(case for case in dialogues.extractions(bakery).cases if case.id == "corrected").expected.memories
    assert matching.says(wanted, "The customer wants 20 rolls on Friday.", Jaccard())
    for wrong in ("twelve rolls on Friday", "twenty rolls on Monday", "no rolls on Friday"):
        assert not matching.says(wanted, f"The customer wants {wrong}.", Jaccard())


def test_the_questions_of_the_readme_come_out_right(bakery: Path, indexed: Settings) -> None:
    asked = recall.run(indexed, folder=bakery)
    assert [(sample.id, sample.judged.problems) for sample in asked.samples] == [("rolls", ()), ("parking", ())]
    answered = answer.run(indexed, model="offline", folder=bakery)
    assert [(sample.id, sample.right) for sample in answered.samples] == [("allergy", True), ("dog", True)]
    assert len(people.worlds(people.answers(bakery).asked)) == 1


def steps() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(BLOCKS[WORKFLOW])["jobs"]["evals"]["steps"]
    return found


def test_every_command_that_the_readme_shows_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = [step["run"] for step in steps() if "run" in step]
    commands = [words for words in map(shlex.split, shown) if words[0] == "docmem"]
    assert {words[2] for words in commands} == {"extraction", "merge", "recall", "answer", "report"}
    group = cli.commands["eval"]
    assert isinstance(group, click.Group)
    for words in commands:
        command = group.commands[words[2]]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known
    listed = set(re.findall(r"`(--[a-z0-9-]+)`", README))
    options = {option for command in group.commands.values() for each in command.params for option in each.opts}
    assert {option for option in listed if option.startswith(("--min", "--max"))} == {
        option for option in options if option.startswith(("--min", "--max"))
    }


def test_every_task_is_told_of() -> None:
    group = cli.commands["eval"]
    assert isinstance(group, click.Group)
    assert [name for name in group.commands if f"docmem eval {name}" not in README] == []


@pytest.mark.skipif(shutil.which("actionlint") is None, reason="actionlint isn't installed")
def test_actionlint_has_nothing_to_say_of_the_workflow(tmp_path: Path) -> None:
    file = tmp_path / "memory.yml"
    file.write_text(BLOCKS[WORKFLOW], encoding="utf-8")
    done = subprocess.run(["actionlint", "-no-color", str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_workflow_is_one_that_github_takes(tmp_path: Path) -> None:
    """By GitHub's own schema of workflows, which check-jsonschema brings along."""
    lint = pytest.importorskip("check_jsonschema", reason="needs check-jsonschema, which the extra `dev` has")
    file = tmp_path / "memory.yml"
    file.write_text(BLOCKS[WORKFLOW], encoding="utf-8")
    arguments = ["--builtin-schema", "vendor.github-workflows", str(file)]
    assert click.testing.CliRunner().invoke(lint.main, arguments).exit_code == 0
    file.write_text(BLOCKS[WORKFLOW].replace("runs-on", "run-on"), encoding="utf-8")
    assert click.testing.CliRunner().invoke(lint.main, arguments).exit_code != 0
