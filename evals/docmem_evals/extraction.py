"""`docmem eval extraction`: what a model proposes for a window, against what a careful person would keep.

The real prompt, nothing written. Counts are summed over all cases (micro averages), so that a case with three
statements weighs three. Only creates and updates count as extracted; what is already known is no new find.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docmem import llm, prompt
from docmem.config import Settings
from docmem.consolidation import Model
from docmem.errors import ModelReplyError
from docmem.model import Memory, Profile
from docmem.names import normalized
from docmem.prompt import Request
from docmem.reply import Operation, ProfilePatch
from docmem.wording import overlap
from docmem_evals import counting, dataset, matching
from docmem_evals.dataset import Case, Expected

MATCHER = f"jaccard {matching.JACCARD}"
SUPPORTED = 0.5
"""Share of a statement's words that its cited turns must hold for it to have evidence."""

_SUBJECT = "0" * 64


@dataclass(frozen=True)
class Scored:
    """One case's counts. `failed`: there was no usable reply, and everything expected counts as missed."""

    case: Case
    extracted: tuple[str, ...] = ()
    matched: int = 0
    junk: int = 0
    attributes: tuple[int, int, int] = (0, 0, 0)
    """(right, extracted, expected) values of the profile."""
    failed: bool = False


@dataclass(frozen=True)
class Report:
    """What a run measured."""

    model: str
    dataset: str
    samples: tuple[Scored, ...]
    bounds: Mapping[str, float]

    @property
    def metrics(self) -> dict[str, float]:
        """Over all cases."""
        return metrics(self.samples)

    @property
    def gates(self) -> dict[str, dict[str, Any]]:
        """The bounds that were asked for: F1 at least, junk at most."""
        found = {}
        for name, bound in self.bounds.items():
            value = self.metrics[name]
            found[name] = {"value": value, "bound": bound, "passed": value >= bound if name == "f1" else value <= bound}
        return found

    @property
    def passed(self) -> bool:
        """Whether every gate is."""
        return all(gate["passed"] for gate in self.gates.values())

    def as_json(self) -> dict[str, Any]:
        """The shape of `eval --json`."""
        return {
            "task": "extraction",
            "model": self.model,
            "stand_in": self.model == "offline",
            "matcher": MATCHER,
            "dataset": self.dataset,
            "samples": len(self.samples),
            "failed": sum(each.failed for each in self.samples),
            "metrics": self.metrics,
            "by_kind": {kind: metrics(rows) for kind, rows in self._grouped("kind").items()},
            "by_domain": {domain: metrics(rows) for domain, rows in self._grouped("domain").items()},
            "gates": self.gates,
        }

    def table(self) -> str:
        """The figures for people."""
        names = ("precision", "recall", "f1", "attribute_f1", "junk_rate")
        lines = [f"{'':<14}{'cases':>6}" + "".join(f"{name:>14}" for name in names)]
        for domain, rows in [*self._grouped("domain").items(), ("all", list(self.samples))]:
            lines.append(f"{domain:<14}{len(rows):>6}" + "".join(f"{metrics(rows)[name]:>14.3f}" for name in names))
        said = " (a stand-in made of rules, no language model)" if self.model == "offline" else ""
        return "\n".join([*lines, "", f"model: {self.model}{said}; matcher: {MATCHER}; dataset: {self.dataset}"])

    def _grouped(self, by: str) -> dict[str, list[Scored]]:
        found: dict[str, list[Scored]] = {}
        for each in self.samples:
            found.setdefault(getattr(each.case, by), []).append(each)
        return found


def run(
    settings: Settings,
    *,
    model: str | Model,
    folder: Path | None = None,
    min_f1: float | None = None,
    max_junk: float | None = None,
) -> Report:
    """Ask the model about each case of a folder (default: the shipped). Raises `InputError`, `ModelUnavailable`."""
    loaded = dataset.load(folder)
    asked = llm.model(model) if isinstance(model, str) else model
    bounds = {"f1": min_f1, "junk_rate": max_junk}
    return Report(
        asked.name,
        f"{'cases' if folder is None else folder.name}@{loaded.hash}",
        tuple(_scored(case, asked) for case in loaded.cases),
        {name: bound for name, bound in bounds.items() if bound is not None},
    )


def _scored(case: Case, model: Model) -> Scored:
    try:
        reply = model.propose(request(case)).parsed.reply
    except ModelReplyError:
        return Scored(case, attributes=(0, 0, len(_wanted(case.expected))), failed=True)
    return score(case, reply.operations, reply.profile)


def request(case: Case) -> Request:
    """The case as consolidation would put it to a model."""
    known = [Memory(f"{n:016x}", "fact", text, _SUBJECT, "") for n, text in enumerate(case.known, start=1)]
    return Request(
        thread=case.id,
        turns=case.turns,
        agent=case.agent,
        memories=prompt.handles(known),
        profile=Profile(_SUBJECT),
    )


def score(case: Case, operations: Sequence[Operation], profile: ProfilePatch) -> Scored:
    """A reply against what was expected. Pure."""
    made = [operation for operation in operations if operation.op != "delete"]
    texts = [operation.text for operation in made]
    claimed = matching.pairs(case.expected.memories, texts)
    loose = [operation for number, operation in enumerate(made) if number not in claimed.values()]
    return Scored(
        case,
        extracted=tuple(texts),
        matched=len(claimed),
        junk=sum(not has_evidence(operation, case) for operation in loose),
        attributes=_attributes(case.expected, profile),
    )


def has_evidence(operation: Operation, case: Case) -> bool:
    """Whether the cited turns of the user's hold half of a statement's words."""
    cited = [turn.text for turn in case.turns if turn.id in operation.evidence_turns and turn.role == "user"]
    return bool(cited) and overlap(operation.text, "\n".join(cited)) >= SUPPORTED


def _attributes(expected: Expected, profile: ProfilePatch) -> tuple[int, int, int]:
    wanted, found = _wanted(expected), _found(profile)
    right = sum(same_value(value, found[key]) for key, value in wanted.items() if key in found)
    return right, len(found), len(wanted)


def same_value(one: str, other: str) -> bool:
    """Whether two values are one but for spelling: "RM90,000" is "90000", "Lisbon " is "lisbon"."""
    left, right = ("".join(char for char in text if char.isdigit()) for text in (one, other))
    return normalized(one) == normalized(other) or (bool(left) and left == right)


def _wanted(expected: Expected) -> dict[str, str]:
    return _values(expected.profile.attributes.items(), expected.profile)


def _found(profile: ProfilePatch) -> dict[str, str]:
    return _values(((pair.key, pair.value) for pair in profile.attributes), profile)


def _values(attributes: Iterable[tuple[str, str]], core: Any) -> dict[str, str]:
    named = {name: getattr(core, name) for name in ("preferred_language", "locale", "lifecycle_stage")}
    return {**{normalized(key): value for key, value in attributes}, **{k: v for k, v in named.items() if v}}


def metrics(samples: Sequence[Scored]) -> dict[str, float]:
    """The metrics of some cases together, to 4 digits."""
    matched = sum(each.matched for each in samples)
    extracted = sum(len(each.extracted) for each in samples)
    expected = sum(len(each.case.expected.memories) for each in samples)
    right, given, wanted = (sum(column) for column in zip(*(each.attributes for each in samples), strict=True))
    found = {
        "precision": counting.precision(matched, extracted),
        "recall": counting.recall(matched, expected),
        "f1": counting.f1(matched, extracted=extracted, expected=expected),
        "attribute_f1": counting.f1(right, extracted=given, expected=wanted),
        "junk_rate": counting.share(sum(each.junk for each in samples), extracted),
        "unexpected_rate": counting.share(extracted - matched, extracted),
    }
    return {name: round(value, 4) for name, value in found.items()}
