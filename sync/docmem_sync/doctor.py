"""Everything docmem stands on, looked at part by part: `docmem doctor`. What isn't well names what mends it."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import psycopg
from psycopg import conninfo
from psycopg.rows import DictRow

from docmem import checkout, db, git, journal, postgres, repository
from docmem.config import Settings
from docmem.errors import ConfigError, DocmemError
from docmem.git import remotes
from docmem.repository import Repository
from docmem.sql import load
from docmem_sync import branch, rights, strays
from docmem_sync.checks import Check, checked
from docmem_sync.rights import By, Fault
from docmem_sync.status import ANEW, check_unlocked, erase_of, origin, server_row, status

MIN_GIT = (2, 39)
MIN_FREE = 512 * 1024 * 1024
"""Bytes that a root's disk should have left."""

REPAIR = "docmem doctor --repair"

_ROLES: tuple[db.Role, ...] = ("reader", "sync", "owner")
_ROUNDS = 3
"""Repairs in a row: what mends one fault may uncover another."""


def doctor(settings: Settings) -> list[Check]:
    """Look at everything docmem stands on: git, the repos, Postgres, the roles, the schema, lag, quarantine, disk."""
    checks = [checked("git", _git, "install git 2.39 or newer"), _disk(settings)]
    broken: dict[str, str] = {}
    for tenant in repository.tenants(settings):
        repo = _repo(settings, tenant)
        broken |= {} if repo.ok or repo.hint == REPAIR else {tenant: repo.hint}
        checks += [repo, *_remote(settings, tenant)]
    checks += [
        Check(f"erase {tenant}", False, erase["error"], erase["hint"])
        for tenant in journal.tenants(settings)
        if (erase := erase_of(settings, tenant)) is not None
    ]
    return [*checks, *of_postgres(settings), *_index(settings, broken)]


def repair(settings: Settings) -> None:
    """Give each store its hooks and settings, and the index its rights, policies and roles' settings, as far as the
    roles that are configured may. What is left, the doctor names."""
    for tenant in repository.tenants(settings):
        with contextlib.suppress(DocmemError, OSError):
            checkout.repair(repository.open(settings, tenant))
    with contextlib.suppress(DocmemError):
        for _ in range(_ROUNDS):
            found = [fault for fault in _faults(settings) if fault.mends and _can(settings, fault.by)]
            if not found:
                return
            _mend(settings, found)


def _mend(settings: Settings, found: Sequence[Fault]) -> None:
    """Run what mends these: an administrator's first, which may be what the others lack."""
    left = rights.by(found, "administrator")
    if left:
        with psycopg.connect(postgres.start(settings).dsn("admin"), autocommit=True, prepare_threshold=None) as admin:
            _run(admin, left)
    for role in _ROLES:
        itself = [fault for fault in rights.by(found, "itself") if fault.where == role]
        own = rights.by(found, "owner") if role == "owner" else itself
        if own:
            with contextlib.suppress(DocmemError), db.catalogue(settings, role) as session:
                _run(session, own)


def _run(session: psycopg.Connection[Any], found: Sequence[Fault]) -> None:
    """Each fault's statements together; what this role may not mend, or not now, is left, and the others are mended."""
    left = (psycopg.errors.InsufficientPrivilege, psycopg.errors.LockNotAvailable)
    for fault in found:
        with contextlib.suppress(*left), session.transaction():
            session.execute(load("docmem_sync", "migrate.sql")["lock_timeout"].encode())
            for statement in fault.mends:
                session.execute(statement.encode())


def _can(settings: Settings, by: By) -> bool:
    """Whether we may act as `by`: everybody of the embedded server, else whom a setting names."""
    return not settings.external or by == "itself" or (by == "owner" and _is_set(settings, "owner"))


def _git() -> str:
    version = git.version()
    shown = ".".join(map(str, version))
    if version < MIN_GIT:
        raise ConfigError(f"git {shown} is older than {'.'.join(map(str, MIN_GIT))}", hint="install a newer git")
    return f"git {shown}"


def _disk(settings: Settings) -> Check:
    place = next(folder for folder in (settings.root, *settings.root.parents) if folder.exists())
    free = shutil.disk_usage(place).free
    detail = f"{free // 1024**2} MiB free at {place}"
    writable = os.access(place, os.W_OK)
    hint = "" if free >= MIN_FREE else f"make room on the disk of {place}"
    return Check(
        "disk", free >= MIN_FREE and writable, detail, hint or (not writable and f"make {place} writable") or ""
    )


# --- the repos


def _repo(settings: Settings, tenant: str) -> Check:
    def look() -> str:
        repo = repository.open(settings, tenant)
        fault = checkout.fault(repo)
        if fault is not None:
            raise ConfigError(f"{fault}: what a push brings is not checked", hint=REPAIR)
        head = branch.head(repo, None)
        if head is None:
            return "no commit yet"
        missing = git.missing(repo.git_dir, head)
        if missing is not None:
            raise ConfigError(f"objects that main needs are not there: {missing}", hint=_bring_back(repo))
        return f"format {repo.snapshot(head).config.format} at {head[:12]}"

    place = settings.tenants / f"{tenant}.git"
    return checked(f"repo {tenant}", look, f"restore {place} from a backup; what is wrong: git --git-dir {place} fsck")


def _bring_back(repo: Repository, spoilt: str = "") -> str:
    """How objects that are gone or spoilt come back: from whoever has them. A spoilt one would stand in the way."""
    source = remotes.url(repo.git_dir) or "PATH-OF-A-CLONE-OR-BACKUP"
    loose = repo.git_dir / "objects" / spoilt[:2] / spoilt[2:]
    away = f"rm -f {loose} && " if loose.is_file() else ""
    return f"{away}git --git-dir {repo.git_dir} fetch --refetch {source} main"


def _remote(settings: Settings, tenant: str) -> Iterator[Check]:
    """The tenant's origin, asked now."""

    def look() -> str:
        at = remotes.url(repo.git_dir)
        assert at is not None
        there = remotes.tip(repo.git_dir, at)
        known = origin(repo.git_dir)
        if known is not None and known["error"]:
            raise ConfigError(f"{known['error']} (since {known['since'] or 'then'})", hint=known["hint"])
        return f"{remotes.shown(at)} answers, its main is at {there[:12] if there else 'no commit'}"

    with contextlib.suppress(DocmemError, OSError):  # a repo that is broken was named before
        repo = repository.open(settings, tenant)
        if remotes.url(repo.git_dir) is not None:
            yield checked(f"origin {tenant}", look)


# --- Postgres


def _is_set(settings: Settings, role: db.Role) -> bool:
    given = {"reader": settings.dsn, "sync": settings.sync_dsn, "owner": settings.owner_dsn}[role]
    return not settings.external or given is not None


def of_postgres(settings: Settings) -> Iterator[Check]:
    """Look at the server, each role, and the schema. A role that may not connect is told about by one that may."""
    try:
        with _any(settings) as connection:
            check_unlocked(connection)
            yield checked("postgres", lambda: _server(connection, settings))
            found = rights.faults(connection, _logins(settings))
    except DocmemError as error:
        yield Check("postgres", False, error.message, error.hint)
        return
    sound: list[db.Role] = []
    for role in _ROLES:
        of_role = [fault for fault in found if fault.where == role]
        yield from _told(settings, f"role {role}", of_role)
        if not of_role and _is_set(settings, role):
            check = _role(settings, role)
            yield check
            sound += [role] if check.ok else []
    of_schema = [fault for fault in found if fault.where == rights.SCHEMA]
    yield from _told(settings, "schema", of_schema)
    if not of_schema and sound:
        yield checked("schema", lambda: _schema(settings, sound[0]))


def _server(connection: psycopg.Connection[DictRow], settings: Settings) -> str:
    server = server_row(connection, settings)
    if server["pgvector"] is None:
        raise ConfigError(
            "pgvector is not installed in this database", hint=_as_administrator(["CREATE EXTENSION vector;"])
        )
    where = f", data in {server['data']}" if server["embedded"] else ""
    return f"Postgres {server['version']}, pgvector {server['pgvector']}{where}"


@contextlib.contextmanager
def _any(settings: Settings) -> Iterator[psycopg.Connection[DictRow]]:
    """A session of the first role that may connect, for its catalogue. Raises what the reader's raised."""
    failed: DocmemError | None = None
    for role in _ROLES:
        if not _is_set(settings, role):
            continue
        with contextlib.ExitStack() as stack:
            try:
                connection = stack.enter_context(db.catalogue(settings, role))
            except DocmemError as error:
                failed = failed or error
                continue
            yield connection
            return
    raise failed or ConfigError("no Postgres is configured", hint="set DOCMEM_DSN")


def _faults(settings: Settings) -> list[Fault]:
    with _any(settings) as connection:
        return rights.faults(connection, _logins(settings))


def _logins(settings: Settings) -> dict[db.Role, str]:
    """Which role connects as each of ours, by its connection string, else by asking."""
    found: dict[db.Role, str] = {}
    for role in _ROLES:
        if not _is_set(settings, role):
            continue
        named = conninfo.conninfo_to_dict(db.dsn(settings, role)).get("user")
        with contextlib.suppress(DocmemError):
            found[role] = str(named) if named else _user(settings, role)
    return found


def _user(settings: Settings, role: db.Role) -> str:
    with db.catalogue(settings, role) as connection:
        return connection.info.user


def _told(settings: Settings, name: str, found: Sequence[Fault]) -> Iterator[Check]:
    """The faults of a role or of the schema, together with what the same person mends."""
    groups: dict[str, list[Fault]] = {}
    for fault in found:
        groups.setdefault(_hint_kind(settings, fault), []).append(fault)
    for kind, faults in groups.items():
        yield Check(name, False, "; ".join(fault.what for fault in faults), _hint(kind, rights.statements(faults)))


def _hint_kind(settings: Settings, fault: Fault) -> str:
    if not fault.mends:
        return ANEW
    return REPAIR if _can(settings, fault.by) else fault.by


def _hint(kind: str, statements: Sequence[str]) -> str:
    if kind == "administrator":
        return _as_administrator(statements)
    return (
        kind if kind in (ANEW, REPAIR) else "as the owner of schema docmem, in that database:\n" + "\n".join(statements)
    )


def _as_administrator(statements: Iterable[str]) -> str:
    return "as an administrator, in that database:\n" + "\n".join(statements)


def _role(settings: Settings, role: db.Role) -> Check:
    def look() -> str:
        with db.session(settings, role) as connection:
            return f"{connection.info.user} {'may connect' if role == 'owner' else 'is bound by row-level security'}"

    return checked(f"role {role}", look)


def _schema(settings: Settings, role: db.Role) -> str:
    with db.session(settings, role) as connection:
        db.check_schema(connection)
    return f"version {db.SCHEMA_VERSION}, row-level security forced on every table, by docmem's policies alone"


# --- the index


def _index(settings: Settings, broken: Mapping[str, str]) -> Iterator[Check]:
    """How each tenant is served. `broken`: what mends the repos that are; sync can't."""
    found = status(settings)
    if "error" in found["server"]:  # named before, in the words of who mends it
        return
    for row in found["tenants"]:
        yield from _of_tenant(settings, row, broken.get(row["tenant"]))


def _of_tenant(settings: Settings, row: Mapping[str, Any], mend: str | None) -> Iterator[Check]:
    name = row["tenant"]
    if "error" in row:
        yield Check(f"index {name}", False, row["error"], mend or row["hint"])
        if row["head"] is None:
            return
    else:
        yield checked(f"index {name}", lambda: _lag(settings, row), mend or f"docmem sync {name}")
    if mend is None:
        yield strays.of_tenant(settings, name)
    if row["pending_embeddings"]:
        waiting = f"{row['pending_embeddings']} texts have no vector of {settings.embedding_model} yet"
        yield Check(f"vectors {name}", False, waiting, f"docmem sync {name}")
    for item in row["quarantine"]:
        where = f"{item['path']}:{item['line']}: {item['code']}: {item['reason']}"
        hint = f"docmem checkout {name} DIR; correct the file there, commit and push; what it said last is served"
        yield Check(f"quarantine {name}", False, where, hint)


def _lag(settings: Settings, row: Mapping[str, Any]) -> str:
    if row["head"] == row["synced"]:
        return f"{row['rows']} rows, up to date"
    said = f"{row['rows']} rows, {row['lag_commits']} commits behind, for {row['lag_seconds']} s"
    repo = repository.open(settings, row["tenant"])
    unreadable = git.unreadable(repo.git_dir, row["head"], since=row["synced"])
    if unreadable is not None:
        raise ConfigError(f"{said}: object {unreadable} can't be read", hint=_bring_back(repo, unreadable))
    raise ConfigError(said)
