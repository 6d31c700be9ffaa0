"""Whether a database keeps tenants apart, and docmem's roles may do what they must and no more.

The catalogue is compared with what schema.sql declares. Each fault brings the statements that mend it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import psycopg
from psycopg.rows import DictRow

from docmem import db
from docmem.sql import load
from docmem_sync.declared import declared

By: TypeAlias = Literal["owner", "administrator", "itself"]
"""Who may run what mends a fault: the schema's owner, a superuser, or the role that it is about."""

Where: TypeAlias = Literal["reader", "sync", "owner", "schema"]

SCHEMA: Where = "schema"

_GROUP: dict[db.Role, str] = {"reader": "docmem_reader", "sync": "docmem_sync", "owner": "docmem_owner"}
_ROWS = "(tenant_id = current_setting('app.current_tenant'::text, true))"
"""A policy's expression as Postgres writes it."""

_SQL = partial(load, "docmem_sync", "rights.sql")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a role (`where` is reader, sync or owner) or with the schema, and the statements that mend
    it, none where nothing but making it anew does."""

    where: Where
    what: str
    mends: tuple[str, ...]
    by: By


def faults(connection: psycopg.Connection[DictRow], logins: Mapping[db.Role, str]) -> list[Fault]:
    """What is wrong in this database. `logins`: the role that connects as each of docmem's, as far as it is known.

    Any role may look: nothing but the catalogue is read.
    """
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(_SQL()["look"], {})
        return list(_Look(cursor, logins).faults())


class _Look:
    """One look at the catalogue, in one transaction."""

    def __init__(self, cursor: psycopg.Cursor[DictRow], logins: Mapping[db.Role, str]) -> None:
        self._cursor = cursor
        self._logins = logins
        self._there = bool(self._rows("there"))
        owner = logins.get("owner", _GROUP["owner"])
        served = {*_GROUP.values(), *logins.values()} - {_GROUP["owner"], owner}
        owners = [row["role"] for row in self._rows("owners", {"tables": list(declared().tables)})]
        self._owners = [role for role in owners if role not in served]

    def faults(self) -> Iterator[Fault]:
        for where in _GROUP:
            yield from self._of_role(where)
        if self._there:
            yield from self._of_schema()

    def _of_role(self, where: db.Role) -> Iterator[Fault]:
        roles, known, owns = self._roles(where), declared(), where == "owner"
        values = {"roles": roles, "login": self._logins.get(where), "owns": owns, "forbidden": self._forbidden(where)}
        yield from self._said(where, "attributes", values)
        yield from self._said(where, "memberships", values)
        parts = {"tables": list(known.tables), "functions": list(known.functions)}
        owner = self._owners[0] if self._owners else _GROUP["owner"]
        yield from self._said(where, "owned", {**parts, "owner": owner, "owns": owns, "served": [] if owns else roles})
        if owns:
            return
        wanted = ["plan_cache_mode", *(["statement_timeout"] if where == "reader" else [])]
        yield from self._said(where, "settings", {**values, "wanted": wanted})
        if self._there:
            pairs = sorted(known.rights[_GROUP[where]])
            rights = {"tables": [table for table, _ in pairs], "rights": [right for _, right in pairs]}
            values |= rights | {"functions": list(known.functions), "temporary": where == "sync", "owner": owner}
            values |= {"group": _GROUP[where]}
            yield from self._said(where, "lacking", values)
            yield from self._said(where, "excess", values)

    def _of_schema(self) -> Iterator[Fault]:
        yield from self._gone()
        known = declared()
        for row in self._rows("unforced"):
            table = row["table"]
            statements = known.secured.get(table, (f'ALTER TABLE docmem."{table}" SET SCHEMA public;',))
            by: By = "owner" if table in known.secured else "administrator"
            yield Fault(SCHEMA, f"row-level security is not forced on {table}", statements, by)
        for row in self._rows("altered", {"tables": list(known.tables), "rows": _ROWS}):
            again = (f"DROP POLICY IF EXISTS tenant ON docmem.{row['table']};", known.policies[row["table"]])
            yield Fault(SCHEMA, f"the policy of {row['table']} is not docmem's", again, "owner")
        everybody = [role for where in _GROUP for role in self._roles(where)]
        yield from self._said(SCHEMA, "beside", {"roles": everybody, "tables": list(known.tables), "rows": _ROWS})
        served = [role for where in ("reader", "sync") for role in self._roles(where)]
        yield from self._said(SCHEMA, "past", {"roles": served})

    def _gone(self) -> Iterator[Fault]:
        """A function is made again as it was. A table's rows are gone, so the index is."""
        known = declared()
        gone = self._rows("gone", {"tables": list(known.tables), "functions": list(known.functions)})
        parts = {row["part"] for row in gone}
        if any(row["kind"] == "table" for row in gone):
            names = ", ".join(sorted(row["part"] for row in gone if row["kind"] == "table"))
            yield Fault(SCHEMA, f"the index is not whole: {names} is gone", (), "owner")
        # In their order in the file: each comes after those that it calls.
        for name in (name for name in known.functions if name in parts):
            made = (known.functions[name],)
            yield Fault(SCHEMA, f"the index is not whole: function {name} is gone", made, "owner")

    def _said(self, where: Where, query: str, values: Mapping[str, Any]) -> Iterator[Fault]:
        for row in self._rows(query, values):
            yield Fault(where, row["what"], (f"{row['mend']};",), row["by"])

    def _rows(self, query: str, values: Mapping[str, Any] | None = None) -> list[DictRow]:
        return self._cursor.execute(_SQL()[query], values or {}).fetchall()

    def _roles(self, where: db.Role) -> list[str]:
        """A part's login role and group; of the owner's, who owns something."""
        login = [self._logins[where]] if where in self._logins else []
        return list(dict.fromkeys([*login, *(self._owners if where == "owner" else [_GROUP[where]])]))

    def _forbidden(self, where: db.Role) -> list[str]:
        """Roles that a part's may not become."""
        if where == "owner":
            return []
        owners = self._roles("owner")
        return owners if where == "sync" else [*owners, *self._roles("sync"), "pg_write_all_data"]


def statements(found: Iterable[Fault]) -> list[str]:
    """What mends these, each statement once."""
    return list(dict.fromkeys(statement for fault in found for statement in fault.mends))


def by(found: Sequence[Fault], who: By) -> list[Fault]:
    """Those that `who` mends."""
    return [fault for fault in found if fault.by == who]
