"""Who a person's commit is by."""

from __future__ import annotations

import getpass
from pathlib import Path

from docmem.git.process import run_for_person
from docmem.git.values import Author


def person(folder: Path = Path()) -> Author:
    """Who sits at the keyboard: git's user.name and user.email (in `folder`), else the account's name."""
    values = {}
    for key in ("user.name", "user.email"):
        done = run_for_person(folder, "config", "--get", key, ok=(0, 1, 128))
        values[key] = done.stdout.decode(errors="replace").strip()
    account = getpass.getuser()
    return Author(values["user.name"] or account, values["user.email"] or f"{account}@localhost")
