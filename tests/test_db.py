"""db: who may connect, what a session sees, what is said when it can't."""

from __future__ import annotations

import dataclasses

import psycopg
import pytest

from docmem import db
from docmem.config import Settings
from docmem.errors import InvalidName


def test_each_role_reaches_a_migrated_index(indexed: Settings) -> None:
    roles: tuple[db.Role, ...] = ("reader", "sync", "owner")
    for role in roles:
        with db.connect(indexed, role) as connection:
            db.check_schema(connection)


def test_an_analysts_dsn_sees_one_tenant_from_the_start(indexed: Settings) -> None:
    with psycopg.connect(db.tenant_dsn(indexed, "acme")) as connection:
        row = connection.execute("SELECT current_setting('app.current_tenant', true)").fetchone()
    assert row == ("acme",)
    keywords = dataclasses.replace(indexed, dsn="host=localhost dbname=x")
    assert "app.current_tenant=acme" in db.tenant_dsn(keywords, "acme")
    with pytest.raises(InvalidName):
        db.tenant_dsn(indexed, "acme -c role=docmem_owner")
