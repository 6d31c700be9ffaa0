"""Dead letters: consolidations that failed for good, in table `job`, where `docmem jobs` finds them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from docmem import db
from docmem.config import Settings
from docmem.document import scrub
from docmem.model import Job
from docmem.scheduler import DeadLetter
from docmem.sensitive import redacted
from docmem.sql import load
from docmem.times import format_time

REASON_MAX = 2_000
"""Characters of a reason that are kept."""

_SQL = partial(load, "docmem", "jobs.sql")


@dataclass(frozen=True, slots=True)
class Letter:
    """A row of table `job`."""

    tenant: str
    thread: str
    subject: str
    agent: str
    attempts: int
    reason: str
    failed_at: datetime

    def as_json(self) -> dict[str, Any]:
        """A row of `jobs --json`."""
        return {
            "tenant": self.tenant,
            "thread": self.thread,
            "subject": self.subject,
            "agent": self.agent,
            "attempts": self.attempts,
            "reason": self.reason,
            "failed_at": format_time(self.failed_at),
        }


@dataclass(frozen=True, slots=True)
class JobTable:
    """Dead letters in Postgres. Writes as the sync role: a serving session may not."""

    settings: Settings

    def keep(self, letter: DeadLetter) -> None:
        """Keep a job that failed for good; one row a thread. Raises `DocmemError` where Postgres can't be used."""
        reason, _ = scrub(redacted(letter.reason)[:REASON_MAX])
        self._write("keep", letter.job, attempts=letter.attempts, reason=reason)

    def clear(self, job: Job) -> None:
        """Take a thread's dead letter away: it was consolidated after all. Raises `DocmemError`."""
        self._write("clear", job)

    def listed(self, tenant: str) -> list[Letter]:
        """A tenant's dead letters, newest first; none where no sync has made the index yet. Raises `DocmemError`."""
        with db.session(self.settings, "reader") as connection:
            if db.schema_version(connection) is None:
                return []
            with db.tenant_transaction(connection, tenant) as cursor:
                rows = cursor.execute(_SQL()["listed"], {"tenant": tenant}).fetchall()
        return [Letter(tenant=tenant, **row) for row in rows]

    def _write(self, statement: str, job: Job, **values: Any) -> None:
        named = {"tenant": job.tenant, "thread": job.thread, "subject": job.subject, "agent": job.agent}
        with (
            db.session(self.settings, "sync") as connection,
            db.tenant_transaction(connection, job.tenant) as cursor,
        ):
            cursor.execute(_SQL()[statement], named | values)
