"""A tenant with many vectors gets an approximate index of its own; the others are searched by key and sorted, exactly.

One index over all tenants would make every small write many times dearer, and hundreds of partial ones slow everyone's
reads (sync/README.md has the figures): so there are few, each of one set, made and dropped by rule.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any

import psycopg
from psycopg import sql

from docmem import db
from docmem.config import Settings
from docmem.errors import DocmemError
from docmem.sql import load

HOT = 10_000
"""Vectors from which a set is worth an index: an exact search through so many takes tens of milliseconds."""

COOL = 5_000
"""Vectors below which it isn't any more. Lower than `HOT`, so that a set near it isn't indexed again and again."""

MOST = 50
"""Such indexes at most, over all tenants."""

_SQL = partial(load, "docmem_sync", "hot.sql")
_log = logging.getLogger("docmem.sync")


@dataclass(frozen=True, slots=True)
class Size:
    """A set that serves, and how many vectors it has."""

    set: str
    vectors: int
    indexed: bool


def wanted(sizes: Iterable[Size]) -> dict[str, bool]:
    """The sets whose index is to be made (true) or dropped (false)."""
    found = {}
    for size in sizes:
        if not size.indexed and size.vectors >= HOT:
            found[size.set] = True
        elif size.indexed and size.vectors < COOL:
            found[size.set] = False
    return found


def index_name(tenant: str, name: str) -> str:
    """The name of a set's index."""
    return f"memory_vector_hot_{sha256(f'{tenant}/{name}'.encode()).hexdigest()[:16]}"


def settle(
    settings: Settings, connection: psycopg.Connection[Any], tenant: str, *, replaced: Collection[str] = ()
) -> None:
    """Make or drop the tenant's index, if it is time. Best effort: without one a search is exact, and slower.

    `replaced`: sets that are gone, and their indexes with them.
    """
    with db.tenant_transaction(connection, tenant) as cursor:
        rows = cursor.execute(_SQL()["sizes"], {"tenant": tenant}).fetchall()
    todo = wanted(Size(**row) for row in rows) | dict.fromkeys(replaced, False)
    if not todo:
        return
    try:
        with db.session(settings, "owner") as owner:
            for name, make in todo.items():
                done = _make(owner, tenant, name) if make else _drop(owner, tenant, name)
                if done:
                    _mark(connection, tenant, name, indexed=make)
    except DocmemError as error:
        most = max((row["vectors"] for row in rows), default=0)
        _log.warning("%s: the index over its %d vectors can't be seen to: %s", tenant, most, error)


def drop(settings: Settings, connection: psycopg.Connection[Any], tenant: str, name: str | None = None) -> None:
    """Drop the index of a set, or all of the tenant's, since they name it. Raises what `db.session` raises."""
    with db.tenant_transaction(connection, tenant) as cursor:
        rows = cursor.execute(_SQL()["indexed"], {"tenant": tenant}).fetchall()
    sets = [row["set"] for row in rows if name in {None, row["set"]}]
    if sets:
        with db.session(settings, "owner") as owner:
            for each in sets:
                _drop(owner, tenant, each)


def _make(owner: psycopg.Connection[Any], tenant: str, name: str) -> bool:
    existing: Mapping[str, bool] = {row["name"]: row["valid"] for row in owner.execute(_SQL()["existing"])}
    index = index_name(tenant, name)
    if existing.get(index):
        return True
    if len(existing.keys() - {index}) >= MOST:
        _log.warning("%s has many vectors, and %d tenants have an index already: it gets none", tenant, MOST)
        return False
    if index in existing:  # what was broken off is of no use
        _drop(owner, tenant, name)
    owner.execute(_SQL()["memory"])
    dimension = int(name.rstrip("+").split("/")[-2])
    _run(owner, "create", name=index, dimension=dimension, tenant=tenant, set=name)
    owner.execute(_SQL()["analyze"])  # after a first, large sync the planner knows no rows yet, and would read all
    _log.info("%s: an index over the vectors of %s is made", tenant, name)
    return True


def _drop(owner: psycopg.Connection[Any], tenant: str, name: str) -> bool:
    _run(owner, "drop", name=index_name(tenant, name))
    return True


def _run(owner: psycopg.Connection[Any], statement: str, *, name: str, **values: Any) -> None:
    parts = {key: sql.Literal(value) for key, value in values.items()}
    owner.execute(sql.SQL(_SQL()[statement]).format(name=sql.Identifier(name), **parts))


def _mark(connection: psycopg.Connection[Any], tenant: str, name: str, *, indexed: bool) -> None:
    with db.tenant_transaction(connection, tenant) as cursor:
        cursor.execute(_SQL()["mark"], {"tenant": tenant, "set": name, "indexed": indexed})
