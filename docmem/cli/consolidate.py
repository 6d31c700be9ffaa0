"""`docmem consolidate`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from docmem.cli.output import json_option, note, print_json, short
from docmem.cli.serving import tell_of_erase

if TYPE_CHECKING:
    from docmem.config import Settings
    from docmem.consolidation import Consolidation, Model
    from docmem.errors import DocmemError

_TRY_AGAIN = 75
_MEANS = {
    "committed": "committed",
    "nothing_new": "nothing new since the last window",
    "nothing_kept": "nothing worth keeping",
    "no_topics": "docmem.yaml declares no topics for this agent, so nothing is learned (is the name right?)",
    "no_consent": "no consent, so nothing is learned",
    "held": "held for review",
    "conflict": "somebody changed the same memory meanwhile; run it again",
    "failed": "the model failed; nothing was written, run it again",
}


@click.command(short_help="Learn from conversations: a commit each.")
@click.argument("tenant")
@click.option("--thread", help="The conversation's id. Default: the file's name without its ending.")
@click.option("--subject", metavar="S", help="Whom it is about: a subject key, or an authenticated id.")
@click.option(
    "--subjects",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="For a folder: a YAML or JSON file that tells each thread's subject.",
)
@click.option(
    "--dialogue",
    required=True,
    type=click.Path(path_type=Path),
    help="JSONL, one turn a line: id, role, text, at, speaker. Or a folder of such files, a thread each.",
)
@click.option("--agent", default="default", show_default=True, help="Whose topics count.")
@click.option("--model", help="A litellm model, `offline` or `replay:FILE`. Default: DOCMEM_MODEL.")
@click.option("--run", type=int, help="The agent's run this belongs to.")
@click.option("--dry-run", is_flag=True, help="Print the diff it would commit; write nothing.")
@json_option
def consolidate(
    tenant: str,
    thread: str | None,
    subject: str | None,
    subjects: Path | None,
    dialogue: Path,
    agent: str,
    model: str | None,
    run: int | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Learn from a conversation: read what is new in it, ask the model once, commit what may be kept.

    Of a folder each file is a thread; a file that can't be read is named, and the others go on.
    The model `offline` is a small deterministic stand-in for trying docmem without a key; it is no language model.
    """
    from docmem import llm
    from docmem.config import settings
    from docmem.errors import ConfigError

    configured = settings()
    chosen = model or configured.model
    if not chosen:
        raise ConfigError(
            "no model is set", hint="give --model or DOCMEM_MODEL: a litellm model, or `offline` to try without a key"
        )
    tell_of_erase([tenant])
    work = _Work(configured, tenant, agent, run, llm.model(chosen), dry_run=dry_run)
    if dialogue.is_dir():
        if thread is not None:
            raise click.UsageError("--thread names one conversation; of a folder, each file is one")
        return _folder(work, dialogue, subject, subjects, as_json=as_json)
    if subject is None or subjects is not None:
        raise click.UsageError("one conversation needs --subject (--subjects is for a folder)")
    return _file(work, dialogue, thread, subject, as_json=as_json)


@dataclass(frozen=True)
class _Work:
    """What all threads of one call have in common."""

    settings: Settings
    tenant: str
    agent: str
    run: int | None
    model: Model
    dry_run: bool

    def consolidate(self, dialogue: Path, thread: str, subject: str) -> Consolidation:
        from docmem import consolidation, names
        from docmem.dialogue import read_jsonl
        from docmem.model import Job

        key = names.subject_key(self.tenant, subject)
        job = Job(tenant=self.tenant, thread=thread, subject=key, agent=self.agent, run=self.run)
        turns = read_jsonl(dialogue)
        return consolidation.consolidate(
            job, settings=self.settings, turns=turns, model=self.model, dry_run=self.dry_run
        )


def _file(work: _Work, dialogue: Path, thread: str | None, subject: str, *, as_json: bool) -> int:
    from docmem.dialogue import source

    [name] = source(dialogue, thread=thread).threads()
    done = work.consolidate(dialogue, name, subject)
    if as_json:
        print_json(_row(done))
    else:
        _print(done)
    return _TRY_AGAIN if done.outcome in {"conflict", "failed"} else 0


def _row(done: Consolidation) -> dict[str, Any]:
    return done.as_json() | ({"diff": _diff(done)} if done.dry_run else {})


def _print(done: Consolidation) -> None:
    line = _line(done)
    click.echo(f"{line} (revision {short(done.revision)})" if done.revision else line)
    if done.rejected:
        note("  rejected: " + ", ".join(f"{count} {code}" for code, count in sorted(done.rejected.items())))
    if done.held:
        note(f"  held for review: {done.held}")
    if done.dry_run:
        click.echo(_diff(done), nl=False)


def _line(done: Consolidation) -> str:
    counts = ", ".join(f"{count} {op}d" for op, count in done.as_json()["operations"].items() if count)
    would = "would be " if done.dry_run and done.outcome in {"committed", "held"} else ""
    return would + _means(done) + (f": {counts}" if counts else "")


def _means(done: Consolidation) -> str:
    """A conflict has its own words: it may be a lock that somebody holds, or another's commit."""
    if done.outcome != "conflict" or done.error is None:
        return _MEANS[done.outcome]
    return f"nothing was written: {done.error.message}" + (f"; {done.error.hint}" if done.error.hint else "")


def _diff(done: Consolidation) -> str:
    """What a dry run would commit. The watermark says nothing to a reader, and is left out."""
    from docmem import layout
    from docmem.review import unified

    return "".join(
        unified(path, before, after)
        for path, (before, after) in done.files.items()
        if layout.place(path).kind != "watermark"
    )


# -------------------------------------------------------------------------------------------------------- a folder


@dataclass(frozen=True)
class _Done:
    """One thread of a folder: what became of it, or the error that it was."""

    thread: str
    result: Consolidation | None = None
    error: DocmemError | None = None

    @property
    def outcome(self) -> str:
        return self.result.outcome if self.result is not None else "error"

    def text(self) -> str:
        """A line; of a dry run the diff as well."""
        if self.result is None:
            return f"{self.thread}: error: {self.error}"
        held = f"; {self.result.held} held for review" if self.result.held else ""
        diff = f"\n{_diff(self.result)}".rstrip("\n") if self.result.dry_run else ""
        return f"{self.thread}: {_line(self.result)}{held}{diff}"

    def as_json(self) -> dict[str, Any]:
        row: dict[str, Any] = {"thread": self.thread, "outcome": self.outcome}
        if self.result is not None:
            return row | _row(self.result)
        assert self.error is not None
        return row | {"reason": {"code": self.error.code, "message": self.error.message, "hint": self.error.hint}}


def _folder(work: _Work, folder: Path, subject: str | None, subjects: Path | None, *, as_json: bool) -> int:
    from docmem import repository
    from docmem.dialogue import source

    repository.open(work.settings, work.tenant)
    threads = source(folder).threads()
    whom = _subjects(threads, subject, subjects)
    done: list[_Done] = []
    with _progress(len(threads), silent=as_json) as progress:
        for thread in threads:
            one = _attempt(work, folder / f"{thread}.jsonl", thread, whom[thread])
            progress.done(one.text())
            done.append(one)
    if as_json:
        print_json({"threads": [each.as_json() for each in done], "summary": _summary(done)})
    else:
        click.echo(_summary_line(done))
    return _exit_code(done)


def _attempt(work: _Work, dialogue: Path, thread: str, subject: str) -> _Done:
    from docmem.errors import FormatError, InputError

    try:
        return _Done(thread, work.consolidate(dialogue, thread, subject))
    except (InputError, FormatError) as error:  # of this thread or its subject; the others go on
        return _Done(thread, error=error)


def _subjects(threads: Sequence[str], subject: str | None, file: Path | None) -> Mapping[str, str]:
    """Each thread's subject. Raises `InputError` for a file that doesn't tell them all."""
    from docmem.errors import InputError
    from docmem.strictyaml import as_written, load_mapping

    if (subject is None) == (file is None):
        raise click.UsageError("a folder needs --subject, where all is about one person, or --subjects FILE")
    if file is None:
        return dict.fromkeys(threads, str(subject))
    known = load_mapping(file.read_text("utf-8-sig"))
    missing = [thread for thread in threads if not isinstance(known.get(thread), str | int)]
    if missing:
        raise InputError(
            f"{file} tells no subject for {len(missing)} of {len(threads)} threads: {', '.join(missing[:5])}",
            hint="one line a thread: `web-812: ana`",
        )
    return {thread: as_written(known[thread]) for thread in threads}


def _summary(done: Sequence[_Done]) -> dict[str, Any]:
    results = [each.result for each in done if each.result is not None]
    operations: Counter[str] = Counter()
    rejected: Counter[str] = Counter()
    for result in results:
        operations.update(result.operations)
        rejected.update(result.rejected)
    costs = [result.cost for result in results if result.cost is not None]
    return {
        "threads": len(done),
        "outcomes": dict(sorted(Counter(each.outcome for each in done).items())),
        "operations": {op: operations[op] for op in ("create", "update", "delete")},
        "rejected": dict(sorted(rejected.items())),
        "held": sum(result.held for result in results),
        "tokens": {
            "in": sum(result.tokens_in for result in results),
            "out": sum(result.tokens_out for result in results),
        },
        "cost": sum(costs) if costs else None,
    }


def _summary_line(done: Sequence[_Done]) -> str:
    found = _summary(done)
    outcomes = ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in found["outcomes"].items())
    counts = ", ".join(f"{count} {op}d" for op, count in found["operations"].items() if count) or "nothing written"
    held = f", {found['held']} held for review" if found["held"] else ""
    cost = f", {found['cost']:.4f} USD" if found["cost"] else ""
    threads = "thread" if len(done) == 1 else "threads"
    return f"{len(done)} {threads}: {outcomes or 'none there'} ({counts}{held}{cost})"


def _exit_code(done: Sequence[_Done]) -> int:
    if any(each.error is not None for each in done):
        return 1
    return _TRY_AGAIN if any(each.outcome in {"conflict", "failed"} for each in done) else 0


class _Progress(Protocol):
    def done(self, text: str) -> None:
        """One thread is done; `text` says how."""


class _Lines:
    """A line a thread, as it is done."""

    def __init__(self, *, silent: bool) -> None:
        self._silent = silent

    def done(self, text: str) -> None:
        if not self._silent:
            click.echo(text)


@contextmanager
def _progress(total: int, *, silent: bool) -> Iterator[_Progress]:
    """A bar on a terminal, below the lines; lines alone elsewhere."""
    if silent or not sys.stdout.isatty():
        yield _Lines(silent=silent)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    with Progress(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), transient=True) as bar:
        task = bar.add_task("", total=total)

        class Bar:
            def done(self, text: str) -> None:
                bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
                bar.advance(task)

        yield Bar()
