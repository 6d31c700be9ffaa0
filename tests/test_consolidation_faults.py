"""C2 and C3: the disk is full, the provider is away, a clock goes back, turns and workers come in between."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from docmem import repository
from docmem.config import Settings
from docmem.errors import DocmemError, ModelUnavailable
from docmem.prompt import Request
from docmem.reply import Answer
from tests.support.windows import NOW, Proposes, Tenant, operation, reply, turn


def fsck(acme: Tenant) -> str:
    command = ["git", "-C", str(acme.repo.git_dir), "fsck", "--strict", "--no-dangling"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


@pytest.fixture
def acme(settings: Settings, tenant: str) -> Tenant:
    return Tenant(settings, repository.open(settings, tenant))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m,nr_inodes=500", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system takes root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)


def test_a_full_disk_loses_nothing_and_the_window_is_done_once_there_is_room(small_disk: Path) -> None:
    """C2: between writing and committing"""
    settings = Settings(root=small_disk / "root", secret="x", embedding_model="none")
    acme = Tenant(settings, repository.create(settings, "acme"))
    first = acme.run(reply(operation()))
    ballast = small_disk / "ballast"
    fill(ballast)
    said = [turn(1), turn(2)]
    second = reply(operation("The traveller wants a room with a view.", evidence_turns=["t2"]))
    with pytest.raises(DocmemError):
        acme.run(second, said)
    assert acme.repo.head() == first.revision
    assert acme.last_turn() == "t1"
    assert fsck(acme) == ""
    ballast.unlink()
    assert acme.run(second, said).outcome == "committed"
    assert (acme.last_turn(), len(acme.memories()), fsck(acme)) == ("t2", 2, "")


def test_a_provider_that_fails_ten_times_leaves_the_window_due(acme: Tenant) -> None:
    """C3"""

    class Away(Proposes):
        def propose(self, request: Request) -> Answer:
            raise ModelUnavailable("away")

    before = acme.commits()
    for _ in range(10):
        assert acme.run(Away(reply())).outcome == "failed"
    assert (acme.commits(), acme.last_turn()) == (before, None)
    assert acme.run(reply(operation())).outcome == "committed"
    assert acme.commits() == before + 1


def test_a_turn_that_comes_while_the_job_runs_stays_due(acme: Tenant) -> None:
    """C3"""
    said = [turn(1)]
    answer = Proposes(reply(operation()), meanwhile=lambda: said.append(turn(2)))
    assert acme.run(answer, said).watermark == "t1"
    later = Proposes(reply())
    assert acme.run(later, said).watermark == "t2"
    assert [each.id for each in later.requests[0].turns] == ["t2"]


def test_of_two_workers_that_take_the_same_thread_one_commits(acme: Tenant) -> None:
    """C3"""
    before = acme.commits()
    with ThreadPoolExecutor(2) as pool:
        outcomes = sorted(done.outcome for done in pool.map(lambda _: acme.run(reply(operation())), range(2)))
    assert outcomes in (["committed", "conflict"], ["committed", "nothing_new"])
    assert (acme.commits(), len(acme.memories())) == (before + 1, 1)


def test_a_lock_that_somebody_holds_is_a_conflict_and_the_window_stays_due(
    acme: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F17: a `main.lock` whose owner may live isn't removed, and isn't waited for without end."""
    monkeypatch.setattr("docmem.git.references.REF_LOCK_SECONDS", 0.1)
    lock = acme.repo.git_dir / "refs" / "heads" / "main.lock"
    lock.touch()
    done = acme.run(reply(operation()))
    assert (done.outcome, done.watermark, acme.memories()) == ("conflict", None, {})
    assert done.error is not None
    assert (done.error.exit_code, str(lock) in done.error.hint) == (75, True)
    lock.unlink()
    assert acme.run(reply(operation())).outcome == "committed"


def test_a_clock_that_goes_back_changes_no_id_and_loses_no_window(acme: Tenant) -> None:
    """C3: ids never come from time"""
    acme.run(reply(operation()))
    done = acme.run(
        reply(operation("The traveller wants a room with a view.", evidence_turns=["t2"])),
        [turn(1), turn(2)],
        now=NOW - timedelta(days=400),
    )
    assert (done.outcome, acme.last_turn()) == ("committed", "t2")
    other = Tenant(replace(acme.settings, root=acme.settings.root / "other"), acme.repo)
    twin = Tenant(other.settings, repository.create(other.settings, "acme"))
    twin.run(reply(operation()), now=NOW + timedelta(days=3))
    ids = {memory.id for memory in acme.memories().values()}
    assert {memory.id for memory in twin.memories().values()} <= ids
