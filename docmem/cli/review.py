"""`docmem review list|show|approve|reject|edit`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from docmem.cli.output import json_option, note, one_line, print_json, short
from docmem.cli.serving import sync_after

if TYPE_CHECKING:
    from docmem.repository import Repository
    from docmem.review import Item, Review, Settled

_COLOURS = {"create": "green", "update": "yellow", "delete": "red", "profile": "cyan"}
_what = click.argument("target", metavar="REVIEW|MEMORY")
_one = click.argument("operation", required=False)
_no_sync = click.option("--no-sync", is_flag=True, help="Leave the served copy to the next sync.")


@click.group(short_help="Decide on what waits for a person.")
def review() -> None:
    """What admission held back: look at it, approve, reject or edit it.

    REVIEW is a review's id or the start of it; MEMORY, the id of one held memory, means that operation alone.
    OPERATION, after a review, is one operation's number, memory id or profile key.
    """


def _open(tenant: str) -> Repository:
    from docmem import repository
    from docmem.config import settings

    return repository.open(settings(), tenant)


@review.command(name="list")
@click.argument("tenant")
@json_option
def list_(tenant: str, as_json: bool) -> None:
    """List what waits, oldest first."""
    from datetime import UTC, datetime

    from docmem import review as reviewing

    now = datetime.now(UTC)
    waiting = reviewing.reviews(_open(tenant))
    if as_json:
        print_json([each.as_json(now) for each in waiting])
        return
    if not waiting:
        click.echo("nothing waits")
    for each in waiting:
        click.echo(_headline(each, expired=each.is_expired(now)))
        for item in each.items:
            click.echo(f"  {item.number}  {_sign(item)}  {item.code}  {_says(item)}")


def _headline(each: Review, *, expired: bool) -> str:
    thread = f"  thread {each.thread}" if each.thread else ""
    until = f"  {'expired' if expired else 'until'} {each.expires:%Y-%m-%d}" if each.expires else ""
    name = click.style(each.id, fg="yellow")
    return f"{name}  {each.when:%Y-%m-%d %H:%M}{thread}  subject {each.subject[:8]}…{until}"


def _sign(item: Item) -> str:
    return click.style(item.op, fg=_COLOURS[item.op])


def _says(item: Item) -> str:
    text = item.after if item.after is not None else item.before or ""
    return one_line(f"{item.key}: {text}" if item.op == "profile" else text, 80)


@review.command()
@click.argument("tenant")
@_what
@_one
@json_option
def show(tenant: str, target: str, operation: str | None, as_json: bool) -> None:
    """Show what would change, why it was held, and what it rests on."""
    from datetime import UTC, datetime

    from docmem import review as reviewing

    repository = _open(tenant)
    found, items = reviewing.select(repository, target, operation)
    moved = reviewing.drift(repository, items)
    now = datetime.now(UTC)
    if as_json:
        rows = [item.as_json() | {"diff": item.diff()} for item in items]
        print_json(found.as_json(now) | {"operations": rows, "drift": [each.as_json() for each in moved]})
        return
    click.echo(_headline(found, expired=found.is_expired(now)))
    for item in items:
        _print_item(item)
    for each in moved:
        note(f"changed since: {each.name}: {_quoted(each.then)} is now {_quoted(each.now)}")


def _print_item(item: Item) -> None:
    from docmem.review import MEANS

    click.echo(f"\n{item.number}  {_sign(item)}  {item.key}  held as {item.code}: {MEANS.get(item.code, item.code)}")
    if item.turns:
        click.echo(f"    from turns {' '.join(item.turns)}")
    if item.quote:
        click.echo(f"    “{item.quote}”")
    if item.times > 1:
        click.echo(f"    proposed {item.times} times")
    click.echo(_coloured(item.diff()), nl=False)


def _coloured(diff: str) -> str:
    if not sys.stdout.isatty():
        return diff
    colours = {"+": "green", "-": "red", "@": "cyan"}
    return "".join(click.style(line, fg=colours.get(line[:1])) for line in diff.splitlines(keepends=True))


def _quoted(text: str | None) -> str:
    return "not there" if text is None else f"“{one_line(text, 80)}”"


@review.command()
@click.argument("tenant")
@_what
@_one
@_no_sync
@json_option
def approve(tenant: str, target: str, operation: str | None, no_sync: bool, as_json: bool) -> int:
    """Write what was held, as a commit of yours on today's state.

    What was edited elsewhere since stays. Where the same place was changed, nothing is written, the memory is named
    and the exit code is 1. What could never be kept (a secret, a duplicate of what is there now) is refused.
    """
    return _decide(tenant, target, operation, None, no_sync=no_sync, as_json=as_json)


@review.command()
@click.argument("tenant")
@_what
@_one
@click.option("--text", help="What it is to say. Without it, $EDITOR opens.")
@_no_sync
@json_option
def edit(tenant: str, target: str, operation: str | None, text: str | None, no_sync: bool, as_json: bool) -> int:
    """Change what one held operation says, and approve that."""
    from docmem import review as reviewing
    from docmem.errors import InputError

    if text is None:
        proposed = reviewing.proposed_text(_open(tenant), target, operation)
        text = click.edit(proposed + "\n", extension=".md")
        if text is None:
            raise InputError("the editor saved nothing", hint="save it, or give --text; or use: docmem review approve")
    return _decide(tenant, target, operation, text, no_sync=no_sync, as_json=as_json)


def _decide(tenant: str, target: str, operation: str | None, text: str | None, *, no_sync: bool, as_json: bool) -> int:
    from datetime import UTC, datetime

    from docmem import git
    from docmem import review as reviewing

    repository = _open(tenant)
    _, items = reviewing.select(repository, target, operation)
    done = reviewing.approve(repository, target, operation, now=datetime.now(UTC), author=git.person(), text=text)
    _report(done, items, as_json=as_json)
    if done.revision and not no_sync:
        sync_after(tenant)
    return 1 if done.conflicts else 0


@review.command()
@click.argument("tenant")
@_what
@_one
@json_option
def reject(tenant: str, target: str, operation: str | None, as_json: bool) -> None:
    """Turn it down. The same proposal is dropped from now on."""
    from datetime import UTC, datetime

    from docmem import git
    from docmem import review as reviewing

    repository = _open(tenant)
    _, items = reviewing.select(repository, target, operation)
    done = reviewing.reject(repository, target, operation, now=datetime.now(UTC), author=git.person())
    _report(done, items, as_json=as_json)


def _report(done: Settled, items: Sequence[Item], *, as_json: bool) -> None:
    if as_json:
        print_json(done.as_json())
        return
    for each in done.drift:
        note(f"changed since: {each.name}: {_quoted(each.then)} is now {_quoted(each.now)}")
    if done.conflicts:
        note(f"changed since in the same place, nothing is written: {', '.join(done.conflicts)}")
        note("  edit these by hand, or reject the proposal")
        return
    count = len(done.keys)
    where = f" in {short(done.revision)}" if done.revision else "; it stood there already"
    click.echo(f"{done.decision} {count} {'operation' if count == 1 else 'operations'}{where}")
    for item in items:
        click.echo(f"  {_sign(item)}  {_says(item)}")
    for proposed, there in done.merged.items():
        note(f"  {proposed} says more about {there}, which has its text now")
    if done.left:
        note(f"  {done.left} of review {done.review} still wait")
