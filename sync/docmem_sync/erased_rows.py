"""The index's part of an erase: rows out of every table, revisions moved, and the search for what may be left."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from psycopg import Cursor, sql
from psycopg.rows import DictRow

from docmem.errors import TryAgain
from docmem.journal import Journal
from docmem.sql import load
from docmem_sync.reading import printable
from docmem_sync.store import Store

_SQL = partial(load, "docmem_sync", "erase.sql")
_LOCK_SECONDS = 30.0
_BATCH = 5_000
_REVISIONS = ("revision", "closed_revision")


@dataclass(frozen=True)
class ErasedRows:
    """One tenant's tables, in one transaction. `cursor` comes out of `db.tenant_transaction`."""

    cursor: Cursor[DictRow]
    tenant: str

    def lock(self) -> None:
        """Keep sync out until the transaction ends. Raises `TryAgain`."""
        store = Store(self.cursor, self.tenant)
        deadline = time.monotonic() + _LOCK_SECONDS
        while not store.try_lock():
            if time.monotonic() > deadline:
                raise TryAgain(f"a sync of {self.tenant} is at work for {_LOCK_SECONDS:.0f} s", hint="run it again")
            time.sleep(0.05)

    def delete(self, journal: Journal) -> dict[str, int]:
        """Delete what belongs to the journal's target; rows by table, where there were any. Caches are told."""
        Store(self.cursor, self.tenant).notify(None)
        if journal.target.kind == "tenant":
            return self._counted((table, self._run("delete_all", table)) for table in self._tables())
        counts = self._counted(self._deletions(journal))
        self._unname(journal.memories)
        self.cursor.execute(_SQL()["recount"], {"tenant": self.tenant})
        return counts

    def threads(self, subject: str) -> tuple[str, ...]:
        """The conversations about a subject that wait to be consolidated, or failed."""
        rows = self.cursor.execute(_SQL()["threads"], {"tenant": self.tenant, "subject": subject}).fetchall()
        return tuple(row["thread"] for row in rows)

    def _unname(self, memories: Collection[str]) -> None:
        """No version that stays is told to be replaced by what was erased. What else replaced it, all commits tell."""
        values = {"tenant": self.tenant, "memories": list(memories)}
        self.cursor.execute(_SQL()["unname"], values)
        if self.cursor.rowcount:
            self.cursor.execute(_SQL()["derive_again"], values)

    def _deletions(self, journal: Journal) -> Iterator[tuple[str, int]]:
        wanted: dict[str, Collection[str]] = {
            "subject": [journal.target.value] if journal.target.kind == "subject" else [],
            "id": journal.memories,
            "memory": journal.memories,
            "thread": journal.threads,
            "path": [printable(path) for path in journal.paths],
        }
        for table, columns in self._tables().items():
            # A thread may be about others too, and a path may have held another memory; where a row says whom it is
            # about, that alone counts.
            for column in columns & wanted.keys() - ({"thread", "path"} if "subject" in columns else set()):
                yield table, self._run("delete_equal", table, column, values=list(wanted[column]))
            if "path" in columns and journal.folder:
                yield table, self._run("delete_below", table, "path", folder=journal.folder)

    def _counted(self, found: Iterable[tuple[str, int]]) -> dict[str, int]:
        counts: dict[str, int] = {}
        for table, count in found:
            if count:
                counts[table] = counts.get(table, 0) + count
        return counts

    def move(self, commits: Mapping[str, str], *, rebuild: bool) -> None:
        """Let every row follow the commits that moved, so that the next sync is about nothing but later ones.

        `rebuild`: files that stay were changed as well, so the next sync compares them all.
        """
        moved = [{"old": old, "new": new} for old, new in commits.items() if old != new]
        for start in range(0, len(moved), _BATCH):
            rows = json.dumps(moved[start : start + _BATCH])
            for name in ("follow_revisions", "map_revisions"):
                self.cursor.execute(_SQL()[name], {"tenant": self.tenant, "rows": rows})
        if rebuild:
            self._run("delete_all", "sync_state")
        if moved:
            for table, columns in self._tables().items():
                for column in columns.intersection(_REVISIONS):
                    self._run("move_rows", table, column)

    def saying(self, needles: Collection[str]) -> dict[str, int]:
        """Rows by table in which one of these stands, in whatever column."""
        escaped = [json.dumps(needle, ensure_ascii=False)[1:-1] for needle in needles]
        return self._counted((table, self._count("count_saying", table, needles=escaped)) for table in self._tables())

    def left(self) -> dict[str, int]:
        """All rows of the tenant, by table."""
        return self._counted((table, self._count("count_all", table)) for table in self._tables())

    def _tables(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for row in self.cursor.execute(_SQL()["columns"]).fetchall():
            found.setdefault(row["table"], set()).add(row["column"])
        return found

    def _run(self, name: str, table: str, column: str = "", **values: Any) -> int:
        self._execute(name, table, column, values)
        return self.cursor.rowcount

    def _count(self, name: str, table: str, **values: Any) -> int:
        self._execute(name, table, "", values)
        row = self.cursor.fetchone()
        assert row is not None
        return int(row["found"])

    def _execute(self, name: str, table: str, column: str, values: Mapping[str, Any]) -> None:
        text = sql.SQL(_SQL()[name])
        named = text.format(table=sql.Identifier(table), column=sql.Identifier(column) if column else sql.SQL(""))
        self.cursor.execute(named, {"tenant": self.tenant, **values})
