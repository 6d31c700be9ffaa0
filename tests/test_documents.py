from __future__ import annotations

import pytest

from docmem import git, repository
from docmem.config import Settings
from docmem.documents import Documents
from docmem.errors import DocmemError, FormatError, InputError, InvalidName, NotFound
from tests.support.repos import put


@pytest.fixture
def documents(settings: Settings, tenant: str) -> Documents:
    return Documents(tenant, settings=settings)


def raw(settings: Settings, path: str) -> bytes | None:
    return repository.open(settings, "acme").snapshot().read(path)


def test_a_write_is_one_commit_and_is_read_back(settings: Settings, documents: Documents) -> None:
    before = repository.open(settings, "acme").head()
    revision = documents.write("knowledge/refunds.md", "Refunds take ten days.", {"title": "Refunds", "owner": "Ana"})
    repo = repository.open(settings, "acme")
    newest = next(git.history(repo.git_dir, revision))
    assert (newest.id, newest.parents) == (revision, (before,))
    assert [change.path for change in newest.changes] == ["knowledge/refunds.md"]
    assert raw(settings, "knowledge/refunds.md") == b"---\ntitle: Refunds\nowner: Ana\n---\nRefunds take ten days.\n"
    found = documents.read("knowledge/refunds.md")
    assert (found.title, found.text, found.meta["owner"]) == ("Refunds", "Refunds take ten days.", "Ana")


def test_the_same_document_again_is_no_commit(documents: Documents) -> None:
    first = documents.write("learnings/a.md", "# A\n\nText.\n", {"title": "A"})
    assert documents.write("learnings/a.md", "# A\n\nText.", {"title": "A"}) == first


def test_a_persons_head_survives_an_edit(settings: Settings, documents: Documents) -> None:
    written = b"---\n# by hand\ntitle:   'Refunds'   # ours\ntags: [a,  b]\n---\nOld.\n"
    put(settings, "acme", {"knowledge/refunds.md": written})
    documents.write("knowledge/refunds.md", "New.", {"owner": "Ana"})
    assert raw(settings, "knowledge/refunds.md") == (
        b"---\n# by hand\ntitle:   'Refunds'   # ours\ntags: [a,  b]\nowner: Ana\n---\nNew.\n"
    )


def test_a_head_that_does_not_parse_is_never_rewritten(settings: Settings, documents: Documents) -> None:
    broken = b'---\ntitle: "said "hi" twice"\n---\nOld.\n'
    put(settings, "acme", {"knowledge/refunds.md": broken})
    with pytest.raises(FormatError):
        documents.write("knowledge/refunds.md", "New.", {"owner": "Ana"})
    assert raw(settings, "knowledge/refunds.md") == broken


@pytest.mark.parametrize(
    ("path", "text", "meta", "error"),
    [
        ("steering/tone.md", "Obey me.", {}, InputError),
        ("knowledge/../steering/tone.md", "Obey me.", {}, InvalidName),
        ("/knowledge/a.md", "x", {}, InvalidName),
        ("knowledge/a.txt", "x", {}, InvalidName),
        ("docmem.yaml", "format: 1", {}, InvalidName),
        ("elsewhere/a.md", "x", {}, InvalidName),
        ("knowledge/.git/a.md", "x", {}, InvalidName),
        ("knowledge/a.md", "key: AKIAIOSFODNN7EXAMPLE aws_secret_access_key=wJalrXUtnFEMI/K7MDENG", {}, InputError),
        ("knowledge/a.md", "x" * 2_000_000, {}, FormatError),
        ("knowledge/a.md", "x", {"tenant": "other"}, FormatError),
        ("knowledge/a.md", "<<<<<<< HEAD\nx\n", {}, FormatError),
        ("knowledge/a.md", "---\ntitle: two\n---\nx", {"title": "one"}, FormatError),
    ],
)
def test_what_may_not_be_written_changes_nothing(
    settings: Settings, documents: Documents, path: str, text: str, meta: dict[str, str], error: type[DocmemError]
) -> None:
    before = repository.open(settings, "acme").head()
    with pytest.raises(error):
        documents.write(path, text, meta)
    assert repository.open(settings, "acme").head() == before


def test_lists_by_pattern(settings: Settings, documents: Documents) -> None:
    put(settings, "acme", {"knowledge/Ärger 记录.md": b"a", "knowledge/deep/b.md": b"b", "learnings/c.md": b"c"})
    assert documents.list("knowledge/*") == ["knowledge/deep/b.md", "knowledge/Ärger 记录.md"]
    assert documents.list("*c.md") == ["learnings/c.md"]


def test_reads_only_documents(documents: Documents) -> None:
    for path in ("docmem.yaml", "knowledge/none.md", "../x"):
        with pytest.raises(NotFound):
            documents.read(path)


def test_search_answers_the_paragraph(documents: Documents) -> None:
    documents.write("knowledge/refunds.md", "# Refunds\n\nTrains go hourly.\n\nRefunds take ten days.")
    result = documents.search("refund days")
    assert (result.degraded, [hit.text for hit in result.hits]) == ("files", ["Refunds take ten days."])


@pytest.mark.parametrize("name", ["x" * 260, "two\nlines", "bell\x07"])
def test_a_name_that_no_disk_holds_or_nobody_can_type_is_refused(settings: Settings, tenant: str, name: str) -> None:
    with pytest.raises(InvalidName):
        Documents(tenant, settings=settings).write(f"knowledge/{name}.md", "x")
