"""Generated cases are read like any others, and the same seed gives the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from docmem.config import Settings
from docmem_evals import dialogues, generator, people, recall
from tests.support.cli import Shell


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def test_the_same_seed_gives_the_same_files_and_another_one_others(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        generator.write(tmp_path / name, size=30, seed=seed)
    assert content(tmp_path / "a") == content(tmp_path / "b")
    assert content(tmp_path / "a") != content(tmp_path / "c")


@pytest.mark.parametrize("size", [1, 7, 130])
def test_any_size_is_read_strictly(tmp_path: Path, size: int) -> None:
    generator.write(tmp_path, size=size)
    merges = dialogues.merges(tmp_path).cases
    assert len(merges) == 2 * size
    assert sum(bool(case.updates) for case in merges) == size
    assert sum(bool(case.deletes) for case in merges) == (size + 1) // 2
    asked = people.recalls(tmp_path).asked
    assert sum(each.kind == "near-duplicate" for each in asked) == size
    assert sum(each.kind == "same-name" for each in asked) == 2 * size


def test_people_of_one_name_in_two_tenants_get_nothing_of_each_other(tmp_path: Path, indexed: Settings) -> None:
    generator.write(tmp_path, kinds=["tenants"], size=8)
    done = recall.run(indexed, folder=tmp_path, max_leaks=0.0)
    assert done.passed
    assert done.metrics["recall@5"] == 1


def test_one_tenant_may_be_as_large_as_one_likes(tmp_path: Path) -> None:
    generator.write(tmp_path, kinds=["large"], size=5000)
    asked = people.recalls(tmp_path).asked
    [world] = people.worlds(asked)
    texts = [memory.text for memory in world.people.people["host"].memories.values()]
    assert (len(set(texts)), len(texts)) == (5006, 5006)


def test_a_folder_in_use_is_refused(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("cases: []")
    done = shell("eval", "generate", str(tmp_path), "--size", "3", "--json")
    assert done.code == 1
    assert "isn't empty" in done.json["error"]["message"]
    assert [file.name for file in tmp_path.iterdir()] == ["mine.yaml"]


def test_the_command_says_what_it_wrote(shell: Shell, tmp_path: Path) -> None:
    done = shell("eval", "generate", str(tmp_path / "made"), "--kind", "update", "--size", "30", "--json")
    assert done.json["files"] == {"update-0000.yaml": 25, "update-0001.yaml": 5}
