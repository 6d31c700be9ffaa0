"""What a fault costs the turns: Postgres killed, stopped, full or spoilt; an embedding provider that fails.

    python evals/faults.py [--quick] [--json]

Of each fault: the slowest turn (bound: 250 ms; 350 ms with an embedder), what later turns cost while the breaker is
open (bound: 1 ms, p95: a machine has other things to do now and then), what `degraded` said, whether `docmem status`
told the truth meanwhile and again afterwards, and how long after the mending memory was back (bound: 5 s). A turn is
what the adapter does in one: a run's number, then its packet. On a server and a repo of its own. Exits 1 where a bound
was passed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
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
TURN_MS, EMBEDDED_TURN_MS, LATER_MS, BACK_MS = 250.0, 350.0, 1.0, 5_000.0
DIMENSION = 8


@dataclass(frozen=True)
class Figures:
    """What one fault cost."""

    fault: str
    slowest_ms: float
    later_p50_ms: float | None
    later_p95_ms: float | None
    degraded: tuple[str, ...]
    status_told: bool | None
    back_after_ms: float | None
    bound_ms: float

    @property
    def holds(self) -> bool:
        """Whether the bounds were kept, and it came back."""
        later = self.later_p95_ms is None or self.later_p95_ms <= LATER_MS
        back = self.back_after_ms is None or self.back_after_ms <= BACK_MS
        return self.slowest_ms <= self.bound_ms and later and back and self.status_told is not False


def fill(settings: Settings) -> None:
    """A tenant with one memory, served."""
    repo = repository.create(settings, TENANT)
    subject = names.subject_of_id(TENANT, "ana")
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
    sync_tenant(settings, TENANT)


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


FAULTS: dict[str, Callable[[Settings], contextlib.AbstractContextManager[None]]] = {
    "stopped (SIGSTOP)": stopped,
    "killed (SIGKILL)": killed,
    "connections filled": full,
    "table dropped": spoilt("ALTER TABLE docmem.memory RENAME TO gone", "ALTER TABLE docmem.gone RENAME TO memory"),
    "role revoked": spoilt(
        "REVOKE SELECT ON docmem.memory FROM docmem_reader", "GRANT SELECT ON docmem.memory TO docmem_reader"
    ),
    "garbage rows": spoilt(
        "ALTER TABLE docmem.memory RENAME TO kept; CREATE VIEW docmem.memory AS SELECT tenant_id, id, path, revision, "
        "subject, agent, kind, NULL::text AS text, thread, turns, 'x'::text AS importance, valid_from, valid_until, "
        "expires, created_at, tsv, meta, projection_hash FROM docmem.kept; "
        "GRANT SELECT ON docmem.memory TO docmem_reader",
        "DROP VIEW docmem.memory; ALTER TABLE docmem.kept RENAME TO memory",
    ),
}
RESTARTS = "killed (SIGKILL)"
"""Who asks for the status starts it again, so there is nothing to be told."""


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


def timed(injector: Injector, turns: int) -> tuple[list[float], list[Packet]]:
    """Milliseconds and packets of turns, each a run with a goal of its own."""
    times, packets = [], []
    for number in range(turns):
        started = time.perf_counter()
        run = injector.next_run(TENANT)
        packets.append(injector.packet(TENANT, "ana", f"Porto, asked for the {number}th time", run=run))
        times.append((time.perf_counter() - started) * 1000)
    return times, packets


def tells(settings: Settings) -> bool:
    """Whether `docmem status` says that something is wrong."""
    found = status.status(settings, [TENANT])
    return "error" in found["server"] or any("error" in row for row in found["tenants"])


def postgres_fault(settings: Settings, name: str, *, turns: int) -> Figures:
    """One fault of Postgres."""
    with Injector(settings, files=False) as injector:
        wait(lambda: good(injector.packet(TENANT, "ana", "Porto")))
        with FAULTS[name](settings):
            times, packets = timed(injector, turns)
            told = None if name == RESTARTS else tells(settings)
        back = wait(lambda: good(injector.packet(TENANT, "ana", "Porto")))
    told = told is not False and not tells(settings)
    open_ = sorted(ms for ms, packet in zip(times[4:], packets[4:], strict=True) if packet.degraded)
    return Figures(
        fault=name,
        slowest_ms=round(max(times), 2),
        later_p50_ms=round(open_[len(open_) // 2], 4) if open_ else None,
        later_p95_ms=round(open_[len(open_) * 95 // 100], 4) if open_ else None,
        degraded=tuple(sorted({str(packet.degraded) for packet in packets})),
        status_told=told,
        back_after_ms=round(back, 1),
        bound_ms=TURN_MS,
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


def provider_fault(settings: Settings, fault: str, *, turns: int) -> Figures:
    """One fault of the embedding provider, as its client reports it (over HTTP: tests/test_faults.py)."""
    provider = Provider(fault)
    with Injector(settings, embedder=provider, files=False) as injector:
        wait(lambda: "Plans Porto." in injector.packet(TENANT, "ana", "Porto").text)
        times, packets = timed(injector, turns)
    provider.end.set()
    return Figures(
        fault=f"embedding: {fault}",
        slowest_ms=round(max(times), 2),
        later_p50_ms=None,
        later_p95_ms=None,
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
    turns = 20 if given.quick else 200
    found = []
    with tempfile.TemporaryDirectory(prefix="docmem-faults-") as folder:
        root = Path(folder)
        root.chmod(0o755)  # run by root, Postgres gets a user of its own, which has to reach its data
        settings = Settings(root=root, embedding_model="none", secret="for faults")
        try:
            fill(settings)
            found += [postgres_fault(settings, name, turns=turns) for name in FAULTS]
            for fault in ("hangs", "500", "429", "wrong dimension", "NaN"):
                found.append(provider_fault(settings, fault, turns=turns))
        finally:
            send(settings, signal.SIGCONT)
            postgres.remove(settings)
    for each in found:
        later = "-" if each.later_p95_ms is None else f"{each.later_p50_ms:.3f}/{each.later_p95_ms:.3f} ms"
        back = "-" if each.back_after_ms is None else f"{each.back_after_ms:.0f} ms"
        told = "-" if each.status_told is None else "told" if each.status_told else "SILENT"
        print(
            f"{each.fault:<28} slowest {each.slowest_ms:>8.1f} ms  later {later:>14}  back {back:>8}  status {told}  "
            f"{','.join(each.degraded)}  {'ok' if each.holds else 'PASSED ITS BOUND'}"
        )
    if given.json:
        print(json.dumps({"eval": "faults", "quick": given.quick, "rows": [asdict(each) for each in found]}))
    return 0 if all(each.holds for each in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
