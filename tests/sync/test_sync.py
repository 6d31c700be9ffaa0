"""sync: a tenant's branch in Postgres, whatever the branch went through."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from docmem import git, layout, repository
from docmem.config import Settings
from docmem.errors import GuardStop, NotFound
from docmem.files import render_memory
from docmem.git import process
from docmem.model import Memory
from docmem_sync.ledger import At, Ledger
from docmem_sync.sync import TenantSync, sync_all, sync_tenant
from tests.support.cli import Shell
from tests.support.index import Clone, rows, whole_index
from tests.support.repos import memory, put, subject

MEMORIES = "SELECT id, path, text, created_at, updated_at, revision FROM docmem.memory ORDER BY id"
FOLDER = layout.subject_dir(subject()) + "/memories"
PROFILE = layout.profile_path(subject())

pytestmark = pytest.mark.usefixtures("tenant")


def sync(settings: Settings, **options: Any) -> TenantSync:
    return sync_tenant(settings, "acme", **options)


def stored(*memories: Memory) -> dict[str, bytes | None]:
    return {item.path: render_memory(item) for item in memories}


def texts(settings: Settings) -> list[str]:
    return sorted(row["text"] for row in rows(settings, MEMORIES))


def waiting(done: TenantSync) -> dict[str, tuple[str, int]]:
    return {item.path: (item.code, item.line) for item in done.quarantined}


def assert_as_built_anew(settings: Settings) -> None:
    """The index says what one built anew from the repo says."""
    brought_along = whole_index(settings)
    sync(settings, rebuild=True)
    assert whole_index(settings) == brought_along


# --- the plain way


def test_a_commit_becomes_rows_and_a_second_sync_writes_none(indexed: Settings) -> None:
    one = memory("Likes tea.", topic="drinks", number=1)
    profile = b"label: Ana\nlocale: pt_PT\nattributes: {diet: vegetarian}\npinned: [diet]\nextra: kept\n"
    revision = put(
        indexed, "acme", {**stored(one), PROFILE: profile, "knowledge/visa.md": b"---\nteam: x\n---\n# Visa\ntext\n"}
    )
    done = sync(indexed)
    assert (done.before, done.after, done.upserts, done.deletes) == (None, revision, 3, 0)
    (row,) = rows(indexed, "SELECT * FROM docmem.memory")
    assert (row["id"], row["text"], row["topic"], row["revision"]) == (one.id, one.text, "drinks", revision)
    assert (row["thread"], row["turns"], row["quote"]) == ("web-1", ["t1"], "quote")
    (row,) = rows(indexed, "SELECT * FROM docmem.profile")
    assert (row["label"], row["locale"], row["attributes"], row["pinned"], row["version"], row["meta"]) == (
        "Ana",
        "pt_PT",
        {"diet": "vegetarian"},
        ["diet"],
        1,
        {"extra": "kept"},
    )
    (row,) = rows(indexed, "SELECT * FROM docmem.document")
    assert (row["title"], row["folder"], row["meta"]) == ("Visa", "knowledge", {"team": "x"})
    before = whole_index(indexed)
    again = sync(indexed)
    assert (again.upserts, again.deletes, again.unchanged, again.before) == (0, 0, 3, revision)
    assert whole_index(indexed) == before


def test_an_edit_an_addition_and_a_deletion_reach_their_rows_alone(indexed: Settings) -> None:
    one, two, three = (memory(f"Memory {number}", number=number) for number in range(3))
    first = put(indexed, "acme", stored(one, two))
    sync(indexed)
    second = put(indexed, "acme", {**stored(replace(one, text="Changed."), three), two.path: None})
    done = sync(indexed)
    assert (done.upserts, done.deletes, done.unchanged) == (2, 1, 0)
    found = {row["id"]: row for row in rows(indexed, MEMORIES)}
    assert found.keys() == {one.id, three.id}
    assert (found[one.id]["text"], found[one.id]["revision"]) == ("Changed.", second)
    assert first != second
    assert_as_built_anew(indexed)


def test_json_has_the_documented_shape(indexed: Settings) -> None:
    put(indexed, "acme", {f"{FOLDER}/bad.md": b"no head\n"})
    shown = json.loads(json.dumps(sync(indexed).as_json()))
    keys = "tenant from to upserts deletes unchanged embedded pending_embeddings reconciled quarantined seconds"
    assert shown.keys() == set(keys.split())
    assert shown["quarantined"] == [{"path": f"{FOLDER}/bad.md", "code": "no_head", "line": 1}]


def test_a_profiles_version_counts_the_commits_that_changed_it(indexed: Settings) -> None:
    def version() -> int:
        return int(rows(indexed, "SELECT version FROM docmem.profile")[0]["version"])

    put(indexed, "acme", {PROFILE: b"label: a\n"})
    put(indexed, "acme", {PROFILE: b"label: b\n"})
    sync(indexed)
    assert version() == 2
    put(indexed, "acme", {"knowledge/a.md": b"unrelated\n"})
    for label in (b"c", b"d", b"e"):
        put(indexed, "acme", {PROFILE: b"label: " + label + b"\n"})
    sync(indexed)
    assert version() == 5
    assert_as_built_anew(indexed)


def test_each_tenant_has_its_own_rows(indexed: Settings) -> None:
    repository.create(indexed, "other")
    for tenant in ("acme", "other"):
        put(indexed, tenant, {"knowledge/readme.md": tenant.encode()})
    sync_all(indexed, ["acme", "other"])
    put(indexed, "acme", {"knowledge/readme.md": None})
    sync(indexed)
    query = "SELECT text FROM docmem.document"
    assert rows(indexed, query) == []
    assert rows(indexed, query, tenant="other") == [{"text": "other"}]


def test_what_stops_one_tenant_does_not_stop_the_others(indexed: Settings) -> None:
    repository.create(indexed, "other")
    done = sync_all(indexed, ["missing", "other"])
    assert [one.error and one.error.code for one in done] == ["not_found", None]
    assert done[1].after is not None


# --- files that can't be read


def test_a_file_and_its_twin_with_another_line_end_are_read_alike(indexed: Settings) -> None:
    """Case F1."""
    unix, dos = memory("One\n\ntwo", number=1), memory("One\n\ntwo", number=2)
    data = render_memory(dos).replace(b"\n", b"\r\n")
    put(indexed, "acme", {**stored(unix), dos.path: b"\xef\xbb\xbf" + data})
    assert sync(indexed).upserts == 2
    found = rows(indexed, "SELECT text, projection_hash FROM docmem.memory")
    assert found[0] == found[1]
    assert sync(indexed).upserts == 0


def test_what_yaml_would_misread_reaches_the_index_as_written(indexed: Settings) -> None:
    """Case F3."""
    head = b"""title: 2026-05-26
country: NO
at: 22:30
code: 0012
ver: 1.10
nick: ~
on: x
due: 2025-13-45
description: wrapped
  to a second line
"""
    put(indexed, "acme", {"knowledge/a.md": b"---\n" + head + b"---\ntext\n"})
    assert sync(indexed).quarantined == ()
    (row,) = rows(indexed, "SELECT title, meta FROM docmem.document")
    assert row["title"] == "2026-05-26"
    assert row["meta"] == {
        "title": "2026-05-26",
        "country": "NO",
        "at": "22:30",
        "code": "0012",
        "ver": "1.10",
        "nick": None,
        "on": "x",
        "due": "2025-13-45",
        "description": "wrapped to a second line",
    }


BROKEN = {
    "knowledge/colon.md": (b"---\npath: C:\\x: y\n---\ntext\n", "yaml"),
    "knowledge/star.md": (b"---\ntitle: *x*\n---\ntext\n", "yaml"),
    "knowledge/heads.md": (b"---\na: b\n---\n---\nc: d\n---\ntext\n", "two_heads"),
    "knowledge/conflict.md": (b"one\n<<<<<<< HEAD\ntwo\n=======\nthree\n>>>>>>> x\n", "conflict_marker"),
    "knowledge/bytes.md": (b"\xff\xfe\n", "not_utf8"),
}
FINE = {
    "knowledge/open.md": b"---\nnot a head, since nothing closes it\n",
    "knowledge/rules.md": b"text\n\n---\n\nmore\n\n---\n",
    "knowledge/sample.md": b"```\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n```\n",
}


def test_bad_files_wait_in_quarantine_and_everything_else_goes_on(indexed: Settings) -> None:
    """Cases F4 and F14."""
    good: dict[str, bytes | None] = dict.fromkeys(BROKEN, b"good\n")
    put(indexed, "acme", good)
    first = sync(indexed)
    bad: dict[str, bytes | None] = {path: data for path, (data, _) in BROKEN.items()}
    put(indexed, "acme", {**bad, **FINE})
    last = put(indexed, "acme", {"knowledge/c.md": b"C\n"})
    done = sync(indexed)
    assert done.after == last
    assert {path: code for path, (code, _) in waiting(done).items()} == {
        path: code for path, (_, code) in BROKEN.items()
    }
    assert waiting(done)["knowledge/conflict.md"] == ("conflict_marker", 2)
    assert waiting(done)["knowledge/colon.md"][1] == 2
    found = {row["path"]: row for row in rows(indexed, "SELECT path, text, revision FROM docmem.document")}
    assert found.keys() == {*BROKEN, *FINE, "knowledge/c.md"}
    assert {(found[path]["text"], found[path]["revision"]) for path in BROKEN} == {("good", first.after)}
    assert sync(indexed).quarantined == done.quarantined
    assert_as_built_anew(indexed)


def test_a_file_in_quarantine_is_tried_again_when_its_blob_changes(indexed: Settings) -> None:
    put(indexed, "acme", {"knowledge/a.md": b"---\ntitle: *x*\n---\n", "knowledge/b.md": b"---\ntitle: *x*\n---\n"})
    assert len(sync(indexed).quarantined) == 2
    put(indexed, "acme", {"knowledge/c.md": b"c\n"})
    since = rows(indexed, "SELECT path, since FROM docmem.quarantine ORDER BY path")
    sync(indexed)
    assert rows(indexed, "SELECT path, since FROM docmem.quarantine ORDER BY path") == since
    put(indexed, "acme", {"knowledge/a.md": b"mended\n", "knowledge/b.md": None})
    assert sync(indexed).quarantined == ()
    assert_as_built_anew(indexed)


def test_a_broken_file_that_is_deleted_takes_its_row_along(indexed: Settings) -> None:
    one = memory("Likes tea.")
    put(indexed, "acme", stored(one))
    sync(indexed)
    put(indexed, "acme", {one.path: b"---\nid: *x*\n---\n"})
    assert waiting(sync(indexed))[one.path] == ("yaml", 2)
    assert texts(indexed) == ["Likes tea."]
    put(indexed, "acme", {one.path: None})
    done = sync(indexed)
    assert (done.deletes, done.quarantined, texts(indexed)) == (1, (), [])


def test_the_last_good_version_is_served_even_if_it_was_never_synced(indexed: Settings) -> None:
    one = memory("Likes tea.")
    put(indexed, "acme", stored(one))
    good = put(indexed, "acme", stored(replace(one, text="Likes green tea.")))
    put(indexed, "acme", {one.path: b"<<<<<<< HEAD\n"})
    put(indexed, "acme", {one.path: b"\xff"})
    done = sync(indexed)
    assert waiting(done) == {one.path: ("not_utf8", 1)}
    (row,) = rows(indexed, MEMORIES)
    assert (row["text"], row["revision"]) == ("Likes green tea.", good)
    assert_as_built_anew(indexed)


def test_a_file_that_names_its_tenant_is_refused(indexed: Settings) -> None:
    """Case C5."""
    one = replace(memory("Likes tea."), meta={"tenant": "other"})
    put(indexed, "acme", stored(one))
    assert waiting(sync(indexed))[one.path][0] == "tenant_in_file"


def test_odd_characters_are_taken_out_and_cause_no_churn(indexed: Settings) -> None:
    """Case F5."""
    one, two = memory("x", number=1), memory("A family 👨‍👩‍👧 in a café", number=2)
    odd = (
        render_memory(one)
        .replace(b"\nx\n", b"\na\0b\n")
        .replace(b"---\nid", b'---\ntag: "a\\u0000b"\nnested: {"k\\0": ["\\0v"]}\nid')
    )
    put(indexed, "acme", {one.path: odd, **stored(two)})
    assert sync(indexed).quarantined == ()
    found = {row["id"]: row for row in rows(indexed, "SELECT id, text, meta FROM docmem.memory")}
    assert found[one.id]["text"] == "ab"
    assert found[one.id]["meta"] == {"tag": "ab", "nested": {"k": ["v"]}}
    assert found[two.id]["text"] == two.text
    assert sync(indexed, rebuild=True).upserts == 0


@pytest.mark.parametrize("name", ["Ärger 记录.md", "a\tb.md", "a\nb.md", "-rf.md", 'q"uote.md', "per%cent.md"])
def test_odd_paths_are_added_edited_and_deleted(indexed: Settings, name: str) -> None:
    """Case F7."""
    path = f"knowledge/{name}"
    for data in (b"one\n", b"two\n"):
        put(indexed, "acme", {path: data})
        assert sync(indexed).upserts == 1
        assert rows(indexed, "SELECT path, text FROM docmem.document") == [
            {"path": path, "text": data.decode().strip()}
        ]
    put(indexed, "acme", {path: None})
    assert sync(indexed).deletes == 1
    assert rows(indexed, "SELECT path FROM docmem.document") == []


def test_a_path_no_index_can_hold_is_quarantined(indexed: Settings) -> None:
    latin, long = "knowledge/caf\udce9.md", "knowledge/" + "/".join(["x" * 200] * 6) + "/a.md"
    repo = repository.open(indexed, "acme")
    git.commit(
        repo.git_dir,
        base=repo.head(),
        files={latin: b"a\n", long: b"b\n", "knowledge/good.md": b"c\n"},
        message="odd",
        when=memory("x").valid_from,  # type: ignore[arg-type]
    )
    done = sync(indexed)
    assert sorted(code for code, _ in waiting(done).values()) == ["bad_path", "bad_path"]
    assert [row["path"] for row in rows(indexed, "SELECT path FROM docmem.document")] == ["knowledge/good.md"]
    assert_as_built_anew(indexed)


def test_huge_texts_are_limited_or_cut_up_and_the_rest_goes_on(indexed: Settings) -> None:
    """Case F18."""
    words = " ".join(f"word{number:06d}" for number in range(60_000))
    files: dict[str, bytes | None] = {
        "corpus/body.md": (words + "\n" + "x" * 2_000_000).encode(),
        "corpus/words.md": words.encode(),
        "corpus/line.md": b"y" * 300_000,
        "corpus/heading.md": b"# " + b"h" * 300_000 + b"\ntext\n",
        "corpus/blanks.md": b"# a" + b" " * 100_000 + b"b\n",
        "corpus/carons.md": ("ˇ" * 6_000).encode(),
        **stored(memory("Likes tea."), replace(memory("z", number=2), text="ˇ" * 6_000)),
        **stored(replace(memory("w", number=3), text="z" * 20_000)),
    }
    put(indexed, "acme", files)
    done = sync(indexed)
    assert {code for code, _ in waiting(done).values()} == {"too_large", "text_size"}
    assert "Likes tea." in texts(indexed)
    found = rows(
        indexed,
        "SELECT path, string_agg(text, '' ORDER BY chunk) AS text, max(length(text)) AS longest FROM docmem.document "
        "GROUP BY path",
    )
    assert {row["path"]: len(row["text"]) for row in found}["corpus/words.md"] == len(words)
    assert max(row["longest"] for row in found) <= 1_500
    hit = rows(indexed, "SELECT path FROM docmem.document WHERE tsv @@ 'word059999'::tsquery")
    assert hit == [{"path": "corpus/words.md"}]


def test_a_document_that_gets_shorter_leaves_no_chunk_behind(indexed: Settings) -> None:
    put(indexed, "acme", {"corpus/a.md": b"word " * 2_000})
    sync(indexed)
    assert len(rows(indexed, "SELECT chunk FROM docmem.document")) > 3
    put(indexed, "acme", {"corpus/a.md": b"short\n"})
    sync(indexed)
    assert rows(indexed, "SELECT chunk, text FROM docmem.document") == [{"chunk": 0, "text": "short"}]


# --- settings


def config(indexed: Settings) -> dict[str, Any]:
    return rows(indexed, "SELECT config, language, retention FROM docmem.tenant_config")[0]


def test_an_invalid_docmem_yaml_waits_and_the_last_good_one_holds(indexed: Settings) -> None:
    put(indexed, "acme", {"docmem.yaml": b"format: 1\nlanguage: english\npolicies: {retention: {episode: 7d}}\n"})
    sync(indexed)
    put(indexed, "acme", {"docmem.yaml": b"format: 1\nlanguage: klingon\n", "knowledge/a.md": b"a\n"})
    done = sync(indexed)
    assert waiting(done) == {"docmem.yaml": ("bad_field", 2)}
    assert config(indexed)["language"] == "english"
    assert config(indexed)["retention"]["episode"] == 7 * 86_400
    assert config(indexed)["retention"]["fact"] is None
    assert_as_built_anew(indexed)
    put(indexed, "acme", {"docmem.yaml": b"format: 1\n"})
    assert sync(indexed).quarantined == ()
    assert config(indexed)["language"] == "simple"


def test_another_language_means_that_everything_is_indexed_again(indexed: Settings) -> None:
    query = "SELECT id FROM docmem.memory WHERE tsv @@ to_tsquery('english', 'plans')"
    put(indexed, "acme", {"docmem.yaml": b"format: 1\nlanguage: simple\n", **stored(memory("She planned a trip."))})
    sync(indexed)
    assert rows(indexed, query) == []
    put(indexed, "acme", {"docmem.yaml": b"format: 1\nlanguage: english\n"})
    assert sync(indexed).upserts == 0
    assert len(rows(indexed, query)) == 1
    assert_as_built_anew(indexed)


def test_a_repo_that_never_had_docmem_yaml_has_the_defaults_and_is_named(indexed: Settings, tmp_path: Path) -> None:
    clone = Clone(indexed, tmp_path / "clone")
    clone.git("checkout", "--quiet", "--orphan", "fresh")
    clone.git("rm", "-r", "--quiet", "-f", ".")
    clone.write("knowledge/a.md", b"a\n")
    process.run(repository.open(indexed, "acme").git_dir, "update-ref", "-d", git.MAIN)
    clone.commit()
    assert waiting(sync(indexed)) == {"docmem.yaml": ("missing_config", 1)}
    assert config(indexed)["language"] == "simple"


@pytest.mark.parametrize("synced_before", [True, False])
def test_deleted_settings_are_named_and_the_last_good_ones_stay(indexed: Settings, synced_before: bool) -> None:
    put(indexed, "acme", {"docmem.yaml": b"format: 1\nlanguage: english\n"})
    if synced_before:
        sync(indexed)
    put(indexed, "acme", {"docmem.yaml": None})
    assert waiting(sync(indexed)) == {"docmem.yaml": ("missing_config", 1)}
    assert config(indexed)["language"] == "english"
    put(indexed, "acme", {"knowledge/a.md": b"a\n"})
    assert waiting(sync(indexed)) == {"docmem.yaml": ("missing_config", 1)}
    assert_as_built_anew(indexed)
    put(indexed, "acme", {"docmem.yaml": b"format: 1\nlanguage: german\n"})
    assert waiting(sync(indexed)) == {}
    assert config(indexed)["language"] == "german"


# --- what is no file


@pytest.mark.parametrize("synced_before", [True, False])
def test_a_symlink_in_a_files_place_is_named_and_the_file_stays_served(
    indexed: Settings, tmp_path: Path, synced_before: bool
) -> None:
    one, two = memory("One.", number=1), memory("Two.", number=2)
    put(indexed, "acme", {**stored(one, two), "knowledge/a.md": b"a\n", "knowledge/gone.md": b"gone\n"})
    if synced_before:
        sync(indexed)
    clone = Clone(indexed, tmp_path / "clone")
    for path in (one.path, "knowledge/gone.md"):
        (clone.path / path).unlink()
    (clone.path / one.path).symlink_to("/etc/passwd")
    push_unchecked(indexed, clone)
    (clone.path / "knowledge/gone.md").symlink_to("a.md")
    (clone.path / "procedures").symlink_to("knowledge")
    clone.git("update-index", "--add", "--cacheinfo", f"160000,{clone.git('rev-parse', 'HEAD')},research/sub")
    (clone.path / "research" / "sub").mkdir(parents=True)
    (clone.path / "elsewhere").symlink_to("knowledge")
    push_unchecked(indexed, clone)
    links = dict.fromkeys((one.path, "knowledge/gone.md", "procedures", "research/sub"), ("not_a_file", 1))
    assert waiting(sync(indexed)) == links
    assert texts(indexed) == ["One.", "Two."]
    assert [row["path"] for row in rows(indexed, "SELECT path FROM docmem.document")] == ["knowledge/a.md"]
    assert waiting(sync(indexed)) == links
    assert_as_built_anew(indexed)
    (clone.path / one.path).unlink()
    (clone.path / one.path).write_bytes(render_memory(one))
    for path in ("knowledge/gone.md", "procedures"):
        (clone.path / path).unlink()
    (clone.path / "research" / "sub").rmdir()
    push_unchecked(indexed, clone)
    assert waiting(sync(indexed)) == {}
    assert texts(indexed) == ["One.", "Two."]
    assert_as_built_anew(indexed)


def push_unchecked(settings: Settings, clone: Clone) -> None:
    """Commit all of a clone's work tree and put it on main, past the check of a push."""
    clone.git("add", "--all")
    clone.git("commit", "--quiet", "--message", "edit")
    process.run(clone.bare, "fetch", "--quiet", str(clone.path), f"+HEAD:{git.MAIN}")


# --- identity


def test_moves_keep_id_and_created_time_and_equal_text_hides_no_row(indexed: Settings) -> None:
    """Case F9."""
    one, two, three = memory("Equal.", number=1), memory("Equal.", number=2), memory("Unique.", number=3)
    put(indexed, "acme", stored(one, two, three))
    sync(indexed)
    before = rows(indexed, MEMORIES)
    assert len(before) == 3

    def moved(item: Memory) -> Memory:
        return replace(item, path=item.path.replace("/memories/", "/memories/z-"))

    gone: Mapping[str, bytes | None] = {item.path: None for item in (one, two, three)}
    put(indexed, "acme", {**gone, **stored(*map(moved, (one, two, three)))}, message="move all")
    done = sync(indexed)
    assert (done.upserts, done.deletes) == (3, 0)
    after = rows(indexed, MEMORIES)
    assert [(row["id"], row["created_at"], row["text"]) for row in after] == [
        (row["id"], row["created_at"], row["text"]) for row in before
    ]
    back = replace(one, text="Moved and edited.")
    put(indexed, "acme", {moved(one).path: None, **stored(back)}, message="move and edit")
    sync(indexed)
    swapped = {moved(two).path: render_memory(three), moved(three).path: render_memory(two)}
    put(indexed, "acme", swapped, message="swap two names")
    done = sync(indexed)
    assert (done.upserts, done.deletes, done.quarantined) == (2, 0, ())
    assert texts(indexed) == ["Equal.", "Moved and edited.", "Unique."]
    assert_as_built_anew(indexed)


def test_the_second_file_with_an_id_waits_until_the_first_is_gone(indexed: Settings) -> None:
    one = memory("The original.")
    copy = one.path.replace("/memories/", "/memories/a-copy-")
    put(indexed, "acme", stored(one))
    sync(indexed)
    put(indexed, "acme", {copy: render_memory(replace(one, text="The copy."))})
    done = sync(indexed)
    assert waiting(done) == {copy: ("duplicate_id", 2)}
    assert texts(indexed) == ["The original."]
    assert_as_built_anew(indexed)
    put(indexed, "acme", {"knowledge/a.md": b"unrelated\n"})
    assert waiting(sync(indexed)) == {copy: ("duplicate_id", 2)}
    put(indexed, "acme", {one.path: None})
    done = sync(indexed)
    assert (done.quarantined, texts(indexed)) == ((), ["The copy."])
    assert_as_built_anew(indexed)


def test_two_files_with_one_id_in_one_commit_are_told_apart_by_path(indexed: Settings) -> None:
    one = memory("First by path.")
    other = one.path.replace("/memories/", "/memories/zz-")
    put(indexed, "acme", {**stored(one), other: render_memory(replace(one, text="Second."))})
    assert waiting(sync(indexed)) == {other: ("duplicate_id", 2)}
    assert texts(indexed) == ["First by path."]


def test_of_two_copies_that_come_as_the_original_is_spoilt_one_is_served(indexed: Settings) -> None:
    one = memory("The original.")
    copies = {one.path.replace("/memories/", f"/memories/{name}-"): f"Copy {name}." for name in "ab"}
    put(indexed, "acme", stored(one))
    sync(indexed)
    files = {path: render_memory(replace(one, text=text)) for path, text in copies.items()}
    put(indexed, "acme", {one.path: b"spoilt\n", **files})
    done = sync(indexed)
    assert texts(indexed) == ["Copy a."]
    assert {code for code, _ in waiting(done).values()} == {"no_head", "duplicate_id"}
    assert_as_built_anew(indexed)


def test_a_file_whose_id_changes_is_another_memory(indexed: Settings) -> None:
    one, two = memory("One.", number=1), memory("Two.", number=2)
    put(indexed, "acme", stored(one))
    sync(indexed)
    revision = put(indexed, "acme", {one.path: render_memory(two)})
    done = sync(indexed)
    assert (done.upserts, done.deletes) == (1, 1)
    (row,) = rows(indexed, MEMORIES)
    assert (row["id"], row["path"], row["revision"]) == (two.id, one.path, revision)
    assert_as_built_anew(indexed)


# --- revisions


def test_a_commit_of_the_year_ten_thousand_is_served_and_logged(indexed: Settings, shell: Shell) -> None:
    """git takes any date; what came past our hooks has one that a datetime doesn't."""
    repo = repository.open(indexed, "acme")
    stream = (
        "commit refs/heads/main\ncommitter Ana <ana@example.org> 253402300800 +0000\ndata 4\nfar\n"
        f"from {repo.head()}\nM 100644 inline knowledge/far.md\ndata 4\nfar\n\ndone\n"
    )
    process.run(repo.git_dir, "fast-import", "--quiet", "--done", stdin=stream.encode())
    assert sync(indexed).upserts == 1
    assert_as_built_anew(indexed)
    shell.set("DOCMEM_ROOT", str(indexed.root))
    assert "9999" in shell("log", "acme", "--json").out


def test_a_bug_that_one_tenants_commits_find_stops_no_other_sync(
    indexed: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.create(indexed, "other")
    settle = Ledger.settle

    def buggy(self: Ledger, at: At) -> list[str]:
        if at.revision == bad:
            raise AssertionError("what somebody wrote")
        return settle(self, at)

    bad = put(indexed, "acme", stored(memory("Finds a bug.")))
    monkeypatch.setattr(Ledger, "settle", buggy)
    failed, fine = sync_all(indexed, ["acme", "other"])
    assert failed.error is not None
    assert (failed.error.code, failed.error.exit_code) == ("internal", 3)
    assert "AssertionError" in failed.error.message
    assert "wrote" not in failed.error.message
    assert (fine.error, fine.outcome) == (None, "ok")


def test_a_lost_revision_is_reconciled_once_and_said_once(indexed: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """Case F10: hard reset, another commit, reflog expired, objects gone."""
    base = put(indexed, "acme", stored(memory("C1.", number=1)))
    put(indexed, "acme", stored(memory("C2.", number=2)))
    sync(indexed)
    repo = repository.open(indexed, "acme")
    git.move_ref(repo.git_dir, git.MAIN, new=base, old=repo.head())
    put(indexed, "acme", stored(memory("C3.", number=3)))
    process.run(repo.git_dir, "reflog", "expire", "--expire=now", "--all")
    process.run(repo.git_dir, "gc", "--quiet", "--prune=now")
    with caplog.at_level(logging.WARNING, logger="docmem.sync"):
        done = sync(indexed)
    assert (done.reconciled, done.upserts, done.deletes) == (True, 1, 1)
    assert texts(indexed) == ["C1.", "C3."]
    assert len(caplog.records) == 1
    assert_as_built_anew(indexed)
    put(indexed, "acme", stored(memory("C4.", number=4)))
    assert not sync(indexed).reconciled
    assert len(caplog.records) == 1


def test_a_revision_that_is_no_ancestor_is_reconciled_by_blob(indexed: Settings) -> None:
    one = memory("Stays.", number=1)
    base = put(indexed, "acme", {"knowledge/a.md": b"a\n"})
    put(indexed, "acme", stored(one))
    sync(indexed)
    repo = repository.open(indexed, "acme")
    git.move_ref(repo.git_dir, git.MAIN, new=base, old=repo.head())
    put(indexed, "acme", {"knowledge/b.md": b"b\n"})
    rewritten = put(indexed, "acme", stored(one))
    done = sync(indexed)
    assert (done.reconciled, done.upserts, done.deletes) == (True, 2, 0)  # the memory is of another commit now
    (row,) = rows(indexed, MEMORIES)
    assert row["revision"] == rewritten
    assert_as_built_anew(indexed)


def test_a_merge_that_takes_main_off_its_chain_loses_nothing(indexed: Settings, tmp_path: Path) -> None:
    """A push of one is refused; a git host that is the tenant's origin may bring one."""
    clone = Clone(indexed, tmp_path / "clone")
    (clone.bare / "hooks" / "pre-receive").unlink()
    put(indexed, "acme", stored(memory("By the engine.", number=1)))
    sync(indexed)
    clone.write("knowledge/mine.md", b"mine\n")
    clone.git("add", "--all")
    clone.git("commit", "--quiet", "--message", "mine")
    clone.git("pull", "--quiet", "--no-rebase", "--no-edit", "origin", "main")
    clone.git("push", "--quiet", "origin", "HEAD:main")
    done = sync(indexed)
    assert done.after == clone.git("rev-parse", "HEAD")
    assert texts(indexed) == ["By the engine."]
    assert [row["path"] for row in rows(indexed, "SELECT path FROM docmem.document")] == ["knowledge/mine.md"]
    assert_as_built_anew(indexed)


def test_a_repo_without_a_commit_is_in_order_and_has_no_rows(indexed: Settings) -> None:
    """Case F11."""
    git.init(indexed.tenants / "empty.git")
    done = sync_tenant(indexed, "empty")
    assert (done.after, done.upserts, done.quarantined) == (None, 0, ())


def test_a_repo_without_main_is_no_empty_repo(indexed: Settings) -> None:
    sync(indexed)
    repo = repository.open(indexed, "acme")
    head = repo.head()
    git.move_ref(repo.git_dir, "refs/heads/master", new=head, old=None)
    git.move_ref(repo.git_dir, git.MAIN, new=None, old=head)
    with pytest.raises(NotFound, match="no branch main") as caught:
        sync(indexed)
    assert "master" in caught.value.message
    git.move_ref(repo.git_dir, "refs/heads/master", new=None, old=head)
    with pytest.raises(NotFound, match="is indexed"):
        sync(indexed)
    (repo.git_dir / "HEAD").write_text(f"{head}\n")
    with pytest.raises(NotFound, match="detached HEAD"):
        sync(indexed)
    git.move_ref(repo.git_dir, git.MAIN, new=head, old=None)
    assert sync(indexed).after == head


# --- the guard


def many(number: int) -> list[Memory]:
    return [memory(f"Memory {index}", number=index, who=f"user{index % 10}") for index in range(number)]


def test_a_large_deletion_stops_with_a_plan_until_it_is_confirmed(indexed: Settings) -> None:
    """Case F12."""
    memories = many(100)
    put(indexed, "acme", stored(*memories))
    first = sync(indexed)
    before = whole_index(indexed)
    last = put(indexed, "acme", {item.path: None for item in memories[:95]})
    with pytest.raises(GuardStop, match="delete 95 of 100") as caught:
        sync(indexed)
    assert "--confirm-deletes" in caught.value.hint
    assert len(caught.value.plan) == 21
    assert whole_index(indexed) == before
    assert first.after != last
    done = sync(indexed, confirm_deletes=True)
    assert (done.deletes, done.after) == (95, last)
    assert len(texts(indexed)) == 5


def test_an_announced_deletion_passes_and_a_wrong_number_does_not(indexed: Settings) -> None:
    memories = many(100)
    put(indexed, "acme", stored(*memories))
    sync(indexed)
    put(indexed, "acme", {item.path: None for item in memories[:40]}, message="Forget\n\nDocmem-Deletes: 40\n")
    assert sync(indexed).deletes == 40
    put(indexed, "acme", {item.path: None for item in memories[40:80]}, message="Forget\n\nDocmem-Deletes: 4\n")
    with pytest.raises(GuardStop):
        sync(indexed)


def test_what_moved_is_no_deletion_and_what_is_announced_after_a_move_passes(indexed: Settings) -> None:
    """The index knows only where it was; memories are told by their ids, documents by what they say."""
    memories = many(60)
    notes: dict[str, bytes | None] = {f"knowledge/{number}.md": b"note %d\n" % number for number in range(60)}
    put(indexed, "acme", {**stored(*memories), **notes})
    sync(indexed)

    def moved(folder: str) -> dict[str, bytes | None]:
        return {f"{folder}/{path.partition('/')[2]}": data for path, data in notes.items()}

    put(indexed, "acme", {**dict.fromkeys(notes), **moved("learnings")})
    assert sync(indexed).after
    again = [replace(item, path=item.path.replace("/memories/", "/memories/z-")) for item in memories]
    put(indexed, "acme", {**dict.fromkeys(moved("learnings")), **moved("research")})
    put(indexed, "acme", {**dict.fromkeys(item.path for item in memories), **stored(*again)})
    gone = [*moved("research"), *(item.path for item in again)]
    put(indexed, "acme", dict.fromkeys(gone), message="Forget\n\nDocmem-Deletes: 120\n")
    assert sync(indexed).deletes == 120
    assert_as_built_anew(indexed)


def test_what_moved_and_then_went_unannounced_stops(indexed: Settings) -> None:
    notes: dict[str, bytes | None] = {f"knowledge/{number}.md": b"note %d\n" % number for number in range(60)}
    put(indexed, "acme", notes)
    sync(indexed)
    moved = {path.replace("knowledge", "learnings"): data for path, data in notes.items()}
    put(indexed, "acme", {**dict.fromkeys(notes), **moved})
    put(indexed, "acme", dict.fromkeys(moved))
    with pytest.raises(GuardStop, match="delete 60 of 60"):
        sync(indexed)


@pytest.mark.parametrize("said", [30, 59, 61])
def test_a_trailer_that_gives_another_number_than_all_that_goes_announces_nothing(indexed: Settings, said: int) -> None:
    memories = many(30)
    notes: dict[str, bytes | None] = {f"knowledge/{number}.md": b"note %d\n" % number for number in range(30)}
    put(indexed, "acme", {**stored(*memories), **notes})
    sync(indexed)
    gone = [*notes, *(item.path for item in memories)]
    put(indexed, "acme", dict.fromkeys(gone), message=f"Forget\n\nDocmem-Deletes: {said}\n")
    with pytest.raises(GuardStop, match="delete 60 of 60"):
        sync(indexed)


def test_memories_that_give_their_file_to_another_are_deletions_too(indexed: Settings) -> None:
    memories = many(60)
    put(indexed, "acme", stored(*memories))
    sync(indexed)
    others = {item.path: render_memory(replace(item, id=f"{number:016x}")) for number, item in enumerate(memories)}
    put(indexed, "acme", others)
    with pytest.raises(GuardStop, match="delete 60 of 60"):
        sync(indexed)


def test_a_forgetting_that_counts_files_which_are_not_served_is_announced(indexed: Settings) -> None:
    memories = many(40)
    put(indexed, "acme", {**stored(*memories), "knowledge/bad.md": b"---\ntitle: [x\n---\n"})
    sync(indexed)
    gone = ["knowledge/bad.md", *(item.path for item in memories)]
    put(indexed, "acme", dict.fromkeys(gone), message="Forget\n\nDocmem-Deletes: 41\n")
    assert sync(indexed).deletes == 40


def test_a_trailer_of_a_commit_that_the_engine_did_not_make_announces_nothing(
    indexed: Settings, tmp_path: Path
) -> None:
    """Written by a person, or carried along when a commit is picked: and it came past our hook, by a fetch."""
    memories = many(60)
    put(indexed, "acme", stored(*memories))
    sync(indexed)
    clone = Clone(indexed, tmp_path / "clone")
    clone.git("rm", "--quiet", *(item.path for item in memories))
    clone.git("commit", "--quiet", "--message", "Clear out\n\nDocmem-Deletes: 60")
    process.run(clone.bare, "fetch", "--quiet", str(clone.path), "+HEAD:refs/heads/main")
    with pytest.raises(GuardStop, match="delete 60 of 60"):
        sync(indexed)


def test_what_a_person_confirmed_when_pushing_is_not_asked_again(indexed: Settings, tmp_path: Path) -> None:
    memories = many(50)
    put(indexed, "acme", stored(*memories))
    sync(indexed)
    clone = Clone(indexed, tmp_path / "clone")
    clone.git("rm", "--quiet", *(item.path for item in memories[:40]))
    clone.git("commit", "--quiet", "--message", "Clear out")
    clone.git("push", "--quiet", "-o", "docmem.confirm-deletes=40", "origin", "HEAD:main")
    assert sync(indexed).deletes == 40


def test_small_deletions_and_moves_need_no_confirmation(indexed: Settings) -> None:
    memories = many(60)
    put(indexed, "acme", stored(*memories))
    sync(indexed)
    put(indexed, "acme", {item.path: None for item in memories[:20]})
    assert sync(indexed).deletes == 20
    left = memories[20:]
    moved = [replace(item, path=item.path.replace("/memories/", "/memories/z-")) for item in left]
    put(indexed, "acme", {**{item.path: None for item in left}, **stored(*moved)})
    assert sync(indexed).deletes == 0


def test_thousands_of_rows_come_and_go_in_one_sync_each(indexed: Settings) -> None:
    head = b"---\nid: %016x\nkind: fact\n---\ntext %d\n"
    files: dict[str, bytes | None] = {
        f"{FOLDER}/m-{number:016x}.md": head % (number, number) for number in range(3_000)
    }
    put(indexed, "acme", files)
    assert sync(indexed).upserts == 3_000
    put(indexed, "acme", dict.fromkeys(files))
    assert sync(indexed, confirm_deletes=True).deletes == 3_000
    assert texts(indexed) == []
