import os
import subprocess
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from docmem import git, locks
from docmem.errors import Conflict, NotFound, TryAgain
from docmem.git import references

NOW = datetime(2026, 5, 2, 12, 0, tzinfo=UTC)
ODD = {
    "Ärger 记录.md": b"umlaut\n",
    "tab\there.md": b"tab\n",
    "line\nfeed.md": b"line feed\n",
    "-dash.md": b"dash\n",
    'quo"te\\.md': b"quote\n",
    "empty.md": b"",
    "a/b/c.md": b"deep\n",
}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    git_dir = tmp_path / "r.git"
    git.init(git_dir)
    return git_dir


def commit(repo: Path, base: str | None, files: dict[str, bytes | None], message: str = "a change") -> str:
    return git.commit(repo, base=base, files=files, message=message, when=NOW)


def fsck(repo: Path) -> str:
    return subprocess.run(
        ["git", "-C", str(repo), "fsck", "--strict", "--no-dangling"], capture_output=True, text=True, check=True
    ).stdout


def test_an_unborn_branch_has_no_head(repo: Path) -> None:
    assert git.head(repo) is None
    assert git.resolve(repo) is None


def test_odd_paths_and_contents_come_back_as_they_went_in(repo: Path) -> None:
    """F7"""
    revision = commit(repo, None, dict(ODD))
    assert git.head(repo) == revision
    stored = git.files(repo, revision)
    assert stored.keys() == ODD.keys()
    assert dict(git.read_blobs(repo, stored.values())) == {stored[path]: data for path, data in ODD.items()}
    assert {path: git.read_file(repo, revision, path) for path in ODD} == ODD
    assert fsck(repo) == ""


def test_changes_name_what_was_added_edited_and_deleted(repo: Path) -> None:
    first = commit(repo, None, dict(ODD))
    second = commit(repo, first, {"tab\there.md": b"new\n", "-dash.md": None, "z.md": b"z"})
    found = {change.path: change.status for change in git.changes(repo, first, second)}
    assert found == {"tab\there.md": "M", "-dash.md": "D", "z.md": "A"}
    logged = {change.path: change.status for change in next(git.history(repo, second)).changes}
    assert logged == found


def test_reading_what_is_not_there_is_none(repo: Path) -> None:
    revision = commit(repo, None, {"a/b.md": b"x"})
    assert git.read_file(repo, revision, "a") is None
    assert git.read_file(repo, revision, "a/c.md") is None
    assert git.read_file(repo, revision, "a/b.md/c") is None
    assert git.files(repo, revision, "nope") == {}
    with pytest.raises(NotFound):
        git.read_blob(repo, "1" * 40)
    with pytest.raises(NotFound):
        list(git.read_blobs(repo, ["1" * 40]))


def test_a_writer_from_an_old_base_gets_a_conflict_and_nothing_is_lost(repo: Path) -> None:
    """F17"""
    base = commit(repo, None, {"a.md": b"1"})
    winner = commit(repo, base, {"a.md": b"2"})
    with pytest.raises(Conflict):
        commit(repo, base, {"b.md": b"3"})
    assert git.head(repo) == winner
    assert set(git.files(repo, winner)) == {"a.md"}


def test_the_same_commit_twice_is_a_success(repo: Path) -> None:
    base = commit(repo, None, {"a.md": b"1"})
    assert commit(repo, base, {"a.md": b"2"}) == commit(repo, base, {"a.md": b"2"})


def test_no_temporary_ref_stays(repo: Path) -> None:
    commit(repo, None, {"a.md": b"1"})
    assert list(git.refs(repo, "refs/")) == ["refs/heads/main"]


def test_many_writers_lose_nothing(repo: Path) -> None:
    commit(repo, None, {"start.md": b""})

    def write(writer: int) -> None:
        for number in range(10):
            with git.lock(repo):
                commit(repo, git.head(repo), {f"{writer}-{number}.md": b"x"})

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    head = git.head(repo)
    assert head is not None
    assert len(git.files(repo, head)) == 41
    assert len(list(git.history(repo, head))) == 41
    assert fsck(repo) == ""


def test_a_lock_that_is_held_for_long_says_so(repo: Path) -> None:
    with git.lock(repo), pytest.raises(TryAgain), git.lock(repo, timeout=0.01):
        pytest.fail("the lock was given twice")


def test_the_users_configuration_does_not_reach_the_engine(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F15: gpgsign without a key, no user.name, a hook that refuses."""
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    hook = hooks / "reference-transaction"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    config = tmp_path / "gitconfig"
    config.write_text(f"[commit]\n\tgpgsign = true\n[core]\n\thooksPath = {hooks}\n[user]\n\tuseConfigOnly = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", "/nowhere/objects")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "somebody else")
    revision = commit(repo, None, {"a.md": b"1"}, "first\n\nDocmem-Thread: web-1\n")
    found = next(git.history(repo, revision))
    assert found.author == git.ENGINE
    assert found.trailer("Docmem-Thread") == "web-1"
    assert git.read_file(repo, revision, "a.md") == b"1"


def test_time_never_runs_back_along_the_chain(repo: Path) -> None:
    first = commit(repo, None, {"a.md": b"1"})
    second = git.commit(repo, base=first, files={"a.md": b"2"}, message="x", when=NOW - timedelta(days=1))
    assert next(git.history(repo, second)).when == NOW


def test_history_is_told_by_path_and_since(repo: Path) -> None:
    first = commit(repo, None, {"a.md": b"1"})
    second = commit(repo, first, {"b.md": b"1"})
    third = commit(repo, second, {"a.md": b"2"})
    assert [one.id for one in git.history(repo, third)] == [third, second, first]
    assert [one.id for one in git.history(repo, third, since=first)] == [third, second]
    assert [one.id for one in git.history(repo, third, paths=["a.md"])] == [third, first]


def test_ancestry_tells_a_lost_revision_apart(repo: Path) -> None:
    first = commit(repo, None, {"a.md": b"1"})
    second = commit(repo, first, {"a.md": b"2"})
    assert git.is_ancestor(repo, first, second)
    assert not git.is_ancestor(repo, second, first)
    assert not git.is_ancestor(repo, "1" * 40, second)


def test_links_and_submodules_are_not_files(repo: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    subprocess.run(["git", "clone", "-q", "--no-local", str(repo), str(work)], check=True, capture_output=True)
    (work / "link.md").symlink_to("/etc/passwd")
    (work / "a.md").write_text("x")
    who = ["-c", "user.name=p", "-c", "user.email=p@x"]
    for arguments in (["add", "."], [*who, "commit", "-qm", "x"], ["push", "-q", "origin", "HEAD:main"]):
        subprocess.run(["git", "-C", str(work), *arguments], check=True, capture_output=True)
    head = git.head(repo)
    assert head is not None
    assert set(git.files(repo, head)) == {"a.md"}
    assert git.read_file(repo, head, "link.md") is None


def test_a_killed_reader_process_is_replaced(repo: Path) -> None:
    revision = commit(repo, None, {"a.md": b"1"})
    assert git.read_file(repo, revision, "a.md") == b"1"
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    for child in children:
        if b"cat-file" in Path(f"/proc/{child}/cmdline").read_bytes():
            os.kill(int(child), 9)
    assert git.read_file(repo, revision, "a.md") == b"1"
    git.close(repo)


def test_a_text_merges_where_the_changes_do_not_overlap() -> None:
    base = b"one\ntwo\nthree\nfour\nfive\n"
    assert git.merge_file(base, base.replace(b"one", b"1"), base.replace(b"five", b"5")) == b"1\ntwo\nthree\nfour\n5\n"
    assert git.merge_file(base, base.replace(b"one", b"1"), base.replace(b"one", b"I")) is None


def transaction(repo: Path, revision: str, base: str) -> subprocess.Popen[bytes]:
    """A real git that has locked main and waits before it moves it."""
    command = ["git", "-C", str(repo), "update-ref", "--stdin"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"start\nupdate refs/heads/main {revision} {base}\nprepare\n".encode())
    process.stdin.flush()
    assert process.stdout.readline() == b"start: ok\n"
    assert process.stdout.readline() == b"prepare: ok\n"
    assert (repo / "refs/heads/main.lock").exists()
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def two_commits(repo: Path) -> tuple[str, str]:
    first = commit(repo, None, {"a.md": b"a"})
    aside = git.commit(repo, base=first, files={"b.md": b"b"}, message="aside", when=NOW, ref="refs/x/y", old=None)
    return first, aside


def test_a_lock_whose_owner_was_killed_is_removed_and_the_commit_made(repo: Path) -> None:
    """F17"""
    first, aside = two_commits(repo)
    end(transaction(repo, aside, first))
    assert (repo / "refs/heads/main.lock").exists()
    assert (repo / "HEAD.lock").exists()
    assert commit(repo, first, {"c.md": b"c"}) == git.head(repo)
    assert not list(repo.rglob("*.lock"))


def test_a_lock_whose_owner_lives_stays(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F17"""
    monkeypatch.setattr(references, "REF_LOCK_SECONDS", 0.2)
    monkeypatch.setattr(locks, "STALE_SECONDS", 0.0)
    first, aside = two_commits(repo)
    owner = transaction(repo, aside, first)
    try:
        with pytest.raises(TryAgain) as caught:
            commit(repo, first, {"c.md": b"c"})
        assert "main.lock" in (caught.value.hint or "")
        assert (repo / "refs/heads/main.lock").exists()
        assert git.head(repo) == first
    finally:
        end(owner)
    assert commit(repo, first, {"c.md": b"c"}) == git.head(repo)


def test_a_lock_that_another_program_has_open_stays(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "STALE_SECONDS", 0.0)
    path = repo / "refs/heads/main.lock"
    holder = subprocess.Popen(["sh", "-c", f"exec 9>{path}; echo; exec sleep 60"], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert not locks.removed_if_stale(path, repo)
    finally:
        end(holder)
    assert locks.removed_if_stale(path, repo)
    assert not path.exists()


def test_a_young_lock_stays_and_one_that_is_gone_is_no_obstacle(repo: Path) -> None:
    path = repo / "HEAD.lock"
    path.touch()
    assert not locks.removed_if_stale(path, repo)
    path.unlink()
    assert locks.removed_if_stale(path, repo)


def test_where_processes_cannot_be_seen_no_lock_is_removed(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "STALE_SECONDS", 0.0)
    monkeypatch.setattr(locks, "_PROCESSES", tmp_path)
    path = repo / "HEAD.lock"
    path.touch()
    assert not locks.removed_if_stale(path, repo)
