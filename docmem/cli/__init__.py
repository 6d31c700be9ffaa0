"""The command line. Each command is one library call; what it imports, it imports when it runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from docmem import __version__
from docmem.cli import (
    checkout,
    consolidate,
    demo,
    doc,
    erase,
    eval_,
    export,
    history,
    init,
    jobs,
    maintain,
    recall,
    reembed,
    remote,
    review,
    server,
    status,
    subject,
    sync,
)
from docmem.cli.error_handler import handled


class _Ordered(click.Group):
    """Lists its commands in the order in which one meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=_Ordered, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="docmem")
def cli() -> None:
    """Memory for multi-tenant agents, in files that people review.

    A tenant's memory is a git repo; Postgres serves a copy of it; the agent's prompt gets a bounded part of that.
    Start with `docmem demo`. Exit codes: 0 done, 1 something you can fix, 2 wrong usage, 3 a bug, 75 try again.
    """


for _command in (
    demo.demo,
    init.init,
    consolidate.consolidate,
    sync.sync,
    recall.search,
    recall.inject,
    recall.trace,
    doc.doc,
    checkout.checkout,
    checkout.check,
    remote.remote,
    history.log,
    history.show,
    history.diff,
    history.at,
    history.why,
    history.revert,
    review.review,
    erase.forget,
    erase.erase,
    export.export,
    export.import_,
    status.status,
    status.doctor,
    maintain.maintain,
    jobs.jobs,
    reembed.reembed,
    server.server,
    subject.subject,
    eval_.eval_,
):
    cli.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    return handled(cli, words)


def run() -> None:
    """The console script."""
    sys.exit(main())
