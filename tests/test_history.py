from dataclasses import replace

import pytest

from docmem import files, git, history, layout, repository
from docmem.config import Settings
from docmem.errors import InputError, NotFound
from docmem.model import Memory
from docmem.repository import Repository
from tests.support.repos import memory, put, subject

TEA = memory("Ana likes tea.")
BUS = memory("Ana takes the bus.", number=1)


@pytest.fixture
def repo(settings: Settings, tenant: str) -> Repository:
    return repository.open(settings, tenant)


def write(settings: Settings, *memories: Memory, message: str = "learn") -> str:
    return put(settings, "acme", {one.path: files.render_memory(one) for one in memories}, message)


def test_the_log_reads_as_memory(settings: Settings, repo: Repository) -> None:
    message = "Consolidate\n\nDocmem-Thread: web-1\nDocmem-Turns: t1 t2\n"
    mark = {layout.watermark_path("web-1"): b"x"}
    revision = put(settings, "acme", {TEA.path: files.render_memory(TEA)} | mark, message)
    entry = history.log(repo)[0].as_json()
    assert entry["revision"] == revision
    assert (entry["thread"], entry["turns"], entry["author"]) == ("web-1", ["t1", "t2"], "docmem")
    assert entry["changes"] == [{"op": "create", "id": TEA.id, "path": TEA.path, "file": "memory"}]


def test_why_tells_a_memorys_life_oldest_first(settings: Settings, repo: Repository) -> None:
    first = write(settings, TEA, message="learn\n\nDocmem-Thread: web-1\n")
    write(settings, BUS)
    second = write(settings, replace(TEA, text="Ana likes green tea."))
    third = put(settings, "acme", {TEA.path: None})
    life = history.why(repo, TEA.id)
    assert [(step.revision, step.op, step.text) for step in life.steps] == [
        (first, "create", "Ana likes tea."),
        (second, "update", "Ana likes green tea."),
        (third, "delete", None),
    ]
    assert life.steps[0].as_json()["thread"] == "web-1"
    assert (life.steps[0].turns, life.steps[0].quote) == (("t1",), "quote")
    assert life.text is None


def test_a_memory_is_found_by_the_start_of_its_id_and_by_words(settings: Settings, repo: Repository) -> None:
    write(settings, TEA, BUS)
    assert history.why(repo, TEA.id[:6]).id == TEA.id
    assert history.why(repo, "likes TEA").id == TEA.id
    with pytest.raises(InputError, match="2 memories"):
        history.why(repo, "Ana")
    with pytest.raises(NotFound):
        history.why(repo, "coffee (or .* not")


def test_why_follows_a_file_that_moved(settings: Settings, repo: Repository) -> None:
    write(settings, TEA)
    moved = f"{layout.subject_dir(subject())}/memories/renamed.md"
    put(settings, "acme", {TEA.path: None, moved: files.render_memory(TEA)})
    life = history.why(repo, TEA.id)
    assert [step.op for step in life.steps] == ["create", "move"]
    assert life.path == moved


def test_diff_shows_texts_before_and_after(settings: Settings, repo: Repository) -> None:
    first = write(settings, TEA)
    second = write(settings, replace(TEA, text="Ana likes green tea."))
    [edit] = history.diff(repo, None, second)
    assert (edit.op, edit.before, edit.after) == ("update", "Ana likes tea.", "Ana likes green tea.")
    assert history.diff(repo, first, first) == []
    assert "+Ana likes green tea." in history.patch(repo, None, second)


def test_the_first_commit_has_a_diff_too(repo: Repository) -> None:
    head = repo.head()
    assert head is not None
    assert {edit.path for edit in history.diff(repo, None, head)} == repository.template().keys()
    assert "+format: 1" in history.patch(repo, None, head)


def test_an_empty_branch_has_an_empty_log(settings: Settings) -> None:
    git.init(settings.tenants / "bare.git")
    assert history.log(repository.open(settings, "bare")) == []
