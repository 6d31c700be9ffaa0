"""Text search under row-level security: what the planner may use, and what each way around costs.

    python evals/bench/textsearch.py [--quick] [--json]

200,000 memories of 2,000 tenants, one with 50,000, of made-up words whose frequencies fall as those of a language. A
question is three words, OR-ed, ranked, the best 30: rare ones and common ones to the large tenant, any to a small one.
Ways: row-level security alone; a partial GIN index for the large tenant; `@@` LEAKPROOF, without an index and with
gin(tenant_id, tsv); a SECURITY DEFINER function of a role that row-level security doesn't bind, which checks the tenant
itself. `upserts` rows: 100 changed texts in one transaction. Ratio `hot_rare`, `hot_common`: row-level security alone /
LEAKPROOF with its index.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from docmem import db, postgres
from docmem.config import Settings
from docmem_sync import leakproof
from docmem_sync.migrate import migrate
from report import Bench, arguments, timed

HOT = "hot"
SMALL = "t-7"
VOCABULARY = 20_000
FILL = """
INSERT INTO docmem.memory (tenant_id, id, path, blob, revision, subject, kind, text, importance, turns, supersedes,
                           meta, projection, projection_hash, tsv, created_at, updated_at)
SELECT tenant, md5(tenant || n), 'p/' || n, 'b', 'r', 's' || n %% greatest(1, size / 20), 'fact', said, 5, '{}', '{}',
       '{}', said, md5(said), to_tsvector('simple', said), now(), now()
FROM (
    SELECT tenant, size, n, (
        SELECT string_agg('w' || ceil(power(%(vocabulary)s, random())), ' ') FROM generate_series(1, 15 + 0 * n) AS word
    ) AS said
    FROM unnest(%(tenants)s::text[], %(sizes)s::int[]) AS t (tenant, size), generate_series(1, size) AS n
) AS made
"""
SEARCH = """
SELECT id, ts_rank(tsv, %(query)s::tsquery) AS strength FROM docmem.memory
WHERE tenant_id = %(tenant)s AND tsv @@ %(query)s::tsquery
ORDER BY strength DESC, id LIMIT 30
"""
CHANGE = """
UPDATE docmem.memory SET tsv = to_tsvector('simple', projection || ' ' || %(word)s)
WHERE tenant_id = %(tenant)s AND id IN (SELECT id FROM docmem.memory WHERE tenant_id = %(tenant)s ORDER BY id LIMIT 100)
"""
PARTIAL = "CREATE INDEX hot_words ON docmem.memory USING gin (tsv) WHERE tenant_id = 'hot'"
DEFINER = """
CREATE FUNCTION docmem.search_words(wanted text, query tsquery) RETURNS TABLE (id text, strength real)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = '' SET plan_cache_mode = force_custom_plan
BEGIN ATOMIC
    SELECT m.id, ts_rank(m.tsv, query) FROM docmem.memory AS m
    WHERE m.tenant_id = wanted AND wanted = current_setting('app.current_tenant', true) AND m.tsv @@ query
    ORDER BY 2 DESC, 1 LIMIT 30;
END
"""
CALL = "SELECT id, strength FROM docmem.search_words(%(tenant)s, %(query)s::tsquery)"


def questions(words: range, seed: int) -> Iterator[str]:
    """Three different words each, for ever."""
    chance = random.Random(seed)
    while True:
        yield " | ".join(f"w{word}" for word in chance.sample(words, 3))


def asker(connection: psycopg.Connection[Any], tenant: str, words: range, statement: str) -> Callable[[], object]:
    """Asks the next question."""
    asked = questions(words, 1)

    def ask() -> object:
        with db.tenant_transaction(connection, tenant) as cursor:
            return cursor.execute(statement, {"tenant": tenant, "query": next(asked)}).fetchall()

    return ask


def change(connection: psycopg.Connection[Any], tenant: str) -> None:
    """Change 100 texts in one transaction."""
    with db.tenant_transaction(connection, tenant) as cursor:
        cursor.execute(CHANGE, {"tenant": tenant, "word": "again"})


def measure(bench: Bench, settings: Settings, way: str, *, statement: str = SEARCH) -> None:
    """The rows of one way."""
    rounds = 10 if bench.quick else 100
    rare, common = range(VOCABULARY // 20, VOCABULARY), range(20, 200)
    with closing(db.connect(settings, "reader")) as reader:
        for name, tenant, words in (("hot, rare", HOT, rare), ("hot, common", HOT, common), ("small", SMALL, common)):
            ask = asker(reader, tenant, words, statement)
            timed(ask, 5)
            bench.row(f"{way}: {name}", rounds, timed(ask, rounds))
    with closing(db.connect(settings, "sync")) as writer:
        bench.row(f"{way}: upserts", 100, timed(partial(change, writer, HOT), max(3, rounds // 10)))


def filled(settings: Settings, *, tenants: int, hot: int, small: int) -> psycopg.Connection[Any]:
    """An index with rows, and a connection as its superuser."""
    server = postgres.start(settings)
    with db.session(settings, "owner") as owner:
        migrate(owner)
    admin = psycopg.connect(server.dsn("admin"), autocommit=True, prepare_threshold=None)
    sizes = {HOT: hot} | {f"t-{number}": small for number in range(tenants - 1)}
    admin.execute(FILL, {"tenants": list(sizes), "sizes": list(sizes.values()), "vocabulary": VOCABULARY})
    admin.execute("VACUUM ANALYZE docmem.memory")
    return admin


def run(admin: psycopg.Connection[Any], statements: Sequence[str]) -> None:
    """Run statements one by one, and look at the rows again."""
    for statement in statements:
        admin.execute(statement)
    admin.execute("VACUUM ANALYZE docmem.memory")


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__ or "")
    bench = Bench("textsearch", options.quick)
    sizes = (
        {"tenants": 50, "hot": 2_000, "small": 40} if options.quick else {"tenants": 2_000, "hot": 50_000, "small": 75}
    )
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)  # the server doesn't run as root
        settings = Settings(root=Path(name))
        try:
            with closing(filled(settings, **sizes)) as admin:
                every_way(bench, settings, admin)
        finally:
            postgres.remove(settings)
    times = {row["name"]: row["p50_ms"] for row in bench.rows}
    bench.ratios = {
        f"hot_{kind}": times[f"row-level security: hot, {kind}"] / times[f"LEAKPROOF, gin: hot, {kind}"]
        for kind in ("rare", "common")
    }
    bench.finish(as_json=options.json)


def every_way(bench: Bench, settings: Settings, admin: psycopg.Connection[Any]) -> None:
    """One way after the other; what one needs is taken away before the next."""
    measure(bench, settings, "row-level security")
    run(admin, [PARTIAL])
    measure(bench, settings, "partial gin")
    run(admin, ["DROP INDEX docmem.hot_words"])
    on = leakproof.statements("on")
    run(admin, on[:1])
    measure(bench, settings, "LEAKPROOF")
    run(admin, on[1:])
    measure(bench, settings, "LEAKPROOF, gin")
    run(admin, leakproof.statements("off")[-1:])
    run(admin, [DEFINER])
    measure(bench, settings, "definer function, gin", statement=CALL)


if __name__ == "__main__":
    main()
