"""An index built beside the served one, over all commits, and swapped in: readers see the old one, then the new.

Rows stream by COPY into tables that nobody else sees; what differs from the served rows is then written in the same
transaction as the watermark. Rows that are as they were aren't touched, and keep their vectors.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import psycopg
from psycopg import sql

from docmem.errors import ConfigError
from docmem.layout import CONFIG, place
from docmem.model import Document, Memory, Profile
from docmem.sql import load
from docmem.tenant_config import TenantConfig
from docmem_sync import rows
from docmem_sync.ledger import At, Ledger, Load, Version
from docmem_sync.store import Store, join_at_once

_SQL = partial(load, "docmem_sync", "beside.sql")
_FLUSH_CHARS = 1_000_000
_ESCAPED = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\b": "\\b", "\f": "\\f", "\v": "\\v"})
_KEYS: Mapping[str, tuple[str, ...]] = {
    "memory": ("id",),
    "profile": ("subject",),
    "document": ("path", "chunk"),
    "memory_history": ("id", "step"),
    "profile_history": ("subject", "step"),
}


class _Stage:
    """A table beside the served one. Rows are gathered as text and copied by the megabyte."""

    def __init__(self, store: Store, name: str, columns: Sequence[str], statement: str, table: str = "") -> None:
        self.name = f"stage_{name}"
        self.columns = tuple(columns)
        self.rows = 0
        self._store = store
        self._texts: list[str] = []
        self._size = 0
        self.execute(statement, table=sql.Identifier(table), columns=_names(self.columns))

    @classmethod
    def of(cls, store: Store, table: str) -> _Stage:
        """One with the columns of a table of the index."""
        found = store.cursor.execute(_SQL()["columns"], {"table": table}).fetchall()
        return cls(store, table, [row["column"] for row in found], "create", table)

    def execute(self, statement: str, /, values: Mapping[str, Any] | None = None, **names: sql.Composable) -> int:
        """Run a statement about this table; how many rows it touched."""
        text = sql.SQL(_SQL()[statement]).format(stage=sql.Identifier(self.name), **names)
        self._store.cursor.execute(text, {"tenant": self._store.tenant, **values} if values is not None else None)
        return self._store.cursor.rowcount

    def add(self, row: Mapping[str, Any], *, number: int) -> None:
        """A row of the commit with this number."""
        self.put([row.get(column) for column in self.columns] + [number])

    def put(self, values: Iterable[Any]) -> None:
        """The values of all columns."""
        text = "\t".join(map(_text, values))
        self._texts.append(text)
        self._size += len(text)
        self.rows += 1
        if self._size >= _FLUSH_CHARS:
            self.flush()

    def flush(self) -> None:
        """Copy what was gathered."""
        if self._texts:
            self._texts.append("")
            with self._store.cursor.copy(sql.SQL(_SQL()["copy"]).format(stage=sql.Identifier(self.name))) as copy:
                copy.write("\n".join(self._texts))
            self._texts, self._size = [], 0

    def close(self) -> None:
        """No more rows: let the planner know them."""
        self.flush()
        self.execute("analyze")


def _text(value: Any) -> str:
    """A value as COPY reads it."""
    if value is None:
        return "\\N"
    if isinstance(value, str):
        return value.translate(_ESCAPED)
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, list):
        return _array(value).translate(_ESCAPED) if value else "{}"
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False).translate(_ESCAPED) if value else "{}"
    return str(value)


def _array(values: Sequence[str]) -> str:
    quoted = (value.replace("\\", "\\\\").replace('"', '\\"') for value in values)
    return "{" + ",".join(f'"{value}"' for value in quoted) + "}"


def _names(columns: Sequence[str], prefix: str = "") -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(*([prefix] if prefix else []), column) for column in columns)


def _stages(store: Store) -> dict[str, _Stage]:
    try:
        return {table: _Stage.of(store, table) for table in _KEYS}
    except psycopg.errors.InsufficientPrivilege:
        info = store.cursor.connection.info
        raise ConfigError(
            f"role {info.user} may not make temporary tables in database {info.dbname}, in which an index is built",
            hint=f'as an administrator: GRANT TEMPORARY ON DATABASE "{info.dbname}" TO docmem_sync;',
        ) from None


class Beside:
    """A book (see `ledger.Book`) that is copied into tables beside the served ones.

    `final`: the (path, blob) that stand at the head: only those can be served in the end, but for what files said last
    that can't be read now.
    """

    def __init__(self, store: Store, final: Iterable[tuple[str, str]]) -> None:
        self._store = store
        self._final = array("q", sorted(map(hash, final)))  # a set would take ten times the room
        self._stages = _stages(store)
        self._closed = {
            kind: _Stage(store, f"{kind}_closed", ("key", "step", "closed_revision", "recorded_to"), "create_closed")
            for kind in ("memory", "profile")
        }
        columns = ("key", "step", "superseded_by", "number")
        self._superseded = _Stage(store, "superseded", columns, "create_superseded")
        self.settings: tuple[TenantConfig, str | None, str] | None = None
        self._revisions: list[str] = []
        self._seconds = array("q")

    def _is_final(self, path: str, blob: str) -> bool:
        wanted = hash((path, blob))
        found = bisect_left(self._final, wanted)
        return found < len(self._final) and self._final[found] == wanted

    def begin(self, at: At) -> None:
        """A commit begins; their numbers count from 0."""
        self._revisions.append(at.revision)
        self._seconds.append(at.seconds)

    def memory(self, version: Version, memory: Memory) -> None:
        """See `ledger.Book`."""
        row = rows.memory_row(memory, version)
        if self._is_final(version.path, version.blob):
            self._stages["memory"].add(row, number=version.at.number)
        self._stages["memory_history"].add(rows.history_row(row, version), number=version.at.number)

    def end_memory(self, memory: str, step: int, at: At) -> None:
        """See `ledger.Book`."""
        self._closed["memory"].put((memory, step, at.revision, rows.time(at.seconds)))

    def supersede(self, memory: str, step: int, by: str, at: At) -> None:
        """See `ledger.Book`."""
        self._superseded.put((memory, step, by, at.number))

    def profile(self, version: Version, profile: Profile) -> None:
        """See `ledger.Book`."""
        row = rows.profile_row(profile, version)
        if self._is_final(version.path, version.blob):
            self._stages["profile"].add(row, number=version.at.number)
        self._stages["profile_history"].add(rows.history_row(row, version), number=version.at.number)

    def end_profile(self, subject: str, step: int, at: At) -> None:
        """See `ledger.Book`."""
        self._closed["profile"].put((subject, step, at.revision, rows.time(at.seconds)))

    def document(self, at: At, blob: str, document: Document) -> None:
        """See `ledger.Book`."""
        if self._is_final(document.path, blob):
            self._add_document(at, blob, document)

    def _add_document(self, at: At, blob: str, document: Document) -> None:
        for row in rows.document_rows(document, blob, at):
            self._stages["document"].add(row, number=at.number)

    def end_document(self, path: str) -> None:
        """See `ledger.Book`: what stands at the head isn't ended."""

    def config(self, at: At, blob: str, config: TenantConfig) -> None:
        """See `ledger.Book`."""
        self.settings = (config, blob, at.revision)

    # --------------------------------------------------------------------------------------------------- the end

    def close(self, ledger: Ledger, reload: Load) -> None:
        """No more commits: add what files said last that can't be read now, and drop what closed after all."""
        for path, waiting in ledger.standing.waiting.items():
            if waiting.good is not None and path != CONFIG:
                self._add_last_good(ledger, path, waiting.good, reload(path, waiting.good))
        for stage in (*self._stages.values(), *self._closed.values(), self._superseded):
            stage.close()
        join_at_once(self._store.cursor)
        for kind in ("memory", "profile"):
            if self._closed[kind].rows:
                history, closed = self._stages[f"{kind}_history"].name, self._closed[kind].name
                self._stages[kind].execute(
                    "drop_closed",
                    key=sql.Identifier(_KEYS[kind][0]),
                    history=sql.Identifier(history),
                    closed=sql.Identifier(closed),
                )
        self._stages["document"].execute("drop_earlier", key=sql.Identifier("path"))

    def _add_last_good(self, ledger: Ledger, path: str, blob: str, value: object) -> None:
        standing = ledger.standing
        if isinstance(value, Memory):
            opened = self._at(standing.opened(value.id))
            version = Version(opened, "update", path, blob, standing.step(value.id), standing.created(value.id))
            self._stages["memory"].add(rows.memory_row(value, version), number=opened.number)
        elif isinstance(value, Profile):
            step, count, number = standing.profiles[place(path).subject]
            version = Version(self._at(number), "update", path, blob, step, count=count)
            self._stages["profile"].add(rows.profile_row(value, version), number=number)
        elif isinstance(value, Document):
            self._add_document(self._at(standing.documents[hash(path)]), blob, value)

    def _at(self, number: int) -> At:
        return At(number, self._revisions[number], self._seconds[number])

    def first(self) -> At:
        """The chain's first commit."""
        return self._at(0)

    def deleted(self) -> dict[str, str]:
        """The rows that go: ids of memories and paths of others, to their paths."""
        found: dict[str, str] = {}
        for name in ("gone_memories", "gone_profiles", "gone_documents"):
            rows_ = self._store.cursor.execute(_SQL()[name], {"tenant": self._store.tenant}).fetchall()
            found |= {row["key"]: row["path"] for row in rows_}
        return found

    def swap(self) -> int:
        """Write what differs from what is served; how many files that are."""
        language = self._store.language()
        files = sum(self._swap(table, language=language) for table in ("memory", "profile"))
        columns = self._columns("document")
        found = self._execute("documents_differ", "document", columns).fetchone()
        files += int(found["files"]) if found else 0
        self._swap("document", language=language)
        for kind in ("memory", "profile"):
            table = f"{kind}_history"
            names: dict[str, sql.Composable] = {
                "table": sql.Identifier(table),
                "closed": sql.Identifier(self._closed[kind].name),
                "key": sql.Identifier(_KEYS[kind][0]),
            }
            self._execute("swap_history", table, names | self._columns(table))
        self._execute("swap_superseded", "memory")
        for what in ("memory", "document"):
            self._store.carry_vectors(what, None)
        for table in _KEYS:  # last: rows take their vectors along
            self._delete_gone(table)
        self._store.run("list_languages")
        return files

    def _delete_gone(self, table: str) -> None:
        names: dict[str, sql.Composable] = {
            "table": sql.Identifier(table),
            "s_key": _names(_KEYS[table], "s"),
            "t_key": _names(_KEYS[table], "t"),
        }
        self._execute("delete_gone", table, names)

    def _swap(self, table: str, *, language: str | None) -> int:
        return int(self._execute(f"swap_{table}", table, self._columns(table), language=language).rowcount)

    def _columns(self, table: str) -> dict[str, sql.Composable]:
        columns = self._stages[table].columns
        prefixes = {"columns": "", "s_columns": "s", "t_columns": "t", "x_columns": "excluded"}
        return {name: _names(columns, prefix) for name, prefix in prefixes.items()}

    def _execute(
        self, name: str, table: str, names: Mapping[str, sql.Composable] = MappingProxyType({}), **values: Any
    ) -> Any:
        text = sql.SQL(_SQL()[name]).format(stage=sql.Identifier(self._stages[table].name), **names)
        return self._store.cursor.execute(text, {"tenant": self._store.tenant, **values})
