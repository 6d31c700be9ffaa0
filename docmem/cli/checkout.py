"""`docmem checkout`, `docmem check`: a clone to work in, and the check of what is in it."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from docmem.cli.output import json_option, note, print_json

if TYPE_CHECKING:
    from docmem.check import Fault
    from docmem.worktree import Said


@click.command(short_help="Clone a tenant to edit it with your own tools.")
@click.argument("tenant")
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option("--live", is_flag=True, help="Go on: commit and push what is saved, bring in what others push.")
def checkout(tenant: str, directory: Path, live: bool) -> None:
    """Clone a tenant into DIRECTORY: edit with any editor, commit and push with any git.

    A check runs before each commit, and again in the store at each push. `git pull` rebases. What waits for review is
    there as the remote branches review/ID. A clone that is there already, also one of plain git, is set up and fetched.

    With --live, until you stop it, each file that you save and that is in order is committed in your name and pushed;
    `docmem sync --watch` serves it. One that isn't in order is named here and left alone, and so is one that was
    changed upstream in the same place.
    """
    from docmem import checkout as checkouts
    from docmem.config import settings

    fresh = checkouts.checkout(settings(), tenant, directory)
    click.echo(f"{'cloned' if fresh else 'fetched'} {tenant} into {directory}")
    if live:
        from docmem.live import live as watch

        note("live: save a file and it is committed and pushed; stop with Ctrl-C")
        watch(settings(), tenant, directory, report=_report)
    elif fresh:
        note("  edit, git commit, git push; docmem sync serves it (a running docmem sync --watch does so by itself)")


def _report(said: Said) -> None:
    colours = {"committed": "green", "pushed": "green", "pulled": "cyan", "left": "yellow", "waiting": "yellow"}
    colour = colours.get(said.kind, "red")
    click.echo(f"{datetime.now():%H:%M:%S}  {click.style(said.kind, fg=colour)}  {said.text}")
    sys.stdout.flush()


@click.command(short_help="Check files against the format.")
@click.argument("what", metavar="TENANT|DIR", default=".")
@click.option("--staged", is_flag=True, help="Only what the next commit would change.")
@json_option
def check(what: str, staged: bool, as_json: bool) -> int:
    """Check a tenant's main, or a checkout's files as they are saved: format, ids, names, conflict markers, secrets.

    Exit 1 when something is wrong; each fault names file, line and reason.
    """
    from docmem import config, inspection

    if staged:
        found = inspection.of_staged(Path(what), config.index_file())
    elif Path(what).is_dir() and (set(what) & {"/", "."} or not _is_tenant(what)):
        found = inspection.of_work_tree(Path(what))
    else:
        found = _of_tenant(what)
    _print(found, as_json=as_json)
    for path in [] if staged or as_json else _strays(what):
        note(f"{path}: docmem reads no such folder; the file is kept, and never served")
    return 1 if found else 0


def _strays(what: str) -> list[str]:
    from docmem import inspection, repository
    from docmem.config import settings

    if Path(what).is_dir() and (set(what) & {"/", "."} or not _is_tenant(what)):
        return inspection.strays_in(Path(what))
    repo = repository.open(settings(), what)
    return inspection.strays(repo.git_dir, repo.snapshot().revision)


def _is_tenant(name: str) -> bool:
    from docmem import repository
    from docmem.config import settings

    return name in repository.tenants(settings())


def _of_tenant(tenant: str) -> list[Fault]:
    from docmem import inspection, repository
    from docmem.config import settings

    repo = repository.open(settings(), tenant)
    return inspection.of_changes(repo.git_dir, None, repo.snapshot().revision)


def _print(found: list[Fault], *, as_json: bool) -> None:
    if as_json:
        print_json([fault.as_json() for fault in found])
        return
    for fault in found:
        click.echo(str(fault))
    if found:
        note(f"{len(found)} fault{'s' if len(found) > 1 else ''}")
    else:
        note("in order")
