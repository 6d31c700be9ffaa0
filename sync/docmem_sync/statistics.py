"""What the planner knows of a tenant: told at once where very much came, and otherwise left to Postgres.

Until its statistics are made a tenant has one row to the planner, and any index will do to look through that: each
small sync then read all hundred thousand of its rows, half a second long, until autovacuum came by.
"""

from __future__ import annotations

import logging
from functools import partial

from docmem import db
from docmem.config import Settings
from docmem.errors import DocmemError
from docmem.sql import load

MANY = 10_000
"""Files of one sync from which it is worth it."""

_SQL = partial(load, "docmem_sync", "statistics.sql")
_log = logging.getLogger("docmem.sync")


def refresh(settings: Settings, tenant: str, files: int) -> None:
    """Make them anew where a sync wrote so many files. Best effort: without an owner's connection autovacuum does."""
    if files < MANY:
        return
    try:
        with db.session(settings, "owner") as owner:
            owner.execute(_SQL()["analyze"])
    except DocmemError as error:
        _log.info("%s: its first syncs may take a while longer each: %s", tenant, error)
