"""migrate: one schema, whichever way it was made."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from importlib.resources import files
from typing import Any

import psycopg
import pytest
from psycopg import sql

from docmem import db, postgres, repository
from docmem.config import Settings
from docmem.errors import ConfigError, SchemaError
from docmem.jobs import JobTable
from docmem.postgres import Server
from docmem_sync import migrate
from docmem_sync.status import status
from docmem_sync.sync import sync_tenant
from tests.support.index import rows
from tests.support.repos import put

CATALOGUE = {
    "columns": """
        SELECT c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attstorage,
               pg_get_expr(d.adbin, d.adrelid)
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE c.relnamespace = 'docmem'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm')
    """,
    "tables": """
        SELECT relname, relkind, relrowsecurity, relforcerowsecurity, relacl::text, pg_get_userbyid(relowner)
        FROM pg_class WHERE relnamespace = 'docmem'::regnamespace
    """,
    "constraints": "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
    "WHERE connamespace = 'docmem'::regnamespace",
    "indexes": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'docmem'",
    "policies": "SELECT tablename, policyname, permissive, roles::text, cmd, qual, with_check FROM pg_policies",
    "functions": "SELECT proname, pg_get_functiondef(oid), proacl::text FROM pg_proc "
    "WHERE pronamespace = 'docmem'::regnamespace",
    "triggers": "SELECT tgrelid::regclass::text, tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
    "schema": "SELECT nspname, nspacl::text FROM pg_namespace WHERE nspname = 'docmem'",
}


def catalogue(dsn: str) -> dict[str, list[tuple[Any, ...]]]:
    with psycopg.connect(dsn) as connection:
        return {name: sorted(connection.execute(query).fetchall(), key=repr) for name, query in CATALOGUE.items()}


@pytest.fixture
def empty(postgres_server: Server) -> Iterator[str]:
    """The name of a database with the extension and without an index."""
    postgres.create_database(postgres_server, "docmem_empty")
    yield "docmem_empty"
    with psycopg.connect(postgres_server.dsn("admin", database="postgres"), autocommit=True) as admin:
        admin.execute("DROP DATABASE docmem_empty WITH (FORCE)")


def at(settings: Settings, server: Server, database: str) -> Settings:
    return replace(
        settings,
        dsn=server.dsn("reader", database=database),
        sync_dsn=server.dsn("sync", database=database),
        owner_dsn=server.dsn("owner", database=database),
    )


def test_schema_sql_and_the_migrations_make_the_same_database(
    postgres_server: Server, database: str, empty: str
) -> None:
    owner = postgres_server.dsn("owner", database=empty)
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(files("docmem_sync").joinpath("schema.sql").read_text())
    assert catalogue(owner) == catalogue(postgres_server.dsn("owner", database=database))


def test_texts_of_before_have_the_words_of_now(indexed: Settings, tenant: str) -> None:
    said = {"a": "Booked on LH-1234.", "b": "Frau Müller", "c": "東京の寿司屋", "d": "plain tea"}
    put(indexed, tenant, {f"knowledge/{name}.md": text.encode() for name, text in said.items()})
    sync_tenant(indexed, tenant)
    words = "SELECT path, tsv::text FROM docmem.document ORDER BY path"
    before = rows(indexed, words)
    [(_, text)] = [(version, text) for version, text in migrate.migrations() if version == 10]
    with closing(db.connect(indexed, "owner")) as owner, owner.transaction():
        owner.execute("SELECT set_config('app.current_tenant', 'acme', true)")
        owner.execute("UPDATE docmem.document SET tsv = to_tsvector('simple', text)")
        owner.execute(
            text[text.index("-- What is there already") :].replace("RETURN 10", f"RETURN {db.SCHEMA_VERSION}")
        )
    changed = {row["path"] for row in rows(indexed, words) if row not in before}
    assert changed == {"knowledge/d.md"}  # prose of ASCII is left alone


def test_the_last_migration_is_the_version_this_docmem_knows() -> None:
    versions = [version for version, _ in migrate.migrations()]
    assert versions == list(range(1, db.SCHEMA_VERSION + 1))


def test_a_first_sync_makes_the_schema_and_the_next_needs_no_owner(
    indexed: Settings, postgres_server: Server, empty: str
) -> None:
    settings = at(indexed, postgres_server, empty)
    with closing(db.connect(settings, "sync")) as connection:
        with pytest.raises(SchemaError, match="missing") as caught:
            migrate.ensure(replace(settings, owner_dsn=None), connection)
        assert "DOCMEM_OWNER_DSN" in caught.value.hint
        migrate.ensure(settings, connection)
        migrate.ensure(replace(settings, owner_dsn=None), connection)
    with closing(db.connect(settings, "reader")) as connection:
        db.check_schema(connection)


def test_two_migrations_at_once_make_one_schema(indexed: Settings, postgres_server: Server, empty: str) -> None:
    settings = at(indexed, postgres_server, empty)
    done: list[int] = []

    def work() -> None:
        with closing(db.connect(settings, "owner")) as connection:
            done.append(migrate.migrate(connection))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(done) == db.SCHEMA_VERSION  # each migration once, whoever got the lock for it
    with closing(db.connect(settings, "reader")) as connection:
        db.check_schema(connection)


def test_a_failed_migration_leaves_nothing(indexed: Settings, postgres_server: Server, empty: str) -> None:
    owner = postgres_server.dsn("owner", database=empty)
    with psycopg.connect(owner, autocommit=True) as connection:
        with pytest.raises(psycopg.Error):
            migrate._apply(connection, 1, "CREATE SCHEMA docmem; SELECT 1 / 0", {})
        with pytest.raises(SchemaError, match="doesn't set its version"):
            migrate._apply(connection, 1, "CREATE SCHEMA docmem", {})
        assert db.schema_version(connection) is None
        assert connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'docmem'").fetchone() is None


def test_an_owner_that_may_not_set_up_is_told_what_an_administrator_runs(
    indexed: Settings, postgres_server: Server
) -> None:
    """A database without the extension, whose owner may not create it."""
    admin_dsn = postgres_server.dsn("admin", database="postgres")
    with psycopg.connect(admin_dsn, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE docmem_poor OWNER docmem_owner"))
    try:
        with (
            closing(db.connect(at(indexed, postgres_server, "docmem_poor"), "owner")) as connection,
            pytest.raises(ConfigError, match="docmem_owner may not set up the index") as caught,
        ):
            migrate.migrate(connection)
        statements = caught.value.hint.split("\n", 1)[1]
        assert "CREATE EXTENSION vector;" in statements
        with psycopg.connect(postgres_server.dsn("admin", database="docmem_poor"), autocommit=True) as admin:
            for statement in statements.split(";"):
                if statement.strip():
                    admin.execute(statement)
        with closing(db.connect(at(indexed, postgres_server, "docmem_poor"), "owner")) as connection:
            assert migrate.migrate(connection) == db.SCHEMA_VERSION
    finally:
        with psycopg.connect(admin_dsn, autocommit=True) as admin:
            admin.execute("DROP DATABASE docmem_poor WITH (FORCE)")


# --- a Postgres of one's own, with login roles that have no rights yet


@pytest.fixture
def own(indexed: Settings, postgres_server: Server) -> Iterator[Settings]:
    """A database that an administrator prepared: an owner, the extension, and plain roles that may only log in."""
    with psycopg.connect(postgres_server.dsn("admin", database="postgres"), autocommit=True) as admin:
        for role in LOGINS:
            admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'p'").format(sql.Identifier(role)))
        admin.execute("CREATE DATABASE docmem_own OWNER ow")
        with psycopg.connect(postgres_server.dsn("admin", database="docmem_own"), autocommit=True) as inside:
            inside.execute("CREATE EXTENSION vector")
        where = f"127.0.0.1:{postgres_server.port}/docmem_own"
        repository.create(indexed, "acme")
        yield replace(
            indexed,
            owner_dsn=f"postgresql://ow:p@{where}",
            sync_dsn=f"postgresql://ns:p@{where}",
            dsn=f"postgresql://nr:p@{where}",
        )
        admin.execute("DROP DATABASE docmem_own WITH (FORCE)")
        for role in reversed(LOGINS):  # the owner last: it may have granted
            admin.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


LOGINS = ("ow", "ns", "nr")


def as_administrator(server: Server, *statements: str) -> None:
    with psycopg.connect(server.dsn("admin", database="docmem_own"), autocommit=True) as admin:
        for statement in statements:
            admin.execute(statement)


def test_login_roles_without_rights_are_told_what_to_grant_and_then_it_works(
    own: Settings, postgres_server: Server
) -> None:
    for _ in range(2):
        with pytest.raises(ConfigError, match="role ns may not use the index yet") as caught:
            sync_tenant(own, "acme")
        statements = caught.value.hint.split("\n")[1:]
        assert statements == ['GRANT "docmem_sync" TO "ns";', 'GRANT "docmem_reader" TO "nr";']
    as_administrator(postgres_server, *statements)
    assert sync_tenant(own, "acme").after
    assert [row["tenant"] for row in status(own, ["acme"])["tenants"]] == ["acme"]
    assert JobTable(own).listed("acme") == []


def test_an_owner_who_may_grant_gives_the_login_roles_their_rights(own: Settings, postgres_server: Server) -> None:
    as_administrator(postgres_server, "GRANT docmem_sync, docmem_reader TO ow WITH ADMIN OPTION")
    assert sync_tenant(own, "acme").after
    assert "error" not in status(own, ["acme"])["server"]


def test_the_administrators_list_names_the_login_roles_too(own: Settings, postgres_server: Server) -> None:
    as_administrator(postgres_server, "DROP EXTENSION vector")
    with pytest.raises(ConfigError, match="ow may not set up the index") as caught:
        sync_tenant(own, "acme")
    statements = caught.value.hint.split("\n")[1:]
    assert len(statements) == 4
    as_administrator(postgres_server, *statements)
    assert sync_tenant(own, "acme").after


def test_a_role_whose_rights_were_taken_away_is_told_the_grant_of_its_own_setting(
    own: Settings, postgres_server: Server
) -> None:
    as_administrator(postgres_server, "GRANT docmem_sync TO ns", "GRANT docmem_reader TO nr")
    sync_tenant(own, "acme")
    as_administrator(
        postgres_server, "REVOKE docmem_reader FROM nr", "GRANT docmem_reader TO ns", "REVOKE docmem_sync FROM ns"
    )
    with pytest.raises(
        ConfigError, match="role nr may not use the index: permission denied for schema docmem"
    ) as reading:
        JobTable(own).listed("acme")
    assert reading.value.hint.endswith('GRANT docmem_reader TO "nr";')
    put(own, "acme", {"knowledge/a.md": b"a\n"})
    with pytest.raises(ConfigError, match="role ns may not use the index: ") as syncing:
        sync_tenant(own, "acme")
    assert syncing.value.hint.endswith('GRANT docmem_sync TO "ns";')
