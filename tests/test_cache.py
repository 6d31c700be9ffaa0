from __future__ import annotations

from docmem.cache import Cache


def test_the_least_recently_used_entry_goes_first() -> None:
    cache: Cache[str, int] = Cache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert [cache.get(key) for key in "abc"] == [1, None, 3]
    cache.clear()
    assert len(cache) == 0


def test_an_entry_lives_its_time() -> None:
    now = 0.0
    cache: Cache[str, int] = Cache(2, ttl=30, clock=lambda: now)
    cache.put("a", 1)
    now = 30.0
    assert cache.get("a") == 1
    now = 30.1
    assert cache.get("a") is None
    assert len(cache) == 0


def test_what_was_unused_longest_makes_room_by_weight() -> None:
    cache: Cache[str, str] = Cache(10, weigh=len, most=6)
    cache.put("a", "xx")
    cache.put("b", "xx")
    cache.put("a", "xxx")
    assert len(cache) == 2
    cache.put("c", "xx")
    assert [cache.get(key) for key in "abc"] == ["xxx", None, "xx"]
    cache.put("d", "x" * 7)  # heavier than all that there may be
    assert len(cache) == 0
    cache.put("e", "x" * 6)
    cache.drop(lambda key, value: value.startswith("x"))
    cache.put("f", "x" * 6)
    cache.discard("f")
    cache.discard("f")
    cache.put("g", "x" * 6)
    assert len(cache) == 1
