"""What was extracted of a window, against what a careful person would keep.

Counts are summed over all cases (micro averages), so that a case with three statements weighs three. Only creates and
updates count as extracted; what is already known is no new find, and what a case calls optional counts nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from docmem.names import normalized
from docmem.reply import Operation, ProfilePatch
from docmem.wording import overlap
from docmem_evals import counting
from docmem_evals.counting import Counts, total
from docmem_evals.dialogues import Card, Case
from docmem_evals.matching import Matcher, contained, pairs
from docmem_evals.samples import Judged
from docmem_evals.values import any_value

SUPPORTED = 0.5
"""Share of a statement's words that its cited turns must hold for it to have evidence."""


def score(case: Case, operations: Sequence[Operation], profile: ProfilePatch, matcher: Matcher) -> Judged:
    """Judge a reply."""
    made = [operation for operation in operations if operation.op != "delete"]
    texts = [operation.text for operation in made]
    expected = case.expected.memories
    claimed = pairs(expected, texts, matcher)
    loose = [operation for number, operation in enumerate(made) if number not in claimed.values()]
    spare = pairs(case.expected.optional, [operation.text for operation in loose], matcher).values()
    loose = [operation for number, operation in enumerate(loose) if number not in spare]
    junk = [operation.text for operation in loose if not has_evidence(operation, case)]
    card = case.expected.profile
    wanted, found = card.values, values(profile)
    right = {key for key in wanted if key in found and any_value(card.accepted(key), found[key])}
    problems = [
        *(f"missed: {expected[number][0]}" for number in range(len(expected)) if number not in claimed),
        *(f"junk: {text}" for text in junk),
        *(f"not expected: {operation.text}" for operation in loose if operation.text not in junk),
        *(f"profile: {key} is {found.get(key, 'missing')}, not {wanted[key]}" for key in wanted if key not in right),
        *(f"profile: {key} is {found[key]}, and nothing was expected" for key in found if key not in wanted),
    ]
    return Judged(
        counts={
            "matched": len(claimed),
            "extracted": len(made) - len(spare),
            "expected": len(expected),
            "junk": len(junk),
            "values_right": len(right),
            "values_found": len(found),
            "values_expected": len(wanted),
            "values_routed": len(wanted.keys() & found.keys()),
            **stage_counts(case.expected.profile, profile.lifecycle_stage),
        },
        expected=shown(tuple(wordings[0] for wordings in expected), wanted),
        got=shown(tuple(texts), found),
        problems=tuple(problems),
    )


def missed(case: Case, reason: str) -> Judged:
    """There was no usable reply: everything expected counts as missed."""
    wanted = case.expected.profile
    return Judged(
        counts={
            "expected": len(case.expected.memories),
            "values_expected": len(wanted.values),
            "stages": int(wanted.judges_stage),
            "failed": 1,
        },
        expected=shown(tuple(wordings[0] for wordings in case.expected.memories), wanted.values),
        got=(),
        problems=(f"no usable reply: {reason}",),
    )


def has_evidence(operation: Operation, case: Case) -> bool:
    """Whether the cited turns of the user's hold half of a statement's words."""
    cited = [turn.text for turn in case.turns if turn.id in operation.evidence_turns and turn.role == "user"]
    said = "\n".join(cited)
    # The one knows forms of words, the other scripts that have no spaces between them.
    return bool(cited) and max(overlap(operation.text, said), contained(operation.text, said)) >= SUPPORTED


def values(profile: ProfilePatch) -> dict[str, str]:
    """The values that a reply gives, core and attributes."""
    core = {name: getattr(profile, name) for name in ("preferred_language", "locale", "lifecycle_stage")}
    pairs_ = {normalized(pair.key): pair.value for pair in profile.attributes}
    return {**pairs_, **{name: value for name, value in core.items() if value}}


def stage_counts(expected: Card, stage: str | None) -> dict[str, float]:
    """Whether the lifecycle stage is right, where the case says which."""
    if not expected.judges_stage:
        return {}
    return {"stages": 1, "stages_right": int(normalized(stage or "") == normalized(expected.lifecycle_stage or ""))}


def shown(statements: Sequence[str], card: dict[str, str]) -> tuple[str, ...]:
    """Statements and values as lines for people."""
    return (*statements, *(f"{key}: {value}" for key, value in card.items()))


def metrics(samples: Sequence[Counts]) -> dict[str, float]:
    """The metrics of some cases together."""
    of = total(samples)
    found = {
        "precision": counting.precision(of["matched"], of["extracted"]),
        "recall": counting.recall(of["matched"], of["expected"]),
        "f1": counting.f1(of["matched"], extracted=of["extracted"], expected=of["expected"]),
        "attribute_f1": counting.f1(of["values_right"], extracted=of["values_found"], expected=of["values_expected"]),
        "routing_accuracy": counting.recall(of["values_routed"], of["values_expected"]),
        "junk_rate": counting.share(of["junk"], of["extracted"]),
        "unexpected_rate": counting.share(of["extracted"] - of["matched"], of["extracted"]),
    }
    if of["stages"]:
        found["lifecycle_accuracy"] = of["stages_right"] / of["stages"]
    return found
