"""Upkeep: fewer packs, a graph, leftovers gone on proof, no object dropped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from docmem import files, git, locks, maintenance, repository
from docmem.config import Settings
from docmem.repository import Repository
from docmem_sync.sync import sync_tenant
from tests.support.cli import Shell
from tests.support.repos import memory, put


@pytest.fixture
def repo(settings: Settings, tenant: str) -> Repository:
    return repository.open(settings, tenant)


def learn(settings: Settings, count: int) -> None:
    for number in range(count):
        one = memory(f"Statement {number}.", number=number)
        put(settings, "acme", {one.path: files.render_memory(one)})


def fsck(repo: Repository) -> str:
    command = ["git", "--git-dir", str(repo.git_dir), "fsck", "--strict", "--full", "--no-dangling"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


def test_many_packs_become_few_and_nothing_is_lost(settings: Settings, repo: Repository) -> None:
    learn(settings, 60)
    before = git.files(repo.git_dir, repo.head() or "")
    done = maintenance.maintain(repo)
    assert (done.packs_before, done.packs < 8) == (61, True)
    assert git.files(repo.git_dir, repo.head() or "") == before
    assert (repo.git_dir / "objects/info/commit-graphs/commit-graph-chain").is_file()
    assert fsck(repo) == ""


def test_an_object_that_no_ref_reaches_yet_stays(settings: Settings, repo: Repository) -> None:
    command = ["git", "--git-dir", str(repo.git_dir), "hash-object", "-w", "--stdin"]
    blob = subprocess.run(command, input=b"a push under way", capture_output=True, check=True).stdout.decode().strip()
    learn(settings, 3)
    for _ in range(2):
        maintenance.maintain(repo)
    assert git.read_blob(repo.git_dir, blob) == b"a push under way"


def test_sync_maintains_at_fifty_packs(indexed: Settings, tenant: str) -> None:
    repo = repository.open(indexed, tenant)
    learn(indexed, 48)
    sync_tenant(indexed, tenant)
    assert git.packs(repo.git_dir) == 49
    one = memory("One more.")
    put(indexed, "acme", {one.path: files.render_memory(one)})
    sync_tenant(indexed, tenant)
    assert git.packs(repo.git_dir) < 8


def litter(repo: Repository) -> list[Path]:
    pack = repo.git_dir / "objects" / "pack"
    left = [
        pack / "tmp_pack_abc",
        pack / "tmp_idx_abc",
        pack / "pack-0123456789012345678901234567890123456789.pack",
        repo.git_dir / "fast_import_crash_123",
        repo.git_dir / "refs" / "heads" / "main.lock",
        repo.git_dir / "packed-refs.lock",
    ]
    for path in left:
        path.write_bytes(b"x")
    kept = next(pack.glob("pack-*.idx")).with_suffix(".keep")
    kept.write_bytes(b"fast-import\n")
    (repo.git_dir / "objects" / "tmp_objdir-incoming-abc").mkdir()
    return [*left, kept, repo.git_dir / "objects" / "tmp_objdir-incoming-abc"]


def test_what_killed_processes_left_goes(settings: Settings, repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "STALE_SECONDS", 0.1)
    left = litter(repo)
    done = maintenance.maintain(repo)
    assert [path for path in left if path.exists()] == []
    assert (len(done.removed), done.kept) == (len(left), ())
    learn(settings, 1)
    assert fsck(repo) == ""


def test_what_somebody_has_open_or_keeps_on_purpose_stays(
    settings: Settings, repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "STALE_SECONDS", 0.1)
    held = repo.git_dir / "objects" / "pack" / "tmp_pack_held"
    held.write_bytes(b"x")
    purpose = next((repo.git_dir / "objects" / "pack").glob("pack-*.idx")).with_suffix(".keep")
    purpose.write_text("ours\n")
    code = f"file = open({str(held)!r}); print('open', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        done = maintenance.maintain(repo, patience=0.5)
        holder.communicate(b"\n")
    assert done.kept == ("objects/pack/tmp_pack_held",)
    assert held.exists()
    assert purpose.exists()


def test_maintain_on_the_command_line(shell: Shell, settings: Settings, tenant: str) -> None:
    learn(settings, 5)
    [row] = shell("maintain", "--json").json
    assert (row["tenant"], row["packs_before"], row["kept"]) == ("acme", 6, [])
    assert "acme: " in shell("maintain", "acme").out
    assert shell("maintain", "nobody").code == 1
