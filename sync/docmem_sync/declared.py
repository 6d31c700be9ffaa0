"""What schema.sql declares, statement by statement: what the doctor compares a database with, and mends it by."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_STATEMENT = re.compile(r"^(?=(?:CREATE|ALTER|GRANT) )", re.MULTILINE)
_MADE = re.compile(r"CREATE (TABLE|FUNCTION) docmem\.(\w+)")
_SECURED = re.compile(r"ALTER TABLE docmem\.(\w+) (?:ENABLE|FORCE) ROW LEVEL SECURITY;")
_POLICY = re.compile(r"CREATE POLICY tenant ON docmem\.(\w+)\b.*?;", re.DOTALL)
_GRANT = re.compile(r"GRANT ([A-Z, ]+) ON (ALL TABLES IN SCHEMA docmem|docmem\.[\w., ]+) TO ([\w, ]+);")


@dataclass(frozen=True, slots=True)
class Declared:
    """`functions`: name to the statement that makes it. `secured`, `policies`: table to the statements that close it
    to other tenants. `rights`: role to the (table, right) that it has."""

    tables: tuple[str, ...]
    functions: dict[str, str]
    secured: dict[str, tuple[str, ...]]
    policies: dict[str, str]
    rights: dict[str, frozenset[tuple[str, str]]]


@cache
def declared() -> Declared:
    """The schema of this version."""
    statements = _STATEMENT.split(files("docmem_sync").joinpath("schema.sql").read_text(encoding="utf-8"))
    made = [(found[1], found[2], text) for text in statements if (found := _MADE.match(text))]
    tables = tuple(name for kind, name, _ in made if kind == "TABLE")
    secured: dict[str, tuple[str, ...]] = {}
    for text in statements:
        if found := _SECURED.match(text):
            secured[found[1]] = (*secured.get(found[1], ()), found[0])
    policies = {found[1]: found[0] for text in statements if (found := _POLICY.match(text))}
    functions = {name: text.strip() for kind, name, text in made if kind == "FUNCTION"}
    return Declared(tables, functions, secured, policies, _rights(statements, tables))


def _rights(statements: list[str], tables: tuple[str, ...]) -> dict[str, frozenset[tuple[str, str]]]:
    rights: dict[str, frozenset[tuple[str, str]]] = {}
    for found in filter(None, map(_GRANT.match, statements)):
        named = tables if found[2].startswith("ALL ") else found[2].replace("docmem.", "").split(", ")
        for role in found[3].split(", "):
            given = {(table, right) for table in named for right in found[1].split(", ")}
            rights[role] = rights.get(role, frozenset()) | given
    return rights
