"""The one broad catch: an expected error is a line with what to do, a bug is a log to send us, ^C is 130."""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

from docmem import __version__
from docmem.cli.output import print_json
from docmem.errors import ConfigError, DocmemError

BUG = 3
INTERRUPTED = 130


def handled(command: click.Command, words: Sequence[str]) -> int:
    """Run a command and turn whatever it raises into an exit code and a message people can use."""
    as_json = "--json" in words
    try:
        result = command.main(args=list(words), prog_name="docmem", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.ClickException as error:
        return _usage(error, as_json=as_json)
    except DocmemError as error:
        _report(error.code, error.message, error.hint, as_json=as_json)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:  # `docmem log | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        found = _of_a_folder(error)
        if found is None:
            _bug(error, words, as_json=as_json)
            return BUG
        _report(found.code, found.message, found.hint, as_json=as_json)
        return found.exit_code
    except Exception as error:  # noqa: BLE001 - the door: a bug must end as a log, not as a traceback on a terminal
        _bug(error, words, as_json=as_json)
        return BUG


def _of_a_folder(error: OSError) -> DocmemError | None:
    """A folder or disk that can't be used, in words: nothing that we could have known before."""
    from docmem import root
    from docmem.config import settings

    try:
        return root.explanation(error, settings().root)
    except ConfigError:
        return None


def _usage(error: click.ClickException, *, as_json: bool) -> int:
    if as_json:
        print_json({"error": {"code": "usage", "message": error.format_message(), "hint": "see --help"}})
    else:
        error.show()
    return error.exit_code


def _report(code: str, message: str, hint: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"error": {"code": code, "message": message, "hint": hint}})
        return
    click.echo(f"error: {message}", err=True)
    if hint:
        click.echo(f"  {hint}", err=True)


def _bug(error: Exception, words: Sequence[str], *, as_json: bool) -> None:
    text = "".join(traceback.format_exception(error))
    log = _write_log(f"docmem {__version__}, python {sys.version}\ncommand: {list(words)}\n\n{text}")
    hint = f"please send us {log}" if log else text
    _report("bug", f"docmem has a bug: {type(error).__name__}: {error}", hint, as_json=as_json)


def _write_log(text: str) -> Path | None:
    try:
        descriptor, name = tempfile.mkstemp(prefix=f"docmem-bug-{int(time.time())}-", suffix=".log")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError:  # a full disk must not hide the bug
        return None
    return Path(name)
