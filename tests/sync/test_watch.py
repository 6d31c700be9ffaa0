"""watch: a commit is served without anybody asking."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from docmem import db, git, remote, repository
from docmem.config import Settings
from docmem.files import render_memory
from docmem.git import process
from docmem.postgres import Server
from docmem_sync.due import GLANCE_SECONDS, Due
from docmem_sync.sync import LOCK_SECONDS, sync_all, sync_tenant
from tests.support.index import rows
from tests.support.models import Counting
from tests.support.repos import NOW, memory, put
from tests.support.waiting import wait_until
from tests.support.watching import watching

pytestmark = pytest.mark.usefixtures("tenant")


def served(settings: Settings, tenant: str = "acme") -> list[str]:
    found = rows(settings, "SELECT text FROM docmem.memory ORDER BY text", tenant=tenant)
    return [row["text"] for row in found]


def test_what_is_there_is_synced_at_once_and_each_commit_as_it_comes(indexed: Settings) -> None:
    one, two = memory("One.", number=1), memory("Two.", number=2)
    put(indexed, "acme", {one.path: render_memory(one)})
    sync_tenant(indexed, "acme")
    with watching(indexed) as done:
        put(indexed, "acme", {two.path: render_memory(two)})
        wait_until(lambda: served(indexed) == ["One.", "Two."])
        repository.create(indexed, "other")
        wait_until(lambda: any(one.tenant == "other" for one in done))
    assert len([one for one in done if one.tenant == "acme"]) == 1


def test_what_others_push_to_an_origin_is_served_without_anybody_asking(
    indexed: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("docmem_sync.origins.LOOK_SECONDS", 0.05)
    host, one = tmp_path / "host.git", memory("One.", number=1)
    git.init(host)
    store = repository.open(indexed, "acme")
    with store.locked():
        remote.connect(store.git_dir, str(host), secret=indexed.secret_bytes)
    other = repository.create(replace(indexed, root=tmp_path / "other"), "acme", origin=str(host))
    with watching(indexed):
        with other.locked():
            other.commit(other.head(), {one.path: render_memory(one)}, message="One\n", now=NOW)
        wait_until(lambda: served(indexed) == ["One."])
        away = host.with_name("away.git")
        host.rename(away)
        wait_until(lambda: remote.state(store.git_dir).trouble is not None)
        away.rename(host)
        wait_until(lambda: remote.state(store.git_dir).trouble is None)
    assert len([record for record in caplog.records if "acme: origin: " in record.getMessage()]) == 1


def test_sync_and_commits_do_not_set_each_other_off(indexed: Settings) -> None:
    """Case F16."""
    sync_tenant(indexed, "acme")
    with watching(indexed) as done:
        for number in range(5):
            item = memory(f"{number}.", number=number)
            put(indexed, "acme", {item.path: render_memory(item)})
        wait_until(lambda: len(served(indexed)) == 5)
    assert len(done) <= 5
    assert all(one.upserts for one in done)


LOCK = "SELECT true FROM docmem.channel WHERE tenant_id = %(tenant)s FOR UPDATE"


@contextmanager
def held(settings: Settings, tenant: str, statement: str) -> Iterator[None]:
    """Another sync session that doesn't end its transaction."""
    with closing(db.connect(settings, "sync")) as connection, db.tenant_transaction(connection, tenant) as cursor:
        assert cursor.execute(statement, {"tenant": tenant}).fetchall()
        yield


def test_a_tenant_that_somebody_else_syncs_holds_up_nobody_and_is_served_once_they_end(
    indexed: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("docmem_sync.due.PASS_SECONDS", 3600.0)
    repository.create(indexed, "other")
    for tenant in ("acme", "other"):
        sync_tenant(indexed, tenant)
    item = memory("Likes tea.")
    with watching(indexed, jobs=1) as done:
        with held(indexed, "acme", LOCK):
            put(indexed, "acme", {item.path: render_memory(item)})
            started = time.monotonic()
            for number in range(5):
                other = memory(f"{number}.", tenant="other", number=number)
                put(
                    indexed,
                    "other",
                    {other.path: render_memory(other)},
                )
                wait_until(lambda: len(served(indexed, "other")) == number + 1)  # noqa: B023 it waits within the round
            assert time.monotonic() - started < LOCK_SECONDS
            assert served(indexed) == []
        wait_until(lambda: served(indexed) == ["Likes tea."])
    assert [one.error for one in done if one.error] == []


def test_a_sync_that_takes_long_holds_up_no_commit_of_another(
    indexed: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("docmem_sync.watch.LONG_SECONDS", 0.1)
    repository.create(indexed, "other")
    item, other = memory("Likes tea."), memory("Likes tea.", tenant="other")
    put(indexed, "acme", {item.path: render_memory(item)})
    for tenant in ("acme", "other"):
        sync_tenant(indexed, tenant)
    with watching(indexed, jobs=1):
        with held(indexed, "acme", "SELECT true FROM docmem.memory WHERE tenant_id = %(tenant)s FOR UPDATE"):
            put(indexed, "acme", {item.path: None})
            put(indexed, "other", {other.path: render_memory(other)})
            wait_until(lambda: served(indexed, "other") == ["Likes tea."])
            assert served(indexed) == ["Likes tea."]
        wait_until(lambda: served(indexed) == [])


def test_who_only_reads_can_keep_no_tenant_from_being_synced(indexed: Settings) -> None:
    """An analyst's session may set any tenant, and take any advisory lock."""
    item = memory("Likes tea.")
    sync_tenant(indexed, "acme")
    put(indexed, "acme", {item.path: render_memory(item)})
    trace = (
        "INSERT INTO docmem.trace (tenant_id, agent, run, packet, starts, ends, block, memory, path, revision, subject,"
        " at) VALUES ('acme', 'default', 1, 'p', 0, 1, 'facts', 'm', 'x', 'r', 's', now() - interval '1 year')"
        " RETURNING run"
    )
    rows(indexed, trace)
    connection = db.connect(indexed, "reader")
    with closing(connection), db.tenant_transaction(connection, "acme") as cursor:
        with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
            cursor.execute(LOCK, {"tenant": "acme"})
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('docmem.sync:acme', 0))")
        with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
            cursor.execute("SELECT FROM docmem.trace WHERE tenant_id = 'acme' FOR UPDATE")
        assert sync_all(indexed, ["acme"])[0].outcome == "ok"
    assert sync_all(indexed, ["acme"])[0].outcome == "unchanged"
    assert rows(indexed, "SELECT run FROM docmem.trace") == []


def test_a_poke_folder_that_is_deleted_is_watched_anew_and_that_is_said(
    indexed: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("docmem_sync.due.PASS_SECONDS", 3600.0)
    sync_tenant(indexed, "acme")
    with watching(indexed):
        for number in range(3):
            item = memory(f"{number}.", number=number)
            put(indexed, "acme", {item.path: render_memory(item)})
            wait_until(lambda: len(served(indexed)) == number + 1)  # noqa: B023 it waits within the round
            monkeypatch.setattr("docmem_sync.due.GLANCE_SECONDS", 3600.0)  # from now on only pokes wake it
            if number < 2:
                shutil.rmtree(indexed.root / "poke")
                wait_until((indexed.root / "poke").exists)
    assert len([one for one in caplog.records if "is watched anew" in one.getMessage()]) == 2


def test_a_term_signal_ends_it_in_order(indexed: Settings) -> None:
    code = (
        "import sys; from pathlib import Path; from docmem.config import Settings\n"
        "from docmem_sync.watch import watch\n"
        "root, dsn, sync_dsn, owner_dsn = sys.argv[1:]\n"
        "watch(Settings(root=Path(root), dsn=dsn, sync_dsn=sync_dsn, owner_dsn=owner_dsn), report=print)\n"
        "print('ended')\n"
    )
    arguments = [str(indexed.root), indexed.dsn, indexed.sync_dsn, indexed.owner_dsn]
    process = subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    wait_until(lambda: rows(indexed, "SELECT 1 AS there FROM docmem.sync_state"))
    os.kill(process.pid, signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert out.endswith("ended\n")


def test_a_branch_that_moves_without_a_poke_is_seen_by_its_file(
    indexed: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store without our hook, and a person's own git; also where the refs are packed."""
    repo = repository.open(indexed, "acme")
    monkeypatch.setattr("docmem_sync.due.PASS_SECONDS", 3600.0)
    monkeypatch.setattr("docmem_sync.due.GLANCE_SECONDS", 0.05)
    sync_tenant(indexed, "acme")
    with watching(indexed) as done:
        for number in range(2):
            item = memory(f"{number}.", number=number)
            with repo.locked():
                git.commit(
                    repo.git_dir, base=repo.head(), files={item.path: render_memory(item)}, message="edit", when=NOW
                )
            wait_until(lambda: len(served(indexed)) == number + 1)  # noqa: B023 it waits within the round
            process.run(repo.git_dir, "pack-refs", "--all")
    assert [one.upserts for one in done] == [1, 1]


def test_a_model_that_hangs_holds_up_no_row(indexed: Settings) -> None:
    go_on = threading.Event()

    def wait() -> None:
        go_on.wait(30)

    model = Counting(before=wait)
    with watching(indexed, embedder=model):
        for number in range(2):
            item = memory(f"{number}.", number=number)
            put(indexed, "acme", {item.path: render_memory(item)})
            wait_until(lambda: len(served(indexed)) == number + 1)  # noqa: B023 it waits within the round
        assert rows(indexed, "SELECT id FROM docmem.memory_vector") == []
        go_on.set()
        wait_until(lambda: len(rows(indexed, "SELECT id FROM docmem.memory_vector")) == 2)


def test_a_connection_that_breaks_is_made_again_and_nothing_is_left_out(
    indexed: Settings, monkeypatch: pytest.MonkeyPatch, postgres_server: Server, database: str
) -> None:
    monkeypatch.setattr("docmem_sync.watch.AWAY_SECONDS", 0.05)
    with watching(indexed) as done:
        for number in range(3):
            item = memory(f"{number}.", number=number)
            put(indexed, "acme", {item.path: render_memory(item)})
            wait_until(lambda: len(served(indexed)) == number + 1)  # noqa: B023 it waits within the round
            with closing(psycopg.connect(postgres_server.dsn("admin", database=database), autocommit=True)) as admin:
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND application_name = 'docmem-sync'"
                )
    assert not [one.error for one in done if one.error]


def test_a_pass_over_all_goes_a_few_at_a_time_and_commits_go_first(settings: Settings, tenant: str) -> None:
    for number in range(9):
        repository.create(settings, f"t{number}")
    due = Due(settings, ())

    def next(*poked: str, at_work: Collection[str] = ()) -> list[str]:
        return due.next(poked, room=4, pass_room=2, at_work=at_work)

    assert next("t8") == ["t8"]
    assert next() == ["acme", "t0"]
    assert next("t7", "t6", at_work={"t6"}) == ["t7"]
    assert next() == ["t6"]
    assert next(at_work={"t1"}) == ["t2", "t3"]
    due.again("t3", pause=0)
    due.again("t4", pause=60)
    assert next() == ["t3"]
    assert next() == ["t5", "t6"]
    assert due.next(["t0"], room=0, pass_room=0) == []
    assert 0 < due.pause() <= GLANCE_SECONDS
