from dataclasses import replace

import pytest

from docmem import files, git, layout, names, repository, revert
from docmem.config import Settings
from docmem.errors import InputError, NotFound
from docmem.git import Author
from docmem.model import Memory
from docmem.repository import Repository
from docmem.revert import Reverted
from tests.support.repos import NOW, memory, put, subject

SECRET = b"a secret for tests"
TEA = memory("Ana likes tea.")
BUS = memory("Ana takes the bus.", number=1)
PROFILE = layout.profile_path(subject())


@pytest.fixture
def repo(settings: Settings, tenant: str) -> Repository:
    return repository.open(settings, tenant)


def write(settings: Settings, *memories: Memory) -> str:
    return put(settings, "acme", {one.path: files.render_memory(one) for one in memories})


def take_back(repo: Repository, target: str) -> Reverted:
    return revert.apply(repo, target, now=NOW, author=Author("Priya", "priya@example.org"))


def texts(repo: Repository) -> list[str]:
    return sorted(stored.memory.text for stored in repo.snapshot().memories(subject()))


def test_reverting_a_commit_removes_what_it_learned_and_only_that(settings: Settings, repo: Repository) -> None:
    write(settings, BUS)
    wrong = write(settings, TEA)
    done = take_back(repo, wrong)
    assert done.changed == (TEA.path,)
    assert texts(repo) == ["Ana takes the bus."]
    assert repo.snapshot().reverted == {names.statement_hash(SECRET, subject(), TEA.text)}


def test_a_revert_is_one_commit_by_a_person_that_announces_its_deletions(settings: Settings, repo: Repository) -> None:
    from docmem import git

    wrong = write(settings, TEA)
    done = take_back(repo, wrong)
    commit = next(git.history(repo.git_dir, done.revision or ""))
    assert commit.author.name == "Priya"
    assert (commit.trailer("Docmem-Reverts"), commit.trailer("Docmem-Deletes")) == (wrong, "1")
    assert commit.parents == (wrong,)


def test_an_update_is_taken_back_to_the_text_before(settings: Settings, repo: Repository) -> None:
    write(settings, TEA)
    write(settings, replace(TEA, text="Ana hates tea."))
    take_back(repo, TEA.id)
    assert texts(repo) == ["Ana likes tea."]
    assert repo.snapshot().reverted == {names.statement_hash(SECRET, subject(), "Ana hates tea.")}


def test_a_neighbour_edited_since_is_no_conflict(settings: Settings, repo: Repository) -> None:
    both = write(settings, TEA, BUS)
    write(settings, replace(BUS, text="Ana takes the train."))
    done = take_back(repo, TEA.id)
    assert done.conflicts == ()
    assert texts(repo) == ["Ana takes the train."]
    assert take_back(repo, both).conflicts == (BUS.id,)
    assert texts(repo) == ["Ana takes the train."]


def test_another_key_edited_since_is_no_conflict(settings: Settings, repo: Repository) -> None:
    write(settings, TEA)
    wrong = write(settings, replace(TEA, text="Ana hates tea."))
    write(settings, replace(TEA, text="Ana hates tea.", importance=9))
    take_back(repo, wrong)
    [stored] = repo.snapshot().memories(subject())
    assert (stored.memory.text, stored.memory.importance) == ("Ana likes tea.", 9)


def test_a_real_conflict_names_the_memory_and_changes_nothing(settings: Settings, repo: Repository) -> None:
    write(settings, TEA)
    wrong = write(settings, replace(TEA, text="Ana hates tea."))
    head = write(settings, replace(TEA, text="Ana drinks coffee."))
    done = take_back(repo, wrong)
    assert (done.revision, done.conflicts) == (None, (TEA.id,))
    assert repo.head() == head


def test_a_deletion_is_taken_back_and_the_statement_may_be_learned_again(settings: Settings, repo: Repository) -> None:
    wrong = write(settings, TEA)
    removal = take_back(repo, wrong)
    take_back(repo, removal.revision or "")
    assert texts(repo) == ["Ana likes tea."]
    assert repo.snapshot().reverted == frozenset()


def test_reverting_twice_changes_nothing_more(settings: Settings, repo: Repository) -> None:
    wrong = write(settings, TEA)
    first = take_back(repo, wrong)
    assert take_back(repo, wrong) == Reverted(None, (), ())
    assert repo.head() == first.revision


def test_taking_a_memory_back_twice_does_not_bring_it_back(settings: Settings, repo: Repository) -> None:
    write(settings, TEA)
    write(settings, replace(TEA, text="Ana hates tea."))
    take_back(repo, TEA.id)
    assert take_back(repo, TEA.id) == Reverted(None, (), ())
    assert texts(repo) == ["Ana likes tea."]
    only = write(settings, BUS)
    take_back(repo, BUS.id)
    assert take_back(repo, BUS.id) == take_back(repo, only) == Reverted(None, (), ())
    assert texts(repo) == ["Ana likes tea."]


def test_a_memory_that_somebody_deleted_comes_back(settings: Settings, repo: Repository) -> None:
    write(settings, TEA)
    put(settings, "acme", {TEA.path: None})
    take_back(repo, TEA.id)
    assert texts(repo) == ["Ana likes tea."]


def test_a_memory_that_was_only_moved_since_is_moved_back_and_not_lost(settings: Settings, repo: Repository) -> None:
    write(settings, TEA)
    moved = f"{layout.subject_dir(subject())}/memories/renamed.md"
    put(settings, "acme", {TEA.path: None, moved: files.render_memory(TEA)})
    assert set(take_back(repo, TEA.id).changed) == {TEA.path, moved}
    assert texts(repo) == ["Ana likes tea."]
    assert take_back(repo, TEA.id).changed == ()


def test_a_moved_memory_is_taken_back_where_it_stands(settings: Settings, repo: Repository) -> None:
    wrong = write(settings, TEA)
    moved = f"{layout.subject_dir(subject())}/memories/renamed.md"
    put(settings, "acme", {TEA.path: None, moved: files.render_memory(TEA)})
    assert take_back(repo, wrong).changed == (moved,)
    assert texts(repo) == []


def test_a_move_is_taken_back(settings: Settings, repo: Repository) -> None:
    write(settings, TEA)
    moved = f"{layout.subject_dir(subject())}/memories/renamed.md"
    move = put(settings, "acme", {TEA.path: None, moved: files.render_memory(TEA)})
    take_back(repo, move)
    assert [stored.path for stored in repo.snapshot().memories(subject())] == [TEA.path]


def test_a_profile_is_taken_back_key_by_key_and_keeps_its_comments(settings: Settings, repo: Repository) -> None:
    put(settings, "acme", {PROFILE: b"# by hand\nlifecycle_stage: lead\nattributes:\n  diet: vegan  # says Ana\n"})
    wrong = put(
        settings,
        "acme",
        {PROFILE: b"# by hand\nlifecycle_stage: active\nattributes:\n  diet: vegan  # says Ana\n  party: two\n"},
    )
    put(
        settings,
        "acme",
        {PROFILE: b"# by hand\nlifecycle_stage: active\nattributes:\n  diet: vegetarian  # says Ana\n  party: two\n"},
    )
    take_back(repo, wrong)
    assert repo.snapshot().profile_bytes(subject()) == (
        b"# by hand\nlifecycle_stage: lead\nattributes:\n  diet: vegetarian  # says Ana\n"
    )


def test_a_document_is_taken_back_by_gits_merge(settings: Settings, repo: Repository) -> None:
    lines = [f"line {number}\n" for number in range(9)]
    put(settings, "acme", {"knowledge/a.md": "".join(lines).encode()})
    wrong = put(settings, "acme", {"knowledge/a.md": "".join(["wrong\n", *lines[1:]]).encode()})
    put(settings, "acme", {"knowledge/a.md": "".join(["wrong\n", *lines[1:8], "later\n"]).encode()})
    take_back(repo, wrong)
    assert repo.snapshot().read("knowledge/a.md") == "".join([*lines[:8], "later\n"]).encode()


def test_the_first_commit_and_strangers_are_not_taken_back(settings: Settings, repo: Repository) -> None:
    first = repo.head()
    assert first is not None
    write(settings, TEA)
    with pytest.raises(InputError, match="first commit"):
        take_back(repo, first)
    with pytest.raises(NotFound):
        take_back(repo, "1" * 40)
    with pytest.raises(NotFound):
        take_back(repo, "no such thing")


def test_the_watermark_of_a_reverted_window_stays(settings: Settings, repo: Repository) -> None:
    mark = layout.watermark_path("web-1")
    data = b"thread: web-1\nsubject: s\nlast_turn: t1\ninput_hash: x\n"
    wrong = put(settings, "acme", {TEA.path: files.render_memory(TEA), mark: data})
    take_back(repo, wrong)
    assert repo.snapshot().read(mark) == data


def test_the_commit_that_made_a_profile_is_taken_back_after_the_person_called_again(
    settings: Settings, repo: Repository
) -> None:
    made = put(settings, "acme", {PROFILE: b"attributes:\n  diet: vegan\nlast_interaction_at: 2026-05-01T00:00:00Z\n"})
    put(settings, "acme", {PROFILE: b"attributes:\n  diet: vegan\nlast_interaction_at: 2026-05-02T00:00:00Z\n"})
    assert take_back(repo, made).conflicts == ()
    assert repo.snapshot().profile(subject()).attributes == {}


def test_what_was_learned_since_stays_in_a_profile_whose_making_is_taken_back(
    settings: Settings, repo: Repository
) -> None:
    made = put(settings, "acme", {PROFILE: b"attributes:\n  diet: vegan\n"})
    put(settings, "acme", {PROFILE: b"# ours\nattributes:\n  diet: vegan\n  home_city: Ipoh\n"})
    assert take_back(repo, made).conflicts == ()
    assert repo.snapshot().profile_bytes(subject()) == b"# ours\nattributes:\n  home_city: Ipoh\n"


def test_a_profile_value_that_was_changed_since_is_a_conflict(settings: Settings, repo: Repository) -> None:
    made = put(settings, "acme", {PROFILE: b"attributes:\n  diet: vegan\n"})
    put(settings, "acme", {PROFILE: b"attributes:\n  diet: vegetarian\n"})
    assert take_back(repo, made).conflicts == (PROFILE,)


def test_what_was_learned_again_since_does_not_come_back_a_second_time(settings: Settings, repo: Repository) -> None:
    write(settings, TEA, BUS)
    gone = put(settings, "acme", {TEA.path: None, BUS.path: None})
    again = memory("Ana likes tea.", number=9)
    write(settings, again)
    done = take_back(repo, gone)
    assert (done.changed, done.conflicts) == ((BUS.path,), ())
    assert sorted(stored.memory.id for stored in repo.snapshot().memories(subject())) == sorted([again.id, BUS.id])


def test_a_text_that_another_memory_has_by_now_is_not_brought_back(settings: Settings, repo: Repository) -> None:
    write(settings, TEA)
    changed = write(settings, replace(TEA, text="Ana hates tea."))
    write(settings, memory("Ana likes tea.", number=9))
    done = take_back(repo, changed)
    assert (done.revision, done.conflicts) == (None, (TEA.id,))
    assert texts(repo) == ["Ana hates tea.", "Ana likes tea."]


def learn(settings: Settings, thread: str, changed: dict[str, bytes | None]) -> str:
    mark = {
        layout.watermark_path(thread): f"{thread} {len(changed)} {repository.open(settings, 'acme').head()}".encode()
    }
    message = f"Consolidate\n\nDocmem-Thread: {thread}\n"
    return put(settings, "acme", changed | mark, message)


def rendered(*memories: Memory) -> dict[str, bytes | None]:
    return {one.path: files.render_memory(one) for one in memories}


def test_all_that_a_conversation_taught_is_taken_back(settings: Settings, repo: Repository) -> None:
    write(settings, TEA)
    green = replace(TEA, text="Ana likes green tea.")
    learn(settings, "web-7", rendered(green, BUS))
    learn(settings, "web-8", rendered(memory("Ana swims.", number=2)))
    learn(settings, "web-7", rendered(replace(TEA, text="Ana likes white tea.")) | {BUS.path: None})
    learn(settings, "web-7", {PROFILE: b"attributes:\n  diet: vegan\n"})
    planned = revert.plan(repo, "web-7")
    assert planned.changed == sorted([TEA.path, PROFILE])
    done = take_back(repo, "web-7")
    assert done.conflicts == ()
    assert texts(repo) == ["Ana likes tea.", "Ana swims."]
    assert repo.snapshot().read(PROFILE) is None
    gone = {names.statement_hash(SECRET, subject(), text) for text in ("Ana likes white tea.", "Ana likes green tea.")}
    assert gone <= repo.snapshot().reverted
    assert repo.snapshot().read(layout.watermark_path("web-7")) is not None
    assert take_back(repo, "web-7") == Reverted(None, (), ())


def test_what_another_conversation_changed_since_is_a_conflict(settings: Settings, repo: Repository) -> None:
    learn(settings, "web-7", rendered(TEA))
    learn(settings, "web-8", rendered(replace(TEA, text="Ana likes green tea.")))
    learn(settings, "web-7", rendered(replace(TEA, text="Ana likes white tea.")))
    before = repo.head()
    assert take_back(repo, "web-7").conflicts == (TEA.id,)
    assert repo.head() == before


def test_a_large_revert_announces_what_it_deletes(settings: Settings, repo: Repository) -> None:
    learn(settings, "web-7", rendered(*(memory(f"Statement {n}.", number=n) for n in range(30))))
    take_back(repo, "web-7")
    [commit] = git.history(repo.git_dir, repo.head() or "", limit=1)
    assert (commit.subject, commit.trailer("Docmem-Deletes")) == ("Revert a conversation", "30")


def test_to_learn_again_the_watermark_goes_back_and_nothing_is_held_against_it(
    settings: Settings, repo: Repository
) -> None:
    first = learn(settings, "web-7", rendered(TEA))
    mark = repo.snapshot().read(layout.watermark_path("web-7"))
    second = learn(settings, "web-7", rendered(BUS))
    who = Author("Priya", "priya@example.org")
    revert.apply(repo, second, now=NOW, author=who, relearn=True)
    assert (texts(repo), repo.snapshot().read(layout.watermark_path("web-7"))) == (["Ana likes tea."], mark)
    revert.apply(repo, "web-7", now=NOW, author=who, relearn=True)
    assert (texts(repo), repo.snapshot().read(layout.watermark_path("web-7"))) == ([], None)
    assert repo.snapshot().reverted == frozenset()
    by_hand = write(settings, TEA)
    with pytest.raises(InputError, match="no conversation"):
        revert.plan(repo, by_hand, relearn=True)
    assert first
    with pytest.raises(NotFound, match="no commit, memory or conversation"):
        revert.plan(repo, "web-9")


A, B = (f"{layout.subject_dir(subject())}/memories/{name}.md" for name in "ab")
SWIM = memory("Ana swims at the lido.", number=4)


def where(repo: Repository) -> dict[str, str]:
    return {stored.path: stored.memory.text for stored in repo.snapshot().memories(subject())}


@pytest.fixture
def swapped(settings: Settings, repo: Repository) -> str:
    """Two memories that took each other's file name, in one commit."""
    put(settings, "acme", {A: files.render_memory(TEA), B: files.render_memory(BUS)})
    return put(settings, "acme", {A: files.render_memory(BUS), B: files.render_memory(TEA)})


@pytest.fixture
def reused(settings: Settings, repo: Repository) -> str:
    """A memory that moved, and a new one under the name that became free, in one commit."""
    put(settings, "acme", {A: files.render_memory(TEA)})
    return put(settings, "acme", {A: files.render_memory(SWIM), B: files.render_memory(TEA)})


def test_a_swap_of_names_is_taken_back_as_a_whole(repo: Repository, swapped: str) -> None:
    assert take_back(repo, swapped).conflicts == ()
    assert where(repo) == {A: TEA.text, B: BUS.text}


def test_of_a_swap_one_memory_alone_has_no_place_to_go_back_to(repo: Repository, swapped: str) -> None:
    assert take_back(repo, TEA.id) == Reverted(None, (), ())
    assert where(repo) == {A: BUS.text, B: TEA.text}


def test_a_name_that_was_given_to_another_memory_is_taken_back(repo: Repository, reused: str) -> None:
    assert take_back(repo, reused).conflicts == ()
    assert where(repo) == {A: TEA.text}


def test_the_memory_that_took_a_name_is_taken_back_alone(repo: Repository, reused: str) -> None:
    assert take_back(repo, TEA.id) == Reverted(None, (), ())
    assert take_back(repo, SWIM.id).changed == (A,)
    assert where(repo) == {B: TEA.text}
    assert set(take_back(repo, TEA.id).changed) == {A, B}
    assert where(repo) == {A: TEA.text}


def test_what_was_deleted_comes_back_beside_the_memory_that_has_its_name_by_now(
    settings: Settings, repo: Repository
) -> None:
    put(settings, "acme", {A: files.render_memory(TEA)})
    both = put(settings, "acme", {A: files.render_memory(SWIM)})
    assert take_back(repo, TEA.id).changed == (TEA.path,)
    assert where(repo) == {A: SWIM.text, TEA.path: TEA.text}
    assert take_back(repo, both).conflicts == ()
    assert TEA.text in texts(repo)
    assert SWIM.text not in texts(repo)


def test_deletions_are_announced_by_memory_and_not_by_file(repo: Repository, reused: str) -> None:
    planned = revert.plan(repo, reused)
    assert (planned.deletes, planned.files[A] is not None, planned.files[B]) == (1, True, None)
