"""What looking into the past costs in a tenant of 10,000 commits, each of which made a memory.

    python evals/bench/history.py [--quick] [--json]

Rows, with the commit-graph that `docmem maintain` writes: `why` and `log` of one memory, `revert` of one memory (the
plan, the commit and the move of main), `at` (the revision of a time). Then, on a copy that is served from Postgres:
`erase` of one subject that 46 commits are about, up to and including its verification, once; `found` is what that
search finds, `touched` how many rows the next sync writes or deletes. Ratios: `why_graph` and `log_graph` = without
the graph / with it.
"""

from __future__ import annotations

import itertools
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from docmem import files, git, history, layout, names, postgres, repository, revert
from docmem.config import Settings
from docmem.erasure import Target
from docmem.git import Author
from docmem.model import Memory, Source
from docmem.repository import Repository
from docmem_sync import erase, sync
from report import Bench, arguments, timed

Work = Callable[[], object]

START = datetime(2026, 1, 1, tzinfo=UTC)
WHO = Author("bench", "bench@localhost")
SUBJECT_COMMITS = 46
PEOPLE = 1_000


def memory_of(number: int, said: int = 0) -> Memory:
    """The memory with this number."""
    subject = names.subject_of_id("big", f"person {number % PEOPLE}")
    memory = f"{number * 2654435761 % 2**64:016x}"
    text = f"Statement {number} of many, which was said {said} times."
    return Memory(
        id=memory,
        kind="fact",
        text=text,
        subject=subject,
        path=layout.memory_path(subject, memory, "Statement"),
        confidence=0.9,
        valid_from=START,
        source=Source(thread=f"web-{number % PEOPLE}", turns=("t1",), quote=f"Statement {number}"),
    )


def erased_of(number: int) -> Memory:
    """A memory of the one who will be erased."""
    subject = names.subject_of_id("big", "the one")
    memory = f"{(number + 1) * 40503 % 2**64 + 2**60:016x}"
    text = f"The one said statement {number} of a few."
    path = layout.memory_path(subject, memory, text)
    return Memory(id=memory, kind="fact", text=text, subject=subject, path=path, source=Source(thread="the-one"))


def grown(settings: Settings, commits: int) -> Repository:
    """A tenant with so many commits, a memory each; every 200th changes the first memory, 46 are about one person."""
    repo = repository.create(settings, "big", now=START)
    each = commits // SUBJECT_COMMITS
    stream: list[bytes] = []
    for number in range(commits):
        if number % each == 1 and number // each < SUBJECT_COMMITS:
            memory = erased_of(number)
        elif number % 200 == 0:
            memory = memory_of(0, said=number)
        else:
            memory = memory_of(number)
        stream.append(_commit(number, memory, repo.head() if number == 0 else None))
    command = ["git", "--git-dir", str(repo.git_dir), "fast-import", "--done", "--quiet"]
    subprocess.run(command, input=b"".join([*stream, b"done\n"]), check=True)
    return repo


def _commit(number: int, memory: Memory, base: str | None) -> bytes:
    seconds = int((START + timedelta(minutes=number)).timestamp())
    message = f"Consolidate\n\nDocmem-Thread: {memory.source.thread}\nDocmem-Turns: t1\n".encode()
    data = files.render_memory(memory)
    head = f"commit refs/heads/main\ncommitter docmem <engine@docmem.invalid> {seconds} +0000\ndata {len(message)}\n"
    origin = f"from {base}\n" if base else ""
    body = f"M 100644 inline {memory.path}\ndata {len(data)}\n".encode() + data + b"\n"
    return head.encode() + message + b"\n" + origin.encode() + body


def measured(bench: Bench, name: str, size: int, work: Work, times: int) -> dict[str, Any]:
    """A row with `cpu_ms` too: what one call costs of a processor, gits included, however busy the machine is."""
    before = _cpu_seconds()
    found = timed(work, times)
    return bench.row(name, size, found, cpu_ms=round((_cpu_seconds() - before) / times * 1000, 1))


def _cpu_seconds() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def look_back(bench: Bench, repo: Repository, commits: int, rounds: int) -> None:
    """`why`, `log`, `at` and `revert` of one memory, first without the graph."""
    first = memory_of(0)

    def log() -> object:
        return history.log(repo, paths=[first.path])

    def why() -> object:
        return history.why(repo, first.id)

    ways = (("why", why), ("log", log))
    bare = [measured(bench, f"{name} without the graph", commits, work, 5) for name, work in ways]
    git.write_commit_graph(repo.git_dir)
    with_graph = [measured(bench, name, commits, work, rounds) for name, work in ways]
    measured(bench, "at", commits, lambda: history.at(repo, START + timedelta(minutes=commits / 2)), rounds)
    numbers = itertools.count(2)

    def take_back() -> None:
        number = next(numbers)
        while number % 200 == 0 or number % (commits // SUBJECT_COMMITS) == 1:
            number = next(numbers)
        done = revert.apply(repo, memory_of(number).id, now=START + timedelta(minutes=commits), author=WHO)
        assert done.revision is not None

    measured(bench, "revert", commits, take_back, rounds)
    for name, before, after in zip(("why_graph", "log_graph"), bare, with_graph, strict=True):
        bench.ratios[name] = before["p50_ms"] / after["p50_ms"]


def erase_one(bench: Bench, repo: Repository, commits: int) -> None:
    """Erase one subject of a tenant that is served from Postgres."""
    sync.sync_tenant(repo.settings, repo.tenant)
    target = Target("subject", names.subject_of_id("big", "the one"))
    start, used = time.perf_counter(), _cpu_seconds()
    receipt = erase.erase(repo.settings, repo.tenant, target, now=datetime.now(UTC))
    seconds, cpu = time.perf_counter() - start, _cpu_seconds() - used
    done = sync.sync_tenant(repo.settings, repo.tenant)
    assert receipt["memories"] == SUBJECT_COMMITS
    found = receipt["verified"]["found"]
    bench.row("erase", commits, [seconds], found=found, touched=done.upserts + done.deletes, cpu_ms=round(cpu * 1000))


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__ or "")
    bench = Bench("history", options.quick)
    commits, rounds = (1_000, 5) if options.quick else (10_000, 30)
    folder = Path(tempfile.mkdtemp(prefix="docmem-bench-"))
    folder.chmod(0o711)
    settings = Settings(root=folder, secret="bench", embedding_model="none")
    try:
        repo = grown(settings, commits)
        look_back(bench, repo, commits, rounds)
        erase_one(bench, repo, commits)
    finally:
        git.close()
        postgres.remove(settings)
        shutil.rmtree(folder, ignore_errors=True)
    bench.finish(as_json=options.json)


if __name__ == "__main__":
    main()
