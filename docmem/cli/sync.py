"""`docmem sync`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from docmem.cli.output import json_option, note, print_json, short
from docmem.cli.serving import tell_of_erase

if TYPE_CHECKING:
    from docmem.config import Settings
    from docmem.errors import DocmemError
    from docmem_sync.sync import TenantSync


@click.command(short_help="Bring the served copy up to date.")
@click.argument("tenants", nargs=-1, metavar="[TENANT…]")
@click.option("--watch", is_flag=True, help="Go on: mirror each commit as it comes, until stopped.")
@click.option("--rebuild", is_flag=True, help="Build the served copy anew beside the old one, and swap it in.")
@click.option("--confirm-deletes", is_flag=True, help="Go through with a deletion that the guard stopped.")
@click.option("--jobs", type=click.IntRange(1, 64), metavar="N", help="Tenants at once (default 4).")
@click.option("--metrics-port", type=int, metavar="PORT", help="With --watch: counts for a Prometheus to scrape.")
@click.option("--metrics-host", default="127.0.0.1", metavar="HOST", help="Where those are served; 127.0.0.1.")
@json_option
def sync(
    tenants: tuple[str, ...],
    watch: bool,
    rebuild: bool,
    confirm_deletes: bool,
    jobs: int | None,
    metrics_port: int | None,
    metrics_host: str,
    as_json: bool,
) -> int:
    """Bring the served copy in Postgres to what main says, for these tenants or all.

    A tenant with an origin is brought together with that one first. Exit 1 on a quarantined file or an upstream that
    was rewritten, 75 on one that can't be reached; what is here is served all the same.
    """
    from docmem import repository
    from docmem.config import settings
    from docmem.embedding import embedder
    from docmem.errors import GuardStop

    configured = settings()
    for tenant in tenants:
        repository.open(configured, tenant)  # a name that is none fails before anything is done
    if metrics_port is not None and not watch:
        raise click.UsageError("--metrics-port goes with --watch")
    tell_of_erase(tenants or repository.tenants(configured))
    if watch:
        _watch(list(tenants), metrics_host, metrics_port, jobs)
        return 0
    from docmem_sync.sync import JOBS, sync_all

    wanted = list(tenants) or repository.tenants(configured)
    strayed = repository.exchange_all(configured, wanted)
    for tenant, error in strayed.items():
        note(f"{tenant}: origin: {error.message}")
        note(f"  {error.hint}")
    done = sync_all(
        configured,
        wanted,
        confirm_deletes=confirm_deletes,
        rebuild=rebuild,
        embedder=embedder(configured),
        jobs=jobs or JOBS,
    )
    if not tenants:
        _tell_of_no_repo(configured)
    for one in done:
        for line in one.error.plan if isinstance(one.error, GuardStop) else ():
            note(line)
    if len(done) == 1 and done[0].error is not None:
        raise done[0].error
    if as_json:
        print_json({"tenants": [_row(one, strayed.get(one.tenant)) for one in done]})
    else:
        for one in done:
            _print(one)
    return max([*map(_exit_code, done), *(error.exit_code for error in strayed.values())], default=0)


def _tell_of_no_repo(settings: Settings) -> None:
    """Name the tenants whose rows are served on though nobody can sync them any more."""
    from docmem import db
    from docmem_sync import strays

    with db.session(settings, "sync") as connection:
        for tenant, rows in strays.of_no_repo(settings, connection):
            note(f"{tenant}: {strays.NO_REPO} ({rows})")
            note(f"  {strays.without(tenant)}")


def _row(one: TenantSync, strayed: DocmemError | None) -> dict[str, Any]:
    """`origin`: what went wrong between the tenant and its origin, which keeps nobody from serving what is here."""
    wrong = {"code": strayed.code, "message": strayed.message, "hint": strayed.hint} if strayed else None
    return one.as_json() | {"origin": wrong}


def _exit_code(one: TenantSync) -> int:
    if one.error is not None:
        return one.error.exit_code
    return 1 if one.quarantined else 0


def _print(one: TenantSync) -> None:
    row = one.as_json()
    if one.error is not None:
        note(f"{row['tenant']}: {one.error.message}")
        if one.error.hint:
            note(f"  {one.error.hint}")
        return
    click.echo(
        f"{row['tenant']}: {short(row['from'])} → {short(row['to'])}"
        f"  {row['upserts']} written, {row['deletes']} deleted, {row['unchanged']} unchanged"
        f"  ({row['seconds']:.2f} s)"
    )
    if row["reconciled"]:
        note(f"  {row['tenant']}: history was rewritten; compared the whole tree")
    if row["pending_embeddings"]:
        note(f"  {row['pending_embeddings']} without a vector yet; found by their words meanwhile")
        note(f"  to make them now: docmem reembed {row['tenant']}")
    for bad in row["quarantined"]:
        note(f"  quarantined: {bad['path']}, line {bad['line']}: {bad['code']}")


def _watch(tenants: list[str], host: str, port: int | None, jobs: int | None) -> None:
    from contextlib import ExitStack

    from docmem.config import settings
    from docmem.embedding import embedder
    from docmem_sync import metrics
    from docmem_sync.sync import JOBS
    from docmem_sync.watch import watch

    configured = settings()
    with ExitStack() as stack:
        counted = None
        if port is not None:
            counted, stop = metrics.served(host, port)
            stack.callback(stop)
        model = embedder(configured)
        watch(configured, tenants, report=_print, embedder=model, metrics=counted, jobs=jobs or JOBS)
