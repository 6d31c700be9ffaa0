"""A checkout: a clone in which plain git works, with the check before each commit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from docmem import checkout, files, git, repository
from docmem.config import Settings
from docmem.errors import AlreadyExists
from docmem.repository import Repository
from tests.support.cli import Shell
from tests.support.clones import Person
from tests.support.repos import NOW, memory, put

TEA = memory("Ana likes tea.")
JAM = memory("Ana likes jam.", number=1)


@pytest.fixture
def store(settings: Settings, tenant: str) -> Repository:
    """A tenant's store with one memory."""
    put(settings, tenant, {TEA.path: files.render_memory(TEA)})
    return repository.open(settings, tenant)


@pytest.fixture
def pat(settings: Settings, store: Repository, tmp_path: Path) -> Person:
    """Somebody with a checkout."""
    checkout.checkout(settings, "acme", tmp_path / "pat")
    return Person(tmp_path / "pat")


def test_plain_git_works_in_it(store: Repository, pat: Person) -> None:
    pat.write(JAM.path, files.render_memory(JAM))
    pat.git("add", "--all")
    pat.git("commit", "--quiet", "-m", "Jam")
    pat.git("push", "--quiet")
    assert store.snapshot().locate(JAM.id) == [JAM.path]


def test_a_pull_rebases(settings: Settings, store: Repository, pat: Person) -> None:
    pat.commits("knowledge/mine.md", "mine\n")
    put(settings, "acme", {"knowledge/theirs.md": b"theirs\n"})
    pat.git("pull", "--quiet")
    assert pat.git("rev-list", "--merges", "HEAD") == ""
    pat.git("push", "--quiet")


def test_it_holds_no_object_that_main_does_not_reach(settings: Settings, store: Repository, tmp_path: Path) -> None:
    stray = git.commit(
        store.git_dir, base=store.head(), files={"knowledge/x.md": b"x\n"}, message="Stray", when=NOW,
        ref="refs/docmem/tmp/stray",
    )  # fmt: skip
    git.move_ref(store.git_dir, "refs/docmem/tmp/stray", new=None, old=stray)
    checkout.checkout(settings, "acme", tmp_path / "clone")
    Person(tmp_path / "clone").git("cat-file", "-e", stray, ok=False)


def test_what_waits_for_review_is_fetched_and_goes_when_it_is_settled(
    settings: Settings, store: Repository, tmp_path: Path
) -> None:
    held = store.hold("abc", store.head() or "", {JAM.path: files.render_memory(JAM)}, message="Held\n", now=NOW)
    checkout.checkout(settings, "acme", tmp_path / "clone")
    pat = Person(tmp_path / "clone")
    assert pat.git("rev-parse", "refs/remotes/review/abc").strip() == held
    assert "Ana likes jam." in pat.git("diff", "main...review/abc")
    store.release("abc")
    pat.git("fetch", "--quiet")
    pat.git("rev-parse", "--verify", "--quiet", "refs/remotes/review/abc", ok=False)


def test_an_ordinary_clone_has_no_reviews(store: Repository, tmp_path: Path) -> None:
    store.hold("abc", store.head() or "", {JAM.path: files.render_memory(JAM)}, message="Held\n", now=NOW)
    assert "review" not in Person(tmp_path / "plain").clones(store.git_dir).git("for-each-ref")


def test_what_breaks_the_format_is_not_committed(pat: Person) -> None:
    pat.write(JAM.path, files.render_memory(JAM).replace(b"kind: fact", b"kind: rumour"))
    pat.git("add", "--all")
    said = pat.git("commit", "-m", "Jam", ok=False)
    assert f"{JAM.path}:3: bad_field: kind" in said
    pat.write(JAM.path, files.render_memory(JAM))
    pat.git("commit", "--quiet", "--only", JAM.path, "-m", "Jam")


def test_the_index_that_git_commits_from_is_checked_and_no_other(pat: Person) -> None:
    """`git commit PATH` commits from an index of its own."""
    pat.write("knowledge/bad.md", "<<<<<<< HEAD\n")
    pat.git("add", "--all")
    pat.write("docmem.yaml", (pat.folder / "docmem.yaml").read_text() + "# mine\n")
    pat.git("commit", "--quiet", "-m", "Fine", "docmem.yaml")
    pat.git("commit", "--quiet", "-m", "Not fine", ok=False)


def test_only_what_a_commit_changes_is_checked(settings: Settings, store: Repository, pat: Person) -> None:
    """Another person's broken file is not this one's to mend."""
    put(settings, "acme", {"knowledge/bad.md": b"<<<<<<< HEAD\n"})
    pat.git("pull", "--quiet")
    pat.write("knowledge/good.md", "good\n")
    pat.git("add", "--all")
    pat.git("commit", "--quiet", "-m", "Good")


def test_without_docmem_nothing_is_committed_unless_one_says_so(pat: Person) -> None:
    hook = pat.folder / ".git" / "hooks" / "pre-commit"
    text = hook.read_text().replace("python3", "/gone/python3")
    hook.write_text("\n".join("python=/gone" if line.startswith("python=/") else line for line in text.splitlines()))
    pat.write("knowledge/good.md", "good\n")
    pat.git("add", "--all")
    assert "nothing can be checked" in pat.git("commit", "-m", "Good", ok=False)
    pat.git("commit", "--no-verify", "--quiet", "-m", "Good")


def test_what_editors_leave_while_they_save_is_ignored(pat: Person) -> None:
    for name in (".tea.md.swp", "tea.md~", "4913", "#tea.md#", ".#tea.md", ".goutputstream-X1Y2"):
        pat.write(f"knowledge/{name}", "x\n")
    assert pat.git("status", "--porcelain") == ""


def test_checking_out_again_mends_and_touches_nothing(settings: Settings, store: Repository, pat: Person) -> None:
    pat.write("knowledge/mine.md", "mine\n")
    (pat.folder / ".git" / "hooks" / "pre-commit").unlink()
    put(settings, "acme", {"knowledge/theirs.md": b"theirs\n"})
    assert checkout.checkout(settings, "acme", pat.folder) is False
    assert (pat.folder / ".git" / "hooks" / "pre-commit").exists()
    assert pat.git("status", "--porcelain") == "?? knowledge/\n"
    assert pat.git("rev-parse", "origin/main").strip() == store.head()


def test_a_folder_with_something_else_stays_as_it_is(settings: Settings, store: Repository, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("a")
    with pytest.raises(AlreadyExists):
        checkout.checkout(settings, "acme", tmp_path / "full")
    repository.create(settings, "other")
    checkout.checkout(settings, "acme", tmp_path / "acme")
    with pytest.raises(AlreadyExists):
        checkout.checkout(settings, "other", tmp_path / "acme")


def test_global_hooks_do_not_switch_the_check_off(
    settings: Settings, store: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pat = Person(tmp_path / "pat")
    monkeypatch.setenv("HOME", pat.environment["HOME"])
    subprocess.run(["git", "config", "--global", "core.hooksPath", "/nonexistent"], env=pat.environment, check=True)
    checkout.checkout(settings, "acme", pat.folder)
    pat.write("knowledge/bad.md", "<<<<<<< HEAD\n")
    pat.git("add", "--all")
    assert "conflict_marker" in pat.git("commit", "-m", "Bad", ok=False)


def test_the_commands_check_a_tenant_and_a_folder(
    settings: Settings, store: Repository, shell: Shell, tmp_path: Path
) -> None:
    folder = tmp_path / "work"
    assert shell("checkout", "acme", str(folder)).code == 0
    assert shell("check", "acme").code == 0
    assert shell("check", str(folder)).code == 0
    (folder / "knowledge").mkdir(exist_ok=True)
    (folder / "knowledge" / "bad.md").write_text("ok\n<<<<<<< HEAD\n")
    ran = shell("check", str(folder), "--json")
    assert ran.code == 1
    assert [(row["path"], row["line"], row["code"]) for row in ran.json] == [("knowledge/bad.md", 2, "conflict_marker")]
    assert shell("check", str(folder), "--staged").code == 0
    put(settings, "acme", {"knowledge/worse.md": b">>>>>>> x\n"})
    assert "knowledge/worse.md:1: conflict_marker" in shell("check", "acme").out
    assert shell("check", str(tmp_path / "none" / "there"), "--json").json["error"]["code"] == "invalid_name"


def test_a_plain_clone_gets_the_check_and_keeps_what_is_in_it(
    settings: Settings, store: Repository, tmp_path: Path
) -> None:
    pat = Person(tmp_path / "plain").clones(store.git_dir)
    mine = pat.commits("knowledge/mine.md", "mine\n")
    assert checkout.checkout(settings, "acme", pat.folder) is False
    assert pat.git("rev-parse", "HEAD").strip() == mine
    pat.write(JAM.path, files.render_memory(JAM).replace(b"kind: fact", b"kind: rumour"))
    pat.git("add", "--all")
    assert "bad_field" in pat.git("commit", "-m", "Jam", ok=False)
    repository.create(settings, "other", now=NOW)
    with pytest.raises(AlreadyExists):
        checkout.checkout(settings, "other", Person(tmp_path / "again").clones(store.git_dir).folder)


def test_the_check_names_files_that_nobody_reads_and_misses_what_makes_a_tenant(pat: Person, shell: Shell) -> None:
    pat.write("notes/a.md", "x\n")
    told = shell("check", str(pat.folder))
    assert (told.code, "notes/a.md: docmem reads no such folder" in told.err) == (0, True)
    pat.write("docmem.yaml", None)
    told = shell("check", str(pat.folder))
    assert (told.code, "docmem.yaml:1: missing" in told.out) == (1, True)
