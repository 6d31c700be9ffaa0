"""Which old version of a file belongs to which new one: a memory is its id, a path tells only what has none."""

from __future__ import annotations

from docmem import files, layout, pairs
from docmem.git import Change
from tests.support.repos import memory, subject

TEA, BUS = memory("Ana likes tea."), memory("Ana takes the bus.", number=1)
A, B = (f"{layout.subject_dir(subject())}/memories/{name}.md" for name in "ab")
BYTES = {
    "tea": files.render_memory(TEA),
    "tea, broken": files.render_memory(TEA).replace(b"kind: fact", b"kind: ["),
    "bus": files.render_memory(BUS),
    "no id": b"Ana likes tea.\n",
}


def told(*changed: Change) -> list[tuple[str | None, str | None, str | None]]:
    """(id, path before, path after) of each pair."""
    found = pairs.pairs(changed, BYTES.__getitem__)
    return [(each.id, _path(each.old), _path(each.new)) for each in found]


def _path(half: pairs.Half | None) -> str | None:
    return half.path if half is not None else None


def test_an_id_goes_before_a_path() -> None:
    swap = (Change("M", A, "tea", "bus"), Change("M", B, "bus", "tea"))
    assert told(*swap) == [(BUS.id, B, A), (TEA.id, A, B)]
    assert told(Change("M", A, "tea", "bus"), Change("A", B, None, "tea")) == [(BUS.id, None, A), (TEA.id, A, B)]
    assert told(Change("M", A, "tea", "bus")) == [(TEA.id, A, None), (BUS.id, None, A)]


def test_a_path_tells_what_gives_no_id() -> None:
    assert told(Change("M", A, "tea", "no id"), Change("A", B, None, "bus")) == [(TEA.id, A, A), (BUS.id, None, B)]
    assert told(Change("M", A, "no id", "tea"), Change("D", B, "tea", None)) == [(None, A, None), (TEA.id, B, A)]
    assert told(Change("M", "knowledge/a.md", "x", "y")) == [(None, "knowledge/a.md", "knowledge/a.md")]


def test_a_file_that_is_broken_but_for_its_id_is_that_memory() -> None:
    assert told(Change("D", A, "tea", None), Change("A", B, None, "tea, broken")) == [(TEA.id, A, B)]


def test_of_two_files_with_one_id_the_one_that_stayed_is_it() -> None:
    copied = (Change("M", A, "tea", "tea, broken"), Change("A", B, None, "tea"))
    assert told(*copied) == [(TEA.id, A, A), (TEA.id, None, B)]
