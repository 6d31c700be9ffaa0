from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmem.model import Memory
from docmem.selection import by_words, select_existing

START = datetime(2026, 1, 1, tzinfo=UTC)


def memory(number: int, text: str = "The user likes tea.", *, age: int | None = 0) -> Memory:
    when = None if age is None else START - timedelta(days=age)
    return Memory(id=f"{number:016x}", kind="fact", text=text, subject="s", path="p", valid_from=when)


MEMORIES = st.lists(
    st.builds(memory, st.integers(0, 40), age=st.none() | st.integers(0, 9)),
    max_size=40,
    unique_by=lambda each: each.id,
)
RANKING = st.none() | st.lists(st.integers(0, 60).map(lambda number: f"{number:016x}"), max_size=60)


@given(MEMORIES, RANKING, st.integers(0, 20), st.integers(0, 20))
def test_the_rules_of_selection_hold(
    memories: list[Memory], ranking: list[str] | None, limit: int, wanted_quota: int
) -> None:
    quota = min(limit, wanted_quota)
    chosen = select_existing(memories, lambda: ranking, limit=limit, quota=quota)
    ids = [each.id for each in chosen.memories]
    newest = select_existing(memories, None, limit=len(memories), quota=0).memories
    assert len(ids) == min(limit, len(memories)) == len(set(ids))
    assert {each.id for each in newest[: limit - quota]} <= set(ids), "the backbone is always there"
    assert ids == [each.id for each in newest if each.id in ids], "newest first"
    assert chosen.total == len(memories)
    if chosen.truncated and (ranking is None or not quota):
        assert chosen.strategy == "recency"
        assert ids == [each.id for each in newest[:limit]]


@given(MEMORIES, st.integers(1, 10))
def test_the_best_found_fill_the_reserve(memories: list[Memory], quota: int) -> None:
    ranked = [each.id for each in sorted(memories, key=lambda each: each.id)]
    chosen = select_existing(memories, lambda: ranked, limit=quota, quota=quota)
    assert {each.id for each in chosen.memories} == set(ranked[:quota])


def test_no_search_runs_within_the_budget() -> None:
    def search() -> list[str]:
        raise AssertionError("not needed")

    chosen = select_existing([memory(1), memory(2)], search, limit=2, quota=1)
    assert (chosen.strategy, chosen.truncated) == ("all", False)


@pytest.mark.parametrize("late", [False, True])
def test_a_search_that_fails_leaves_recency_and_says_so(late: bool, caplog: pytest.LogCaptureFixture) -> None:
    def search() -> Iterator[str]:
        yield from ([f"{1:016x}"] if late else [])
        raise RuntimeError("the index is away: with a secret")

    memories = [memory(number, age=number) for number in range(5)]
    chosen = select_existing(memories, search, limit=3, quota=2)  # type: ignore[arg-type]
    assert (chosen.strategy, chosen.failed) == ("recency", "RuntimeError")
    assert [each.id for each in chosen.memories] == [each.id for each in memories[:3]]
    assert "by recency alone" in caplog.text
    assert "secret" not in caplog.text


def test_a_quota_over_the_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="quota"):
        select_existing([], limit=3, quota=4)


def test_words_rank_rare_ones_first_and_leave_out_what_shares_none() -> None:
    memories = [
        memory(1, "The user likes tea."),
        memory(2, "The user likes Lisbon."),
        memory(3, "The user likes coffee."),
    ]
    assert by_words(memories, "I like Lisbon!")[:1] == [f"{2:016x}"]  # type: ignore[index]
    assert by_words(memories, "bicycle") == []
    assert by_words(memories, "the of") is None
