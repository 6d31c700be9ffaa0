"""`docmem forget`, `docmem erase`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from docmem.cli.output import confirm, json_option, note, one_line, print_json, short
from docmem.cli.serving import sync_after, tell_of_erase

if TYPE_CHECKING:
    from collections.abc import Iterable

    from docmem.erasure import Target
    from docmem.repository import Repository
    from docmem_sync.erase import Found


def _open(tenant: str) -> Repository:
    from docmem import repository
    from docmem.config import settings

    return repository.open(settings(), tenant)


@click.command(short_help="Take a person or a memory out of what is known.")
@click.argument("tenant")
@click.argument("what", metavar="SUBJECT|MEMORY")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--no-sync", is_flag=True, help="Leave the served copy to the next sync.")
@json_option
def forget(tenant: str, what: str, yes: bool, no_sync: bool, as_json: bool) -> None:
    """Forget a memory, or all that is known about a subject, in one commit that can be reverted.

    It leaves the next prompt; history keeps it. It asks first; off a terminal it needs --yes. What may not even stay
    in history is for: docmem erase.
    """
    from datetime import UTC, datetime

    from docmem import forget as forgetting
    from docmem import git

    repository = _open(tenant)
    tell_of_erase([tenant])
    planned = forgetting.plan(repository, what)
    if not as_json:
        for path in planned.gone:
            click.echo(f"remove  {path}")
    confirm(f"forget {_files(len(planned.gone))} of {what}?", yes=yes)
    done = forgetting.apply(repository, what, now=datetime.now(UTC), author=git.person())
    if as_json:
        print_json(done.as_json())
    else:
        click.echo(f"forgotten in {short(done.revision)}; docmem revert {tenant} {short(done.revision)} brings it back")
    if not no_sync:
        sync_after(tenant)


@click.command(short_help="Take a person or a memory out of all history.")
@click.argument("tenant")
@click.argument("what", metavar="SUBJECT|MEMORY", required=False)
@click.option("--all", "everything", is_flag=True, help="The whole tenant.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--verify", is_flag=True, help="Erase nothing: search every object, file and row for what was erased.")
@click.option("--string", "strings", multiple=True, metavar="TEXT", help="With --verify: search for this too.")
@click.option("--resume", is_flag=True, help="Go on with an erase that broke off.")
@click.option("--no-index", is_flag=True, help="Leave Postgres alone: this tenant was never served from one.")
@json_option
def erase(
    tenant: str,
    what: str | None,
    everything: bool,
    yes: bool,
    verify: bool,
    strings: tuple[str, ...],
    resume: bool,
    no_index: bool,
    as_json: bool,
) -> int:
    """Take a subject, a memory or a tenant out of all history, the served copy and the failed replies. For good.

    The history is written anew: later commits get new ids, and clones have to be made anew. It ends with a search that
    must find nothing, and a receipt without content. Broken off, it goes on with --resume.
    """
    if sum((what is not None, everything, resume)) != 1:
        raise click.UsageError("give a SUBJECT or MEMORY, or --all, or --resume")
    if verify:
        return _verify(tenant, what, strings, index=not no_index, as_json=as_json)
    target = None if resume else _target(tenant, what, index=not no_index)
    if target is not None and not yes:
        _ask(tenant, target)
    receipt = _erase(tenant, target, index=not no_index)
    if as_json:
        print_json(receipt)
    else:
        _print_receipt(receipt)
    return 1 if receipt["verified"]["found"] else 0


def _target(tenant: str, what: str | None, *, index: bool) -> Target:
    from docmem import erasure, journal
    from docmem.config import settings

    if what is None:
        begun = journal.read(settings(), tenant)
        if (begun is None or begun.target.kind != "tenant") and not _is_left(tenant, index=index):
            _open(tenant)  # a name that is none fails before anything is done
        return erasure.Target("tenant", tenant)
    return erasure.find(_open(tenant), what)


def _is_left(tenant: str, *, index: bool) -> bool:
    """Whether a tenant's repo is gone, and rows or failed replies of it aren't."""
    from docmem.config import settings
    from docmem_sync import erase as erasing

    if (settings().tenants / f"{tenant}.git").exists():
        return False
    with erasing.connected(settings(), index=index) as connection:
        return bool(erasing.verify_tenant(settings(), tenant, connection).total)


def _erase(tenant: str, target: Target | None, *, index: bool) -> dict[str, Any]:
    from datetime import UTC, datetime

    from docmem.config import settings
    from docmem_sync import erase as erasing

    now = datetime.now(UTC)
    if target is None:
        return erasing.resume(settings(), tenant, now=now, index=index)
    return erasing.erase(settings(), tenant, target, now=now, index=index)


def _ask(tenant: str, target: Target) -> None:
    from docmem import erasure

    if target.kind == "tenant":
        note(f"this takes tenant {tenant} away: its repo, its rows, its failed replies")
    else:
        _print_content(erasure.collect(_open(tenant), target))
    confirm("erase it, for good?", yes=False)


def _files(number: int) -> str:
    return "1 file" if number == 1 else f"{number} files"


def _print_content(content: Any) -> None:
    note(
        f"this takes {len(content.blobs)} versions of {len(content.paths)} files out of all history"
        f" ({len(content.memories)} memories, {len(content.threads)} conversations' watermarks,"
        f" {len(content.reviews)} reviews)"
    )
    for stored in content.supersede:
        note(f"  stays, and replaced it: {stored.memory.id}  {one_line(stored.memory.text)}")
    if content.elsewhere:
        note(f"  the same words stand in {content.elsewhere} other files, which stay")


def _print_receipt(receipt: dict[str, Any]) -> None:
    click.echo(
        f"erased: {receipt['files']} versions of files, {receipt['reviews']} reviews, {sum(receipt['rows'].values())}"
        f" rows; {receipt['commits']} commits have new ids"
    )
    click.echo(f"found afterwards: {receipt['verified']['found']}")
    if receipt["messages"]:
        note(f"  {receipt['messages']} messages of other commits may still quote what was erased: see docmem log")
    for where in receipt["out_of_reach"]:
        note(f"  not reached from here: {where}")


def _verify(tenant: str, what: str | None, strings: Iterable[str], *, index: bool, as_json: bool) -> int:
    from docmem.config import settings
    from docmem_sync import erase as erasing

    if what is None:
        with erasing.connected(settings(), index=index) as connection:
            found = erasing.verify_tenant(settings(), tenant, connection)
    else:
        needles = frozenset([_needle(tenant, what), *strings])
        found = erasing.verify(settings(), tenant, needles, index=index)
    if as_json:
        print_json(found.as_json())
    else:
        _print_found(found)
    return 1 if found.total else 0


def _needle(tenant: str, what: str) -> str:
    """A memory's id as it is, else a subject's key."""
    from docmem import names

    is_memory = len(what) == 16 and all(char in "0123456789abcdef" for char in what)
    return what if is_memory else names.subject_key(tenant, what)


def _print_found(found: Found) -> None:
    click.echo(f"found: {found.total}")
    if found.total:
        note(f"  {found.objects} objects, {found.files} other files of the repo, {found.audit} failed replies")
        for table, count in (found.rows or {}).items():
            note(f"  {count} rows of {table}")
