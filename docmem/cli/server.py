"""`docmem server`."""

from __future__ import annotations

import click

from docmem.cli.output import json_option, print_json


@click.group(short_help="The embedded Postgres.")
def server() -> None:
    """Start and stop the embedded Postgres, or print how to connect.

    It starts by itself when a command needs it, so this is for looking and for stopping. With DOCMEM_DSN set there
    is no embedded server.
    """


@server.command()
@json_option
def start(as_json: bool) -> None:
    """Start the embedded Postgres, or find the one that runs."""
    from docmem import postgres
    from docmem.config import settings

    _refuse_external()
    running = postgres.start(settings())
    if as_json:
        print_json({"running": True, "port": running.port, "data": str(running.data)})
        return
    click.echo(f"Postgres is running on port {running.port}, data in {running.data}")


@server.command()
@json_option
def stop(as_json: bool) -> None:
    """Stop the embedded Postgres."""
    from docmem import postgres
    from docmem.config import settings

    _refuse_external()
    stopped = postgres.stop(settings())
    if as_json:
        print_json({"stopped": stopped})
        return
    click.echo("stopped" if stopped else "it was not running")


@server.command()
@click.option("--tenant", metavar="TENANT", help="A reader's DSN that sees this tenant, for an analyst's tool.")
@json_option
def dsn(tenant: str | None, as_json: bool) -> None:
    """Print the owner's DSN, or a reader's with --tenant. Holds a password."""
    from docmem import db
    from docmem.config import settings

    text = db.tenant_dsn(settings(), tenant) if tenant else db.dsn(settings(), "owner")
    if as_json:
        print_json({"dsn": text})
        return
    click.echo(text)


@server.command()
@click.argument("turn", type=click.Choice(["on", "off", "status"]))
@json_option
def leakproof(turn: str, as_json: bool) -> None:
    """Let text search use an index under row-level security (on), or not (off, the default).

    Worth it where one tenant has tens of thousands of texts and is searched as a whole. The price: whoever may run SQL
    of their own can tell from times and plans how common a word is among all tenants' texts. sync/README.md has
    figures. Needs a superuser: the embedded server's, else the statements are printed.
    """
    from docmem.config import settings
    from docmem_sync import leakproof as switch

    found = switch.state(settings()) if turn == "status" else switch.switch(settings(), "on" if turn == "on" else "off")
    if as_json:
        print_json({"leakproof": found.leakproof, "indexed": found.indexed})
        return
    click.echo(
        "on" if found.leakproof and found.indexed else "off" if not found.leakproof else "on, without its indexes"
    )


def _refuse_external() -> None:
    from docmem.config import settings
    from docmem.errors import ConfigError

    if settings().external:
        raise ConfigError(
            "DOCMEM_DSN (or its sync or owner form) is set, so there is no embedded server to start or stop",
            hint="unset it to use the embedded one",
        )
