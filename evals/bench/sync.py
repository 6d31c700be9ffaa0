"""What it costs to bring Postgres to what the files say, beside basic-memory on the same files.

    python evals/bench/sync.py [--quick] [--json] [--basic-memory PROGRAM]

Rows: a full sync of 2,000 and 10,000 Markdown notes without embeddings, and the same notes indexed by basic-memory
(keyword only, what it needs to start taken off); a full mirror of 10,000 and 100,000 memories, each in a process of its
own, with its peak memory; then, at the largest: a sync without news, one after a commit of 10 files, one after a commit
that deletes 20,000. `cpu_ms` is what our process and its gits used of a processor; Postgres' own isn't in it.

basic-memory needs Python 3.12 or newer: it is installed from the registry into a virtual environment of its own, with
whichever of python3.14, 3.13 and 3.12 is on PATH; or name an installed `basic-memory` program.
Ratios: `vs_basic_memory` and `no_change_vs_basic_memory` = its time / ours at the largest size, `rss_growth` = peak at
100,000 / at 10,000, `no_change_growth` likewise.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from docmem import files, git, layout, names, postgres, repository
from docmem.config import Settings
from docmem.model import Memory, Source
from docmem.repository import Repository
from docmem_sync import sync
from report import Bench, timed

NOTES = (2_000, 10_000)
MEMORIES = (10_000, 100_000)
DELETED = 20_000
CHANGED = 10
_WORDS = "quiet rooms with a view of the river and a late breakfast after the night train from the coast".split()  # noqa: SIM905 prose


def note(number: int) -> bytes:
    """A short note with a head, a title and two paragraphs."""
    words = " ".join(_WORDS[(number * 7 + step) % len(_WORDS)] for step in range(40))
    head = f"---\ntitle: Note {number}\ntags: [trip, note]\n---\n"
    return f"{head}# Note {number}\n\nTraveller {number} asks for {words}.\n\nMore on {number}: {words}.\n".encode()


def memory_of(number: int, said: int = 0) -> Memory:
    """The memory with this number."""
    subject = names.subject_of_id("big", f"person {number % 5_000}")
    memory = f"{(number + 1) * 2654435761 % 2**64:016x}"
    text = f"Traveller {number} wants {' '.join(_WORDS[(number + step) % len(_WORDS)] for step in range(14))} ({said})."
    return Memory(
        id=memory,
        kind="fact",
        text=text,
        subject=subject,
        path=layout.memory_path(subject, memory, text),
        confidence=0.9,
        source=Source(thread=f"web-{number}", turns=("t1",), quote="quiet rooms"),
    )


def committed(repo: Repository, changed: Iterator[tuple[str, bytes | None]], message: str) -> None:
    """One commit, streamed: a hundred thousand files needn't be held."""
    base = repo.head()
    seconds = int(datetime.now(UTC).timestamp())
    text = message.encode()
    process = subprocess.Popen(
        ["git", "--git-dir", str(repo.git_dir), "fast-import", "--done", "--quiet"], stdin=subprocess.PIPE
    )
    assert process.stdin is not None
    head = f"commit refs/heads/main\ncommitter bench <bench@localhost> {seconds} +0000\ndata {len(text)}\n"
    process.stdin.write(head.encode() + text + f"\nfrom {base}\n".encode())
    for path, data in changed:
        if data is None:
            process.stdin.write(f"D {path}\n".encode())
        else:
            process.stdin.write(f"M 100644 inline {path}\ndata {len(data)}\n".encode() + data + b"\n")
    process.stdin.write(b"\ndone\n")
    process.stdin.close()
    if process.wait() != 0:
        raise RuntimeError("git fast-import failed")


# ------------------------------------------------------------------------------------------------------ measuring


def cpu_seconds() -> float:
    """What this process and the children it waited for used."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def _synced(settings: Settings, tenant: str, pipe: Any) -> None:
    before, start = cpu_seconds(), time.perf_counter()
    done = sync.sync_tenant(settings, tenant, confirm_deletes=True)
    seconds, cpu = time.perf_counter() - start, cpu_seconds() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    pipe.send({"seconds": seconds, "cpu": cpu, "peak": peak, "files": done.upserts, "deletes": done.deletes})


def alone(settings: Settings, tenant: str) -> dict[str, Any]:
    """One sync in a fresh process: its seconds, processor seconds, peak memory in MB, and files."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_synced, args=(settings, tenant, theirs))
    process.start()
    theirs.close()
    found: dict[str, Any] = ours.recv()
    process.join()
    return found


def full(bench: Bench, settings: Settings, tenant: str, name: str, size: int) -> dict[str, Any]:
    """A row of a tenant's first sync."""
    found = alone(settings, tenant)
    return bench.row(
        name,
        size,
        [found["seconds"]],
        files_per_s=round(size / found["seconds"]),
        cpu_ms=round(found["cpu"] * 1000),
        peak_mb=round(found["peak"]),
    )


def repeated(bench: Bench, name: str, size: int, work: Callable[[], object], times: int) -> dict[str, Any]:
    """A row of something done several times in this process."""
    before = cpu_seconds()
    found = timed(work, times)
    return bench.row(name, size, found, cpu_ms=round((cpu_seconds() - before) / times * 1000, 1))


# ------------------------------------------------------------------------------------------------------- the peer


class BasicMemory:
    """The program, with a home of its own."""

    def __init__(self, program: Path, home: Path) -> None:
        self._program = program
        self._environment = {
            "PATH": os.defpath,
            "HOME": str(home),
            "BASIC_MEMORY_LOG_LEVEL": "ERROR",
        }
        home.mkdir()
        empty = home / "empty"
        empty.mkdir()
        self._run("project", "add", "empty", str(empty), "--no-wait")
        self._start_full = self._run("reindex", "--full", "--search", "--project", "empty")
        self._start_again = self._run("reindex", "--search", "--project", "empty")

    def add(self, name: str, folder: Path) -> float:
        """Seconds to index a folder for the first time. Without `--no-wait` it would embed it too."""
        self._run("project", "add", name, str(folder), "--no-wait")
        return self._run("reindex", "--full", "--search", "--project", name) - self._start_full

    def again(self, name: str) -> float:
        """Seconds to find that nothing has changed."""
        return max(0.0, self._run("reindex", "--search", "--project", name) - self._start_again)

    def _run(self, *words: str) -> float:
        start = time.perf_counter()
        done = subprocess.run(
            [str(self._program), *words], env=self._environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"basic-memory {words[0]}: {done.stdout[-500:]}{done.stderr[-500:]}")
        return time.perf_counter() - start


def installed(folder: Path) -> Path | None:
    """basic-memory in a fresh virtual environment; None where no Python is new enough."""
    python = next(filter(None, map(shutil.which, ("python3.14", "python3.13", "python3.12"))), None)
    if python is None:
        return None
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin/pip"), "install", "--quiet", "basic-memory"], check=True)
    return folder / "bin/basic-memory"


# ----------------------------------------------------------------------------------------------------------- rows


def beside_the_peer(bench: Bench, settings: Settings, sizes: tuple[int, ...], program: Path | None) -> None:
    """The same notes, indexed by both."""
    peer = BasicMemory(program, settings.root / "peer") if program is not None else None
    for size in sizes:
        tenant = f"notes-{size}"
        repo = repository.create(settings, tenant)
        committed(repo, ((f"knowledge/{n % 100}/note-{n}.md", note(n)) for n in range(size)), "Notes")
        ours = full(bench, settings, tenant, "docmem full sync, notes", size)
        with sync.connected(settings) as connection:
            again = repeated(bench, "docmem no change", size, partial(sync.mirror, settings, connection, tenant), 20)
        if peer is None:
            continue
        folder = settings.root / tenant
        for number in range(size):
            path = folder / str(number % 100) / f"note-{number}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(note(number))
        theirs = bench.row("basic-memory full index, notes", size, [peer.add(tenant, folder)])
        unchanged = bench.row("basic-memory no change", size, [peer.again(tenant)])
        bench.ratios["vs_basic_memory"] = theirs["p50_ms"] / ours["p50_ms"]
        bench.ratios["no_change_vs_basic_memory"] = unchanged["p50_ms"] / again["p50_ms"]


def at_size(bench: Bench, settings: Settings, sizes: tuple[int, ...], deleted: int) -> None:
    """Full mirrors in bounded memory, and small changes in a large tenant."""
    peaks, idle = [], []
    for size in sizes:
        tenant = f"memories-{size}"
        repo = repository.create(settings, tenant)
        committed(repo, ((each.path, files.render_memory(each)) for each in map(memory_of, range(size))), "Memories")
        peaks.append(full(bench, settings, tenant, "docmem full mirror, memories", size)["peak_mb"])
        with sync.connected(settings) as connection:
            row = repeated(bench, "docmem no change", size, partial(sync.mirror, settings, connection, tenant), 50)
            idle.append(row["p50_ms"])
    with sync.connected(settings) as connection:
        rounds = 15
        seconds = []
        before = cpu_seconds()
        for said in range(1, rounds + 1):
            changed = [memory_of(number, said) for number in range(said * 100, said * 100 + CHANGED)]
            olds = [memory_of(number) for number in range(said * 100, said * 100 + CHANGED)]
            pairs = zip(olds, changed, strict=True)
            committed(repo, ((old.path, files.render_memory(new)) for old, new in pairs), "Ten")
            seconds += timed(lambda: sync.mirror(settings, connection, tenant), 1)
        spent = round((cpu_seconds() - before) / rounds * 1000, 1)
        bench.row(f"docmem {CHANGED} changed", sizes[-1], seconds, cpu_ms_with_commit=spent)
    gone = ((memory_of(number).path, None) for number in range(sizes[-1] - deleted, sizes[-1]))
    committed(repo, gone, f"Delete\n\nDocmem-Deletes: {deleted}\n")
    found = alone(settings, tenant)
    assert found["deletes"] == deleted
    bench.row(f"docmem {deleted} deleted", sizes[-1], [found["seconds"]], cpu_ms=round(found["cpu"] * 1000))
    bench.ratios["rss_growth"] = peaks[-1] / peaks[0]
    bench.ratios["no_change_growth"] = idle[-1] / idle[0]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--json", action="store_true", help="one JSON object last")
    parser.add_argument("--basic-memory", type=Path, metavar="PROGRAM", help="an installed basic-memory")
    options = parser.parse_args()
    bench = Bench("sync", options.quick)
    folder = Path(tempfile.mkdtemp(prefix="docmem-bench-"))
    folder.chmod(0o711)
    settings = Settings(root=folder, secret="bench", embedding_model="none")
    try:
        program = options.basic_memory or installed(folder / "peer-python")
        if program is None:
            print("basic-memory is left out: it needs Python 3.12 or newer, and none is on PATH", file=sys.stderr)
        postgres.start(settings)
        beside_the_peer(bench, settings, NOTES[:1] if options.quick else NOTES, program)
        at_size(bench, settings, (1_000, 10_000) if options.quick else MEMORIES, 2_000 if options.quick else DELETED)
    finally:
        git.close()
        postgres.remove(settings)
        shutil.rmtree(folder, ignore_errors=True)
    bench.finish(as_json=options.json)


if __name__ == "__main__":
    main()
