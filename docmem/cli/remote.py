"""`docmem remote`: a tenant's origin, through which several machines and hosts share it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from docmem.cli.output import columns, json_option, note, print_json, short

if TYPE_CHECKING:
    from docmem.remote import Moved, Side
    from docmem.repository import Repository


@click.command(short_help="Share a tenant through another repo.")
@click.argument("tenant")
@click.argument("url", required=False)
@click.option("--remove", is_flag=True, help="Forget the origin; nothing over there changes.")
@click.option("--take", type=click.Choice(["ours", "theirs"]), help="Settle an upstream that was rewritten.")
@json_option
def remote(tenant: str, url: str | None, remove: bool, take: Side | None, as_json: bool) -> None:
    """Name a tenant's origin (a path or a URL), and bring both together: fetch what is new there, push what isn't.

    Without URL: fetch, push, and say how things stand. From then on each commit is pushed there first. A URL that
    doesn't answer, holds no tenant, or another history than this one is not taken. An upstream that was rewritten is
    kept aside and not followed until you take theirs (main follows it) or ours (it is pushed over); the other tip
    stays under refs/docmem/kept/.
    """
    from docmem import remote as remotes
    from docmem import repository
    from docmem.config import settings
    from docmem.git.remotes import shown

    if remove and (url or take):
        raise click.UsageError("--remove goes alone")
    repo = repository.open(settings(), tenant)
    moved = _moved(repo, url, remove=remove, take=take)
    state = remotes.state(repo.git_dir)
    if as_json:
        print_json(state.as_json() | {"moved": moved})
        return
    if state.url is None:
        note(f"{tenant} has no origin; name one with: docmem remote {tenant} URL")
        return
    click.echo(columns([["origin", shown(state.url)], ["main", short(state.local)], ["upstream", short(state.seen)]]))
    for ref, revision in state.aside.items():
        click.echo(f"kept aside: {short(revision)}  {ref}")


def _moved(repo: Repository, url: str | None, *, remove: bool, take: Side | None) -> Moved:
    from docmem import remote as remotes

    secret, url = repo.settings.secret_bytes, remotes.place(url) if url else None
    with repo.locked():
        if remove:
            remotes.disconnect(repo.git_dir)
        if take:
            remotes.take(repo.git_dir, take, secret=secret, at=url)
            moved: Moved = "fetched" if take == "theirs" else "pushed"
        elif url:
            moved = remotes.connect(repo.git_dir, url, secret=secret)
        else:
            moved = remotes.exchange(repo.git_dir, secret=secret)
    if moved == "fetched":
        repo.poke()
    return moved
