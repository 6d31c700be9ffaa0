"""Does a repo keep to format 1? The same check before a person's commit, at a push, and by `docmem check`.

Pure: files in, faults out. What git has to answer (which files, what else has this id) the caller asks.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from docmem import files, layout, names, sensitive
from docmem.document import scrub
from docmem.errors import FormatError, InvalidName

_TEXT_KINDS = {"memory", "profile", "document"}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a file. `line` counts from 1."""

    path: str
    code: str
    reason: str
    line: int = 1
    hint: str = ""

    def as_json(self) -> dict[str, Any]:
        """A row of `check --json`."""
        return {"path": self.path, "line": self.line, "code": self.code, "reason": self.reason, "hint": self.hint}

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.path}:{self.line}: {self.code}: {self.reason}{hint}"


def faults(contents: Mapping[str, bytes], *, all_paths: Iterable[str], ids: Mapping[str, str]) -> list[Fault]:
    """What is wrong with `contents` (path to bytes, of the files to check), by path.

    `all_paths`: every path of the tree, for twins. `ids`: memory id to path of the memories that are not checked here.
    """
    found = [fault for path, data in contents.items() for fault in _of_file(path, data)]
    found += _duplicate_ids(contents, ids)
    found += _twins(set(contents), all_paths)
    return sorted(found, key=lambda fault: (fault.path, fault.line, fault.code))


def _of_file(path: str, data: bytes) -> list[Fault]:
    found = _of_name(path)
    try:
        files.check(path, data)
    except FormatError as error:
        found.append(Fault(path, error.code, error.message, error.line, error.hint))
    if layout.place(path).kind in _TEXT_KINDS:
        found += _secrets(path, data)
    return found


def _of_name(path: str) -> list[Fault]:
    try:
        names.safe_path(path)
    except InvalidName as error:
        return [Fault(path, "bad_path", error.message, hint=error.hint)]
    if path.startswith("subjects/") and layout.place(path).kind == "other":
        return [
            Fault(
                path,
                "misplaced",
                "nothing under subjects/ is read but profile.yaml and memories/*.md of a subject's folder",
                hint="see FORMAT.md for where it goes",
            )
        ]
    return []


def _secrets(path: str, data: bytes) -> list[Fault]:
    lines = data.decode("utf-8", "replace").split("\n")
    kinds = {number: sorted(set(sensitive.secrets(line))) for number, line in enumerate(lines, start=1)}
    return [
        Fault(
            path, "secret", f"looks like a secret: {', '.join(found)}", number, "take it out; who reads the repo has it"
        )
        for number, found in kinds.items()
        if found
    ]


def _duplicate_ids(contents: Mapping[str, bytes], elsewhere: Mapping[str, str]) -> list[Fault]:
    places: dict[str, list[str]] = defaultdict(list)
    for path, data in sorted(contents.items()):
        memory = memory_id(path, data)
        if memory is not None:
            places[memory].append(path)
    found = []
    for memory, paths in places.items():
        first = elsewhere.get(memory)
        for path in paths if first is not None else paths[1:]:
            reason = f"the id {memory} is taken by {first or paths[0]}"
            found.append(Fault(path, "duplicate_id", reason, hint="a new memory needs an id of its own"))
    return found


def memory_id(path: str, data: bytes) -> str | None:
    """The id of the memory in this file; None for any other file, or one that can't be read."""
    if layout.place(path).kind != "memory":
        return None
    try:
        return files.parse_memory(path, data).id
    except FormatError:
        return None


def _twins(checked: set[str], all_paths: Iterable[str]) -> list[Fault]:
    """Paths that are one file on a disk that ignores case or normalizes Unicode (macOS, Windows)."""
    same: dict[str, list[str]] = defaultdict(list)
    for path in all_paths:
        clean, _ = scrub(path)
        same[unicodedata.normalize("NFC", clean).casefold()].append(path)
    return [
        Fault(path, "twin_path", f"differs only in case or Unicode form from {other}", hint="rename one of them")
        for paths in same.values()
        if len(paths) > 1
        for path in sorted(paths)[1:]
        if checked & set(paths)
        for other in [sorted(paths)[0]]
    ]
