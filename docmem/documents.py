"""A tenant's documents for agents and people: knowledge, conventions, learnings, research, procedures and the like.

Read from a commit, written as one. What an agent may write, it may write here; `steering/` is people's alone, since
it is the one tier of a packet with authority.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from docmem import config, document, files, filesearch, git, layout, names, repository, sensitive, splice
from docmem.config import Settings
from docmem.errors import Conflict, InputError, InvalidName, NotFound
from docmem.fence import one_line
from docmem.git import ENGINE, Author
from docmem.model import Document
from docmem.recall import SearchResult
from docmem.repository import Repository

_TRIES = 5
_META_MAX = 50


class Documents:
    """The documents of one tenant. Raises `NotFound` where the tenant has no repo."""

    def __init__(self, tenant: str, *, settings: Settings | None = None) -> None:
        self._settings = settings or config.settings()
        self._tenant = names.tenant_name(tenant)

    def write(
        self,
        path: str,
        text: str,
        meta: Mapping[str, Any] | None = None,
        *,
        now: datetime | None = None,
        author: Author = ENGINE,
    ) -> str:
        """Write a document as one commit; returns its revision (the head where nothing changes).

        `meta` are keys of its head; in a document that is there already they are set and the rest of its head stays
        as a person wrote it. Raises `InvalidName` (no place for a document), `InputError` (`people_only`, `secret`),
        `FormatError` (it breaks the format, or what is there can't be read) and `TryAgain`.
        """
        _refuse(path, text, meta or {})
        repo = repository.open(self._settings, self._tenant)
        with repo.locked():
            for _ in range(_TRIES):
                try:
                    return _commit(repo, path, text, meta or {}, now or datetime.now(UTC), author)
                except Conflict:  # a push: it doesn't take our lock
                    continue
            return _commit(repo, path, text, meta or {}, now or datetime.now(UTC), author)

    def read(self, path: str) -> Document:
        """The document at a path. Raises `NotFound`, or `FormatError` where it can't be read."""
        repo = repository.open(self._settings, self._tenant)
        data = repo.snapshot().read(path) if layout.place(path).kind == "document" else None
        if data is None:
            raise NotFound(
                f"tenant {self._tenant} has no document {path!r}", hint=f"see: docmem doc list {self._tenant}"
            )
        return files.parse_document(path, data)

    def list(self, glob: str = "*") -> list[str]:
        """Paths of the documents that fit `glob` (`*` also spans folders), sorted."""
        repo = repository.open(self._settings, self._tenant)
        head = repo.head()
        found = git.files(repo.git_dir, head) if head else {}
        return sorted(path for path in found if layout.place(path).kind == "document" and fnmatchcase(path, glob))

    def search(self, query: str, *, limit: int = 10) -> SearchResult:
        """The best documents for a question, each with the paragraph that answers it. Needs no Postgres."""
        return filesearch.search(self._settings, self._tenant, query, limit=limit, kinds=())


def _refuse(path: str, text: str, meta: Mapping[str, Any]) -> None:
    place = layout.place(names.safe_path(path))
    if any(unicodedata.category(char).startswith("C") for char in path):
        raise InvalidName(f"{path!r} has control characters in it", hint="use a name that can be read and typed")
    if place.kind != "document":
        raise InvalidName(
            f"{path!r} is no place for a document",
            hint=f"use a path ending in .md below one of: {', '.join(sorted({*layout.FOLDERS} - {'steering'}))}",
        )
    if place.folder == "steering":
        raise InputError(
            f"{path}: steering is written by people",
            code="people_only",
            hint="edit it in a checkout, and push it",
        )
    found = sensitive.secrets("\n".join([text, *map(str, meta.values())]))
    if found:
        raise InputError(f"{path}: the text holds a secret ({found[0]})", code="secret", hint="take it out")
    if len(meta) > _META_MAX:
        raise InputError(f"{path}: {len(meta)} keys; a head written here has at most {_META_MAX}")


def _commit(repo: Repository, path: str, text: str, meta: Mapping[str, Any], now: datetime, author: Author) -> str:
    base = repo.head()
    old = git.read_file(repo.git_dir, base, path) if base else None
    data = _edited(old, text, meta) if old is not None else _new(text, meta)
    files.check(path, data)
    if base is not None and data == old:
        return base
    subject = one_line(path).encode("ascii", "replace").decode()
    return repo.commit(base, {path: data}, message=f"Write {subject}\n", now=now, author=author)


def _new(text: str, meta: Mapping[str, Any]) -> bytes:
    head = "".join(f"{splice.render(key)}: {splice.render(value)}\n" for key, value in meta.items())
    return _file(head or None, text)


def _edited(old: bytes, text: str, meta: Mapping[str, Any]) -> bytes:
    """The file with a new body and the keys of `meta` set in its head. The same bytes where nothing is new."""
    parts = document.split(old)
    changes: dict[splice.KeyPath, Any] = {(key,): value for key, value in meta.items()}
    if parts.head is None and changes:
        return _new(text, meta)
    head = splice.edit(parts.head, changes) if parts.head is not None else None
    if head == parts.head and _body(text).strip("\n") == parts.body.strip("\n"):
        return old
    return _file(head, text)


def _file(head: str | None, text: str) -> bytes:
    body = _body(text)
    return (body if head is None else f"---\n{head}---\n{body}").encode("utf-8", "surrogatepass")


def _body(text: str) -> str:
    plain, _ = document.scrub(text.replace("\r\n", "\n").replace("\r", "\n"))
    return plain.rstrip("\n") + "\n"
