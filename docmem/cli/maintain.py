"""`docmem maintain`."""

from __future__ import annotations

import click

from docmem.cli.output import json_option, note, print_json


@click.command(short_help="Keep repos fast and clean.")
@click.argument("tenants", nargs=-1, metavar="[TENANT…]")
@json_option
def maintain(tenants: tuple[str, ...], as_json: bool) -> int:
    """Roll up packs, write the commit-graph, remove what killed processes left, for these tenants or all.

    Nothing that a writer may still need is dropped: what can't be proven to be left behind stays, and is named.
    """
    from docmem import maintenance, repository
    from docmem.config import settings
    from docmem.errors import DocmemError

    configured = settings()
    for tenant in tenants:
        repository.open(configured, tenant)
    done, code = [], 0
    for tenant in tenants or repository.tenants(configured):
        try:
            done.append(maintenance.maintain(repository.open(configured, tenant)))
        except DocmemError as error:  # one that is broken doesn't stop the others
            note(f"{tenant}: {error.message}")
            note(f"  {error.hint}")
            code = max(code, error.exit_code)
    if as_json:
        print_json([each.as_json() for each in done])
        return code
    for each in done:
        click.echo(f"{each.tenant}: {each.packs_before} → {each.packs} packs, {len(each.removed)} leftovers removed")
        for path in each.kept:
            note(f"  may be in use, and stays: {path}")
    return code
