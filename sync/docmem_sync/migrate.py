"""Bring a database's schema up to date: `migrations/*.sql` in order, each with its version in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

import psycopg
from psycopg import conninfo, sql

from docmem import db
from docmem.config import Settings
from docmem.errors import ConfigError, SchemaError
from docmem.sql import load

_SQL = partial(load, "docmem_sync", "migrate.sql")
_log = logging.getLogger("docmem.sync")

_NEEDS = (("extension_there", "create_extension"), ("sync_there", "create_sync"), ("reader_there", "create_reader"))
"""What the migrations take for granted: how to see that it is there, and how to make it."""


def migrations() -> list[tuple[int, str]]:
    """(version, SQL) of every migration, in order."""
    folder = files("docmem_sync").joinpath("migrations")
    found = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    return [(int(name[:4]), folder.joinpath(name).read_text(encoding="utf-8")) for name in found]


def ensure(settings: Settings, connection: psycopg.Connection[Any]) -> None:
    """Bring the schema up to date, and give the login roles their rights, if `connection` (of the sync role) lacks it.

    Needs the owner role only where there is something to do. Raises `SchemaError` (newer than this version, or behind
    and no owner to connect as) and `ConfigError` (rights are missing; the hint holds the statements for an
    administrator).
    """
    found: int | None = None
    try:
        found = _version(connection)
    except ConfigError:  # the schema is there, and closed to us: the owner may open it
        if settings.external and settings.owner_dsn is None:
            raise
    if found == db.SCHEMA_VERSION:
        return
    if settings.external and settings.owner_dsn is None and (found or 0) < db.SCHEMA_VERSION:
        state = "missing" if found is None else f"at version {found}"
        raise SchemaError(
            f"the index's schema is {state}, and this docmem needs {db.SCHEMA_VERSION}",
            hint="set DOCMEM_OWNER_DSN to a role that owns the database's objects, and run docmem sync again",
        )
    logins = _logins(settings, connection)
    with db.session(settings, "owner") as owner:
        migrate(owner, logins=logins)
        missing = _grant(owner, logins)
    if missing and _lacks(connection, "docmem_sync", connection.info.user):
        raise ConfigError(f"role {connection.info.user} may not use the index yet", hint=_for_administrator(missing))
    if missing:
        _log.warning("the index can't be read yet: %s", _for_administrator(missing))
    db.check_schema(connection)


def _logins(settings: Settings, connection: psycopg.Connection[Any]) -> dict[str, str]:
    """Group role to the role that logs in with its rights, as far as the connection strings tell."""
    reader = conninfo.conninfo_to_dict(db.dsn(settings, "reader")).get("user") if _has_reader(settings) else None
    return {"docmem_sync": connection.info.user} | ({"docmem_reader": str(reader)} if reader else {})


def _has_reader(settings: Settings) -> bool:
    return not settings.external or settings.dsn is not None


def _lacks(connection: psycopg.Connection[Any], group: str, login: str) -> bool:
    return connection.execute(_SQL()["lacks_group"], {"group": group, "login": login}).fetchone() is not None


def _grant(owner: psycopg.Connection[Any], logins: Mapping[str, str]) -> list[str]:
    """Let each login role have its group's rights, where we may; returns the statements of what we may not."""
    left = []
    for group, login in logins.items():
        if not _lacks(owner, group, login):
            continue
        statement = _grant_statement(group, login)
        try:
            with owner.transaction():
                owner.execute(statement)
        except psycopg.errors.InsufficientPrivilege:
            left.append(f"{statement.as_string(owner)};")
    return left


def _grant_statement(group: str, login: str) -> sql.Composed:
    return sql.SQL(_SQL()["grant_group"]).format(group=sql.Identifier(group), login=sql.Identifier(login))


def _for_administrator(statements: Sequence[str]) -> str:
    return "let an administrator run, in that database:\n" + "\n".join(statements)


def _version(connection: psycopg.Connection[Any]) -> int | None:
    """The schema's version; None where there is none.

    The catalogue is read first. A session remembers that a schema isn't there, and waiting for an advisory lock
    doesn't make it look again: two migrations at once would both have begun at nothing.
    """
    there = connection.execute(_SQL()["schema_there"]).fetchone()
    return db.schema_version(connection) if there else None


def migrate(connection: psycopg.Connection[Any], *, logins: Mapping[str, str] | None = None) -> int:
    """Apply what is missing, as the owner; returns how many. Of several at once each applies what the others have not.

    `logins`: group role to login role, for the list that an administrator gets where the owner lacks rights.
    """
    with connection.transaction():
        _lock(connection)
        found = _version(connection) or 0
        if found > db.SCHEMA_VERSION:
            db.check_schema(connection)  # says so
        if found == db.SCHEMA_VERSION:
            return 0
        _prepare(connection, logins or {})
    done = 0
    for version, text in migrations():
        done += _apply(connection, version, text, logins or {})
    _settle_roles(connection)
    return done


def _lock(connection: psycopg.Connection[Any]) -> None:
    connection.execute(_SQL()["lock_timeout"])
    connection.execute(_SQL()["lock"])


def _apply(connection: psycopg.Connection[Any], version: int, text: str, logins: Mapping[str, str]) -> bool:
    with connection.transaction():
        _lock(connection)
        if version <= (_version(connection) or 0):
            return False
        try:
            connection.execute(text)
        except psycopg.errors.InsufficientPrivilege as error:
            raise _ask_administrator(connection, str(error.diag.message_primary), logins) from None
        if db.schema_version(connection) != version:
            raise SchemaError(f"migration {version} doesn't set its version", hint="this is a bug: please report it")
    return True


def _prepare(connection: psycopg.Connection[Any], logins: Mapping[str, str]) -> None:
    """Make the extension and the roles, where they are missing and we may."""
    missing = [make for check, make in _NEEDS if connection.execute(_SQL()[check]).fetchone() is None]
    for statement in missing:
        try:
            with connection.transaction():
                connection.execute(_SQL()[statement])
        except psycopg.errors.DuplicateObject:  # made for another database of this server meanwhile
            continue
        except psycopg.Error as error:
            raise _ask_administrator(connection, str(error.diag.message_primary), logins, missing) from None


def _ask_administrator(
    connection: psycopg.Connection[Any], reason: str, logins: Mapping[str, str], missing: Sequence[str] = ()
) -> ConfigError:
    """`reason` as the message; all that is still to be done, also what would only fail later, as the hint."""
    info = connection.info
    statements = [f"{_SQL()[name]};" for name in missing]
    statements.append(f'GRANT CREATE ON DATABASE "{info.dbname}" TO "{info.user}";')
    for group, login in logins.items():
        if _lacks(connection, group, login):
            statements.append(f"{_grant_statement(group, login).as_string(connection)};")
    return ConfigError(
        f"role {info.user} may not set up the index in database {info.dbname}: {reason}",
        hint=_for_administrator(statements),
    )


def _settle_roles(connection: psycopg.Connection[Any]) -> None:
    """Custom plans and statement timeouts as the roles' own setting, where we may: a pooler refuses `options=`."""
    for statement in ("sync_plans", "sync_timeout", "reader_plans", "reader_timeout"):
        try:
            with connection.transaction():
                connection.execute(_SQL()[statement])
        except psycopg.errors.InsufficientPrivilege:
            return
