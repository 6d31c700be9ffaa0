"""What became of known memories and a new window, against what a careful person would have made of them.

What is judged is what stands afterwards: a duplicate that admission turned away was never written.

- A *duplicate* is a new memory that says what another one says already: one that stands, one that should have been
  updated to it, or another new one.
- A *wrong merge* is a memory that lost what it said or was given what isn't its own: one that was changed where nothing
  was to change (other words for the same are no change), an update whose text lacks what was expected, has another
  number or still says what it was to replace, an update that took in a fact which should have become a memory, a
  deletion that nobody wanted and no new memory makes up for.
- *Operation economy* of a case: the fewest operations that would do / those that were done, at most 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from docmem.wording import content_words
from docmem_evals import counting
from docmem_evals.agreement import lacks
from docmem_evals.counting import Counts, total
from docmem_evals.dialogues import MergeCase, Wordings
from docmem_evals.judge import Judge
from docmem_evals.matching import Matcher, contained, pairs, says, tokens
from docmem_evals.samples import Judged
from docmem_evals.scoring.extraction import shown, stage_counts
from docmem_evals.values import any_value

_PART = re.compile(r"(?<=[.;!?])\s+|[,,。;]\s*(?!\d)|\s+(?:and|but|und|aber|e|mas|dan|tetapi)\s+")
"""Between two parts of a statement that may each say something."""

TAKEN_IN = 0.5
"""Share of a new fact's own words that an update must have gained to count as having taken it in."""


@dataclass(frozen=True)
class Outcome:
    """What stands afterwards. `kept`: position of a known memory to its text, None where it is gone."""

    kept: Mapping[int, str | None]
    created: tuple[str, ...] = ()
    profile: Mapping[str, str] = field(default_factory=dict)


@dataclass
class _Reading:
    """A case and its outcome, read once."""

    case: MergeCase
    outcome: Outcome
    matcher: Matcher

    def __post_init__(self) -> None:
        known = [memory.text for memory in self.case.known]
        kept = self.outcome.kept
        self.known = known
        self.updated = {n: text for n, was in enumerate(known) if (text := kept.get(n)) is not None and text != was}
        self.deleted = {n for n in range(len(known)) if kept.get(n) is None}
        claimed = pairs(self.case.creates, self.outcome.created, self.matcher)
        self.claimed = claimed
        self.loose = [n for n in range(len(self.outcome.created)) if n not in claimed.values()]
        self.replaced = self._replaced()
        rest = [n for n in self.loose if n not in self.replaced.values()]
        spare = pairs(self.case.optional, [self.outcome.created[n] for n in rest], self.matcher)
        self.spare = {rest[n] for n in spare.values()}
        self.loose = [n for n in self.loose if n not in self.spare]
        turned = {n for n, text in self.updated.items() if any(self._says(each, text) for each in self.case.optional)}
        self.gone = self.deleted | (turned & self.case.deletes)

    def _replaced(self) -> dict[int, int]:
        """Memory that should have been updated, and is gone, to the new one that says what it should have become."""
        found: dict[int, int] = {}
        for number in sorted(self.deleted & self.case.updates.keys()):
            free = (n for n in self.loose if n not in found.values())
            new = next((n for n in free if self._says(self.case.updates[number], self.outcome.created[n])), None)
            if new is not None:
                found[number] = new
        return found

    def _says(self, wordings: Wordings, text: str) -> bool:
        return says(wordings, text, self.matcher)

    def right_updates(self) -> set[int]:
        done = {
            number
            for number, wanted in self.case.updates.items()
            if number in self.updated and self._became(number, wanted) and not self._took_in(number)
        }
        return done | self.replaced.keys()

    def wrong_merges(self) -> list[str]:
        right = self.right_updates() | self.gone
        found = [
            f"wrong merge: {self.known[number]} → {text}"
            for number, text in self.updated.items()
            if number not in right and (self._took_in(number) or not self._is_as_before(number))
        ]
        lost = self.deleted - self.case.deletes - self.replaced.keys()
        return found + [f"lost: {self.known[number]}" for number in sorted(lost)]

    def _became(self, number: int, wanted: Wordings) -> bool:
        """Whether an update says all of what was expected, and nothing that it should have replaced."""
        text = self.updated[number]
        # A judge has read both; words and vectors overlook a figure or a name that is gone.
        judged = isinstance(self.matcher, Judge)
        found = any(self.matcher.same(each, text) and (judged or not lacks(text, each)) for each in wanted)
        return found and not self._still_says(number, wanted)

    def _still_says(self, number: int, wanted: Wordings) -> bool:
        """Whether a part of an update says what was known before, where that was to go: "It is 8. It is 17."."""
        parts = [part for part in _PART.split(self.updated[number]) if part.strip()]
        return len(parts) > 1 and any(
            self.matcher.same(self.known[number], part)
            and not any(contained(part, each) == 1 or self.matcher.same(each, part) for each in wanted)
            for part in parts
        )

    def _is_as_before(self, number: int) -> bool:
        """Whether a memory says what it said, in both directions: nothing lost, nothing added, nothing turned round."""
        was, text = self.known[number], self.updated[number]
        if not (self.matcher.same(was, text) and self.matcher.same(text, was)):
            return False
        return isinstance(self.matcher, Judge) or set(content_words(was)) == set(content_words(text))

    def _took_in(self, number: int) -> bool:
        """Whether an update gained most of a fact that should have become a memory of its own, or is another's."""
        gained = tokens(self.updated[number]) - tokens(self.known[number])
        own = {word for wording in self.case.updates.get(number, ()) for word in tokens(wording)}
        others = [self.known[n] for n in range(len(self.known)) if n != number]
        foreign = [wording for wordings in self.case.creates for wording in wordings] + others
        for text in foreign:
            words = tokens(text) - tokens(self.known[number]) - own
            if len(words) > 1 and len(words & gained) >= TAKEN_IN * len(words):
                return True
        return False

    def duplicates(self) -> list[str]:
        found, standing = [], [text for n, text in enumerate(self.known) if n not in self.deleted]
        standing += [*self.updated.values(), *(text for texts in self.case.updates.values() for text in texts)]
        standing += [self.outcome.created[n] for n in self.claimed.values()]
        for number in self.loose:
            text = self.outcome.created[number]
            if number in self.replaced.values():
                continue
            if any(self.matcher.same(there, text) for there in standing):
                found.append(text)
            standing.append(text)
        return found

    def operations(self) -> int:
        return len(self.updated) + len(self.deleted) + len(self.outcome.created) - len(self.spare)

    def needed(self) -> int:
        return len(self.case.creates) + len(self.case.updates) + len(self.case.deletes)


def score(case: MergeCase, outcome: Outcome, matcher: Matcher) -> Judged:
    """Judge what became of a case."""
    read = _Reading(case, outcome, matcher)
    updates, wrong, duplicates = read.right_updates(), read.wrong_merges(), read.duplicates()
    made, needed = read.operations(), read.needed()
    wanted = case.card.values
    values_right = {key for key in wanted if any_value(case.card.accepted(key), outcome.profile.get(key, ""))}
    problems = [
        *(f"missed: {case.creates[n][0]}" for n in range(len(case.creates)) if n not in read.claimed),
        *(f"not updated: {read.known[n]}" for n in sorted(case.updates.keys() - updates)),
        *(f"not deleted: {read.known[n]}" for n in sorted(case.deletes - read.gone)),
        *(f"duplicate: {text}" for text in duplicates),
        *wrong,
        *_extra(read, duplicates),
        *(f"profile: {key} is not {wanted[key]}" for key in wanted if key not in values_right),
    ]
    return Judged(
        counts={
            "new_right": len(read.claimed),
            "new_made": len(outcome.created) - len(read.replaced) - len(read.spare) - len(duplicates),
            "new_expected": len(case.creates),
            "updates_right": len(updates),
            "updates_expected": len(case.updates),
            "deletes_right": len(case.deletes & read.gone),
            "deletes_expected": len(case.deletes),
            "duplicates": len(duplicates),
            "creates": len(outcome.created) - len(read.spare),
            "wrong_merges": len(wrong),
            "merges": len(read.updated) + len(read.deleted),
            "economy": _economy(needed, made),
            "cases": 1,
            "values_right": len(values_right),
            "values_expected": len(wanted),
            "no_ops": int(needed == 0),
            "no_ops_right": int(needed == 0 and made == 0),
            **stage_counts(case.card, outcome.profile.get("lifecycle_stage")),
        },
        expected=shown(_expected(case), wanted),
        got=shown(_got(read), dict(outcome.profile)),
        problems=tuple(problems),
    )


def _economy(needed: int, made: int) -> float:
    return 1.0 if made <= needed else needed / made


def _extra(read: _Reading, duplicates: Sequence[str]) -> list[str]:
    known = {*read.claimed.values(), *read.replaced.values(), *read.spare}
    texts = [text for n, text in enumerate(read.outcome.created) if n not in known]
    return [f"not expected: {text}" for text in texts if text not in duplicates]


def _expected(case: MergeCase) -> tuple[str, ...]:
    lines = [f"create: {wordings[0]}" for wordings in case.creates]
    lines += [f"update: {case.known[n].text} → {wordings[0]}" for n, wordings in sorted(case.updates.items())]
    lines += [f"delete: {case.known[n].text}" for n in sorted(case.deletes)]
    return tuple(lines or ["nothing to do"])


def _got(read: _Reading) -> tuple[str, ...]:
    lines = [f"create: {text}" for text in read.outcome.created]
    lines += [f"update: {read.known[n]} → {text}" for n, text in sorted(read.updated.items())]
    lines += [f"delete: {read.known[n]}" for n in sorted(read.deleted)]
    return tuple(lines or ["nothing done"])


def metrics(samples: Sequence[Counts]) -> dict[str, float]:
    """The metrics of some cases together, and the value they come to."""
    of = total(samples)
    new_f1 = counting.f1(of["new_right"], extracted=of["new_made"], expected=of["new_expected"])
    update_recall = counting.recall(of["updates_right"], of["updates_expected"])
    delete_recall = counting.recall(of["deletes_right"], of["deletes_expected"])
    duplicate_rate = counting.share(of["duplicates"], of["creates"])
    reconciliation = (new_f1 + update_recall + delete_recall) / 3
    economy = counting.precision(of["economy"], of["cases"])
    parts = [reconciliation, economy]
    found = {
        "new_f1": new_f1,
        "update_recall": update_recall,
        "delete_recall": delete_recall,
        "reconciliation": reconciliation,
        "duplicate_rate": duplicate_rate,
        "wrong_merge_rate": counting.share(of["wrong_merges"], of["merges"]),
        "op_economy": economy,
        "no_op_accuracy": counting.recall(of["no_ops_right"], of["no_ops"]),
        "attribute_recall": counting.recall(of["values_right"], of["values_expected"]),
    }
    if of["stages"]:
        found["lifecycle_accuracy"] = of["stages_right"] / of["stages"]
        parts.append(found["lifecycle_accuracy"])
    return {**found, "value": max(0.0, math.fsum(parts) / len(parts) * (1 - duplicate_rate))}
