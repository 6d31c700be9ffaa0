"""What a fault costs the turns: Postgres killed, stopped, full, locked or spoilt; an embedding provider that fails.

    python evals/faults.py [--quick] [--json]

Of each fault: the slowest turn (bound: 250 ms; 350 ms with an embedder), what later turns cost while it lasts (bound:
1 ms at p99; recovery tries again meanwhile, aside), what `degraded` said, whether `docmem status` told the truth then
and again afterwards, and how long after the mending memory was back (bound: 5 s). A turn is what the adapter does in
one: a run's number, then its packet. Of a burst, of more turns at once than there are connections while other processes
keep the machine busy: how long the slowest waited, how many went without memory, and that none of them was taken for an
outage, which would have shut memory out for all. On a server and a repo of its own. Exits 1 where a bound was passed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from docmem import files, layout, names, postgres, repository
from docmem.config import Settings
from docmem.inject import Injector
from docmem.model import Memory, Source
from docmem.packet import Packet
from docmem_sync import status
from docmem_sync.sync import sync_tenant

TENANT = "acme"
OTHERS = tuple(f"other-{number}" for number in range(19))
TURN_MS, EMBEDDED_TURN_MS, LATER_MS, BACK_MS = 250.0, 350.0, 1.0, 5_000.0
REFUSED_MS = 20.0
"""Of a burst: a turn without memory that took less than that didn't wait for it, so memory was shut out."""

DIMENSION = 8


@dataclass(frozen=True)
class Figures:
    """What one fault cost."""

    fault: str
    slowest_ms: float
    later_p50_ms: float | None
    later_p99_ms: float | None
    degraded: tuple[str, ...]
    status_told: bool | None
    back_after_ms: float | None
    bound_ms: float

    @property
    def holds(self) -> bool:
        """Whether the bounds were kept, and it came back."""
        later = self.later_p99_ms is None or self.later_p99_ms <= LATER_MS
        back = self.back_after_ms is None or self.back_after_ms <= BACK_MS
        return self.slowest_ms <= self.bound_ms and later and back and self.status_told is not False


def fill(settings: Settings, tenant: str) -> None:
    """A tenant with one memory, served."""
    repo = repository.create(settings, tenant)
    subject = names.subject_of_id(tenant, "ana")
    memory_id = "0123456789abcdef"
    memory = Memory(
        id=memory_id,
        kind="fact",
        text="Plans Porto.",
        subject=subject,
        path=layout.memory_path(subject, memory_id, "Plans Porto."),
        valid_from=datetime.now(UTC),
        source=Source(thread="t", turns=("t1",), quote="Porto"),
    )
    with repo.locked():
        repo.commit(repo.head(), {memory.path: files.render_memory(memory)}, message="fill", now=datetime.now(UTC))
    sync_tenant(settings, tenant)


def send(settings: Settings, number: int) -> None:
    """A signal to the embedded server and all its backends."""
    running = postgres.running(settings)
    data = running.data if running else settings.root / "postgres"
    with contextlib.suppress(FileNotFoundError):
        postmaster = int((Path(data) / "postmaster.pid").read_text().split()[0])
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(postmaster)], capture_output=True, text=True, check=False
        )
        for pid in [postmaster, *map(int, listed.stdout.split())]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


@contextmanager
def stopped(settings: Settings) -> Iterator[None]:
    """SIGSTOP."""
    send(settings, signal.SIGSTOP)
    try:
        yield
    finally:
        send(settings, signal.SIGCONT)


@contextmanager
def killed(settings: Settings) -> Iterator[None]:
    """SIGKILL. The next connection starts it again, which is the recovery."""
    send(settings, signal.SIGKILL)
    yield


@contextmanager
def full(settings: Settings) -> Iterator[None]:
    """Every connection taken, and the injector's own broken, so that it needs a new one."""
    server = postgres.start(settings)
    with contextlib.ExitStack() as stack:
        admin = stack.enter_context(psycopg.connect(server.dsn("admin", database="postgres"), autocommit=True))
        for _ in range(3):
            with contextlib.suppress(psycopg.OperationalError):
                for _ in range(500):
                    stack.enter_context(psycopg.connect(server.dsn("owner")))
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'docmem_reader'")
        with contextlib.suppress(psycopg.OperationalError):
            for _ in range(500):
                stack.enter_context(psycopg.connect(server.dsn("owner")))
        yield


def spoilt(spoil: str, mend: str) -> Callable[[Settings], contextlib.AbstractContextManager[None]]:
    """Statements of the owner that spoil the index, and that mend it."""

    @contextmanager
    def fault(settings: Settings) -> Iterator[None]:
        with psycopg.connect(postgres.start(settings).dsn("owner"), autocommit=True) as owner:
            owner.execute(spoil.encode())
            try:
                yield
            finally:
                owner.execute(mend.encode())

    return fault


def locked(table: str) -> Callable[[Settings], contextlib.AbstractContextManager[None]]:
    """ACCESS EXCLUSIVE, as a change of the table takes it, held for as long as it lasts."""

    @contextmanager
    def fault(settings: Settings) -> Iterator[None]:
        with psycopg.connect(postgres.start(settings).dsn("owner")) as owner:
            owner.execute(f"LOCK docmem.{table}".encode())
            yield
            owner.rollback()

    return fault


FAULTS: dict[str, Callable[[Settings], contextlib.AbstractContextManager[None]]] = {
    "stopped (SIGSTOP)": stopped,
    "killed (SIGKILL)": killed,
    "connections filled": full,
    "table dropped": spoilt("ALTER TABLE docmem.memory RENAME TO gone", "ALTER TABLE docmem.gone RENAME TO memory"),
    "role revoked": spoilt(
        "REVOKE SELECT ON docmem.memory FROM docmem_reader", "GRANT SELECT ON docmem.memory TO docmem_reader"
    ),
    "garbage rows": spoilt(
        "ALTER TABLE docmem.memory RENAME TO kept; CREATE VIEW docmem.memory AS SELECT ctid, tenant_id, id, path, "
        "revision, subject, agent, kind, NULL::text AS text, thread, turns, 'x'::text AS importance, valid_from, "
        "valid_until, expires, created_at, tsv, meta, projection_hash FROM docmem.kept; "
        "GRANT SELECT ON docmem.memory TO docmem_reader",
        "DROP VIEW docmem.memory; ALTER TABLE docmem.kept RENAME TO memory",
    ),
}
LOCKED = ("memory", "document", "profile", "trace")
"""Tables that somebody locks for long, one by one: a packet reads them, and a run's number is written to the last."""
FAULTS |= {f"{table} locked": locked(table) for table in LOCKED}
UNTOLD = ("killed (SIGKILL)", "trace locked")
"""Who asks for the status starts a killed server again, so there is nothing to be told; and packets are served while
runs can't be counted."""


def good(packet: Packet) -> bool:
    """Whether memory is there."""
    return packet.degraded is None and "Plans Porto." in packet.text


def wait(condition: Callable[[], bool], *, seconds: float = 60.0) -> float:
    """Milliseconds until it holds."""
    started = time.monotonic()
    while not condition():
        if time.monotonic() - started > seconds:
            raise TimeoutError(f"not within {seconds} s")
        time.sleep(0.01)
    return (time.monotonic() - started) * 1000


def timed(injector: Injector, seconds: float, tenants: Sequence[str] = (TENANT,)) -> tuple[list[float], list[Packet]]:
    """Milliseconds and packets of turns for so long, each a run with a goal of its own, some 200 a second; of one
    tenant after the other."""
    times: list[float] = []
    packets: list[Packet] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        started = time.perf_counter()
        tenant = tenants[len(times) % len(tenants)]
        run = injector.next_run(tenant)
        packets.append(injector.packet(tenant, "ana", f"Porto, asked for the {len(times)}th time", run=run))
        times.append((time.perf_counter() - started) * 1000)
        time.sleep(0.005)
    return times, packets


def tells(settings: Settings) -> bool:
    """Whether `docmem status` says that something is wrong."""
    found = status.status(settings, [TENANT])
    return "error" in found["server"] or any("error" in row for row in found["tenants"])


def postgres_fault(
    settings: Settings, name: str, *, seconds: float, files: bool = False, tenants: Sequence[str] = (TENANT,)
) -> Figures:
    """One fault of Postgres, met by `tenants`; with `files` these serve meanwhile, which takes its time."""
    with Injector(settings, files=files) as injector:
        wait(lambda: good(injector.packet(TENANT, "ana", "Porto")))
        wait(lambda: injector.next_run(TENANT) is not None)
        with FAULTS[name](settings):
            times, packets = timed(injector, seconds, tenants)
            told = None if name in UNTOLD else tells(settings)
        back = wait(lambda: good(injector.packet(TENANT, "ana", "Porto")) and injector.next_run(TENANT) is not None)
    told = told is not False and not tells(settings)
    later = sorted(
        ms for ms, packet in zip(times[4:], packets[4:], strict=True) if packet.degraded not in {None, "files"}
    )
    return Figures(
        fault=name + (", files serve" if files else "") + (f", {len(tenants)} tenants" if len(tenants) > 1 else ""),
        slowest_ms=round(max(times), 2),
        later_p50_ms=round(later[len(later) // 2], 4) if later else None,
        later_p99_ms=round(later[len(later) * 99 // 100], 4) if later else None,
        degraded=tuple(sorted({str(packet.degraded) for packet in packets})),
        status_told=told,
        back_after_ms=round(back, 1),
        bound_ms=TURN_MS,
    )


def busy() -> None:
    """Keep a processor busy, until it is killed."""
    while True:
        pass


@dataclass(frozen=True)
class Burst:
    """What turns at once cost: of how many, and how many went without memory, or were told that it is shut out."""

    fault: str
    turns: int
    slowest_ms: float
    p50_ms: float
    without_memory: int
    refused: int

    @property
    def holds(self) -> bool:
        """Whether none was refused: that one waits in vain is no reason for it."""
        return self.refused == 0


def burst(settings: Settings, *, at_once: int = 60, each: int = 5, others: int = 2) -> Burst:
    """Misses of many threads at once, beside processes that take all of the machine."""
    times: list[tuple[float, bool]] = []
    start = threading.Barrier(at_once)
    processes = [multiprocessing.get_context("spawn").Process(target=busy, daemon=True) for _ in range(others)]
    with Injector(settings, files=False) as injector:
        wait(lambda: good(injector.packet(TENANT, "ana", "Porto")))

        def turns(thread: int) -> None:
            start.wait()
            for number in range(each):
                started = time.perf_counter()
                packet = injector.packet(TENANT, "ana", f"Porto, asked by {thread} for the {number}th time")
                times.append(((time.perf_counter() - started) * 1000, packet.degraded is not None))

        try:
            for process in processes:
                process.start()
            threads = [threading.Thread(target=turns, args=(number,)) for number in range(at_once)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            for process in processes:
                process.kill()
    slow = sorted(ms for ms, _ in times)
    return Burst(
        fault=f"burst of {at_once} threads, busy machine",
        turns=len(times),
        slowest_ms=round(slow[-1], 2),
        p50_ms=round(slow[len(slow) // 2], 2),
        without_memory=sum(degraded for _, degraded in times),
        refused=sum(degraded and ms < REFUSED_MS for ms, degraded in times),
    )


class Provider:
    """An embedder that does to a question what it is told to."""

    model = "faulty"
    dimension = DIMENSION

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.end = threading.Event()

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0] + [0.0] * (DIMENSION - 1) for _ in texts]

    def query(self, text: str) -> list[float]:
        from docmem.embedding import checked
        from docmem.errors import ModelUnavailable

        if self.fault == "hangs":
            self.end.wait(60)
        if self.fault in {"500", "429"}:
            raise ModelUnavailable(self.fault)
        numbers: list[Any] = {"wrong dimension": [1.0, 0.0], "NaN": [float("nan")] * DIMENSION}.get(self.fault, [1.0])
        return checked([numbers], count=1, dimension=DIMENSION)[0]


def provider_fault(settings: Settings, fault: str, *, seconds: float) -> Figures:
    """One fault of the embedding provider, as its client reports it (over HTTP: tests/test_faults.py)."""
    provider = Provider(fault)
    with Injector(settings, embedder=provider, files=False) as injector:
        wait(lambda: "Plans Porto." in injector.packet(TENANT, "ana", "Porto").text)
        times, packets = timed(injector, seconds)
    provider.end.set()
    return Figures(
        fault=f"embedding: {fault}",
        slowest_ms=round(max(times), 2),
        later_p50_ms=None,
        later_p99_ms=None,
        degraded=tuple(sorted({str(packet.degraded) for packet in packets})),
        status_told=None,
        back_after_ms=None,
        bound_ms=EMBEDDED_TURN_MS,
    )


def main() -> int:
    """Run it; 1 where a bound was passed."""
    parser = argparse.ArgumentParser(description="What a fault costs the turns.")
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    parser.add_argument("--json", action="store_true", help="one JSON object last")
    given = parser.parse_args()
    seconds = 3.0 if given.quick else 6.0
    found: list[Figures] = []
    with tempfile.TemporaryDirectory(prefix="docmem-faults-") as folder:
        root = Path(folder)
        root.chmod(0o755)  # run by root, Postgres gets a user of its own, which has to reach its data
        settings = Settings(root=root, embedding_model="none", secret="for faults")
        try:
            for tenant in (TENANT, *OTHERS):
                fill(settings, tenant)
            found += [postgres_fault(settings, name, seconds=seconds) for name in FAULTS]
            for name in ("memory locked", "trace locked"):
                found.append(postgres_fault(settings, name, seconds=seconds, tenants=(TENANT, *OTHERS)))
            found.append(postgres_fault(settings, "stopped (SIGSTOP)", seconds=seconds, files=True))
            for fault in ("hangs", "500", "429", "wrong dimension", "NaN"):
                found.append(provider_fault(settings, fault, seconds=seconds))
            bursts = [burst(settings) for _ in range(1 if given.quick else 5)]
        finally:
            send(settings, signal.SIGCONT)
            postgres.remove(settings)
    for one in found:
        later = "-" if one.later_p99_ms is None else f"{one.later_p50_ms:.3f}/{one.later_p99_ms:.3f} ms"
        back = "-" if one.back_after_ms is None else f"{one.back_after_ms:.0f} ms"
        told = "-" if one.status_told is None else "told" if one.status_told else "SILENT"
        print(
            f"{one.fault:<28} slowest {one.slowest_ms:>8.1f} ms  later {later:>14}  back {back:>8}  status {told}  "
            f"{','.join(one.degraded)}  {'ok' if one.holds else 'PASSED ITS BOUND'}"
        )
    for of in bursts:
        print(
            f"{of.fault}: {of.turns} turns, p50 {of.p50_ms:.0f} ms, slowest {of.slowest_ms:.0f} ms, "
            f"{of.without_memory} without memory, {of.refused} refused  {'ok' if of.holds else 'PASSED ITS BOUND'}"
        )
    rows: list[Figures | Burst] = [*found, *bursts]
    if given.json:
        print(json.dumps({"eval": "faults", "quick": given.quick, "rows": [asdict(row) for row in rows]}))
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
