"""Counts and durations by tenant for a Prometheus, never content. Needs the extra `metrics`.

The same go to the logger `docmem.metrics` at INFO, a line for each sync and each turn of embedding (sync.py, embed.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from docmem.errors import ConfigError
from docmem_sync.embed import Embedded
from docmem_sync.sync import TenantSync

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

Stop: TypeAlias = Callable[[], None]


class Metrics:
    """What is counted. One a process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        from prometheus_client import Counter, Gauge, Histogram

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"docmem_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"docmem_{name}", text, ["tenant"], registry=registry)

        self.registry = registry
        self._syncs = counter("syncs", "Syncs by outcome", "tenant", "outcome")
        self._files = counter("synced_files", "Files written to and deleted from the index", "tenant", "change")
        self._embedded = counter("embedded_texts", "Texts that were given a vector", "tenant")
        self._seconds = counter("sync_busy_seconds", "Seconds spent in syncs", "tenant")
        self._quarantined = gauge("quarantined_files", "Files that can't be read")
        self._synced = gauge("synced_timestamp_seconds", "When the index last stood at the branch's head")
        buckets = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
        # By tenant it would be a dozen series each.
        self._durations = Histogram(
            "docmem_sync_seconds", "Duration of syncs that found something", buckets=buckets, registry=registry
        )

    def sync(self, done: TenantSync) -> None:
        """Count a sync."""
        how = done.outcome
        self._syncs.labels(done.tenant, how).inc()
        self._seconds.labels(done.tenant).inc(done.seconds)
        if done.error is not None:
            return
        self._quarantined.labels(done.tenant).set(len(done.quarantined))
        self._synced.labels(done.tenant).set(time.time())
        if how == "ok":
            self._durations.observe(done.seconds)
            self._files.labels(done.tenant, "upsert").inc(done.upserts)
            self._files.labels(done.tenant, "delete").inc(done.deletes)

    def embedding(self, tenant: str, done: Embedded) -> None:
        """Count a turn of embedding."""
        self._embedded.labels(tenant).inc(done.count)


def served(host: str, port: int) -> tuple[Metrics, Stop]:
    """Metrics that a Prometheus can scrape at `http://host:port/metrics`, and what ends that.

    Raises `ConfigError` where the extra is missing or the port is taken.
    """
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError:
        raise ConfigError(
            "metrics need the package prometheus-client, which isn't installed", hint="pip install 'docmem[metrics]'"
        ) from None
    registry = CollectorRegistry()
    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise ConfigError(f"metrics can't be served at {host}:{port}: {error}", hint="choose another port") from None

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return Metrics(registry), stop
