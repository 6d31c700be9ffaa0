"""How the index stands, in numbers: `docmem status`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import DictRow

from docmem import db, git, journal, postgres, remote, repository
from docmem.config import Settings
from docmem.embedding import Embedder, embedder
from docmem.errors import ConfigError, DocmemError, SchemaError, ServerUnavailable, TryAgain
from docmem.git import remotes
from docmem.index import READING
from docmem.inject import Injector
from docmem.repository import Repository
from docmem.sql import load
from docmem.times import format_time
from docmem_sync import branch, embed, strays
from docmem_sync.declared import declared

ANEW = "as the owner of schema docmem, in that database:\nDROP SCHEMA docmem CASCADE;\nthen: docmem sync"
"""The index from the repos, where nothing less mends it."""

_NOBODY = "nobody"
_LOCKED_SECONDS = 1.5
"""For which a lock is nobody's trouble: what migrates or vacuums has one for a moment."""
_SQL = partial(load, "docmem_sync", "status.sql")


def status(settings: Settings, tenants: Iterable[str] | None = None) -> dict[str, Any]:
    """The object of `status --json`, of these tenants or of all. What can't be reached is said in it, not raised."""
    names = sorted({*repository.tenants(settings), *journal.tenants(settings)}) if tenants is None else list(tenants)
    server: dict[str, Any] = {"reachable": False, "version": None, "pgvector": None}
    server |= {"embedded": not settings.external, "data": None}
    try:
        with db.session(settings, "reader") as connection:
            server = server_row(connection, settings)
            db.check_schema(connection)
            _check_whole(connection)
            check_unlocked(connection)
            left = [] if tenants is not None else [_left(*one) for one in strays.of_no_repo(settings, connection)]
            with _packets(settings) as injector:
                look = partial(_tenant, connection, injector)
                return {"server": server, "tenants": [*(_readable(settings, name, look) for name in names), *left]}
    except DocmemError as error:
        server |= {"error": error.message, "hint": error.hint}
        return {"server": server, "tenants": [_readable(settings, name, _unindexed) for name in names]}


def _left(tenant: str, rows: int) -> dict[str, Any]:
    """The row of a tenant whose repo is gone, and whose rows are served on."""
    return _row(tenant) | {"rows": rows, "error": strays.NO_REPO, "hint": strays.without(tenant)}


def _readable(settings: Settings, tenant: str, look: Callable[[Repository], dict[str, Any]]) -> dict[str, Any]:
    """A tenant's row; where its repo can't be read, one with `error` and `hint`, and the others go on."""
    try:
        return look(repository.open(settings, tenant))
    except ServerUnavailable:
        raise
    except DocmemError as error:
        message, hint = error.message, error.hint or f"see: git --git-dir {settings.tenants / tenant}.git fsck"
    except OSError as error:
        message, hint = f"{tenant} can't be read: {error}", "let docmem's user read and write it"
    erase = erase_of(settings, tenant)
    return _row(tenant) | {"error": message, "hint": erase["hint"] if erase else hint, "erase": erase}


def erase_of(settings: Settings, tenant: str) -> dict[str, str] | None:
    """An erase that broke off: what was to go is still there or served, and pushes are refused."""
    since = journal.broken_off(settings, tenant)
    if since is None:
        return None
    error = f"an erase broke off (begun {since}); until it is finished pushes are refused"
    return {"since": since, "error": error, "hint": f"docmem erase {tenant} --resume"}


def server_row(connection: psycopg.Connection[DictRow], settings: Settings) -> dict[str, Any]:
    """Which Postgres this is, and where an embedded one stands."""
    row = connection.execute(_SQL()["server"]).fetchone()
    assert row is not None
    shown = {"reachable": True, "version": row["version"].split()[0], "pgvector": row["pgvector"]}
    running = None if settings.external else postgres.running(settings)
    return shown | {"embedded": not settings.external, "data": str(running.data) if running else None}


def _check_whole(connection: psycopg.Connection[DictRow]) -> None:
    """Raise where a part of the index is gone, or a reader may not use it: the version is a function of its own."""
    parts = {"tables": list(declared().tables), "functions": list(declared().functions)}
    faults = [(row["what"], row["fault"]) for row in connection.execute(_SQL()["lacking"], parts)]
    gone = [what for what, fault in faults if fault == "is gone"]
    if gone:
        raise SchemaError(f"the index is not whole: {', '.join(gone)} is gone", hint="see what mends it: docmem doctor")
    if faults:
        raise ConfigError(
            f"{connection.info.user} may not use {', '.join(what for what, _ in faults)} of the index",
            hint="see what mends it: docmem doctor",
        )


def check_unlocked(connection: psycopg.Connection[DictRow]) -> None:
    """Raise `TryAgain` where somebody holds a table of the index, or waits for one with everybody else behind: each
    question about each tenant would take as long as a lock is waited for."""
    until = time.monotonic() + _LOCKED_SECONDS
    while locks := connection.execute(_SQL()["locks"]).fetchall():
        if time.monotonic() >= until:
            tables = ", ".join(sorted({f"docmem.{lock['what']}" for lock in locks}))
            by = ", ".join(sorted({f"{lock['who']} (process {lock['pid']})" for lock in locks}))
            raise TryAgain(
                f"locked for more than {_LOCKED_SECONDS:g} s, so that nobody can read it: {tables}, by {by}",
                hint="wait until it is done; what it does: SELECT pid, query FROM pg_stat_activity, in that database",
            )
        time.sleep(0.1)


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
    head = branch.head(repo, row["synced"])
    trouble = _lost(repo.tenant, row)
    if not trouble and row["synced"]:
        trouble = _served(injector, repo.tenant, somebody["subject"] or _NOBODY)
    return (
        _of_repo(repo, head)
        | trouble
        | {
            "synced": row["synced"],
            "synced_at": format_time(row["synced_at"]) if row["synced_at"] else None,
            **_lag(repo, head, row["synced"]),
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
    hint = f"docmem sync {tenant} --rebuild"
    if code in {"locked", "slow", "busy"}:
        hint = "who holds or takes it: SELECT pid, usename, query FROM pg_stat_activity, in that database"
    return {"error": f"packets fail: {code}", "hint": hint}


def _lost(tenant: str, row: DictRow) -> dict[str, str]:
    """`error` and `hint` where other rows are served than sync wrote."""
    if row["files"] is None or row["files"] == row["rows"]:
        return {}
    error = f"{row['rows']} files are served, and sync mirrored {row['files']}: rows were lost or added"
    return {"error": error, "hint": f"docmem sync {tenant} --rebuild"}


def _unindexed(repo: Repository) -> dict[str, Any]:
    head = branch.head(repo, None)
    return _of_repo(repo, head) | _lag(repo, head, None)


def _of_repo(repo: Repository, head: str | None) -> dict[str, Any]:
    review = len(git.refs(repo.git_dir, repository.REVIEW))
    shared = {"origin": origin(repo.git_dir), "erase": erase_of(repo.settings, repo.tenant)}
    return _row(repo.tenant) | {"head": head, "review": review} | shared


def origin(git_dir: Path) -> dict[str, Any] | None:
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


def _lag(repo: Repository, head: str | None, synced: str | None) -> dict[str, int]:
    """Commits that aren't indexed yet (all of them where the indexed revision is lost), and for how many seconds the
    oldest of them has waited."""
    if head is None or head == synced:
        return {"lag_commits": 0, "lag_seconds": 0}
    since = synced if synced and git.is_first_parent_ancestor(repo.git_dir, synced, head) else None
    times = list(git.times(repo.git_dir, head, since=since).values())
    return {"lag_commits": len(times), "lag_seconds": max(0, round(time.time() - times[-1]))}


def _pending(connection: psycopg.Connection[DictRow], tenant: str, model: Embedder | None) -> int:
    return embed.pending(connection, tenant, model=model.model) if model else 0
