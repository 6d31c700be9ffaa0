"""Counts of packets, by the real SDK of OpenTelemetry."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="needs opentelemetry-sdk")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from docmem.config import Settings
from docmem.events import OpenTelemetry
from docmem.inject import Injector
from tests.support.repos import memory, subject
from tests.test_inject import serve


def test_packets_are_histograms_by_what_can_be_counted_on(
    indexed: Settings, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    serve(indexed, memory("Plans Porto."))
    with Injector(indexed, timeout=30, observe=OpenTelemetry(provider.get_meter("docmem")), files=False) as injector:
        packet = injector.packet("acme", "ana", "Porto")
        injector.packet("acme", "ana", "Porto", run=True)
        injector.packet("x" * 1_000_000, "ana", "Porto")
        injector.packet("x\npacket tenant=victim", "ana", "Porto")
    data = reader.get_metrics_data()
    assert data is not None
    metrics = {metric.name: metric for metric in data.resource_metrics[0].scope_metrics[0].metrics}
    assert metrics.keys() == {"docmem.packet.duration", "docmem.packet.tokens", "docmem.packet.candidates"}
    assert metrics["docmem.packet.duration"].unit == "s"

    def points(name: str) -> dict[tuple[Any, ...], Any]:
        return {
            tuple((point.attributes or {})[key] for key in ("tenant", "degraded", "cached", "empty")): point
            for point in metrics[name].data.data_points
        }

    of_tokens = points("docmem.packet.tokens")
    assert of_tokens["acme", "", False, False].sum == packet.tokens
    # What can't be a tenant is none, however long it is, and whatever stands in it.
    assert {key: point.count for key, point in of_tokens.items()} == {
        ("acme", "", False, False): 1,
        ("acme", "bad_input", False, True): 1,
        ("?", "invalid_name", False, True): 2,
    }
    assert points("docmem.packet.duration").keys() == points("docmem.packet.candidates").keys() == of_tokens.keys()
    assert subject() not in data.to_json()
    provider.shutdown()
