"""Whether a model answers by the evidence it was given, and says that it doesn't know where there is none.

`exact`: an answer is right if one of the expected wordings stands in it and none of the forbidden ones does; the agreed
sentence is the only way to abstain. `judge`: another model says so. A judge without an answer leaves a sample
unscored, and that is not zero.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from docmem.names import normalized
from docmem_evals.counting import Counts, means
from docmem_evals.people import AnswerQuestion
from docmem_evals.samples import Judged

UNKNOWN = "I don't know."
"""What a model is told to answer where the memory doesn't say."""

_UNKNOWN = re.compile(r"\bi (?:do not|don'?t) know\b")
_MARKS = re.compile(r"[^\w%€$£¥]+")


def abstains(answer: str) -> bool:
    """Whether an answer is the agreed sentence, or says nothing."""
    plain = normalized(answer.replace("’", "'"))
    return not plain or bool(_UNKNOWN.search(plain))


def holds(answer: str, wording: str) -> bool:
    """Whether a wording stands in an answer: as whole words, but for case, marks and grouping of digits."""
    text, part = _plain(answer), _plain(wording)
    if not part:
        return False
    if not part.isascii():  # a script without spaces has no word boundaries to look for
        return part in text
    return re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text) is not None


def _plain(text: str) -> str:
    ungrouped = re.sub(r"(?<=\d)[,.\u00a0\u202f ](?=\d{3}(?!\d))", "", normalized(text))
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
