"""A streaming standby of the test run's server: a real one, of `pg_basebackup`, that follows and takes no writes."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from docmem import postgres
from docmem.config import Settings
from docmem.postgres import Server


@dataclass(frozen=True)
class Standby:
    """`port`: where it answers, with the primary's roles and passwords."""

    server: Server

    def dsn(self, database: str) -> str:
        """The reader's connection string."""
        return self.server.dsn("reader", database=database)

    def kill(self) -> None:
        """Nobody is told."""
        os.killpg(self.server.pid, signal.SIGKILL)


@contextmanager
def standby(primary: Server) -> Iterator[Standby]:
    """A standby that follows `primary` until the end."""
    folder = Path(tempfile.mkdtemp(prefix="docmem-standby-"))
    folder.chmod(0o711)
    (folder / "postgres").mkdir()
    home = postgres._home(Settings(root=folder))
    if home.account is not None:
        os.chown(folder / "postgres", home.account.uid, home.account.gid)
    try:
        source = primary.dsn("admin", database="postgres")
        made = home.run(
            "pg_basebackup", f"--pgdata={home.data}", f"--dbname={source}", "--write-recovery-conf",
            "--checkpoint=fast", "--wal-method=stream", "--no-sync",
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
        postmaster = postgres._launch(home)
        yield Standby(Server(postmaster.port, postmaster.pid, primary.version, home.data, primary.passwords))
    finally:
        home.run("pg_ctl", "stop", f"--pgdata={home.data}", "--mode=immediate")
        shutil.rmtree(home.data, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
