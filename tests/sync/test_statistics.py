"""What the planner is told of a tenant after a large sync."""

from __future__ import annotations

import psycopg
import pytest

from docmem.config import Settings
from docmem.files import render_memory
from docmem.postgres import Server
from docmem_sync import statistics
from docmem_sync.sync import sync_tenant
from tests.support.repos import memory, put
from tests.support.waiting import wait_until

ANALYZED = "SELECT count(*) FROM pg_stat_user_tables WHERE schemaname = 'docmem' AND analyze_count > 0"


def test_a_large_sync_tells_the_planner_of_the_tenant_and_a_small_one_does_not(
    indexed: Settings, tenant: str, postgres_server: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def analyzed() -> int:
        with psycopg.connect(postgres_server.dsn("admin", database=database)) as admin:
            admin.execute("SELECT pg_stat_force_next_flush()")
            found = admin.execute(ANALYZED).fetchone()
        assert found is not None
        return int(found[0])

    monkeypatch.setattr(statistics, "MANY", 3)
    memories = [memory(f"Number {number}.", number=number) for number in range(2)]
    put(indexed, "acme", {one.path: render_memory(one) for one in memories})
    sync_tenant(indexed, "acme")
    assert analyzed() == 0
    put(indexed, "acme", {f"knowledge/{number}.md": b"x\n" for number in range(3)})
    sync_tenant(indexed, "acme")
    wait_until(lambda: analyzed() == 5)
