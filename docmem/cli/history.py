"""`docmem log`, `show`, `diff`, `why`, `revert`: memory as code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from docmem.cli.output import columns, json_option, note, one_line, print_json, short
from docmem.cli.serving import sync_after

if TYPE_CHECKING:
    from docmem.history import Edit, Entry, Step
    from docmem.repository import Repository
    from docmem.revert import Plan

_SIGNS = {"create": "+", "update": "~", "delete": "-", "move": ">"}
_COLOURS = {"create": "green", "update": "yellow", "delete": "red", "move": "cyan"}


def _open(tenant: str) -> Repository:
    from docmem import repository
    from docmem.config import settings

    return repository.open(settings(), tenant)


@click.command(short_help="What was learned, newest first.")
@click.argument("tenant")
@click.option("--subject", metavar="S", help="Only what is about this subject.")
@click.option("--memory", metavar="ID", help="Only what happened to this memory.")
@click.option("-n", "--limit", type=click.IntRange(min=1), help="Only the newest N commits.")
@json_option
def log(tenant: str, subject: str | None, memory: str | None, limit: int | None, as_json: bool) -> None:
    """What was learned, changed and taken back, newest first."""
    from docmem import history, layout, names

    repository = _open(tenant)
    paths = [layout.subject_dir(names.subject_key(tenant, subject))] if subject else []
    paths += sorted({step.path for step in history.why(repository, memory).steps}) if memory else []
    entries = history.log(repository, paths=paths, limit=limit)
    if as_json:
        print_json([entry.as_json() for entry in entries])
        return
    for entry in entries:
        _print_entry(entry)


def _print_entry(entry: Entry) -> None:
    when = f"{entry.when:%Y-%m-%d %H:%M}"
    source = f"  thread {entry.thread}" if entry.thread else ""
    turns = f", turns {' '.join(entry.turns)}" if entry.turns else ""
    click.echo(f"{click.style(short(entry.revision), fg='yellow')}  {when}  {entry.author}{source}{turns}")
    click.echo(f"    {entry.subject}")
    for edit in entry.edits:
        click.echo("    " + _edit_line(edit))


def _edit_line(edit: Edit) -> str:
    text = edit.after if edit.after is not None else edit.before
    says = one_line(text, 90) if edit.kind == "memory" and text else edit.path
    sign = click.style(_SIGNS[edit.op], fg=_COLOURS[edit.op])
    return f"{sign} {edit.id + '  ' if edit.id else ''}{says}"


@click.command(short_help="Print a file.")
@click.argument("tenant")
@click.argument("what")
@click.option("--at", "revision", metavar="REVISION", help="As it was at this revision.")
@json_option
def show(tenant: str, what: str, revision: str | None, as_json: bool) -> None:
    """Print a file: WHAT is a memory's id, a path in the repo, or a subject (then its profile)."""
    from docmem import history, layout, names
    from docmem.errors import NotFound

    repository = _open(tenant)
    at = repository.snapshot(repository.revision(revision) if revision else None)
    memory = history.find_memory(repository, what)
    paths = at.locate(memory) if memory else []
    candidates = [*paths, what, layout.profile_path(names.subject_key(tenant, what))]
    found = next(((path, data) for path in candidates if (data := at.read(path)) is not None), None)
    if found is None:
        hint = f"see: docmem log {tenant}; docmem why {tenant} {memory}" if memory else f"see: docmem log {tenant}"
        raise NotFound(f"tenant {tenant} has no file for {what!r} at {short(at.revision)}", hint=hint)
    path, data = found
    text = data.decode("utf-8", "replace")
    if as_json:
        print_json({"path": path, "revision": at.revision, "id": memory, "text": text})
        return
    note(f"{path} at {short(at.revision)}")
    click.echo(text, nl=not text.endswith("\n"))


@click.command(short_help="What a commit changed.")
@click.argument("tenant")
@click.argument("revision", default="main")
@click.argument("other", required=False)
@click.option("--patch", is_flag=True, help="As git prints it.")
@json_option
def diff(tenant: str, revision: str, other: str | None, patch: bool, as_json: bool) -> None:
    """What one commit changed, or what differs between two revisions."""
    from docmem import history

    repository = _open(tenant)
    first = repository.revision(revision)
    old, new = (first, repository.revision(other)) if other else (None, first)
    if patch:
        click.echo(history.patch(repository, old, new, color=sys.stdout.isatty()), nl=False)
        return
    edits = history.diff(repository, old, new)
    if as_json:
        print_json([edit.as_json() | {"before": edit.before, "after": edit.after} for edit in edits])
        return
    for edit in edits:
        _print_edit(edit)


def _print_edit(edit: Edit) -> None:
    click.echo(f"{edit.op} {edit.kind} {edit.id or ''}".rstrip() + f"  {edit.path}")
    for text, sign, colour in ((edit.before, "-", "red"), (edit.after, "+", "green")):
        for line in (text or "").splitlines():
            click.echo(click.style(f"  {sign} {line}", fg=colour))


@click.command(short_help="Where a memory comes from.")
@click.argument("tenant")
@click.argument("memory")
@json_option
def why(tenant: str, memory: str, as_json: bool) -> None:
    """Where a memory comes from and what became of it. MEMORY is its id, the start of it, or words of its text."""
    from docmem import history

    life = history.why(_open(tenant), memory)
    if as_json:
        print_json(life.as_json())
        return
    click.echo(f"{life.id}  {life.path}")
    click.echo(f"  {life.text if life.text is not None else '(gone)'}")
    for step in life.steps:
        _print_step(step)


def _print_step(step: Step) -> None:
    colour = _COLOURS[step.op]
    click.echo(f"{click.style(step.op, fg=colour)}  {short(step.revision)}  {step.when:%Y-%m-%d %H:%M}  {step.author}")
    if step.thread:
        click.echo(f"    from thread {step.thread}, turns {' '.join(step.turns)}")
    if step.quote:
        click.echo(f"    “{step.quote}”")
    if step.approved_by:
        click.echo(f"    approved by {step.approved_by}")
    if step.text:
        click.echo(f"    {one_line(step.text)}")


@click.command(short_help="Take back a commit or a memory.")
@click.argument("tenant")
@click.argument("target")
@click.option("--dry-run", is_flag=True, help="Only say what it would change.")
@click.option("--no-sync", is_flag=True, help="Leave the served copy to the next sync.")
@json_option
def revert(tenant: str, target: str, dry_run: bool, no_sync: bool, as_json: bool) -> int:
    """Take back what a commit, or the last change of a memory, did. TARGET is either's id.

    A new commit undoes it on today's state; what was edited since stays, and a real conflict is named and nothing
    is written. The same statement is held for review if it is proposed again. Then the served copy is synced.
    """
    from datetime import UTC, datetime

    from docmem import git
    from docmem import revert as reverting

    repository = _open(tenant)
    planned = reverting.plan(repository, target)
    if not as_json:
        _print_plan(planned)
    if dry_run:
        if as_json:
            print_json({"revision": None, "changed": planned.changed, "conflicts": list(planned.conflicts)})
        return 1 if planned.conflicts else 0
    done = reverting.apply(repository, target, now=datetime.now(UTC), author=git.person())
    if as_json:
        print_json(done.as_json())
    elif done.revision:
        click.echo(f"reverted in {short(done.revision)}")
    if done.revision and not no_sync:
        sync_after(tenant)
    return 1 if done.conflicts else 0


def _print_plan(planned: Plan) -> None:
    rows = [["remove" if planned.files[path] is None else "write", path] for path in planned.changed]
    if planned.conflicts:
        note(f"changed since in the same place, nothing is written: {', '.join(planned.conflicts)}")
        note("  edit these by hand, or revert the later change first (docmem why tells which it is)")
    elif rows:
        click.echo(columns(rows))
    else:
        click.echo("nothing left to take back")
