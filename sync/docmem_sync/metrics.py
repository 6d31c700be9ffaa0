"""Counts and durations by tenant for a Prometheus, never content. Needs the extra `metrics`.

The same go to the logger `docmem.metrics` at INFO, a line for each sync and each turn of embedding (sync.py, embed.py).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from docmem.errors import ConfigError
from docmem_sync.embed import Embedded
from docmem_sync.sync import TenantSync

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Gauge

Stop: TypeAlias = Callable[[], None]
_Metric = TypeVar("_Metric", "Counter", "Gauge")


class Metrics:
    """What is counted. One a process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        from prometheus_client import Counter, Gauge, Histogram

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"docmem_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"docmem_{name}", text, ["tenant"], registry=registry)

        self.registry = registry
        self._series: dict[str, set[tuple[Counter | Gauge, tuple[str, ...]]]] = {}
        self._lock = threading.Lock()
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
        self._of(self._syncs, done.tenant, how).inc()
        self._of(self._seconds, done.tenant).inc(done.seconds)
        if done.error is not None:
            return
        self._of(self._quarantined, done.tenant).set(len(done.quarantined))
        self._of(self._synced, done.tenant).set(time.time())
        if how == "ok":
            self._durations.observe(done.seconds)
            self._of(self._files, done.tenant, "upsert").inc(done.upserts)
            self._of(self._files, done.tenant, "delete").inc(done.deletes)

    def embedding(self, tenant: str, done: Embedded) -> None:
        """Count a turn of embedding."""
        self._of(self._embedded, tenant).inc(done.count)

    def keep(self, tenants: Collection[str]) -> None:
        """Drop the series of all others: they are gone."""
        with self._lock:
            gone = [tenant for tenant in self._series if tenant not in tenants]
            for tenant in gone:
                for metric, labels in self._series.pop(tenant):
                    metric.remove(*labels)

    def _of(self, metric: _Metric, tenant: str, *labels: str) -> _Metric:
        with self._lock:
            self._series.setdefault(tenant, set()).add((metric, (tenant, *labels)))
            return metric.labels(tenant, *labels)


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
