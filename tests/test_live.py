"""A live checkout: what is saved is committed and pushed, what others push arrives, and no save is ever lost."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from docmem import checkout, files, git, repository
from docmem.config import Settings
from docmem.errors import AlreadyExists
from docmem.git import Author
from docmem.live import Saves, live
from docmem.repository import Repository
from docmem.worktree import CAP_SECONDS, QUIET_SECONDS, Said, WorkTree
from tests.support.clones import Person
from tests.support.repos import memory, put
from tests.support.waiting import wait_until
from tests.support.windows import Tenant, operation, reply

TEA = memory("Ana likes tea.")
JAM = memory("Ana likes jam.", number=1)
TEA_FILE, JAM_FILE = files.render_memory(TEA), files.render_memory(JAM)
PAT = Author("Pat", "pat@example.com")


@pytest.fixture
def store(settings: Settings, tenant: str) -> Repository:
    """A tenant's store with one memory."""
    put(settings, tenant, {TEA.path: TEA_FILE})
    return repository.open(settings, tenant)


@pytest.fixture
def pat(settings: Settings, store: Repository, tmp_path: Path) -> Person:
    """Somebody with a checkout."""
    checkout.checkout(settings, "acme", tmp_path / "pat")
    person = Person(tmp_path / "pat")
    person.git("config", "user.name", PAT.name)
    person.git("config", "user.email", PAT.email)
    return person


@pytest.fixture
def tree(settings: Settings, store: Repository, pat: Person) -> WorkTree:
    """Pat's checkout, a step at a time."""
    return WorkTree(pat.folder, settings, "acme", PAT, str(store.git_dir))


@contextlib.contextmanager
def watching(settings: Settings, folder: Path) -> Iterator[list[Said]]:
    """A live checkout; yields what it has said."""
    said: list[Said] = []
    stop = threading.Event()
    thread = threading.Thread(
        target=live, args=(settings, "acme", folder), kwargs={"report": said.append, "stop": stop}
    )
    thread.start()
    try:
        wait_until(lambda: (folder / ".git" / "docmem-live.index").exists())
        yield said
    finally:
        stop.set()
        thread.join()


def settled(tree: WorkTree) -> list[Said]:
    """A step, once the files are no longer fresh."""
    old = time.time() - 10
    for path in tree.folder.rglob("*"):
        if ".git" not in path.parts and path.is_file() and not path.is_symlink():
            os.utime(path, (old, old))
    return tree.settle()


def kinds(said: list[Said]) -> list[str]:
    return [each.kind for each in said]


def commits(store: Repository) -> int:
    return sum(1 for _ in git.history(store.git_dir, git.MAIN))


# ------------------------------------------------------------------------------------------------------- saving


def test_a_save_is_a_commit_of_that_person_and_pushed(settings: Settings, store: Repository, pat: Person) -> None:
    with watching(settings, pat.folder) as said:
        pat.write(JAM.path, JAM_FILE)
        wait_until(lambda: "pushed" in kinds(said))
    [commit] = git.history(store.git_dir, git.MAIN, limit=1)
    assert commit.author == PAT
    assert [change.path for change in commit.changes] == [JAM.path]
    assert pat.git("log", "-1", "--format=%cn", "main").strip() == "Pat"
    assert pat.git("status", "--porcelain") == ""


def test_a_commit_says_what_was_changed_in_names_and_keys_alone(tree: WorkTree, store: Repository, pat: Person) -> None:
    def subject_of(**saved: bytes | None) -> str:
        for path, data in saved.items():
            pat.write(paths[path], data)
        settled(tree)
        return next(git.history(store.git_dir, git.MAIN, limit=1)).subject

    moved = JAM.path.replace(".md", "-again.md")
    profile = f"{JAM.path.split('/memories')[0]}/profile.yaml"
    paths = {"jam": JAM.path, "moved": moved, "profile": profile, "doc": "knowledge/a.md", "b": "knowledge/b.md"}
    assert subject_of(jam=JAM_FILE) == f"Add memory {JAM.id}"
    stronger = JAM_FILE.replace(b"importance: 5", b"importance: 9") + b"With butter.\n"
    assert subject_of(jam=stronger) == f"Edit memory {JAM.id} (importance, text)"
    assert subject_of(jam=None, moved=stronger) == f"Move memory {JAM.id}"
    assert subject_of(profile=b"locale: de\n") == f"Add profile of {JAM.subject[:12]}"
    other = b"locale: en\nattributes: {diet: vegan}\n"
    assert subject_of(profile=other) == f"Edit profile of {JAM.subject[:12]} (attributes.diet, locale)"
    assert subject_of(doc=b"One.\n") == "Add knowledge/a.md"
    everything = subject_of(doc=b"Two, and more.\n", moved=None, profile=None, b=b"Three.\n")
    assert everything == f"Edit knowledge/a.md, Add knowledge/b.md, Remove memory {JAM.id} and 1 more"


def test_an_invalid_save_is_named_and_left_alone_and_the_rest_goes_on(
    settings: Settings, store: Repository, pat: Person
) -> None:
    bad = JAM_FILE.replace(b"kind: fact", b"kind: rumour")
    with watching(settings, pat.folder) as said:
        pat.write(JAM.path, bad)
        pat.write("knowledge/good.md", "good\n")
        wait_until(lambda: {"invalid", "pushed"} <= set(kinds(said)))
        assert f"{JAM.path}:3: bad_field" in next(each.text for each in said if each.kind == "invalid")
        assert store.snapshot().read("knowledge/good.md") == b"good\n"
        assert store.snapshot().read(JAM.path) is None
        assert (pat.folder / JAM.path).read_bytes() == bad
        pat.write(JAM.path, JAM_FILE)
        wait_until(lambda: store.snapshot().read(JAM.path) == JAM_FILE)
    assert kinds(said).count("invalid") == 1


def _vim(file: Path, data: bytes) -> None:
    backup = file.with_name(file.name + "~")
    file.rename(backup)
    file.write_bytes(data)
    file.chmod(0o644)
    backup.unlink()


def _renamed(file: Path, data: bytes) -> None:
    fresh = file.with_name(f".goutputstream-{os.getpid()}")
    fresh.write_bytes(data)
    fresh.replace(file)


def _truncated(file: Path, data: bytes) -> None:
    file.write_bytes(b"")
    file.write_bytes(data)


@pytest.mark.parametrize("save", [_vim, _renamed, _truncated], ids=["vim", "rename", "truncate"])
def test_each_way_to_save_is_one_edit(settings: Settings, store: Repository, pat: Person, save: object) -> None:
    assert callable(save)
    new = TEA_FILE.replace(b"tea.", b"green tea.")
    before = commits(store)
    with watching(settings, pat.folder) as said:
        save(pat.folder / TEA.path, new)
        wait_until(lambda: store.snapshot().read(TEA.path) == new)
        pat.write("knowledge/next.md", "x\n")
        wait_until(lambda: store.snapshot().read("knowledge/next.md") is not None)
    assert commits(store) == before + 2
    assert set(kinds(said)) <= {"committed", "pushed"}
    assert {change.status for change in next(git.history(store.git_dir, "main^", limit=1)).changes} == {"M"}


def test_a_half_written_file_is_waited_for(settings: Settings, store: Repository, pat: Person) -> None:
    """Half of it would be valid: only that it is still open tells."""
    (pat.folder / "knowledge").mkdir()
    with watching(settings, pat.folder):
        with (pat.folder / "knowledge" / "long.md").open("w") as file:
            file.write("first half\n")
            file.flush()
            pat.write("knowledge/short.md", "short\n")
            wait_until(lambda: store.snapshot().read("knowledge/short.md") is not None)
            assert store.snapshot().read("knowledge/long.md") is None
            file.write("second half\n")
        wait_until(lambda: store.snapshot().read("knowledge/long.md") is not None)
    assert store.snapshot().read("knowledge/long.md") == b"first half\nsecond half\n"
    assert sum(1 for _ in git.history(store.git_dir, git.MAIN, paths=["knowledge/long.md"])) == 1


def test_a_file_that_is_written_to_without_end_is_waited_for_no_longer_than_the_cap(tmp_path: Path) -> None:
    saves = Saves(tmp_path)
    for tenth in range(int(CAP_SECONDS * 10)):
        saves.note("a.md", now=tenth / 10)
        assert not saves.due(tenth / 10 + 0.05)
        assert saves.busy() == {"a.md"}
    assert saves.due(CAP_SECONDS)
    assert saves.busy() == set()
    saves.note("a.md", now=10.0)
    assert not saves.due(10 + QUIET_SECONDS / 2)
    assert saves.due(10 + QUIET_SECONDS)


def test_a_folder_that_moves_is_one_move_of_its_files(settings: Settings, store: Repository, pat: Person) -> None:
    many = {f"knowledge/old/{number}.md": f"text {number}\n".encode() for number in range(9)}
    put(settings, "acme", dict(many))
    with watching(settings, pat.folder):
        wait_until(lambda: (pat.folder / "knowledge" / "old" / "8.md").exists())
        before = commits(store)
        (pat.folder / "knowledge" / "old").rename(pat.folder / "knowledge" / "new")
        wait_until(lambda: store.snapshot().read("knowledge/new/8.md") is not None)
    moved = git.files(store.git_dir, git.resolve(store.git_dir) or "", "knowledge")
    assert sorted(moved) == sorted(path.replace("old", "new") for path in many)
    assert commits(store) == before + 1


def test_events_that_got_lost_cost_a_look_at_all_files(tree: WorkTree, store: Repository, pat: Person) -> None:
    for number in range(50):
        pat.write(f"knowledge/{number}.md", "x\n")
    assert kinds(settled(tree)) == ["committed", "pushed"]
    assert len(git.files(store.git_dir, store.head() or "", "knowledge")) == 50


# ----------------------------------------------------------------------------------------------- with the others


def test_consolidation_and_docmems_own_writes_start_no_loop(settings: Settings, store: Repository, pat: Person) -> None:
    """F16"""
    acme = Tenant(settings, store)
    with watching(settings, pat.folder) as said:
        acme.run(reply(operation()))
        path = acme.memories()["The traveller plans Portugal in May."].path
        wait_until(lambda: (pat.folder / path).exists())
        pat.write("knowledge/mine.md", "mine\n")
        wait_until(lambda: store.snapshot().read("knowledge/mine.md") is not None)
        (pat.folder / path).write_bytes((pat.folder / path).read_bytes())
        pat.write("knowledge/last.md", "last\n")
        wait_until(lambda: store.snapshot().read("knowledge/last.md") is not None)
    assert kinds(said) == ["pulled", "committed", "pushed", "committed", "pushed"]


def test_two_people_who_change_different_keys_of_one_memory_both_have_it(
    settings: Settings, tree: WorkTree, store: Repository, pat: Person
) -> None:
    pat.write(TEA.path, TEA_FILE.replace(b"tea.", b"green tea."))
    put(settings, "acme", {TEA.path: TEA_FILE.replace(b"importance: 5", b"importance: 9")})
    assert kinds(settled(tree)) == ["committed", "pulled", "pushed"]
    both = TEA_FILE.replace(b"tea.", b"green tea.").replace(b"importance: 5", b"importance: 9")
    assert store.snapshot().read(TEA.path) == (pat.folder / TEA.path).read_bytes() == both
    assert pat.git("status", "--porcelain") == ""
    assert settled(tree) == []


def test_a_real_conflict_is_shown_and_left_to_the_person(
    settings: Settings, tree: WorkTree, store: Repository, pat: Person
) -> None:
    mine, theirs = TEA_FILE.replace(b"tea.", b"green tea."), TEA_FILE.replace(b"tea.", b"black tea.")
    pat.write(TEA.path, mine)
    pat.write("knowledge/else.md", "else\n")
    put(settings, "acme", {TEA.path: theirs})
    said = settled(tree)
    assert kinds(said) == ["committed", "pulled", "conflict", "pushed"]
    assert f"git show :2:{TEA.path}" in said[2].text
    assert (pat.folder / TEA.path).read_bytes() == mine
    assert store.snapshot().read(TEA.path) == theirs
    assert store.snapshot().read("knowledge/else.md") == b"else\n"
    assert pat.git("status", "--porcelain").startswith("UU ")
    assert pat.git("show", f":2:{TEA.path}").encode() == theirs
    assert settled(tree) == []
    final = TEA_FILE.replace(b"tea.", b"any tea.")
    pat.write(TEA.path, final)
    assert kinds(settled(tree)) == ["conflict"]
    pat.git("add", TEA.path)
    assert kinds(settled(tree)) == ["committed", "pushed"]
    assert store.snapshot().read(TEA.path) == final


def test_a_conflict_that_a_later_save_fits_together_needs_no_git(
    settings: Settings, tree: WorkTree, store: Repository, pat: Person
) -> None:
    pat.write(TEA.path, TEA_FILE.replace(b"tea.", b"green tea.").replace(b"importance: 5", b"importance: 7"))
    put(settings, "acme", {TEA.path: TEA_FILE.replace(b"tea.", b"black tea.")})
    assert "conflict" in kinds(settled(tree))
    pat.write(TEA.path, TEA_FILE.replace(b"importance: 5", b"importance: 7"))
    assert kinds(settled(tree)) == ["committed", "pushed"]
    both = TEA_FILE.replace(b"tea.", b"black tea.").replace(b"importance: 5", b"importance: 7")
    assert store.snapshot().read(TEA.path) == (pat.folder / TEA.path).read_bytes() == both


def test_upstream_never_overwrites_what_is_not_committed(
    settings: Settings, tree: WorkTree, store: Repository, pat: Person
) -> None:
    bad = TEA_FILE.replace(b"kind: fact", b"kind: rumour")
    pat.write(TEA.path, bad)
    pat.write("knowledge/notes.md", "<<<<<<< HEAD\n")
    put(settings, "acme", {TEA.path: TEA_FILE.replace(b"tea.", b"black tea."), "knowledge/notes.md": b"theirs\n"})
    assert kinds(settled(tree)) == ["invalid", "invalid", "pulled"]
    assert kinds(settled(tree)) == ["conflict", "conflict"]
    assert (pat.folder / TEA.path).read_bytes() == bad
    assert (pat.folder / "knowledge" / "notes.md").read_text() == "<<<<<<< HEAD\n"
    pat.write("knowledge/notes.md", "theirs\n")
    settled(tree)
    assert pat.git("status", "--porcelain").split() == ["UU", TEA.path]


def test_what_was_being_saved_while_upstream_changed_the_file_fits_together_after(
    settings: Settings, tree: WorkTree, store: Repository, pat: Person
) -> None:
    """Upstream moves twice before the save is quiet: the save still stands on what it was made from."""
    mine = TEA_FILE.replace(b"tea.", b"green tea.")
    pat.write(TEA.path, mine)
    for importance in (b"7", b"9"):
        put(settings, "acme", {TEA.path: TEA_FILE.replace(b"importance: 5", b"importance: " + importance)})
        assert kinds(tree.settle(busy=[TEA.path])) == ["pulled"]
        assert (pat.folder / TEA.path).read_bytes() == mine
        assert tree.waits
    assert kinds(settled(tree)) == ["committed", "pushed"]
    both = mine.replace(b"importance: 5", b"importance: 9")
    assert store.snapshot().read(TEA.path) == (pat.folder / TEA.path).read_bytes() == both


def test_a_file_that_goes_is_committed_though_another_one_is_invalid(
    settings: Settings, tree: WorkTree, store: Repository, pat: Person
) -> None:
    """A move to a name where it is invalid waits whole."""
    put(settings, "acme", {"knowledge/old.md": b"old\n"})
    settled(tree)
    moved = TEA.path.replace("ana-likes", "ana-loves")
    (pat.folder / "knowledge" / "old.md").unlink()
    (pat.folder / TEA.path).rename(pat.folder / moved)
    pat.write(moved, TEA_FILE.replace(b"kind: fact", b"kind: rumour"))
    assert kinds(settled(tree)) == ["invalid", "committed", "pushed"]
    assert store.snapshot().read("knowledge/old.md") is None
    assert store.snapshot().read(TEA.path) == TEA_FILE


def test_a_memory_that_upstream_moved_and_one_edits_here_is_edited_where_it_is(
    settings: Settings, tree: WorkTree, store: Repository, pat: Person
) -> None:
    moved = TEA.path.replace("ana-likes", "ana-loves")
    new = TEA_FILE.replace(b"tea.", b"green tea.")
    pat.write(TEA.path, new)
    put(settings, "acme", {TEA.path: None, moved: TEA_FILE})
    assert kinds(settled(tree)) == ["committed", "pulled", "pushed"]
    assert (pat.folder / moved).read_bytes() == new
    assert not (pat.folder / TEA.path).exists()
    assert store.snapshot().locate(TEA.id) == [moved]


def test_what_an_editor_writes_late_into_a_replaced_file_is_kept(
    settings: Settings, tree: WorkTree, store: Repository, pat: Person
) -> None:
    late = TEA_FILE.replace(b"tea.", b"late tea.")
    with (pat.folder / TEA.path).open("r+b") as editor:
        put(settings, "acme", {TEA.path: TEA_FILE.replace(b"tea.", b"black tea.")})
        assert kinds(settled(tree)) == ["pulled"]
        editor.write(late)
    assert settled(tree) == [], "it is back, and fresh"
    assert kinds(settled(tree)) == ["conflict"]
    assert (pat.folder / TEA.path).read_bytes() == late


@pytest.mark.parametrize("moved_on", [False, True])
def test_a_crash_while_files_are_replaced_is_no_deletion(
    settings: Settings, tree: WorkTree, store: Repository, pat: Person, moved_on: bool
) -> None:
    """The file was moved aside and its successor wasn't there yet; or upstream had deleted it, and that was done."""
    if moved_on:
        put(settings, "acme", {TEA.path: None})
        assert kinds(settled(tree)) == ["pulled"]
    else:
        aside = pat.folder / ".git" / "docmem-aside" / "7" / TEA.path
        aside.parent.mkdir(parents=True)
        (pat.folder / TEA.path).rename(aside)
    again = WorkTree(pat.folder, settings, "acme", PAT, str(store.git_dir))
    again.recover()
    assert settled(again) == []
    assert (pat.folder / TEA.path).exists() != moved_on
    assert not (pat.folder / ".git" / "docmem-aside").exists()


def test_a_commit_by_hand_is_pushed_as_well(tree: WorkTree, store: Repository, pat: Person) -> None:
    mine = pat.commits("knowledge/mine.md", "mine\n")
    assert kinds(settled(tree)) == ["pushed"]
    assert store.head() == mine


def test_while_ones_own_git_is_at_work_nothing_is_committed(tree: WorkTree, store: Repository, pat: Person) -> None:
    pat.write("knowledge/mine.md", "mine\n")
    pat.git("switch", "--quiet", "-c", "idea")
    assert kinds(settled(tree)) == ["waiting"]
    assert settled(tree) == []
    pat.git("switch", "--quiet", "main")
    (pat.folder / ".git" / "index.lock").touch()
    assert kinds(settled(tree)) == ["waiting"]
    (pat.folder / ".git" / "index.lock").unlink()
    assert kinds(settled(tree)) == ["committed", "pushed"]


def test_what_is_not_docmems_to_commit_is_left(tree: WorkTree, store: Repository, pat: Person) -> None:
    before = store.head()
    pat.write("notes.txt", "mine\n")
    pat.write("reverted.yaml", "reverted: []\nrejected: []\n# mine\n")
    (pat.folder / "docmem.yaml").unlink()
    (pat.folder / "docmem.yaml").symlink_to("/etc/passwd")
    assert set(kinds(settled(tree))) == {"left"}
    assert store.head() == before


def test_a_large_deletion_is_not_committed_by_itself(
    settings: Settings, tree: WorkTree, store: Repository, pat: Person
) -> None:
    put(settings, "acme", {f"knowledge/{number}.md": b"x\n" for number in range(60)})
    settled(tree)
    before = store.head()
    for number in range(60):
        (pat.folder / "knowledge" / f"{number}.md").unlink()
    said = settled(tree)
    assert kinds(said) == ["refused"]
    assert "this deletes 60 of" in said[0].text
    assert store.head() == before


def test_a_store_that_is_away_is_tried_again(tree: WorkTree, store: Repository, pat: Person) -> None:
    away = store.git_dir.with_name("away.git")
    store.git_dir.rename(away)
    pat.write("knowledge/mine.md", "mine\n")
    assert kinds(settled(tree))[-1:] == ["away"]
    away.rename(store.git_dir)
    assert kinds(settled(tree)) == ["pushed"]


def test_one_process_watches_a_checkout(settings: Settings, pat: Person) -> None:
    with watching(settings, pat.folder), pytest.raises(AlreadyExists, match="live already"):
        live(settings, "acme", pat.folder, report=lambda said: None)


def test_the_command_stops_cleanly_and_settles_what_was_saved_last(
    settings: Settings, store: Repository, pat: Person
) -> None:
    environment = {**pat.environment, "DOCMEM_ROOT": str(settings.root)}
    command = [sys.executable, "-m", "docmem", "checkout", "acme", str(pat.folder), "--live"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until(lambda: (pat.folder / ".git" / "docmem-live.index").exists())
        pat.write("knowledge/first.md", "first\n")
        wait_until(lambda: store.snapshot().read("knowledge/first.md") is not None)
        pat.write("knowledge/last.md", "last\n")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0, out + err
    assert store.snapshot().read("knowledge/last.md") == b"last\n"
    assert "committed" in out
