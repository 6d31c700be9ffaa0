"""db: who may connect, what a session sees, what is said when it can't."""

from __future__ import annotations

from docmem import db
from docmem.config import Settings


def test_each_role_reaches_a_migrated_index(indexed: Settings) -> None:
    roles: tuple[db.Role, ...] = ("reader", "sync", "owner")
    for role in roles:
        with db.connect(indexed, role) as connection:
            db.check_schema(connection)
