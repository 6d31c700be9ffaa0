"""`docmem eval extraction`: what a model proposes for a window, against what a careful person would keep.

The real prompt, cold: no memories but those a case names, nothing written. See scoring/extraction.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from docmem import llm, prompt
from docmem.config import Settings
from docmem.consolidation import Model
from docmem.errors import ModelReplyError
from docmem.model import Memory, Profile, Spent, Turn
from docmem.prompt import Request
from docmem_evals import dialogues, gates, matchers, runner
from docmem_evals.dialogues import Card, Case, Known
from docmem_evals.judge import NoVerdict
from docmem_evals.matching import Jaccard, Matcher
from docmem_evals.replies import Asking, digest
from docmem_evals.run import Header, Run
from docmem_evals.runner import Options
from docmem_evals.samples import Judged, Scored
from docmem_evals.scoring import extraction as scorer

_SUBJECT = "0" * 64


def run(
    settings: Settings,
    *,
    model: str | Model,
    folder: Path | None = None,
    matcher: Matcher | None = None,
    min_f1: float | None = None,
    max_junk: float | None = None,
    options: Options | None = None,
) -> Run:
    """Ask the model about each case of a folder (default: the shipped). Raises `InputError`, `ModelUnavailable`.

    A reply that could not be used counts as having found nothing.
    """
    loaded = dialogues.extractions(folder)
    asked = llm.model(model) if isinstance(model, str) else model
    how = options or Options()
    by = matcher or Jaccard()
    return runner.run(
        Header("extraction", asked.name, by.name, how.named(loaded.name)),
        how.chosen(loaded.cases),
        partial(_scored, model=asked, matcher=by, how=how),
        options=how,
        warnings=matchers.warnings(by, min_f1, max_junk),
        gates=gates.asked({"f1": min_f1}, {"junk_rate": max_junk}),
        prompt=prompt_hash,
        matcher=by,
    )


def prompt_hash(samples: Sequence[Scored]) -> str:
    """16 hex digits that change with any sample's instructions."""
    return digest("\n".join(sorted({sample.prompt for sample in samples})))


def _scored(case: Case, model: Model, matcher: Matcher, how: Options) -> Scored:
    asking = Asking(model, how.store_for(model.name), how.recording)
    wanted = request(case)
    unscored = None
    try:
        reply = asking.propose(wanted).parsed.reply
    except ModelReplyError as error:
        judged, spent = scorer.missed(case, error.message), error.spent
    else:
        spent = asking.answer.spent if asking.answer else Spent()
        try:
            judged = scorer.score(case, reply.operations, reply.profile, matcher)
        except NoVerdict as error:
            judged, unscored = Judged({}, got=tuple(each.text for each in reply.operations)), error.message
    return Scored(
        id=case.id,
        kind=case.kind,
        domain=case.domain,
        language=case.language,
        judged=judged,
        said=said(case.turns),
        unscored=unscored,
        cached=asking.cached,
        spent=spent,
        prompt=asking.key.prompt if asking.key else "",
        input=asking.key.input if asking.key else "",
    )


def said(turns: Sequence[Turn]) -> tuple[str, ...]:
    """The dialogue as lines for people."""
    return tuple(f"{turn.speaker or turn.role}: {turn.text}" for turn in turns)


def request(case: Case) -> Request:
    """The case as consolidation would put it to a model."""
    known = [memory_of(number, each) for number, each in enumerate(case.known, start=1)]
    return Request(
        thread=case.id,
        turns=case.turns,
        agent=case.agent,
        memories=prompt.handles(known),
        profile=profile_of(_SUBJECT, case.profile),
    )


def memory_of(number: int, known: Known) -> Memory:
    """A known memory as it would be shown."""
    return Memory(f"{number:016x}", known.kind, known.text, _SUBJECT, "", topic=known.topic, valid_from=known.at)


def profile_of(subject: str, card: Card) -> Profile:
    """A card as the profile it stands for."""
    return Profile(
        subject,
        preferred_language=card.preferred_language,
        locale=card.locale,
        lifecycle_stage=card.lifecycle_stage,
        attributes=card.attributes,
    )
