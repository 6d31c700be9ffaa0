"""The journal of an erase: what is to be done and how far it is, so that a crash anywhere means: run it again.

`$DOCMEM_ROOT/erase/<tenant>.json`, readable by the owner alone, gone once the erase is through. It holds ids and
names, never a text.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from docmem import git
from docmem.config import Settings
from docmem.erasure import Content, Target
from docmem.errors import TryAgain
from docmem.names import tenant_name

Step: TypeAlias = Literal["begun", "rewritten", "swapped", "pruned", "unindexed"]
"""The last step that is done."""


@dataclass(frozen=True, slots=True)
class Journal:
    """One erase under way. `commits`: old to new. `moves`: ref to (old, new), None where it isn't there.

    `failed`: conversations about the subject that wait or failed, of which no commit tells. `quoting`: commit
    messages that stay and quote what is erased.
    """

    tenant: str
    target: Target
    began: str
    step: Step = "begun"
    folder: str = ""
    memories: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    threads: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    blobs: tuple[str, ...] = ()
    reviews: int = 0
    elsewhere: int = 0
    quoting: int = 0
    commits: Mapping[str, str] = field(default_factory=dict)
    moves: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    rebuild: bool = False

    @property
    def names(self) -> frozenset[str]:
        """What names the target: its key and the ids of its memories."""
        return frozenset(self.memories) | ({self.target.value} if self.target.kind == "subject" else frozenset())

    def with_content(self, content: Content) -> Journal:
        """The journal with what goes."""
        return replace(
            self,
            folder=content.folder,
            memories=tuple(sorted(content.memories)),
            paths=tuple(sorted(content.paths)),
            threads=tuple(sorted(content.threads)),
            blobs=tuple(sorted(content.blobs)),
            reviews=len(content.reviews),
            elsewhere=content.elsewhere,
        )


def path(settings: Settings, tenant: str) -> Path:
    """Where the journal of a tenant's erase is."""
    return settings.root / "erase" / f"{tenant_name(tenant)}.json"


def write(settings: Settings, journal: Journal) -> Journal:
    """Keep a journal, on disk before this returns."""
    place = path(settings, journal.tenant)
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = place.with_suffix(f".{os.getpid()}.tmp")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(asdict(journal), file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(place)
    return journal


def read(settings: Settings, tenant: str) -> Journal | None:
    """The journal of an erase that isn't through; None where there is none."""
    try:
        values: dict[str, Any] = json.loads(path(settings, tenant).read_text())
    except FileNotFoundError:
        return None
    for key in ("memories", "paths", "threads", "failed", "blobs"):
        values[key] = tuple(values.get(key, ()))
    moves = {ref: (old, new) for ref, (old, new) in values["moves"].items()}
    return Journal(**(values | {"target": Target(**values["target"]), "moves": moves}))


def tenants(settings: Settings) -> list[str]:
    """The tenants with an erase that isn't through, sorted."""
    return sorted(place.stem for place in (settings.root / "erase").glob("*.json"))


def broken_off(settings: Settings, tenant: str) -> str | None:
    """Since when an erase of this tenant waits to be finished; None where there is none, or one is at work."""
    begun = read(settings, tenant)
    git_dir = settings.tenants / f"{tenant_name(tenant)}.git"
    if begun is None:
        return None
    try:
        with git.lock(git_dir, timeout=0.0) if git.is_repo(git_dir) else contextlib.nullcontext():
            return begun.began
    except TryAgain:
        return None


def end(settings: Settings, journal: Journal, receipt: Mapping[str, Any]) -> None:
    """Add the receipt to `$DOCMEM_ROOT/erase/receipts.jsonl`, and remove the journal."""
    place = path(settings, journal.tenant)
    with os.fdopen(os.open(place.with_name("receipts.jsonl"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w") as f:
        f.write(json.dumps(receipt) + "\n")
        f.flush()
        os.fsync(f.fileno())
    place.unlink(missing_ok=True)
