"""`docmem eval`."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from docmem.cli.output import json_option, note, print_json

if TYPE_CHECKING:
    from docmem.config import Settings
    from docmem_evals.run import Run
    from docmem_evals.runner import Options


class _Share(click.FloatRange):
    """A number from 0 to 1: a bound beyond would pass always or never, and one that is no number as well."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = float(super().convert(value, param, ctx))
        if math.isnan(found):
            self.fail("nan is no number from 0 to 1", param, ctx)
        return found


_SHARE = _Share(0, 1)

F = TypeVar("F", bound=Callable[..., Any])

_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_NEW = click.Path(path_type=Path, dir_okay=False)


@click.group(name="eval", short_help="Measure what is extracted, merged, recalled and answered.")
def eval_() -> None:
    """Measure what is extracted, merged, recalled and answered, and gate it: a bound that isn't kept exits with 1."""


def _options(function: F) -> F:
    """Options that every task has."""
    for option in reversed(
        (
            click.option("--cases", "folder", type=_FOLDER, help="Folder with cases of your own, as YAML."),
            click.option("--domain", "domains", multiple=True, help="Only cases of this domain."),
            click.option("--out", type=_NEW, help="Keep the run here, for `report` and `compare`."),
            json_option,
        )
    ):
        function = option(function)
    return function


_unscored = click.option(
    "--max-unscored",
    type=_SHARE,
    default=0.1,
    show_default=True,
    help="Exit 1 where something is gated and a greater share of samples has no verdict.",
)


def _asks(function: F) -> F:
    """Options of the tasks that ask a model."""
    for option in reversed(
        (
            click.option("--model", help="A litellm model, `offline` (a stand-in) or `replay:FILE`."),
            click.option("--jobs", type=click.IntRange(1, 64), help="Samples at a time. Default: 4."),
            click.option("--cache", type=click.Path(path_type=Path, file_okay=False), help="Folder of kept answers."),
            click.option("--no-cache", is_flag=True, help="Ask for every answer anew."),
            _unscored,
        )
    ):
        function = option(function)
    return function


_matcher = click.option(
    "--matcher",
    default="jaccard",
    show_default=True,
    help="Which statements say the same: jaccard[:0.5], cosine[:0.82] or judge:MODEL.",
)
_embedding_model = click.option(
    "--embedding-model", help="local, none or a litellm model. Default: DOCMEM_EMBEDDING_MODEL."
)
_record = click.option("--record", type=_NEW, help="Write the replies here, for --model replay:FILE.")


@eval_.command()
@_asks
@_matcher
@_embedding_model
@_record
@click.option("--min-f1", type=_SHARE, help="Exit 1 below this F1 on memories.")
@click.option("--max-junk", type=_SHARE, help="Exit 1 above this share of statements without gold and evidence.")
@_options
def extraction(
    model: str | None,
    matcher: str,
    embedding_model: str | None,
    min_f1: float | None,
    max_junk: float | None,
    **how: Any,
) -> int:
    """What a model proposes for short dialogues, against what a careful person would keep. Nothing is written.

    The model `offline` is a stand-in made of rules; its figures say what the stand-in finds, and nothing of a model.
    """
    from docmem_evals import extraction as task

    run = _Run(model, matcher, embedding_model, **how)
    return run.finish(
        task.run(
            run.settings,
            model=run.model,
            folder=run.folder,
            matcher=run.matcher,
            min_f1=min_f1,
            max_junk=max_junk,
            options=run.options,
        )
    )


@eval_.command()
@_asks
@_matcher
@_embedding_model
@_record
@click.option("--max-duplicate-rate", type=_SHARE, help="Exit 1 above this share of new memories that repeat one.")
@click.option("--max-wrong-merges", type=_SHARE, help="Exit 1 above this share of updates and deletes that lose one.")
@click.option("--min-value", type=_SHARE, help="Exit 1 below this value.")
@_options
def merge(
    model: str | None,
    matcher: str,
    embedding_model: str | None,
    max_duplicate_rate: float | None,
    max_wrong_merges: float | None,
    min_value: float | None,
    **how: Any,
) -> int:
    """What becomes of known memories and a new window, through the whole engine up to the commit."""
    from docmem_evals import merge as task

    run = _Run(model, matcher, embedding_model, **how)
    return run.finish(
        task.run(
            run.settings,
            model=run.model,
            folder=run.folder,
            matcher=run.matcher,
            max_duplicate_rate=max_duplicate_rate,
            max_wrong_merges=max_wrong_merges,
            min_value=min_value,
            options=run.options,
        )
    )


@eval_.command()
@click.option("--locomo", type=_FOLDER, help="LoCoMo instead of cases: a folder with locomo*.json.")
@click.option("--conversation", "numbers", type=int, multiple=True, help="Of LoCoMo only this conversation, like 26.")
@_embedding_model
@click.option("--min-mrr", type=_SHARE, help="Exit 1 below this MRR.")
@click.option("--min-ndcg", type=_SHARE, help="Exit 1 below this nDCG at 10.")
@click.option("--min-abstention", type=_SHARE, help="Exit 1 below this share of empty packets where nothing answers.")
@click.option("--max-leaks", type=_SHARE, help="Exit 1 above this share of questions given somebody else's memory.")
@click.option("--max-stale", type=_SHARE, help="Exit 1 above this share of questions given what holds no more.")
@_options
def recall(
    locomo: Path | None,
    numbers: tuple[int, ...],
    embedding_model: str | None,
    min_mrr: float | None,
    min_ndcg: float | None,
    min_abstention: float | None,
    max_leaks: float | None,
    max_stale: float | None,
    **how: Any,
) -> int:
    """Whether a question finds what answers it, in tenants made for it: on cases, or on LoCoMo (Maharana et al. 2024).

    On LoCoMo over memories and over raw turns.
    """
    run = _Run(None, "jaccard", embedding_model, **how)
    bounds = (min_mrr, min_ndcg, min_abstention, max_leaks, max_stale)
    if locomo is not None:
        if how["folder"] or how["out"] or how["domains"] or any(bound is not None for bound in bounds):
            raise click.UsageError("--locomo has a gate of its own, and takes no cases, bounds, domain or --out")
        return _locomo(run, locomo, numbers)
    if numbers:
        raise click.UsageError("--conversation is one of LoCoMo's: it needs --locomo")
    from docmem_evals import recall as task

    return run.finish(
        task.run(
            run.settings,
            folder=run.folder,
            embedding_model=embedding_model,
            min_mrr=min_mrr,
            min_ndcg=min_ndcg,
            min_abstention=min_abstention,
            max_leaks=max_leaks,
            max_stale=max_stale,
            options=run.options,
        )
    )


def _locomo(run: _Run, folder: Path, numbers: tuple[int, ...]) -> int:
    from docmem_evals import locomo

    report = locomo.run(run.settings, folder, conversations=numbers, embedding_model=run.embedding_model)
    if run.as_json:
        print_json(report.as_json())
    else:
        click.echo(report.table())
    return 0 if report.passed else 1


@eval_.command()
@_asks
@click.option("--judge", help="A litellm model that says whether an answer is right. Default: exact match.")
@_embedding_model
@click.option("--min-accuracy", type=_SHARE, help="Exit 1 below this share of right answers.")
@click.option("--min-abstention", type=_SHARE, help="Exit 1 below this share of abstentions where nothing is known.")
@_options
def answer(
    model: str | None,
    judge: str | None,
    embedding_model: str | None,
    min_accuracy: float | None,
    min_abstention: float | None,
    **how: Any,
) -> int:
    """Given the packet, does a model use the evidence, and say that it doesn't know where there is none?"""
    from docmem_evals import answer as task

    run = _Run(model, "jaccard", embedding_model, **how)
    return run.finish(
        task.run(
            run.settings,
            model=run.model,
            folder=run.folder,
            judge_model=judge,
            embedding_model=embedding_model,
            min_accuracy=min_accuracy,
            min_abstention=min_abstention,
            options=run.options,
        )
    )


class _Run:
    """What a task is run with, and what is done with its run."""

    def __init__(
        self,
        model: str | None,
        matcher: str,
        embedding_model: str | None,
        *,
        folder: Path | None,
        out: Path | None,
        as_json: bool,
        domains: tuple[str, ...] = (),
        jobs: int | None = None,
        cache: Path | None = None,
        no_cache: bool = False,
        record: Path | None = None,
        max_unscored: float = 0.1,
    ) -> None:
        from docmem.config import settings
        from docmem_evals.recording import Recording
        from docmem_evals.runner import Options, cache_of

        self.settings: Settings = settings()
        self.folder, self.as_json, self.embedding_model = folder, as_json, embedding_model
        self._model, self._matcher, self._record = model, matcher, record
        kept = None if no_cache else cache or cache_of(self.settings)
        recording = Recording() if record else None
        self.options: Options = Options(
            out=out, cache=kept, jobs=jobs, quiet=False, recording=recording, domains=domains, max_unscored=max_unscored
        )

    @property
    def model(self) -> str:
        """The model's name. Raises `ConfigError` where none is set."""
        from docmem.errors import ConfigError

        chosen = self._model or self.settings.model
        if not chosen:
            raise ConfigError("no model is set", hint="give --model or DOCMEM_MODEL; `offline` needs no key")
        return chosen

    @property
    def matcher(self) -> Any:
        """The matcher that was asked for."""
        from docmem_evals import matchers

        store = self.options.store_for(self._matcher)
        return matchers.matcher(self.settings, self._matcher, embedding_model=self.embedding_model, store=store)

    def finish(self, run: Run) -> int:
        """Print it; 1 where a gate failed."""
        from docmem_evals import markdown

        if self._record is not None and self.options.recording is not None:
            self.options.recording.write(self._record)
        if self.as_json:
            print_json(run.as_json())
        else:
            click.echo(markdown.summary(run))
        for warning in run.warnings if self.as_json else ():
            note(f"warning: {warning}")
        return 0 if run.passed else 1


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
@click.option("--pairs", type=_FILE, help="Labelled pairs of your own, as YAML. Default: those docmem ships.")
@_embedding_model
@json_option
def calibrate(pairs: Path | None, embedding_model: str | None, as_json: bool) -> int:
    """The cosine from which two statements say the same, for an embedding model, on labelled pairs."""
    from docmem import embedding
    from docmem.config import settings
    from docmem.errors import ConfigError
    from docmem_evals import calibration
    from docmem_evals.cosine import Cosine

    embedder = embedding.embedder(settings(), name=embedding_model)
    if embedder is None:
        raise ConfigError("there is no embedder to calibrate", hint="give --embedding-model or DOCMEM_EMBEDDING_MODEL")
    found = calibration.calibrate(calibration.pairs(pairs), Cosine(embedder, 1.0))
    if as_json:
        print_json(found.as_json())
    else:
        click.echo(found.table())
    return 0


@eval_.command()
@click.argument("run", type=_FILE)
@click.option("--baseline", type=_FILE, help="An earlier run to compare with.")
@click.option("--html", type=_NEW, help="Write a page with plots here.")
@click.option("--markdown", "markdown_file", type=_NEW, help="Write Markdown here instead of to stdout.")
def report(run: Path, baseline: Path | None, html: Path | None, markdown_file: Path | None) -> int:
    """A run (`--out`) as Markdown, and as one HTML page that needs nothing else."""
    from docmem_evals import markdown, page
    from docmem_evals.comparison import compare as compared
    from docmem_evals.run import load

    read = load(run)
    found = compared(load(baseline), read) if baseline else None
    if html is not None:
        html.write_text(page.render(read, found), encoding="utf-8")
        note(f"wrote {html}")
    if markdown_file is not None:
        markdown_file.write_text(markdown.report(read, found), encoding="utf-8")
        note(f"wrote {markdown_file}")
    if html is None and markdown_file is None:
        click.echo(markdown.report(read, found), nl=False)
    return 0


@eval_.command()
@click.argument("before", type=_FILE)
@click.argument("after", type=_FILE)
@json_option
def compare(before: Path, after: Path, as_json: bool) -> int:
    """Which figures and which samples changed from one run to another. Judges nothing: it exits with 0."""
    from docmem_evals import markdown
    from docmem_evals.comparison import compare as compared
    from docmem_evals.run import load

    found = compared(load(before), load(after))
    if as_json:
        print_json(found.as_json())
    else:
        click.echo(markdown.comparison(found), nl=False)
    return 0


@eval_.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(["update", "contradiction", "near-duplicate", "tenants", "large"]),
    multiple=True,
    help="Only these kinds. Default: all but large, which is one tenant with so many memories.",
)
@click.option("--size", type=click.IntRange(1, 1_000_000), default=100, show_default=True, help="Cases of each kind.")
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same files.")
@json_option
def generate(folder: Path, kinds: tuple[str, ...], size: int, seed: int, as_json: bool) -> int:
    """Write cases of any number into FOLDER: updates, contradictions, near-duplicates, tenants of look-alikes."""
    from docmem_evals import generator

    written = generator.write(folder, kinds=kinds or generator.KINDS, size=size, seed=seed)
    if as_json:
        print_json(written)
    else:
        for name, count in written["files"].items():
            click.echo(f"{folder / name}: {count}")
        print("run them: docmem eval merge (or recall) --cases", folder, file=sys.stderr)
    return 0
