"""Puts samples to work: so many at a time, in order, with progress, each written as soon as those before it are."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

from docmem import __version__, git
from docmem.config import Settings
from docmem.errors import InputError
from docmem.git import worktrees
from docmem_evals.gates import MAX_UNSCORED, Gate
from docmem_evals.judge import Judge
from docmem_evals.matching import Matcher
from docmem_evals.recording import Recording
from docmem_evals.replies import Store
from docmem_evals.run import Header, Run, line
from docmem_evals.samples import Scored

T = TypeVar("T")


class HasDomain(Protocol):
    """A sample of some domain."""

    @property
    def domain(self) -> str:
        """The domain of its file."""
        ...


D = TypeVar("D", bound=HasDomain)

JOBS = 4
"""Samples at a time where a provider is asked."""

_STEPS = 10
_FEW = 20
"""Samples below which nobody wonders how far it is."""


@dataclass(frozen=True)
class Options:
    """How a task is run, and where it is kept.

    `out`: the run's file. `cache`: folder of kept answers; None keeps none. `jobs`: samples at a time. `recording`:
    where replies are noted. `domains`: only samples of these; none: all. `max_unscored`: share of samples that may stay
    without a verdict where something is gated.
    """

    out: Path | None = None
    cache: Path | None = None
    jobs: int | None = None
    quiet: bool = True
    recording: Recording | None = None
    domains: tuple[str, ...] = ()
    max_unscored: float = MAX_UNSCORED

    def chosen(self, samples: Sequence[D]) -> list[D]:
        """The samples that are asked for. Raises `InputError` where there are none."""
        found = [sample for sample in samples if not self.domains or sample.domain in self.domains]
        if not found:
            there = ", ".join(sorted({sample.domain for sample in samples}))
            raise InputError(f"no case is of {', '.join(self.domains)}", hint=f"there are {there}")
        return found

    def named(self, dataset: str) -> str:
        """A dataset's name in reports, with what was chosen of it."""
        return "/".join([dataset, *sorted(self.domains)])

    def store_for(self, model: str) -> Store:
        """Where a model's answers are kept."""
        return Store(None if is_free(model) else self.cache)

    def jobs_for(self, model: str) -> int:
        """Samples at a time: one where nobody is waited for."""
        return self.jobs or (1 if is_free(model) else JOBS)


def cache_of(settings: Settings) -> Path:
    """Where answers are kept unless another folder is given."""
    return settings.root / "evals" / "answers"


def is_free(model: str) -> bool:
    """Whether a model costs nothing and is never waited for."""
    return model == "offline" or model.startswith("replay:")


def run(
    header: Header,
    samples: Sequence[T],
    work: Callable[[T], Scored],
    *,
    options: Options,
    gates: tuple[Gate, ...] = (),
    warnings: tuple[str, ...] = (),
    prompt: Callable[[Sequence[Scored]], str] = lambda samples: "",
    matcher: Matcher | None = None,
) -> Run:
    """Score every sample, in their order. The first error ends it; answers that came before are kept."""
    header = replace(header, commit=_commit(), docmem=__version__, started=datetime.now(UTC).replace(microsecond=0))
    with ExitStack() as stack:
        file = stack.enter_context(_opened(options.out))
        progress = stack.enter_context(_progress(header.task, len(samples), quiet=options.quiet))
        done: list[Scored] = []
        if file is not None:
            file.write(line(header.as_json()))
        for scored in _each(samples, work, jobs=options.jobs_for(header.model)):
            done.append(scored)
            progress.step(scored)
            if file is not None:
                file.write(line(scored.as_json()))
                file.flush()
    finished = Run(
        replace(header, prompt=prompt(done)), tuple(done), gates, warnings, _judging(matcher), options.max_unscored
    )
    if options.out is not None:
        options.out.write_text("".join(finished.lines()), encoding="utf-8")
    return finished


def _each(samples: Sequence[T], work: Callable[[T], Scored], *, jobs: int) -> Iterator[Scored]:
    def timed(sample: T) -> Scored:
        started = time.perf_counter()
        scored = work(sample)
        return replace(scored, seconds=time.perf_counter() - started)

    if jobs == 1:
        yield from map(timed, samples)
        return
    with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="docmem-eval") as pool:
        waiting = [pool.submit(timed, sample) for sample in samples]
        try:
            for future in waiting:
                yield future.result()
        finally:
            for future in waiting:
                future.cancel()


def _judging(matcher: Matcher | None) -> dict[str, Any]:
    """What the matcher's verdicts took, where a model gave them."""
    if not isinstance(matcher, Judge):
        return {}
    spent = matcher.spent
    return {"judging": {"tokens": {"in": spent.tokens_in, "out": spent.tokens_out}, "cost": spent.cost}}


def _commit() -> str | None:
    top = worktrees.top(Path.cwd())
    return git.resolve(worktrees.git_dir_of(top), "HEAD") if top is not None else None


@contextmanager
def _opened(path: Path | None) -> Iterator[IO[str] | None]:
    if path is None:
        yield None
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        yield file


class Progress(Protocol):
    """Told of each sample that is done."""

    def step(self, scored: Scored) -> None:
        """One more."""
        ...


class _Quiet:
    def step(self, scored: Scored) -> None:
        """Say nothing."""


@dataclass
class _Lines:
    """A line to stderr now and then, for a log."""

    task: str
    total: int
    done: int = 0
    cost: float = 0.0

    def step(self, scored: Scored) -> None:
        self.done += 1
        self.cost += scored.spent.cost or 0.0
        if self.done == self.total or self.done * _STEPS // self.total > (self.done - 1) * _STEPS // self.total:
            spent = f", ${self.cost:.4f}" if self.cost else ""
            print(f"{self.task}: {self.done} of {self.total}{spent}", file=sys.stderr, flush=True)


@contextmanager
def _progress(task: str, total: int, *, quiet: bool) -> Iterator[Progress]:
    """A bar on a terminal, plain lines elsewhere."""
    if not quiet and total and sys.stderr.isatty():
        with _bar(task, total) as bar:
            yield bar
    else:
        yield _Quiet() if quiet or total < _FEW else _Lines(task, total)


@contextmanager
def _bar(task: str, total: int) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with RichProgress(*columns, TextColumn("${task.fields[cost]:.4f}"), console=Console(stderr=True)) as bar:
        yield _Bar(bar, bar.add_task(task, total=total, cost=0.0))


@dataclass
class _Bar:
    bar: Any
    task: Any
    cost: float = 0.0

    def step(self, scored: Scored) -> None:
        self.cost += scored.spent.cost or 0.0
        self.bar.update(self.task, advance=1, cost=self.cost)
