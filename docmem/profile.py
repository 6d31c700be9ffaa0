"""Merge what a window says about a person's contact card into their profile. Pure.

A shallow merge: null keeps. The life cycle ratchets for the model (lead < comparing < active, never back; churned is
set and left at any time); people may set whatever they like. Keys listed under `pinned:` are people's alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from docmem import files, sensitive
from docmem.admission import Verdict, is_high_impact
from docmem.evidence import Finding
from docmem.instructions import is_instruction
from docmem.model import Profile
from docmem.names import normalized
from docmem.reply import ProfilePatch
from docmem.splice import KeyPath
from docmem.tenant_config import Policies

STAGES: Final = ("lead", "comparing", "active")
"""In their order; a model never goes back in it."""
CHURNED: Final = "churned"
VALUE_MAX = 500
"""Characters of one value."""

DEFAULT_POLICIES: Final = Policies()

_CORE = ("preferred_language", "locale", "lifecycle_stage")
_KEY = re.compile(r"[^\W_][\w .-]{0,63}")
_LOCALE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*")


@dataclass(frozen=True, slots=True)
class Entry:
    """The decision on one key: `preferred_language`, or `attributes.<key>`."""

    path: KeyPath
    value: str
    verdict: Verdict
    code: str | None = None

    @property
    def key(self) -> str:
        """The key as people write it under `pinned:`: its last part."""
        return self.path[-1]


@dataclass(frozen=True, slots=True)
class Merge:
    """What becomes of a patch. `undeclared`: keys kept though no agent declares them."""

    entries: tuple[Entry, ...] = ()
    undeclared: tuple[str, ...] = ()

    def changes(self, verdict: Verdict = "admitted") -> dict[KeyPath, str]:
        """The values to set: those admitted, or those held."""
        return {entry.path: entry.value for entry in self.entries if entry.verdict == verdict}


def merge(
    profile: Profile,
    patch: ProfilePatch,
    *,
    declared: Iterable[str],
    policies: Policies = DEFAULT_POLICIES,
    was_rejected: Callable[[KeyPath, str], bool] = lambda path, value: False,
    finding: Callable[[KeyPath, str], Finding] = lambda path, value: "borne_out",
) -> Merge:
    """Decide on each value that a patch would change. Values that are there already come to nothing.

    `was_rejected` tells whether a person turned a value down in review; `finding`, what the window says of a value
    (`evidence.of_value`): one that it doesn't bear out is rejected, one that words can't judge is held.
    """
    known = tuple(declared)
    spelled = {normalized(key): key for key in (*profile.attributes, *known)}
    entries = [
        _remembered(_decide(profile, path, value, policies, finding), was_rejected)
        for path, value in _proposed(patch, spelled)
    ]
    changed = tuple(entry for entry in entries if entry is not None)
    undeclared = tuple(
        entry.key
        for entry in changed
        if entry.path[0] == "attributes" and entry.verdict == "admitted" and entry.key not in known
    )
    return Merge(changed, undeclared)


def _remembered(entry: Entry | None, was_rejected: Callable[[KeyPath, str], bool]) -> Entry | None:
    if entry is None or entry.verdict == "rejected" or not was_rejected(entry.path, entry.value):
        return entry
    return replace(entry, verdict="rejected", code="rejected_before")


def refused(merged: Merge, code: str) -> Merge:
    """The merge with what it would change rejected: the file couldn't take it."""
    return Merge(
        tuple(
            replace(entry, verdict="rejected", code=code) if entry.verdict == "admitted" else entry
            for entry in merged.entries
        )
    )


def edited(data: bytes, changes: Mapping[KeyPath, str], *, last_interaction_at: datetime | None) -> bytes:
    """The profile's file with the changes spliced in: comments, order and quoting stay. Raises `FormatError`."""
    wanted: dict[KeyPath, str | datetime] = dict(changes)
    if last_interaction_at is not None:
        wanted[("last_interaction_at",)] = last_interaction_at
    return files.edit_yaml(data, wanted)


def next_stage(current: str | None, proposed: str) -> str | None:
    """The stage that a model's proposal leads to; None where it is no stage. A step back stays where it is."""
    stage, here = normalized(proposed), normalized(current or "")
    if stage not in (*STAGES, CHURNED):
        return None
    if CHURNED in (stage, here) or here not in STAGES:
        return stage
    return max(stage, here, key=STAGES.index)


def _proposed(patch: ProfilePatch, spelled: Mapping[str, str]) -> Iterator[tuple[KeyPath, str]]:
    for name in _CORE:
        value = getattr(patch, name)
        if value is not None and value.strip():
            yield (name,), " ".join(value.split())
    # `Diet` is the declared `diet`; of a key that stands twice the last value counts.
    last = {
        spelled.get(normalized(pair.key), pair.key.strip()): " ".join(pair.value.split()) for pair in patch.attributes
    }
    for key, value in last.items():
        if value:
            yield ("attributes", key), value


def _decide(
    profile: Profile, path: KeyPath, proposed: str, policies: Policies, finding: Callable[[KeyPath, str], Finding]
) -> Entry | None:
    value = policies.pii.redacted(proposed)
    entry = Entry(path, value, "admitted")
    here = profile.attributes.get(path[-1]) if path[0] == "attributes" else getattr(profile, path[0])
    code = objection(path, value)
    if code is None and policies.pii.strictest(proposed) == "reject":
        code = "pii"
    if code is None and path == ("lifecycle_stage",):
        stage = next_stage(here, value)
        entry, code = replace(entry, value=stage or value), None if stage else "bad_stage"
    if code is not None:
        return replace(entry, verdict="rejected", code=code)
    if here is not None and normalized(here) == normalized(entry.value):
        return None
    found = finding(path, proposed)
    if found not in ("borne_out", "unsupported"):
        return replace(entry, verdict="rejected", code=found)
    held = _held(profile, entry, policies) or (found if found == "unsupported" else None)
    return replace(entry, verdict="held", code=held) if held else entry


def objection(path: KeyPath, value: str) -> str | None:
    """The code of why a value can't be kept, whoever wants it; None where it can."""
    key = path[-1]
    if key.lower().startswith("tenant"):
        return "tenant_key"
    if not _KEY.fullmatch(key):
        return "bad_key"
    if len(value) > VALUE_MAX:
        return "size"
    if path == ("locale",) and not _LOCALE.fullmatch(value):
        return "bad_locale"
    if sensitive.secrets(f"{key}: {value}"):
        return "secret"
    return "card_number" if sensitive.card_numbers(value) else None


def _held(profile: Profile, entry: Entry, policies: Policies) -> str | None:
    pinned = {normalized(key) for key in profile.pinned}
    if normalized(entry.key) in pinned or normalized(".".join(entry.path)) in pinned:
        return "pinned"
    if is_instruction(entry.value) or is_instruction(f"{entry.key} {entry.value}"):
        return "instruction"
    is_matter = entry.path[0] == "attributes" and is_high_impact(entry.key)
    if is_matter or policies.pii.strictest(entry.value) == "hold":
        return "high_impact"
    return "review_all" if policies.review == "all" else None
