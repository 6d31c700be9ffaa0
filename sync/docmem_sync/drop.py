"""Take a tenant's rows out of the index. Nothing is forgotten: the next sync brings them back from the repo."""

from __future__ import annotations

from collections.abc import Iterable

from docmem import db
from docmem.config import Settings
from docmem.sql import load


def drop(settings: Settings, tenants: Iterable[str]) -> None:
    """Delete all rows of these tenants, each tenant's in one transaction. Raises what `db.connect` raises."""
    with db.session(settings, "sync") as connection:
        for tenant in tenants:
            with db.tenant_transaction(connection, tenant) as cursor:
                for statement in load("docmem_sync", "drop.sql").values():
                    cursor.execute(statement, {"tenant": tenant})
