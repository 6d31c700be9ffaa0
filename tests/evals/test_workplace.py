"""An evaluation leaves nothing behind, however it ends: what a kill leaves, the next one takes away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from docmem.config import Settings
from docmem.postgres import Server
from docmem_evals import workplace
from tests.evals.test_locomo import leftovers

AT_WORK = """
import sys, threading
from pathlib import Path
from docmem.config import settings
from docmem_evals import people, rig
found = people.recalls(Path(sys.argv[1]))
try:
    with rig.rigged(settings(), people.worlds(found.asked)) as made:
        print("ready", flush=True)
        threading.Event().wait()
except KeyboardInterrupt:
    sys.exit(130)
"""
CASES = """\
task: recall
domain: mine
people: {bo: {memories: {kite: The person has a kite.}}}
questions:
  - {id: kite, of: bo, ask: "Is there a kite?", relevant: [kite]}
"""


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of temporary files of the test's own."""
    # Ours, and not pytest's: a server's socket lies in it, and the path of a socket has to be short.
    with tempfile.TemporaryDirectory(prefix="wp-") as folder:
        Path(folder).chmod(0o711)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


@pytest.fixture
def start(indexed: Settings, temporary: Path, tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts an evaluation in a process of its own, and waits until its tenants are synced."""
    (tmp_path / "mine.yaml").write_text(CASES)
    running: list[subprocess.Popen[str]] = []

    def started() -> subprocess.Popen[str]:
        given = {
            "DOCMEM_ROOT": str(indexed.root), "DOCMEM_DSN": indexed.dsn, "DOCMEM_SYNC_DSN": indexed.sync_dsn,
            "DOCMEM_OWNER_DSN": indexed.owner_dsn, "DOCMEM_EMBEDDING_MODEL": "none", "TMPDIR": str(temporary),
        }  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, "-c", AT_WORK, str(tmp_path)],
            env={**os.environ, **{name: value for name, value in given.items() if value}},
            stdout=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield started
    for process in running:
        process.kill()
        process.communicate()


def test_a_sigterm_ends_an_evaluation_with_everything_gone(
    start: Callable[[], subprocess.Popen[str]], temporary: Path, indexed: Settings, postgres_server: Server
) -> None:
    process = start()
    assert leftovers(postgres_server, indexed) > 0
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 130
    assert list(temporary.glob("docmem-eval-*")) == []
    assert leftovers(postgres_server, indexed) == 0


def test_what_a_kill_left_goes_with_the_next_evaluation_and_what_lives_stays(
    start: Callable[[], subprocess.Popen[str]], temporary: Path, indexed: Settings, postgres_server: Server
) -> None:
    killed, alive = start(), start()
    killed.kill()
    killed.wait(30)
    assert len(list(temporary.glob("docmem-eval-*"))) == 2
    rows = leftovers(postgres_server, indexed)
    with workplace.workplace(indexed, ["other"], postgres=False):
        [stays] = [
            folder
            for folder in temporary.glob("docmem-eval-*")
            if json.loads((folder / "eval.lock").read_text())["process"] == alive.pid
        ]
        assert len(list(temporary.glob("docmem-eval-*"))) == 2, "ours and that of who lives"
    assert 0 < leftovers(postgres_server, indexed) < rows
    assert list(temporary.glob("docmem-eval-*")) == [stays]
    assert alive.poll() is None


def test_a_folder_that_names_no_owner_is_left_alone(temporary: Path) -> None:
    (temporary / "docmem-eval-mine").mkdir()
    (temporary / "docmem-eval-other").mkdir()
    (temporary / "docmem-eval-other" / "eval.lock").write_text("")
    assert workplace.clear(Settings(root=temporary / "root")) == []
    assert len(list(temporary.glob("docmem-eval-*"))) == 2
