"""Where the index and the repos differ: rows without a file, files without a row, tenants without a repo."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
from psycopg.rows import DictRow

from docmem import db, git, journal, names, repository
from docmem.config import Settings
from docmem.errors import ConfigError, InvalidName
from docmem.git.walk import listing
from docmem.layout import place
from docmem.model import Document
from docmem.sql import load
from docmem_sync import reading
from docmem_sync.checks import Check, checked
from docmem_sync.ledger import At
from docmem_sync.rows import document_rows
from docmem_sync.store import join_at_once

NO_REPO = "its repo is gone, and its rows are served on"

_SQL = partial(load, "docmem_sync", "strays.sql")


def of_tenant(settings: Settings, tenant: str) -> Check:
    """Whether the indexed revision's files and the rows are each other's, each open version has its row, and each
    vector its text."""

    def look() -> str:
        repo = repository.open(settings, tenant)
        values = {"tenant": tenant}
        with db.session(settings, "reader") as connection, db.tenant_transaction(connection, tenant) as cursor:
            join_at_once(cursor)
            rows = cursor.execute(_SQL()["orphans"], values).fetchall()
            served = cursor.execute(_SQL()["served"], values).fetchall()
            waiting = {row["path"] for row in cursor.execute(_SQL()["waiting"], values)}
            synced = cursor.execute(_SQL()["synced"], values).fetchone()
        found = {row["what"]: row["found"] for row in rows if row["found"]}
        found |= _unlike(repo.git_dir, synced["revision"] if synced else None, served, waiting)
        if found:
            said = ", ".join(f"{count} {what}" for what, count in found.items())
            raise ConfigError(f"orphans: {said}", hint=f"docmem sync {tenant} --rebuild")
        return "0 orphans"

    return checked(f"orphans {tenant}", look, f"docmem sync {tenant} --rebuild")


def _unlike(git_dir: Path, synced: str | None, served: list[DictRow], waiting: set[str]) -> dict[str, int]:
    """How many rows and files aren't each other's. What waits in quarantine is served as it was, or not at all."""
    files = dict(_indexed(git_dir, synced)) if synced else {}
    there = {row["path"]: row for row in served}
    told = {path: row for path, row in there.items() if not row["waits"]}
    counts = {
        "rows without a file": sum(path not in files for path in told),
        "files without a row": sum(path not in there and path not in waiting for path in files),
        "rows of another version": sum(files.get(path, row["blob"]) != row["blob"] for path, row in told.items()),
        "documents in part": _in_part(git_dir, {path: row for path, row in told.items() if path in files}),
    }
    return {what: count for what, count in counts.items() if count}


def _indexed(git_dir: Path, revision: str) -> Iterator[tuple[str, str]]:
    for path, blob in listing(git_dir, revision):
        if place(path).kind in ("memory", "profile", "document"):
            yield reading.printable(path), blob


def _in_part(git_dir: Path, told: dict[str, DictRow]) -> int:
    """Documents of which chunks are missing, or are too many."""
    documents = [(path, row) for path, row in told.items() if place(path).kind == "document"]
    if not documents:
        return 0
    contents = git.read_blobs(git_dir, [row["blob"] for _, row in documents])
    return sum(
        row["rows"] != _chunks(path, blob, data) for (path, row), (blob, data) in zip(documents, contents, strict=True)
    )


def _chunks(path: str, blob: str, data: bytes) -> int:
    value = reading.parse(path, blob, data)
    return len(document_rows(value, blob, At(0, "", 0))) if isinstance(value, Document) else 0


def of_no_repo(settings: Settings, connection: psycopg.Connection[DictRow]) -> Iterator[tuple[str, int]]:
    """(tenant, rows) of tenants that this root had, whose repo is gone, and whose rows aren't.

    Row-level security lets nobody list tenants; those that were ever written to have left their poke.
    """
    known = {*repository.tenants(settings), *journal.tenants(settings)}
    folder = settings.root / "poke"
    for name in sorted(path.name for path in folder.iterdir()) if folder.is_dir() else ():
        with contextlib.suppress(InvalidName):
            if name not in known:
                rows = _rows(connection, names.tenant_name(name))
                if rows is not None:
                    yield name, rows


def _rows(connection: psycopg.Connection[DictRow], tenant: str) -> int | None:
    """A tenant's rows; None where the index knows nothing of it."""
    with db.tenant_transaction(connection, tenant) as cursor:
        row = cursor.execute(_SQL()["rows"], {"tenant": tenant}).fetchone()
    assert row is not None
    return int(row["rows"]) if row["mirrored"] or row["rows"] else None


def without(tenant: str) -> str:
    """What to do about the rows of a tenant whose repo is gone."""
    return f"bring its repo back, or take its rows away: docmem erase {tenant} --all"
