"""What a push brings in, and what is refused with its reason: real git, real hooks."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from docmem import checkout, files, git, hooks, layout, receive, repository, revert
from docmem.config import Settings
from docmem.model import Marks, Watermark
from docmem.repository import Repository
from tests.support.clones import Person
from tests.support.repos import NOW, memory, put
from tests.support.windows import Tenant, operation, reply, turn

TEA = memory("Ana likes tea.")
JAM = memory("Ana likes jam.", number=1)
WATERMARK = files.render_watermark(Watermark("web-1", TEA.subject, "default", "t1", "0" * 64))


@pytest.fixture
def store(settings: Settings, tenant: str) -> Repository:
    """A tenant's store with one memory."""
    put(settings, tenant, {TEA.path: files.render_memory(TEA)})
    return repository.open(settings, tenant)


@pytest.fixture
def pat(store: Repository, tmp_path: Path) -> Person:
    """Somebody who knows git and not docmem."""
    return Person(tmp_path / "pat").clones(store.git_dir)


def test_a_push_from_an_ordinary_clone_comes_in_and_wakes_sync(store: Repository, pat: Person) -> None:
    poke = store.settings.root / "poke" / "acme"
    poke.unlink()
    mine = pat.commits(JAM.path, files.render_memory(JAM))
    pat.pushes()
    assert store.head() == mine
    assert poke.exists()


def test_a_store_that_moved_and_a_push_that_a_broken_poke_meets(store: Repository, pat: Person) -> None:
    """The root is found from where the store stands; what can't wake sync doesn't fail the push."""
    moved = store.settings.root.with_name("elsewhere")
    store.settings.root.rename(moved)
    (moved / "poke" / "acme").unlink()
    pat.git("remote", "set-url", "origin", str(moved / "tenants" / "acme.git"))
    pat.commits(JAM.path, files.render_memory(JAM))
    pat.pushes()
    assert (moved / "poke" / "acme").exists()
    (moved / "poke" / "acme").unlink()
    (moved / "poke").rmdir()
    (moved / "poke").write_text("in the way")
    pat.commits(JAM.path, None)
    pat.pushes()


@pytest.mark.parametrize(
    ("path", "data", "says"),
    [
        (JAM.path, files.render_memory(JAM).replace(b"importance: 5", b"importance: 50"), f"{JAM.path}:5: bad_field"),
        ("knowledge/a.md", "<<<<<<< HEAD\nx\n=======\ny\n>>>>>>> z\n", "knowledge/a.md:1: conflict_marker"),
        ("knowledge/a.md", "one\nour key is AKIAIOSFODNN7EXAMPLQ\n", "knowledge/a.md:2: secret"),
        (TEA.path.replace(".md", "-copy.md"), files.render_memory(TEA), f"id {TEA.id} is taken by {TEA.path}"),
        ("knowledge/README.md", "x\n", ""),
        ("subjects/notes.md", "x\n", "subjects/notes.md:1: misplaced"),
        (layout.watermark_path("web-1"), WATERMARK, "docmem's alone"),
        (layout.REVERTED, files.render_reverted(Marks(frozenset(["0" * 64]))), "only docmem adds them"),
        ("docmem.yaml", "format: 9\n", "docmem.yaml:1: format_version"),
        ("docmem.yaml", None, "docmem.yaml:1: missing"),
        ("knowledge/s.txt", "our key is AKIAIOSFODNN7EXAMPLQ\n", "knowledge/s.txt:1: secret"),
        (TEA.path, files.render_memory(replace(TEA, id=JAM.id)), f"id_changed: this was {TEA.id}: an id never changes"),
        (TEA.path, files.render_memory(memory("Rex sleeps all day on the sofa.", number=8)), ""),
    ],
)
def test_each_kind_of_bad_file_is_refused_with_file_line_and_reason(
    store: Repository, pat: Person, path: str, data: bytes | str | None, says: str
) -> None:
    before = store.head()
    mine = pat.commits(path, data)
    said = pat.pushes(ok=not says)
    assert says in said
    assert store.head() == (before if says else mine)


def test_a_code_sample_with_conflict_markers_comes_in(store: Repository, pat: Person) -> None:
    """F14"""
    pat.commits("knowledge/a.md", "```\n<<<<<<< HEAD\n=======\n>>>>>>> x\n```\n")
    pat.pushes()


def test_paths_that_are_one_file_on_some_disks_are_refused(store: Repository, pat: Person) -> None:
    pat.commits("knowledge/tea.md", "x\n")
    pat.pushes()
    pat.commits("knowledge/Tea.md", "y\n")
    assert "twin_path" in pat.pushes(ok=False)
    pat.git("reset", "--quiet", "--hard", "HEAD^")
    pat.commits("Knowledge/jam.md", "y\n")
    assert "twin_path" in pat.pushes(ok=False)


def test_an_edit_a_move_and_an_id_that_changes_files_come_in(store: Repository, pat: Person) -> None:
    pat.commits(TEA.path, files.render_memory(TEA).replace(b"tea", b"green tea"))
    pat.pushes()
    moved = TEA.path.replace("ana-likes", "ana-loves")
    pat.git("mv", TEA.path, moved)
    pat.git("commit", "--quiet", "-m", "Move")
    pat.pushes()
    assert store.snapshot().locate(TEA.id) == [moved]


def test_a_secret_that_a_later_commit_takes_out_is_refused_all_the_same(store: Repository, pat: Person) -> None:
    pat.commits("knowledge/a.md", "our key is AKIAIOSFODNN7EXAMPLQ\n")
    pat.commits("knowledge/a.md", "our key is elsewhere\n")
    assert "looks like a secret" in pat.pushes(ok=False)


def test_a_symlink_is_refused(store: Repository, pat: Person) -> None:
    (pat.folder / "knowledge").mkdir(exist_ok=True)
    (pat.folder / "knowledge" / "passwd.md").symlink_to("/etc/passwd")
    pat.git("add", "--all")
    pat.git("commit", "--quiet", "-m", "Link")
    assert "not_a_file" in pat.pushes(ok=False)


def test_history_is_not_rewritten_and_main_not_deleted(store: Repository, pat: Person) -> None:
    before = store.head()
    pat.git("commit", "--quiet", "--amend", "-m", "Another past")
    assert "would take commits of main away" in pat.pushes("--force", ok=False)
    assert "main can't be deleted" in pat.git("push", "origin", ":main", ok=False)
    assert store.head() == before


def test_only_main_is_kept(store: Repository, pat: Person) -> None:
    for ref in ("refs/heads/idea", "refs/tags/v1"):
        assert "only main is kept here" in pat.git("push", "origin", f"HEAD:{ref}", ok=False)
    pat.git("push", "origin", "HEAD:refs/docmem/review/mine", ok=False)
    assert list(git.refs(store.git_dir, "refs")) == [git.MAIN]


def test_a_merge_that_makes_main_a_side_branch_is_refused_and_a_rebase_comes_in(
    settings: Settings, store: Repository, pat: Person
) -> None:
    pat.commits("knowledge/mine.md", "mine\n")
    put(settings, "acme", {"knowledge/theirs.md": b"theirs\n"})
    pat.git("pull", "--no-rebase", "--no-edit", "--quiet", "origin", "main")
    assert "git rebase origin/main" in pat.pushes(ok=False)
    pat.git("rebase", "--quiet", "origin/main")
    pat.pushes()


def test_a_merge_into_main_comes_in(store: Repository, pat: Person) -> None:
    pat.git("checkout", "--quiet", "-b", "idea")
    pat.commits("knowledge/mine.md", "mine\n")
    pat.git("checkout", "--quiet", "main")
    pat.commits("knowledge/other.md", "other\n")
    pat.git("merge", "--quiet", "--no-ff", "--no-edit", "idea")
    pat.pushes()


def test_a_commit_from_the_future_is_refused(store: Repository, pat: Person) -> None:
    pat.write("knowledge/a.md", "x\n")
    pat.git("add", "--all")
    for minutes, comes_in in ((10, False), (3, True)):
        when = f"{datetime.now(UTC) + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"
        pat.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--allow-empty", "-m", "Soon")
        subprocess.run(
            ["git", "-C", str(pat.folder), "commit", "--quiet", "--amend", "--no-edit"],
            env={**pat.environment, "GIT_COMMITTER_DATE": when}, check=True,
        )  # fmt: skip
        said = pat.pushes(ok=comes_in)
        assert comes_in or "from the future" in said
        if not comes_in:
            pat.git("reset", "--quiet", "--soft", "origin/main")


def test_a_large_deletion_has_to_be_confirmed_with_its_number(
    settings: Settings, store: Repository, pat: Person
) -> None:
    many = [memory(f"Ana likes number {number}.", number=number) for number in range(40)]
    put(settings, "acme", {each.path: files.render_memory(each) for each in many})
    pat.git("pull", "--quiet", "origin", "main")
    for each in many:
        pat.git("rm", "--quiet", each.path)
    pat.git("commit", "--quiet", "-m", "Clear out")
    assert "git push -o docmem.confirm-deletes=40" in pat.pushes(ok=False)
    pat.pushes("-o", "docmem.confirm-deletes=39", ok=False)
    pat.pushes("-o", "docmem.confirm-deletes=40")
    assert store.head() in receive.confirmed(store.git_dir)


def test_moving_many_files_deletes_none(settings: Settings, store: Repository, pat: Person) -> None:
    many = [memory(f"Ana likes number {number}.", number=number) for number in range(40)]
    put(settings, "acme", {each.path: files.render_memory(each) for each in many})
    pat.git("pull", "--quiet", "origin", "main")
    for each in many:
        pat.git("mv", each.path, each.path.replace("ana-likes", "ana-loves"))
    pat.git("commit", "--quiet", "-m", "Rename")
    pat.pushes()


def test_somebodys_global_hooks_path_does_not_switch_the_check_off(store: Repository, pat: Person) -> None:
    pat.git("config", "--global", "core.hooksPath", "/nonexistent")
    pat.commits("knowledge/a.md", "<<<<<<< HEAD\n")
    assert "conflict_marker" in pat.pushes(ok=False)


@pytest.mark.parametrize("python", ["/gone/python", "/bin/false"])
def test_without_docmem_a_push_is_refused_in_one_line(store: Repository, pat: Person, python: str) -> None:
    hook = store.git_dir / "hooks" / "pre-receive"
    lines = [f"python={python}" if line.startswith("python=/") else line for line in hook.read_text().splitlines()]
    hook.write_text("\n".join(lines).replace("python3", "/gone/python3") + "\n")
    before = store.head()
    pat.commits(JAM.path, files.render_memory(JAM))
    said = pat.pushes(ok=False)
    assert "nothing can be checked: there is no docmem in" in said
    assert "docmem doctor --repair" in said
    assert store.head() == before


def test_a_check_that_fails_refuses(store: Repository, pat: Person) -> None:
    hook = store.git_dir / "hooks" / "pre-receive"
    hook.write_text(hook.read_text().replace("-m docmem.receive", "-m docmem.receive_is_broken"))
    pat.commits(JAM.path, files.render_memory(JAM))
    assert "the check itself failed" in pat.pushes(ok=False)


def test_of_two_pushes_from_one_base_the_second_comes_in_after_a_pull(
    store: Repository, pat: Person, tmp_path: Path
) -> None:
    """F17"""
    kim = Person(tmp_path / "kim", "Kim").clones(store.git_dir)
    pat.commits("knowledge/pat.md", "pat\n")
    kim.commits("knowledge/kim.md", "kim\n")
    pat.pushes()
    kim.pushes(ok=False)
    kim.git("pull", "--quiet", "--rebase", "origin", "main")
    kim.pushes()
    assert {path for path in git.files(store.git_dir, store.head() or "") if path.startswith("knowledge/")} == {
        "knowledge/pat.md",
        "knowledge/kim.md",
    }


def test_a_statement_that_was_reverted_is_held_until_a_person_pushes_it(store: Repository, pat: Person) -> None:
    """C6"""
    acme = Tenant(store.settings, store)
    said = "The traveller plans Portugal in May."
    acme.run(reply(operation()))
    learned = acme.memories()[said]
    revert.apply(store, learned.id, now=NOW, author=git.person())
    again = acme.run(reply(operation(evidence_turns=["t2"])), turns=[turn(1), turn(2)])
    assert (again.outcome, said in acme.memories()) == ("held", False)
    pat.git("pull", "--quiet", "--rebase", "origin", "main")
    pat.commits(learned.path, files.render_memory(learned))
    pat.pushes()
    assert acme.memories()[said].id == learned.id
    tea = operation("The traveller drinks tea.", evidence_turns=["t3"])
    acme.run(reply(tea), turns=[turn(1), turn(2), turn(3)])
    assert said in acme.memories()
    assert not store.snapshot().reverted, "the person's word clears the mark"


def test_a_store_of_an_older_docmem_is_found_and_repaired(store: Repository) -> None:
    assert checkout.fault(store) is None
    hook = store.git_dir / "hooks" / "pre-receive"
    hook.chmod(0o644)
    assert "can't be executed" in (checkout.fault(store) or "")
    hook.unlink()
    assert "missing" in (checkout.fault(store) or "")
    subprocess.run(["git", "-C", str(store.git_dir), "config", "--unset", "core.hooksPath"], check=True)
    assert "settings" in (checkout.fault(store) or "")
    checkout.repair(store)
    assert checkout.fault(store) is None
    assert os.access(hook, os.X_OK)
    hook.write_text(hook.read_text().replace("\npython=/", "\npython=/gone/", 1))
    assert "is gone" in (checkout.fault(store) or "")
    assert hooks.store_fault(store.git_dir, Path("/another/root")) is not None
