"""kill -9 of sync, of Postgres and of both at random times, while somebody commits and somebody reads.

    python evals/sync_kills.py [--quick] [--seed N] [--kills 200] [--json]

Each commit writes its number into every file of one person (profile, memories, a document beside them) and into some
others, and now and then adds, moves, deletes or spoils files, or takes the place of the last ones (a forced push). A
process syncs and embeds without a pause, now and then by building anew beside, and is killed, or the server is: its
postmaster or one of its backends. After each kill the server is started where it has to be, one more sync runs, and all
rows must be those that a sync into an empty index makes, and each text's vector its own. A reader reads all along, in
two calls: it must always see every row of the person, and all of one commit. Exits 1 where it isn't so.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import logging
import math
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import psycopg

from docmem import db, git, layout, names, postgres, repository
from docmem.config import Settings
from docmem.errors import DocmemError
from docmem.files import render_memory
from docmem.index import Index, Reader, Scope, recent
from docmem.model import Memory
from docmem.repository import Repository
from docmem_sync.drop import drop
from docmem_sync.migrate import migrate
from docmem_sync.sync import sync_tenant
from kill_matrix import child, ended
from tests.support.index import whole_index

TENANT = "killed"
ANA = names.subject_of_id(TENANT, "ana")
MEMORIES = 8
OTHERS = 120
WAYS = ("sync", "postmaster", "backend", "sync and postmaster")


def memory_of(number: int, text: str, *, who: str = "ana") -> Memory:
    """One with a fixed id and place."""
    subject = names.subject_of_id(TENANT, who)
    memory = f"{number + 1:016x}"
    path = f"{layout.subject_dir(subject)}/memories/{number}-{memory}.md"
    return Memory(id=memory, kind="fact", text=text, subject=subject, path=path)


@dataclass
class Writer:
    """Commits on and on, while it may."""

    settings: Settings
    chance: random.Random
    number: int = 0
    rewritten: int = 0
    strays: dict[str, bytes] = field(default_factory=dict)

    def commit(self) -> None:
        """One commit: the person as a whole, some of the others, and a stray file or two."""
        self.number += 1
        label = f"label: at {self.number}\n".encode()
        changed: dict[str, bytes | None] = {layout.profile_path(ANA): label, "knowledge/at.md": label}
        mine = [memory_of(number, f"Ana is at {self.number}.") for number in range(MEMORIES)]
        some = self.chance.sample(range(OTHERS), 60)
        rest = [memory_of(1000 + n, f"Other {n} of {self.number}.", who=f"other {n % 9}") for n in some]
        changed |= {each.path: render_memory(each) for each in (*mine, *rest)}
        changed |= self._stray()
        repo = repository.open(self.settings, TENANT)
        with repo.locked():
            if self.chance.random() < 0.2:
                self._take_back(repo)
            repo.commit(repo.head(), changed, message=f"Commit {self.number}\n", now=datetime.now(UTC))

    def _take_back(self, repo: Repository) -> None:
        """As a forced push does: the last commits are none of main any more."""
        head = repo.head()
        back = git.resolve(repo.git_dir, f"{head}~{self.chance.randint(1, 2)}")
        if back is not None:
            git.move_ref(repo.git_dir, git.MAIN, new=back, old=head)
            self.rewritten += 1

    def _stray(self) -> dict[str, bytes | None]:
        new = memory_of(5000 + self.chance.randrange(5), f"Stray {self.number}.", who="stray")
        changed: dict[str, bytes | None] = {new.path: self.chance.choice((render_memory(new), b"no head\n"))}
        if self.strays and self.chance.random() < 0.5:
            old = self.chance.choice(sorted(self.strays))
            changed |= {old: None, old.replace(".md", "-x.md"): self.strays[old]}
        for path, data in changed.items():
            if data is None:
                self.strays.pop(path, None)
            else:
                self.strays[path] = data
        return changed


@dataclass(eq=False)
class Watcher(threading.Thread):
    """Reads all along."""

    settings: Settings
    reads: int = 0
    away: int = 0
    mixed: list[str] = field(default_factory=list)
    enough: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    def run(self) -> None:
        """Read until it is enough."""
        reader = Reader(self.settings, timeout=2, opening=10)
        while not self.enough.is_set():
            try:
                seen = reader.read(TENANT, _look)
            except DocmemError:
                self.away += 1
                reader.reset()
                continue
            self.reads += 1
            if len(seen) != MEMORIES + 2 or len(set(seen)) != 1:
                self.mixed.append(f"read {self.reads}: {sorted(seen)}")
        reader.close()


def _look(index: Index) -> list[str]:
    """What each row of the person says it is at: the profile and the memories by one call, the document by another."""
    facts = {**Scope(ANA, None, (), {}).request(), **recent(["fact"], limit=100)}
    person, _ = index.read({"subject": ANA, "persona": True, "found": facts})
    document, _ = index.read({"paths": ["knowledge/at.md"], "chunks": 9})
    said = [person.profile["label"]] if person.profile else []
    said += [memory.text for memory in person.recent] + [row["text"] for row in document.documents]
    return [text.strip(" .\n").rpartition("at ")[2] for text in said]


class Hashed:
    """An embedder whose vectors tell the texts apart, and that takes a moment."""

    model = "hashed"
    dimension = 8

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        time.sleep(0.002)
        return [self.query(text) for text in texts]

    def query(self, text: str) -> list[float]:
        return [byte / 256 for byte in hashlib.sha256(text.encode()).digest()[: self.dimension]]


def sync_on(settings: Settings) -> None:
    """A process that syncs without a pause, for as long as its parent lives."""
    parent, chance = os.getppid(), random.Random(os.getpid())
    while os.getppid() == parent:
        with contextlib.suppress(DocmemError):
            anew = chance.random() < 0.3
            sync_tenant(settings, TENANT, confirm_deletes=True, rebuild=anew, embedder=Hashed())


def kill_server(settings: Settings, chance: random.Random, *, backend: bool) -> None:
    """kill -9 of the postmaster, or of one process below it."""
    server = postgres.running(settings)
    if server is None:
        return
    with contextlib.suppress(ProcessLookupError):
        below = list(_children(server.pid))
        os.kill(chance.choice(below) if backend and below else server.pid, signal.SIGKILL)


def _children(pid: int) -> Iterator[int]:
    for path in Path(f"/proc/{pid}/task/{pid}").glob("children"):
        yield from map(int, path.read_text().split())


@dataclass
class Run:
    """What was done and what went wrong."""

    kills: Counter[str] = field(default_factory=Counter)
    behind: int = 0
    """Kills that came before the last commit was served."""
    commits: int = 0
    rewritten: int = 0
    reads: int = 0
    away: int = 0
    wrong: list[str] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)
    seconds: float = 0.0


def started(settings: Settings) -> postgres.Server:
    """The server, however it was left: a crash may take it a moment to come back from."""
    deadline = time.monotonic() + 60
    while True:
        try:
            server = postgres.start(settings)
            with psycopg.connect(server.dsn("admin", database="postgres")) as connection:
                connection.execute("SELECT 1")
            return server
        except (DocmemError, psycopg.Error):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def one_kill(run: Run, settings: Settings, writer: Writer, chance: random.Random) -> None:
    """Commit, kill somewhere in between, sync again, compare."""
    way = chance.choice(WAYS)
    process = child(lambda: sync_on(settings))
    for _ in range(chance.randint(1, 3)):
        writer.commit()
        time.sleep(chance.random() * 0.12)
    time.sleep(chance.random() * 0.2)
    if way != "sync":
        kill_server(settings, chance, backend=way == "backend")
    if way == "backend":
        time.sleep(chance.random() * 0.3)
    os.killpg(process, signal.SIGKILL)
    ended(process)
    run.kills[way] += 1
    server = started(settings)
    head = repository.open(settings, TENANT).head()
    run.behind += whole_index(settings, tenant=TENANT)["sync_state"][0]["revision"] != head
    sync_tenant(settings, TENANT, confirm_deletes=True, embedder=Hashed())
    anew = database(settings, server, "anew")
    drop(anew, [TENANT])
    sync_tenant(anew, TENANT)
    brought, built = whole_index(settings, tenant=TENANT), whole_index(anew, tenant=TENANT)
    differing = [table for table in built if built[table] != brought[table]]
    if differing or built["sync_state"][0]["revision"] != head:
        run.wrong.append(f"kill {sum(run.kills.values())} ({way}): {', '.join(differing) or 'not at the head'}")
    if strange := strange_vectors(settings):
        run.wrong.append(f"kill {sum(run.kills.values())} ({way}): {strange} texts with a vector that isn't theirs")


VECTORS = """
    SELECT t.projection, v.embedding::text AS vector FROM (
        SELECT projection, id, NULL AS path, NULL AS chunk FROM docmem.memory
        UNION ALL SELECT projection, NULL, path, chunk FROM docmem.document
    ) AS t
    LEFT JOIN LATERAL (
        SELECT embedding FROM docmem.memory_vector WHERE id = t.id
        UNION ALL SELECT embedding FROM docmem.document_vector WHERE path = t.path AND chunk = t.chunk
    ) AS v ON true
"""


def strange_vectors(settings: Settings) -> int:
    """How many texts have none, or one of another text."""
    with db.session(settings, "sync") as session, db.tenant_transaction(session, TENANT) as cursor:
        rows = cursor.execute(VECTORS).fetchall()
    return sum(row["vector"] is None or not _is_of(row["projection"], json.loads(row["vector"])) for row in rows)


def _is_of(text: str, vector: Sequence[float]) -> bool:
    """A stored vector has half the digits, and perhaps another length."""
    mine = Hashed().query(text)
    along = sum(one * other for one, other in zip(mine, vector, strict=True))
    return along / (math.hypot(*mine) * math.hypot(*vector)) > 0.9999


def database(settings: Settings, server: postgres.Server, name: str) -> Settings:
    """The same root with an index of its own."""
    postgres.create_database(server, name)
    with psycopg.connect(server.dsn("owner", database=name), autocommit=True) as connection:
        migrate(connection)
    return replace(
        settings,
        dsn=server.dsn("reader", database=name),
        sync_dsn=server.dsn("sync", database=name),
        owner_dsn=server.dsn("owner", database=name),
    )


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3 kills")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--json", action="store_true", help="one JSON object last")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="docmem-kills-"))
    folder.chmod(0o711)
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)  # it says of each kill what it cost it
    settings = Settings(root=folder, secret="kills", embedding_model="none")
    chance = random.Random(options.seed)
    run, began = Run(), time.monotonic()
    try:
        started(settings)
        repository.create(settings, TENANT)
        writer = Writer(settings, chance)
        writer.commit()
        sync_tenant(settings, TENANT)
        watcher = Watcher(settings)
        watcher.start()
        for _ in range(3 if options.quick else options.kills):
            one_kill(run, settings, writer, chance)
        watcher.enough.set()
        watcher.join()
        run.rewritten = writer.rewritten
        run.commits, run.reads, run.away, run.mixed = writer.number, watcher.reads, watcher.away, watcher.mixed[:20]
    finally:
        git.close()
        postgres.remove(settings)
        shutil.rmtree(folder, ignore_errors=True)
    run.seconds = round(time.monotonic() - began, 1)
    _print(run, as_json=options.json)
    sys.exit(1 if run.wrong or run.mixed else 0)


def _print(run: Run, *, as_json: bool) -> None:
    print(
        f"{sum(run.kills.values())} kills ({', '.join(f'{way} {count}' for way, count in run.kills.items())}), "
        f"{run.behind} of them before the last commit was served; {run.commits} commits, main moved back "
        f"{run.rewritten} times: {len(run.wrong)} wrong"
    )
    print(
        f"{run.reads} reads, {run.away} while the server was away: {len(run.mixed)} mixed or empty  ({run.seconds} s)"
    )
    for line in (*run.wrong, *run.mixed):
        print(line)
    if as_json:
        print(json.dumps(run.__dict__))


if __name__ == "__main__":
    main()
