"""`docmem status`, `docmem doctor`."""

from __future__ import annotations

from typing import Any

import click

from docmem.cli.output import columns, json_option, note, one_line, print_json, short

_KEYS = 10
"""How many undeclared profile keys are shown."""


@click.command(short_help="What is served, and how far behind.")
@click.argument("tenants", nargs=-1, metavar="[TENANT…]")
@json_option
def status(tenants: tuple[str, ...], as_json: bool) -> int:
    """What is served, how far behind it is, and what could not be read. Exit 1 when something needs you."""
    from docmem import repository
    from docmem.config import settings
    from docmem_sync.status import status as look

    configured = settings()
    for tenant in tenants:
        repository.open(configured, tenant)
    found = look(configured, list(tenants) or None)
    if as_json:
        print_json(found)
    else:
        _print(found)
    return 0 if _is_well(found) else 1


def _is_well(found: dict[str, Any]) -> bool:
    needs_somebody = any(
        row["quarantined"]
        or row["lag_commits"]
        or "error" in row
        or row["erase"]
        or (row["origin"] and row["origin"]["error"])
        for row in found["tenants"]
    )
    return "error" not in found["server"] and not needs_somebody


def _print(found: dict[str, Any]) -> None:
    server = found["server"]
    if "error" in server:
        note(server["error"])
        note(f"  {server['hint']}")
    if server["reachable"]:
        where = f"embedded, data in {server['data']}" if server["embedded"] else "external"
        click.echo(f"Postgres {server['version']}, pgvector {server['pgvector']} ({where})")
    rows = [["tenant", "head", "synced", "behind", "rows", "quarantined", "no vector", "review"]]
    for row in found["tenants"]:
        served = [row[key] for key in ("lag_commits", "rows", "quarantined", "pending_embeddings")]
        if "error" in server:  # nobody could look
            served = [None] * len(served)
        rows.append([row["tenant"], short(row["head"]), short(row["synced"]), *map(_count, [*served, row["review"]])])
    click.echo(columns(rows) if len(rows) > 1 else "no tenants yet; make one with: docmem init TENANT")
    for row in found["tenants"]:
        if "error" in row:
            note(f"{row['tenant']}: {row['error']}")
            note(f"  {row['hint']}")
        elif row["lag_commits"] and "error" not in server:
            note(f"{row['tenant']}: behind\n  docmem sync {row['tenant']}")
        for bad in row.get("quarantine", []):
            note(f"{row['tenant']}: {bad['path']}, line {bad['line']}: {bad['code']}: {bad['reason']}")
        if row["origin"] and row["origin"]["error"]:
            since = f" (since {row['origin']['since']})" if row["origin"]["since"] else ""
            note(f"{row['tenant']}: origin: {row['origin']['error']}{since}")
            note(f"  {row['origin']['hint']}")
        if row["pending_embeddings"]:
            note(f"{row['tenant']}: {row['pending_embeddings']} texts have no vector yet, and are found by words alone")
            note(f"  docmem sync {row['tenant']}")
        if row["erase"]:
            note(f"{row['tenant']}: {row['erase']['error']}")
            note(f"  {row['erase']['hint']}")
        if row["undeclared"]:
            note(f"{row['tenant']}: profile keys that no agent declares: {_drift(row['undeclared'])}")


def _drift(undeclared: dict[str, int]) -> str:
    """The commonest keys, each with how many profiles have it; never a value."""
    shown = [f"{one_line(key, 60)} ({count})" for key, count in list(undeclared.items())[:_KEYS]]
    more = len(undeclared) - len(shown)
    return ", ".join(shown) + (f", and {more} more" if more else "")


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)


@click.command(short_help="Check everything; name what mends a fault.")
@click.option("--repair", is_flag=True, help="First set right the stores' hooks and the index's rights and policies.")
@json_option
def doctor(repair: bool, as_json: bool) -> int:
    """Check git, Postgres, roles, row-level security and each tenant; name what mends each fault. Exit 1 on any."""
    from docmem.config import settings
    from docmem_sync import doctor as examination

    configured = settings()
    if repair:
        examination.repair(configured)
    checks = examination.doctor(configured)
    if as_json:
        print_json({"checks": [check.as_json() for check in checks]})
    else:
        for check in checks:
            click.echo(f"{'ok   ' if check.ok else 'FAIL '} {check.name}: {check.detail}")
            for line in check.hint.splitlines():
                click.echo(f"      {line}")
    return 0 if all(check.ok for check in checks) else 1
