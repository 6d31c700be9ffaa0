"""Let text search use an index under row-level security, or stop it. sync/README.md explains what that gives away.

It is a migration of its own, which nobody applies but a person: it changes a function of Postgres, for the whole
database.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import psycopg

from docmem import db, postgres
from docmem.config import Settings
from docmem.errors import ConfigError
from docmem.sql import load

Turn: TypeAlias = Literal["on", "off"]

_SQL = partial(load, "docmem_sync", "leakproof.sql")


@dataclass(frozen=True, slots=True)
class State:
    """Whether `@@` counts as leakproof in this database, and whether both indexes over words are there."""

    leakproof: bool
    indexed: bool


def statements(turn: Turn) -> list[str]:
    """What a superuser runs, one by one: an index that is made concurrently can't be made in a transaction."""
    return [f"{text};" for name, text in _SQL().items() if name.startswith(f"{turn}_")]


def state(settings: Settings) -> State:
    """How the database stands. Raises what `db.connect` raises."""
    with db.session(settings, "reader") as connection:
        row = connection.execute(_SQL()["state"]).fetchone()
    assert row is not None
    return State(bool(row["leakproof"]), row["indexes"] == 2)


def switch(settings: Settings, turn: Turn) -> State:
    """Turn it on or off, on the embedded server. Raises `ConfigError` with the statements for any other."""
    if settings.external:
        raise ConfigError(
            "this changes a function of Postgres, and only a superuser may",
            hint="as one, in that database, one by one:\n" + "\n".join(statements(turn)),
        )
    db.connect(settings, "reader").close()  # the schema is there
    with psycopg.connect(postgres.start(settings).dsn("admin"), autocommit=True, prepare_threshold=None) as admin:
        for statement in statements(turn):
            admin.execute(statement)
    return state(settings)
