"""Two thousand tenants on one machine: a pass in which nothing changed, and one tenant's backlog of vectors.

    python evals/tenants.py [--quick] [--json]

2,000 tenants, one with 50,000 memories, 200,000 rows in all. `pass`: `docmem sync` over all of them when no branch has
moved, in one process (asked: under 10 s). `backlog`: the large tenant's 50,000 texts wait for vectors of a model that
takes 50 ms for 64 texts, `docmem sync --watch` runs over all tenants, and small tenants commit one memory after the
other; a time counts from before the commit until it has its vector (asked: under 5 s at p95, with the large one's
backlog still there at the end). Exits 1 where either isn't so.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import psycopg

from docmem import db, files, layout, names, postgres, repository
from docmem.config import Settings
from docmem.embedding import set_name
from docmem.model import Memory
from docmem_sync.sync import sync_all
from docmem_sync.watch import watch

LARGE = "large"
NOW = datetime(2026, 5, 3, tzinfo=UTC)
PASS_SECONDS, VECTOR_SECONDS = 10.0, 5.0
FILL = """
INSERT INTO docmem.memory (tenant_id, id, path, blob, revision, subject, kind, text, importance, turns, supersedes,
                           meta, projection, projection_hash, tsv, created_at, updated_at)
SELECT tenant, md5(tenant || n), 'p/' || n, 'b', 'r', 's' || n / 20, 'fact', said, 5, '{}', '{}', '{}', said, md5(said),
       to_tsvector('simple', said), now(), now()
FROM (
    SELECT tenant, n, 'The traveller ' || n || ' of ' || tenant || ' likes the view.' AS said
    FROM unnest(%(tenants)s::text[], %(sizes)s::int[]) AS t (tenant, size), generate_series(1, size) AS n
) AS made
"""
EMBEDDED = """
INSERT INTO docmem.vector_set (tenant_id, set, serves, indexed, revision, used_at)
SELECT tenant_id, %(set)s, true, false, revision, now() FROM docmem.sync_state WHERE tenant_id <> %(large)s
"""
HAS_VECTOR = "SELECT count(*) AS n FROM docmem.memory_vector WHERE tenant_id = %(tenant)s AND id = %(id)s"
VECTORS = "SELECT count(*) AS n FROM docmem.memory_vector WHERE tenant_id = %(tenant)s"


class Provider:
    """A model that takes its time, as one over a network does."""

    model, dimension = "provider", 16

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        """A text's hash as a vector, after 50 ms."""
        time.sleep(0.05)
        return [[1.0 + byte for byte in sha256(text.encode()).digest()[:16]] for text in texts]

    def query(self, text: str) -> list[float]:
        """Vector of a question."""
        return self.passages([text])[0]


@dataclass
class Report:
    """What was measured, in seconds."""

    tenants: int
    rows: int
    first_sync: float = 0.0
    passes: tuple[float, ...] = ()
    until_vector: tuple[float, ...] = ()
    left_behind: int = 0

    @property
    def p95(self) -> float:
        """Of a small tenant's new text, until it has its vector."""
        ordered = sorted(self.until_vector)
        return ordered[min(int(len(ordered) * 0.95), len(ordered) - 1)]

    @property
    def ok(self) -> bool:
        """Whether all of it is as asked."""
        return min(self.passes) < PASS_SECONDS and self.p95 < VECTOR_SECONDS and self.left_behind > 0


def made(settings: Settings, count: int) -> list[str]:
    """So many tenants, each a copy of one that the template laid down."""
    first = repository.create(settings, LARGE).git_dir
    tenants = [LARGE, *(f"t-{number}" for number in range(count - 1))]
    for tenant in tenants[1:]:
        shutil.copytree(first, settings.tenants / f"{tenant}.git")
    return tenants


def fill(settings: Settings, tenants: Sequence[str], *, large: int, small: int) -> None:
    """Rows as if each tenant had so many memories; all but the large one's have vectors already."""
    sizes = [large if tenant == LARGE else small for tenant in tenants]
    with psycopg.connect(postgres.start(settings).dsn("admin"), autocommit=True) as admin:
        admin.execute(FILL, {"tenants": list(tenants), "sizes": sizes})
        admin.execute(EMBEDDED, {"set": set_name(Provider()), "large": LARGE})
        admin.execute("VACUUM ANALYZE")


def counted(settings: Settings, query: str, tenant: str, **values: str) -> int:
    """A count, as this tenant."""
    with closing(db.connect(settings, "reader")) as connection, db.tenant_transaction(connection, tenant) as cursor:
        row = cursor.execute(query, {"tenant": tenant, **values}).fetchone()
    return int(row["n"]) if row else 0


def until_vector(settings: Settings, tenant: str, number: int) -> float:
    """Commit a memory, and wait until it has its vector."""
    subject, memory = names.subject_of_id(tenant, "ana"), f"{number:016x}"
    text = f"The traveller asked for item {number}."
    one = Memory(memory, "fact", text, subject, layout.memory_path(subject, memory, text))
    repo = repository.open(settings, tenant)
    started = time.perf_counter()
    with repo.locked():
        repo.commit(repo.head(), {one.path: files.render_memory(one)}, message="one more", now=NOW)
    while not counted(settings, HAS_VECTOR, tenant, id=memory):
        if time.perf_counter() - started > 120:
            raise RuntimeError(f"{tenant} has no vector within two minutes")
        time.sleep(0.02)
    return time.perf_counter() - started


def backlog(settings: Settings, tenants: Sequence[str], rounds: int) -> tuple[float, ...]:
    """Seconds until a vector is there, of small tenants' commits while the large one's texts wait."""
    stop, chance = threading.Event(), random.Random(1)
    thread = threading.Thread(
        target=lambda: watch(settings, report=lambda done: None, embedder=Provider(), stop=stop), daemon=True
    )
    thread.start()
    try:
        return tuple(until_vector(settings, chance.choice(tenants[1:]), number) for number in range(rounds))
    finally:
        stop.set()
        thread.join(60)


def measure(settings: Settings, *, quick: bool) -> Report:
    """All of it."""
    count, large, small, rounds = (30, 5_000, 10, 5) if quick else (2_000, 50_000, 75, 20)
    report = Report(count, large + small * (count - 1))
    tenants = made(settings, count)
    started = time.perf_counter()
    sync_all(settings, tenants)
    report.first_sync = time.perf_counter() - started
    fill(settings, tenants, large=large, small=small)
    passes = []
    for _ in range(3):
        started = time.perf_counter()
        done = sync_all(settings, tenants)
        passes.append(time.perf_counter() - started)
        assert all(one.outcome == "unchanged" for one in done)
    report.passes = tuple(passes)
    report.until_vector = backlog(settings, tenants, rounds)
    report.left_behind = large - counted(settings, VECTORS, LARGE)
    return report


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="30 tenants, 5,000 memories")
    parser.add_argument("--json", action="store_true", help="one JSON object last")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)  # the server doesn't run as root
        settings = Settings(root=Path(name), secret="tenants", embedding_model="none")
        try:
            report = measure(settings, quick=options.quick)
        finally:
            postgres.remove(settings)
    print(f"{report.tenants} tenants, {report.rows} rows; first sync of the empty ones {report.first_sync:.1f} s")
    print(
        f"pass without a change: {min(report.passes):.2f} s ({min(report.passes) / report.tenants * 1000:.2f} ms each)"
    )
    print(f"a small tenant's vector: p95 {report.p95:.2f} s; {report.left_behind} texts of the large one still wait")
    if options.json:
        print(json.dumps({**asdict(report), "p95": report.p95, "ok": report.ok}))
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
