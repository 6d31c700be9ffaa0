"""How the index stands: `docmem status` in numbers, `docmem doctor` as checks that name what mends them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import DictRow

from docmem import checkout, db, git, journal, postgres, remote, repository
from docmem.config import Settings
from docmem.embedding import Embedder, embedder
from docmem.errors import ConfigError, DocmemError, GitError, NotFound, SchemaError
from docmem.git import remotes
from docmem.git.walk import listing
from docmem.index import READING
from docmem.inject import Injector
from docmem.repository import Repository
from docmem.sql import load
from docmem.times import format_time
from docmem_sync import embed, reading
from docmem_sync.store import join_at_once

MIN_GIT = (2, 39)
MIN_FREE = 512 * 1024 * 1024
"""Bytes that a root's disk should have left."""

_PARTS = ("table", "function")
_NOBODY = "nobody"
_ANEW = "drop schema docmem as its owner and run docmem sync: it is rebuilt from the repos"
_SQL = partial(load, "docmem_sync", "status.sql")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing the doctor looked at. `hint` says what mends it, where it isn't well."""

    name: str
    ok: bool
    detail: str
    hint: str = ""

    def as_json(self) -> dict[str, Any]:
        """A row of `doctor --json`."""
        return {"name": self.name, "ok": self.ok, "detail": self.detail, "hint": self.hint}


def status(settings: Settings, tenants: Iterable[str]) -> dict[str, Any]:
    """The object of `status --json`. What can't be reached is said in it, not raised."""
    names = list(tenants)
    server: dict[str, Any] = {"reachable": False, "version": None, "pgvector": None}
    server |= {"embedded": not settings.external, "data": None}
    try:
        with db.session(settings, "reader") as connection:
            server = _server(connection, settings)
            db.check_schema(connection)
            _check_whole(connection)
            with _packets(settings) as injector:
                look = partial(_tenant, connection, injector)
                return {"server": server, "tenants": [_readable(settings, tenant, look) for tenant in names]}
    except DocmemError as error:
        server |= {"error": error.message, "hint": error.hint}
        return {"server": server, "tenants": [_readable(settings, tenant, _unindexed) for tenant in names]}


def _readable(settings: Settings, tenant: str, look: Callable[[Repository], dict[str, Any]]) -> dict[str, Any]:
    """A tenant's row; where its repo can't be read, one with `error` and `hint`, and the others go on."""
    try:
        return look(repository.open(settings, tenant))
    except (NotFound, GitError) as error:
        message, hint = error.message, error.hint or f"see: git --git-dir {settings.tenants / tenant}.git fsck"
    except OSError as error:
        message, hint = f"{tenant} can't be read: {error}", "let docmem's user read and write it"
    erase = _erase(settings, tenant)
    return _row(tenant) | {"error": message, "hint": erase["hint"] if erase else hint, "erase": erase}


def _erase(settings: Settings, tenant: str) -> dict[str, str] | None:
    """An erase that broke off: what was to go is still there or served, and pushes are refused."""
    since = journal.broken_off(settings, tenant)
    if since is None:
        return None
    error = f"an erase broke off (begun {since}); until it is finished pushes are refused"
    return {"since": since, "error": error, "hint": f"docmem erase {tenant} --resume"}


def _server(connection: psycopg.Connection[DictRow], settings: Settings) -> dict[str, Any]:
    row = connection.execute(_SQL()["server"]).fetchone()
    assert row is not None
    shown = {"reachable": True, "version": row["version"].split()[0], "pgvector": row["pgvector"]}
    running = None if settings.external else postgres.running(settings)
    return shown | {"embedded": not settings.external, "data": str(running.data) if running else None}


def _check_whole(connection: psycopg.Connection[DictRow]) -> None:
    """Raise where a part of the index is gone, or a reader may not use it: the version is a function of its own."""
    text = files("docmem_sync").joinpath("schema.sql").read_text(encoding="utf-8")
    parts = {f"{kind}s": re.findall(rf"^CREATE {kind.upper()} docmem\.(\w+)", text, re.M) for kind in _PARTS}
    faults = [(row["what"], row["fault"]) for row in connection.execute(_SQL()["lacking"], parts)]
    gone = [what for what, fault in faults if fault == "is gone"]
    if gone:
        raise SchemaError(
            f"the index is not whole: {', '.join(gone)} is gone",
            hint=f"restore it; or {_ANEW}",
        )
    if faults:
        raise ConfigError(
            f"{connection.info.user} may not use {', '.join(what for what, _ in faults)} of the index",
            hint="as the owner: GRANT SELECT ON ALL TABLES IN SCHEMA docmem TO docmem_reader; GRANT INSERT, UPDATE ON "
            "docmem.usage, docmem.trace TO docmem_reader; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA docmem TO PUBLIC;",
        )


def _packets(settings: Settings) -> Injector:
    """Makes packets as turns get them, but by words alone: an embedder that is away isn't the index's fault."""
    served = replace(settings, embedding_model="none", require_memory=False, replica_dsn=None)
    return Injector(served, timeout=READING, opening=READING, observe=lambda _: None, files=False)


def _tenant(connection: psycopg.Connection[DictRow], injector: Injector, repo: Repository) -> dict[str, Any]:
    with db.tenant_transaction(connection, repo.tenant) as cursor:
        row = cursor.execute(_SQL()["tenant"], {"tenant": repo.tenant}).fetchone()
        waiting = cursor.execute(_SQL()["quarantine"], {"tenant": repo.tenant}).fetchall()
        undeclared = cursor.execute(_SQL()["undeclared"], {"tenant": repo.tenant}).fetchall()
        somebody = cursor.execute(_SQL()["somebody"], {"tenant": repo.tenant}).fetchone()
    assert row is not None
    assert somebody is not None
    served = _served(injector, repo.tenant, somebody["subject"] or _NOBODY) if row["synced"] else {}
    return (
        _unindexed(repo)
        | served
        | {
            "synced": row["synced"],
            "synced_at": format_time(row["synced_at"]) if row["synced_at"] else None,
            **_lag(repo, row["synced"]),
            "rows": row["rows"],
            "quarantined": len(waiting),
            "quarantine": waiting,
            "undeclared": {each["key"]: each["profiles"] for each in undeclared},
            "pending_embeddings": _pending(connection, repo.tenant, embedder(repo.settings)),
        }
    )


def _served(injector: Injector, tenant: str, subject: str) -> dict[str, str]:
    """`error` and `hint` where a turn about this subject gets no packet: rows may be there and make no sense."""
    code = injector.packet(tenant, subject, "what is remembered").degraded
    if code is None:
        return {}
    return {
        "error": f"packets fail: {code}",
        "hint": f"docmem sync {tenant} --rebuild; if that doesn't mend it, {_ANEW}",
    }


def _unindexed(repo: Repository) -> dict[str, Any]:
    review = len(git.refs(repo.git_dir, repository.REVIEW))
    shared = {"origin": _origin(repo.git_dir), "erase": _erase(repo.settings, repo.tenant)}
    return _row(repo.tenant) | {"head": repo.head(), "review": review} | _lag(repo, None) | shared


def _origin(git_dir: Path) -> dict[str, Any] | None:
    """How the last exchange with the tenant's origin went; None without an origin. `error` is null where it went well.

    Asks nobody: an origin that is away must not make status wait.
    """
    state = remote.state(git_dir)
    if state.url is None:
        return None
    found = state.as_json()
    trouble = found.pop("trouble") or {"code": None, "message": None, "hint": None, "since": None}
    if state.aside and trouble["message"] is None:
        message = f"its main was rewritten, and is kept aside as {', '.join(state.aside)}"
        trouble |= {"code": remote.Rewritten.code, "message": message}
        trouble |= {"hint": f"docmem remote {remotes.tenant_of(git_dir)} --take theirs, or --take ours"}
    return {
        "url": found["url"],
        "upstream": found["upstream"],
        "aside": found["aside"],
        "code": trouble["code"],
        "error": trouble["message"],
        "hint": trouble["hint"],
        "since": trouble["since"],
    }


def _row(tenant: str) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "head": None,
        "synced": None,
        "lag_commits": 0,
        "lag_seconds": 0,
        "rows": 0,
        "quarantined": 0,
        "pending_embeddings": 0,
        "undeclared": {},
        "review": 0,
        "origin": None,
        "erase": None,
    }


def _lag(repo: Repository, synced: str | None) -> dict[str, int]:
    """Commits that aren't indexed yet (all of them where the indexed revision is lost), and for how many seconds the
    oldest of them has waited."""
    head = repo.head()
    if head is None or head == synced:
        return {"lag_commits": 0, "lag_seconds": 0}
    since = synced if synced and git.is_first_parent_ancestor(repo.git_dir, synced, head) else None
    times = list(git.times(repo.git_dir, head, since=since).values())
    return {"lag_commits": len(times), "lag_seconds": max(0, round(time.time() - times[-1]))}


def _pending(connection: psycopg.Connection[DictRow], tenant: str, model: Embedder | None) -> int:
    return embed.pending(connection, tenant, model=model.model) if model else 0


def doctor(settings: Settings) -> list[Check]:
    """Look at everything docmem stands on: git, the repos, Postgres, the roles, the schema, lag, quarantine, disk."""
    checks = [_checked("git", _git, "install git 2.39 or newer"), _disk(settings)]
    for tenant in repository.tenants(settings):
        checks += [_repo(settings, tenant), *_remote(settings, tenant)]
    checks += [
        Check(f"erase {tenant}", False, erase["error"], erase["hint"])
        for tenant in journal.tenants(settings)
        if (erase := _erase(settings, tenant)) is not None
    ]
    checks += [_checked("postgres", lambda: _postgres(settings))]
    if not checks[-1].ok:
        return checks
    roles: tuple[db.Role, ...] = ("reader", "sync", "owner")
    checks += [_role(settings, role) for role in roles if _is_set(settings, role)]
    schema = _checked("schema", lambda: _schema(settings))
    checks.append(schema)
    return [*checks, *(_index(settings) if schema.ok else ())]


def _checked(name: str, look: Callable[[], str], hint: str = "") -> Check:
    try:
        return Check(name, True, look())
    except DocmemError as error:
        return Check(name, False, error.message, error.hint or hint)
    except OSError as error:
        return Check(name, False, str(error), "let docmem's user read and write it")


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


def _repo(settings: Settings, tenant: str) -> Check:
    def look() -> str:
        repo = repository.open(settings, tenant)
        fault = checkout.fault(repo)
        if fault is not None:
            raise ConfigError(f"{fault}: what a push brings is not checked", hint="docmem doctor --repair")
        head = repo.head()
        if head is None:
            return "no commit yet"
        return f"format {repo.snapshot(head).config.format} at {head[:12]}"

    return _checked(f"repo {tenant}", look, f"see: docmem check {tenant}")


def _remote(settings: Settings, tenant: str) -> Iterator[Check]:
    """The tenant's origin, asked now."""

    def look() -> str:
        at = remotes.url(repo.git_dir)
        assert at is not None
        there = remotes.tip(repo.git_dir, at)
        known = _origin(repo.git_dir)
        if known is not None and known["error"]:
            raise ConfigError(f"{known['error']} (since {known['since'] or 'then'})", hint=known["hint"])
        return f"{remotes.shown(at)} answers, its main is at {there[:12] if there else 'no commit'}"

    with contextlib.suppress(DocmemError, OSError):  # a repo that is broken was named before
        repo = repository.open(settings, tenant)
        if remotes.url(repo.git_dir) is not None:
            yield _checked(f"origin {tenant}", look)


def _is_set(settings: Settings, role: db.Role) -> bool:
    given = {"reader": settings.dsn, "sync": settings.sync_dsn, "owner": settings.owner_dsn}[role]
    return not settings.external or given is not None


def _postgres(settings: Settings) -> str:
    with db.session(settings, "reader") as connection:
        server = _server(connection, settings)
    if server["pgvector"] is None:
        raise ConfigError(
            "pgvector is not installed in this database", hint="as an administrator: CREATE EXTENSION vector;"
        )
    where = f", data in {server['data']}" if server["embedded"] else ""
    return f"Postgres {server['version']}, pgvector {server['pgvector']}{where}"


def _role(settings: Settings, role: db.Role) -> Check:
    def look() -> str:
        with db.session(settings, role) as connection:
            if role == "owner":
                return f"{connection.info.user} may connect"
            tables = "writable_tables" if role == "reader" else "unreadable_tables"
            wrong = [row["table"] for row in connection.execute(_SQL()[tables])] if _has_schema(connection) else []
            if wrong:
                raise ConfigError(
                    f"{connection.info.user} has the wrong rights on {', '.join(wrong)}", hint=_grants(role)
                )
            return f"{connection.info.user} is bound by row-level security"

    return _checked(f"role {role}", look)


def _has_schema(connection: psycopg.Connection[DictRow]) -> bool:
    return db.schema_version(connection) is not None


def _grants(role: db.Role) -> str:
    if role == "reader":
        return "give it docmem_reader's rights only: REVOKE ALL ON ALL TABLES IN SCHEMA docmem FROM its role"
    return "as an administrator: GRANT docmem_sync TO its role;"


def _schema(settings: Settings) -> str:
    with db.session(settings, "reader") as connection:
        db.check_schema(connection)
        _check_whole(connection)
        bare = [row["table"] for row in connection.execute(_SQL()["open_tables"])]
    if bare:
        raise ConfigError(
            f"row-level security is not forced on {', '.join(bare)}",
            hint="as the owner: ALTER TABLE docmem.… ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;",
        )
    return f"version {db.SCHEMA_VERSION}, row-level security forced on every table"


def _index(settings: Settings) -> Iterator[Check]:
    found = status(settings, repository.tenants(settings))
    for row in found["tenants"]:
        name, waiting = row["tenant"], row.get("quarantine", [])
        if "error" in row:
            yield Check(f"index {name}", False, row["error"], row["hint"])
            continue
        current = row["head"] == row["synced"]
        lag = "up to date" if current else f"{row['lag_commits']} commits behind, for {row['lag_seconds']} s"
        yield Check(f"index {name}", current, f"{row['rows']} rows, {lag}", "" if current else f"docmem sync {name}")
        yield _orphans(settings, name)
        for item in waiting:
            where = f"{item['path']}:{item['line']}: {item['code']}: {item['reason']}"
            yield Check(
                f"quarantine {name}", False, where, "correct the file and commit it; what it said last is served"
            )


def _orphans(settings: Settings, tenant: str) -> Check:
    """Whether each row has its file at the indexed revision, each open version its row, and each vector its text."""

    def look() -> str:
        repo = repository.open(settings, tenant)
        with db.session(settings, "reader") as connection, db.tenant_transaction(connection, tenant) as cursor:
            join_at_once(cursor)
            rows = cursor.execute(_SQL()["orphans"], {"tenant": tenant}).fetchall()
            served = cursor.execute(_SQL()["served_paths"], {"tenant": tenant}).fetchall()
        at = next((row["revision"] for row in served), None)
        there = {reading.printable(path) for path, _ in listing(repo.git_dir, at)} if at else set()
        found = {row["what"]: row["found"] for row in rows if row["found"]}
        strays = sum(row["path"] not in there for row in served if not row["waits"])
        found |= {"rows without a file": strays} if strays else {}
        if found:
            said = ", ".join(f"{count} {what}" for what, count in found.items())
            raise ConfigError(f"orphans: {said}", hint=f"docmem sync {tenant} --rebuild")
        return "0 orphans"

    return _checked(f"orphans {tenant}", look, f"docmem sync {tenant} --rebuild")
