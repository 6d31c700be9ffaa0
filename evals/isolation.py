"""Isolation: every way to read and to write, as nobody, as the wrong tenant, after an error, behind a real PgBouncer.

    python evals/isolation.py [--tries 20000] [--seed 1] [--quick] [--json]

Nine tenants with names that are prefixes and patterns of one another; each says a word of its own in every table. Half
of the tries go straight to Postgres, half through PgBouncer in transaction mode with two sessions a role, four at a
time. A try is foreign where it gives, or changes, anything of a tenant that it isn't made as. Exits 1 on a foreign row,
on a row that stands under the wrong tenant afterwards, and where the control (a superuser, whom row-level security
doesn't bind) is not seen to get foreign rows. Without PgBouncer all tries go straight, and it says so.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from docmem import db, files, layout, names, postgres, repository
from docmem.config import Settings
from docmem.errors import DocmemError, NotFound
from docmem.index import Index, Reader
from docmem.inject import Injector
from docmem.jobs import JobTable
from docmem.layout import FOLDERS
from docmem.model import KINDS, Memory, Source
from docmem.recall import search
from docmem_evals.proxy import program, proxied
from docmem_sync.embed import embed
from docmem_sync.sync import sync_tenant

TENANTS = ("a", "a-b", "a1", "ab", "acme", "acme-x", "acm", "b", "x")
PEOPLE = ("ana", "ben", "acme")
WORKERS = 4
WEIRD = ("", " ", "%", "a%", "_", "a_", "*", "A", "a ", "a-", "null", "acme,ab", "{acme}", "acme' OR true --", "\u0430")
NOW = datetime(2026, 5, 2, tzinfo=UTC)
_SECONDS = 10.0

Rows: TypeAlias = Iterable[Any]


class Bytes:
    """An embedder without a model: a text's hash as a vector."""

    model, dimension = "bytes", 16

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        """Vectors of stored texts."""
        return [[1.0 + byte for byte in sha256(text.encode()).digest()[:16]] for text in texts]

    def query(self, text: str) -> list[float]:
        """Vector of a question."""
        return self.passages([text])[0]


def mark(tenant: str) -> str:
    """The word that only this tenant says."""
    return f"zz{sha256(tenant.encode()).hexdigest()[:12]}"


MARKS = {tenant: mark(tenant) for tenant in TENANTS}


def foreign(tenant: str | None, rows: Rows) -> list[str]:
    """Whose words stand in these rows, besides the tenant's own; None is nobody."""
    said = " ".join(str(row) for row in rows)
    return [other for other, word in MARKS.items() if other != tenant and word in said]


def fill(settings: Settings) -> None:
    """Each tenant's rows, through the engine's own ways where there is one."""
    for tenant in TENANTS:
        repo = repository.create(settings, tenant)
        changed: dict[str, bytes | None] = dict(_files(tenant))
        with repo.locked():
            repo.commit(repo.head(), changed, message="fill", now=NOW)
        sync_tenant(settings, tenant, embedder=Bytes())
        with db.session(settings, "sync") as connection, db.tenant_transaction(connection, tenant) as cursor:
            for statement in OPERATIONAL:
                cursor.execute(statement, {"tenant": tenant, "word": MARKS[tenant]})


OPERATIONAL = (
    "INSERT INTO docmem.job VALUES (%(tenant)s, 'w', 's', 'default', 6, %(word)s, now())",
    "INSERT INTO docmem.revision_map VALUES (%(tenant)s, %(word)s, 'b')",
    "INSERT INTO docmem.usage (tenant_id, memory, agent, last_used_run, uses, used_at) "
    "VALUES (%(tenant)s, %(word)s, 'default', 1, 1, now())",
    "INSERT INTO docmem.trace "
    "(tenant_id, agent, run, packet, starts, ends, block, memory, path, revision, subject, at) "
    "VALUES (%(tenant)s, 'default', 1, 'h', 0, 1, 'facts', 'm', %(word)s, 'r', 's', now())",
)


def _files(tenant: str) -> Iterator[tuple[str, bytes]]:
    word = MARKS[tenant]
    for person in PEOPLE:
        subject = names.subject_of_id(tenant, person)
        for number in range(8):
            text = f"{person} of {word} likes tea and train {number}."
            memory_id = sha256(f"{tenant}{person}{number}".encode()).hexdigest()[:16]
            memory = Memory(
                memory_id, KINDS[number % 4], text, subject, layout.memory_path(subject, memory_id, text),
                source=Source(thread=f"t-{word}", turns=("t1",)),
            )  # fmt: skip
            yield memory.path, files.render_memory(memory)
        yield layout.profile_path(subject), f"label: {word}\nattributes: {{home: {word}}}\n".encode()
    for folder in FOLDERS:
        yield f"{folder}/tea.md", f"# Tea of {word}\nTrains and tea.\n".encode()
    yield f"knowledge/{word}.md", f"---\ntitle: [{word}\n---\n".encode()
    agents = f"{{default: {{topics: [{{name: {word}}}]}}}}"
    yield layout.CONFIG, f"format: 1\nlanguage: english\nagents: {agents}\n".encode()


@dataclass
class Way:
    """Connections of one kind, straight or through the proxy, and what is asked through them."""

    settings: Settings
    chance: random.Random
    tables: Sequence[str]
    reader: Reader
    injector: Injector
    connections: dict[db.Role, psycopg.Connection[Any]]

    def tenant(self) -> str:
        """One of the tenants."""
        return self.chance.choice(TENANTS)

    def subject(self) -> str:
        """Somebody's key, of whatever tenant."""
        return names.subject_of_id(self.tenant(), self.chance.choice(PEOPLE))

    def connection(self, *roles: db.Role) -> psycopg.Connection[Any]:
        """A connection as one of the roles."""
        return self.connections[self.chance.choice(roles)]

    def select(self, where: str = "") -> sql.Composed:
        """A query of a whole table, or of what `where` says."""
        table = sql.Identifier(self.chance.choice(self.tables))
        return sql.SQL("SELECT t.* FROM docmem.{} AS t {}").format(table, sql.SQL(where))


EVERYONE: tuple[db.Role, ...] = ("reader", "sync", "owner")
Try: TypeAlias = Callable[[Way, str], tuple[str | None, Rows]]


def finds(way: Way, tenant: str) -> tuple[str | None, Rows]:
    """Search, for whomever, for whatever, also for another's word."""
    question = f"tea {MARKS[way.tenant()]} {way.chance.choice(WEIRD)}"
    subject = way.subject() if way.chance.random() < 0.5 else None
    found = search(way.reader, tenant, question, subject=subject, limit=30, embedder=Bytes())
    return tenant, [hit.as_json() for hit in found.hits]


def injects(way: Way, tenant: str) -> tuple[str | None, Rows]:
    """A packet about whomever."""
    goal = f"tea {MARKS[way.tenant()]}" if way.chance.random() < 0.7 else None
    packet = way.injector.packet(tenant, way.subject(), goal, documents=[f"knowledge/{MARKS[way.tenant()]}.md"])
    return tenant, [packet]


def asks_by_key(way: Way, tenant: str) -> tuple[str | None, Rows]:
    """Whatever is read by a key, with another's key."""
    subject, word = way.subject(), MARKS[way.tenant()]

    def ask(index: Index) -> list[Any]:
        paths = ["knowledge/tea.md", f"knowledge/{word}.md"]
        read, _ = index.read({"subject": subject, "persona": True, "paths": paths, "chunks": 99})
        return [read.profile, read.documents, read.tenant, index.document_paths()]

    return tenant, way.reader.read(tenant, ask)


def lists_jobs(way: Way, tenant: str) -> tuple[str | None, Rows]:
    """The dead letters."""
    return tenant, JobTable(way.settings).listed(tenant)


def reads_all(way: Way, tenant: str) -> tuple[str | None, Rows]:
    """A whole table, with no condition of its own."""
    with db.tenant_transaction(way.connection(*EVERYONE), tenant) as cursor:
        return tenant, cursor.execute(way.select()).fetchall()


def reads_anothers(way: Way, tenant: str) -> tuple[str | None, Rows]:
    """Another's rows by name or by pattern, as this tenant."""
    where = way.chance.choice(["tenant_id = %(other)s", "tenant_id LIKE %(other)s || '%%'", "tenant_id <> %(tenant)s"])
    with db.tenant_transaction(way.connection(*EVERYONE), tenant) as cursor:
        values = {"other": way.tenant(), "tenant": tenant}
        return tenant, cursor.execute(way.select(f"WHERE {where}"), values).fetchall()


def forgets_the_tenant(way: Way, tenant: str) -> tuple[str | None, Rows]:
    """No tenant at all, on a connection that has had many."""
    return None, way.connection(*EVERYONE).execute(way.select()).fetchall()


def is_nobody(way: Way, tenant: str) -> tuple[str | None, Rows]:
    """A tenant that is none: empty, blank, a pattern, a list, another case, a look-alike."""
    connection = way.connection(*EVERYONE)
    with connection.transaction():
        connection.execute("SELECT set_config('app.current_tenant', %s, true)", [way.chance.choice(WEIRD)])
        return None, connection.execute(way.select()).fetchall()


def names_nobody(way: Way, tenant: str) -> tuple[str | None, Rows]:
    """The same through the library, which refuses it."""
    with suppress(DocmemError):
        return None, search(way.reader, way.chance.choice(WEIRD), "tea").hits
    return None, [way.injector.packet(way.chance.choice(WEIRD), "ana", "tea").text]


def goes_on_after_an_error(way: Way, tenant: str) -> tuple[str | None, Rows]:
    """The same connection after a statement, or the program, failed as this tenant."""
    connection = way.connection(*EVERYONE)
    with (
        suppress(psycopg.errors.DivisionByZero, ZeroDivisionError),
        db.tenant_transaction(connection, tenant) as cursor,
    ):
        cursor.execute(way.select())
        if way.chance.random() < 0.5:
            cursor.execute("SELECT 1 / 0")
        raise ZeroDivisionError
    return None, connection.execute(way.select()).fetchall()


def resets(way: Way, tenant: str) -> tuple[str | None, Rows]:
    """A connection that was reset while it served a tenant."""
    connection = way.connection(*EVERYONE)
    with db.tenant_transaction(connection, tenant) as cursor:
        cursor.execute("RESET ALL")
        rows = cursor.execute(way.select()).fetchall()
    return None, rows


def runs_several(way: Way, tenant: str) -> tuple[str | None, Rows]:
    """Several statements at once, and then one without a tenant."""
    connection = way.connection("reader")
    table = way.chance.choice(way.tables)
    many = db.run(connection, tenant, [(f"SELECT * FROM docmem.{table}", {})] * 2, seconds=_SECONDS)  # noqa: S608 of the catalogue
    if way.chance.random() < 0.5:
        return tenant, many
    return None, connection.execute(way.select()).fetchall()


def writes_for_another(way: Way, tenant: str) -> tuple[str | None, Rows]:
    """A copy of an own row as another's, or an own row given away: refused."""
    other = way.chance.choice([name for name in TENANTS if name != tenant])
    table = sql.Identifier(way.chance.choice(way.tables))
    statement = way.chance.choice([
        "INSERT INTO docmem.{0} SELECT (jsonb_populate_record(t, jsonb_build_object('tenant_id', %(other)s::text))).* "
        "FROM docmem.{0} AS t LIMIT 1 RETURNING *",
        "UPDATE docmem.{0} AS t SET tenant_id = %(other)s RETURNING t.*",
    ])  # fmt: skip
    with suppress(
        psycopg.errors.InsufficientPrivilege, psycopg.errors.ForeignKeyViolation, psycopg.errors.UniqueViolation
    ):
        connection = way.connection("sync", "owner", "reader")
        with db.tenant_transaction(connection, tenant) as cursor:
            rows = cursor.execute(sql.SQL(statement).format(table), {"other": other}).fetchall()
            if rows:  # it was taken
                return None, [*rows, *MARKS.values()]
    return tenant, []


def changes_anothers(way: Way, tenant: str) -> tuple[str | None, Rows]:
    """Another's rows updated, deleted or locked, as this tenant: there are none."""
    statement = way.chance.choice([
        "DELETE FROM docmem.{} AS t WHERE tenant_id = %(other)s RETURNING t.*",
        "UPDATE docmem.{} AS t SET tenant_id = tenant_id WHERE tenant_id = %(other)s RETURNING t.*",
        "SELECT t.* FROM docmem.{} AS t WHERE tenant_id = %(other)s FOR UPDATE",
    ])  # fmt: skip
    other = way.chance.choice([name for name in TENANTS if name != tenant])
    table = sql.Identifier(way.chance.choice(way.tables))
    with db.tenant_transaction(way.connection("sync", "owner"), tenant) as cursor:
        return tenant, cursor.execute(sql.SQL(statement).format(table), {"other": other}).fetchall()


def deletes_all(way: Way, tenant: str) -> tuple[str | None, Rows]:
    """A table emptied without a condition, as this tenant, and rolled back: its own rows at most."""
    rows: list[Any] = []
    connection = way.connection("sync", "owner")
    statement = sql.SQL("DELETE FROM docmem.{} AS t RETURNING t.*").format(
        sql.Identifier(way.chance.choice(way.tables))
    )
    with connection.transaction(force_rollback=True), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('app.current_tenant', %s, true)", [tenant])
        rows = cursor.execute(statement).fetchall()
    return tenant, rows


def embeds(way: Way, tenant: str) -> tuple[str | None, Rows]:
    """Vectors written by sync."""
    embed(way.connection("sync"), tenant, embedder=Bytes())
    return tenant, []


def syncs(way: Way, tenant: str) -> tuple[str | None, Rows]:
    """The whole tenant read again by sync."""
    done = sync_tenant(way.settings, tenant, rebuild=way.chance.random() < 0.5)
    return tenant, [done.as_json()]


TRIES: dict[Try, int] = {
    finds: 12, injects: 12, asks_by_key: 12, lists_jobs: 1, reads_all: 12, reads_anothers: 12, forgets_the_tenant: 12,
    is_nobody: 12, names_nobody: 6, goes_on_after_an_error: 12, resets: 4, runs_several: 12, writes_for_another: 12,
    changes_anothers: 12, deletes_all: 4, embeds: 4, syncs: 1,
}  # fmt: skip


@dataclass
class Report:
    """What came of it."""

    tries: Counter[str] = field(default_factory=Counter)
    own: Counter[str] = field(default_factory=Counter)
    foreign: list[str] = field(default_factory=list)
    misplaced: list[str] = field(default_factory=list)
    control: int = 0
    proxied: int = 0
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether nobody saw anybody else's rows, and it would have been noticed."""
        return not self.foreign and not self.misplaced and self.control > 0


def work(settings: Settings, report: Report, *, tries: int, seed: int, tables: Sequence[str], behind: bool) -> None:
    """One worker's tries."""
    chance = random.Random(seed)
    with ExitStack() as stack:
        connections = {role: stack.enter_context(closing(db.connect(settings, role))) for role in EVERYONE}
        reader = Reader(settings, timeout=_SECONDS, opening=_SECONDS)
        stack.callback(reader.close)
        injector = stack.enter_context(Injector(settings, embedder=Bytes(), timeout=_SECONDS, opening=_SECONDS))
        way = Way(settings, chance, tables, reader, injector, connections)
        for _ in range(tries):
            [attempt] = chance.choices(list(TRIES), weights=list(TRIES.values()))
            tenant = way.tenant()
            try:
                whose, rows = attempt(way, tenant)
            except (NotFound, psycopg.errors.InsufficientPrivilege, psycopg.errors.DeadlockDetected):
                whose, rows = tenant, []
            seen = foreign(whose, rows)
            report.own[attempt.__name__] += whose in foreign(None, rows)
            report.tries[attempt.__name__] += 1
            report.proxied += behind
            if seen:
                report.foreign.append(f"{attempt.__name__} as {whose}: {', '.join(seen)}")


def fuzz(settings: Settings, admin: str, *, tries: int, seed: int) -> Report:
    """Fill an index, try, and look at the rows afterwards. `admin`: a superuser's connection string."""
    fill(settings)
    started = time.monotonic()
    report = Report()
    with psycopg.connect(admin, autocommit=True, row_factory=dict_row) as connection:
        tables = [row["relname"] for row in connection.execute(CATALOGUE)]
        report.control = sum(bool(foreign("a", rows)) for _, rows in _everything(connection, tables))
        with ExitStack() as stack:
            ways = [(settings, False)]
            if program() is not None:
                ways.append((stack.enter_context(proxied(settings)), True))
            _at_once(ways, report, tries=tries, seed=seed, tables=tables)
        for table, rows in _everything(connection, tables):
            for row in rows:
                seen = foreign(row["tenant_id"], [row])
                report.misplaced += [f"{table} of {row['tenant_id']}: {', '.join(seen)}"] if seen else []
    report.seconds = time.monotonic() - started
    return report


CATALOGUE = """
SELECT relname::text FROM pg_class WHERE relnamespace = 'docmem'::regnamespace AND relkind = 'r' ORDER BY relname
"""


def _everything(connection: psycopg.Connection[Any], tables: Sequence[str]) -> Iterator[tuple[str, list[Any]]]:
    for table in tables:
        yield table, connection.execute(sql.SQL("SELECT * FROM docmem.{}").format(sql.Identifier(table))).fetchall()


def _at_once(
    ways: Sequence[tuple[Settings, bool]], report: Report, *, tries: int, seed: int, tables: Sequence[str]
) -> None:
    failures: list[BaseException] = []

    def run(number: int) -> None:
        settings, behind = ways[number % len(ways)]
        try:
            work(settings, report, tries=tries // WORKERS, seed=seed * 100 + number, tables=tables, behind=behind)
        except BaseException as error:  # noqa: BLE001 it belongs to whoever waits for the worker
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def main() -> int:
    """Fuzz on a server of its own, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="400 tries")
    parser.add_argument("--json", action="store_true", help="one JSON object last")
    options = parser.parse_args()
    logging.disable()  # refused tenants are logged, thousands of them
    root = Path(tempfile.mkdtemp(prefix="docmem-isolation-"))
    root.chmod(0o711)  # the server doesn't run as root
    settings = Settings(root=root, secret="isolation", embedding_model="none")
    try:
        server = postgres.start(settings)
        given = replace(settings, dsn=server.dsn("reader"), sync_dsn=server.dsn("sync"), owner_dsn=server.dsn("owner"))
        tries = 400 if options.quick else options.tries
        report = fuzz(given, server.dsn("admin"), tries=tries, seed=options.seed)
    finally:
        postgres.remove(settings)
        shutil.rmtree(root, ignore_errors=True)
    show(report, as_json=options.json)
    return 0 if report.ok else 1


def show(report: Report, *, as_json: bool) -> None:
    """Print a report."""
    for name, count in sorted(report.tries.items()):
        print(f"{name:<24}{count:>8}{report.own[name]:>8} saw their own")
    total = report.tries.total()
    behind = f"{report.proxied} through PgBouncer" if report.proxied else "PgBouncer is not installed"
    found = f"{len(report.foreign)} foreign, {len(report.misplaced)} misplaced, {report.own.total()} saw their own rows"
    print(f"{total} tries in {report.seconds:.0f} s ({behind}): {found}")
    for line in (*report.foreign[:20], *report.misplaced[:20]):
        print(f"  {line}")
    if as_json:
        counts = {"tries": total, "own": report.own.total(), "proxied": report.proxied, "control": report.control}
        print(
            json.dumps({**counts, "foreign": report.foreign, "misplaced": report.misplaced, "by": dict(report.tries)})
        )


if __name__ == "__main__":
    sys.exit(main())
