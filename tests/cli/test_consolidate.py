"""`docmem consolidate`: one thread, a folder of them, and what a dry run shows."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from docmem import repository
from docmem.config import Settings
from tests.support.cli import Shell

DIET = "I am vegetarian."
BUDGET = "My budget is 800 EUR."
pytestmark = pytest.mark.usefixtures("tenant")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three threads, one a file."""
    made = tmp_path / "chats"
    made.mkdir()
    for thread, text in (("web-1", DIET), ("web-2", BUDGET), ("web-3", "ok thanks")):
        write(made / f"{thread}.jsonl", text)
    (made / "notes.txt").write_text("not a thread")
    return made


def write(file: Path, *texts: str) -> None:
    rows = [{"id": f"t{number}", "role": "user", "text": text} for number, text in enumerate(texts, start=1)]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def options(dialogue: Path, *more: str) -> list[str]:
    return ["consolidate", "acme", "--dialogue", str(dialogue), "--model", "offline", *more]


def test_the_thread_of_a_file_is_its_name(shell: Shell, folder: Path, settings: Settings) -> None:
    done = shell(*options(folder / "web-1.jsonl", "--subject", "ana", "--json")).json
    assert (done["outcome"], done["watermark"]) == ("committed", "t1")
    assert repository.open(settings, "acme").snapshot().watermark("web-1") is not None


def test_a_folder_is_consolidated_thread_by_thread_with_a_summary(shell: Shell, folder: Path) -> None:
    done = shell(*options(folder, "--subject", "ana"))
    assert done.code == 0
    lines = done.out.splitlines()
    assert [line.split(":")[0] for line in lines[:3]] == ["web-1", "web-2", "web-3"]
    assert lines[3].startswith("3 threads: ")
    again = shell(*options(folder, "--subject", "ana", "--json")).json
    assert again["summary"]["outcomes"] == {"nothing_new": 3}
    assert [row["thread"] for row in again["threads"]] == ["web-1", "web-2", "web-3"]


def test_the_summary_adds_up(shell: Shell, folder: Path, settings: Settings) -> None:
    done = shell(*options(folder, "--subject", "ana", "--json")).json
    assert done["summary"]["threads"] == 3
    assert sum(done["summary"]["outcomes"].values()) == 3
    made = sum(row["operations"]["create"] for row in done["threads"])
    assert done["summary"]["operations"]["create"] == made
    revisions = [row["revision"] for row in done["threads"]]
    assert repository.open(settings, "acme").head() == revisions[-1]


def test_a_mapping_tells_whom_each_thread_is_about(shell: Shell, folder: Path, tmp_path: Path) -> None:
    whom = tmp_path / "whom.yaml"
    whom.write_text("web-1: ana\nweb-2: bob\nweb-3: 0012\n")
    assert shell(*options(folder, "--subjects", str(whom))).code == 0
    assert "vegetarian" in shell("show", "acme", "ana").out
    assert "800 EUR" in shell("show", "acme", "bob").out
    whom.write_text('{"web-1": "ana"}')
    missing = shell(*options(folder, "--subjects", str(whom), "--json"))
    assert (missing.code, "no subject for 2 of 3 threads: web-2, web-3" in missing.out) == (1, True)


def test_a_file_that_can_not_be_read_is_named_and_the_others_go_on(shell: Shell, folder: Path) -> None:
    (folder / "web-2.jsonl").write_text("{")
    done = shell(*options(folder, "--subject", "ana"))
    assert done.code == 1
    assert "web-2: error: " in done.out
    assert "web-2.jsonl, line 1" in done.out
    assert "vegetarian" in shell("show", "acme", "ana").out
    rows = shell(*options(folder, "--subject", "ana", "--json")).json["threads"]
    assert [row["outcome"] for row in rows] == ["nothing_new", "error", "nothing_new"]


def test_a_failed_thread_asks_to_be_tried_again(shell: Shell, folder: Path, tmp_path: Path) -> None:
    recorded = tmp_path / "replies.jsonl"
    recorded.write_text("")
    done = shell("consolidate", "acme", "--dialogue", str(folder), "--subject", "ana", "--model", f"replay:{recorded}")
    assert (done.code, done.out.splitlines()[-1]) == (75, "3 threads: 3 failed (nothing written)")


def test_a_dry_run_prints_the_diff_it_would_commit(shell: Shell, folder: Path, settings: Settings) -> None:
    repo = repository.open(settings, "acme")
    head = repo.head()
    done = shell(*options(folder / "web-1.jsonl", "--subject", "ana", "--dry-run"))
    assert done.code == 0
    assert done.out.startswith("would be ")
    assert "+++ b/subjects/" in done.out
    assert "--- /dev/null" in done.out
    assert "vegetarian" in done.out
    assert "watermark" not in done.out
    row = shell(*options(folder / "web-1.jsonl", "--subject", "ana", "--dry-run", "--json")).json
    assert row["diff"].startswith("--- ")
    several = shell(*options(folder, "--subject", "ana", "--dry-run")).out
    assert several.count("--- /dev/null") >= 2
    assert repo.head() == head


@pytest.mark.parametrize(
    "wrong",
    [["--thread", "w", "--subject", "ana"], [], ["--subject", "ana", "--subjects", "whom.yaml"]],
)
def test_wrong_usage_is_said(shell: Shell, folder: Path, wrong: list[str]) -> None:
    (folder / "whom.yaml").write_text("web-1: ana\n")
    chosen = [str(folder / word) if word == "whom.yaml" else word for word in wrong]
    assert shell(*options(folder, *chosen)).code == 2
    assert shell(*options(folder / "web-1.jsonl", "--thread", "w")).code == 2


def test_on_a_terminal_there_is_a_bar_and_the_lines_stay(settings: Settings, folder: Path) -> None:
    master, terminal = pty.openpty()
    environment = {**os.environ, "DOCMEM_ROOT": str(settings.root), "TERM": "xterm", "COLUMNS": "100"}
    command = [sys.executable, "-m", "docmem", *options(folder, "--subject", "ana")]
    with subprocess.Popen(command, stdout=terminal, stderr=terminal, env=environment) as process:
        os.close(terminal)
        said = b""
        while chunk := _read(master):
            said += chunk
    os.close(master)
    assert process.returncode == 0
    assert "web-1: " in said.decode()
    assert "3/3" in said.decode()
    assert "3 threads: " in said.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # Linux says so when the other side has closed
        return b""


def test_a_lock_that_somebody_holds_is_named_and_not_taken_for_anothers_change(
    shell: Shell, settings: Settings, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = settings.tenants / "acme.git" / "refs" / "heads" / "main.lock"
    dialogue = tmp_path / "web-9.jsonl"
    said = '{"id": "t1", "role": "user", "text": "Please remember that I am vegetarian.", "at": "2026-05-02T10:00:00Z"}'
    dialogue.write_text(said)
    monkeypatch.setattr("docmem.git.references.REF_LOCK_SECONDS", 0.1)
    with lock.open("w"):
        done = shell("consolidate", "acme", "--dialogue", str(dialogue), "--subject", "ana", "--model", "offline")
    assert (done.code, "nothing was written: git could not move" in done.out, f"rm {lock}" in done.out) == (
        75,
        True,
        True,
    )
    assert "changed the same memory" not in done.out
