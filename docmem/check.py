"""Does a repo keep to format 1? The same check before a person's commit, at a push, and by `docmem check`.

Pure: files in, faults out. What git has to answer (which files, what else has this id) the caller asks.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from docmem import files, layout, names, sensitive
from docmem.document import scrub, split
from docmem.errors import FormatError, InvalidName

_KEPT_BY_DOCMEM = {"watermark", "reverted"}
_WINDOWS_CHARS = re.compile(r'[\x00-\x1f<>:"|?*]')
_DEVICE = re.compile(r"(?i)(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?")
_READ_MAX = 1024 * 1024
"""Bytes of a file that are searched for secrets."""
_TEXT_START = 8000
"""A file without a NUL in its first bytes is text, as git tells it."""


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
    if layout.place(path).kind not in _KEPT_BY_DOCMEM:
        found += _secrets(path, data[:_READ_MAX]) if b"\0" not in data[:_TEXT_START] else []
    return found


def _of_name(path: str) -> list[Fault]:
    try:
        names.safe_path(path)
    except InvalidName as error:
        return [Fault(path, "bad_path", error.message, hint=error.hint)]
    odd = next((part for part in path.split("/") if _no_windows_name(part)), None)
    if odd is not None:
        reason = f"no Windows disk can hold the name {odd!r}: a clone there would fail"
        return [Fault(path, "bad_path", reason, hint="rename it")]
    kinds = sorted({kind for part in path.split("/") for kind in sensitive.secrets(part)})
    if kinds:
        return [Fault(path, "secret", f"its name looks like a secret: {', '.join(kinds)}", hint="rename it")]
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


def _no_windows_name(part: str) -> bool:
    return part[-1:] in {".", " "} or _WINDOWS_CHARS.search(part) is not None or _DEVICE.fullmatch(part) is not None


def strays(paths: Iterable[str]) -> list[str]:
    """Markdown and YAML files in folders that docmem doesn't know: they are kept, and never read."""
    folders = {
        path: path.partition("/")[0] for path in paths if "/" in path and path.endswith((".md", ".yaml", ".yml"))
    }
    unread = (path for path in folders if layout.place(path).kind == "other")
    return sorted(path for path in unread if not folders[path].startswith(".") and folders[path] != "subjects")


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


def is_alike(old: bytes, new: bytes) -> bool:
    """Whether two memories' files share at least half of the words of their texts. False where one can't be read."""
    try:
        before, after = (set(re.findall(r"\w+", split(data).body.casefold())) for data in (old, new))
    except FormatError:
        return False
    return 2 * len(before & after) >= len(before | after)


def memory_id(path: str, data: bytes) -> str | None:
    """The id of the memory in this file; None for any other file, or one that can't be read."""
    if layout.place(path).kind != "memory":
        return None
    try:
        return files.parse_memory(path, data).id
    except FormatError:
        return None


def _twins(checked: set[str], all_paths: Iterable[str]) -> list[Fault]:
    """Paths that are one file, or one folder, on a disk that ignores case or normalizes Unicode (macOS, Windows)."""
    spelled: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    folded = cache(_folded)
    known: set[str] = set()
    for path in sorted(all_paths, key=lambda path: (path not in checked, path)):
        rest = path
        while rest and rest not in known:
            known.add(rest)
            above, _, name = rest.rpartition("/")
            spelled[(folded(above), folded(name))].setdefault(name, path)
            rest = above
    return [
        Fault(path, "twin_path", f"differs only in case or Unicode form from {first}", hint="rename one of them")
        for names_ in spelled.values()
        if len(names_) > 1 and checked & set(names_.values())
        for first, *others in [[names_[name] for name in sorted(names_)]]
        for path in others
    ]


def _folded(path: str) -> str:
    clean, _ = scrub(path)
    return unicodedata.normalize("NFC", clean).casefold()
