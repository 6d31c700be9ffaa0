"""What commands print: data to stdout, messages to stderr; colour only on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

from docmem.config import set_default
from docmem.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])


def json_option(function: F) -> F:
    """Add `--json` as the parameter `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON value instead of text.")(function)


def print_json(value: Any) -> None:
    """One JSON value, indented on a terminal and on one line elsewhere."""
    indent = 2 if sys.stdout.isatty() else None
    click.echo(json.dumps(value, ensure_ascii=False, indent=indent))


def paged(lines: Iterable[str]) -> None:
    """Lines of text, through a pager where a terminal shows them."""
    if not sys.stdout.isatty():
        for line in lines:
            click.echo(line, nl=not line.endswith("\n"))
        return
    set_default("LESS", "FRX")  # as git does: colours, and no pager for what fits on the screen
    click.echo_via_pager((line if line.endswith("\n") else f"{line}\n" for line in lines), color=True)


def note(message: str) -> None:
    """A line to stderr."""
    click.echo(message, err=True)


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something goes that a person may miss. Raises `InputError` where nobody can be asked.

    A script that means it says `--yes`: silence is no consent.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(f"nothing was done, since nobody could be asked: {question}", hint="add --yes to mean it")
    click.confirm(question, abort=True, err=True)


def short(revision: str | None) -> str:
    """Twelve digits of a revision for people; `-` for none."""
    return revision[:12] if revision else "-"


def one_line(text: str, width: int = 100) -> str:
    """Text on one line, cut with a mark."""
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 1].rstrip() + "…"


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows with their columns aligned, two spaces between."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))] if rows else []
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)
