"""Short ways to look into an index, and to change a tenant's repo as git would."""

from __future__ import annotations

import os
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

from psycopg import sql

from docmem import db, repository
from docmem.config import Settings

DERIVED = (
    "sync_state",
    "tenant_config",
    "memory",
    "memory_history",
    "profile",
    "profile_history",
    "document",
    "quarantine",
)
"""The tables that a rebuild makes anew."""


def rows(settings: Settings, query: str | sql.Composed, *, tenant: str = "acme", **values: Any) -> list[dict[str, Any]]:
    """What a query as the reader gives, as one tenant."""
    with closing(db.connect(settings, "reader")) as connection, db.tenant_transaction(connection, tenant) as cursor:
        return cursor.execute(query, {"tenant": tenant, **values}).fetchall()


def whole_index(settings: Settings, *, tenant: str = "acme") -> dict[str, list[dict[str, Any]]]:
    """Every row that sync derives from the repo, without the time of the sync itself."""
    hidden = {"synced_at"}
    found = {}
    for table in DERIVED:
        listed = rows(settings, sql.SQL("SELECT * FROM docmem.{}").format(sql.Identifier(table)), tenant=tenant)
        found[table] = sorted(
            ({key: value for key, value in row.items() if key not in hidden} for row in listed), key=repr
        )
    return found


class Clone:
    """A person's clone of a tenant's repo: work in `path`, then `push`."""

    def __init__(self, settings: Settings, path: Path, *, tenant: str = "acme") -> None:
        self.path = path
        self.bare = repository.open(settings, tenant).git_dir
        self._git("clone", "--quiet", "--no-local", str(self.bare), str(path), folder=path.parent)

    def git(self, *arguments: str) -> str:
        """Run git in the clone."""
        return self._git(*arguments, folder=self.path)

    def _git(self, *arguments: str, folder: Path) -> str:
        identity = ["-c", "user.name=Ana", "-c", "user.email=ana@example.org", "-c", "protocol.file.allow=always"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", *identity, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def write(self, path: str, data: bytes) -> None:
        """Write a file of the work tree."""
        file = self.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    def commit(self, message: str = "edit") -> str:
        """Commit all of the work tree and push it."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        self.git("push", "--quiet", "origin", "HEAD:main")
        return self.git("rev-parse", "HEAD")
