"""Whether a model answers by the evidence it was given, and says that it doesn't know where there is none.

`exact`: an answer is right if one of the expected wordings stands in it and none of the forbidden ones does; "yes" and
"no" count where the answer begins with them ("There is no information" isn't a no). The agreed sentence is the only way
to abstain, and whoever says it and then claims something after all ("I don't know, but I think it's Bolt") doesn't.
`judge`: another model says so. A judge without an answer leaves a sample unscored, and that is not zero.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from docmem.names import normalized
from docmem_evals.counting import Counts, means
from docmem_evals.people import AnswerQuestion
from docmem_evals.samples import Judged
from docmem_evals.values import bare

UNKNOWN = "I don't know."
"""What a model is told to answer where the memory doesn't say."""

_LEAD = r"(?:(?:sorry|well|honestly|unfortunately|i'?m sorry|i'?m afraid|but|and|so|that|as|because|since)(?: |$))*"
_UNKNOWN = re.compile(rf"{_LEAD}i (?:do not|don'?t) know\b(?!.*\b(?:but|though|probably|maybe|perhaps|likely|guess)\b)")
_HEDGE = re.compile(
    _LEAD
    + r"(?:$|(?:the|your|my|this) (?:memory|memories|notes?|record)\b.*(?:\bnot\b|n't\b|\bno\b|\bnothing\b)"
    + r"|(?:it|this|that) (?:is|was)(?:n't| not) (?:said|mentioned|known|stated|recorded)"
    + r"|(?:there is|there's|i have|i see) (?:no|nothing)\b"
    + r"|nothing\b.*\b(?:said|known|mentioned|remembered|recorded)\b)"
)
"""What may stand beside the agreed sentence: it claims nothing."""
_PARTS = re.compile(r"[.!?;:\n,—–]+|\s-\s|\b(?=but\b|however\b|though\b)")
_VERDICTS = frozenset(["yes", "no", "ja", "nein", "sim", "nao", "ya", "tidak", "نعم", "لا", "是", "不"])
_AFTER = r"(?=\s*(?:$|[.,;:!—–،。,])|\s+(?:they|he|she|it|we|you|the|this|that)\b)"
"""What may follow a verdict: "No, they don't", "No they don't", and not "No information"."""
_MARKS = re.compile(r"[^\w%€$£¥]+")


def abstains(answer: str) -> bool:
    """Whether an answer is the agreed sentence, or says nothing."""
    parts = [part for each in _PARTS.split(answer.replace("’", "'").casefold()) if (part := normalized(each))]
    if not parts:
        return True
    unknown = [bool(_UNKNOWN.match(part)) for part in parts]
    return any(unknown) and all(is_so or _HEDGE.match(part) for is_so, part in zip(unknown, parts, strict=True))


def holds(answer: str, wording: str) -> bool:
    """Whether a wording stands in an answer: as whole words, but for case, marks and grouping of digits."""
    text, part = _plain(answer), _plain(wording)
    if not part:
        return False
    if part in _VERDICTS:
        return re.match(rf"\W*{part}{_AFTER}", bare(normalized(answer))) is not None
    if not part.isascii():  # a script without spaces has no word boundaries to look for
        return part in text
    return re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text) is not None


def _plain(text: str) -> str:
    ungrouped = re.sub(r"(?<=\d)[,.\u00a0\u202f ](?=\d{3}(?!\d))", "", bare(normalized(text)))
    return " ".join(_MARKS.sub(" ", ungrouped).split())


def is_right(question: AnswerQuestion, answer: str) -> bool:
    """Exact match."""
    if any(holds(answer, wording) for wording in question.never):
        return False
    if not question.answer:
        return abstains(answer)
    return any(holds(answer, wording) for wording in question.answer)


def score(question: AnswerQuestion, answer: str, *, right: bool) -> Judged:
    """A sample from a verdict."""
    evidence = bool(question.answer)
    expected = question.answer if evidence else (UNKNOWN,)
    counts: dict[str, float] = {"accuracy": float(right)}
    counts["answer_accuracy" if evidence else "abstention_accuracy"] = float(right)
    if evidence:
        counts["withheld_rate"] = float(not right and abstains(answer))
    problem = _problem(question, answer)
    return Judged(counts, tuple(expected), (answer.strip() or "(nothing)",), () if right else (problem,))


def _problem(question: AnswerQuestion, answer: str) -> str:
    forbidden = [wording for wording in question.never if holds(answer, wording)]
    if forbidden:
        return f"says {forbidden[0]!r}"
    if not question.answer:
        return "nothing is known of it, and it answered"
    return "the memory says, and it didn't use it" if abstains(answer) else "another answer than the memory gives"


def metrics(samples: Sequence[Counts]) -> dict[str, float]:
    """The share that is right, over the samples that were scored."""
    return means(samples)
