"""Ways to rank words, each tried alone: chosen on two conversations, checked on three others.

A small model of the lexical arm over LoCoMo's dated turns and observations: stems without English stop words, idf over
the conversation, the 200 best by how many words they share. `docmem eval recall` then measures what was chosen in the
real thing.

    python evals/recall_tries.py DIR
"""

from __future__ import annotations

import calendar
import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from docmem.lexemes import lexemes
from docmem_evals import conversations, ranking
from docmem_evals.conversations import Conversation, Session

CHOSEN_ON = ("conv-26", "conv-30")
_CANDIDATES = 200
_DEPTH = 30
_MONTHS = frozenset(month.lower() for month in calendar.month_name[1:])

Scores = dict[int, float]


@dataclass(frozen=True, slots=True)
class Text:
    """Something to find: its words, what it stands for, and where it was said."""

    words: tuple[str, ...]
    turns: tuple[str, ...]
    session: int
    date: str


@dataclass(frozen=True)
class Corpus:
    """The texts of one conversation, in the order they were said."""

    texts: Sequence[Text]

    @cached_property
    def weights(self) -> dict[str, float]:
        """The idf of each word."""
        common = Counter(word for text in self.texts for word in set(text.words))
        total = len(self.texts)
        return {word: math.log1p((total - found + 0.5) / (found + 0.5)) for word, found in common.items()}

    @cached_property
    def places(self) -> Mapping[str, list[int]]:
        """Where each word stands."""
        found: dict[str, list[int]] = defaultdict(list)
        for place, text in enumerate(self.texts):
            for word in dict.fromkeys(text.words):
                found[word].append(place)
        return found


Ranker = Callable[[Corpus, str], Scores]


def by_count(corpus: Corpus, question: str) -> Scores:
    """How many of the question's words stand in a text: what `ts_rank` comes to on short ones."""
    places = corpus.places
    return dict(Counter(place for word in set(lexemes(question, language="english")) for place in places.get(word, ())))


def by_rarity(corpus: Corpus, question: str) -> Scores:
    """The sum of the idf of the words shared, of the best by count."""
    counted = by_count(corpus, question)
    weights, scores = corpus.weights, dict.fromkeys(_best(counted, _CANDIDATES), 0.0)
    for word in set(lexemes(question, language="english")):
        for place in corpus.places.get(word, ()):
            if place in scores:
                scores[place] += weights[word]
    return scores


def neighbours(*shares: float) -> Ranker:
    """Texts next to each other in a session lend each other these shares of their strength."""

    def rank(corpus: Corpus, question: str) -> Scores:
        own = by_rarity(corpus, question)
        return {place: score + _lent(corpus, own, place, shares) for place, score in own.items()}

    return rank


def _lent(corpus: Corpus, own: Scores, place: int, shares: Sequence[float]) -> float:
    session = corpus.texts[place].session
    return sum(
        share * own.get(near, 0.0)
        for distance, share in enumerate(shares, start=1)
        for near in (place - distance, place + distance)
        if 0 <= near < len(corpus.texts) and corpus.texts[near].session == session
    )


def window(share: float) -> Ranker:
    """All texts of one session lend each other a share."""

    def rank(corpus: Corpus, question: str) -> Scores:
        own = by_rarity(corpus, question)
        total: dict[int, float] = defaultdict(float)
        for place, score in own.items():
            total[corpus.texts[place].session] += score
        return {place: (1 - share) * score + share * total[corpus.texts[place].session] for place, score in own.items()}

    return rank


def in_time(factor: float, ranker: Ranker) -> Ranker:
    """Texts of the month and year that a question names count more."""

    def rank(corpus: Corpus, question: str) -> Scores:
        asked = [
            word for word in re.findall(r"[a-z]+|\b20\d\d\b", question.lower()) if word in _MONTHS or word[0] == "2"
        ]
        scores = ranker(corpus, question)
        if not asked:
            return scores
        return {
            place: score * (factor if all(word in corpus.texts[place].date.lower() for word in asked) else 1.0)
            for place, score in scores.items()
        }

    return rank


def second_query(best: int, words: int, share: float, ranker: Ranker) -> Ranker:
    """Ask again with the rare words of the best texts (pseudo relevance feedback)."""

    def rank(corpus: Corpus, question: str) -> Scores:
        weights, scores = corpus.weights, ranker(corpus, question)
        asked = set(lexemes(question, language="english"))
        heard: dict[str, float] = defaultdict(float)
        for place in _best(scores, best):
            for word in set(corpus.texts[place].words) - asked:
                heard[word] += weights[word]
        added = {word for word, _ in sorted(heard.items(), key=lambda item: (-item[1], item[0]))[:words]}
        return {
            place: score + share * sum(weights[word] for word in added.intersection(corpus.texts[place].words))
            for place, score in scores.items()
        }

    return rank


def _best(scores: Scores, limit: int) -> list[int]:
    return sorted(scores, key=lambda place: (-scores[place], place))[:limit]


def turns(*, date: bool = True, speaker: bool = True) -> Callable[[Conversation], Corpus]:
    """Every turn as a text."""

    def of(conversation: Conversation) -> Corpus:
        return Corpus(
            [
                _text([session.date] * date + [turn.speaker or ""] * speaker + [turn.text], [turn.id], session)
                for session in conversation.sessions
                for turn in session.turns
            ]
        )

    return of


def memories(*, date: bool = True, people: bool = False) -> Callable[[Conversation], Corpus]:
    """Every observation as a text."""

    def of(conversation: Conversation) -> Corpus:
        said = {turn.id: turn.speaker or "" for session in conversation.sessions for turn in session.turns}
        return Corpus(
            [
                _text(
                    [session.date] * date + sorted({said[turn] for turn in one.turns}) * people + [one.text],
                    one.turns,
                    session,
                )
                for session in conversation.sessions
                for one in session.observations
            ]
        )

    return of


def _text(parts: Sequence[str], cited: Iterable[str], session: Session) -> Text:
    return Text(tuple(lexemes(". ".join(parts), language="english")), tuple(cited), session.number, session.date)


CHOSEN = neighbours(0.3, 0.2)
TRIES: Sequence[tuple[str, Callable[[Conversation], Corpus], Ranker]] = [
    ("turns: how many words are shared", turns(), by_count),
    ("turns: by how rare they are", turns(), by_rarity),
    ("+ neighbours .2", turns(), neighbours(0.2)),
    ("+ neighbours .3", turns(), neighbours(0.3)),
    ("**+ neighbours .3, .2**", turns(), CHOSEN),
    ("+ neighbours .5, .25", turns(), neighbours(0.5, 0.25)),
    ("+ neighbours .3, .2, .1", turns(), neighbours(0.3, 0.2, 0.1)),
    ("chosen, without date", turns(date=False), CHOSEN),
    ("chosen, without date and speaker", turns(date=False, speaker=False), CHOSEN),
    ("chosen, of the month asked for × 1.3", turns(), in_time(1.3, CHOSEN)),
    ("chosen, a second query of 5 words from the best 3", turns(), second_query(3, 5, 0.1, CHOSEN)),
    ("memories: how many words are shared", memories(), by_count),
    ("**memories: by how rare they are**", memories(), by_rarity),
    ("+ people", memories(people=True), by_rarity),
    ("without date", memories(date=False), by_rarity),
    ("+ neighbours of one window .05", memories(), window(0.05)),
]


def measure(loaded: Sequence[Conversation], corpus_of: Callable[[Conversation], Corpus], ranker: Ranker) -> list[float]:
    """recall@5, recall@10 and MRR over all questions of some conversations."""
    rows = []
    for conversation in loaded:
        corpus = corpus_of(conversation)
        for query in conversation.queries:
            found = [corpus.texts[place].turns for place in _best(ranker(corpus, query.text), _DEPTH)]
            rows.append(ranking.metrics(found, query.relevant))
    mean = ranking.mean(rows)
    return [mean["recall@5"], mean["recall@10"], mean["mrr"]]


def main(folder: Path) -> None:
    """Print the table."""
    loaded = conversations.load(folder)
    chosen = [one for one in loaded if one.name in CHOSEN_ON]
    others = [one for one in loaded if one.name not in CHOSEN_ON]
    print("| | recall@5 | recall@10 | mrr | recall@5 | recall@10 | mrr |\n|---|---|---|---|---|---|---|")
    for name, corpus_of, ranker in TRIES:
        figures = [*measure(chosen, corpus_of, ranker), *measure(others, corpus_of, ranker)]
        print(f"| {name} | " + " | ".join(f"{figure:.3f}"[1:] for figure in figures) + " |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
