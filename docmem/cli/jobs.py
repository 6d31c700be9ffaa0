"""`docmem jobs`."""

from __future__ import annotations

import click

from docmem.cli.output import json_option, note, one_line, print_json


@click.command(short_help="Consolidations that failed for good.")
@click.argument("tenants", nargs=-1, metavar="[TENANT…]")
@json_option
def jobs(tenants: tuple[str, ...], as_json: bool) -> int:
    """Dead letters, and the model's replies that could not be used.

    A dead letter loses nothing: its thread's watermark has not moved. Consolidate the thread again once the reason is
    gone. Replies are kept for 14 days on the machine that got them, with credentials removed.
    """
    from docmem import audit, repository
    from docmem.config import settings
    from docmem.errors import DocmemError
    from docmem.jobs import JobTable, Letter

    configured = settings()
    names = [repository.open(configured, tenant).tenant for tenant in tenants] or repository.tenants(configured)
    replies = [{"tenant": tenant, **entry} for tenant in names for entry in audit.entries(configured, tenant)]
    letters: list[Letter] = []
    failure: DocmemError | None = None
    try:
        letters = [letter for tenant in names for letter in JobTable(configured).listed(tenant)]
    except DocmemError as error:  # the replies are files, and worth showing without Postgres
        failure = error
    if as_json:
        print_json({"jobs": [letter.as_json() for letter in letters], "replies": replies})
    for letter in letters if not as_json else ():
        click.echo(
            f"{letter.tenant}  {letter.thread}  failed {letter.attempts} times, last {letter.failed_at:%Y-%m-%d %H:%M}"
        )
        click.echo(f"    {one_line(letter.reason)}")
    for entry in replies if not as_json else ():
        click.echo(f"{entry['tenant']}  {entry['thread']}  unusable reply of {entry['model']} at {entry['at']}")
        click.echo(f"    {one_line(entry['reason'])}")
        click.echo(f"    {one_line(entry['reply'])}")
    if failure is not None:
        note(f"dead letters can't be read: {failure.message}")
        note(f"  {failure.hint}")
        return failure.exit_code
    if not as_json and not letters and not replies:
        click.echo("none")
    return 0
