"""`docmem search`, `docmem inject`, `docmem trace`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from docmem.cli.output import columns, json_option, note, one_line, print_json, short
from docmem.errors import DocmemError
from docmem.model import KINDS
from docmem.packet import BLOCKS, Packet, Span

if TYPE_CHECKING:
    from datetime import datetime

    from docmem.config import Settings


_DEGRADED = {
    "no_embedder": "found by words alone, there is no embedding model: see DOCMEM_EMBEDDING_MODEL",
    "embedder_failed": "found by words alone, the embedding model gave no answer that serves",
    "recency": "the newest, no search could run",
    "files": "from the repo's files, found by words alone: the index can't be read, see docmem status",
    "not_synced": "it isn't in the index yet: docmem sync",
}

_AWAY = ("server_unavailable", "locked", "slow", "busy", "index_failed", "schema")
"""What a packet says in `degraded` where the index can't be read and the files may serve."""


def _degraded(code: str) -> str:
    """What was missing: its code, and in words."""
    return f"(degraded: {code}: {_DEGRADED.get(code, 'see docmem status')})"


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
@click.option("--kind", "kinds", multiple=True, type=click.Choice([*KINDS, "document"]), help="Only these kinds.")
@click.option("--topic", "topics", multiple=True, help="Only memories of this topic.")
@click.option("--files", is_flag=True, help="Search the repo's files instead of the index: needs no Postgres.")
@click.option("--explain", is_flag=True, help="Show what each hit's score is made of.")
@json_option
def search(
    tenant: str,
    query: str,
    subject: str | None,
    agent: str | None,
    limit: int,
    kinds: tuple[str, ...],
    topics: tuple[str, ...],
    files: bool,
    explain: bool,
    as_json: bool,
) -> None:
    """Find memories and documents by a question in plain words. --kind and --topic can be given several times."""
    from docmem import embedding, filesearch, names, recall
    from docmem.config import settings
    from docmem.layout import FOLDERS

    configured = settings()
    _known(configured, tenant)
    key = None if subject is None else names.subject_key(tenant, subject)
    which: Any = {
        "kinds": tuple(kind for kind in KINDS if not kinds or kind in kinds),
        "folders": FOLDERS if not kinds or "document" in kinds else (),
        "topics": topics or None,
    }
    if files:
        result = filesearch.search(configured, tenant, query, subject=key, agent=agent, limit=limit, **which)
    else:
        model = embedding.embedder(configured)
        result = recall.search(
            configured, tenant, query, subject=key, agent=agent, limit=limit, embedder=model, **which
        )
    if as_json:
        print_json(result.as_json())
        return
    if result.degraded and result.degraded != "files":
        note(_degraded(result.degraded))
    if not result.hits:
        note("nothing found")
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


def _check(settings: Settings, tenant: str, agent: str | None, documents: Sequence[str], topics: Sequence[str]) -> None:
    """Refuse what a turn would go on without: who types it wants to know."""
    from docmem import names, recall
    from docmem.errors import DocmemError, InvalidName
    from docmem.index import READING, Index, Reader
    from docmem.inject import PATIENCE

    if agent is not None:
        names.agent_name(agent)
    for path in documents:
        try:
            names.safe_path(path)
        except InvalidName as error:
            raise InvalidName(
                error.message, hint=error.hint or "give a path inside the repo: see docmem doc list"
            ) from None
    if recall.topic_names(topics or None) is None:
        return

    def known(index: Index) -> None:
        row = index.tenant()
        if row is not None:
            recall.check_topics(index, recall.policies(row), topics)

    reader = Reader(settings, timeout=READING, opening=PATIENCE)
    try:
        reader.read(tenant, known)
    except DocmemError as error:
        if error.code not in _AWAY:
            raise
    finally:
        reader.close()


@click.command(short_help="Print what a prompt would be given.")
@click.argument("tenant")
@click.argument("subject")
@click.option("--goal", help="What the turn is about, usually the user's message. Without it: no search.")
@click.option("--agent", help="As this agent sees it.")
@click.option("--block", "blocks", multiple=True, type=click.Choice(BLOCKS), help="Only these blocks of the packet.")
@click.option("--document", "documents", multiple=True, metavar="PATH", help="Also this document.")
@click.option("--topic", "topics", multiple=True, help="Of facts and episodes only those of this topic.")
@click.option("--run", type=click.IntRange(0), help="Count as what this run was given; see: docmem trace.")
@click.option("--explain", is_flag=True, help="For each line: file, commit, age, tokens, and what recall saw in it.")
@json_option
def inject(
    tenant: str,
    subject: str,
    goal: str | None,
    agent: str | None,
    blocks: tuple[str, ...],
    documents: tuple[str, ...],
    topics: tuple[str, ...],
    run: int | None,
    explain: bool,
    as_json: bool,
) -> None:
    """Print what an agent's prompt would be given about a subject, now."""
    from datetime import UTC, datetime

    from docmem import names
    from docmem.assembly import requested, run_number
    from docmem.config import settings
    from docmem.fallback import Fallback
    from docmem.index import READING
    from docmem.inject import PATIENCE, Injector

    configured = settings()
    _known(configured, tenant)
    key = names.subject_key(tenant, subject)
    if run is not None:
        run_number(run)
    _check(configured, tenant, agent, documents, topics)
    with Injector(configured, timeout=READING, opening=PATIENCE, embedding_timeout=PATIENCE) as injector:
        packet = injector.packet(
            tenant,
            key,
            goal,
            agent=agent,
            run=run,
            blocks=list(blocks) or None,
            documents=documents,
            topics=topics or None,
        )
    if packet.degraded in _AWAY and not packet.spans:
        # A turn has no time left for the files by now; a person has.
        asked = requested(
            tenant, key, goal, agent=agent, run=run, blocks=blocks or None, documents=documents, topics=topics or None
        )
        packet = Fallback(configured).packet(asked, wait=PATIENCE) or packet
    explained = _explanations(configured, tenant, packet, datetime.now(UTC)) if explain else []
    if as_json:
        print_json(packet.as_json() | ({"explain": explained} if explain else {}))
        return
    if packet.degraded:
        note(_degraded(packet.degraded))
    for path in documents:
        if all(span.path != path for span in packet.spans):
            note(f"(nothing of {path}: there is no such document, or no room for it)")
    if packet.text:
        click.echo(packet.text)
    else:
        note("(nothing)")
    if explain and packet.spans:
        rows = [["place", "id", "commit", "age", "tokens", "file", "why"]]
        rows += [_explained(row) for row in explained]
        click.echo(columns(rows))
        click.echo(f"{packet.tokens} tokens, {packet.candidates} candidates, {packet.omitted} left out")


def _explanations(settings: Settings, tenant: str, packet: Packet, now: datetime) -> list[dict[str, Any]]:
    """Why each span stands there. What has no date of its own, as a profile, is as old as its file's last change."""
    from docmem import git

    repo = settings.tenants / f"{tenant}.git"

    @cache
    def changed(path: str, revision: str) -> datetime | None:
        try:
            commit = next(git.history(repo, revision, paths=[path], limit=1), None)
        except (DocmemError, OSError):  # it isn't here, or an erase has taken the commit
            return None
        return commit.when if commit else None

    def dated(span: Span) -> Span:
        return span if span.since or not repo.is_dir() else span._replace(since=changed(span.path, span.revision))

    return [dated(span).explained(now) for span in packet.spans]


def _explained(row: dict[str, Any]) -> list[str]:
    age = "-" if row["age_days"] is None else f"{row['age_days']:.0f} d"
    why = " ".join(f"{name} {value:g}" for name, value in row["signals"].items() if value is not None)
    place = f"{row['start']}–{row['end']}"
    return [place, row["id"], short(row["revision"]), age, str(row["tokens"]), row["path"], why or row["block"]]


@click.command(short_help="What a run was given, file by file.")
@click.argument("tenant")
@click.argument("run", type=click.IntRange(0))
@click.option("--agent", help="Only this agent's run of that number.")
@json_option
def trace(tenant: str, run: int, agent: str | None, as_json: bool) -> None:
    """What a run was given: each packet, and for each piece of it its place, file and commit.

    Kept for 30 days. With the tenant's repo here, the text is shown as that commit has it.
    """
    from docmem.config import settings
    from docmem.trace import read

    configured = settings()
    _known(configured, tenant)
    packets = read(configured, tenant, run, agent=agent)
    if as_json:
        print_json({"tenant": tenant, "run": run, "packets": [packet.as_json() for packet in packets]})
        return
    if not packets:
        note(f"nothing is known of run {run}: it was given nothing, or is more than 30 days ago")
    for packet in packets:
        click.echo(f"packet {packet.packet} for {packet.agent}, subject {packet.subject[:12]}…, {packet.at}")
        rows = []
        for piece in packet.pieces:
            place = f"{piece.start}–{piece.end}"
            rows.append(
                [place, piece.block, piece.id, short(piece.revision), piece.path, one_line(piece.text or "", 80)]
            )
        click.echo(columns(rows))
