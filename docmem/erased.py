"""What was erased must not come back: a repo's flag while an erase is at work, and its ledger of keyed hashes.

`<repo>/docmem.erasing` stands from the first step of an erase to its last, across crashes: pushes are refused
meanwhile. `<repo>/docmem.erased` has a line for each blob and each memory id that was erased, and for how far each
conversation was read: 32 hex digits of an HMAC with the store's secret, so that the file confirms no guess about what
it was; one line tells whose secret it is. A stale clone that pushes an erased file, or edits one and pushes that, is
recognized by the one or the other, and a dialogue that the host still has is not read again. The person may be
remembered anew.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from docmem import check, git, layout
from docmem.errors import ConfigError

FLAG = "docmem.erasing"
LEDGER = "docmem.erased"


def is_erasing(git_dir: Path) -> bool:
    """Whether an erase has begun and isn't through, be it at work or broken off."""
    return (git_dir / FLAG).exists()


@dataclass(frozen=True)
class Ledger:
    """A repo's keyed hashes of what was erased from it."""

    git_dir: Path
    secret: bytes

    @cached_property
    def hashes(self) -> frozenset[str]:
        """What the file says."""
        try:
            lines = frozenset((self.git_dir / LEDGER).read_text().split())
        except FileNotFoundError:
            return frozenset()
        if self._hash("check", "") not in lines:
            raise ConfigError(
                f"{self.git_dir / LEDGER} was written with another secret: what was erased can't be told",
                hint="let whoever runs this have the store's DOCMEM_SECRET, or its $DOCMEM_ROOT/secret",
            )
        return lines

    def _hash(self, kind: str, value: str) -> str:
        return hmac.new(self.secret, f"erased:{kind}:{value}".encode(), hashlib.sha256).hexdigest()[:32]

    def has_blob(self, blob: str) -> bool:
        """Whether a file with this blob id was erased."""
        return bool(self.hashes) and self._hash("blob", blob) in self.hashes

    def has_memory(self, memory: str) -> bool:
        """Whether the memory with this id was erased."""
        return bool(self.hashes) and self._hash("memory", memory) in self.hashes

    def has_turn(self, thread: str, turn: str) -> bool:
        """Whether a conversation whose watermark was erased had been read up to this turn, at some time."""
        return bool(self.hashes) and self._hash("turn", f"{thread}\0{turn}") in self.hashes

    def remember(self, blobs: Iterable[str], memories: Iterable[str], turns: Iterable[tuple[str, str]] = ()) -> None:
        """Put these in, whole or not at all. `turns`: (thread, turn) of erased watermarks."""
        fresh = {self._hash("check", "")}
        fresh |= {self._hash("turn", f"{thread}\0{turn}") for thread, turn in turns}
        fresh |= {self._hash("blob", blob) for blob in blobs} | {self._hash("memory", memory) for memory in memories}
        aside = self.git_dir / f"{LEDGER}.{os.getpid()}"
        aside.write_text("".join(f"{line}\n" for line in sorted(self.hashes | fresh)))
        aside.replace(self.git_dir / LEDGER)


def is_recorded(git_dir: Path) -> bool:
    """Whether something was erased from this repo, or is just being."""
    return is_erasing(git_dir) or (git_dir / LEDGER).exists()


def read_up_to(git_dir: Path, secret: Callable[[], bytes], thread: str, turns: Sequence[str]) -> str | None:
    """The last of these turns that was read before the conversation's watermark was erased; None where none was.

    The host may still have the dialogue: without this the next sweep would learn from it again what was erased.
    """
    if not (git_dir / LEDGER).exists():
        return None
    ledger = Ledger(git_dir, secret())
    return next((turn for turn in reversed(turns) if ledger.has_turn(thread, turn)), None)


def refusals(git_dir: Path, secret: Callable[[], bytes], *, old: str | None, new: str) -> list[str]:
    """Why a push may not come in where `new` reaches what `old` doesn't. See `refused_paths`."""
    if is_erasing(git_dir):
        return ["an erase is at work, or was broken off: try again later (who keeps the store: docmem erase --resume)"]
    return [
        f"{path}: this was erased, and may not come back (make a new clone: yours still holds it)"
        for path in refused_paths(git_dir, secret, old=old, new=new)
    ]


def refused_paths(
    git_dir: Path, secret: Callable[[], bytes], *, old: str | None, new: str, objects: Path | None = None
) -> list[str]:
    """Files that were erased, among all that commits bring (by push, fetch or import) which `new` has and `old` hasn't.

    Looks at every version of every file that they bring, not only at what differs in the end. `secret` is asked for
    only where something was erased. `objects`: the repo to read, where it isn't this one. Raises `ConfigError` where
    the secret is another one than the ledger's.
    """
    if not (git_dir / LEDGER).exists():
        return []
    ledger, store = Ledger(git_dir, secret()), objects or git_dir
    brought = [(blob, path) for blob, path in git.brought_objects(store, old, new) if path]
    found = {path for blob, path in brought if ledger.has_blob(blob)}
    memories = {blob: path for blob, path in brought if layout.place(path).kind == "memory" and path not in found}
    for blob, data in git.read_blobs(store, memories) if memories else ():
        memory = check.memory_id(memories[blob], data)
        if memory is not None and ledger.has_memory(memory):
            found.add(memories[blob])
    return sorted(found)
