"""`docmem subject`."""

from __future__ import annotations

import click

from docmem.cli.output import json_option, print_json


@click.command(short_help="Print a phone number's subject key.")
@click.argument("tenant")
@click.argument("phone")
@click.option("--region", metavar="CC", help="Country of a number without its country code, as two letters.")
@json_option
def subject(tenant: str, phone: str, region: str | None, as_json: bool) -> None:
    """Print the subject key of a phone number.

    The key is a hash: with it you find a person's folder in the repo, and nobody finds the number in it.
    """
    from docmem import identity, names

    e164 = identity.parse_phone(phone, region=region.upper() if region else None)
    key = names.subject_of_phone(tenant, e164)
    if as_json:
        print_json({"tenant": tenant, "subject": key, "phone": e164})
        return
    click.echo(key)
