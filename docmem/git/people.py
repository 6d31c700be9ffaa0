"""Who a person's commit is by."""

from __future__ import annotations

import getpass
import subprocess

from docmem.git.values import Author


def person() -> Author:
    """Who sits at the keyboard: git's user.name and user.email, else the account's name."""
    values = {}
    for key in ("user.name", "user.email"):
        done = subprocess.run(["git", "config", "--get", key], capture_output=True, check=False)
        values[key] = done.stdout.decode(errors="replace").strip()
    account = getpass.getuser()
    return Author(values["user.name"] or account, values["user.email"] or f"{account}@localhost")
