"""root: a folder that can't be used, or a full disk, is one clear line and no bug."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path

import pytest

from docmem import root
from docmem.cli import cli
from docmem.errors import ConfigError, TryAgain
from tests.support.cli import Shell

NOBODY = 65534
COMMANDS = [
    ["init", "acme"],
    ["sync"],
    ["status"],
    ["server", "start"],
    ["consolidate", "acme", "--thread", "t", "--subject", "s", "--dialogue", "DIALOGUE", "--model", "offline"],
    ["doc", "put", "acme", "knowledge/a.md", "DIALOGUE"],
]


@pytest.fixture
def dialogue(tmp_path: Path) -> Path:
    path = tmp_path / "dialogue.jsonl"
    path.write_text('{"id": "t1", "role": "user", "text": "I am vegetarian.", "at": "2026-05-02T12:00:00Z"}\n')
    return path


@pytest.mark.parametrize("place", ["/proc/xx", "/dev/null", "FILE", "FILE/below"])
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_root_that_can_not_be_is_said_with_what_to_do(
    shell: Shell, dialogue: Path, place: str, words: list[str]
) -> None:
    shell.set("DOCMEM_ROOT", place.replace("FILE", str(dialogue)))
    ran = shell(*(word.replace("DIALOGUE", str(dialogue)) for word in words))
    assert ran.code == 1
    assert "set DOCMEM_ROOT to" in ran.err
    assert "bug" not in ran.err


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_home_that_can_not_be_written_is_said_with_what_to_do(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    home = Path("/tmp", f"docmem-home-{os.getpid()}")
    home.mkdir()
    (home / "dialogue.jsonl").write_text('{"id": "t1", "role": "user", "text": "x", "at": "2026-05-02T12:00:00Z"}\n')
    home.chmod(stat.S_IRUSR | stat.S_IXUSR)
    os.chown(home, NOBODY, NOBODY)
    words = [word.replace("DIALOGUE", str(home / "dialogue.jsonl")) for word in words]
    try:
        shell.set("DOCMEM_ROOT", "/proc/xx")
        shell(*words)  # imports what it needs, which the other user can't read
        monkeypatch.delenv("DOCMEM_ROOT")
        shell.set("HOME", str(home))
        os.seteuid(NOBODY)
        ran = shell(*words)
    finally:
        os.seteuid(0)
        shutil.rmtree(home)
    assert ran.code == 1
    assert "set DOCMEM_ROOT to" in ran.err
    assert "another user" not in ran.err


def test_a_full_disk_is_said_and_may_be_tried_again(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "x"))

    monkeypatch.setattr(cli.commands["log"], "callback", full)
    ran = shell("log", "acme")
    assert ran.code == TryAgain.exit_code
    assert "the disk is full" in ran.err


def test_what_is_missing_deep_inside_a_good_root_is_our_own_fault(tmp_path: Path) -> None:
    assert root.explanation(FileNotFoundError(errno.ENOENT, "", str(tmp_path / "tenants" / "x")), tmp_path) is None
    assert root.explanation(OSError(errno.EIO, "", str(tmp_path)), tmp_path) is None


def test_a_closed_folder_elsewhere_is_named(tmp_path: Path) -> None:
    found = root.explanation(PermissionError(errno.EACCES, "", "/elsewhere/file"), tmp_path)
    assert isinstance(found, ConfigError)
    assert found.message == "/elsewhere/file can't be used: Permission denied"
