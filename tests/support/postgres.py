"""One embedded server for the test run; a fresh database for each test that asks, cloned from a migrated one."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from docmem import postgres
from docmem.config import Settings
from docmem.postgres import Server

TEMPLATE = "docmem_template"
_numbers = itertools.count()


@contextmanager
def reachable_root() -> Iterator[Settings]:
    """Settings of a root that the server's user can reach; the server is gone afterwards.

    Not under pytest's own folder: that is closed to the user whom the server runs as for root.
    """
    folder = Path(tempfile.mkdtemp(prefix="docmem-tests-"))
    folder.chmod(0o711)
    settings = Settings(root=folder)
    try:
        yield settings
    finally:
        postgres.remove(settings)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """The embedded server of this test run, with a migrated database `docmem_template`."""
    from docmem_sync.migrate import migrate

    with reachable_root() as settings:
        server = postgres.start(settings)
        _make_fast(server)
        postgres.create_database(server, TEMPLATE)
        with psycopg.connect(server.dsn("owner", database=TEMPLATE), autocommit=True) as connection:
            migrate(connection)
        yield server


def _make_fast(server: Server) -> None:
    """What a test writes need not survive a power cut."""
    with psycopg.connect(server.dsn("admin", database="postgres"), autocommit=True) as admin:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            admin.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting)))
        admin.execute("SELECT pg_reload_conf()")


@pytest.fixture
def database(postgres_server: Server) -> Iterator[str]:
    """The name of a fresh, migrated database."""
    name = f"docmem_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(postgres_server.dsn("admin", database="postgres"), autocommit=True) as admin:
        admin.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER docmem_owner").format(
                sql.Identifier(name), sql.Identifier(TEMPLATE)
            )
        )
        yield name
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def indexed(settings: Settings, postgres_server: Server, database: str) -> Settings:
    """Settings of a fresh root and a fresh index of its own, without an embedder. The root is that of `settings`."""
    return Settings(
        root=settings.root,
        secret=settings.secret,
        embedding_model="none",
        dsn=postgres_server.dsn("reader", database=database),
        sync_dsn=postgres_server.dsn("sync", database=database),
        owner_dsn=postgres_server.dsn("owner", database=database),
    )
