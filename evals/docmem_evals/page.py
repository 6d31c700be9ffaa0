"""A run as one HTML page that needs nothing else: plots as inline SVG, light and dark, wide and narrow.

Every text of a case or a model is escaped, and the page may load nothing and run nothing (its own policy says so): a
hostile turn is shown and does nothing.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources

from docmem.times import format_time
from docmem_evals import markdown
from docmem_evals.bootstrap import Difference
from docmem_evals.comparison import Comparison
from docmem_evals.markdown import figure
from docmem_evals.run import Run
from docmem_evals.samples import Scored
from docmem_evals.tasks import TASKS

FAILING = 200
"""Samples with problems that are shown at most."""


def render(run: Run, baseline: Comparison | None = None) -> str:
    """The page."""
    task = TASKS[run.header.task]
    sections = [
        _header(run),
        *(f'<p class="warning">{_text(each)}</p>' for each in markdown.warnings(run, baseline)),
        _tiles(run, baseline),
        _gates(run),
        _against(baseline) if baseline else "",
        *(_bars(run, what, task.leading, baseline) for what in ("kind", "domain", "language")),
        _table(run),
        _failing(run),
    ]
    title = f"{run.header.task}: {run.header.model}"
    return _PAGE.format(title=_text(title), style=_style(), body="\n".join(filter(None, sections)))


_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def _style() -> str:
    return resources.files("docmem_evals").joinpath("page.css").read_text("utf-8")


def _text(value: str) -> str:
    return html.escape(value, quote=True)


def _header(run: Run) -> str:
    header = run.header
    facts = {
        "matcher": header.matcher,
        "dataset": header.dataset,
        "samples": f"{len(run.samples)} ({len(run.samples) - len(run.scored)} unscored)",
        "prompt": header.prompt,
        "commit": (header.commit or "")[:12],
        "docmem": header.docmem,
        "started": format_time(header.started) if header.started else "",
        "spent": markdown.spent(run),
    }
    rows = "".join(f"<div><dt>{name}</dt><dd>{_text(value)}</dd></div>" for name, value in facts.items() if value)
    return f"<header><p>{_text(header.task)}</p><h1>{_text(header.model)}</h1><dl>{rows}</dl></header>"


def _tiles(run: Run, baseline: Comparison | None) -> str:
    task = TASKS[run.header.task]
    changes = baseline.differences if baseline else {}
    names = [name for name in task.shown if name in run.metrics]
    tiles = "".join(_tile(name, run.metrics[name], changes.get(name), name in task.smaller) for name in names)
    return f'<section class="tiles" aria-label="Figures">{tiles}</section>'


def _tile(name: str, value: float, change: Difference | None, smaller: bool) -> str:
    note = f'<span class="{_mood(change, smaller)}">{change.change:+.3f}</span>' if change else ""
    return f'<div class="tile"><span>{_text(name)}</span><b>{figure(value)}</b>{note}</div>'


def _mood(change: Difference, smaller: bool) -> str:
    if not change.is_clear:
        return "same"
    return "better" if (change.change < 0) == smaller else "worse"


def _gates(run: Run) -> str:
    if not run.gates:
        return ""
    items = []
    for name, gate in run.gates.items():
        sign = "≤" if TASKS[run.header.task].is_bounded_above(name) else "≥"
        word = "passed" if gate["passed"] else "failed"
        items.append(
            f'<li class="{word}"><b>{word}</b> {_text(name)} {sign} {gate["bound"]:g}: {figure(gate["value"])}</li>'
        )
    return f'<section><h2>Gates</h2><ul class="gates">{"".join(items)}</ul></section>'


def _bars(run: Run, what: str, metric: str, baseline: Comparison | None) -> str:
    groups = {name: metrics for name, metrics in run.by(what).items() if metric in metrics}
    if len(groups) < 2:
        return ""
    counts = run.grouped(what)
    before = baseline.before.by(what) if baseline else {}
    rows = "".join(
        _bar(f"{name} ({_right(counts[name])})", metrics[metric], before.get(name, {}).get(metric))
        for name, metrics in sorted(groups.items(), key=lambda each: (each[1][metric], each[0]))
    )
    key = "In brackets: samples without a problem." + (" The tick is the baseline." if before else "")
    return (
        f'<section><h2>{_text(metric)} by {what}</h2><p class="key">{key}</p><div class="bars">{rows}</div></section>'
    )


def _right(samples: Sequence[Scored]) -> str:
    return f"{sum(sample.right for sample in samples)} of {len(samples)}"


def _bar(label: str, value: float, before: float | None) -> str:
    width = 100 * max(0.0, min(1.0, value))
    at = None if before is None else 100 * max(0.0, min(1.0, before))
    mark = "" if at is None else f'<line class="tick" x1="{at:.2f}%" x2="{at:.2f}%" y1="0" y2="18"/>'
    picture = (
        f'<svg height="18" role="img" aria-label="{_text(label)}: {figure(value)}">'
        f'<rect class="rail" width="100%" height="12" y="3" rx="2"/>'
        f'<rect class="bar" width="{width:.2f}%" height="12" y="3" rx="2"/>{mark}</svg>'
    )
    return f'<div class="row"><span class="label">{_text(label)}</span>{picture}<span>{figure(value)}</span></div>'


def _against(found: Comparison) -> str:
    task = TASKS[found.after.header.task]
    differences = found.differences
    if not differences:
        return "<section><h2>Against the baseline</h2><p>No sample is in both runs.</p></section>"
    reach = max([abs(edge) for each in differences.values() for edge in (each.low, each.high, each.change)] + [0.01])
    rows = "".join(_interval(name, each, reach, name in task.smaller) for name, each in differences.items())
    counts = {change: sum(each.change == change for each in found.samples) for change in ("worse", "better")}
    said = f"{_text(found.before.header.model)}, {_text(found.before.header.dataset)}"
    changed = f"{counts['worse']} samples are worse, {counts['better']} better."
    key = f"Change with its 95 % interval (paired bootstrap); the scale ends at ±{reach:.2f}."
    return (
        f'<section><h2>Against the baseline</h2><p class="key">{said}. {changed} {key}</p>'
        f'<div class="bars">{rows}</div></section>'
    )


def _interval(name: str, each: Difference, reach: float, smaller: bool) -> str:
    def at(value: float) -> float:
        return 50 + 47 * value / reach

    mood = _mood(each, smaller)
    picture = (
        f'<svg height="18" role="img" aria-label="{_text(name)}: {each.change:+.3f}, '
        f'{each.low:+.3f} to {each.high:+.3f}">'
        f'<rect class="rail" width="100%" height="12" y="3" rx="2"/>'
        f'<line class="zero" x1="50%" x2="50%" y1="0" y2="18"/>'
        f'<line class="range {mood}" x1="{at(each.low):.2f}%" x2="{at(each.high):.2f}%" y1="9" y2="9"/>'
        f'<circle class="dot {mood}" cx="{at(each.change):.2f}%" cy="9" r="4"/></svg>'
    )
    return (
        f'<div class="row"><span class="label">{_text(name)}</span>{picture}'
        f'<span class="{mood}">{each.change:+.3f}</span></div>'
    )


def _table(run: Run) -> str:
    names = [name for name in TASKS[run.header.task].shown if name in run.metrics]
    names += sorted(set(run.metrics) - set(names))
    rows: list[str] = []
    groups: Sequence[tuple[str, Mapping[str, Mapping[str, float]]]] = [
        ("all", {"all": run.metrics}),
        *((what, run.by(what)) for what in ("kind", "domain", "language")),
    ]
    for what, found in groups:
        for name, metrics in found.items():
            label = name if what == "all" else f"{what}: {name}"
            cells = "".join(f"<td>{figure(metrics.get(each))}</td>" for each in names)
            rows.append(f'<tr><th scope="row">{_text(label)}</th>{cells}</tr>')
    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in names)
    return (
        '<section><details><summary>All figures</summary><div class="wide"><table>'
        f"<thead><tr><th></th>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div></details></section>"
    )


def _failing(run: Run) -> str:
    wrong = [sample for sample in run.samples if not sample.right]
    if not wrong:
        return "<section><h2>Samples with problems</h2><p>None: every sample is right.</p></section>"
    more = f"<p>… and {len(wrong) - FAILING} more.</p>" if len(wrong) > FAILING else ""
    body = "".join(_sample(sample) for sample in wrong[:FAILING])
    return f"<section><h2>Samples with problems ({len(wrong)} of {len(run.samples)})</h2>{body}{more}</section>"


def _sample(sample: Scored) -> str:
    problems = [f"unscored: {sample.unscored}"] if sample.unscored else list(sample.judged.problems)
    return (
        f'<article><h3>{_text(sample.id)}</h3><p class="key">{_text(sample.kind)}, {_text(sample.domain)}, '
        f"{_text(sample.language)}</p>{_list(problems, 'problems')}"
        f'<div class="sides"><div><h4>said</h4>{_list(sample.said)}</div>'
        f"<div><h4>expected</h4>{_list(sample.judged.expected or ('nothing',))}</div>"
        f"<div><h4>got</h4>{_list(sample.judged.got or ('nothing',))}</div></div></article>"
    )


def _list(lines: Iterable[str], name: str = "") -> str:
    items = "".join(f'<li dir="auto">{_text(line)}</li>' for line in lines)
    return f'<ul class="{name}">{items}</ul>' if name else f"<ul>{items}</ul>"
