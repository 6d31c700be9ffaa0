from pathlib import Path

import pytest

from docmem import files, layout, repository
from docmem.config import Settings
from docmem.errors import AlreadyExists, FormatError, InvalidName, NotFound
from docmem.model import Marks, Watermark
from tests.support.repos import NOW, memory, put, subject


def test_a_new_tenant_has_the_template_in_one_commit(settings: Settings, tenant: str) -> None:
    repo = repository.open(settings, tenant)
    now = repo.snapshot()
    assert now.config.agent("default").topics
    assert {"README.md", "FORMAT.md", "docmem.yaml", ".gitattributes"} <= repository.template().keys()
    assert repository.tenants(settings) == ["acme"]


def test_the_example_in_format_md_is_a_valid_memory() -> None:
    text = repository.template()["FORMAT.md"].decode()
    example = text.split("```markdown\n")[1].split("```")[0].encode()
    path = layout.memory_path(subject(), "7f3a9c21d0b48e15", "x")
    assert files.render_memory(files.parse_memory(path, example)) == example


def test_the_profile_in_format_md_is_valid() -> None:
    text = repository.template()["FORMAT.md"].decode()
    example = text.split("```yaml\n")[1].split("```")[0].encode()
    assert files.parse_profile(layout.profile_path(subject()), example).pinned == ("home_city",)


def test_a_tenant_is_made_once(settings: Settings, tenant: str) -> None:
    with pytest.raises(AlreadyExists):
        repository.create(settings, tenant)


def test_a_missing_tenant_says_how_to_make_it(settings: Settings) -> None:
    with pytest.raises(NotFound) as caught:
        repository.open(settings, "globex")
    assert "docmem init globex" in caught.value.hint


@pytest.mark.parametrize("name", ["../acme", "ACME", "", "acme.git"])
def test_a_name_that_is_none_is_refused_before_the_disk_is_touched(settings: Settings, name: str) -> None:
    with pytest.raises(InvalidName):
        repository.create(settings, name)
    assert not settings.root.exists()


def test_an_empty_repo_says_that_main_has_no_commit(settings: Settings) -> None:
    from docmem import git

    git.init(settings.tenants / "bare.git")
    repo = repository.open(settings, "bare")
    assert repo.head() is None
    with pytest.raises(NotFound, match="no commit on main"):
        repo.snapshot()


def test_a_snapshot_reads_a_subject(settings: Settings, tenant: str) -> None:
    tea = memory("Ana likes tea.")
    mark = Watermark(thread="web-1", subject=subject(), agent="default", last_turn="t1", input_hash="x")
    put(
        settings,
        tenant,
        {
            tea.path: files.render_memory(tea),
            layout.profile_path(subject()): b"label: Ana\n",
            layout.watermark_path("web-1"): files.render_watermark(mark),
            layout.REVERTED: files.render_reverted(Marks(frozenset({"ab"}))),
        },
    )
    now = repository.open(settings, tenant).snapshot()
    assert [stored.memory for stored in now.memories(subject())] == [tea]
    assert now.profile(subject()).label == "Ana"
    assert now.watermark("web-1") == mark
    assert now.reverted == {"ab"}
    assert now.locate(tea.id) == [tea.path]
    assert now.memories(subject(value="bob")) == []
    assert now.profile(subject(value="bob")).attributes == {}


def test_a_file_that_does_not_parse_is_named_and_left_out(settings: Settings, tenant: str) -> None:
    tea = memory("Ana likes tea.")
    bad = f"{layout.subject_dir(subject())}/memories/bad.md"
    put(settings, tenant, {tea.path: files.render_memory(tea), bad: b'---\nd: "said "hi" twice"\n---\nx\n'})
    now = repository.open(settings, tenant).snapshot()
    assert [stored.path for stored in now.memories(subject())] == [tea.path]
    [(path, error)] = now.broken(subject())
    assert path == bad
    assert error.line == 2


def test_a_subjects_tree_moves_only_with_the_subject(settings: Settings, tenant: str) -> None:
    repo = repository.open(settings, tenant)
    tea = memory("Ana likes tea.")
    first = put(settings, tenant, {tea.path: files.render_memory(tea)})
    other = memory("Bob likes tea.", who="bob")
    second = put(settings, tenant, {other.path: files.render_memory(other)})
    assert repo.snapshot(first).subject_tree(subject()) == repo.snapshot(second).subject_tree(subject())
    third = put(settings, tenant, {layout.profile_path(subject()): b"label: Ana\n"})
    assert repo.snapshot(second).subject_tree(subject()) != repo.snapshot(third).subject_tree(subject())


@pytest.mark.parametrize("path", ["../x.md", ".git/config", "subjects", "docmem.yaml/x.md", "/x"])
def test_a_commit_refuses_paths_that_would_replace_or_leave(settings: Settings, tenant: str, path: str) -> None:
    tea = memory("Ana likes tea.")
    head = put(settings, tenant, {tea.path: files.render_memory(tea)})
    with pytest.raises(InvalidName):
        put(settings, tenant, {path: b"x"})
    assert repository.open(settings, tenant).head() == head


def test_a_broken_docmem_yaml_is_named_with_its_line(settings: Settings, tenant: str) -> None:
    put(settings, tenant, {layout.CONFIG: b"format: 1\npolicies:\n  retension: {}\n"})
    with pytest.raises(FormatError, match=r"docmem\.yaml, line 3: policies\.retension"):
        _ = repository.open(settings, tenant).snapshot().config


def test_a_format_from_the_future_says_upgrade(settings: Settings, tenant: str) -> None:
    put(settings, tenant, {layout.CONFIG: b"format: 2\n"})
    with pytest.raises(FormatError, match="reads format 1") as caught:
        _ = repository.open(settings, tenant).snapshot().config
    assert caught.value.hint == "upgrade docmem"


def test_a_commit_pokes_whoever_watches(settings: Settings, tenant: str) -> None:
    poke = settings.root / "poke" / tenant
    poke.unlink()
    put(settings, tenant, {"knowledge/a.md": b"x\n"})
    assert poke.exists()


def test_a_crash_while_making_a_tenant_leaves_none(settings: Settings, tmp_path: Path) -> None:
    (settings.tenants / ".acme.git.4711.new").mkdir(parents=True)
    assert repository.tenants(settings) == []
    assert repository.create(settings, "acme", now=NOW).head() is not None
