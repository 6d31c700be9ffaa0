"""Commit to prompt and revert to prompt: from before the commit to the first packet with the memory, and without it.

    python evals/bench/freshness.py [--quick] [--json]

`docmem sync --watch` runs as a process of its own; the packets come out of a cache that is asked the same thing without
pause, so a change has to be heard to be seen. The clock starts before git is asked to write the commit, so that no part
of the way is left out; a revert is `docmem revert` of the commit (its plan, the commit, the poke). Bound: p95 500 ms.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from docmem import files, layout, names, postgres, repository, revert
from docmem.config import Settings
from docmem.git import Author
from docmem.inject import Injector
from docmem.model import Memory, Source
from docmem_sync.sync import sync_tenant
from report import Bench, arguments

TENANT = "acme"
BOUND_MS = 500.0
_OTHERS = 200
_EARLY = 9_999


def memory(number: int, subject: str) -> Memory:
    """The memory number so many of a subject."""
    memory_id = f"{number:016x}"
    text = f"Booked the night train number {number} to Porto."
    return Memory(
        id=memory_id,
        kind="fact",
        text=text,
        subject=subject,
        path=layout.memory_path(subject, memory_id, text),
        valid_from=datetime.now(UTC),
        source=Source(thread="t", turns=("t1",), quote="Porto"),
    )


def commit(settings: Settings, changed: dict[str, bytes | None]) -> str:
    """Commit as the engine does; the new head."""
    repo = repository.open(settings, TENANT)
    with repo.locked():
        head = repo.commit(repo.head(), changed, message="change", now=datetime.now(UTC))
    repo.poke()
    return head


def take_back(settings: Settings, revision: str) -> None:
    """`docmem revert`, and its poke."""
    repo = repository.open(settings, TENANT)
    revert.apply(repo, revision, now=datetime.now(UTC), author=Author("bench", "bench@localhost"))
    repo.poke()


@contextmanager
def watching(settings: Settings) -> Iterator[None]:
    """`docmem sync --watch` in a process of its own."""
    environment = os.environ | {"DOCMEM_ROOT": str(settings.root), "DOCMEM_EMBEDDING_MODEL": "none"}
    process = subprocess.Popen(
        [sys.executable, "-m", "docmem", "sync", "--watch"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)


def until(condition: Callable[[], bool], *, since: float | None = None, seconds: float = 60.0) -> float:
    """Seconds since `since` (a `perf_counter`; None: now) until it holds, asked every millisecond."""
    started = time.perf_counter() if since is None else since
    while not condition():
        if time.perf_counter() - started > seconds:
            raise TimeoutError(f"not within {seconds} s")
        time.sleep(0.001)
    return time.perf_counter() - started


def measure(settings: Settings, times: int) -> tuple[list[float], list[float]]:
    """Seconds to be seen, and to be gone, of so many memories."""
    subject = names.subject_of_id(TENANT, "ana")
    repository.create(settings, TENANT)
    others = (memory(10_000 + number, names.subject_of_id(TENANT, f"s{number % 20}")) for number in range(_OTHERS))
    commit(settings, {one.path: files.render_memory(one) for one in others})
    sync_tenant(settings, TENANT)
    seen, gone = [], []
    with watching(settings), Injector(settings, timeout=5.0, opening=30.0, files=False) as injector:

        def text() -> str:
            return injector.packet(TENANT, subject).text

        text()
        until(lambda: injector.hears)
        early = memory(_EARLY, subject)  # the watch runs once it has brought something
        commit(settings, {early.path: files.render_memory(early)})
        until(lambda: early.text in text())
        for number in range(times):
            one = memory(number, subject)
            until(lambda: injector.packet(TENANT, subject).cached)
            started = time.perf_counter()
            head = commit(settings, {one.path: files.render_memory(one)})
            seen.append(until(lambda one=one: one.text in text(), since=started))  # type: ignore[misc]
            until(lambda: injector.packet(TENANT, subject).cached)
            started = time.perf_counter()
            take_back(settings, head)
            gone.append(until(lambda one=one: one.text not in text(), since=started))  # type: ignore[misc]
    return seen, gone


def main() -> int:
    """Run it; 1 where a p95 is over its bound."""
    given = arguments("Commit to prompt, and revert to prompt.")
    bench = Bench("freshness", given.quick)
    with tempfile.TemporaryDirectory(prefix="docmem-freshness-") as folder:
        root = Path(folder)
        root.chmod(0o755)  # run by root, Postgres gets a user of its own, which has to reach its data
        settings = Settings(root=root, embedding_model="none")
        try:
            seen, gone = measure(settings, 10 if given.quick else 200)
        finally:
            postgres.remove(settings)
    rows = [bench.row("commit to prompt", len(seen), seen), bench.row("revert to prompt", len(gone), gone)]
    bench.finish(as_json=given.json)
    return 1 if any(row["p95_ms"] > BOUND_MS for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
