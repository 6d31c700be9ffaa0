"""Admission: the deterministic decision on what a model proposed. Pure.

`RULES` is the whole list: each rule has a code, what it does (reject or hold) and one small function. The first that
applies decides; rejecting rules come first, so that nothing reaches a reviewer that could never be kept. Then the
window is judged as a whole: too large a share of deletions, and half of a merge, are held.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, TypeAlias

from docmem import evidence, files, sensitive, unsaid
from docmem.errors import FormatError
from docmem.instructions import is_instruction
from docmem.layout import memory_path
from docmem.model import KINDS, TEXT_MAX, Kind, Memory, Source, Turn
from docmem.names import memory_id, normalized, proposal_hash, statement_hash
from docmem.reply import Operation
from docmem.tenant_config import Policies, Topic
from docmem.wording import likeness, may_be_one, overlap

Verdict: TypeAlias = Literal["admitted", "held", "rejected"]

QUOTE_MAX = 300
"""Characters of a quote that are kept."""
SUPERSEDED = 0.5
"""Share of a deleted statement's words that a new one must have to count as its successor."""

_HIGH_IMPACT = re.compile(
    r"payments?|billing|bank\w*|cards?|iban|medical|medication\w*|health|diagnos[ei]s|permissions?|access|"
    r"contacts?|phones?|emails?|passport\w*"
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """An operation as proposed. `target` is a memory id, or what the model gave for one; `names_tenant` see reply."""

    operation: Operation
    target: str | None = None
    names_tenant: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """What was said, about whom, and when it is judged. `agent` is None where what is learned is shared by all."""

    tenant: str
    subject: str
    thread: str
    turns: Sequence[Turn]
    now: datetime
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class State:
    """What is there already. `memories`: all of the subject's, by id. `topics`: what the agent declares, by name.

    `one`: pairs of texts, an older and a newer one, that an embedder confirmed to say one thing.
    `broken`: paths of files that don't parse, which are never rewritten. `elsewhere`: of the ids that are proposed,
    those that another subject of the tenant has. `deleted`: how many memories earlier windows took away since a person
    last changed anything here, within the policy's span.
    """

    memories: Mapping[str, Memory]
    topics: Mapping[str, Topic]
    policies: Policies
    secret: bytes
    reverted: frozenset[str] = frozenset()
    rejected: frozenset[str] = frozenset()
    one: frozenset[tuple[str, str]] = frozenset()
    broken: frozenset[str] = frozenset()
    elsewhere: frozenset[str] = frozenset()
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class Ruling:
    """The decision on one proposal. `code` says why it wasn't simply admitted.

    `before` and `after` are the memory it would change, as it is and as it would be (None: not there). Of a rejected
    repetition, `before` is the memory that says it already.
    """

    proposal: Proposal
    verdict: Verdict
    code: str | None = None
    before: Memory | None = None
    after: Memory | None = None

    @property
    def op(self) -> Literal["create", "update", "delete"]:
        """What it comes to: a proposed create may turn out to be an update."""
        if self.before is None:
            return "create"
        return "update" if self.after is not None else "delete"


@dataclass(frozen=True, slots=True)
class Case:
    """What a rule may look at: the window, and the state as the rulings before have left it.

    `touched`: ids of the memories those change. `said_again`: ids of those that the window only repeats. `gone`: what
    the memories say that the window proposes to delete.
    """

    window: Window
    state: State
    number: int = 0
    touched: frozenset[str] = frozenset()
    said_again: frozenset[str] = frozenset()
    gone: tuple[str, ...] = ()

    def visible(self) -> list[Memory]:
        """The memories that this agent may see and change: shared ones and its own."""
        return [each for each in self.state.memories.values() if each.agent in (None, self.window.agent)]

    def target(self, proposal: Proposal) -> Memory | None:
        """The memory an update or delete is about, if it is there and this agent's to change."""
        found = self.state.memories.get(proposal.target or "")
        return found if found is not None and found.agent in (None, self.window.agent) else None

    def evidence(self, proposal: Proposal) -> list[Turn]:
        """The cited turns that lie in this window."""
        cited = set(proposal.operation.evidence_turns)
        return [turn for turn in self.window.turns if turn.id in cited]


Applies: TypeAlias = Callable[[Proposal, Case], bool]


# ------------------------------------------------------------------------------------------------------- the rules


def names_tenant(proposal: Proposal, case: Case) -> bool:
    """The tenant comes from the repo alone."""
    return proposal.names_tenant


def is_over_the_cap(proposal: Proposal, case: Case) -> bool:
    """More operations than one window may do."""
    return case.number >= case.state.policies.admission.max_operations


def lacks_id(proposal: Proposal, case: Case) -> bool:
    """An update or delete of nothing. Never turned into a create."""
    return proposal.operation.op != "create" and not proposal.target


def has_foreign_id(proposal: Proposal, case: Case) -> bool:
    """A memory of another subject or another agent."""
    there = proposal.target in case.state.elsewhere or proposal.target in case.state.memories
    return proposal.operation.op != "create" and there and case.target(proposal) is None


def has_unknown_id(proposal: Proposal, case: Case) -> bool:
    """A handle that was never given out, or a memory that is gone."""
    is_gone_by_now = proposal.target in case.touched
    return proposal.operation.op != "create" and case.target(proposal) is None and not is_gone_by_now


def creates_with_id(proposal: Proposal, case: Case) -> bool:
    """A create that names a memory, one that exists or none: it can't be told what was meant."""
    return proposal.operation.op == "create" and bool(proposal.target)


def has_repeated_id(proposal: Proposal, case: Case) -> bool:
    """A second operation on one memory, one that an earlier operation has deleted included."""
    return proposal.operation.op != "create" and proposal.target in case.touched


def deletes_what_is_said_again(proposal: Proposal, case: Case) -> bool:
    """A delete of what the same window says again: the repetition was dropped because the memory is there."""
    return proposal.operation.op == "delete" and proposal.target in case.said_again


def has_wrong_size(proposal: Proposal, case: Case) -> bool:
    """Empty, or longer than a memory may be."""
    return _states(proposal) and not 1 <= len(_text(proposal)) <= TEXT_MAX


def has_unknown_kind(proposal: Proposal, case: Case) -> bool:
    """A kind that format 1 doesn't have."""
    return _states(proposal) and proposal.operation.kind not in KINDS


def has_undeclared_topic(proposal: Proposal, case: Case) -> bool:
    """A topic that the agent doesn't declare worth remembering."""
    return _states(proposal) and proposal.operation.topic not in case.state.topics


def has_bad_confidence(proposal: Proposal, case: Case) -> bool:
    """Confidence outside 0 to 1."""
    return not 0 <= proposal.operation.confidence <= 1


def has_bad_importance(proposal: Proposal, case: Case) -> bool:
    """Importance outside 1 to 10."""
    return _states(proposal) and not 1 <= proposal.operation.importance <= 10


def lacks_evidence(proposal: Proposal, case: Case) -> bool:
    """No turn cited at all."""
    return not proposal.operation.evidence_turns


def cites_unknown_turn(proposal: Proposal, case: Case) -> bool:
    """A cited turn that doesn't lie in this window."""
    return len(case.evidence(proposal)) < len(set(proposal.operation.evidence_turns))


def lacks_user_turn(proposal: Proposal, case: Case) -> bool:
    """What only the assistant, a tool or the system said is no evidence about the person."""
    return not _user_turns(proposal, case)


def rests_on_acknowledgement(proposal: Proposal, case: Case) -> bool:
    """ "ok thanks" says nothing, whatever was said before it."""
    return not evidence.heard(_user_turns(proposal, case))


def misquotes(proposal: Proposal, case: Case) -> bool:
    """The quote stands in none of the cited turns."""
    quote = _given_quote(proposal)
    return bool(quote) and not any(evidence.holds(turn, quote) for turn in _heard_turns(proposal, case))


def rests_on_others(proposal: Proposal, case: Case) -> bool:
    """The quote, or what the statement says, stands in the assistant's or a tool's turns and not in the user's."""
    quote = _given_quote(proposal)
    return (bool(quote) and not _is_quoted(proposal, case)) or _finding(proposal, case) == "said_by_others"


def rests_on_speculation(proposal: Proposal, case: Case) -> bool:
    """A statement as if it were settled, from nothing but "maybe" and "what if"."""
    operation = proposal.operation
    cited = case.evidence(proposal)
    return _states(proposal) and evidence.is_speculation(operation.text, cited=cited, quote=operation.quote)


def holds_secret(proposal: Proposal, case: Case) -> bool:
    """A password, key, token or connection string."""
    return bool(sensitive.secrets(_stored(proposal)))


def holds_card_number(proposal: Proposal, case: Case) -> bool:
    """A payment card's number."""
    return bool(sensitive.card_numbers(_stored(proposal)))


def breaks_pii_policy(proposal: Proposal, case: Case) -> bool:
    """Personal data of a kind that the policy refuses."""
    return case.state.policies.pii.strictest(_stored(proposal)) == "reject"


def was_rejected(proposal: Proposal, case: Case) -> bool:
    """A person turned this very proposal down in review."""
    if not case.state.rejected:
        return False
    target = case.target(proposal)
    text = _kept_text(proposal, case) if _states(proposal) else target.text if target is not None else ""
    mark = refusal_mark(case.state.secret, case.window.subject, text, deletes=None if _states(proposal) else target)
    return mark in case.state.rejected


def was_reverted(proposal: Proposal, case: Case) -> bool:
    """A person took this statement back before."""
    if not _states(proposal):
        return False
    return statement_hash(case.state.secret, case.window.subject, _kept_text(proposal, case)) in case.state.reverted


def is_order(proposal: Proposal, case: Case) -> bool:
    """Instruction-like, beyond the form and content of answers. A quote is data that a prompt never shows."""
    return _states(proposal) and is_instruction(_text(proposal))


def has_high_impact(proposal: Proposal, case: Case) -> bool:
    """A topic on payment, medical matters, permissions or contact details; personal data that the policy holds."""
    if case.state.policies.pii.strictest(_stored(proposal)) == "hold":
        return True
    target = case.target(proposal)
    topics = [proposal.operation.topic if _states(proposal) else "", (target.topic or "") if target else ""]
    return any(is_high_impact(topic) for topic in topics)


def has_low_confidence(proposal: Proposal, case: Case) -> bool:
    """Confidence below the policy's floor."""
    return proposal.operation.confidence < case.state.policies.admission.min_confidence


def lacks_support(proposal: Proposal, case: Case) -> bool:
    """Nothing of the statement can be found in the cited turns, and no quote of the user's is given.

    Nor does a quote bear out a name or number that nobody said, or the opposite. A deletion is borne out by speaking
    of what goes, or of forgetting; so is an update that leaves nothing of its memory.
    """
    target = case.target(proposal)
    if not _states(proposal):
        return not _is_asked_for(proposal, case)
    if target is not None and _replaces(target.text, _text(proposal)) and not _is_asked_for(proposal, case):
        return True
    return _finding(proposal, case) == "unsupported" or _brings_unsaid(proposal, case)


def waits_for_review(proposal: Proposal, case: Case) -> bool:
    """The policy `review: all` sends every change to a person."""
    return case.state.policies.review == "all"


@dataclass(frozen=True, slots=True)
class Rule:
    """A code, what it means for the operation, and when it applies."""

    code: str
    verdict: Literal["held", "rejected"]
    applies: Applies


RULES: tuple[Rule, ...] = (
    Rule("tenant_key", "rejected", names_tenant),
    Rule("too_many", "rejected", is_over_the_cap),
    Rule("missing_id", "rejected", lacks_id),
    Rule("foreign_id", "rejected", has_foreign_id),
    Rule("unknown_id", "rejected", has_unknown_id),
    Rule("unexpected_id", "rejected", creates_with_id),
    Rule("repeated_id", "rejected", has_repeated_id),
    Rule("contradiction", "rejected", deletes_what_is_said_again),
    Rule("size", "rejected", has_wrong_size),
    Rule("unknown_kind", "rejected", has_unknown_kind),
    Rule("undeclared_topic", "rejected", has_undeclared_topic),
    Rule("bad_confidence", "rejected", has_bad_confidence),
    Rule("bad_importance", "rejected", has_bad_importance),
    Rule("no_evidence", "rejected", lacks_evidence),
    Rule("unknown_turn", "rejected", cites_unknown_turn),
    Rule("no_user_turn", "rejected", lacks_user_turn),
    Rule("acknowledgement", "rejected", rests_on_acknowledgement),
    Rule("quote_not_found", "rejected", misquotes),
    Rule("said_by_others", "rejected", rests_on_others),
    Rule("speculation", "rejected", rests_on_speculation),
    Rule("secret", "rejected", holds_secret),
    Rule("card_number", "rejected", holds_card_number),
    Rule("pii", "rejected", breaks_pii_policy),
    Rule("rejected_before", "rejected", was_rejected),
    # `_outcome` adds: duplicate, unchanged, id_taken, format (all rejected).
    Rule("reverted_before", "held", was_reverted),
    Rule("instruction", "held", is_order),
    Rule("high_impact", "held", has_high_impact),
    Rule("low_confidence", "held", has_low_confidence),
    Rule("unsupported", "held", lacks_support),
    Rule("review_all", "held", waits_for_review),
    # `_judge_together` adds: delete_share, incomplete_merge (both held).
)
_ABOUT_DIALOGUE = frozenset(
    {
        "no_evidence", "unknown_turn", "no_user_turn", "acknowledgement", "quote_not_found", "said_by_others",
        "speculation", "unsupported",
    }
)  # fmt: skip
"""Codes of the rules that ask what was said; a memory that no window taught has nothing to answer them with."""
_REJECTING = tuple(rule for rule in RULES if rule.verdict == "rejected")
_HOLDING = tuple(rule for rule in RULES if rule.verdict == "held")

PERSON_PASSES = frozenset({"undeclared_topic", "rejected_before", *(rule.code for rule in _HOLDING)})
"""Codes that don't keep a person from approving a memory: what is left could never be kept."""


def is_high_impact(name: str) -> bool:
    """Whether a topic or attribute of this name is a matter of payment, health, permission or contact."""
    return any(_HIGH_IMPACT.fullmatch(word) for word in re.split(r"[^a-z]+", name.lower()))


def refusal_mark(secret: bytes, subject: str, text: str, *, deletes: Memory | None = None) -> str:
    """The hash under which a proposal that was turned down is remembered: of its statement, or of the deletion."""
    if deletes is not None:
        return proposal_hash(secret, subject, "delete", deletes.id, deletes.text)
    return statement_hash(secret, subject, text)


# ------------------------------------------------------------------------------------------------------- admission


def admit(proposals: Sequence[Proposal], window: Window, state: State) -> list[Ruling]:
    """Decide on each proposal, in order, then on the window as a whole. One ruling a proposal, in their order."""
    case = Case(window, state)
    targets = [case.target(each) for each in proposals if each.operation.op == "delete"]
    case = replace(case, gone=tuple(target.text for target in targets if target is not None))
    rulings = _in_order(proposals, case, {})
    judged = _judge_together(rulings, case)
    stays = {
        number: after.code
        for number, (before, after) in enumerate(zip(rulings, judged, strict=True))
        if _is_delete(before) and not _is_delete(after)
    }
    # What was said beside a deletion was judged as if it were done. Where it waits, the memory is still there, and
    # the same statement again would be its duplicate.
    return _judge_together(_in_order(proposals, case, stays), case) if stays else judged


def _in_order(proposals: Sequence[Proposal], case: Case, stays: Mapping[int, str | None]) -> list[Ruling]:
    """One ruling after the other. `stays`: the deletions that wait, by their number, and why."""
    rulings: list[Ruling] = []
    for number, proposal in enumerate(proposals):
        ruling = _decide(proposal, replace(case, number=number))
        if number in stays and _is_delete(ruling):
            ruling = replace(ruling, verdict="held", code=stays[number])
        rulings.append(ruling)
        case = _after(case, ruling)
    return rulings


def judge(
    memory: Memory, *, state: State, now: datetime, before: Memory | None = None, passes: Container[str] = frozenset()
) -> Ruling:
    """Decide on a memory that no window taught: one that an agent saves, or that a person approves.

    `before`: the memory it changes, None for a new one. It has to pass every rule that a model's proposal has to, but
    for those about what was said, and those whose codes are in `passes`. A topic it doesn't have needs no declaring.
    """
    memory = _without_personal_data(memory, state.policies)
    operation = Operation(
        op="update" if before is not None else "create",
        id=None,
        kind=memory.kind,
        topic=memory.topic or "",
        text=memory.text,
        confidence=1.0 if memory.confidence is None else memory.confidence,
        importance=memory.importance,
        evidence_turns=list(memory.source.turns),
        quote=memory.source.quote,
    )
    proposal = Proposal(operation, target=before.id if before is not None else None)
    case = Case(Window("", memory.subject, memory.source.thread or "", (), now, memory.agent), state)
    skipped = _ABOUT_DIALOGUE | ({"undeclared_topic"} if memory.topic is None else set())
    return _judged(
        proposal,
        case,
        lambda: _placed(memory, proposal, case) if before is None else _replacing(before, memory, proposal, case),
        skips=lambda code: code in skipped or code in passes,
    )


def judge_forgetting(memory: Memory, *, state: State, now: datetime) -> Ruling:
    """Decide on a memory that an agent forgets because it is told to: `review: all` alone stops it, or a refusal then.

    That a reviewer turned down what a conversation proposed is no bar to somebody who asks for it by its id.
    """
    operation = Operation(
        op="delete",
        id=None,
        kind=memory.kind,
        topic=memory.topic or "",
        text=memory.text,
        confidence=1.0,
        importance=memory.importance,
        evidence_turns=[],
        quote=None,
    )
    proposal = Proposal(operation, target=memory.id)
    case = Case(Window("", memory.subject, "", (), now, memory.agent), state)
    asked = {"rejected_before", "review_all"} if state.policies.review == "all" else set()
    return _judged(proposal, case, lambda: _outcome(proposal, case), skips=lambda code: code not in asked)


def _without_personal_data(memory: Memory, policies: Policies) -> Memory:
    """The memory without what the policy takes out."""
    text, quote = policies.pii.redacted(memory.text), policies.pii.redacted(memory.source.quote or "")
    if (text, quote) == (memory.text, memory.source.quote or ""):
        return memory
    # The file is named after the text: what is taken out of one is taken out of the other.
    path = memory.path if text == memory.text else memory_path(memory.subject, memory.id, text)
    return replace(memory, text=text, path=path, source=replace(memory.source, quote=quote or None))


def _decide(proposal: Proposal, case: Case) -> Ruling:
    return _judged(proposal, case, lambda: _outcome(proposal, case), skips=lambda code: False)


def _judged(proposal: Proposal, case: Case, outcome: Callable[[], Ruling], *, skips: Callable[[str], bool]) -> Ruling:
    for rule in _REJECTING:
        if not skips(rule.code) and rule.applies(proposal, case):
            return Ruling(proposal, "rejected", rule.code)
    ruling = outcome()
    if ruling.verdict == "rejected":
        return ruling
    for rule in _HOLDING:
        if not skips(rule.code) and rule.applies(proposal, case):
            return replace(ruling, verdict="held", code=rule.code)
    return ruling


def _after(case: Case, ruling: Ruling) -> Case:
    """The case for the next proposal: what is admitted or held is there to be a duplicate of."""
    if ruling.verdict == "rejected":
        repeated = {ruling.before.id} if ruling.before is not None else set()
        return replace(case, said_again=case.said_again | repeated)
    touched = {memory.id for memory in (ruling.before, ruling.after) if memory is not None}
    memories = dict(case.state.memories)
    if _is_delete(ruling) and ruling.before is not None:
        del memories[ruling.before.id]
    if ruling.after is not None:
        memories[ruling.after.id] = ruling.after
    return replace(case, state=replace(case.state, memories=memories), touched=case.touched | touched)


def _outcome(proposal: Proposal, case: Case) -> Ruling:
    """What the operation comes to, duplicates considered."""
    target = case.target(proposal)
    if proposal.operation.op == "delete":
        return Ruling(proposal, "admitted", before=target)
    if target is None:
        return _created(proposal, case)
    return _updated(proposal, target, case)


def _created(proposal: Proposal, case: Case) -> Ruling:
    return _placed(_memory(proposal, case), proposal, case)


def _placed(fresh: Memory, proposal: Proposal, case: Case) -> Ruling:
    """A new memory among those there are: itself, more about one of them, or nothing new."""
    taken = case.state.memories.get(fresh.id)
    if taken is not None:
        same = normalized(taken.text) == normalized(fresh.text)
        return Ruling(proposal, "rejected", "duplicate" if same else "id_taken", before=taken)
    if fresh.path in case.state.broken:
        return Ruling(proposal, "rejected", "id_taken")
    for there in case.visible():
        like = likeness(there.text, fresh.text)
        if like == "other" and (there.text, fresh.text) in case.state.one:
            like = "same"
        if like == "other" or _is_over(there, case.window.now):
            continue
        if there.id in case.touched or not (like == "more" or _has_lapsed(there, case)):
            return Ruling(proposal, "rejected", "duplicate", before=there)
        return _checked(Ruling(proposal, "admitted", before=there, after=_merged(there, fresh, restated=True)))
    return _checked(Ruling(proposal, "admitted", after=fresh))


def _updated(proposal: Proposal, target: Memory, case: Case) -> Ruling:
    fresh = _memory(proposal, case)
    like = likeness(target.text, fresh.text)
    if like == "same" and not _has_lapsed(target, case):
        return Ruling(proposal, "rejected", "unchanged", before=target)
    return _replacing(target, _merged(target, fresh, restated=like != "other"), proposal, case)


def _replacing(target: Memory, after: Memory, proposal: Proposal, case: Case) -> Ruling:
    for there in case.visible():
        if there.id != target.id and likeness(there.text, after.text) == "same":
            return Ruling(proposal, "rejected", "duplicate", before=there)
    return _checked(Ruling(proposal, "admitted", before=target, after=after))


def _memory(proposal: Proposal, case: Case) -> Memory:
    """The memory that a proposal describes, as if it were new."""
    operation, window = proposal.operation, case.window
    kind = _kind(proposal, case)
    cited = [turn.id for turn in case.evidence(proposal)]
    text = _kept_text(proposal, case)
    identity = memory_id(
        case.state.secret,
        tenant=window.tenant,
        subject=window.subject,
        thread=window.thread,
        evidence=cited,
        kind=kind,
        text=text,
    )
    return Memory(
        id=identity,
        kind=kind,
        text=text,
        subject=window.subject,
        path=memory_path(window.subject, identity, text),
        topic=operation.topic,
        agent=window.agent,
        confidence=round(float(operation.confidence), 3),
        importance=operation.importance,
        valid_from=min(files.newest(*(turn.at for turn in case.evidence(proposal))) or window.now, window.now),
        source=Source(thread=window.thread, turns=tuple(cited), quote=_quote(proposal, case)),
    )


def _kind(proposal: Proposal, case: Case) -> Kind:
    """The kind that the topic declares; where it declares none, the model's."""
    declared = case.state.topics[proposal.operation.topic].kind
    return declared if declared is not None else next(kind for kind in KINDS if kind == proposal.operation.kind)


def _merged(there: Memory, fresh: Memory, *, restated: bool) -> Memory:
    """`there` with the new statement. Saying a thing again never makes it surer."""
    surest = fresh.confidence if there.confidence is None else min(there.confidence, fresh.confidence or 0.0)
    return replace(
        there,
        text=fresh.text,
        kind=fresh.kind,
        topic=fresh.topic or there.topic,
        confidence=surest if restated else fresh.confidence,
        importance=there.importance if restated else fresh.importance,
        valid_from=files.newest(there.valid_from, fresh.valid_from) if restated else fresh.valid_from,
        source=fresh.source,
    )


def _is_over(memory: Memory, now: datetime) -> bool:
    """Whether its time has been ended on purpose: saying it again is a new memory."""
    return any(end is not None and end <= now for end in (memory.valid_until, memory.expires))


def _has_lapsed(memory: Memory, case: Case) -> bool:
    """Whether retention no longer serves it: saying it again brings it back."""
    limit = getattr(case.state.policies.retention, memory.kind)
    return limit is not None and memory.valid_from is not None and memory.valid_from + limit <= case.window.now


def _checked(ruling: Ruling) -> Ruling:
    """Refuse a text that would not read back as it was: conflict markers, a second head, stray control characters."""
    assert ruling.after is not None
    try:
        back = files.parse_memory(ruling.after.path, files.render_memory(ruling.after))
    except FormatError:
        return replace(ruling, verdict="rejected", code="format", before=None, after=None)
    if back.text != ruling.after.text or back.source != ruling.after.source or back.topic != ruling.after.topic:
        return replace(ruling, verdict="rejected", code="format", before=None, after=None)
    return ruling


# ------------------------------------------------------------------------------------------------ the whole window


def may_be_repeated(proposals: Sequence[Proposal], window: Window, state: State) -> frozenset[tuple[str, str]]:
    """Pairs (there, new) of statements that only an embedder can tell to be one: what `State.one` is asked for."""
    case = Case(window, state)
    fresh = [_kept_text(each, case) for each in proposals if each.operation.op == "create"]
    there = [each.text for each in case.visible()]
    return frozenset(
        (old, new) for number, new in enumerate(fresh) for old in (*there, *fresh[:number]) if may_be_one(old, new)
    )


def may_repeat(memory: Memory, state: State) -> frozenset[tuple[str, str]]:
    """The same for a memory that no window taught, before `judge` is asked about it."""
    new = _without_personal_data(memory, state.policies).text
    there = [each for each in state.memories.values() if each.agent in (None, memory.agent) and each.id != memory.id]
    return frozenset((each.text, new) for each in there if may_be_one(each.text, new))


def _judge_together(rulings: list[Ruling], case: Case) -> list[Ruling]:
    return _with_supersedes(_without_half_merges(_within_delete_share(rulings, case)))


def _within_delete_share(rulings: list[Ruling], case: Case) -> list[Ruling]:
    """Hold the deletions where, with those of earlier windows, they are more of the memories than policy allows.

    A conversation in many small windows takes no more away than one in a large one. One deletion alone is never too
    many, and may be the only memory's: the person asks for it (else it is `unsupported`). An update to something else
    altogether takes a memory away as well.
    """
    state = case.state
    fresh = [ruling for ruling in rulings if _takes_away(ruling)]
    deletes = len(fresh) + state.deleted
    allowed = state.policies.admission.delete_share * (len(state.memories) + state.deleted)
    if not fresh or deletes <= allowed or deletes == 1:
        return rulings
    return [replace(each, verdict="held", code="delete_share") if _takes_away(each) else each for each in rulings]


def _without_half_merges(rulings: list[Ruling]) -> list[Ruling]:
    """Hold the deletions of a window that lost a create or update: they may be the halves of one merge."""
    lost = any(
        ruling.proposal.operation.op != "delete"
        and (
            ruling.verdict == "held" or (ruling.verdict == "rejected" and ruling.code not in {"duplicate", "unchanged"})
        )
        for ruling in rulings
    )
    if not lost:
        return rulings
    return [replace(each, verdict="held", code="incomplete_merge") if _is_delete(each) else each for each in rulings]


def _is_lost(ruling: Ruling) -> bool:
    """Whether a statement won't be in the repo after this window."""
    stands = ruling.verdict == "admitted" or (ruling.verdict == "rejected" and ruling.before is not None)
    return _states(ruling.proposal) and not stands


def _with_supersedes(rulings: list[Ruling]) -> list[Ruling]:
    """Note on a new memory which deleted ones it takes the place of."""
    gone = [each.before for each in rulings if _is_delete(each) and each.before is not None]
    return [_superseding(each, gone) for each in rulings]


def _superseding(ruling: Ruling, gone: Sequence[Memory]) -> Ruling:
    if ruling.verdict != "admitted" or ruling.op != "create" or ruling.after is None:
        return ruling
    after = ruling.after
    replaced = tuple(each.id for each in gone if overlap(each.text, after.text) >= SUPERSEDED)
    return replace(ruling, after=replace(after, supersedes=replaced)) if replaced else ruling


def _replaces(before: str, after: str) -> bool:
    """Whether nothing of a statement is left in the one that takes its place, so that it is as good as deleted."""
    return overlap(before, after) == 0 and overlap(after, before) == 0 and not evidence.speaks_of_same(before, after)


def _takes_away(ruling: Ruling) -> bool:
    """Whether a memory is deleted, or updated to something else altogether."""
    if ruling.verdict != "admitted" or ruling.before is None:
        return False
    return ruling.after is None or _replaces(ruling.before.text, ruling.after.text)


def _is_delete(ruling: Ruling) -> bool:
    return ruling.verdict == "admitted" and ruling.op == "delete"


def counted(rulings: Sequence[Ruling], verdict: Verdict) -> dict[str, int]:
    """How many proposals got this verdict, by code."""
    return dict(sorted(Counter(each.code or "" for each in rulings if each.verdict == verdict).items()))


# --------------------------------------------------------------------------------------------------------- reading


def _states(proposal: Proposal) -> bool:
    return proposal.operation.op != "delete"


def _text(proposal: Proposal) -> str:
    return proposal.operation.text.replace("\r\n", "\n").replace("\r", "\n").strip()


def _kept_text(proposal: Proposal, case: Case) -> str:
    """The text without what the policy on personal data takes out."""
    return case.state.policies.pii.redacted(_text(proposal))


def _stored(proposal: Proposal) -> str:
    """All of the proposal that would reach the file."""
    return f"{proposal.operation.text}\n{proposal.operation.quote or ''}" if _states(proposal) else ""


def _user_turns(proposal: Proposal, case: Case) -> list[Turn]:
    return [turn for turn in case.evidence(proposal) if turn.role == "user"]


def _given_quote(proposal: Proposal) -> str:
    return (proposal.operation.quote or "").strip()


def _confirmed(proposal: Proposal, case: Case) -> list[Turn]:
    """What of the assistant's turns the cited ones of the user's confirm."""
    text = _text(proposal) if _states(proposal) else ""
    found = [evidence.confirmed(text, turn, case.window.turns) for turn in _user_turns(proposal, case)]
    return [turn for turn in found if turn is not None]


def _heard_turns(proposal: Proposal, case: Case) -> list[Turn]:
    """The cited turns, and what cited ones of the user's confirm."""
    return [*case.evidence(proposal), *_confirmed(proposal, case)]


def _is_quoted(proposal: Proposal, case: Case) -> bool:
    """Whether the quote stands in a cited turn of the user's, or in what it confirms."""
    heard = [*_user_turns(proposal, case), *_confirmed(proposal, case)]
    return any(evidence.holds(turn, _given_quote(proposal)) for turn in heard)


def _is_asked_for(proposal: Proposal, case: Case) -> bool:
    """Whether the user is quoted for a deletion, or the cited turns speak of what would go, or of forgetting."""
    said, quote, target = _user_turns(proposal, case), _given_quote(proposal), case.target(proposal)
    about = target is not None and evidence.speaks_of(target.text, said)
    return about or (bool(quote) and _is_quoted(proposal, case)) or evidence.asks_to_forget(said)


def _finding(proposal: Proposal, case: Case) -> evidence.Finding:
    """What the window says of the statement. A deletion states nothing."""
    if not _states(proposal):
        return "borne_out"
    quote = _given_quote(proposal)
    target = case.target(proposal)
    return evidence.of_statement(
        _text(proposal),
        cited=case.evidence(proposal),
        window=case.window.turns,
        known=[*([target.text] if target is not None else []), *case.gone],
        quoted=bool(quote) and not evidence.acknowledges(quote) and _is_quoted(proposal, case),
    )


def _brings_unsaid(proposal: Proposal, case: Case) -> bool:
    """Whether the statement has a name that neither the turns nor a memory of the person have, a number, a "not"."""
    target = case.target(proposal)
    found = unsaid.of_statement(
        _text(proposal),
        cited=case.evidence(proposal),
        window=case.window.turns,
        known=[*([target.text] if target is not None else []), *case.gone],
    )
    if not found or found.numbers or found.is_turned:
        return bool(found)
    known = "\n".join(each.text for each in case.visible()).casefold()
    return any(name.casefold() not in known for name in found.names)


def _quote(proposal: Proposal, case: Case) -> str | None:
    """The quote as it is kept: one line, cut at a word, so that it still occurs in its turn."""
    quote = " ".join((proposal.operation.quote or "").split())
    if len(quote) > QUOTE_MAX:
        quote = quote[:QUOTE_MAX].rsplit(" ", 1)[0]
    return case.state.policies.pii.redacted(quote) or None
