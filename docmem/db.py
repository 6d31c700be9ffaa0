"""The one door to Postgres: who connects, and as which tenant.

Row-level security is the isolation between tenants, so a session that it doesn't bind is refused, and the tenant is
set in one place. psycopg prepares nothing here: prepared statements fail behind a transaction pooler, and a plan
cached across tenants gave small ones 0 rows without an error.
"""

from __future__ import annotations

import json
import math
import os
import re
import select
import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

import psycopg
from psycopg import conninfo, pq
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from docmem import postgres
from docmem.config import Settings
from docmem.errors import ConfigError, DocmemError, RoleRefused, SchemaError, ServerUnavailable, TryAgain
from docmem.names import tenant_name
from docmem.relay import Parcel, Relay
from docmem.sql import load

Role: TypeAlias = Literal["reader", "sync", "owner"]

SCHEMA_VERSION = 18
"""The schema this version reads and writes: the number of its last migration."""

MIN_POSTGRES = 150000
MIN_PGVECTOR = (0, 7)

_SETTING: dict[Role, str] = {"reader": "DOCMEM_DSN", "sync": "DOCMEM_SYNC_DSN", "owner": "DOCMEM_OWNER_DSN"}
LOCK_SECONDS = 10
"""How long a statement waits for what somebody else has locked; the statement `set_tenant` sets it."""

_CONNECT_SECONDS = 5
_POOL_SECONDS = 5.0
_PREFIX = re.compile(r"^connection (failed|is bad): ")
_SQL = partial(load, "docmem", "db.sql")


def dsn(settings: Settings, role: Role) -> str:
    """The connection string of a role: the configured one, or the embedded server's, which is started if need be.

    Raises `ConfigError` where another Postgres is configured, but not for this role.
    """
    if not settings.external:
        return postgres.start(settings).dsn(role)
    given = {"reader": settings.dsn, "sync": settings.sync_dsn, "owner": settings.owner_dsn}[role]
    if given is None:
        raise ConfigError(f"{_SETTING[role]} is not set, and this needs to connect as {role}", hint=_missing_hint(role))
    return given


def _missing_hint(role: Role) -> str:
    if role == "reader":
        return "set DOCMEM_DSN to a Postgres role with docmem_reader's rights, or unset the other two as well"
    return f"set {_SETTING[role]} to the connection string of docmem_{role}, beside DOCMEM_DSN"


def tenant_dsn(settings: Settings, tenant: str) -> str:
    """A reader's connection string whose sessions see this tenant from the start, for an analyst's tool."""
    option = f"-c app.current_tenant={tenant_name(tenant)}"
    text = dsn(settings, "reader")
    if "://" not in text:
        return conninfo.make_conninfo(text, options=option)
    return f"{text}{'&' if '?' in text else '?'}options={quote(option)}"


def connect(settings: Settings, role: Role) -> psycopg.Connection[DictRow]:
    """Open a checked connection in autocommit.

    Raises `ServerUnavailable` (nobody answers), `ConfigError` (the connection string is wrong, the server too old)
    and `RoleRefused` (a reader or sync session that row-level security doesn't bind).
    """
    connection = _connected(settings, role)
    try:
        with explained(connection):
            check_session(connection, role)
    except BaseException:
        connection.close()
        raise
    return connection


def _connected(settings: Settings, role: Role) -> psycopg.Connection[DictRow]:
    with _explained(settings, role):
        connection = psycopg.connect(dsn(settings, role), **_options(settings, role))
    _prepare(connection)
    return connection


class _Time(Loader):
    """A time as `set_tenant` and `set_turn` have it come: psycopg goes by what the session was set to before."""

    def load(self, data: Buffer) -> datetime:
        return datetime.fromisoformat(bytes(data).decode())


def _prepare(connection: psycopg.Connection[Any]) -> None:
    _connections.add(connection)
    connection.adapters.register_loader("timestamptz", _Time)


@contextmanager
def catalogue(settings: Settings, role: Role) -> Iterator[psycopg.Connection[DictRow]]:
    """A session for looking at roles and rights, and for nobody's rows: its role may be one that is never served.

    Raises like `connect`, but for `RoleRefused` and servers that are too old.
    """
    connection = _connected(settings, role)
    try:
        with explained(connection):
            yield connection
    finally:
        connection.close()


def listen(settings: Settings) -> psycopg.Connection[DictRow]:
    """A checked reader's connection that hears channel `docmem`, where sync says what it changed.

    It goes to `DOCMEM_LISTEN_DSN`, else to the reader's own. Raises like `connect`. Through a pooler LISTEN is accepted
    and then silent for ever, so who listens should send itself something.
    """
    direct = replace(settings, dsn=settings.listen_dsn) if settings.listen_dsn else settings
    connection = connect(direct, "reader")
    try:
        with explained(connection):
            connection.execute(_SQL()["listen"])
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def session(settings: Settings, role: Role) -> Iterator[psycopg.Connection[DictRow]]:
    """A checked connection, closed afterwards. What Postgres refuses within is raised as `explained` says."""
    connection = connect(settings, role)
    try:
        with explained(connection):
            yield connection
    finally:
        connection.close()


def _options(settings: Settings, role: Role) -> dict[str, Any]:
    options: dict[str, Any] = {
        "autocommit": True,
        "prepare_threshold": None,
        "connect_timeout": _CONNECT_SECONDS,
        "row_factory": dict_row,
        "application_name": f"docmem-{role}",
    }
    # Who binds the port of a stopped server can't answer for it: only ours knows the password.
    return options if settings.external else {**options, "require_auth": "scram-sha-256"}


@contextmanager
def tenant_transaction(connection: psycopg.Connection[Any], tenant: str) -> Iterator[psycopg.Cursor[DictRow]]:
    """One transaction as one tenant, and the cursor to use in it. The setting ends with the transaction.

    psycopg's errors pass as they are; see `session` and `explained`.
    """
    with connection.transaction(), connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute(_SQL()["set_tenant"], {"tenant": tenant_name(tenant)})
        yield cursor


def run(
    connection: psycopg.Connection[Any],
    tenant: str,
    statements: Sequence[tuple[str, Mapping[str, Any]]],
    *,
    seconds: float,
    writes: bool = False,
) -> list[list[DictRow]]:
    """The rows of each of these statements, as one tenant, in one transaction and one round trip.

    They go as one string, which Postgres runs as one transaction with one view of the rows, so that no statement sees
    a commit that another doesn't, and the tenant is gone with it; a statement that goes alone has one view anyway.
    What `writes` looks at each statement anew, or it wouldn't see what it waited for a lock for.
    Nothing in it takes longer than `seconds`. `connection` is in autocommit; in a transaction, that one's view holds.
    psycopg's errors pass as they are.
    """
    with psycopg.ClientCursor(connection, row_factory=dict_row) as cursor:
        alone = connection.info.transaction_status == pq.TransactionStatus.IDLE
        one_view = alone and len(statements) > 1 and not writes
        texts = [_SQL()["one_view"]] if one_view else []
        setting = {"tenant": tenant_name(tenant), **_limits(seconds)}
        texts += [cursor.mogrify(_SQL()["set_turn"], setting)]
        texts += [cursor.mogrify(text, {"tenant": tenant, **values}) for text, values in statements]
        cursor.execute("\n;\n".join(texts).encode())
        if one_view:
            cursor.nextset()
        found = []
        while cursor.nextset():
            found.append(cursor.fetchall() if cursor.description else [])
        return found


def answer(
    connection: psycopg.Connection[Any],
    tenant: str,
    statement: str,
    values: Mapping[str, str],
    *,
    seconds: Callable[[], float],
    until: float,
    relay: Relay,
) -> Any:
    """What the one JSON value says that a statement gives: `run` for what each turn asks.

    It is sent when `relay` has a place for it, and may then take `seconds`. Raises `PoolTimeout` where there is none by
    `until` (by `time.monotonic`); what waits longer for an answer is cut off by somebody else. libpq is asked without
    psycopg's cursor, which also waits for the interrupt of a terminal: that one took longer to fetch the answer than
    Postgres to make half of it. psycopg's errors pass as they are.
    """
    pgconn = connection.pgconn
    literal = pq.Escaping(pgconn).escape_literal
    given = {"tenant": tenant_name(tenant), **values}
    quoted = {name: bytes(literal(value.encode())).decode() for name, value in given.items()}
    asked = statement % quoted

    def send() -> Exception | None:
        limits = {name: f"'{limit}'" for name, limit in _limits(seconds()).items()}
        setting = _SQL()["set_turn"] % {"tenant": quoted["tenant"], **limits}
        try:
            pgconn.send_query(f"{setting}\n;\n{asked}".encode())
        except psycopg.Error as error:
            return error
        return None

    result = _result(pgconn, relay, Parcel(send), until)
    if result.status == pq.ExecStatus.TUPLES_OK:
        found = result.get_value(0, 0)
        return None if found is None else json.loads(found)
    said = (result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message).decode(errors="replace")
    state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
    if connection.pgconn.status == pq.ConnStatus.BAD:
        raise psycopg.OperationalError(said)
    try:
        kind = psycopg.errors.lookup(state)
    except KeyError:  # a state of an extension, or of a newer Postgres
        kind = psycopg.DatabaseError
    raise kind(said)


_LOOK_MS = 20
"""How often who waits looks whether its question is under way, whether all of it was taken, and what time it is."""


def _result(pgconn: pq.abc.PGconn, relay: Relay, parcel: Parcel, until: float) -> pq.abc.PGresult:
    """The last result of what a parcel asks, the one that says what is wrong or what was asked for."""
    found = None
    waits = select.poll()
    waits.register(pgconn.socket, select.POLLIN)
    try:
        relay.post(parcel)
        while True:
            is_ready = any(event & ~select.POLLOUT for _, event in waits.poll(_LOOK_MS))
            if not parcel.is_sent():
                if is_ready:  # nothing was asked, so this is no answer
                    raise psycopg.OperationalError("the server closed the connection while it waited")
                if time.monotonic() > until:
                    raise PoolTimeout("others are being answered")
                continue
            if not is_ready:  # a socket may not take much at once
                waits.modify(pgconn.socket, select.POLLIN | (select.POLLOUT if pgconn.flush() else 0))
                continue
            pgconn.consume_input()
            while not pgconn.is_busy():
                result = pgconn.get_result()
                if result is not None:
                    found = result
                elif found is not None:
                    return found
                else:
                    raise psycopg.OperationalError("the server gave no answer")
    finally:
        relay.end(parcel)


_LOCK_SHARE = 0.8
"""Of a turn's time, for a lock: were the two alike, Postgres would say of what is locked that it was slow."""


def _limits(seconds: float) -> dict[str, str]:
    milliseconds = max(1, math.ceil(seconds * 1000))
    return {"limit": f"{milliseconds}ms", "lock": f"{math.ceil(_LOCK_SHARE * milliseconds)}ms"}


class _Idle(deque[psycopg.Connection[Any]]):
    """Connections that wait, of which the pool takes the one that was used last.

    It takes them from the left, in turn. Each is a process of the server's with plans and pages of its own in the
    processor's caches: after a burst that opened eight, a turn took a quarter of a millisecond longer for good.
    """

    def popleft(self) -> psycopg.Connection[Any]:
        """The one that was put back last."""
        return self.pop()


class _Pool(ConnectionPool[Any]):
    """A pool that a forked child forgets without a word: its locks may be held there by threads that are gone."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._process = os.getpid()
        super().__init__(*arguments, open=False, **options)
        self._pool = _Idle()
        self.open()

    def __del__(self) -> None:
        if self._process == os.getpid():
            super().__del__()


def reader_pool(settings: Settings, *, min_size: int = 1, max_size: int = 8) -> ConnectionPool[Any]:
    """A pool of checked reader connections, open; close it when done.

    The first connection is made here and now, so that what is wrong is said at once and not as a pool timeout.
    """
    connect(settings, "reader").close()

    def configure(connection: psycopg.Connection[Any]) -> None:
        _prepare(connection)
        check_session(connection, "reader")

    return _Pool(
        lambda: dsn(settings, "reader"),  # asked for each connection: the embedded server is started again if it died
        kwargs=_options(settings, "reader"),
        configure=configure,
        min_size=min_size,
        max_size=max_size,
        timeout=_POOL_SECONDS,
        name="docmem-reader",
    )


@contextmanager
def pooled(pool: ConnectionPool[Any]) -> Iterator[psycopg.Connection[DictRow]]:
    """A connection out of the pool. Raises `ServerUnavailable` where none is to be had in time."""
    try:
        with pool.connection() as connection:
            yield connection
    except PoolTimeout:
        raise ServerUnavailable(
            f"no connection to Postgres within {pool.timeout:g} s", hint="see: docmem status"
        ) from None


def check_session(connection: psycopg.Connection[Any], role: Role) -> None:
    """Refuse servers that are too old, and reader and sync sessions that row-level security doesn't bind."""
    version = connection.info.server_version
    if version < MIN_POSTGRES:
        raise ConfigError(
            f"{_SETTING[role]}: this is Postgres {version // 10000}, and docmem needs {MIN_POSTGRES // 10000} or newer",
            hint="point it to a newer server, or unset it to use the embedded one",
        )
    with connection.cursor(row_factory=dict_row) as cursor:
        session = cursor.execute(_SQL()["session"]).fetchone()
    assert session is not None
    _check_pgvector(session["pgvector"])
    if role != "owner":
        _refuse_unbound(session, role)


def _check_pgvector(version: str | None) -> None:
    if version is not None and tuple(int(part) for part in version.split(".")[:2]) < MIN_PGVECTOR:
        needed = ".".join(map(str, MIN_PGVECTOR))
        raise ConfigError(
            f"pgvector {version} is installed, and docmem needs {needed} or newer",
            hint="install a newer pgvector, then as an administrator: ALTER EXTENSION vector UPDATE;",
        )


def _refuse_unbound(session: DictRow, role: Role) -> None:
    name, unbound = session["role"], session["unbound"]
    hint = (
        f"connect as a role of its own, as an administrator: CREATE ROLE app LOGIN NOSUPERUSER NOBYPASSRLS "
        f"PASSWORD '…'; GRANT docmem_{role} TO app; then set {_SETTING[role]} to it"
    )
    if name in unbound:
        raise RoleRefused(
            f"{_SETTING[role]}: role {name} bypasses row-level security, so it is never served", hint=hint
        )
    if unbound:
        raise RoleRefused(
            f"{_SETTING[role]}: role {name} may become {unbound[0]}, which bypasses row-level security", hint=hint
        )
    if session["grants_itself"]:
        raise RoleRefused(f"{_SETTING[role]}: role {name} has CREATEROLE and may make itself any other", hint=hint)


def schema_version(connection: psycopg.Connection[Any]) -> int | None:
    """The version of the index's schema, None where there is none. Raises `ConfigError` where we may not look."""
    try:
        with connection.transaction(), connection.cursor(row_factory=dict_row) as cursor:
            row = cursor.execute(_SQL()["schema_version"]).fetchone()
    except (psycopg.errors.InvalidSchemaName, psycopg.errors.UndefinedFunction):
        return None
    except psycopg.errors.InsufficientPrivilege as error:
        raise _no_rights(connection, error.diag.message_primary or "") from None
    assert row is not None
    return int(row["version"])


def check_schema(connection: psycopg.Connection[Any]) -> None:
    """Raise `SchemaError` where the schema is missing, older or newer than this version's."""
    found = schema_version(connection)
    if found is None:
        raise SchemaError("there is no index in this database yet", hint="make it with: docmem sync")
    if found < SCHEMA_VERSION:
        raise SchemaError(
            f"the index's schema is version {found}, and this docmem needs {SCHEMA_VERSION}",
            hint="bring it up to date with: docmem sync (another Postgres than the embedded one: set DOCMEM_OWNER_DSN)",
        )
    if found > SCHEMA_VERSION:
        raise SchemaError(
            f"the index's schema is version {found}, and this docmem knows {SCHEMA_VERSION}", hint="upgrade docmem"
        )


@contextmanager
def explained(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """What Postgres says when it isn't set up right, is busy or goes away, as a `DocmemError` of one clear line.

    Raises `ConfigError` (rights are missing, the server takes no writes), `SchemaError` (something of the index is
    gone), `TryAgain` (a lock or a statement took too long) and `ServerUnavailable`. What else psycopg raises is a bug
    of ours, and passes.
    """
    try:
        yield
    except psycopg.Error as error:
        found = _explanation(connection, error)
        if found is None:
            raise
        raise found from error


_GONE = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.UndefinedFunction,
    psycopg.errors.UndefinedObject,
    psycopg.errors.InvalidSchemaName,
)
_LATE = (
    psycopg.errors.QueryCanceled,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
    psycopg.errors.IdleInTransactionSessionTimeout,
)


def _explanation(connection: psycopg.Connection[Any], error: psycopg.Error) -> DocmemError | None:
    words = error.diag.message_primary or _reason(str(error))
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return _no_rights(connection, words)
    if isinstance(error, _GONE):
        return SchemaError(
            f"the index in database {connection.info.dbname} is not whole: {words}",
            hint="restore it; or drop schema docmem as its owner and run docmem sync: it is rebuilt from the repos",
        )
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return ConfigError(
            f"Postgres takes no writes here: {words}", hint="point DOCMEM_SYNC_DSN to the primary, in read-write mode"
        )
    if isinstance(error, psycopg.errors.LockNotAvailable):
        return TryAgain(
            f"somebody else has locked a table of the index for more than {LOCK_SECONDS} s",
            hint="run it again later; who it is: SELECT pid, usename, query FROM pg_stat_activity, in that database",
        )
    if isinstance(error, _LATE):
        return TryAgain(f"Postgres gave up on a statement: {words}", hint="run it again later; see: docmem status")
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return ServerUnavailable(f"Postgres went away: {words}", hint="run it again; see: docmem status")
    return None


def _no_rights(connection: psycopg.Connection[Any], words: str) -> ConfigError:
    user = connection.info.user
    role = (connection.info.parameter_status("application_name") or "").removeprefix("docmem-")
    reason = f": {words}" if words else ""
    if role == "owner":
        return ConfigError(
            f"role {user} may not change the index{reason}",
            hint="set DOCMEM_OWNER_DSN to the role that owns schema docmem",
        )
    group = "docmem_sync" if role == "sync" else "docmem_reader"
    grant = "" if user == group else f'; as an administrator: GRANT {group} TO "{user}";'
    return ConfigError(f"role {user} may not use the index{reason}", hint=f"see what mends it: docmem doctor{grant}")


@contextmanager
def _explained(settings: Settings, role: Role) -> Iterator[None]:
    """psycopg's complaints as one clear line, without a password in it."""
    try:
        yield
    except psycopg.OperationalError as error:
        # psycopg's frames hold the error, the error them, and both the socket, until the collector comes by.
        traceback.clear_frames(error.__traceback__)
        raise _unreachable(settings, role, str(error)) from None
    except psycopg.Error:
        # libpq quotes what it can't parse, and that may be the password.
        raise ConfigError(
            f"{_SETTING[role]} is not a connection string that Postgres understands",
            hint="it looks like postgresql://user:password@host:5432/database, with % and / in the password escaped",
        ) from None


def _unreachable(settings: Settings, role: Role, words: str) -> DocmemError:
    setting = _SETTING[role] if settings.external else "embedded Postgres"
    reason = _reason(words)
    where = _where(dsn(settings, role))
    if "FATAL" not in words:
        return ServerUnavailable(
            f"{setting}: no Postgres answers at {where}: {reason}", hint=f"start it, or correct {setting}"
        )
    if any(sign in words for sign in ("starting up", "shutting down", "recovery", "too many", "remaining connection")):
        return ServerUnavailable(f"{setting}: Postgres at {where} is busy: {reason}", hint="try again in a moment")
    return ConfigError(
        f"{setting}: Postgres at {where} refuses us: {reason}",
        hint=_admitted(settings, role, reason) or f"correct {setting}",
    )


def _admitted(settings: Settings, role: Role, reason: str) -> str:
    """What lets a role in that is known and may not connect; nothing for other reasons."""
    parts = conninfo.conninfo_to_dict(dsn(settings, role))
    user, database = parts.get("user"), parts.get("dbname")
    if user and database and reason.startswith("permission denied for database"):
        return f'as an administrator: GRANT CONNECT ON DATABASE "{database}" TO "{user}";'
    if user and "not permitted to log in" in reason:
        return f'as an administrator: ALTER ROLE "{user}" LOGIN;'
    return ""


def _reason(words: str) -> str:
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    telling = next((line for line in reversed(lines) if "FATAL" in line), lines[0] if lines else "no reason given")
    return (
        telling.rpartition("FATAL:")[2].strip().removeprefix("connection failed: ").removeprefix("connection is bad: ")
    )


def _where(text: str) -> str:
    parts = conninfo.conninfo_to_dict(text)
    user, host, port = (str(parts.get(key) or "") for key in ("user", "host", "port"))
    return (
        f"{host or 'the local socket'}{':' + port if port else ''}/{parts.get('dbname') or ''} as {user or 'ourselves'}"
    )


_connections: weakref.WeakSet[psycopg.Connection[Any]] = weakref.WeakSet()


def _let_go_after_fork() -> None:
    """Take the parent's connections out of a child's reach: whoever reads, writes or closes one there does so to
    nobody, and no new connection gets its number."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for connection in list(_connections):
        with suppress(OSError, psycopg.Error):
            os.dup2(null, connection.fileno(), inheritable=False)
    os.close(null)


os.register_at_fork(after_in_child=_let_go_after_fork)
