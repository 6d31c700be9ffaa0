"""Bring a database's schema up to date: `migrations/*.sql` in order, each with its version in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from importlib.resources import files
from typing import Any

import psycopg

from docmem import db
from docmem.config import Settings
from docmem.errors import ConfigError, SchemaError
from docmem.sql import load

_SQL = partial(load, "docmem_sync", "migrate.sql")

_NEEDS = (("extension_there", "create_extension"), ("sync_there", "create_sync"), ("reader_there", "create_reader"))
"""What the migrations take for granted: how to see that it is there, and how to make it."""


def migrations() -> list[tuple[int, str]]:
    """(version, SQL) of every migration, in order."""
    folder = files("docmem_sync").joinpath("migrations")
    found = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    return [(int(name[:4]), folder.joinpath(name).read_text(encoding="utf-8")) for name in found]


def ensure(settings: Settings, connection: psycopg.Connection[Any]) -> None:
    """Bring the schema up to date if `connection` (of the sync role) finds that it isn't.

    Needs the owner role only where there is something to do. Raises `SchemaError` (newer than this version, or behind
    and no owner to connect as) and `ConfigError` (the owner role lacks rights; the hint holds the statements for an
    administrator).
    """
    found = _version(connection)
    if found == db.SCHEMA_VERSION:
        return
    if settings.external and settings.owner_dsn is None and (found or 0) < db.SCHEMA_VERSION:
        state = "missing" if found is None else f"at version {found}"
        raise SchemaError(
            f"the index's schema is {state}, and this docmem needs {db.SCHEMA_VERSION}",
            hint="set DOCMEM_OWNER_DSN to a role that owns the database's objects, and run docmem sync again",
        )
    with closing(db.connect(settings, "owner")) as owner:
        migrate(owner)


def _version(connection: psycopg.Connection[Any]) -> int | None:
    """The schema's version; None where there is none.

    The catalogue is read first. A session remembers that a schema isn't there, and waiting for an advisory lock
    doesn't make it look again: two migrations at once would both have begun at nothing.
    """
    there = connection.execute(_SQL()["schema_there"]).fetchone()
    return db.schema_version(connection) if there else None


def migrate(connection: psycopg.Connection[Any]) -> int:
    """Apply what is missing, as the owner; returns how many. Two at once: the second waits and finds nothing to do."""
    with connection.transaction():
        connection.execute(_SQL()["lock"])
        found = _version(connection) or 0
        if found > db.SCHEMA_VERSION:
            db.check_schema(connection)  # says so
        if found == db.SCHEMA_VERSION:
            return 0
        _prepare(connection)
    done = 0
    for version, text in migrations():
        done += _apply(connection, version, text)
    _settle_roles(connection)
    return done


def _apply(connection: psycopg.Connection[Any], version: int, text: str) -> bool:
    with connection.transaction():
        connection.execute(_SQL()["lock"])
        if version <= (_version(connection) or 0):
            return False
        try:
            connection.execute(text)
        except psycopg.errors.InsufficientPrivilege as error:
            raise _ask_administrator(connection, str(error.diag.message_primary)) from None
        if db.schema_version(connection) != version:
            raise SchemaError(f"migration {version} doesn't set its version", hint="this is a bug: please report it")
    return True


def _prepare(connection: psycopg.Connection[Any]) -> None:
    """Make the extension and the roles, where they are missing and we may."""
    missing = [make for check, make in _NEEDS if connection.execute(_SQL()[check]).fetchone() is None]
    for statement in missing:
        try:
            with connection.transaction():
                connection.execute(_SQL()[statement])
        except psycopg.errors.DuplicateObject:  # made for another database of this server meanwhile
            continue
        except psycopg.Error as error:
            raise _ask_administrator(connection, str(error.diag.message_primary), missing) from None


def _ask_administrator(connection: psycopg.Connection[Any], reason: str, missing: Sequence[str] = ()) -> ConfigError:
    info = connection.info
    statements = [f"{_SQL()[name]};" for name in missing]
    statements.append(f'GRANT CREATE ON DATABASE "{info.dbname}" TO "{info.user}";')
    return ConfigError(
        f"role {info.user} may not set up the index in database {info.dbname}: {reason}",
        hint="let an administrator run, in that database:\n" + "\n".join(statements),
    )


def _settle_roles(connection: psycopg.Connection[Any]) -> None:
    """Custom plans and statement timeouts as the roles' own setting, where we may: a pooler refuses `options=`."""
    for statement in ("sync_plans", "sync_timeout", "reader_plans", "reader_timeout"):
        try:
            with connection.transaction():
                connection.execute(_SQL()[statement])
        except psycopg.errors.InsufficientPrivilege:
            return
