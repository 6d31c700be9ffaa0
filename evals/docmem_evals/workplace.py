"""A root of its own for an evaluation, and what it leaves in a Postgres of the user's taken away again.

SIGTERM ends an evaluation like SIGINT: with everything gone. After a SIGKILL nobody is left to clean up: the folder
stays, and an embedded server with it, or rows in the Postgres that was configured. The next evaluation on the machine
takes them away. It knows that their owner is dead by a lock that the owner held, which the kernel lets go of with the
process, whatever became of its number.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import secrets
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import IO, Any

from docmem import postgres as server
from docmem.config import Settings
from docmem.errors import DocmemError
from docmem_sync.drop import drop

_log = logging.getLogger("docmem.evals")

_PREFIX = "docmem-eval-"
_OWNER = "eval.lock"
"""Held by whoever uses the root: its process, the tenants, and a hash that tells the Postgres they are in."""


@contextmanager
def workplace(
    settings: Settings, names: Sequence[str], *, postgres: bool = True
) -> Iterator[tuple[Settings, list[str]]]:
    """Settings with a root of their own, and a tenant's name for each of `names`; all gone afterwards.

    Ids depend on the secret: with a fixed one an evaluation gives the same figures everywhere. `postgres` False: no
    row will be written, so none is looked for afterwards.
    """
    clear(settings)
    suffix = f"-{secrets.token_hex(4)}" if postgres and settings.external else ""
    tenants = [f"{name}{suffix}" for name in names]
    with _terminable():
        root = Path(tempfile.mkdtemp(prefix=_PREFIX))
        root.chmod(0o711)  # the server doesn't run as root
        work = _settings(settings, root)
        with (root / _OWNER).open("w", encoding="utf-8") as owned:
            _own(owned, settings, tenants if postgres and settings.external else [])
            try:
                yield work, tenants
            finally:
                with _unhurried():
                    _take_away(work, tenants, postgres=postgres)
                    shutil.rmtree(root, ignore_errors=True)


def clear(settings: Settings) -> list[Path]:
    """Take away what evaluations left whose process is dead for certain; returns their folders.

    Rows in another Postgres than the one that is configured stay, and so does the folder that names them.
    """
    found = sorted(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_OWNER}"))
    return [owner.parent for owner in found if _clear(owner, settings)]


def _clear(owner: Path, settings: Settings) -> bool:
    try:
        if owner.stat().st_uid != os.getuid():
            return False
        with owner.open("r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left = json.load(file)
            embedded = not left["postgres"]
            if left["tenants"] and left["postgres"] != _place(settings):
                return False
            work = _settings(settings, owner.parent)
            if embedded:
                work = replace(work, dsn=None, sync_dsn=None, owner_dsn=None)
            if not _take_away(work, left["tenants"], postgres=embedded or bool(left["tenants"])):
                return False
            shutil.rmtree(owner.parent, ignore_errors=True)
            return True
    except (OSError, ValueError, KeyError):  # it lives, is another's, or was killed before it had written a word
        return False


def _own(file: IO[str], settings: Settings, tenants: Sequence[str]) -> None:
    fcntl.flock(file, fcntl.LOCK_EX)
    owner: dict[str, Any] = {"process": os.getpid(), "postgres": _place(settings), "tenants": list(tenants)}
    json.dump(owner, file)
    file.flush()


def _settings(settings: Settings, root: Path) -> Settings:
    return replace(settings, root=root, secret="locomo", require_memory=False)


def _place(settings: Settings) -> str:
    """A hash of which Postgres is meant: an address may hold a password."""
    return (
        sha256(repr((settings.dsn, settings.sync_dsn, settings.owner_dsn)).encode()).hexdigest()[:16]
        if settings.external
        else ""
    )


def _take_away(work: Settings, tenants: Sequence[str], *, postgres: bool) -> bool:
    try:
        if postgres and work.external:
            drop(work, tenants)
        elif postgres:
            server.remove(work)
    except DocmemError as error:  # what went wrong before it counts more
        _log.warning("the evaluation's rows could not be removed: %s", error)
        return False
    return True


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM as SIGINT while it lasts. In another thread than the main one nothing can be done about signals."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled(interrupt):
        yield


@contextmanager
def _unhurried() -> Iterator[None]:
    """A second SIGTERM doesn't break off the cleaning up."""

    def wait(number: int, frame: FrameType | None) -> None:
        _log.info("still cleaning up")

    with _handled(wait):
        yield


@contextmanager
def _handled(handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
