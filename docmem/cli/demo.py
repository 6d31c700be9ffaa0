"""`docmem demo`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(short_help="Watch the main job on a fresh root.")
@click.option("--model", default="offline", show_default=True, help="A litellm model instead of the stand-in.")
@click.option(
    "--keep", type=click.Path(path_type=Path, file_okay=False), help="A new folder to leave everything in, to look at."
)
def demo(model: str, keep: Path | None) -> None:
    """Watch the main job: a conversation becomes files, rows and a prompt; a wrong learning is reverted.

    Needs no key and no network, and uses an embedded Postgres of its own. By default it leaves nothing behind.
    """
    from docmem import demo as show

    show.run(model=model, keep=keep, say=click.echo)
