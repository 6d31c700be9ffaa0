import subprocess
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from docmem import files, git, history, layout, pairs, repository, revert
from docmem.config import Settings
from docmem.errors import InputError, NotFound
from docmem.history import Span
from docmem.model import Memory
from docmem.repository import Repository
from tests.support.repos import NOW, memory, put, subject

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


def at_hour(settings: Settings, hour: int, *memories: Memory, message: str = "learn") -> str:
    repo = repository.open(settings, "acme")
    changed = {one.path: files.render_memory(one) for one in memories}
    with repo.locked():
        return repo.commit(repo.head(), changed, message=message, now=hours(hour))


def hours(hour: int) -> datetime:
    return datetime(2030, 5, 2, hour, tzinfo=UTC)


def test_time_ranges_go_by_when_a_commit_took_effect_and_not_by_its_clock(settings: Settings, repo: Repository) -> None:
    first = at_hour(settings, 8, TEA)
    slow = skewed(settings, hours(3), BUS)  # pushed by somebody whose clock is five hours behind
    last = at_hour(settings, 12, replace(TEA, text="Ana likes green tea."))
    assert [entry.revision for entry in history.log(repo, span=Span(since=hours(8)))] == [last, slow, first]
    assert [entry.when for entry in history.log(repo, span=Span(since=hours(8)))] == [hours(12), hours(8), hours(8)]
    assert [entry.revision for entry in history.log(repo, span=Span(hours(9), hours(12)))] == [last]
    assert [entry.revision for entry in history.log(repo, span=Span(until=hours(11)))][:2] == [slow, first]
    assert history.log(repo, span=Span(since=hours(13))) == []
    assert history.log(repo, span=Span(until=datetime(1999, 1, 1, tzinfo=UTC))) == []
    assert [step.when for step in history.why(repo, BUS.id).steps] == [hours(8)]


def skewed(settings: Settings, when: datetime, one: Memory) -> str:
    """A commit of plain git, whose clock is what it is."""
    repo = repository.open(settings, "acme")
    stream = (
        f"commit refs/heads/main\ncommitter Ana <ana@example.org> {int(when.timestamp())} +0000\n"
        f"data 4\nskew\nfrom {repo.head()}\nM 100644 inline {one.path}\ndata {len(files.render_memory(one))}\n"
    ).encode() + files.render_memory(one)
    subprocess.run(
        ["git", "--git-dir", str(repo.git_dir), "fast-import", "--quiet"], input=stream, check=True, capture_output=True
    )
    return repo.head() or ""


def test_what_was_remembered_at_a_time(settings: Settings, repo: Repository) -> None:
    at_hour(settings, 8, TEA)
    then = at_hour(settings, 9, replace(TEA, text="Ana likes green tea."))
    at_hour(settings, 10, BUS)
    assert history.at(repo, hours(9)) == history.at(repo, hours(9).replace(minute=59)) == then
    assert history.at(repo, datetime(1999, 1, 1, tzinfo=UTC)) is None
    [ana] = history.remembered(repo, then)
    assert [stored.memory.text for stored in ana.memories] == ["Ana likes green tea."]
    assert history.remembered(repo, then, subject(value="bob"))[0].memories == ()


def test_what_a_conversation_taught_is_told_together(settings: Settings, repo: Repository) -> None:
    said = "learn\n\nDocmem-Thread: web-7\n"
    first = write(settings, TEA, message=said)
    write(settings, BUS, message="learn\n\nDocmem-Thread: web-77\n")
    second = write(settings, replace(TEA, text="Ana likes green tea."), message=said)
    assert [entry.revision for entry in history.log(repo, thread="web-7")] == [second, first]
    assert [entry.revision for entry in history.log(repo, thread="web-7", limit=1)] == [second]
    [edit] = history.thread_diff(repo, "web-7")
    assert (edit.op, edit.before, edit.after) == ("create", None, "Ana likes green tea.")
    assert history.thread_diff(repo, "nobody's") == []


def test_a_diff_can_be_of_one_subject_or_memory(settings: Settings, repo: Repository) -> None:
    first = repo.head()
    bob = memory("Bob skis.", who="bob")
    last = write(settings, TEA, BUS, bob)
    of_bob = history.diff(repo, first, last, paths=history.paths_of(repo, subject=subject(value="bob")))
    assert [edit.id for edit in of_bob] == [bob.id]
    of_tea = history.diff(repo, first, last, paths=history.paths_of(repo, memory=TEA.id))
    assert [edit.id for edit in of_tea] == [TEA.id]


def test_a_memory_in_a_file_of_another_name_is_found_by_its_id(settings: Settings, repo: Repository) -> None:
    path = f"{layout.subject_dir(subject())}/memories/by-hand.md"
    put(settings, "acme", {path: files.render_memory(TEA)})
    write(settings, BUS)
    assert repo.snapshot().locate(TEA.id) == [path]
    assert repo.snapshot().locate(BUS.id) == [BUS.path]
    assert sorted(repo.snapshot().locate("")) == sorted([path, BUS.path])


def test_the_graph_of_changed_paths_changes_no_answer(settings: Settings, repo: Repository) -> None:
    write(settings, TEA)
    moved = f"{layout.subject_dir(subject())}/memories/renamed.md"
    put(settings, "acme", {TEA.path: None, moved: files.render_memory(TEA)})
    before = history.why(repo, TEA.id)
    git.write_commit_graph(repo.git_dir)
    assert history.why(repo, TEA.id) == before


def test_an_empty_branch_has_an_empty_log(settings: Settings) -> None:
    git.init(settings.tenants / "bare.git")
    assert history.log(repository.open(settings, "bare")) == []


def by_another_name(name: str) -> str:
    return f"{layout.subject_dir(subject())}/memories/{name}.md"


def test_a_memory_whose_file_is_not_named_after_it_is_found_by_id_once_it_is_gone(
    settings: Settings, repo: Repository
) -> None:
    write(settings, BUS)
    tea = by_another_name("what-she-drinks")
    made = put(settings, "acme", {tea: files.render_memory(TEA)})
    changed = put(settings, "acme", {tea: files.render_memory(replace(TEA, text="Ana likes green tea."))})
    gone = put(settings, "acme", {tea: None})
    for name in (TEA.id, TEA.id[:6]):
        life = history.why(repo, name)
        assert [step.revision for step in life.steps] == [made, changed, gone]
        assert (life.id, life.path, life.text) == (TEA.id, tea, None)
    assert history.paths_of(repo, memory=TEA.id) == [tea]
    assert revert.plan(repo, TEA.id).changed == [tea]
    assert history.find_memory(repo, "f" * 16) is None


def test_why_follows_a_memory_to_names_it_had_later_and_before_a_person_wrote_it_again(
    settings: Settings, repo: Repository
) -> None:
    """A move away from the file that carries the id, and a deletion here with a new file there, in two commits."""
    first, second = by_another_name("one"), by_another_name("two")
    write(settings, TEA)
    put(settings, "acme", {TEA.path: None, first: files.render_memory(TEA)})
    put(settings, "acme", {first: None})
    assert [step.op for step in history.why(repo, TEA.id).steps] == ["create", "move", "delete"]
    with repo.locked():
        pat = git.Author("Pat", "pat@example.com")
        repo.commit(repo.head(), {second: files.render_memory(TEA)}, message="By hand", now=NOW, author=pat)
    life = history.why(repo, TEA.id)
    assert [(step.op, step.path) for step in life.steps] == [
        ("create", TEA.path),
        ("move", first),
        ("delete", first),
        ("create", second),
    ]


def test_a_file_named_after_another_memory_is_not_taken_for_it(settings: Settings, repo: Repository) -> None:
    put(settings, "acme", {by_another_name(f"tea-{TEA.id}"): files.render_memory(BUS)})
    put(settings, "acme", {by_another_name(f"tea-{TEA.id}"): None})
    assert history.find_memory(repo, TEA.id) is None
    assert history.why(repo, BUS.id).id == BUS.id


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"---\nkind: fact\nid: 7f3a9c21d0b48e15\n---\nText.\n", True),
        (b"\xef\xbb\xbf---\r\nid: '7f3a9c21d0b48e15'\r\n---\r\nText.\r\n", True),
        (b"---\n{id: 7f3a9c21d0b48e15, kind: fact}\n---\nText.\n", True),
        (b'---\nid: 7f3a9c21d0b48e15\ndescription: "broken" head"\n', True),
        (b"---\nid: 7f3a9c21d0b48e15 # as of old\n---\nText.\n", True),
        (b"# Format\n\n---\nid: 7f3a9c21d0b48e15\n---\n", False),
        (b"---\ntitle: x\n---\nid: 7f3a9c21d0b48e15\n", False),
        (b"id: 7f3a9c21d0b48e15\n", False),
        (b"---\nid: 7f3a9c21d0b48e1\n---\n", False),
        (b"", False),
    ],
)
def test_an_id_is_what_the_head_says_however_it_is_written(data: bytes, found: bool) -> None:
    assert pairs.claimed_id(data) == ("7f3a9c21d0b48e15" if found else None)


def test_a_path_that_was_a_symlink_for_a_while_breaks_nothing(settings: Settings, repo: Repository) -> None:
    write(settings, TEA)
    stream = f"commit refs/heads/main\ncommitter x <x@example.com> 1700000000 +0000\ndata 1\nx\nfrom {repo.head()}\n"
    stream += f"M 120000 inline {TEA.path}\ndata 3\n../\n"
    git_dir = ["git", "--git-dir", str(repo.git_dir)]
    subprocess.run([*git_dir, "fast-import", "--quiet"], input=stream.encode(), check=True)
    put(settings, "acme", {TEA.path: files.render_memory(TEA)})
    assert [step.op for step in history.why(repo, TEA.id).steps] == ["create", "delete", "create"]


def test_a_memory_is_its_id_where_two_swap_their_names(settings: Settings, repo: Repository) -> None:
    a, b = by_another_name("a"), by_another_name("b")
    made = put(settings, "acme", {a: files.render_memory(TEA), b: files.render_memory(BUS)})
    swap = put(settings, "acme", {a: files.render_memory(BUS), b: files.render_memory(TEA)})
    for one, paths in ((TEA, [a, b]), (BUS, [b, a])):
        life = history.why(repo, one.id)
        assert [(step.revision, step.op, step.path) for step in life.steps] == [
            (made, "create", paths[0]),
            (swap, "move", paths[1]),
        ]
        assert (life.path, life.text) == (paths[1], one.text)
        listed = history.log(repo, paths=history.paths_of(repo, memory=one.id), memory=one.id)
        assert [(entry.revision, [edit.id for edit in entry.edits]) for entry in listed] == [
            (swap, [one.id]),
            (made, [one.id]),
        ]
    assert [(edit.op, edit.moved_from) for edit in history.diff(repo, None, swap)] == [("move", b), ("move", a)]
    [edit] = history.diff(repo, made, swap, memory=TEA.id)
    assert (edit.before, edit.after) == (TEA.text, TEA.text)


def test_a_new_memory_under_a_name_that_became_free_is_new(settings: Settings, repo: Repository) -> None:
    a, b = by_another_name("a"), by_another_name("b")
    put(settings, "acme", {a: files.render_memory(TEA)})
    reuse = put(settings, "acme", {a: files.render_memory(BUS), b: files.render_memory(TEA)})
    assert [(edit.op, edit.id) for edit in history.diff(repo, None, reuse)] == [("create", BUS.id), ("move", TEA.id)]
    assert [step.op for step in history.why(repo, BUS.id).steps] == ["create"]
    assert [step.op for step in history.why(repo, TEA.id).steps] == ["create", "move"]
    over = put(settings, "acme", {a: files.render_memory(TEA), b: None})
    assert [(edit.op, edit.id) for edit in history.diff(repo, None, over)] == [("delete", BUS.id), ("move", TEA.id)]
    last = history.why(repo, BUS.id).steps[-1]
    assert (last.op, last.quote, last.text) == ("delete", None, None)
    assert history.changed_last(repo, BUS.id) == over


def test_a_memory_whose_file_cannot_be_read_any_more_is_not_gone(settings: Settings, repo: Repository) -> None:
    write(settings, TEA)
    put(settings, "acme", {TEA.path: files.render_memory(TEA).replace(b"kind: fact", b"kind: [")})
    life = history.why(repo, TEA.id)
    assert (life.text, life.readable, [step.op for step in life.steps]) == (TEA.text, False, ["create", "update"])
    put(settings, "acme", {TEA.path: None})
    assert (history.why(repo, TEA.id).text, history.why(repo, TEA.id).readable) == (None, True)
