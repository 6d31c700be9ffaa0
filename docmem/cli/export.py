"""`docmem export`, `docmem import`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from docmem.cli.output import json_option, note, print_json, short

if TYPE_CHECKING:
    from docmem.repository import Repository


@click.command(short_help="A tenant, or a person's data, as one file.")
@click.argument("tenant")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@click.option("--subject", metavar="S", help="All that is kept about this person, as Markdown (without FILE: printed).")
@json_option
def export(tenant: str, file: Path | None, subject: str | None, as_json: bool) -> None:
    """Write FILE: a git bundle of the tenant (`git clone FILE` reads it, `docmem import` makes it one again).

    With --subject: what is known about one person, what waits and what was known before, as one readable file.
    """
    from docmem import bundle, repository
    from docmem.config import settings

    repo = repository.open(settings(), tenant)
    if subject is not None:
        _export_subject(repo, file, subject, as_json=as_json)
        return
    if file is None:
        raise click.UsageError("give the FILE to write")
    refs = bundle.export(repo, file)
    if as_json:
        print_json({"file": str(file), "refs": refs, "revision": repo.head()})
    else:
        click.echo(f"{tenant} at {short(repo.head())}, {len(refs)} refs, is in {file}")


def _export_subject(repo: Repository, file: Path | None, subject: str, *, as_json: bool) -> None:
    from datetime import UTC, datetime

    from docmem import access, names

    key = names.subject_key(repo.tenant, subject)
    text = access.report(repo, key, now=datetime.now(UTC))
    if file is not None:
        access.write(file, text)
    if as_json:
        print_json({"file": str(file) if file else None, "subject": key, "text": text})
    elif file is None:
        click.echo(text, nl=False)
    else:
        note(f"written: {file}")


@click.command(name="import", short_help="Make a tenant from an exported file.")
@click.argument("tenant")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@json_option
def import_(tenant: str, file: Path, as_json: bool) -> None:
    """Make TENANT from the bundle FILE. Give it the name that it had: the keys of its subjects hold that name."""
    from docmem import bundle
    from docmem.config import settings

    repo = bundle.import_(settings(), tenant, file)
    if as_json:
        print_json({"tenant": tenant, "revision": repo.head(), "path": str(repo.git_dir)})
    else:
        click.echo(f"made {tenant} at {repo.git_dir} (revision {short(repo.head())})")
        note(f"  then: docmem sync {tenant}")
