"""`docmem sync`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from docmem.cli.output import json_option, note, print_json, short

if TYPE_CHECKING:
    from docmem_sync.sync import TenantSync


@click.command(short_help="Bring the served copy up to date.")
@click.argument("tenants", nargs=-1, metavar="[TENANT…]")
@click.option("--watch", is_flag=True, help="Go on: mirror each commit as it comes, until stopped.")
@click.option("--confirm-deletes", is_flag=True, help="Go through with a deletion that the guard stopped.")
@json_option
def sync(tenants: tuple[str, ...], watch: bool, confirm_deletes: bool, as_json: bool) -> None:
    """Bring the served copy in Postgres to what main says, for these tenants or all."""
    from docmem import repository
    from docmem.config import settings

    configured = settings()
    for tenant in tenants:
        repository.open(configured, tenant)  # a name that is none fails before anything is done
    if watch:
        _watch(list(tenants))
        return
    from docmem_sync.sync import sync_all

    done = sync_all(configured, list(tenants) or repository.tenants(configured), confirm_deletes=confirm_deletes)
    if as_json:
        print_json({"tenants": [one.as_json() for one in done]})
        return
    for one in done:
        _print(one)


def _print(one: TenantSync) -> None:
    row = one.as_json()
    click.echo(
        f"{row['tenant']}: {short(row['from'])} → {short(row['to'])}"
        f"  {row['upserts']} written, {row['deletes']} deleted, {row['unchanged']} unchanged"
        f"  ({row['seconds']:.2f} s)"
    )
    if row["reconciled"]:
        note(f"  {row['tenant']}: history was rewritten; compared the whole tree")
    if row["pending_embeddings"]:
        note(f"  {row['pending_embeddings']} without a vector yet; found by their words meanwhile")
    for bad in row["quarantined"]:
        note(f"  quarantined: {bad['path']}, line {bad['line']}: {bad['code']}")


def _watch(tenants: list[str]) -> None:
    from docmem.config import settings
    from docmem_sync.watch import watch

    watch(settings(), tenants or None, report=_print)
