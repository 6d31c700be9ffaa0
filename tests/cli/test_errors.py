"""What a user sees when something goes wrong: one line, what to do, the right exit code, and nothing changed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from docmem.cli import cli, error_handler
from docmem.config import Settings
from tests.support.cli import Shell


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["log", "nobody"], 1, "there is no tenant nobody"),
        (["log", "Not A Name"], 1, "can't be a tenant's name"),
        (["init", "../evil"], 1, "can't be a tenant's name"),
        (["init", "acme"], 1, "is there already"),
        (["diff", "acme", "1234567"], 1, "has no revision '1234567'"),
        (["why", "acme", "deadbeefdeadbeef"], 1, "has no memory"),
        (["revert", "acme", "deadbeef"], 1, "has no commit"),
        (["sync", "nobody"], 1, "there is no tenant nobody"),
        (["inject", "nobody", "ana"], 1, "there is no tenant nobody"),
        (["search", "acme", "tea", "--subject", ""], 1, "a subject is 1 to 200 characters"),
        (["search", "acme", "tea", "--subject", " ", "--files"], 1, "a subject is 1 to 200 characters"),
        (["search", "acme", "tea", "--agent", "NO WAY"], 1, "can't be an agent's name"),
        (["inject", "acme", ""], 1, "a subject is 1 to 200 characters"),
        (["trace", "acme", "1", "--agent", "NO WAY"], 1, "can't be an agent's name"),
        (["log", "acme", "--subject", ""], 1, "a subject is 1 to 200 characters"),
        (["diff", "acme", "--subject", ""], 1, "a subject is 1 to 200 characters"),
        (["at", "acme", "2026-05-02", ""], 1, "a subject is 1 to 200 characters"),
        (["export", "acme", "--subject", ""], 1, "a subject is 1 to 200 characters"),
        (["forget", "acme", ""], 1, "is 1 to 200 characters"),
        (["erase", "acme", "", "--yes"], 1, "is 1 to 200 characters"),
        (["nonsense"], 2, "No such command"),
        (["log"], 2, "Missing argument"),
        (["consolidate", "acme", "--thread", "t"], 2, "Missing option"),
        (
            ["consolidate", "acme", "--subject", "a", "--dialogue", "/none.jsonl", "--model", "offline"],
            1,
            "can't read the dialogue /none.jsonl",
        ),
    ],
)
def test_an_error_is_a_line_with_the_right_exit_code(
    shell: Shell, settings: Settings, tenant: str, words: list[str], code: int, says: str
) -> None:
    before = sorted(settings.root.rglob("*"))
    ran = shell(*words)
    assert (ran.code, ran.out) == (code, "")
    assert says in ran.err
    assert "Traceback" not in ran.err
    as_json = shell(*words, "--json")
    assert as_json.code == code
    assert says in as_json.json["error"]["message"]
    assert as_json.json["error"].keys() == {"code", "message", "hint"}
    assert sorted(settings.root.rglob("*")) == before


def test_a_repo_that_is_not_ours_says_so(shell: Shell, settings: Settings) -> None:
    (settings.tenants / "plain.git").mkdir(parents=True)
    assert "there is no tenant plain" in shell("log", "plain").err


def test_a_bug_ends_as_a_log_to_send(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def broken(**_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(cli.commands["log"], "callback", broken)
    ran = shell("log", "acme")
    assert ran.code == error_handler.BUG
    [log] = tmp_path.glob("docmem-bug-*.log")
    assert str(log) in ran.err
    assert "RuntimeError: boom" in log.read_text()
    assert "['log', 'acme']" in log.read_text()


def test_an_interrupt_is_130(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(**_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(cli.commands["log"], "callback", interrupted)
    assert shell("log", "acme").code == error_handler.INTERRUPTED


def test_a_reader_that_leaves_early_is_no_error(settings: Settings, tenant: str) -> None:
    command = f"{sys.executable} -m docmem diff acme --patch | head -1; echo ${{PIPESTATUS[0]}}"
    environment = {**os.environ, "DOCMEM_ROOT": str(settings.root)}
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_every_command_explains_itself(shell: Shell, name: str) -> None:
    ran = shell(name, "--help")
    assert ran.code == 0
    assert cli.commands[name].help
    assert cli.commands[name].short_help
