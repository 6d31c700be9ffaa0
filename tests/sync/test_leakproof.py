"""leakproof: the switch that lets text search use an index, and that nobody turns by accident."""

from __future__ import annotations

import psycopg
import pytest

from docmem import db
from docmem.config import Settings
from docmem.errors import ConfigError
from docmem.files import render_memory
from docmem.postgres import Server
from docmem.recall import search
from docmem_sync import leakproof
from docmem_sync.sync import sync_tenant
from tests.support.repos import memory, put

QUESTION = "SELECT id FROM docmem.memory WHERE tenant_id = 'acme' AND tsv @@ 'tea'::tsquery"
MANY = """
INSERT INTO docmem.memory
SELECT (jsonb_populate_record(m, jsonb_build_object('id', n, 'tsv', 'coffee'))).*
FROM docmem.memory AS m, generate_series(1, 3000) AS n
"""


def plan(settings: Settings) -> str:
    with db.session(settings, "reader") as connection, db.tenant_transaction(connection, "acme") as cursor:
        return "\n".join(str(row["QUERY PLAN"]) for row in cursor.execute(f"EXPLAIN {QUESTION}"))


def test_it_is_off_until_a_superuser_turns_it_on_and_then_words_are_found_through_the_index(
    indexed: Settings, tenant: str, postgres_server: Server, database: str
) -> None:
    item = memory("Likes tea.")
    put(indexed, tenant, {item.path: render_memory(item), "docmem.yaml": b"format: 1\nlanguage: english\n"})
    sync_tenant(indexed, tenant)
    assert leakproof.state(indexed) == leakproof.State(False, False)
    assert "memory_words" not in plan(indexed)
    with psycopg.connect(postgres_server.dsn("admin", database=database), autocommit=True) as admin:
        admin.execute(MANY)
        admin.execute("ANALYZE docmem.memory")
        for turn in ("on", "on", "off"):
            for statement in leakproof.statements("on" if turn == "on" else "off"):
                admin.execute(statement)
            assert leakproof.state(indexed) == leakproof.State(turn == "on", turn == "on")
            assert ("memory_words" in plan(indexed)) is (turn == "on")
            assert [hit.text for hit in search(indexed, tenant, "tea").hits] == ["Likes tea."]


def test_another_postgres_gets_the_statements_for_its_superuser(indexed: Settings) -> None:
    with pytest.raises(ConfigError, match="only a superuser") as caught:
        leakproof.switch(indexed, "on")
    assert "ALTER FUNCTION pg_catalog.ts_match_vq" in caught.value.hint
