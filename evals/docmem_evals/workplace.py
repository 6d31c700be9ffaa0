"""A root of its own for an evaluation, and what it leaves in a Postgres of the user's taken away again."""

from __future__ import annotations

import logging
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from docmem import postgres as server
from docmem.config import Settings
from docmem.errors import DocmemError
from docmem_sync.drop import drop

_log = logging.getLogger("docmem.evals")


@contextmanager
def workplace(
    settings: Settings, names: Sequence[str], *, postgres: bool = True
) -> Iterator[tuple[Settings, list[str]]]:
    """Settings with a root of their own, and a tenant's name for each of `names`; all gone afterwards.

    Ids depend on the secret: with a fixed one an evaluation gives the same figures everywhere. `postgres` False: no
    row will be written, so none is looked for afterwards.
    """
    root = Path(tempfile.mkdtemp(prefix="docmem-eval-"))
    root.chmod(0o711)  # the server doesn't run as root
    work = replace(settings, root=root, secret="locomo", require_memory=False)
    suffix = f"-{secrets.token_hex(4)}" if postgres and settings.external else ""
    tenants = [f"{name}{suffix}" for name in names]
    try:
        yield work, tenants
    finally:
        try:
            if postgres and settings.external:
                drop(work, tenants)
            elif postgres:
                server.remove(work)
        except DocmemError as error:  # what went wrong before it counts more
            _log.warning("the evaluation's rows could not be removed: %s", error)
        shutil.rmtree(root, ignore_errors=True)
