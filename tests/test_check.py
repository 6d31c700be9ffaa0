from dataclasses import replace

import pytest

from docmem import check, files, repository
from docmem.check import Fault
from tests.support.repos import memory

TEA = memory("Ana likes tea.")


def codes(contents: dict[str, bytes], *others: str, ids: dict[str, str] | None = None) -> list[tuple[str, str]]:
    found = check.faults(contents, all_paths=[*contents, *others], ids=ids or {})
    return [(fault.path, fault.code) for fault in found]


def test_the_template_and_a_memory_are_in_order() -> None:
    assert codes(repository.template() | {TEA.path: files.render_memory(TEA)}) == []


def test_a_file_that_breaks_the_format_is_named_with_its_line() -> None:
    data = files.render_memory(TEA).replace(b"importance: 5", b"importance: 50")
    [fault] = check.faults({TEA.path: data}, all_paths=[TEA.path], ids={})
    assert str(fault).startswith(f"{TEA.path}:5: bad_field: importance: ")
    head, body = f"id: {TEA.id}\n", "kind: fact\n"
    data = files.render_memory(TEA).replace((head + body).encode(), f"{body}id: x\n".encode())
    [fault] = check.faults({TEA.path: data}, all_paths=[TEA.path], ids={})
    assert str(fault) == f"{TEA.path}:3: bad_field: id: 'x' is not 16 lowercase hex digits"


@pytest.mark.parametrize(
    ("path", "data", "code"),
    [
        ("knowledge/a.md", b"<<<<<<< HEAD\nx\n=======\ny\n>>>>>>> z\n", "conflict_marker"),
        ("knowledge/a.md", b"our key is AKIAIOSFODNN7EXAMPLQ and more\n", "secret"),
        ("knowledge/s.txt", b"our key is AKIAIOSFODNN7EXAMPLQ and more\n", "secret"),
        ("scripts/run.sh", b"export KEY=AKIAIOSFODNN7EXAMPLQ\n", "secret"),
        ("knowledge/AKIAIOSFODNN7EXAMPLQ.md", b"x\n", "secret"),
        ("knowledge/AKIAIOSFODNN7EXAMPLQ/a.md", b"x\n", "secret"),
        ("knowledge/aux.md", b"x\n", "bad_path"),
        ("knowledge/why?.md", b"x\n", "bad_path"),
        ("knowledge/dots./x.md", b"x\n", "bad_path"),
        ("docmem.yaml", b"format: 9\n", "format_version"),
        ("subjects/notes.md", b"x\n", "misplaced"),
        (TEA.path.replace("memories/", ""), files.render_memory(TEA), "misplaced"),
        ("knowledge/.git /x.md", b"x\n", "bad_path"),
    ],
)
def test_each_kind_of_fault_has_its_code(path: str, data: bytes, code: str) -> None:
    assert codes({path: data}) == [(path, code)]


def test_a_binary_file_is_no_text_and_of_a_huge_one_the_start_is_read() -> None:
    assert codes({"knowledge/a.png": b"\x89PNG\0 AKIAIOSFODNN7EXAMPLQ"}) == []
    assert codes({"knowledge/a.csv": b"x,y\n" * 300_000 + b"AKIAIOSFODNN7EXAMPLQ\n"}) == []


def test_files_in_folders_that_nobody_reads_are_named() -> None:
    read = ["README.md", ".github/workflows/x.yaml", "knowledge/a.md", "scripts/run.sh", TEA.path]
    assert check.strays([*read, "notes/a.md", "Knowledge/b.md"]) == ["Knowledge/b.md", "notes/a.md"]


def test_a_code_sample_with_conflict_markers_is_in_order() -> None:
    """F14"""
    assert codes({"knowledge/a.md": b"```\n<<<<<<< HEAD\n=======\n>>>>>>> x\n```\n"}) == []


def test_an_id_belongs_to_one_file() -> None:
    copy = TEA.path.replace(".md", "-copy.md")
    data = files.render_memory(TEA)
    assert codes({TEA.path: data, copy: data}) in ([(copy, "duplicate_id")], [(TEA.path, "duplicate_id")])
    assert codes({copy: data}, ids={TEA.id: TEA.path}) == [(copy, "duplicate_id")]


def test_folders_that_are_one_on_some_disks_are_twins_and_a_file_and_a_folder_too() -> None:
    for one, other in (("knowledge/abc", "knowledge/ABC/y.md"), ("knowledge/Abc/x.md", "knowledge/abc/y.md")):
        assert [code for _, code in codes({one: b"x\n"}, other)] == ["twin_path"]
        assert [code for _, code in codes({other: b"x\n"}, one)] == ["twin_path"]
    assert codes({"knowledge/abc/x.md": b"x\n"}, "knowledge/abc/y.md", "learnings/ABC/x.md") == []


@pytest.mark.parametrize("twin", ["knowledge/CAFÉ.md", "knowledge/cafe\u0301.md"])
def test_paths_that_are_one_file_on_some_disks_are_twins(twin: str) -> None:
    assert codes({twin: b"x\n"}, "knowledge/café.md")[0][1] == "twin_path"
    assert codes({"knowledge/other.md": b"x\n"}, "knowledge/café.md", twin) == []


def test_a_fault_says_where_and_what_to_do() -> None:
    fault = Fault("a.md", "secret", "looks like a key", 3, "take it out")
    assert str(fault) == "a.md:3: secret: looks like a key (take it out)"
    assert replace(fault, hint="").as_json() == {
        "path": "a.md", "line": 3, "code": "secret", "reason": "looks like a key", "hint": ""
    }  # fmt: skip
