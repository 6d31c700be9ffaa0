"""metrics: counts by tenant, never content."""

from __future__ import annotations

import logging
import shutil
import socket
import sys
import urllib.request
from contextlib import closing

import pytest

from docmem import repository
from docmem.config import Settings
from docmem.errors import ConfigError
from docmem.files import render_memory
from docmem_sync import metrics
from docmem_sync.sync import sync_all
from tests.support.cli import Shell
from tests.support.models import Counting
from tests.support.repos import memory, put
from tests.support.waiting import wait_until
from tests.support.watching import watching

pytestmark = pytest.mark.usefixtures("tenant")


@pytest.fixture
def port() -> int:
    """One that is free."""
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def scraped(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


def test_a_watch_counts_by_tenant_and_says_nothing_of_what_is_remembered(indexed: Settings, port: int) -> None:
    counted, stop = metrics.served("127.0.0.1", port)
    try:
        with watching(indexed, embedder=Counting(), metrics=counted):
            item = memory("Likes oolong.")
            put(indexed, "acme", {item.path: render_memory(item), "knowledge/x.md": b"---\ntitle: [oolong\n---\n"})
            wanted = (
                'docmem_syncs_total{outcome="ok",tenant="acme"}',
                'docmem_quarantined_files{tenant="acme"} 1.0',
                'docmem_embedded_texts_total{tenant="acme"}',
            )
            wait_until(lambda: all(line in scraped(port) for line in wanted))
            text = scraped(port)
    finally:
        stop()
    assert 'docmem_synced_files_total{change="upsert",tenant="acme"}' in text
    assert "docmem_sync_seconds_count" in text
    assert "oolong" not in text
    assert item.subject not in text


def test_a_tenant_that_goes_away_takes_its_series_along(
    indexed: Settings, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("docmem_sync.due.GLANCE_SECONDS", 0.05)
    gone = repository.create(indexed, "gone")
    counted, stop = metrics.served("127.0.0.1", port)
    try:
        with watching(indexed, embedder=Counting(), metrics=counted):
            put(indexed, "gone", {"knowledge/x.md": b"x\n"})
            wait_until(lambda: 'docmem_embedded_texts_total{tenant="gone"}' in scraped(port))
            shutil.rmtree(gone.git_dir)
            wait_until(lambda: 'tenant="gone"' not in scraped(port))
            assert 'tenant="acme"' in scraped(port)
    finally:
        stop()


def test_each_sync_and_each_turn_of_embedding_is_a_line_of_counts_in_the_log(
    indexed: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    item = memory("Likes oolong.")
    put(indexed, "acme", {item.path: render_memory(item)})
    with caplog.at_level(logging.INFO, logger="docmem.metrics"):
        sync_all(indexed, ["acme", "nobody"], embedder=Counting(), jobs=1)
    lines = [record.getMessage() for record in caplog.records if record.name == "docmem.metrics"]
    assert sorted(line.split(" seconds=")[0] for line in lines) == [  # tenants are synced at once
        "embed tenant=acme texts=1 left=False away=False",
        "sync tenant=acme outcome=ok upserts=1 deletes=0 quarantined=0 reconciled=False",
        "sync tenant=nobody outcome=not_found upserts=0 deletes=0 quarantined=0 reconciled=False",
    ]


def test_a_port_that_is_taken_and_a_missing_package_are_said(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _, stop = metrics.served("127.0.0.1", port)
    try:
        with pytest.raises(ConfigError, match="can't be served at"):
            metrics.served("127.0.0.1", port)
    finally:
        stop()
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ConfigError, match="isn't installed"):
        metrics.served("127.0.0.1", port)


def test_metrics_without_a_watch_are_wrong_usage(shell: Shell) -> None:
    assert shell("sync", "--metrics-port", "19187").code == 2
