"""Models for evaluations: one that replies with what a case expects, and ones that are wrong in one way each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from docmem.errors import ModelReplyError
from docmem.prompt import Request
from docmem.reply import Answer, from_value
from docmem_evals import dialogues
from docmem_evals.dialogues import Card, Case, MergeCase, Wordings
from tests.support.windows import operation, reply

Reply = dict[str, Any]


@cache
def shipped() -> dict[str, Case | MergeCase]:
    """The shipped cases by id."""
    every: list[Case | MergeCase] = [*dialogues.extractions().cases, *dialogues.merges().cases]
    return {case.id: case for case in every}


def case_of(name: str) -> Case | MergeCase:
    """The shipped case of this id."""
    return shipped()[name]


def careful(request: Request) -> Reply:
    """What a careful person would reply."""
    case = case_of(request.thread)
    if isinstance(case, Case):
        return _with(case.expected.profile, [_create(request, wording) for wording in case.expected.memories])
    handles = {memory.text: handle for handle, memory in request.memories.items()}
    known = [handles[memory.text] for memory in case.known]
    made = [_create(request, wording) for wording in case.creates]
    made += [_change(request, "update", known[n], wordings[0]) for n, wordings in case.updates.items()]
    made += [_change(request, "delete", known[n], "") for n in case.deletes]
    return _with(case.card, made)


def inventing(request: Request) -> Reply:
    """The same, and in each window a statement that nobody made."""
    wanted = careful(request)
    wanted["operations"].append(_create(request, ("The person keeps seven grey parrots in a shed.",)))
    return wanted


def duplicating(request: Request) -> Reply:
    """The same, and what is known already once more, put a little differently."""
    wanted = careful(request)
    case = case_of(request.thread)
    unchanged = [
        n for n in range(len(case.known)) if isinstance(case, MergeCase) and n not in {*case.updates, *case.deletes}
    ]
    again = [(f"Still true: {case.known[n].text}",) for n in unchanged]
    wanted["operations"] += [_create(request, wording) for wording in again]
    return wanted


def merging(request: Request) -> Reply:
    """Folds each new statement, and what the window says anyway, into the first memory that it isn't about."""
    wanted = careful(request)
    taken = {each["id"] for each in wanted["operations"]}
    handle, memory = next((h, m) for h, m in request.memories.items() if h not in taken)
    others = [m.text for h, m in request.memories.items() if h != handle]
    new = [each["text"] for each in wanted["operations"] if each["op"] == "create"]
    wanted["operations"] = [each for each in wanted["operations"] if each["op"] != "create"]
    text = " ".join([memory.text, *new, *others])
    wanted["operations"].append(_change(request, "update", handle, text))
    return wanted


def nothing(request: Request) -> Reply:
    """Keeps nothing."""
    return reply()


@dataclass
class Scripted:
    """A model that replies by a function."""

    by: Callable[[Request], Reply]
    name: str = "scripted"
    asked: list[str] = field(default_factory=list)

    def propose(self, request: Request) -> Answer:
        """The function's reply."""
        self.asked.append(request.thread)
        return Answer(from_value(self.by(request)), tokens_in=100, tokens_out=20, cost=0.001)


@dataclass
class Fails:
    """A model without a usable reply."""

    name: str = "fails"

    def propose(self, request: Request) -> Answer:
        """Raise."""
        raise ModelReplyError("no JSON")


def _with(card: Card, made: Sequence[Mapping[str, Any]]) -> Reply:
    core = {name: getattr(card, name) for name in ("preferred_language", "locale", "lifecycle_stage")}
    return reply(*made, attributes=card.attributes, **core)


def _create(request: Request, wordings: Wordings) -> Reply:
    return _change(request, "create", None, wordings[0])


def _change(request: Request, op: str, handle: str | None, text: str) -> Reply:
    topic = request.agent.topics[0]
    cited = [turn.id for turn in request.turns if turn.role == "user"]
    kind = topic.kind or "fact"
    return operation(text, op=op, id=handle, topic=topic.name, kind=kind, evidence_turns=cited)
