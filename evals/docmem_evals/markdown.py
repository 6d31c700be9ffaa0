"""A run, or two of them, as Markdown: for a terminal, a pull request, a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from docmem.times import format_time
from docmem_evals.comparison import CHANGES, Changed, Comparison
from docmem_evals.run import Header, Run
from docmem_evals.samples import Scored
from docmem_evals.tasks import TASKS

NAMED = 5
"""Samples with problems that a command names."""
FAILING = 40
"""Samples with problems that are shown at most."""

_GROUPS = {"domain": "By domain", "kind": "By kind", "language": "By language"}


def report(run: Run, baseline: Comparison | None = None) -> str:
    """A run with its figures, groups, gates and failing samples; with a baseline, how far it is from it."""
    header = run.header
    parts = [f"# {header.task}: {header.model}", facts(header, run), *map(_warning, warnings(run, baseline))]
    parts.append(_figures({"all": run.metrics}, {"all": len(run.scored)}, header.task, first=""))
    parts += _gates(run)
    if baseline is not None:
        parts += ["## Against the baseline", facts(baseline.before.header), differences(baseline)]
    for what, title in _GROUPS.items():
        groups = run.by(what)
        if len(groups) > 1:
            counts = {name: len(rows) for name, rows in run.grouped(what).items()}
            parts += [f"## {title}", _figures(groups, counts, header.task, first=what)]
    parts += _failing(run)
    return "\n\n".join(parts) + "\n"


def summary(run: Run) -> str:
    """What a command prints: the figures by domain and over all, and what they were made with."""
    groups, counts = run.by("domain"), {name: len(rows) for name, rows in run.grouped("domain").items()}
    groups, counts = {**groups, "all": run.metrics}, {**counts, "all": len(run.scored)}
    names = [name for name in TASKS[run.header.task].shown if name in run.metrics]
    width = max((len(name) for name in groups), default=3) + 2
    lines = [f"{'':<{width}}{'samples':>7}" + "".join(f"{name:>{_width(name)}}" for name in names)]
    for group, metrics in groups.items():
        figures = "".join(f"{figure(metrics.get(name)):>{_width(name)}}" for name in names)
        lines.append(f"{group:<{width}}{counts[group]:>7}{figures}")
    return "\n".join([*lines, "", made_with(run), *_said(run)])


def made_with(run: Run) -> str:
    """Model, matcher and dataset in one line."""
    header = run.header
    stand_in = " (a stand-in made of rules, no language model)" if header.model == "offline" else ""
    word = "embedder" if header.task == "recall" else "model"
    return f"{word}: {header.model}{stand_in}; matcher: {header.matcher}; dataset: {header.dataset}"


def _said(run: Run) -> list[str]:
    unscored = len(run.samples) - len(run.scored)
    failed = sum(sample.failed for sample in run.samples)
    lines = [f"unscored: {unscored} of {len(run.samples)} (no verdict; they count nowhere)"] if unscored else []
    if failed:
        lines.append(f"no usable reply: {failed} of {len(run.samples)}")
    lines += [f"warning: {each}" for each in run.warnings]
    wrong = [sample.id for sample in run.samples if not sample.right]
    if wrong:
        more = f" and {len(wrong) - NAMED} more" if len(wrong) > NAMED else ""
        lines.append(f"samples with problems: {', '.join(wrong[:NAMED])}{more}")
        lines.append("see what was expected of them and what came: --out run.jsonl, then docmem eval report run.jsonl")
    cost = spent(run)
    lines += [cost] if cost else []
    for name, gate in run.gates.items():
        sign = "≤" if TASKS[run.header.task].is_bounded_above(name) else "≥"
        kept = "passed" if gate["passed"] else "FAILED"
        lines.append(f"gate {name} {sign} {gate['bound']:g}: {figure(gate['value'])} {kept}")
    return lines


def spent(run: Run) -> str:
    """Tokens and dollars in one line; empty where none were spent."""
    found = run.spent
    tokens = found["tokens"]
    if not tokens["in"] + tokens["out"]:
        return ""
    cost = f", ${found['cost']:.4f}" if found["cost"] is not None else ""
    kept = f" ({found['cached']} of {len(run.samples)} answers kept from before)" if found["cached"] else ""
    return f"tokens: {tokens['in']} in, {tokens['out']} out{cost}{kept}"


def facts(header: Header, run: Run | None = None) -> str:
    """What a run was made with, as a list."""
    rows = {
        "model": header.model,
        "matcher": header.matcher,
        "dataset": header.dataset,
        "prompt": header.prompt,
        "commit": header.commit or "",
        "docmem": header.docmem,
        "started": format_time(header.started) if header.started else "",
    }
    if run is not None:
        rows["samples"] = f"{len(run.samples)}, of which {len(run.samples) - len(run.scored)} unscored"
        rows["spent"] = spent(run)
    return "\n".join(f"- {name}: {value}" for name, value in rows.items() if value)


def warnings(run: Run, baseline: Comparison | None) -> tuple[str, ...]:
    """What a reader of the figures must know."""
    stand_in = ("offline is a stand-in made of rules: its figures say nothing of a model",)
    told = stand_in if run.header.model == "offline" else ()
    return (*told, *run.warnings, *(baseline.warnings if baseline else ()))


def comparison(found: Comparison) -> str:
    """Two runs: which figures and which samples changed."""
    parts = [f"# {found.after.header.task}: {found.before.header.model} → {found.after.header.model}"]
    parts += [_warning(each) for each in found.warnings]
    parts.append(differences(found))
    counts = {change: sum(each.change == change for each in found.samples) for change in CHANGES}
    parts.append(", ".join(f"{count} {change}" for change, count in counts.items() if count) or "No sample changed.")
    parts += [_changed(each) for each in found.samples]
    return "\n\n".join(parts) + "\n"


def differences(found: Comparison) -> str:
    """The figures of the samples that both runs have, with 95 % intervals."""
    rows = [
        [name, figure(each.baseline), figure(each.value), f"{each.change:+.3f}", f"{each.low:+.3f} to {each.high:+.3f}"]
        for name, each in found.differences.items()
    ]
    return table(["metric", "before", "after", "change", "95 % interval"], rows) if rows else "No sample is in both."


def _changed(each: Changed) -> str:
    lines = [f"## {each.change}: {code(each.id)}"]
    for word, sample in (("before", each.before), ("after", each.after)):
        if sample is not None:
            problems = list(sample.judged.problems) or ["all right"]
            lines += [f"{word}:", *(f"- {_inline(problem)}" for problem in problems)]
            if _is_reworded(each):
                lines += [f"- got: {_inline(text)}" for text in sample.judged.got or ("nothing",)]
    return "\n".join(lines)


def _is_reworded(each: Changed) -> bool:
    return each.before is not None and each.after is not None and each.before.judged.got != each.after.judged.got


def _figures(groups: Mapping[str, Mapping[str, float]], counts: Mapping[str, int], task: str, *, first: str) -> str:
    names = [name for name in TASKS[task].shown if any(name in metrics for metrics in groups.values())]
    extra = sorted({name for metrics in groups.values() for name in metrics} - set(names)) if first == "" else []
    rows = [
        [group, str(counts[group]), *(figure(metrics.get(name)) for name in [*names, *extra])]
        for group, metrics in groups.items()
    ]
    return table([first, "samples", *names, *extra], rows)


def _gates(run: Run) -> list[str]:
    if not run.gates:
        return []
    rows = []
    for name, gate in run.gates.items():
        sign = "at most" if TASKS[run.header.task].is_bounded_above(name) else "at least"
        passed = "passed" if gate["passed"] else "**failed**"
        rows.append([name, figure(gate["value"]), f"{sign} {gate['bound']:g}", passed])
    return ["## Gates", table(["gate", "value", "bound", ""], rows)]


def _failing(run: Run) -> list[str]:
    wrong = [sample for sample in run.samples if not sample.right]
    if not wrong:
        return ["Every sample is right."]
    title = f"## Samples with problems ({len(wrong)} of {len(run.samples)})"
    parts = [title, *(_sample(sample) for sample in wrong[:FAILING])]
    return [*parts, f"… and {len(wrong) - FAILING} more"] if len(wrong) > FAILING else parts


def _sample(sample: Scored) -> str:
    lines = [f"### {code(sample.id)} ({sample.kind}, {sample.domain}, {sample.language})"]
    lines += [f"> {_inline(line)}" for line in sample.said]
    lines += ["", *([f"- unscored: {_inline(sample.unscored)}"] if sample.unscored else [])]
    lines += [f"- {_inline(problem)}" for problem in sample.judged.problems]
    sides = [_cell(sample.judged.expected or ("nothing",)), _cell(sample.judged.got or ("nothing",))]
    return "\n".join([*lines, "", table(["expected", "got"], [sides])])


def _cell(lines: Iterable[str]) -> str:
    return "<br>".join(_inline(line) for line in lines)


def _inline(text: str) -> str:
    """A text as one line in which nothing is markup."""
    return "".join(f"\\{char}" if char in "\\`*_[]<>|#" else char for char in " ".join(text.split()))


def code(text: str) -> str:
    """A name in code."""
    return f"`{text.replace('`', '')}`"


def _warning(text: str) -> str:
    return f"> **{_inline(text)}**"


def figure(value: float | None) -> str:
    """A metric for people; – where it isn't defined."""
    return "–" if value is None else f"{value:.3f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(cells) + " |" for cells in [head, *rows]]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def _width(name: str) -> int:
    return max(len(name), len("0.000")) + 2
