"""How soon a commit is served while a thousand tenants are watched.

    python evals/bench/watch.py [--quick] [--json]

`docmem sync --watch` runs in a process of its own over 1,000 tenants. Commits come in turn, each to a tenant chosen by
a seed, at random moments (so that some fall into a pass over all tenants). A time counts from before the commit until a
reader that asks every 5 ms sees the new row. Rows: `poked` (the engine's own commit), `pushed` (git alone moves the
branch, without a hook: the stat pass sees it). Asked of `poked`: p95 at most 300 ms.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from docmem import db, files, git, layout, names, postgres, repository
from docmem.config import Settings
from docmem.model import Memory
from docmem_sync.sync import sync_all
from report import Bench, arguments

NOW = datetime(2026, 5, 3, tzinfo=UTC)
_COUNT = "SELECT count(*) AS n FROM docmem.memory WHERE tenant_id = %(tenant)s AND id = %(id)s"


def commit(settings: Settings, tenant: str, number: int, *, poke: bool) -> str:
    """One new memory; its id."""
    subject, memory = names.subject_of_id(tenant, "ana"), f"{number:016x}"
    text = f"The traveller asked for item {number}."
    made = Memory(memory, "fact", text, subject, layout.memory_path(subject, memory, text))
    repo = repository.open(settings, tenant)
    with repo.locked():
        changed: dict[str, bytes | None] = {made.path: files.render_memory(made)}
        if poke:
            repo.commit(repo.head(), changed, message="bench", now=NOW)
        else:
            git.commit(repo.git_dir, base=repo.head(), files=changed, message="bench", when=NOW)
    return memory


def until_served(settings: Settings, tenant: str, work: Callable[[], str]) -> float:
    """Seconds from before `work` until its memory can be read."""
    with closing(db.connect(settings, "reader")) as connection:
        started = time.perf_counter()
        memory = work()
        while time.perf_counter() - started < 60:
            with db.tenant_transaction(connection, tenant) as cursor:
                row = cursor.execute(_COUNT, {"tenant": tenant, "id": memory}).fetchone()
            if row and row["n"]:
                return time.perf_counter() - started
            time.sleep(0.005)
    raise RuntimeError(f"{tenant} isn't served within a minute")


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__ or "")
    bench = Bench("watch", options.quick)
    count, rounds = (20, 10) if options.quick else (1_000, 200)
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)  # the server doesn't run as root
        settings = Settings(root=Path(name), secret="bench", embedding_model="none")
        tenants = [f"t-{number}" for number in range(count)]
        for tenant in tenants:
            repository.create(settings, tenant)
        sync_all(settings, tenants)
        environment = {**os.environ, "DOCMEM_ROOT": name, "DOCMEM_EMBEDDING_MODEL": "none"}
        command = [sys.executable, "-m", "docmem", "sync", "--watch"]
        watch = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        try:
            until_served(settings, tenants[0], lambda: commit(settings, tenants[0], 10**9, poke=True))
            number = 0
            for row, poke, times in (("poked", True, rounds), ("pushed", False, max(5, rounds // 5))):
                found = []
                for _ in range(times):
                    tenant, number = chance.choice(tenants), number + 1
                    time.sleep(chance.random() * 0.5)
                    found.append(
                        until_served(settings, tenant, lambda: commit(settings, tenant, number, poke=poke))  # noqa: B023 it is called within the round
                    )
                bench.row(row, count, found)
        finally:
            watch.send_signal(signal.SIGTERM)
            watch.wait(30)
            postgres.remove(settings)
    bench.ratios = {"poked_p95_ms": bench.rows[0]["p95_ms"]}
    bench.finish(as_json=options.json)


if __name__ == "__main__":
    main()
