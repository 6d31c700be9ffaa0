"""What a packet cost and held, as counts: never what it says, and never whom it is about."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Protocol

_log = logging.getLogger("docmem.inject")


@dataclass(frozen=True, slots=True)
class PacketMade:
    """One packet that a turn was given, or would have been given."""

    tenant: str
    run: int | None
    chars: int
    tokens: int
    items: int
    candidates: int
    omitted: int
    scrubbed: int
    cached: bool
    degraded: str | None
    seconds: float

    @property
    def empty(self) -> bool:
        """Whether there was nothing to say."""
        return self.chars == 0


class Observer(Protocol):
    """Is told of each packet. It runs within the turn, so it had better be quick."""

    def __call__(self, event: PacketMade, /) -> None:
        """Take note of it."""
        ...


def log(event: PacketMade) -> None:
    """One line a packet, at level INFO of the logger `docmem.inject`; the event itself is its attribute `docmem`."""
    if _log.isEnabledFor(logging.INFO):
        _log.info(
            "packet tenant=%s run=%s chars=%d tokens=%d items=%d candidates=%d omitted=%d scrubbed=%d cached=%s "
            "degraded=%s empty=%s ms=%.1f",
            event.tenant, event.run, event.chars, event.tokens, event.items, event.candidates, event.omitted,
            event.scrubbed, event.cached, event.degraded, event.empty, event.seconds * 1000,
            extra={"docmem": event},
        )  # fmt: skip


class OpenTelemetry:
    """Packets as OpenTelemetry's metrics: `Injector(observe=OpenTelemetry())`. Needs the extra `otel`.

    `docmem.packet.duration` (seconds), `docmem.packet.tokens` and `docmem.packet.candidates` are histograms, each by
    tenant, degraded, cached and empty. `meter` None: the global provider's.
    """

    def __init__(self, meter: Any = None) -> None:
        if meter is None:
            from opentelemetry import metrics

            meter = metrics.get_meter("docmem")
        self._duration = meter.create_histogram("docmem.packet.duration", unit="s")
        self._tokens = meter.create_histogram("docmem.packet.tokens")
        self._candidates = meter.create_histogram("docmem.packet.candidates")

    def __call__(self, event: PacketMade, /) -> None:
        """Record one packet, and log it as well."""
        labels = {
            "tenant": event.tenant,
            "degraded": event.degraded or "",
            "cached": event.cached,
            "empty": event.empty,
        }
        self._duration.record(event.seconds, labels)
        self._tokens.record(event.tokens, labels)
        self._candidates.record(event.candidates, labels)
        log(event)
