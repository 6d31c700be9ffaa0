"""`export` and `import` on the command line."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from docmem import files, git, layout, repository, review
from docmem.config import Settings
from tests.support.cli import Shell
from tests.support.clones import Person
from tests.support.repos import NOW, memory, put, subject

TEA = memory("Ana likes tea.")
HELD = memory("Ana pays by card.", number=7)


@pytest.fixture
def learned(settings: Settings, tenant: str) -> str:
    put(settings, tenant, {TEA.path: files.render_memory(TEA)}, "Learn")
    put(settings, tenant, {layout.profile_path(subject()): b"attributes:\n  diet: vegan\n"})
    repo = repository.open(settings, tenant)
    reason = {
        "op": "create", "id": HELD.id, "path": HELD.path, "code": "high_impact",
        "proposal": {"quote": "by card", "evidence_turns": ["t1"]},
    }  # fmt: skip
    held = json.dumps({"subject": subject(), "operations": [reason], "profile": []}).encode()
    with repo.locked():
        changed = {HELD.path: files.render_memory(HELD), review.REASONS: held}
        repo.hold("0123456789abcdef", repo.head() or "", changed, message="Hold\n", now=NOW)
    return put(settings, tenant, {TEA.path: files.render_memory(replace(TEA, text="Ana likes green tea."))})


def test_a_tenant_goes_out_and_comes_back_whole(shell: Shell, settings: Settings, learned: str, tmp_path: Path) -> None:
    file = tmp_path / "acme.bundle"
    assert shell("export", "acme", str(file), "--json").json["revision"] == learned
    there = repository.open(settings, "acme")
    assert shell("import", "acme", str(file)).code == 1
    shell.set("DOCMEM_ROOT", str(tmp_path / "elsewhere"))
    assert shell("import", "acme", str(file), "--json").json["revision"] == learned
    here = repository.open(replace(settings, root=tmp_path / "elsewhere"), "acme")
    assert git.refs(here.git_dir, "refs/") == git.refs(there.git_dir, "refs/")
    assert [item.key for each in review.reviews(here) for item in each.items] == [HELD.id]
    assert (here.git_dir / "hooks" / "pre-receive").exists()
    subprocess.run(["git", "--git-dir", str(here.git_dir), "fsck", "--strict"], check=True, capture_output=True)


def test_what_is_no_bundle_of_a_tenant_makes_none(shell: Shell, settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "no.bundle").write_text("no")
    assert "no bundle that git takes" in shell("import", "acme", str(tmp_path / "no.bundle")).err
    assert shell("import", "acme", str(tmp_path / "missing")).code == 1
    other = tmp_path / "other.git"
    git.init(other)
    git.commit(other, base=None, files={"a": b"b"}, message="no tenant", when=NOW)
    git.bundle(other, tmp_path / "other.bundle", [git.MAIN])
    assert "docmem.yaml" in shell("import", "acme", str(tmp_path / "other.bundle")).err
    assert list(settings.tenants.iterdir()) == []


def test_a_persons_data_is_one_readable_file(shell: Shell, learned: str, tmp_path: Path) -> None:
    text = shell("export", "acme", "--subject", "ana").out
    for said in (
        "- Ana likes green tea.",
        "diet: vegan",
        "you said: “quote”",
        "create: Ana pays by card.",
        "before: Ana likes tea.",
    ):
        assert said in text
    file = tmp_path / "ana.md"
    assert shell("export", "acme", str(file), "--subject", "ana").code == 0
    assert file.read_text().startswith("# What is kept about you\n")
    assert "Nothing." in shell("export", "acme", "--subject", "nobody").out
    assert shell("export", "acme").code == 2


def test_plain_git_clones_an_export_and_a_file_of_something_else_is_not_overwritten(
    shell: Shell, settings: Settings, learned: str, tmp_path: Path
) -> None:
    file, mine = tmp_path / "acme.bundle", tmp_path / "notes.txt"
    for _ in range(2):  # an older export is replaced
        assert shell("export", "acme", str(file)).code == 0
    pat = Person(tmp_path / "pat").clones(file)
    assert pat.git("rev-parse", "HEAD").strip() == learned
    assert (pat.folder / "docmem.yaml").is_file()
    mine.write_text("mine\n")
    for words in ([], ["--subject", "ana"]):
        refused = shell("export", "acme", str(mine), *words)
        assert (refused.code, "is there already" in refused.err) == (1, True)
    assert mine.read_text() == "mine\n"
    report = tmp_path / "ana.md"
    for _ in range(2):
        assert shell("export", "acme", str(report), "--subject", "ana").code == 0
