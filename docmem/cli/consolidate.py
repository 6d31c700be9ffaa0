"""`docmem consolidate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from docmem.cli.output import json_option, note, print_json, short

if TYPE_CHECKING:
    from docmem.consolidation import Consolidation

_TRY_AGAIN = 75
_MEANS = {
    "committed": "committed",
    "nothing_new": "nothing new since the last window",
    "nothing_kept": "nothing worth keeping",
    "no_topics": "the agent declares no topics, so nothing is learned",
    "no_consent": "no consent, so nothing is learned",
    "held": "held for review",
    "conflict": "somebody changed the same memory meanwhile; run it again",
    "failed": "the model failed; nothing was written, run it again",
}


@click.command(short_help="Learn from a conversation: one commit.")
@click.argument("tenant")
@click.option("--thread", required=True, help="The conversation's id.")
@click.option("--subject", required=True, metavar="S", help="Whom it is about: a subject key, or an authenticated id.")
@click.option(
    "--dialogue",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="JSONL, one turn a line: id, role, text, at, speaker.",
)
@click.option("--agent", default="default", show_default=True, help="Whose topics count.")
@click.option("--model", help="A litellm model, `offline` or `replay:FILE`. Default: DOCMEM_MODEL.")
@click.option("--run", type=int, help="The agent's run this belongs to.")
@click.option("--dry-run", is_flag=True, help="Print what it would commit; write nothing.")
@json_option
def consolidate(
    tenant: str,
    thread: str,
    subject: str,
    dialogue: Path,
    agent: str,
    model: str | None,
    run: int | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Learn from a conversation: read what is new in it, ask the model once, commit what may be kept.

    The model `offline` is a small deterministic stand-in for trying docmem without a key; it is no language model.
    """
    from docmem import consolidation, names
    from docmem.config import settings
    from docmem.dialogue import read_jsonl
    from docmem.errors import ConfigError
    from docmem.model import Job

    configured = settings()
    chosen = model or configured.model
    if not chosen:
        raise ConfigError(
            "no model is set", hint="give --model or DOCMEM_MODEL: a litellm model, or `offline` to try without a key"
        )
    job = Job(tenant=tenant, thread=thread, subject=names.subject_key(tenant, subject), agent=agent, run=run)
    done = consolidation.consolidate(
        job, settings=configured, turns=read_jsonl(dialogue), model=chosen, dry_run=dry_run
    )
    if as_json:
        print_json(done.as_json())
    else:
        _print(done)
    return _TRY_AGAIN if done.outcome in {"conflict", "failed"} else 0


def _print(done: Consolidation) -> None:
    row = done.as_json()
    counts = ", ".join(f"{count} {op}d" for op, count in row["operations"].items() if count)
    line = _MEANS[row["outcome"]] + (f": {counts}" if counts else "")
    click.echo(f"{line} (revision {short(row['revision'])})" if row["revision"] else line)
    if row["rejected"]:
        note("  rejected: " + ", ".join(f"{count} {code}" for code, count in sorted(row["rejected"].items())))
    if row["held"]:
        note(f"  held for review: {row['held']}")
