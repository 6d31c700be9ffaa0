"""`docmem eval`."""

from __future__ import annotations

from pathlib import Path

import click

from docmem.cli.output import json_option, print_json


@click.group(name="eval", short_help="Measure what is extracted, kept out and recalled.")
def eval_() -> None:
    """Measure what a model extracts, what hostile turns leave behind, and what is recalled."""


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


@eval_.command()
@click.option("--model", help="A litellm model, `offline` (a stand-in) or `replay:FILE`. Default: DOCMEM_MODEL.")
@click.option(
    "--cases",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with cases of your own, as YAML. Default: those docmem ships.",
)
@click.option("--min-f1", type=float, help="Exit 1 below this F1 on memories.")
@click.option("--max-junk", type=float, help="Exit 1 above this share of statements without gold and evidence.")
@json_option
def extraction(
    model: str | None, folder: Path | None, min_f1: float | None, max_junk: float | None, as_json: bool
) -> int:
    """What a model proposes for short dialogues, against what a careful person would keep. Nothing is written.

    The model `offline` is a stand-in made of rules; its figures say what the stand-in finds, and nothing of a model.
    """
    from docmem.config import settings
    from docmem.errors import ConfigError
    from docmem_evals import extraction as task

    configured = settings()
    chosen = model or configured.model
    if not chosen:
        raise ConfigError("no model is set", hint="give --model or DOCMEM_MODEL; `offline` needs no key")
    report = task.run(configured, model=chosen, folder=folder, min_f1=min_f1, max_junk=max_junk)
    if as_json:
        print_json(report.as_json())
    else:
        click.echo(report.table())
    return 0 if report.passed else 1
