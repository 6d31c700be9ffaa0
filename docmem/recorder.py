"""Which run was given what: written in batches, aside, so that no turn waits for it or fails by it."""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from docmem import threads
from docmem.errors import DocmemError
from docmem.index import Ask, IndexFailed
from docmem.packet import Packet

WAITING = 1_000
"""Packets that may wait to be written; past that they are lost, and counted."""

_BATCH = 8
"""Packets of one write: with 200 it took more memory than all that is kept."""
_GATHER_SECONDS = 0.2
_TRIES = 3
_STAMPED = frozenset({"preferences", "facts", "learned", "episodes", "experiments"})
"""Blocks whose entries were chosen, so that it matters when they were last used."""

_log = logging.getLogger("docmem.inject")


@dataclass(frozen=True, slots=True)
class Given:
    """A packet that a run was given. `consumed` False: it was only made, and the prompt stayed as it was."""

    tenant: str
    subject: str
    agent: str
    run: int
    packet: Packet
    consumed: bool
    at: datetime


class Recorder:
    """Takes packets and writes them in a thread of its own. `write` runs statements as a tenant and may raise."""

    def __init__(self, write: Callable[[str, Sequence[Ask]], object], *, size: int = WAITING) -> None:
        self._write = write
        self._queue: queue.Queue[Given | None] = queue.Queue(size)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self.lost = 0
        """Packets that could not be recorded."""

    def put(self, given: Given) -> None:
        """Take a packet. Never blocks and never raises."""
        if self._closed:
            self.lost += 1
            return
        try:
            self._queue.put_nowait(given)
        except queue.Full:
            self.lost += 1
            return
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threads.aside(self._run, name="docmem-record")  # or the next one starts it

    def flush(self, *, seconds: float) -> bool:
        """Wait until what was put is written, or lost, for so long at most; whether it is."""
        deadline = time.monotonic() + seconds
        while self._queue.unfinished_tasks and time.monotonic() < deadline:
            time.sleep(0.005)
        return not self._queue.unfinished_tasks

    def close(self, *, seconds: float = 2.0) -> None:
        """Write what waits, for so long at most, and end the thread."""
        self._closed = True
        if self._thread is None:
            return
        try:
            self._queue.put(None, timeout=seconds)
        except queue.Full:
            return
        self._thread.join(timeout=seconds)

    def _run(self) -> None:
        while True:
            batch = self._batch()
            wanted = [given for given in batch if given is not None]
            for tenant in dict.fromkeys(given.tenant for given in wanted):
                self._record_whole(tenant, [given for given in wanted if given.tenant == tenant])
            for _ in batch:
                self._queue.task_done()
            if None in batch:
                return

    def _batch(self) -> list[Given | None]:
        """What there is after a short while: many packets are one write."""
        batch = [self._queue.get()]
        deadline = time.monotonic() + (0.0 if self._closed else _GATHER_SECONDS)
        while batch[-1] is not None and len(batch) < _BATCH:
            try:
                batch.append(self._queue.get(timeout=max(0.0, deadline - time.monotonic())))
            except queue.Empty:
                break
        return batch

    def _record_whole(self, tenant: str, given: Sequence[Given]) -> None:
        """Write a batch; of one that holds something that can't be written, all the rest. Never raises."""
        try:
            self._record(tenant, given)
        except Exception as error:  # noqa: BLE001 a thread that ended here would record nothing more
            if len(given) > 1:
                for one in given:
                    self._record_whole(tenant, [one])
                return
            self._lose(given, error.code if isinstance(error, DocmemError) else type(error).__name__)

    def _record(self, tenant: str, given: Sequence[Given]) -> None:
        asks = [
            Ask("write_traces", {"rows": json.dumps(traces(given))}),
            Ask("write_usage", {"rows": json.dumps(usage(given))}),
        ]
        for attempt in range(_TRIES):
            try:
                self._write(tenant, asks)
                return
            except IndexFailed:  # it would be refused again
                raise
            except DocmemError as error:
                if self._closed or attempt == _TRIES - 1:
                    self._lose(given, error.code)
                    return
                time.sleep(0.5 * (attempt + 1))

    def _lose(self, given: Sequence[Given], code: str) -> None:
        self.lost += len(given)
        _log.warning("%d packets could not be recorded: %s", len(given), code)


def traces(given: Iterable[Given]) -> list[dict[str, Any]]:
    """Rows of table `trace`: one a span. The block of a profile's value carries its mark: `persona.3f9c…`."""
    return [
        {
            "agent": one.agent,
            "run": one.run,
            "packet": packet_hash(one.packet),
            "starts": span.start,
            "ends": span.end,
            "block": f"{span.block}.{part_mark(span.path, span.part)}" if span.part else span.block,
            "memory": span.id,
            "path": span.path,
            "revision": span.revision,
            "subject": one.subject,
            "at": one.at.isoformat(),
        }
        for one in given
        for span in one.packet.spans
    ]


def usage(given: Iterable[Given]) -> list[dict[str, Any]]:
    """Rows of table `usage`: what was consumed, once a memory and agent; several packets of a run are one use."""
    runs: dict[tuple[str, str], set[int]] = {}
    latest: dict[tuple[str, str], datetime] = {}
    for one in given:
        for span in one.packet.spans if one.consumed else ():
            if span.block in _STAMPED:
                key = span.id, one.agent
                runs.setdefault(key, set()).add(one.run)
                latest[key] = max(one.at, latest.get(key, one.at))
    return [
        {"memory": memory, "agent": agent, "run": max(of), "uses": len(of), "at": latest[memory, agent].isoformat()}
        for (memory, agent), of in sorted(runs.items())
    ]


def packet_hash(packet: Packet) -> str:
    """16 hex digits that tell a packet's text from another's."""
    return sha256(packet.text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def part_mark(path: str, part: str) -> str:
    """16 hex digits that tell a value of a profile from its others. Its name may say as much as what it holds."""
    return sha256(f"{path}\n{part}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def given_now(tenant: str, subject: str, agent: str, run: int, packet: Packet, *, consumed: bool) -> Given:
    """A packet given now."""
    return Given(tenant, subject, agent, run, packet, consumed, datetime.now(UTC))
