"""`docmem eval`."""

from __future__ import annotations

from pathlib import Path

import click

from docmem.cli.output import json_option, print_json


@click.group(name="eval", short_help="Measure what is recalled.")
def eval_() -> None:
    """Measure what is recalled, on real conversations."""


@eval_.command()
@click.option(
    "--locomo",
    "folder",
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with locomo5.json and the conv-N files.",
)
@click.option("--conversation", "numbers", type=int, multiple=True, help="Only this conversation, like 26.")
@click.option("--embedding-model", help="local, none or a litellm model. Default: DOCMEM_EMBEDDING_MODEL.")
@json_option
def recall(folder: Path, numbers: tuple[int, ...], embedding_model: str | None, as_json: bool) -> int:
    """How often a question finds its evidence, over memories and over raw turns (LoCoMo, Maharana et al. 2024)."""
    from docmem.config import settings
    from docmem_evals import locomo

    report = locomo.run(settings(), folder, conversations=numbers, embedding_model=embedding_model)
    if as_json:
        print_json(report.as_json())
    else:
        click.echo(report.table())
    return 0 if report.passed else 1


@eval_.command()
@click.option("--served", is_flag=True, help="Look at packets of the served copy as well (takes a Postgres).")
@json_option
def poison(served: bool, as_json: bool) -> int:
    """Whether hostile turns leave anything behind, and harmless look-alikes are kept.

    Each turn comes with the reply of a model that obeys the attacker: what is tested is docmem, not a model.
    """
    from docmem.config import settings
    from docmem_evals import poison as task

    report = task.run(settings(), served=served)
    if as_json:
        print_json(report.as_json())
    else:
        click.echo(report.table())
    return 0 if report.passed else 1
