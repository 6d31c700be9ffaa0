"""Killed at any point, sync is run again and all is as if nothing had happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import closing

import psycopg
import pytest

from docmem import db
from docmem.config import Settings
from docmem.errors import ServerUnavailable
from docmem.files import render_memory
from docmem.postgres import Server
from docmem_sync.sync import sync_tenant
from tests.support.index import rows, whole_index
from tests.support.repos import memory, put
from tests.support.waiting import wait_until

SYNC = """
import sys
from pathlib import Path
from docmem.config import Settings
from docmem_sync.sync import sync_tenant
root, dsn, sync_dsn, owner_dsn = sys.argv[1:]
sync_tenant(Settings(root=Path(root), dsn=dsn, sync_dsn=sync_dsn, owner_dsn=owner_dsn), "acme")
"""

pytestmark = pytest.mark.usefixtures("tenant")


def start(settings: Settings) -> subprocess.Popen[bytes]:
    arguments = [str(settings.root), settings.dsn, settings.sync_dsn, settings.owner_dsn]
    return subprocess.Popen([sys.executable, "-c", SYNC, *map(str, arguments)])


def blocked(server: Server, database: str) -> list[int]:
    """Server processes of this database that wait for a lock."""
    with psycopg.connect(server.dsn("admin", database="postgres")) as admin:
        found = admin.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'", [database]
        )
        return [pid for (pid,) in found]


def working(server: Server, database: str) -> bool:
    with psycopg.connect(server.dsn("admin", database="postgres")) as admin:
        row = admin.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND usename = 'docmem_sync'", [database]
        ).fetchone()
    return row is not None and row[0] > 0


def test_killed_inside_its_transaction_sync_leaves_nothing_and_the_next_one_does_it_all(
    indexed: Settings, postgres_server: Server, database: str
) -> None:
    put(indexed, "acme", {item.path: render_memory(item) for item in (memory("One.", number=1),)})
    sync_tenant(indexed, "acme")
    before = whole_index(indexed)
    put(indexed, "acme", {item.path: render_memory(item) for item in (memory("Two.", number=2),)})
    with closing(db.connect(indexed, "sync")) as holder, db.tenant_transaction(holder, "acme") as cursor:
        # The watermark's row is the last thing sync writes: with it held, sync stops with all its rows written.
        cursor.execute("SELECT 1 FROM docmem.sync_state WHERE tenant_id = 'acme' FOR UPDATE")
        process = start(indexed)
        wait_until(lambda: blocked(postgres_server, database))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    wait_until(lambda: not working(postgres_server, database))
    assert whole_index(indexed) == before
    assert sync_tenant(indexed, "acme").upserts == 1
    assert [row["text"] for row in rows(indexed, "SELECT text FROM docmem.memory ORDER BY text")] == ["One.", "Two."]
    assert sync_tenant(indexed, "acme").upserts == 0


def test_a_server_session_that_dies_is_said_and_the_same_sync_goes_through_again(
    indexed: Settings, postgres_server: Server, database: str
) -> None:
    put(indexed, "acme", {item.path: render_memory(item) for item in (memory("One.", number=1),)})
    sync_tenant(indexed, "acme")
    put(indexed, "acme", {item.path: render_memory(item) for item in (memory("Two.", number=2),)})
    caught: list[BaseException] = []

    def work() -> None:
        try:
            sync_tenant(indexed, "acme")
        except ServerUnavailable as error:
            caught.append(error)

    with closing(db.connect(indexed, "sync")) as holder, db.tenant_transaction(holder, "acme") as cursor:
        cursor.execute("SELECT 1 FROM docmem.sync_state WHERE tenant_id = 'acme' FOR UPDATE")
        thread = threading.Thread(target=work)
        thread.start()
        pids = wait_until(lambda: blocked(postgres_server, database))
        with psycopg.connect(postgres_server.dsn("admin", database="postgres")) as admin:
            admin.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", [pids])
        thread.join()
    assert [error.exit_code for error in caught if isinstance(error, ServerUnavailable)] == [75]
    assert sync_tenant(indexed, "acme").upserts == 1


def test_two_syncs_at_once_write_each_row_once(indexed: Settings) -> None:
    put(indexed, "acme", {item.path: render_memory(item) for item in (memory(f"{n}.", number=n) for n in range(50))})
    done = []
    threads = [threading.Thread(target=lambda: done.append(sync_tenant(indexed, "acme"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.upserts for one in done) == [0, 0, 0, 50]
