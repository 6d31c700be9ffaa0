"""A real PgBouncer in transaction mode in front of a server: each transaction may run on another session."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from docmem.config import Settings
from docmem.errors import ServerUnavailable

_SECONDS = 10.0


def program() -> str | None:
    """Where PgBouncer is installed; None where it isn't."""
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")


@contextmanager
def proxied(settings: Settings, *, sessions: int = 2) -> Iterator[Settings]:
    """`settings` whose connection strings lead through a PgBouncer with so many sessions a user. Ends it afterwards."""
    path = program()
    assert path is not None
    dsns = {role: urlsplit(dsn) for role, dsn in _given(settings).items()}
    folder = Path(tempfile.mkdtemp(prefix="docmem-proxy-"))
    port = _free_port()
    process = None
    try:
        _configure(folder, port, dsns, sessions)
        command = [path, "--quiet", str(folder / "pgbouncer.ini")]
        if os.getuid() == 0:  # it doesn't run as root
            command[1:1] = ["--user", "nobody"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _wait(port, process)
        through = {role: _through(dsn, port) for role, dsn in dsns.items()}
        yield replace(settings, dsn=through["reader"], sync_dsn=through["sync"], owner_dsn=through["owner"])
    finally:
        if process is not None:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _given(settings: Settings) -> dict[str, str]:
    assert settings.dsn
    assert settings.sync_dsn
    assert settings.owner_dsn
    return {"reader": settings.dsn, "sync": settings.sync_dsn, "owner": settings.owner_dsn}


def _configure(folder: Path, port: int, dsns: Mapping[str, SplitResult], sessions: int) -> None:
    server = dsns["reader"]
    users = "".join(f'"{dsn.username}" "{unquote(dsn.password or "")}"\n' for dsn in dsns.values())
    (folder / "users").write_text(users)
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = host={server.hostname} port={server.port or 5432}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = scram-sha-256\nauth_file = {folder / 'users'}\n"
        f"pool_mode = transaction\ndefault_pool_size = {sessions}\nmax_client_conn = 500\n"
    )
    if os.getuid() == 0:
        for item in (folder, *folder.iterdir()):
            os.chown(item, pwd.getpwnam("nobody").pw_uid, -1)
    (folder / "users").chmod(0o600)


def _through(dsn: SplitResult, port: int) -> str:
    return urlunsplit(dsn._replace(netloc=f"{dsn.username}:{dsn.password}@127.0.0.1:{port}"))


def _free_port() -> int:
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), closing(socket.create_connection(("127.0.0.1", port), timeout=1)):
            return
        time.sleep(0.02)
    raise ServerUnavailable(f"PgBouncer doesn't answer within {_SECONDS:g} s")
