"""`docmem log`, `show`, `diff`, `at`, `why`, `revert`: memory as code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from docmem.cli.output import columns, json_option, note, one_line, paged, print_json, short
from docmem.cli.serving import sync_after

if TYPE_CHECKING:
    from datetime import datetime

    from docmem.errors import DocmemError
    from docmem.history import Edit, Entry, Life, Remembered, Span, Step
    from docmem.repository import Repository
    from docmem.revert import Plan
    from docmem_sync.past import Served

F = TypeVar("F", bound=Callable[..., Any])

_SIGNS = {"create": "+", "update": "~", "delete": "-", "move": ">"}
_COLOURS = {"create": "green", "update": "yellow", "delete": "red", "move": "cyan"}


def _open(tenant: str) -> Repository:
    from docmem import repository
    from docmem.config import settings

    return repository.open(settings(), tenant)


def _selecting(function: F) -> F:
    """Options that select a part of history: whose, which memory's, which conversation's, when."""
    for option in reversed(
        [
            click.option("--subject", metavar="S", help="Only what is about this subject."),
            click.option("--memory", metavar="ID", help="Only what happened to this memory."),
            click.option("--thread", metavar="T", help="Only what came of this conversation."),
            click.option("--since", metavar="TIME", help="Only from this time on: 2026-05-02 or 2026-05-02T10:14:00Z."),
            click.option("--until", metavar="TIME", help="Only up to this time; a date is its first moment, in UTC."),
        ]
    ):
        function = option(function)
    return function


@dataclass(frozen=True)
class _Selection:
    """What the options of `_selecting` select in a repo."""

    repository: Repository
    paths: list[str]
    memory: str | None
    thread: str | None
    span: Span


def _select(
    tenant: str, subject: str | None, memory: str | None, thread: str | None, since: str | None, until: str | None
) -> _Selection:
    from docmem import history, names

    repository = _open(tenant)
    key = None if subject is None else names.subject_key(tenant, subject)
    life = history.why(repository, memory) if memory is not None else None
    paths = history.paths_of(repository, subject=key) + (sorted({step.path for step in life.steps}) if life else [])
    span = history.Span(_time(since), _time(until))
    return _Selection(repository, paths, life.id if life else None, thread, span)


def _time(text: str | None) -> datetime | None:
    from docmem.errors import InputError
    from docmem.times import parse_time

    try:
        return parse_time(text) if text is not None else None
    except ValueError as error:
        raise InputError(str(error), hint="give a date, or a time in UTC") from None


@click.command(short_help="What was learned, newest first.")
@click.argument("tenant")
@_selecting
@click.option("-n", "--limit", type=click.IntRange(min=1), help="Only the newest N commits.")
@click.option("--patch", is_flag=True, help="With each commit's diff, as git prints it.")
@json_option
def log(tenant: str, limit: int | None, patch: bool, as_json: bool, **which: str | None) -> None:
    """What was learned, changed and taken back, newest first.

    Times are those at which a commit took effect on main: a clock that went wrong moves nothing out of its order.
    """
    from docmem import history

    chosen = _select(tenant, **which)
    entries = history.log(
        chosen.repository,
        paths=chosen.paths,
        memory=chosen.memory,
        limit=limit,
        thread=chosen.thread,
        span=chosen.span,
    )
    if as_json:
        print_json([entry.as_json() for entry in entries])
        return
    paged(line for entry in entries for line in _entry_lines(chosen, entry, patch=patch))


def _entry_lines(chosen: _Selection, entry: Entry, *, patch: bool) -> Iterator[str]:
    from docmem import history

    yield from _headline(entry)
    if patch:
        yield history.patch(chosen.repository, None, entry.revision, paths=chosen.paths, color=sys.stdout.isatty())
        return
    for edit in entry.edits:
        yield "    " + _edit_line(edit)


def _headline(entry: Entry) -> Iterator[str]:
    when = f"{entry.when:%Y-%m-%d %H:%M}"
    source = f"  thread {entry.thread}" if entry.thread else ""
    turns = f", turns {' '.join(entry.turns)}" if entry.turns else ""
    yield f"{click.style(short(entry.revision), fg='yellow')}  {when}  {entry.author}{source}{turns}"
    yield f"    {entry.subject}"


def _edit_line(edit: Edit) -> str:
    text = edit.after if edit.after is not None else edit.before
    says = one_line(text, 90) if edit.kind == "memory" and text else edit.path
    sign = click.style(_SIGNS[edit.op], fg=_COLOURS[edit.op])
    moved = f"  (from {edit.moved_from})" if edit.op == "move" else ""
    return f"{sign} {edit.id + '  ' if edit.id else ''}{says}{moved}"


@click.command(short_help="Print a file, a commit, or what a conversation taught.")
@click.argument("tenant")
@click.argument("what", required=False)
@click.option("--at", "revision", metavar="REVISION", help="As it was at this revision.")
@_selecting
@click.option("--patch", is_flag=True, help="A commit as git prints it.")
@json_option
def show(tenant: str, what: str | None, revision: str | None, patch: bool, as_json: bool, **which: str | None) -> None:
    """Print WHAT: a memory's id, a path in the repo, a subject (then its profile), or a commit (then what it changed).

    Without WHAT, the options select commits, and each is printed with the texts before and after.
    """
    chosen = _select(tenant, **which)
    if what is not None and _print_file(chosen.repository, what, revision, as_json=as_json):
        return
    _show_commits(chosen, what, patch=patch, as_json=as_json)


def _print_file(repository: Repository, what: str, revision: str | None, *, as_json: bool) -> bool:
    from docmem import history, layout, names

    at = repository.snapshot(repository.revision(revision) if revision else None)
    memory = history.find_memory(repository, what)
    paths = at.locate(memory) if memory else []
    candidates = [*paths, what, layout.profile_path(names.subject_key(repository.tenant, what))]
    found = next(((path, data) for path in candidates if (data := at.read(path)) is not None), None)
    if found is None:
        if memory or revision or not repository.has_revision(what):
            raise _no_file(repository, what, memory, at.revision)
        return False
    path, data = found
    text = data.decode("utf-8", "replace")
    if as_json:
        print_json({"path": path, "revision": at.revision, "id": memory, "text": text})
        return True
    note(f"{path} at {short(at.revision)}")
    click.echo(text, nl=not text.endswith("\n"))
    return True


def _no_file(repository: Repository, what: str, memory: str | None, revision: str) -> DocmemError:
    from docmem import history
    from docmem.errors import NotFound

    tenant, hint = repository.tenant, f"see: docmem log {repository.tenant}"
    if memory is not None:
        last = next((step for step in reversed(history.why(repository, memory).steps) if step.text is not None), None)
        told = f"docmem why {tenant} {memory} tells what became of it"
        hint = f"it said last: docmem show {tenant} {memory} --at {short(last.revision)}; {told}" if last else told
    return NotFound(f"tenant {tenant} has no file for {what!r} at {short(revision)}", hint=hint)


def _show_commits(chosen: _Selection, what: str | None, *, patch: bool, as_json: bool) -> None:
    from docmem import history

    repository = chosen.repository
    revision = repository.revision(what) if what is not None else None
    entries = history.log(
        repository,
        paths=chosen.paths,
        memory=chosen.memory,
        revision=revision,
        limit=1 if revision else None,
        thread=chosen.thread,
        span=chosen.span,
    )
    if as_json:
        print_json([entry.as_json() | {"changes": [_edit_json(edit) for edit in entry.edits]} for entry in entries])
        return
    paged(line for entry in entries for line in _shown(chosen, entry, patch=patch))


def _shown(chosen: _Selection, entry: Entry, *, patch: bool) -> Iterator[str]:
    if patch:
        yield from _entry_lines(chosen, entry, patch=True)
        return
    yield from _headline(entry)
    for edit in entry.edits:
        yield from _edit_lines(edit)


@click.command(short_help="What a commit changed.")
@click.argument("tenant")
@click.argument("revision", required=False)
@click.argument("other", required=False)
@_selecting
@click.option("--patch", is_flag=True, help="As git prints it.")
@json_option
def diff(tenant: str, revision: str | None, other: str | None, patch: bool, as_json: bool, **which: str | None) -> None:
    """What one commit changed (default: the last), or what differs between two revisions.

    With --since or --until: between the states of main at these times. With --thread: what all commits of one
    conversation changed, taken together.
    """
    from docmem import history

    chosen = _select(tenant, **which)
    if chosen.thread is not None:
        edits = history.thread_diff(chosen.repository, chosen.thread)
        if patch:
            raise click.UsageError("--patch and --thread: use docmem log --thread T --patch")
    else:
        old, new = _ends(chosen, revision, other)
        if patch:
            paged([history.patch(chosen.repository, old, new, paths=chosen.paths, color=sys.stdout.isatty())])
            return
        edits = history.diff(chosen.repository, old, new, paths=chosen.paths, memory=chosen.memory)
    if as_json:
        print_json([_edit_json(edit) for edit in edits])
        return
    paged(line for edit in edits for line in _edit_lines(edit))


def _ends(chosen: _Selection, revision: str | None, other: str | None) -> tuple[str | None, str]:
    """The two revisions to compare; the first is None for what came before the second."""
    from docmem import git, history

    repository = chosen.repository
    if not chosen.span:
        first = repository.revision(revision or git.MAIN)
        return (first, repository.revision(other)) if other else (None, first)
    if revision:
        raise click.UsageError("give revisions, or --since and --until")
    before, last = history.ends(repository, chosen.span)
    if last is None:
        raise _nothing_then(repository.tenant)
    return before or git.EMPTY_TREE, last


def _nothing_then(tenant: str) -> DocmemError:
    from docmem.errors import NotFound

    return NotFound(f"tenant {tenant} had no commit on main then", hint=f"see: docmem log {tenant}")


def _edit_json(edit: Edit) -> dict[str, Any]:
    return edit.as_json() | {"before": edit.before, "after": edit.after}


def _edit_lines(edit: Edit) -> Iterator[str]:
    yield f"{edit.op} {edit.kind} {edit.id or ''}".rstrip() + f"  {edit.path}"
    if edit.moved_from:
        yield f"  from {edit.moved_from}"
    if edit.op == "move":
        return
    yield from _sides(edit.before, edit.after, edit.kind, indent="  ")


def _sides(before: str | None, after: str | None, kind: str, *, indent: str) -> Iterator[str]:
    for text, other, sign, colour in ((before, after, "-", "red"), (after, before, "+", "green")):
        for line in _told(text, other=other, kind=kind):
            yield click.style(f"{indent}{sign} {line}", fg=colour)


def _told(text: str | None, *, other: str | None, kind: str) -> list[str]:
    """A text's lines; of a profile only those that the other side hasn't."""
    lines = (text or "").splitlines()
    return [line for line in lines if line not in (other or "").splitlines()] if kind == "profile" else lines


@click.command(short_help="What was remembered at a time.")
@click.argument("tenant")
@click.argument("time")
@click.argument("subject", required=False)
@click.option("--index", "from_index", is_flag=True, help="Ask the index in Postgres instead of git.")
@json_option
def at(tenant: str, time: str, subject: str | None, from_index: bool, as_json: bool) -> None:
    """What was remembered at TIME (2026-05-02T10:14:00Z, or a date: its first moment, in UTC), about all or SUBJECT.

    That is what main said then, by the times at which its commits took effect. With --index: what the served copy's
    history says of then. The two agree once main is synced, but for a file that couldn't be read: the copy goes on
    serving what it said last.
    """
    from docmem import names
    from docmem.times import format_time

    when = _time(time)
    assert when is not None
    key = None if subject is None else names.subject_key(tenant, subject)
    revision, found = (_at_index if from_index else _at_main)(tenant, when, key)
    if as_json:
        source = "index" if from_index else "git"
        subjects = [each.as_json() for each in found]
        print_json({"time": format_time(when), "revision": revision, "source": source, "subjects": subjects})
        return
    note(f"the index, at {short(revision)}" if from_index else f"revision {short(revision)}")
    paged(line for each in found for line in _remembered_lines(each))


def _at_main(tenant: str, when: datetime, subject: str | None) -> tuple[str, list[Remembered]]:
    from docmem import history

    repository = _open(tenant)
    revision = history.at(repository, when)
    if revision is None:
        raise _nothing_then(tenant)
    return revision, history.remembered(repository, revision, subject)


def _at_index(tenant: str, when: datetime, subject: str | None) -> tuple[str, list[Remembered]]:
    from docmem.config import settings
    from docmem_sync import past

    return past.remembered(settings(), tenant, when, subject)


def _remembered_lines(each: Remembered) -> Iterator[str]:
    yield click.style(each.subject + (f"  {each.label}" if each.label else ""), bold=True)
    for stored in each.memories:
        yield f"  {stored.memory.id}  {stored.memory.kind}  {one_line(stored.memory.text)}"
    for line in each.profile.splitlines():
        yield f"  profile  {line}"


@click.command(short_help="Where a memory comes from.")
@click.argument("tenant")
@click.argument("memory", metavar="MEMORY|PATH|TEXT")
@json_option
def why(tenant: str, memory: str, as_json: bool) -> None:
    """Where a memory comes from and what became of it: its id, the start of it, its file, or words of its text.

    The path of a profile or a document does as well. Where several memories have these words, they are listed. Where
    an index is at hand, it tells to whom the memory was served last.
    """
    from docmem import history
    from docmem_sync import past

    repository = _open(tenant)
    life = history.why(repository, memory)
    served = past.served(repository.settings, tenant, life.id) if life.id is not None else None
    if as_json:
        print_json(life.as_json() | {"served": None if served is None else [each.as_json() for each in served]})
        return
    paged([*_life_lines(life), *(_served_line(each) for each in served or ())])


def _served_line(each: Served) -> str:
    return f"served  {each.at:%Y-%m-%d %H:%M}  to {each.agent}, in run {each.run} last; in {each.uses} in all"


def _life_lines(life: Life) -> Iterator[str]:
    yield f"{life.id}  {life.path}" if life.id else life.path
    if life.id is not None:
        yield f"  {life.text if life.text is not None else '(gone)' if life.readable else '(never readable)'}"
        if not life.readable:
            yield "  (the file can't be read since; what it said last stays served: docmem status names the fault)"
    for step in life.steps:
        yield from _step_lines(step, is_memory=life.id is not None)


def _step_lines(step: Step, *, is_memory: bool) -> Iterator[str]:
    colour = _COLOURS[step.op]
    yield f"{click.style(step.op, fg=colour)}  {short(step.revision)}  {step.when:%Y-%m-%d %H:%M}  {step.author}"
    if step.thread:
        yield f"    from thread {step.thread}, turns {' '.join(step.turns)}"
    if step.quote:
        yield f"    “{step.quote}”"
    if step.approved_by:
        yield f"    approved by {step.approved_by}"
    if is_memory and step.text:
        yield f"    {one_line(step.text)}"
    if not is_memory:
        yield from _sides(step.before, step.text, "profile", indent="    ")


@click.command(short_help="Take back a commit, a memory or a conversation.")
@click.argument("tenant")
@click.argument("target")
@click.option("--relearn", is_flag=True, help="Read the conversation again from there on, at the next consolidation.")
@click.option("--dry-run", is_flag=True, help="Only say what it would change.")
@click.option("--no-sync", is_flag=True, help="Leave the served copy to the next sync.")
@json_option
def revert(tenant: str, target: str, relearn: bool, dry_run: bool, no_sync: bool, as_json: bool) -> int:
    """Take back what a commit, the last change of a memory, or a conversation did. TARGET is the id of one of them.

    A new commit undoes it on today's state; what was edited since stays, and a real conflict is named and nothing
    is written. The same statement is held for review if it is proposed again. Then the served copy is synced.
    """
    from datetime import UTC, datetime

    from docmem import git
    from docmem import revert as reverting

    repository = _open(tenant)
    planned = reverting.plan(repository, target, relearn=relearn)
    if not as_json:
        _print_plan(repository, planned)
    if dry_run:
        if as_json:
            print_json({"revision": None, "changed": planned.changed, "conflicts": list(planned.conflicts)})
        return 1 if planned.conflicts else 0
    done = reverting.apply(repository, target, now=datetime.now(UTC), author=git.person(), relearn=relearn)
    if as_json:
        print_json(done.as_json())
    elif done.revision:
        click.echo(f"reverted in {short(done.revision)}")
    if done.revision and not no_sync:
        sync_after(tenant)
    return 1 if done.conflicts else 0


def _print_plan(repository: Repository, planned: Plan) -> None:
    rows = [["remove" if planned.files[path] is None else "write", path] for path in planned.changed]
    if planned.conflicts:
        _print_conflicts(repository, planned)
    elif rows:
        click.echo(columns(rows))
    else:
        click.echo("nothing left to take back")


def _print_conflicts(repository: Repository, planned: Plan) -> None:
    """Each with what helps: the later change to take back first, or the memory that says the same by now."""
    from docmem import history

    tenant = repository.tenant
    note("nothing is written, since this was changed in the same place afterwards:")
    for name in planned.conflicts:
        later = history.changed_last(repository, name)
        if later is None or later in planned.targets:
            note(f"  {name}: another memory says by now what would come back; forget one of the two, or edit it")
            continue
        note(f"  {name}, in {short(later)}; what it was: docmem why {tenant} {name}")
        note(f"    edit it by hand, or take that back first: docmem revert {tenant} {short(later)}")
