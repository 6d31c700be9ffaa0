"""What breaks around the injector: each turn goes on, the reason is said, and memory comes back by itself.

How long a turn is held up is measured by evals/faults.py; here a bound only tells a deadline from none.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from docmem import inject, postgres, repository
from docmem.assembly import Request
from docmem.config import Settings
from docmem.embedding import LitellmEmbedder
from docmem.errors import ServerUnavailable
from docmem.index import CONNECTIONS, Busy, Index, Reader, Slow
from docmem.inject import Injector
from docmem.layout import profile_path
from docmem.packet import Packet
from docmem_sync import status
from tests.support.model_server import Fails, Hangs, ModelServer, Raw, Scripted
from tests.support.postgres import reachable_root
from tests.support.repos import memory, subject
from tests.support.waiting import wait_until
from tests.test_inject import PROFILE, serve, shown

LONG = 5.0
"""Seconds of a turn that had no deadline."""


@pytest.fixture(scope="module")
def mine() -> Iterator[Settings]:
    """A server of the tests' own, to be stopped, killed and spoilt, with one memory served."""
    with reachable_root() as root:
        settings = replace(root, embedding_model="none", secret="a secret for tests")
        repository.create(settings, "acme")
        serve(settings, memory("Plans Porto."), files={profile_path(subject()): PROFILE})
        yield settings
        _signal(settings, signal.SIGCONT)


@pytest.fixture
def other(mine: Settings) -> str:
    """Another tenant on that server, with a memory of its own."""
    if "other" not in repository.tenants(mine):
        repository.create(mine, "other")
        serve(mine, memory("Plans Lisbon.", tenant="other"), tenant="other")
    return "other"


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What broke is tried again ten times as often, or most of a test would be to wait for that."""
    monkeypatch.setattr(inject, "_RETRY_SECONDS", 0.05)


def _signal(settings: Settings, number: int) -> None:
    """Send a signal to the server and all its backends."""
    data = postgres._existing_data(settings)
    assert data is not None
    with contextlib.suppress(FileNotFoundError):
        postmaster = int((data / "postmaster.pid").read_text().split()[0])
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(postmaster)], capture_output=True, text=True, check=False
        )
        for pid in [postmaster, *map(int, listed.stdout.split())]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def _turns(injector: Injector, count: int = 8) -> list[Packet]:
    """Turns with a goal of their own each, none of which is held up for long."""
    made = []
    for number in range(count):
        started = time.monotonic()
        made.append(injector.packet("acme", "ana", f"Porto {number}"))
        assert time.monotonic() - started < LONG
    return made


def _goes_well(injector: Injector) -> None:
    wait_until(lambda: "Plans Porto." in shown(injector.packet("acme", "ana", "Porto")))


def test_a_server_that_is_stopped_holds_no_turn_up_and_is_found_again(mine: Settings) -> None:
    with Injector(mine, timeout=0.2, files=False) as injector:
        _goes_well(injector)
        wait_until(lambda: injector.hears)  # an answer to the listener while it starts would tell that Postgres is well
        _signal(mine, signal.SIGSTOP)
        assert _turns(injector) == [Packet(degraded="server_unavailable")] * 8
        _signal(mine, signal.SIGCONT)
        _goes_well(injector)


def test_while_the_server_is_away_the_files_serve(mine: Settings) -> None:
    with Injector(mine, timeout=0.2) as injector:
        _goes_well(injector)
        _signal(mine, signal.SIGSTOP)
        wait_until(lambda: injector.packet("acme", "ana", "Porto?").degraded == "files")
        packet = injector.packet("acme", "ana", "Porto?")
        assert shown(packet) == ["Ana", "pt-PT", "lead", "two adults", "Plans Porto."]
        assert {span.revision for span in packet.spans} == {repository.open(mine, "acme").head()}
        assert injector.packet("acme", "ana", "How do I sharpen a chainsaw?").spans[-1].block == "persona"
        assert injector.packet("acme", "stranger", "Porto", blocks=["facts"]).text == ""
        _signal(mine, signal.SIGCONT)
        wait_until(lambda: injector.packet("acme", "ana", "Porto").degraded is None)


def test_a_pool_that_takes_long_to_open_is_waited_for_by_the_next_tries(mine: Settings) -> None:
    with closing(Reader(mine, timeout=0.05)) as reader:
        _signal(mine, signal.SIGSTOP)
        for _ in range(3):
            with pytest.raises(ServerUnavailable):
                reader.read("acme", Index.tenant)
            reader.reset()
        opening = reader._opened
        _signal(mine, signal.SIGCONT)
        assert opening is not None
        assert reader.read("acme", Index.tenant, seconds=LONG) is not None
        assert reader._pool(LONG) is opening.result()


def test_a_read_that_a_close_overtakes_is_guarded_and_leaves_no_thread(mine: Settings) -> None:
    reader = Reader(mine, timeout=LONG)
    assert reader.read("acme", Index.tenant)
    reader.close()
    watchdog = reader._watchdog
    with (
        pytest.raises(psycopg.OperationalError),
        psycopg.connect(postgres.start(mine).dsn("reader"), autocommit=True) as connection,
        watchdog.guard(connection, time.monotonic()),
    ):
        connection.execute("SELECT pg_sleep(60)")
    wait_until(lambda: watchdog._thread is None)


def test_a_server_that_is_killed_is_started_again(mine: Settings) -> None:
    with Injector(mine, timeout=0.2, files=False) as injector:
        _goes_well(injector)
        _signal(mine, signal.SIGKILL)
        # `busy`: it was there again when the turn's time was nearly over.
        assert {packet.degraded for packet in _turns(injector)} <= {"server_unavailable", "busy", None}
        _goes_well(injector)


def test_connections_that_are_all_taken_hold_no_turn_up(mine: Settings) -> None:
    server = postgres.start(mine)
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(psycopg.OperationalError):
            for _ in range(500):
                stack.enter_context(psycopg.connect(server.dsn("owner")))
        with Injector(mine, timeout=0.2, files=False) as injector:
            assert {packet.degraded for packet in _turns(injector)} == {"server_unavailable"}
            assert not status.status(mine, ["acme"])["server"]["reachable"]
            stack.close()
            _goes_well(injector)


GRANT = "GRANT SELECT ON docmem.memory TO docmem_reader"
BACK = "DROP VIEW docmem.memory; ALTER TABLE docmem.kept RENAME TO memory"
SPOILS = {
    "table gone": ("ALTER TABLE docmem.memory RENAME TO gone", "ALTER TABLE docmem.gone RENAME TO memory"),
    "role revoked": (
        "REVOKE SELECT ON docmem.memory FROM docmem_reader",
        GRANT,
    ),
    "garbage settings": (
        "ALTER TABLE docmem.tenant_config RENAME TO kept; CREATE VIEW docmem.tenant_config AS SELECT tenant_id, "
        "'[1]'::jsonb AS config, '[]'::jsonb AS language, '{}'::text[] AS languages, '\"x\"'::jsonb AS retention, "
        "'7'::jsonb AS budgets, 'null'::jsonb AS weights FROM docmem.kept; "
        "GRANT SELECT ON docmem.tenant_config TO docmem_reader",
        "DROP VIEW docmem.tenant_config; ALTER TABLE docmem.kept RENAME TO tenant_config",
    ),
    "garbage rows": (
        "ALTER TABLE docmem.memory RENAME TO kept; CREATE VIEW docmem.memory AS SELECT ctid, tenant_id, id, path, "
        "revision, subject, agent, kind, NULL::text AS text, thread, turns, 'x'::text AS importance, valid_from, "
        "valid_until, expires, created_at, tsv, meta, projection_hash FROM docmem.kept; "
        "GRANT SELECT ON docmem.memory TO docmem_reader",
        BACK,
    ),
}


@pytest.mark.parametrize("name", SPOILS)
def test_an_index_that_is_spoilt_holds_no_turn_up_and_its_mending_is_noticed(mine: Settings, name: str) -> None:
    spoil, mend = SPOILS[name]
    with (
        psycopg.connect(postgres.start(mine).dsn("owner"), autocommit=True) as owner,
        Injector(mine, timeout=1.0, files=False) as injector,
    ):
        _goes_well(injector)
        owner.execute(spoil.encode())
        try:
            # Settings that make no sense are the defaults.
            fine = {None} if name == "garbage settings" else set()
            assert {packet.degraded for packet in _turns(injector)} <= {"index_failed", "error"} | fine
        finally:
            owner.execute(mend.encode())
        _goes_well(injector)


def test_a_tenant_whose_rows_are_garbage_shuts_out_nobody_else(mine: Settings, other: str) -> None:
    with (
        psycopg.connect(postgres.start(mine).dsn("sync"), autocommit=True) as sync,
        Injector(mine, timeout=30, files=False) as injector,
    ):
        _goes_well(injector)
        with sync.transaction():
            sync.execute("SELECT set_config('app.current_tenant', 'acme', true)")
            sync.execute("UPDATE docmem.tenant_config SET language = 'klingon'")
        try:
            assert {packet.degraded for packet in _turns(injector)} == {"index_failed"}
            assert shown(injector.packet(other, "ana", "Lisbon")) == ["Plans Lisbon."]
        finally:
            with sync.transaction():
                sync.execute("SELECT set_config('app.current_tenant', 'acme', true)")
                sync.execute("UPDATE docmem.tenant_config SET language = 'english'")
        _goes_well(injector)


def test_a_tenant_whose_rows_turned_to_garbage_while_the_server_was_away_keeps_nobody_else_out(
    mine: Settings, other: str
) -> None:
    with (
        psycopg.connect(postgres.start(mine).dsn("sync"), autocommit=True) as sync,
        Injector(mine, timeout=0.2, files=False) as injector,
    ):

        def attributes(value: str) -> None:
            with sync.transaction():
                sync.execute("SELECT set_config('app.current_tenant', 'acme', true)")
                sync.execute("UPDATE docmem.profile SET attributes = %s", [value])

        _goes_well(injector)
        _signal(mine, signal.SIGSTOP)
        assert {packet.degraded for packet in _turns(injector)} == {"server_unavailable"}
        _signal(mine, signal.SIGCONT)
        attributes("[1]")
        try:
            wait_until(lambda: injector.packet("acme", "ana", "Porto").degraded == "error")
            wait_until(lambda: shown(injector.packet(other, "ana", "Lisbon")) == ["Plans Lisbon."])
        finally:
            attributes('{"party_size": "two adults"}')
        _goes_well(injector)


def _waited(injector: Injector, caplog: pytest.LogCaptureFixture, *tenants: str) -> bool:
    """Whether a turn without memory waited to find that out, as against those that are told at once."""
    caplog.clear()
    assert {injector.packet(tenant, "ana", "Porto?").degraded for tenant in tenants} <= {"slow", "locked"}
    return any("no packet from the index" in line for line in caplog.messages)


def test_a_tenant_whose_rows_take_too_long_is_shut_out_alone_and_no_turn_waits_to_find_out(
    mine: Settings, other: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    fresh = Injector._fresh

    def noted(injector: Injector, request: Request, began: float, key: tuple[object, ...]) -> Packet:
        asked.append(began)
        return fresh(injector, request, began, key)

    monkeypatch.setattr(Injector, "_fresh", noted)
    rows = "SELECT ctid, * FROM docmem.kept WHERE tenant_id <> 'acme' OR pg_sleep(60) IS NULL"
    spoil = f"ALTER TABLE docmem.memory RENAME TO kept; CREATE VIEW docmem.memory AS {rows}; {GRANT}"
    with (
        psycopg.connect(postgres.start(mine).dsn("owner"), autocommit=True) as owner,
        Injector(mine, timeout=0.6, files=False) as injector,
    ):
        _goes_well(injector)
        owner.execute(spoil.encode())
        try:
            wait_until(lambda: not _waited(injector, caplog, "acme"))
            asked.clear()
            while len(asked) < 4:  # aside
                assert not _waited(injector, caplog, "acme")
            wait_until(lambda: shown(injector.packet(other, "ana", "Lisbon")) == ["Plans Lisbon."])
        finally:
            owner.execute(BACK.encode())
        _goes_well(injector)


def test_a_table_that_is_locked_for_long_is_found_out_aside_for_all_tenants(
    mine: Settings, other: str, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        psycopg.connect(postgres.start(mine).dsn("owner")) as owner,
        Injector(mine, timeout=0.6, files=False) as injector,
    ):
        _goes_well(injector)
        owner.execute("LOCK docmem.memory")
        assert _waited(injector, caplog, "acme")
        _waited(injector, caplog, other)
        assert injector._breakers.shut(None) == "locked"
        assert not _waited(injector, caplog, "acme", other)
        owner.rollback()
        _goes_well(injector)
        wait_until(lambda: shown(injector.packet(other, "ana", "Lisbon")) == ["Plans Lisbon."])


def test_a_subject_whose_rows_take_too_long_is_shut_out_alone(mine: Settings, caplog: pytest.LogCaptureFixture) -> None:
    bo = subject("acme", "bo")
    rows = f"SELECT ctid, * FROM docmem.kept WHERE subject <> '{bo}' OR pg_sleep(60) IS NULL"  # noqa: S608 a hash
    spoil = f"ALTER TABLE docmem.profile RENAME TO kept; CREATE VIEW docmem.profile AS {rows}; {GRANT}"
    with (
        psycopg.connect(postgres.start(mine).dsn("owner"), autocommit=True) as owner,
        Injector(mine, timeout=0.2, files=False) as injector,
    ):
        serve(mine, files={profile_path(bo): PROFILE})
        _goes_well(injector)
        owner.execute(spoil.replace(GRANT, GRANT.replace("memory", "profile")).encode())
        try:
            caplog.clear()
            for number in range(4):
                assert injector.packet("acme", "bo", f"Porto {number}").degraded == "slow"
                assert injector.packet("acme", "ana", f"Porto {number}").degraded is None
            assert sum("no packet from the index" in line for line in caplog.messages) == 2
        finally:
            owner.execute(BACK.replace("memory", "profile").encode())
        wait_until(lambda: injector.packet("acme", "bo", "Porto").degraded is None)


def test_runs_that_cant_be_counted_cost_no_packet_and_soon_no_time(
    mine: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        psycopg.connect(postgres.start(mine).dsn("owner")) as owner,
        Injector(mine, timeout=1.0, files=False) as injector,
    ):
        _goes_well(injector)
        owner.execute("LOCK docmem.trace")
        for number in range(8):
            assert injector.next_run("acme") is None
            assert "Plans Porto." in shown(injector.packet("acme", "ana", f"Porto {number}"))
        assert caplog.messages.count("a run goes without a number: locked") == 2
        owner.rollback()
        wait_until(lambda: injector.next_run("acme"))


def test_runs_of_one_tenant_after_the_other_that_cant_be_counted_shut_the_table_for_all(
    mine: Settings, other: str, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        psycopg.connect(postgres.start(mine).dsn("owner")) as owner,
        Injector(mine, timeout=1.0, files=False) as injector,
    ):
        _goes_well(injector)
        owner.execute("LOCK docmem.trace")
        assert [injector.next_run(tenant) for tenant in ("acme", other) * 3] == [None] * 6
        assert caplog.messages.count("a run goes without a number: locked") == 2
        owner.rollback()
        wait_until(lambda: injector.next_run("acme") and injector.next_run(other))


def test_what_the_number_of_a_run_took_its_packet_has_the_less(mine: Settings) -> None:
    took: list[float] = []
    rows = "SELECT ctid, * FROM docmem.kept WHERE pg_sleep(60) IS NULL"
    spoil = (
        "CREATE FUNCTION docmem.asleep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); END';"
        "CREATE TRIGGER asleep BEFORE INSERT ON docmem.trace FOR EACH ROW EXECUTE FUNCTION docmem.asleep();"
        f"ALTER TABLE docmem.memory RENAME TO kept; CREATE VIEW docmem.memory AS {rows}; {GRANT}"
    )
    with (
        psycopg.connect(postgres.start(mine).dsn("owner"), autocommit=True) as owner,
        Injector(mine, timeout=1.0, files=False, observe=lambda event: took.append(event.seconds)) as injector,
    ):
        _goes_well(injector)
        owner.execute(spoil.encode())
        try:
            assert injector.next_run("acme") is None
            assert injector.packet("acme", "ana", "Porto, said anew").degraded == "slow"
        finally:
            owner.execute(f"DROP FUNCTION docmem.asleep CASCADE; {BACK}".encode())
    assert took[-1] < 0.8, "of 1 s the number took 0.225"


def test_connections_that_are_all_in_use_are_no_outage_while_one_of_them_is_answered(mine: Settings) -> None:
    first, end = threading.Event(), threading.Event()

    def held(until: threading.Event) -> Callable[[Index], object]:
        return lambda _: until.wait(LONG)

    with closing(Reader(mine, timeout=0.1)) as reader, ThreadPoolExecutor(10) as threads:
        reader.open(seconds=LONG)
        places = [first, *[end] * (CONNECTIONS - 1)]
        holding = [threads.submit(reader.read, "acme", held(until), seconds=LONG) for until in places]
        wait_until(lambda: not reader._gate._free)
        with pytest.raises(ServerUnavailable) as error:
            reader.read("acme", lambda _: None)
        assert not isinstance(error.value, Slow)
        with pytest.raises(Busy):  # it waited for less than a turn does, and so knows less
            reader.read("acme", lambda _: None, seconds=0.05)
        waiting = [threads.submit(reader.read, "acme", held(end), seconds=0.5) for _ in range(2)]
        first.set()
        wait_until(lambda: any(each.done() for each in waiting))
        end.set()
        for each in holding:
            each.result()
        assert [type(each.exception()) for each in waiting if each.exception()] == [Busy]


def test_places_that_signals_took_along_are_there_again_with_the_next_pool(mine: Settings) -> None:
    with closing(Reader(mine, timeout=LONG)) as reader:
        assert reader.read("acme", Index.tenant)
        reader._gate._free = 0
        with pytest.raises(ServerUnavailable):
            reader.read("acme", Index.tenant, seconds=0.05)
        reader.reset()
        assert reader.read("acme", Index.tenant)


STARVED = """
import asyncio, json, resource, sys, threading, time
from pathlib import Path
from docmem.config import Settings
from docmem.inject import Injector

given = json.loads(sys.argv[1])
with Injector(Settings(**{**given, "root": Path(given["root"])}), timeout=30) as injector:
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + 2**30, resource.RLIM_INFINITY))
    threading.stack_size(2**31 - 2**20)  # of which no thread can be started
    for number in range(3):
        assert not injector.packet("acme", "ana", f"Porto {number}", run=1).spans
        assert not asyncio.run(injector.apacket("acme", "ana", f"Porto {number}", run=1)).spans
        assert injector.next_run("acme") is None
    threading.stack_size(0)
    for _ in range(2):
        packet = injector.packet("acme", "ana", "Porto", run=1)
        assert (packet.degraded, "Plans Porto." in packet.text) == (None, True), packet
        assert asyncio.run(injector.apacket("acme", "ana", "Porto", run=1)).spans
    assert injector.flush(seconds=30)
    print(injector.lost)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory that threads may take")
def test_a_process_that_can_start_no_thread_goes_without_memory_until_it_can(mine: Settings) -> None:
    server = postgres.start(mine)
    given = json.dumps({"root": str(mine.root), "dsn": server.dsn("reader"), "embedding_model": "none"})
    ran = subprocess.run([sys.executable, "-c", STARVED, given], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "0\n"), ran.stderr


class Asleep:
    """An embedder that doesn't answer in a turn."""

    model, dimension = "asleep", 3
    wake = threading.Event()

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.query(text) for text in texts]

    def query(self, text: str) -> list[float]:
        self.wake.wait()
        return [1.0, 0.0, 0.0]


def test_an_embedder_and_a_server_that_are_both_away_share_one_deadline(mine: Settings) -> None:
    with Injector(mine, embedder=Asleep(), timeout=1.0, embedding_timeout=1.5, files=False) as injector:
        wait_until(lambda: injector.packet("acme", "ana").spans)
        _signal(mine, signal.SIGSTOP)
        started = time.monotonic()
        assert injector.packet("acme", "ana", "Porto").degraded == "server_unavailable"
        assert time.monotonic() - started < 2.2
        _signal(mine, signal.SIGCONT)
        Asleep.wake.set()


def test_a_runs_number_and_its_packet_share_one_deadline_and_one_breaker(mine: Settings) -> None:
    with Injector(mine, timeout=2.0, files=False) as injector:
        _goes_well(injector)
        wait_until(lambda: injector.hears)  # an answer to the listener while it starts would tell that Postgres is well
        _signal(mine, signal.SIGSTOP)
        try:
            started = time.monotonic()
            assert injector.next_run("acme") is None
            assert injector.packet("acme", "ana", "Porto, said anew").degraded == "server_unavailable"
            assert time.monotonic() - started < 2.0
            started = time.monotonic()
            assert injector.next_run("acme") is None
            assert injector.packet("acme", "ana", "Porto, said anew").degraded == "server_unavailable"
            assert time.monotonic() - started < 0.2
        finally:
            _signal(mine, signal.SIGCONT)
        _goes_well(injector)
        wait_until(lambda: injector.next_run("acme"))


# ------------------------------------------------------------------------------------------ the embedding's provider


def _vector(numbers: list[Any]) -> Raw:
    data = [{"object": "embedding", "index": 0, "embedding": numbers}]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return Raw(json.dumps({"object": "list", "model": "m", "data": data, "usage": usage}).encode())


@pytest.mark.parametrize(
    "answer",
    [
        Hangs(),
        Fails(500),
        Fails(429),
        _vector([1.0, 0.0]),
        _vector([float("nan"), 1.0, 0.0]),
        Raw(b"<html>"),
    ],
    ids=["hangs", "500", "429", "wrong dimension", "NaN", "no JSON"],
)
def test_a_provider_that_fails_leaves_the_words_and_it_is_said(
    mine: Settings, answer: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer([_vector([1.0, 0.0, 0.0]), answer]).running() as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        model = LitellmEmbedder("openai/test", timeout=20)
        assert model.dimension == 3
        with Injector(mine, embedder=model, timeout=30, embedding_timeout=0.3, files=False) as injector:
            started = time.monotonic()
            packet = injector.packet("acme", "ana", "Porto, said once more")
            assert time.monotonic() - started < LONG
    assert packet.degraded == "embedder_failed"
    assert "Plans Porto." in shown(packet)


def test_no_turn_waits_for_an_embedder_to_be_loaded(mine: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer([_vector([1.0, 0.0, 0.0])] * 50).running() as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        with Injector(mine, embedder=LitellmEmbedder("openai/fresh"), timeout=30, files=False) as injector:
            packet = injector.packet("acme", "ana", "Porto")
            assert (packet.degraded, "Plans Porto." in shown(packet)) == ("embedder_failed", True)
            wait_until(lambda: injector.packet("acme", "ana", "Porto").degraded is None)


def test_an_embedder_of_the_hosts_that_raises_whatever_it_likes_leaves_the_words_at_once(mine: Settings) -> None:
    class Breaks(Asleep):
        def query(self, text: str) -> list[float]:
            raise RuntimeError(text)

    with Injector(mine, embedder=Breaks(), timeout=30, embedding_timeout=30, files=False) as injector:
        started = time.monotonic()
        packets = _turns(injector)
        assert time.monotonic() - started < LONG
        assert {packet.degraded for packet in packets} == {"embedder_failed"}
        assert all("Plans Porto." in shown(packet) for packet in packets)
