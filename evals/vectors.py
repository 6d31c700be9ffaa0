"""Vector search under row-level security, on real embeddings: k rows where k exist, and the right ones.

    python evals/vectors.py --locomo DIR [--cache FILE] [--quick] [--json]

LoCoMo's sentences, dated turns and observations (10,950 texts), embedded with `local` and kept in `--cache`, are the
memories of one large tenant, which so gets an index by rule; portions of 20 to 200 of them are those of 25 small ones.
LoCoMo's questions are asked of each through the reader's own statement, and the 8 nearest compared with those that an
exact search gives. `subject` rows: the large tenant's questions about one of its people, who has 30 memories. Exits 1
where fewer than k rows come back where there are k, or recall@8 is below .98.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from docmem import db, postgres
from docmem.config import Settings
from docmem.embedding import BATCH, LocalEmbedder, set_name
from docmem.index import Index, Reader, Scope, near, nearest, nearing
from docmem.model import KINDS
from docmem_evals.conversations import load
from docmem_sync import hot
from docmem_sync.migrate import migrate

LARGE, K, BOUND = "large", 8, 0.98
PEOPLE = 30
"""Memories of one of the large tenant's people."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_DIMENSION = LocalEmbedder.dimension
FILL = """
INSERT INTO docmem.memory (tenant_id, id, path, blob, revision, subject, kind, text, importance, turns, supersedes,
                           meta, projection, projection_hash, tsv, created_at, updated_at)
SELECT %(tenant)s, r.id, r.id, 'b', 'r', r.subject, 'fact', 'x', 5, '{}', '{}', '{}', 'x', r.id, '', now(), now()
FROM unnest(%(ids)s::text[], %(subjects)s::text[]) AS r (id, subject)
"""
VECTORS = """
INSERT INTO docmem.memory_vector (tenant_id, id, set, projection_hash, embedding)
SELECT %(tenant)s, r.id, %(set)s, r.id, r.vector::halfvec
FROM unnest(%(ids)s::text[], %(vectors)s::text[]) AS r (id, vector)
"""
SET = """
INSERT INTO docmem.vector_set (tenant_id, set, serves, indexed, used_at)
VALUES (%(tenant)s, %(set)s, true, false, now())
"""
EXACT = """
SELECT m.id FROM docmem.memory AS m JOIN docmem.memory_vector AS v ON v.tenant_id = m.tenant_id AND v.id = m.id
WHERE m.tenant_id = %(tenant)s AND (%(subject)s::text IS NULL OR m.subject = %(subject)s)
ORDER BY v.embedding <=> %(vector)s::halfvec, m.id LIMIT %(k)s
"""


SCANS = "SELECT idx_scan AS scans FROM pg_stat_user_indexes WHERE indexrelname = %(name)s"


def texts(folder: Path) -> tuple[list[str], list[str]]:
    """LoCoMo's sentences, dated turns and observations, and its questions, each once."""
    found: list[str] = []
    asked: list[str] = []
    for conversation in load(folder):
        turns = [turn for session in conversation.sessions for turn in session.turns]
        found += [part for turn in turns for part in _SENTENCE.split(turn.text) if len(part) > 15]
        found += conversation.texts().values()
        found += [fact.text for session in conversation.sessions for fact in session.observations]
        asked += [query.text for query in conversation.queries]
    return list(dict.fromkeys(found)), list(dict.fromkeys(asked))


def embedded(said: Sequence[str], asked: Sequence[str], cache: Path) -> list[array[float]]:
    """Vectors of the texts and then of the questions; what is in the cache already isn't made again."""
    numbers = array("f")
    if cache.exists():
        numbers.frombytes(cache.read_bytes())
    model = LocalEmbedder()
    done = len(numbers) // _DIMENSION
    for at in range(done, len(said), BATCH):
        for vector in model.passages(said[at : at + BATCH]):
            numbers.extend(vector)
        cache.write_bytes(numbers.tobytes())
    for text in asked[max(0, len(numbers) // _DIMENSION - len(said)) :]:
        numbers.extend(model.query(text))
    cache.write_bytes(numbers.tobytes())
    return [numbers[at : at + _DIMENSION] for at in range(0, len(numbers), _DIMENSION)]


def put(settings: Settings, tenant: str, vectors: Sequence[array[float]], name: str) -> None:
    """Make these the memories of a tenant, `PEOPLE` a person."""
    ids = [f"{number:016x}" for number in range(len(vectors))]
    values = {"tenant": tenant, "ids": ids, "set": name, "vectors": [json.dumps(list(vector)) for vector in vectors]}
    subjects = [f"s{number // PEOPLE}" for number in range(len(vectors))]
    with closing(db.connect(settings, "sync")) as connection, db.tenant_transaction(connection, tenant) as cursor:
        cursor.execute(FILL, {**values, "subjects": subjects})
        cursor.execute(VECTORS, values)
        cursor.execute(SET, values)


@dataclass
class Found:
    """What came of one kind of questions."""

    name: str
    asked: int = 0
    short: int = 0
    right: float = 0.0
    seconds: list[float] = field(default_factory=list)

    @property
    def recall(self) -> float:
        """Of the k nearest, the share that was found."""
        return self.right / self.asked

    @property
    def ok(self) -> bool:
        """Whether all came back, and nearly all of the right ones."""
        return self.short == 0 and self.recall >= BOUND

    def as_json(self) -> dict[str, Any]:
        """A row."""
        p50 = sorted(self.seconds)[len(self.seconds) // 2] * 1000
        return {"name": self.name, "asked": self.asked, "short": self.short, "recall@8": self.recall, "p50_ms": p50}


@dataclass(frozen=True)
class Asker:
    """Asks both ways."""

    reader: Reader
    exact: psycopg.Connection[Any]
    name: str

    def ask(self, found: Found, tenant: str, vector: Sequence[float], *, size: int, subject: str | None = None) -> None:
        """One question of one tenant."""
        scope = Scope(subject, None, KINDS, dict.fromkeys(KINDS))

        def ask(index: Index) -> list[str]:
            started = time.perf_counter()
            if subject is None:
                asks = nearest(scope, (), vector, set=self.name, limit=K)
                matches, _ = near(asks, index.run(*asks))
            else:
                wanted = scope.request() | nearing(vector, set=self.name, floor=-1.0, limit=K)
                matches = list(index.read({"found": wanted})[0].near)
            found.seconds.append(time.perf_counter() - started)
            return [match.memory.id for match in matches]

        got = self.reader.read(tenant, ask)
        values = {"tenant": tenant, "subject": subject, "vector": json.dumps(list(vector)), "k": K}
        wanted = {row["id"] for row in self._exactly(tenant, values)}
        found.asked += 1
        found.short += len(got) < min(K, size)
        found.right += len(wanted.intersection(got)) / len(wanted)

    def _exactly(self, tenant: str, values: dict[str, Any]) -> list[Any]:
        # Without the cast of the index's expression no approximate index fits.
        with db.tenant_transaction(self.exact, tenant) as cursor:
            return cursor.execute(EXACT, values).fetchall()


def measure(settings: Settings, vectors: Sequence[array[float]], questions: Sequence[array[float]]) -> Iterator[Found]:
    """Ask the large tenant, one of its people at a time, and the small ones."""
    name, chance = set_name(LocalEmbedder()), random.Random(1)
    put(settings, LARGE, vectors, name)
    sizes = {f"small-{number}": chance.randint(20, 200) for number in range(25)}
    for tenant, size in sizes.items():
        put(settings, tenant, chance.sample(vectors, size), name)
    with db.session(settings, "owner") as owner:
        owner.execute("ANALYZE docmem.memory, docmem.memory_vector")
    with db.session(settings, "sync") as connection:
        started = time.perf_counter()
        hot.settle(settings, connection, LARGE)
        print(f"index over {len(vectors)} vectors made in {time.perf_counter() - started:.1f} s", file=sys.stderr)
    reader = Reader(settings, timeout=10, opening=30)
    with closing(reader), closing(db.connect(settings, "reader")) as exact:
        asker = Asker(reader, exact, name)
        large, person, small = Found("large"), Found("subject"), Found("small")
        for vector in questions:
            asker.ask(large, LARGE, vector, size=len(vectors))
            subject = f"s{chance.randrange(len(vectors) // PEOPLE)}"
            asker.ask(person, LARGE, vector, size=PEOPLE, subject=subject)
            tenant = chance.choice(sorted(sizes))
            asker.ask(small, tenant, vector, size=sizes[tenant])
        yield from (large, person, small)
    with db.session(settings, "owner") as owner:
        row = owner.execute(SCANS, {"name": hot.index_name(LARGE, name)}).fetchone()
    print(f"searches through the index: {row['scans'] if row else 0}", file=sys.stderr)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--locomo", type=Path, required=True)
    parser.add_argument("--cache", type=Path, help="where vectors are kept; making them takes minutes")
    parser.add_argument("--quick", action="store_true", help="300 texts, and an index from 100 on")
    parser.add_argument("--json", action="store_true", help="one JSON object last")
    options = parser.parse_args()
    said, asked = texts(options.locomo)
    if options.quick:
        said, asked, hot.HOT = said[:300], asked[:20], 100
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)  # the server doesn't run as root
        vectors = embedded(said, asked, options.cache or Path(name) / "vectors")
        settings = Settings(root=Path(name))
        try:
            postgres.start(settings)
            with db.session(settings, "owner") as owner:
                migrate(owner)
            found = list(measure(settings, vectors[: len(said)], vectors[len(said) :]))
        finally:
            postgres.remove(settings)
    rows = [one.as_json() for one in found]
    for row in rows:
        right = f"short {row['short']}  recall@8 {row['recall@8']:.4f}"
        print(f"{row['name']:<8} asked {row['asked']:>5}  {right}  p50 {row['p50_ms']:.2f} ms")
    if options.json:
        print(json.dumps({"texts": len(said), "rows": rows}))
    return 0 if all(one.ok for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
