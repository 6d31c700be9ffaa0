"""`docmem init`."""

from __future__ import annotations

import click

from docmem.cli.output import json_option, print_json, short


@click.command(short_help="Make a tenant.")
@click.argument("tenant")
@click.option("--remote", metavar="URL", help="Begin with what is there, and share the tenant through it.")
@json_option
def init(tenant: str, remote: str | None, as_json: bool) -> None:
    """Make a tenant: a git repo laid down from the template."""
    from docmem import repository
    from docmem.config import settings
    from docmem.remote import place

    made = repository.create(settings(), tenant, origin=place(remote) if remote else None)
    if as_json:
        print_json({"tenant": tenant, "path": str(made.git_dir), "revision": made.head()})
        return
    click.echo(f"made {tenant} at {made.git_dir} (revision {short(made.head())})")
