"""trace: what history says of a row, on commits made by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from docmem.git import Author, Change, Commit
from docmem_sync import trace

START = datetime(2026, 1, 1, tzinfo=UTC)
A, B = "subjects/a.md", "subjects/b.md"


def change(path: str, old: str | None, new: str | None) -> Change:
    return Change("A" if old is None else "D" if new is None else "M", path, old, new)


def history(*changes: list[Change], trailers: dict[int, str] | None = None) -> list[Commit]:
    """Commits c0, c1, … a day apart; newest first, as git tells them."""
    commits = [
        Commit(
            id=f"c{number}",
            parents=(),
            author=Author("a", "b"),
            when=START + timedelta(days=number),
            subject="",
            trailers={trace.DELETES: (trailers[number],)} if trailers and number in trailers else {},
            changes=tuple(changed),
        )
        for number, changed in enumerate(changes)
    ]
    return commits[::-1]


def day(number: int) -> datetime:
    return START + timedelta(days=number)


def test_a_file_is_as_old_as_its_beginning_and_as_new_as_its_last_change() -> None:
    commits = history([change(A, None, "1")], [change(B, None, "9")], [change(A, "1", "2")])
    found = trace.trace(commits, {A: A}, {})[A]
    assert (found.revision, found.created, found.updated, found.changes) == ("c2", day(0), day(2), 2)
    assert found.whole


def test_a_file_that_came_back_begins_again() -> None:
    commits = history([change(A, None, "1")], [change(A, "1", None)], [change(A, None, "1")])
    found = trace.trace(commits, {A: A}, {})[A]
    assert (found.revision, found.created, found.changes) == ("c2", day(2), 1)


def test_a_memory_is_followed_through_a_move_with_an_edit() -> None:
    commits = history([change(A, None, "1")], [change(A, "1", None), change(B, None, "2")])
    found = trace.trace(commits, {B: "x"}, {"1": "x", "2": "x"})["x"]
    assert (found.revision, found.created, found.changes) == ("c1", day(0), 2)


def test_two_memories_that_swap_their_paths_keep_their_own_past() -> None:
    commits = history(
        [change(A, None, "1")],
        [change(B, None, "2")],
        [change(A, "1", "2"), change(B, "2", "1")],
    )
    found = trace.trace(commits, {A: "y", B: "x"}, {"1": "x", "2": "y"})
    assert found["x"].created == day(0)
    assert found["y"].created == day(1)
    assert {item.revision for item in found.values()} == {"c2"}


def test_a_copy_that_came_and_went_leaves_no_mark_on_the_original() -> None:
    commits = history([change(A, None, "1")], [change(B, None, "1")], [change(B, "1", None)])
    found = trace.trace(commits, {A: "x"}, {"1": "x"})["x"]
    assert (found.revision, found.created) == ("c0", day(0))


def test_a_trace_that_does_not_reach_the_beginning_says_so() -> None:
    commits = history([change(A, None, "1")], [change(A, "1", "2")])
    assert not trace.trace(commits[:1], {A: A}, {})[A].whole


def test_deletions_are_announced_by_their_number() -> None:
    memory = "subjects/aa/bb/aabb" + "0" * 60 + "/memories/{}.md"
    paths = [memory.format(number) for number in range(3)]
    gone = [change(path, "1", None) for path in paths]
    assert trace.announced(history(gone, trailers={0: "3"})) == set(paths)
    assert trace.announced(history(gone, trailers={0: "2"})) == set()
    assert trace.announced(history(gone)) == set()


def test_the_first_of_two_files_with_one_id_keeps_it() -> None:
    commits = history([change(B, None, "1")], [change(A, None, "2")])
    assert trace.holder(commits, [A, B], "x", {"1": "x", "2": "x"}) == B
    at_once = history([change(B, None, "1"), change(A, None, "2")])
    assert trace.holder(at_once, [A, B], "x", {"1": "x", "2": "x"}) == A
