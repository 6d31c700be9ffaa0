"""db: who may connect, what a session sees, what is said when it can't."""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row

from docmem import db, postgres
from docmem.config import Settings
from docmem.errors import ConfigError, DocmemError, InvalidName, RoleRefused, SchemaError, ServerUnavailable, TryAgain
from docmem.postgres import Server
from docmem.relay import Relay
from docmem_evals import proxy
from docmem_sync import migrate
from tests.support.postgres import reachable_root
from tests.support.waiting import wait_until

ROLES: tuple[db.Role, ...] = ("reader", "sync", "owner")
BOUND: tuple[db.Role, ...] = ("reader", "sync")
FILL = {
    "sync_state": "revision, synced_at, projection) VALUES (%(t)s, 'r', now(), 1",
    "tenant_config": "config, language, retention, budgets, weights, revision) "
    "VALUES (%(t)s, '{}', 'simple', '{}', '{}', '{}', 'r'",
    "memory": "id, path, blob, revision, subject, kind, text, importance, turns, supersedes, meta, projection, "
    "projection_hash, tsv, created_at, updated_at) "
    "VALUES (%(t)s, 'i', 'p', 'b', 'r', 's', 'fact', 'x', 5, '{}', '{}', '{}', 'x', 'h', '', now(), now()",
    "memory_vector": "id, set, projection_hash, embedding) VALUES (%(t)s, 'i', 'm/3/1', 'h', '[1,2,3]'",
    "profile": "subject, path, blob, revision, version, remember, attributes, pinned, meta, updated_at) "
    "VALUES (%(t)s, 's', 'p', 'b', 'r', 1, true, '{}', '{}', '{}', now()",
    "document": "path, chunk, id, blob, revision, folder, title, text, meta, projection, projection_hash, tsv, "
    "updated_at) VALUES (%(t)s, 'p', 0, 'i', 'b', 'r', 'knowledge', 't', 'x', '{}', 'x', 'h', '', now()",
    "document_vector": "path, chunk, set, projection_hash, embedding) VALUES (%(t)s, 'p', 0, 'm/3/1', 'h', '[1,2,3]'",
    "quarantine": "path, blob, revision, code, line, reason, since) VALUES (%(t)s, 'p', 'b', 'r', 'c', 1, 'x', now()",
    "memory_history": "id, step, op, revision, recorded_from, path, blob, subject, kind, text, importance, turns, "
    "supersedes, meta) VALUES (%(t)s, 'i', 1, 'create', 'r', now(), 'p', 'b', 's', 'fact', 'x', 5, '{}', '{}', '{}'",
    "profile_history": "subject, step, op, revision, recorded_from, path, blob, remember, attributes, pinned, meta) "
    "VALUES (%(t)s, 's', 1, 'create', 'r', now(), 'p', 'b', true, '{}', '{}', '{}'",
    "revision_map": "old, new) VALUES (%(t)s, 'a', 'b'",
    "vector_set": "set, serves, indexed, used_at) VALUES (%(t)s, 'm/3/1', true, false, now()",
    "usage": "memory, agent, last_used_run, uses, used_at) VALUES (%(t)s, 'i', 'default', 1, 1, now()",
    "trace": "agent, run, packet, starts, ends, block, memory, path, revision, subject, at) "
    "VALUES (%(t)s, 'default', 1, 'h', 0, 1, 'facts', 'i', 'p', 'r', 's', now()",
    "channel": "key) VALUES (%(t)s, 'k'",
    "job": "thread, subject, agent, attempts, reason, failed_at) VALUES (%(t)s, 'w', 's', 'default', 6, 'x', now()",
}


def tables(connection: psycopg.Connection[Any]) -> list[str]:
    """Every table of the catalogue, so that a new one can't be forgotten here."""
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(
            "SELECT relname::text AS name FROM pg_class "
            "WHERE relnamespace = 'docmem'::regnamespace AND relkind IN ('r', 'p') ORDER BY relname"
        ).fetchall()
    return [row["name"] for row in rows]


def count(cursor: Any, table: str) -> int:
    row = cursor.execute(sql.SQL("SELECT count(*) AS n FROM docmem.{}").format(sql.Identifier(table))).fetchone()
    return int(row["n"])


@pytest.fixture
def filled(indexed: Settings) -> Settings:
    """An index with a row of tenant `acme` in every table."""
    with closing(db.connect(indexed, "sync")) as connection:
        assert sorted(FILL) == tables(connection)
        with db.tenant_transaction(connection, "acme") as cursor:
            for table, values in FILL.items():
                cursor.execute(f"INSERT INTO docmem.{table} (tenant_id, {values})", {"t": "acme"})
    return indexed


def test_each_role_reaches_a_migrated_index(indexed: Settings) -> None:
    for role in ROLES:
        with closing(db.connect(indexed, role)) as connection:
            db.check_schema(connection)


@pytest.mark.parametrize("role", ROLES)
def test_without_a_tenant_or_as_another_no_row_of_any_table_is_seen(filled: Settings, role: db.Role) -> None:
    with closing(db.connect(filled, role)) as connection:
        for table in tables(connection):
            with connection.cursor() as cursor:
                assert count(cursor, table) == 0, table
            with db.tenant_transaction(connection, "acme") as cursor:
                assert count(cursor, table) == 1, table
            with db.tenant_transaction(connection, "acm") as cursor:
                assert count(cursor, table) == 0, table
            with connection.cursor() as cursor:
                assert count(cursor, table) == 0, table


def test_every_table_forces_row_level_security_and_starts_its_key_with_the_tenant(indexed: Settings) -> None:
    with closing(db.connect(indexed, "owner")) as connection:
        rows = connection.execute(
            """
            SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity,
                   (SELECT count(*) FROM pg_policy WHERE polrelid = c.oid) AS policies,
                   (SELECT a.attname FROM pg_index i
                    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
                    WHERE i.indrelid = c.oid AND i.indisprimary) AS first,
                   (SELECT attnotnull FROM pg_attribute WHERE attrelid = c.oid AND attname = 'tenant_id') AS not_null
            FROM pg_class c WHERE c.relnamespace = 'docmem'::regnamespace AND c.relkind IN ('r', 'p')
            """
        ).fetchall()
    assert len(rows) == len(FILL)
    for row in rows:
        assert row["relrowsecurity"], row
        assert row["relforcerowsecurity"], row
        assert row["policies"] == 1, row
        assert (row["first"], row["not_null"]) == ("tenant_id", True), row


def test_the_reader_writes_nothing_but_what_was_used(filled: Settings) -> None:
    counted = {"usage", "trace"}
    with closing(db.connect(filled, "reader")) as connection:
        for table in tables(connection):
            statements = ["DELETE FROM docmem.{}", "TRUNCATE docmem.{}"]
            if table not in counted:
                statements.append("UPDATE docmem.{} SET tenant_id = 'x'")
            for statement in statements:
                with (
                    pytest.raises(psycopg.errors.InsufficientPrivilege),
                    db.tenant_transaction(connection, "acme") as c,
                ):
                    c.execute(sql.SQL(statement).format(sql.Identifier(table)))
            refused = psycopg.errors.UniqueViolation if table in counted else psycopg.errors.InsufficientPrivilege
            with pytest.raises(refused), db.tenant_transaction(connection, "acme") as c:
                c.execute(f"INSERT INTO docmem.{table} (tenant_id, {FILL[table]})", {"t": "acme"})


def test_nobody_writes_a_row_of_another_tenant(indexed: Settings) -> None:
    insert = "INSERT INTO docmem.sync_state (tenant_id, " + FILL["sync_state"] + ")"
    for role in ("sync", "owner"):
        with closing(db.connect(indexed, role)) as connection:
            for tenant in ("other", ""):
                with (
                    pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.CheckViolation)),
                    db.tenant_transaction(connection, "acme") as cursor,
                ):
                    cursor.execute(insert, {"t": tenant})


def test_a_tenant_is_gone_with_its_transaction_even_if_that_failed(filled: Settings) -> None:
    """Case I1, without the pooler: a connection that was used for one tenant is nobody's afterwards."""
    with closing(db.connect(filled, "reader")) as connection:

        def seen() -> int:
            with connection.cursor() as cursor:
                return count(cursor, "memory")

        with pytest.raises(ZeroDivisionError), db.tenant_transaction(connection, "acme"):
            raise ZeroDivisionError
        assert seen() == 0
        with pytest.raises(psycopg.errors.DivisionByZero), db.tenant_transaction(connection, "acme") as cursor:
            cursor.execute("SELECT 1 / 0")
        assert seen() == 0
        connection.execute("RESET ALL")
        assert seen() == 0
        with pytest.raises(InvalidName), db.tenant_transaction(connection, "a' OR true --"):
            pass
        with pytest.raises(InvalidName), db.tenant_transaction(connection, ""):
            pass


@pytest.fixture
def proxied() -> Iterator[Callable[[Settings], Settings]]:
    """Puts a real PgBouncer in transaction mode, with one session a role, between us and Postgres."""
    if proxy.program() is None:
        pytest.skip("PgBouncer is not installed")
    with ExitStack() as stack:
        yield lambda settings: stack.enter_context(proxy.proxied(settings, sessions=1))


def test_behind_a_transaction_pooler_a_session_is_nobodys_between_transactions(
    filled: Settings, proxied: Callable[[Settings], Settings]
) -> None:
    """Case I1: who set its tenant and failed, who forgot to set one, the owner, and a reset share one session."""
    settings = proxied(filled)

    def seen(connection: psycopg.Connection[Any]) -> int:
        with connection.cursor() as cursor:
            return count(cursor, "memory")

    for role in ROLES:
        with closing(db.connect(settings, role)) as one, closing(db.connect(settings, role)) as other:
            for _ in range(10):
                with db.tenant_transaction(one, "acme") as cursor:
                    assert count(cursor, "memory") == 1
                assert seen(other) == 0
                with pytest.raises(psycopg.errors.DivisionByZero), db.tenant_transaction(one, "acme") as cursor:
                    cursor.execute("SELECT 1 / 0")
                assert (seen(one), seen(other)) == (0, 0)
                one.execute("RESET ALL")
                assert seen(other) == 0
                [rows] = db.run(one, "acme", [("SELECT id FROM docmem.memory", {})], seconds=10)
                assert (len(rows), seen(other)) == (1, 0)
            assert one.execute("SELECT count(*) AS n FROM pg_prepared_statements").fetchone() == {"n": 0}


def test_a_pools_connections_are_nobodys_between_uses(filled: Settings) -> None:
    with db.reader_pool(filled, max_size=1) as pool:
        with db.pooled(pool) as connection, db.tenant_transaction(connection, "acme") as cursor:
            assert count(cursor, "memory") == 1
        with db.pooled(pool) as connection, connection.cursor() as cursor:
            assert count(cursor, "memory") == 0


def test_an_analysts_connection_string_sees_its_tenant_alone(filled: Settings) -> None:
    assert filled.dsn is not None
    keywords = psycopg.conninfo.make_conninfo(filled.dsn)
    for settings in (filled, replace(filled, dsn=keywords), replace(filled, dsn=filled.dsn + "?connect_timeout=3")):
        with psycopg.connect(db.tenant_dsn(settings, "acme"), row_factory=dict_row) as connection:
            assert count(connection, "memory") == 1
        with psycopg.connect(db.tenant_dsn(settings, "other"), row_factory=dict_row) as connection:
            assert count(connection, "memory") == 0
    with pytest.raises(InvalidName):
        db.tenant_dsn(filled, "a -c role=docmem_owner")


def test_a_role_for_strangers_is_kept_to_one_tenant_whatever_it_sets(
    filled: Settings, postgres_server: Server, database: str
) -> None:
    """The statements of sync/README.md."""
    text = (Path(__file__).parents[1] / "sync" / "README.md").read_text()
    statements = next(block for block in text.split("```sql\n") if "analyst_acme" in block).split("```")[0]
    with psycopg.connect(postgres_server.dsn("admin", database=database), autocommit=True) as admin:
        admin.execute(statements.encode())
        try:
            dsn = make_conninfo(postgres_server.dsn("reader", database=database), user="analyst_acme", password="…")
            with closing(db.connect(filled, "sync")) as other, db.tenant_transaction(other, "other") as cursor:
                cursor.execute(f"INSERT INTO docmem.profile (tenant_id, {FILL['profile']})", {"t": "other"})
            with psycopg.connect(dsn, row_factory=dict_row, autocommit=True) as connection:
                assert count(connection, "profile") == 1
                connection.execute("SET app.current_tenant = 'other'")
                assert count(connection, "profile") == 0
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    count(connection, "memory")
        finally:
            admin.execute("DROP OWNED BY analyst_acme; DROP ROLE analyst_acme")


def test_a_pool_gives_the_connection_that_was_used_last(filled: Settings) -> None:
    with db.reader_pool(filled, min_size=3, max_size=3) as pool:
        pool.wait(timeout=30)
        three = [pool.getconn() for _ in range(3)]
        for connection in three:
            pool.putconn(connection)
        for _ in range(3):
            with pool.connection() as connection:
                assert connection is three[-1]


def test_a_pool_starts_an_embedded_server_that_was_killed_again() -> None:
    with reachable_root() as settings:
        server = postgres.start(settings)
        with db.reader_pool(settings, max_size=2) as pool:
            os.kill(server.pid, signal.SIGKILL)
            wait_until(lambda: postgres.running(settings) is None)

            def answers() -> bool:
                try:
                    with db.pooled(pool) as connection:
                        return connection.execute("SELECT 1").fetchone() is not None
                except (psycopg.OperationalError, ServerUnavailable):
                    return False

            wait_until(answers)


# --- roles that row-level security doesn't bind


def test_a_role_that_may_not_connect_names_what_lets_it_in(
    indexed: Settings, postgres_server: Server, database: str, role: str
) -> None:
    settings = as_role(indexed, postgres_server, database, role)
    for lock in (f'REVOKE CONNECT ON DATABASE "{database}" FROM {role}, PUBLIC, docmem_reader, docmem_sync',
                 f"ALTER ROLE {role} NOLOGIN"):  # fmt: skip
        administer(postgres_server, database, lock)
        with pytest.raises(ConfigError, match="refuses us") as caught:
            db.connect(settings, "reader")
        who, _, statement = caught.value.hint.partition(": ")
        assert who == "as an administrator"
        administer(postgres_server, database, statement)
        db.connect(settings, "reader").close()


@pytest.fixture
def role(postgres_server: Server, database: str) -> Iterator[str]:
    """A role of its own for one test, with the reader's rights; dropped afterwards."""
    name = f"role_{database}"
    with psycopg.connect(postgres_server.dsn("admin", database=database), autocommit=True) as admin:
        who = sql.Identifier(name)
        admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'pw'").format(who))
        admin.execute(sql.SQL("GRANT docmem_reader, docmem_sync TO {}").format(who))
        admin.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(sql.Identifier(database), who))
        yield name
        admin.execute(sql.SQL("DROP OWNED BY {}; DROP ROLE {}").format(who, who))


def administer(server: Server, database: str, *statements: str) -> None:
    with psycopg.connect(server.dsn("admin", database=database), autocommit=True) as admin:
        for statement in statements:
            admin.execute(statement)


def as_role(settings: Settings, server: Server, database: str, name: str) -> Settings:
    dsn = f"postgresql://{name}:pw@127.0.0.1:{server.port}/{database}"
    return replace(settings, dsn=dsn, sync_dsn=dsn, owner_dsn=dsn)


def test_a_role_with_the_readers_rights_is_served(
    indexed: Settings, postgres_server: Server, database: str, role: str
) -> None:
    with closing(db.connect(as_role(indexed, postgres_server, database, role), "reader")) as connection:
        db.check_schema(connection)


@pytest.mark.parametrize(
    "power",
    [
        "ALTER ROLE {} SUPERUSER",
        "ALTER ROLE {} BYPASSRLS",
        "GRANT docmem_admin TO {}",
        "GRANT docmem_admin TO {} WITH INHERIT FALSE, SET TRUE",
        "GRANT docmem_admin TO {} WITH ADMIN TRUE, INHERIT FALSE, SET FALSE",
        "CREATE ROLE {}_bypass BYPASSRLS; CREATE ROLE {}_between ROLE {}; GRANT {}_bypass TO {}_between",
        "GRANT pg_execute_server_program TO {}",
        "ALTER ROLE {} SUPERUSER; ALTER ROLE {} SET role = docmem_reader",
    ],
)
@pytest.mark.parametrize("session", BOUND)
def test_a_session_that_row_level_security_does_not_bind_is_refused(
    indexed: Settings, postgres_server: Server, database: str, role: str, power: str, session: db.Role
) -> None:
    """Case I4."""
    administer(postgres_server, database, power.replace("{}", role))
    try:
        with pytest.raises(RoleRefused, match="row-level security") as caught:
            db.connect(as_role(indexed, postgres_server, database, role), session)
        assert role in caught.value.message
        assert "NOBYPASSRLS" in caught.value.hint
        with pytest.raises(RoleRefused):
            db.reader_pool(as_role(indexed, postgres_server, database, role))
    finally:
        administer(
            postgres_server,
            database,
            f"ALTER ROLE {role} NOSUPERUSER; DROP ROLE IF EXISTS {role}_bypass, {role}_between",
        )


# --- what is said when it can't


def test_a_connection_that_fails_leaves_nothing_for_the_collector(tmp_path: Path) -> None:
    """In an outage of an hour it was a socket for each try."""
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = Settings(root=tmp_path, dsn=f"postgresql://docmem@127.0.0.1:{taken.getsockname()[1]}/docmem")
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                with pytest.raises(ServerUnavailable):
                    db.connect(nobody, "reader")
            left = [type(each) for each in gc.get_objects() if isinstance(each, psycopg.Error)]
        finally:
            gc.enable()
    assert len(left) <= 1, "pytest keeps the last"


def test_a_closed_port_is_said_in_one_line_without_the_password(indexed: Settings) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        dsn = f"postgresql://ana:sesame@127.0.0.1:{taken.getsockname()[1]}/x"
        with pytest.raises(ServerUnavailable, match=r"no Postgres answers at 127\.0\.0\.1") as caught:
            db.connect(replace(indexed, dsn=dsn), "reader")
    said = caught.value.message + caught.value.hint
    assert "sesame" not in said
    assert "\n" not in said
    assert "DOCMEM_DSN" in said


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("docmem_reader:", "docmem_reader:sesame"), "password authentication failed"),
        (("docmem_reader:", "nobody_of_that_name:"), "password authentication failed"),
        (("/docmem_", "/sesame_"), "does not exist"),
    ],
)
def test_a_wrong_user_password_or_database_is_said_in_one_line(
    indexed: Settings, change: tuple[str, str], words: str
) -> None:
    assert indexed.dsn is not None
    scheme, rest = indexed.dsn.split("://")
    with pytest.raises(ConfigError, match=words) as caught:
        db.connect(replace(indexed, dsn=f"{scheme}://{rest.replace(*change)}"), "reader")
    said = caught.value.message + caught.value.hint
    assert "\n" not in said
    assert "DOCMEM_DSN" in said


@pytest.mark.parametrize(
    "dsn", ["sesame", "postgresql://ana:ses ame@h/x", "postgresql://ana:ses%zzame@h/x", "mysql://ana:sesame@h/x"]
)
def test_what_is_no_connection_string_is_said_without_quoting_it(indexed: Settings, dsn: str) -> None:
    with pytest.raises(ConfigError, match="DOCMEM_DSN is not a connection string") as caught:
        db.connect(replace(indexed, dsn=dsn), "reader")
    assert "ame" not in caught.value.message.replace("DOCMEM", "")


def test_a_role_that_is_not_configured_is_asked_for_by_its_setting(indexed: Settings) -> None:
    with pytest.raises(ConfigError, match="DOCMEM_SYNC_DSN is not set"):
        db.dsn(replace(indexed, sync_dsn=None), "sync")
    with pytest.raises(ConfigError, match="DOCMEM_OWNER_DSN is not set"):
        db.dsn(replace(indexed, owner_dsn=None), "owner")
    with pytest.raises(ConfigError, match="DOCMEM_DSN is not set"):
        db.dsn(replace(indexed, dsn=None), "reader")


def test_a_role_without_rights_on_the_index_is_told_which_grant_it_needs(
    indexed: Settings, postgres_server: Server, database: str, role: str
) -> None:
    administer(postgres_server, database, f"REVOKE docmem_reader, docmem_sync FROM {role}")
    with (
        closing(db.connect(as_role(indexed, postgres_server, database, role), "reader")) as connection,
        pytest.raises(ConfigError, match="may not use the index") as caught,
    ):
        db.check_schema(connection)
    assert f'GRANT docmem_reader TO "{role}"' in caught.value.hint


# --- the schema


@pytest.fixture
def bare(postgres_server: Server, indexed: Settings) -> Iterator[Settings]:
    """A database with the extension, and without an index."""
    postgres.create_database(postgres_server, "docmem_bare")
    yield replace(
        indexed,
        dsn=postgres_server.dsn("reader", database="docmem_bare"),
        sync_dsn=postgres_server.dsn("sync", database="docmem_bare"),
        owner_dsn=postgres_server.dsn("owner", database="docmem_bare"),
    )
    administer(postgres_server, "postgres", "DROP DATABASE docmem_bare WITH (FORCE)")


def test_a_database_without_an_index_is_told_from_one_that_is_behind_or_ahead(bare: Settings) -> None:
    with closing(db.connect(bare, "reader")) as reader, closing(db.connect(bare, "owner")) as owner:
        with pytest.raises(SchemaError, match="no index"):
            db.check_schema(reader)
        migrate.migrate(owner)
        db.check_schema(reader)
        version = "CREATE OR REPLACE FUNCTION docmem.schema_version() RETURNS integer LANGUAGE sql IMMUTABLE RETURN "
        owner.execute(f"{version} {db.SCHEMA_VERSION - 1}")
        with pytest.raises(SchemaError, match=f"needs {db.SCHEMA_VERSION}") as behind:
            db.check_schema(reader)
        assert "docmem sync" in behind.value.hint
        owner.execute(f"{version} {db.SCHEMA_VERSION + 1}")
        with pytest.raises(SchemaError, match=f"version {db.SCHEMA_VERSION + 1}") as ahead:
            db.check_schema(reader)
        assert ahead.value.hint == "upgrade docmem"
        with pytest.raises(SchemaError, match=f"version {db.SCHEMA_VERSION + 1}"):
            migrate.migrate(owner)


def test_a_read_sees_the_tenant_of_its_transaction_whatever_tenant_it_is_asked_for(filled: Settings) -> None:
    scope = {"subject": "s", "agent": "default", "kinds": ["fact"], "folders": ["knowledge"]}
    search = {"question": "x", "languages": ["simple"], "sample": 9, "candidates": 9, "best": 9}
    near = {"vector": "[1,2,3]", "set": "m/3/1", "floor": -1}
    found = {**scope, **search, **near, "recent": ["fact"], "at_most": 9}
    asked = json.dumps({**scope, "found": found, "chunks": 9, "paths": ["p"], "persona": True, "run": 2, "runs": 3})
    statements = [("SELECT docmem.read('acme', %(asked)s) AS read", {"asked": asked})]
    with closing(db.connect(filled, "sync")) as connection, db.tenant_transaction(connection, "acme") as cursor:
        cursor.execute("UPDATE docmem.memory SET tsv = 'x'; UPDATE docmem.document SET tsv = 'x'")
    with closing(db.connect(filled, "reader")) as connection:
        [[own]] = db.run(connection, "acme", statements, seconds=20)
        assert all(own["read"][part] for part in ("tenant", "standing", "documents", "profile", "used"))
        assert all(own["read"]["found"][part] for part in ("memories", "by_words", "near", "recent", "documents"))
        empty = dict.fromkeys(own["read"])
        of_the_question = ("now", "words", "lexemes")
        for other in ("other", "acme2"):
            [[theirs]] = db.run(connection, other, statements, seconds=20)
            seen = theirs["read"].pop("found")
            assert theirs["read"] | {"found": None} == empty
            assert seen.pop("sampled") == 0
            assert not any(value for part, value in seen.items() if part not in of_the_question)
        nobody = connection.execute("SELECT docmem.read('acme', %s) AS read", [asked]).fetchone()
        assert nobody is not None
        assert nobody["read"]["found"]["memories"] is nobody["read"]["tenant"] is None


def _answer(
    connection: psycopg.Connection[Any], statement: str, values: Mapping[str, str] | None = None, *, seconds: float = 20
) -> Any:
    until = time.monotonic() + 30
    return db.answer(connection, "acme", statement, values or {}, seconds=lambda: seconds, until=until, relay=Relay(1))


def test_a_vector_is_of_the_subject_that_its_memory_is_of(filled: Settings) -> None:
    def near(subject: str) -> list[str]:
        scope = {"subject": subject, "agent": None, "kinds": ["fact"]}
        asked = json.dumps({"found": {**scope, "vector": "[1,2,3]", "set": "m/3/1", "floor": -1, "best": 9}})
        with closing(db.connect(filled, "reader")) as connection:
            read = _answer(connection, "SELECT docmem.read(%(tenant)s, %(asked)s)", {"asked": asked})
        return [id for id, _ in read["found"]["near"] or ()]

    assert (near("s"), near("t")) == (["i"], [])
    with closing(db.connect(filled, "sync")) as connection, db.tenant_transaction(connection, "acme") as cursor:
        cursor.execute("UPDATE docmem.memory SET subject = 't'")
    assert (near("s"), near("t")) == ([], ["i"])


@pytest.mark.parametrize(
    ("statement", "kind", "says"),
    [
        ("SELECT 1/0", psycopg.errors.DivisionByZero, "division by zero"),
        ("SELECT docmem.nothing(%(tenant)s)", psycopg.errors.UndefinedFunction, "does not exist"),
        ("SELECT to_json(1) FROM pg_sleep(9)", psycopg.errors.QueryCanceled, "statement timeout"),
    ],
)
def test_what_postgres_refuses_to_answer_is_raised_as_it_is_and_leaves_the_session_usable(
    filled: Settings, statement: str, kind: type[Exception], says: str
) -> None:
    with closing(db.connect(filled, "reader")) as connection:
        with pytest.raises(kind, match=says):
            _answer(connection, statement, seconds=0.05)
        quoted = {"text": "it's \\ 100% %(tenant)s"}
        assert _answer(connection, "SELECT to_json(%(text)s::text)", quoted) == quoted["text"]
        assert _answer(connection, "SELECT NULL::json") is None
        tenant = "SELECT to_json(current_setting('app.current_tenant', true))"
        assert _answer(connection, tenant) == "acme"
        assert connection.execute("SELECT current_setting('app.current_tenant', true) AS t").fetchone() == {"t": ""}


def test_a_server_that_went_away_while_it_was_asked_is_unavailable(filled: Settings) -> None:
    with closing(db.connect(filled, "reader")) as connection:
        itself = "SELECT to_json(pg_terminate_backend(pg_backend_pid()))"
        with pytest.raises(psycopg.OperationalError):
            _answer(connection, itself)
        assert connection.closed


# --- plans


def test_no_statement_of_ours_is_prepared(filled: Settings) -> None:
    with closing(db.connect(filled, "reader")) as connection:
        for _ in range(12):
            with db.tenant_transaction(connection, "acme") as cursor:
                cursor.execute("SELECT id FROM docmem.memory WHERE tenant_id = %(tenant)s", {"tenant": "acme"})
        assert connection.execute("SELECT count(*) AS n FROM pg_prepared_statements").fetchone() == {"n": 0}
        with db.tenant_transaction(connection, "acme") as cursor:
            assert cursor.execute("SHOW plan_cache_mode").fetchone() == {"plan_cache_mode": "force_custom_plan"}


SMALL, EACH, HOT, DIMENSIONS = 20, 12, 4_000, 8
NEAREST = """
    SELECT id FROM docmem.memory_vector
    WHERE tenant_id = %(tenant)s AND set = 'm/8/1'
    ORDER BY embedding::halfvec(8) <=> %(vector)s::halfvec(8), id LIMIT 8
"""


def vectors(seed: int, number: int) -> list[str]:
    chance = random.Random(seed)
    return [json.dumps([chance.gauss(seed % 7, 1) for _ in range(DIMENSIONS)]) for _ in range(number)]


@pytest.fixture
def crowded(indexed: Settings) -> Settings:
    """One tenant with thousands of vectors and an index over them, twenty with a dozen."""
    sizes = {"hot": HOT, **{f"small{number}": EACH for number in range(SMALL)}}
    with closing(db.connect(indexed, "sync")) as connection:
        for seed, (tenant, size) in enumerate(sizes.items()):
            ids = [f"{number:016x}" for number in range(size)]
            memory = FILL["memory"].replace("VALUES (%(t)s, 'i'", "SELECT %(t)s, i")
            with db.tenant_transaction(connection, tenant) as cursor:
                cursor.execute(
                    f"INSERT INTO docmem.memory (tenant_id, {memory} FROM unnest(%(ids)s::text[]) AS i",
                    {"t": tenant, "ids": ids},
                )
                cursor.execute(
                    "INSERT INTO docmem.memory_vector SELECT %(t)s, i, 'm/8/1', 'h', v::halfvec "
                    "FROM unnest(%(ids)s::text[], %(vectors)s::text[]) AS r (i, v)",
                    {"t": tenant, "ids": ids, "vectors": vectors(seed, size)},
                )
    with closing(db.connect(indexed, "owner")) as connection:
        connection.execute(
            "CREATE INDEX ON docmem.memory_vector USING hnsw ((embedding::halfvec(8)) halfvec_cosine_ops)"
        )
        connection.execute("ANALYZE docmem.memory_vector")
    return indexed


def nearest(connection: psycopg.Connection[Any], tenant: str, vector: str, *, exact: bool = False) -> list[str]:
    with db.tenant_transaction(connection, tenant) as cursor:
        if exact:
            cursor.execute("SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off")
        return [row["id"] for row in cursor.execute(NEAREST, {"tenant": tenant, "vector": vector}).fetchall()]


def test_a_plan_made_for_a_large_tenant_never_serves_a_small_one(crowded: Settings) -> None:
    """Case I3: on one connection the large tenant fifteen times, then small ones, and the other way round."""
    question = vectors(99, 1)[0]
    small = [f"small{number}" for number in range(SMALL)]
    with closing(db.connect(crowded, "reader")) as connection:
        for order in (["hot"] * 15 + small, small * 2 + ["hot"] * 5):
            for tenant in order:
                found = nearest(connection, tenant, question)
                assert len(found) == 8, tenant
                if tenant != "hot":
                    assert found == nearest(connection, tenant, question, exact=True)


@pytest.mark.parametrize("pooled", [False, True], ids=["direct", "behind a transaction pooler"])
def test_the_plan_of_a_read_is_shared_and_gives_each_tenant_all_of_its_rows(
    crowded: Settings, proxied: Callable[[Settings], Settings], pooled: bool
) -> None:
    scope, question = {"subject": "s", "agent": "a", "kinds": ["fact"]}, vectors(99, 1)[0]
    near = {"vector": question, "set": "m/8/1", "floor": -1, "best": 8}
    asked = json.dumps({"found": {**scope, **near, "recent": ["fact"], "at_most": 50}})
    small = [f"small{number}" for number in range(SMALL)]
    with closing(db.connect(proxied(crowded) if pooled else crowded, "reader")) as connection:
        for order in (["hot"] * 8 + small, small + ["hot"] * 3):
            for tenant in order:
                statements = [("SELECT docmem.read(%(tenant)s, %(asked)s) AS read", {"asked": asked})]
                [[row]] = db.run(connection, tenant, statements, seconds=20)
                found = row["read"]["found"]
                assert len(found["recent"]) == (50 if tenant == "hot" else EACH), tenant
                assert [id for id, _ in found["near"]] == nearest(connection, tenant, question, exact=True)
        nobody = connection.execute("SELECT docmem.read('hot', %s) -> 'found' ->> 'memories' AS shown", [asked])
        assert nobody.fetchone() == {"shown": None}


def test_a_shared_session_behind_a_transaction_pooler_serves_each_tenant_all_of_its_rows(
    crowded: Settings, proxied: Callable[[Settings], Settings]
) -> None:
    """Case I3, behind the real PgBouncer: clients of several tenants get one session in turn."""
    settings, question = proxied(crowded), vectors(99, 1)[0]
    with closing(db.connect(settings, "reader")) as one, closing(db.connect(settings, "reader")) as other:
        for number in range(SMALL):
            assert len(nearest(one, "hot", question)) == 8
            assert len(nearest(other, f"small{number}", question)) == 8


def test_what_is_guarded_against_is_real(crowded: Settings) -> None:
    """Were the statement prepared and its plan shared, small tenants would get nothing, without an error."""
    question = vectors(99, 1)[0]
    with psycopg.connect(db.dsn(crowded, "reader"), autocommit=True, prepare_threshold=0) as connection:
        counts = []
        for tenant in ["hot", *(f"small{number}" for number in range(SMALL))]:
            with connection.transaction(), connection.cursor() as cursor:
                cursor.execute("SELECT set_config('app.current_tenant', %s, true)", [tenant])
                cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
                cursor.execute("SET LOCAL enable_sort = off")
                counts.append(len(cursor.execute(NEAREST, {"tenant": tenant, "vector": question}).fetchall()))
    assert min(counts) < 8


# --- what Postgres refuses within a session


def run_as_reader(settings: Settings, *statements: str) -> None:
    with db.session(settings, "reader") as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize(
    ("statement", "kind", "says"),
    [
        ("SELECT * FROM docmem.nothing", SchemaError, 'is not whole: relation "docmem.nothing" does not exist'),
        ("SELECT nothing.nothing()", SchemaError, 'is not whole: schema "nothing" does not exist'),
        ("DELETE FROM docmem.memory", ConfigError, "may not use the index: permission denied for table memory"),
        ("SET statement_timeout = 1; SELECT pg_sleep(5)", TryAgain, "statement timeout"),
        ("SELECT pg_terminate_backend(pg_backend_pid())", ServerUnavailable, "went away: terminating connection"),
        ("BEGIN READ ONLY; CREATE TABLE docmem.x ()", ConfigError, "takes no writes"),
        ("SET lock_timeout = 1; SELECT count(*) FROM docmem.memory", TryAgain, "has locked a table"),
    ],
)
def test_what_is_not_set_up_right_or_busy_is_said_in_one_line(
    indexed: Settings, statement: str, kind: type[DocmemError], says: str
) -> None:
    with closing(db.connect(indexed, "owner")) as owner, owner.transaction():
        owner.execute("LOCK docmem.memory" if "lock_" in statement else "SELECT 1")
        with pytest.raises(kind, match=says) as caught:
            run_as_reader(indexed, *statement.split("; "))
    assert "\n" not in caught.value.message
    assert caught.value.hint


def test_a_bug_of_ours_is_not_explained_away(indexed: Settings) -> None:
    with pytest.raises(psycopg.errors.SyntaxError):
        run_as_reader(indexed, "SELEKT")


def test_a_locked_table_is_not_waited_for_without_end(indexed: Settings) -> None:
    with closing(db.connect(indexed, "sync")) as connection, db.tenant_transaction(connection, "acme") as cursor:
        row = cursor.execute("SELECT current_setting('lock_timeout') AS limit").fetchone()
    assert row == {"limit": f"{db.LOCK_SECONDS}s"}


def test_a_reader_may_lock_nothing_that_sync_writes(indexed: Settings) -> None:
    """A session that locks a table and then does nothing is ended by no timeout."""
    tables = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'docmem'::regnamespace"
    with db.session(indexed, "reader") as reader:
        names = {row["relname"] for row in reader.execute(tables)} - {"usage"}
        assert "trace" in names
        for name in names:
            lock = sql.SQL("LOCK TABLE docmem.{} IN SHARE MODE").format(sql.Identifier(name))
            with pytest.raises(psycopg.errors.InsufficientPrivilege), reader.transaction():
                reader.execute(lock)
