"""`docmem search`, `docmem inject`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from docmem.cli.output import columns, json_option, note, one_line, print_json, short
from docmem.packet import BLOCKS

if TYPE_CHECKING:
    from docmem.config import Settings


_DEGRADED = {
    "no_embedder": "(found by words alone: there is no embedding model, see DOCMEM_EMBEDDING_MODEL)",
    "embedder_failed": "(found by words alone: the embedding model gave no answer)",
    "recency": "(the newest: no search could run)",
}


def _degraded(code: str) -> str:
    """What was missing, in words."""
    return _DEGRADED.get(code, f"(degraded: {code})")


def _known(settings: Settings, tenant: str) -> None:
    """Refuse a tenant that isn't one. A machine that only serves has no repos to ask."""
    from docmem import names, repository

    names.tenant_name(tenant)
    if not settings.external:
        repository.open(settings, tenant)


@click.command(short_help="Find memories and documents.")
@click.argument("tenant")
@click.argument("query")
@click.option("--subject", metavar="S", help="Only what is remembered about this subject, and documents.")
@click.option("--agent", help="As this agent sees it.")
@click.option("--limit", type=click.IntRange(1, 200), default=10, show_default=True)
@click.option("--files", is_flag=True, help="Search the repo's files instead of the index: needs no Postgres.")
@click.option("--explain", is_flag=True, help="Show what each hit's score is made of.")
@json_option
def search(
    tenant: str,
    query: str,
    subject: str | None,
    agent: str | None,
    limit: int,
    files: bool,
    explain: bool,
    as_json: bool,
) -> None:
    """Find memories and documents by a question in plain words."""
    from docmem import embedding, filesearch, names, recall
    from docmem.config import settings

    configured = settings()
    _known(configured, tenant)
    key = names.subject_key(tenant, subject) if subject else None
    if files:
        result = filesearch.search(configured, tenant, query, subject=key, agent=agent, limit=limit)
    else:
        model = embedding.embedder(configured)
        result = recall.search(configured, tenant, query, subject=key, agent=agent, limit=limit, embedder=model)
    if as_json:
        print_json(result.as_json())
        return
    if result.degraded and result.degraded != "files":
        note(f"({result.degraded})")
    if not result.hits:
        click.echo("nothing found")
    for hit in result.hits:
        row = hit.as_json()
        click.echo(f"{row['score']:.3f}  {row['id']}  {one_line(row['text'])}")
        click.echo(f"       {row['path']} at {short(row['revision'])}")
        if explain:
            click.echo("       " + ", ".join(f"{name} {_signal(value)}" for name, value in row["signals"].items()))


def _signal(value: object) -> str:
    if value is None:
        return "none"
    return " ".join(value) if isinstance(value, list) else str(value)


@click.command(short_help="Print what a prompt would be given.")
@click.argument("tenant")
@click.argument("subject")
@click.option("--goal", help="What the turn is about, usually the user's message. Without it: no search.")
@click.option("--agent", help="As this agent sees it.")
@click.option("--block", "blocks", multiple=True, type=click.Choice(BLOCKS), help="Only these blocks of the packet.")
@click.option("--document", "documents", multiple=True, metavar="PATH", help="Also this document.")
@click.option("--explain", is_flag=True, help="List the file and commit behind each line.")
@json_option
def inject(
    tenant: str,
    subject: str,
    goal: str | None,
    agent: str | None,
    blocks: tuple[str, ...],
    documents: tuple[str, ...],
    explain: bool,
    as_json: bool,
) -> None:
    """Print what an agent's prompt would be given about a subject, now."""
    from docmem import names
    from docmem.config import settings
    from docmem.index import READING
    from docmem.inject import PATIENCE, Injector

    configured = settings()
    _known(configured, tenant)
    key = names.subject_key(tenant, subject)
    with Injector(configured, timeout=READING, opening=PATIENCE, embedding_timeout=PATIENCE) as injector:
        packet = injector.packet(tenant, key, goal, agent=agent, blocks=list(blocks) or None, documents=documents)
    if as_json:
        print_json(packet.as_json())
        return
    if packet.degraded:
        note(_degraded(packet.degraded))
    click.echo(packet.text or "(nothing)")
    if explain and packet.spans:
        rows = [[f"{span.start}–{span.end}", span.id, short(span.revision), span.path] for span in packet.spans]
        click.echo(columns(rows))
