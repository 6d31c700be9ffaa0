"""Recall: which memories and documents answer a question. Filters first, then two arms, fused; then judged.

Ranking is pure. Two rules keep it honest. An arm that ran and found nothing related gives nothing: recency serves
only where no search could run, and never a goal, since one without a word of content ("And then?") is about nothing
here. And relevance decides who is in. Reciprocal ranks lie close together (rank 30 still has two thirds of rank 1):
weighed against them as they are, recency puts five fresh memories before the right ones (LoCoMo, recall@5 over
memories: .546 by relevance, .345 so). A packet therefore weighs places among the twice `limit` most relevant (.537);
`search` asks for relevance alone.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby, repeat
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from docmem.codes import Thing, amounts_in, forms_of, is_year, others_in, says_year, things, words_apart
from docmem.config import Settings
from docmem.document import scrub
from docmem.embedding import Embedder, QueryVector, QueryVectors, is_resized
from docmem.errors import InputError, NotFound
from docmem.fence import clean
from docmem.index import (
    READING,
    Ask,
    Found,
    Frequencies,
    Index,
    Memory,
    Read,
    Reader,
    Scope,
    near,
    nearest,
    nearing,
    searching,
)  # fmt: skip
from docmem.layout import FOLDERS
from docmem.model import KINDS, Kind
from docmem.names import agent_name, subject_key
from docmem.packet import DAY, FAILED, WORKED, recency, verdict
from docmem.serving import RETENTION, Budgets, Weights, served

ARM = 30
"""Candidates of one arm."""

KNOWLEDGE = tuple(folder for folder in FOLDERS if folder not in {"steering", "conventions"})
"""Folders whose documents are found by what they say; the other two are always shown."""

_QUESTION_CHARS = 4_000
_TOPICS, _TOPIC_CHARS = 100, 200
_WHOLE = 750
"""Characters that each chunk of a document has at least, but for its last (sync cuts them so)."""
_EVERYWHERE = 0.4
"""Share of a subject's memories above which a word in them tells none from another."""
_ALIKE = 1e-9
"""Two strengths that differ by less, in the order of adding up, are one."""
_FEW = 8
"""Memories below which that can't be said."""
_IN_FRONT = 0.75
_NAME_IN_FRONT, _VERB_IN_FRONT = 2, 3
_LETTERS = re.compile(r"[^\W\d_]+")
_ACCENTS = re.compile("[\u0300-\u036f]")
_ABOUT = re.compile(
    r"(?i)(?<!\w)(?:for|in|to|at|from|about|near|around|on|für|über|nach|von|aus|bei|um|à|pour|en|sur|vers|de|para|por"
    r"|a|em|no|na|do|da|sobre|per|su|voor|over|naar|van|в|на|о|про|для|из) ([^\W\d_]+)"
)
_PIECE = re.compile("[\u0e01-\u0ece\u1000-\u103f\u1780-\u17d3]{2,3}")
"""A piece of Thai, Lao, Burmese or Khmer, as the index has them."""
_DIGIT = re.compile("[0-9]")
_SETTLED = {WORKED: 1.0, FAILED: 0.5}
"""Shares of the weight of a verdict: what worked is worth repeating, what failed is worth knowing."""
_SEARCH_SECONDS = 30.0


_NOTHING: frozenset[str] = frozenset()


class Hit(NamedTuple):
    """Something found. `relevance` is 0 to 1, 1 for the best of its search; `age` in seconds.

    `matched` of the question's lexemes stand in it (None: the lexical arm didn't find it); `cosine` is the vector
    arm's. `verdict` is what an experiment's head says came of it. The ranks are those in each arm, from 1. `starts`,
    `ends`: its text is the first, the last of its file. `strength` is the lexical arm's, `recency` 1 for now and half
    of it each half-life. `place` is what relevance counted as in `score`, 1 for the most relevant, where it was judged.
    """

    id: str
    path: str
    revision: str
    kind: str
    text: str
    age: float
    since: datetime | None = None
    subject: str | None = None
    thread: str | None = None
    turns: tuple[str, ...] = ()
    importance: int = 5
    chunk: int = 0
    shared: frozenset[str] = frozenset()
    matched: int | None = None
    strength: float | None = None
    cosine: float | None = None
    verdict: str | None = None
    starts: bool = True
    ends: bool = True
    relevance: float = 0.0
    score: float = 0.0
    lexical_rank: int | None = None
    vector_rank: int | None = None
    place: float | None = None
    recency: float | None = None

    @property
    def key(self) -> tuple[str, int]:
        """Tells it from all others of its tenant."""
        return self.path, self.chunk

    def as_json(self) -> dict[str, Any]:
        """One of the hits of `search --json`."""
        return {
            "id": self.id,
            "path": self.path,
            "kind": self.kind,
            "subject": self.subject,
            "text": self.text,
            "score": round(self.score, 6),
            "source": {"thread": self.thread, "turns": list(self.turns)},
            "revision": self.revision,
            "signals": {
                "relevance": round(self.relevance, 6),
                "lexical_rank": self.lexical_rank,
                "matched": self.matched,
                "words": sorted(self.shared),
                "strength": _rounded(self.strength),
                "vector_rank": self.vector_rank,
                "cosine": None if self.cosine is None else round(self.cosine, 4),
                "age_days": round(self.age / DAY, 2),
                "recency": _rounded(self.recency),
                "importance": self.importance,
                "verdict": self.verdict,
            },
        }


_ARM, _FOUND = Hit._fields.index("shared"), Hit._fields.index("relevance")
"""Where in a hit what it is ends, and what an arm found: up to there it is taken over as it is. `_replace` goes through
all names, and took three times as long, forty times a turn."""


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found, best first. `degraded` says which part of it could not run (None: all ran)."""

    degraded: str | None = None
    hits: tuple[Hit, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The shape of `search --json`."""
        return {"degraded": self.degraded, "hits": [hit.as_json() for hit in self.hits]}


@dataclass(frozen=True, slots=True)
class Policies:
    """What a tenant's `docmem.yaml` says about serving, as the index holds it. `documents`: it has some."""

    revision: str
    language: str = "simple"
    other_languages: tuple[str, ...] = ()
    retention: Mapping[str, float | None] = field(default_factory=dict)
    budgets: Budgets = field(default_factory=Budgets)
    weights: Weights = field(default_factory=Weights)
    agents: Mapping[str, Any] = field(default_factory=dict)
    sets: frozenset[str] = frozenset()
    """The sets of vectors that serve."""
    documents: bool = True

    @property
    def languages(self) -> tuple[str, ...]:
        """The text search configurations that the tenant's texts are in: its own, and those that texts name."""
        return tuple(dict.fromkeys((self.language, *self.other_languages)))

    def attributes(self, agent: str) -> tuple[str, ...]:
        """Keys of the profile attributes that an agent declares, in their order."""
        declared = (self.agents.get(agent) or {}).get("attributes") or ()
        return tuple(str(item["key"]) for item in declared if isinstance(item, Mapping) and "key" in item)

    @property
    def topics(self) -> tuple[str, ...]:
        """The names of the topics that agents declare, sorted."""
        declared = [
            topic for agent in self.agents.values() if isinstance(agent, Mapping) for topic in agent.get("topics") or ()
        ]
        return tuple(
            sorted({str(topic["name"]) for topic in declared if isinstance(topic, Mapping) and "name" in topic})
        )


def policies(row: Mapping[str, Any]) -> Policies:
    """Policies out of a row of the index. What is missing or makes no sense there is the default."""
    defaults: dict[str, float | None] = {
        kind: None if limit is None else limit.total_seconds() for kind, limit in RETENTION.items()
    }
    stored = row.get("retention")
    return Policies(
        revision=row["revision"],
        language=row.get("language") or "simple",
        other_languages=tuple(row.get("languages") or ()),
        retention={**defaults, **stored} if isinstance(stored, Mapping) else defaults,
        budgets=served(Budgets, row.get("budgets")),
        weights=served(Weights, row.get("weights")),
        agents=row["agents"] if isinstance(row.get("agents"), Mapping) else {},
        documents=row.get("documents", True),
        sets=frozenset(row.get("sets") or ()),
    )


class Arm(NamedTuple):
    """Candidates of one way to search, best first, how much its ranks count, and where a hit says its rank."""

    hits: tuple[Hit, ...]
    weight: float
    rank: Literal["lexical_rank", "vector_rank"] = "lexical_rank"


def about(
    hits: Sequence[Hit],
    content: frozenset[str],
    everywhere: frozenset[str],
    named: Collection[Thing] = (),
    goal: str = "",
) -> tuple[Hit, ...]:
    """Of the lexical arm's hits those that share a word of content with the goal; `matched` counts only these.

    A person's message to an agent is long and makes its one point once, so one such word is enough; a shared "please"
    or "check" is none (evals/README.md). Of a memory it isn't enough where it stands everywhere in what is remembered,
    like the person's own name, unless such words are most of what the goal says, or half of it with a thing of parts
    among them: all may be about Porto. Three characters of Thai are no word yet: of these it takes two. What the goal
    has `named` that has parts counts as one, and what has it comes first and stays; a year counts where the text itself
    says it: each memory is found by its date, too. Where all of this finds nothing, a name that many memories have is
    better than none: see `_named_often`.
    """
    wanted = _wanted(content, everywhere, named)
    first, others = list[Hit](), list[Hit]()
    for hit in hits:
        matched, is_named = wanted.matched_in(hit)
        if matched:
            (first if is_named else others).append(hit._replace(matched=matched))
    common = content & wanted.everywhere
    if not first and not others and common:
        others = [hit._replace(matched=1) for hit in _named_often(hits, common, goal)]
    return (*first, *telling(others, beside=first))


class _Wanted(NamedTuple):
    """What a goal is about. `words`: those of content that aren't parts of what it has `named`; `letters`: parts of its
    codes that may be words as well; `enough`: those of both of which one is enough."""

    named: Collection[Thing]
    words: frozenset[str]
    letters: frozenset[str]
    enough: frozenset[str]
    enough_of_memory: frozenset[str]
    everywhere: frozenset[str]
    years: frozenset[str]
    days: Collection[Thing]
    versions: Collection[Thing]
    codes: Collection[Thing]
    says_amounts: bool

    def matched_in(self, hit: Hit) -> tuple[int, bool]:
        """How many things that are wanted a hit has, 0 for one that isn't about them; whether what is named is among
        them."""
        shared = self.words & hit.shared
        if not self.years.isdisjoint(shared):
            shared -= {year for year in self.years & shared if not says_year(year, hit.text)}
        telling_apart = self.enough if hit.kind == "document" else self.enough_of_memory
        if not self.named:
            matched = _things(shared)
            return matched if matched > 1 or not telling_apart.isdisjoint(shared) else 0, False
        shared = shared.difference(*(thing.denied_by(hit.text) for thing in self.versions))
        amounts = amounts_in(hit.text) if self.says_amounts else ()
        names = [found for thing in self.named if (found := thing.named_by(hit.shared, amounts))]
        names += [thing.whole or thing.lexemes for thing in self.days if not names and thing.says(hit.text)]
        recorded = any(thing.is_recorded(hit.shared, hit.text, hit.since) for thing in self.days)
        if self.letters and not names:
            shared |= words_apart(hit.shared & self.letters, hit.text)
        matched = _things(shared) + len(names) + (recorded and not names)
        is_related = matched > 1 or recorded or not telling_apart.isdisjoint(shared)
        if is_related and self.codes and not (names or recorded):
            others = others_in(hit.text, self.codes)
            if others:
                shared = shared.difference(*(thing.noun for thing in others))
                matched, is_related = _things(shared), _things(shared & telling_apart) > 1
        return matched if is_related or any(n - self.everywhere for n in names) else 0, bool(names)


def _wanted(content: frozenset[str], everywhere: frozenset[str], named: Collection[Thing]) -> _Wanted:
    words = content.difference(*(thing.lexemes for thing in named))
    parted = sum(bool(thing.named_by(everywhere)) for thing in named)
    common = len(words & everywhere) + parted
    all_of_it = len(words) + sum(bool(thing.lexemes or thing.parts) and not thing.is_repeated for thing in named)
    if 2 * common > all_of_it or (parted and 2 * common == all_of_it):
        everywhere = _NOTHING
    letters = content.intersection(*[_NOTHING.union(*(thing.letters for thing in named))]) - words
    enough = frozenset(lexeme for lexeme in words | letters if not _PIECE.fullmatch(lexeme))
    return _Wanted(
        named=named,
        words=words,
        letters=letters,
        enough=enough,
        enough_of_memory=enough - everywhere,
        everywhere=everywhere,
        years=frozenset(filter(is_year, words)),
        days=[thing for thing in named if thing.day],
        versions=[thing for thing in named if thing.version],
        codes=[thing for thing in named if thing.code],
        says_amounts=any(thing.amount for thing in named),
    )


def _named_often(hits: Sequence[Hit], common: frozenset[str], goal: str) -> Iterator[Hit]:
    """The memories with a word that many have and that is a name for what they are about: "What is planned for Porto?".

    It is one where the goal has it after "for" or the like, or where they say it elsewhere than where statements have
    whom they are about, and their verb: "The traveller likes", "Ana's".
    """
    memories = [hit for hit in hits if hit.kind != "document"]
    asked = {lexeme for word in _ABOUT.findall(goal) for lexeme in forms_of(_typed(word), common)}
    for lexeme in common - asked:
        placed = [_is_in_front(lexeme, hit.text) for hit in memories if lexeme in hit.shared]
        if sum(placed) <= _IN_FRONT * len(placed):
            asked.add(lexeme)
    return (hit for hit in memories if not asked.isdisjoint(hit.shared))


def _is_in_front(lexeme: str, text: str) -> bool:
    """Whether a text has a word where it says whom it is about and begins to say what."""
    one = frozenset({lexeme})
    for place, word in enumerate(_LETTERS.findall(text)):
        if forms_of(_typed(word), one):
            return place < (_NAME_IN_FRONT if word[0].isupper() else _VERB_IN_FRONT)
    return True


def _typed(word: str) -> str:
    """A word in small letters and without accents."""
    return _ACCENTS.sub("", unicodedata.normalize("NFD", word.lower()))


def _things(lexemes: frozenset[str]) -> int:
    """How many things some lexemes name: what is part of a code is one with it, as 2024 of inv202400174."""
    codes = [lexeme for lexeme in lexemes if _DIGIT.search(lexeme)]
    return sum(not any(lexeme in code and lexeme != code for code in codes) for lexeme in lexemes)


def rarity(common: Frequencies) -> dict[str, float]:
    """What each lexeme counts: the idf of BM25 in the form that is never negative (Robertson and Zaragoza 2009)."""
    return {
        lexeme: math.log1p((common.texts - found + 0.5) / (found + 0.5)) for lexeme, found in common.in_texts.items()
    }


def everywhere(common: Frequencies) -> frozenset[str]:
    """The lexemes that stand in most of a subject's memories (their name, "the traveller"): they tell none apart."""
    if common.memories < _FEW:
        return frozenset()
    return frozenset(lexeme for lexeme, found in common.in_memories.items() if found > _EVERYWHERE * common.memories)


def telling(hits: Sequence[Hit], *, beside: Sequence[Hit] = ()) -> tuple[Hit, ...]:
    """Without the hits that share less than half of the words that the best one shares, of these or those `beside`.

    They make a long list of answers longer, and a prompt worse.
    """
    most = max((hit.matched or 0 for hit in (*hits, *beside)), default=0)
    return tuple(hit for hit in hits if 2 * (hit.matched or 0) >= most)


def fuse(arms: Iterable[Arm], *, k: int) -> tuple[Hit, ...]:
    """Weighted reciprocal rank fusion. Best first; relevance = fused score / the highest.

    What an arm finds alike has one rank there. By their places in it, which of ten alike would be shown would be up to
    their paths, and neither to their age nor to their importance.
    """
    found: dict[tuple[str, int], _Fused] = {}
    for arm in arms:
        for rank, hit in zip(_ranks(arm), arm.hits, strict=True):
            key = hit.key
            known = found.get(key)
            if known is None:
                known = found[key] = _Fused(hit)
            else:
                known.hit = _merged(known.hit, hit)
            known.score += arm.weight / (k + rank)
            if arm.rank == "lexical_rank":
                known.lexical_rank = rank
            else:
                known.vector_rank = rank
    best_first = sorted(found.values(), key=lambda one: (-one.score, one.hit.age, one.hit.key))
    highest = best_first[0].score if best_first else 0.0
    if highest <= 0:
        return ()
    return tuple(one.out_of(highest) for one in best_first)


@dataclass(slots=True)
class _Fused:
    """A hit while it is fused, and the sum of what its ranks count."""

    hit: Hit
    score: float = 0.0
    lexical_rank: int | None = None
    vector_rank: int | None = None

    def out_of(self, highest: float) -> Hit:
        relevance = self.score / highest
        return Hit._make((*self.hit[:_FOUND], relevance, relevance, self.lexical_rank, self.vector_rank, None, None))


def _ranks(arm: Arm) -> Iterator[int]:
    """The rank of each hit of an arm, from 1; those of one strength share the first."""
    of = attrgetter("strength" if arm.rank == "lexical_rank" else "cosine")
    rank, last = 1, None
    for number, hit in enumerate(arm.hits, start=1):
        strength = of(hit)
        if strength is None or last is None or abs(strength - last) > _ALIKE:
            rank = number
        last = strength
        yield rank


def _merged(first: Hit, second: Hit) -> Hit:
    of_arms = (
        first.shared | second.shared,
        second.matched if first.matched is None else first.matched,
        second.strength if first.strength is None else first.strength,
        second.cosine if first.cosine is None else first.cosine,
    )
    return Hit._make((*first[:_ARM], *of_arms, *first[_ARM + len(of_arms) :]))


def judge(hits: Sequence[Hit], weights: Weights, *, limit: int, used: Collection[str] = frozenset()) -> tuple[Hit, ...]:
    """The best `limit` by relevance, recency, importance and verdict, among the twice as many most relevant.

    Those of them that were `used` lately (ids) stand behind the others, so that an agent isn't told the same for ever;
    but the most relevant stays: where each turn of a chat is a run, its answer would be away in every other turn.
    """
    pool = hits[: 2 * limit]
    stale = frozenset(used) - {hit.id for hit in pool[:1]}
    return _best(zip(pool, _places(pool, 2 * limit), strict=True), weights, limit, stale)


def _places(pool: Sequence[Hit], size: int) -> Iterator[float]:
    """What the place of each hit counts, 1 for the first; those that are as relevant share the mean of their places.

    At the first of their places, five that are alike and fresh would stand before the one that is more relevant.
    """
    first = 0
    for _, alike in groupby(pool, key=attrgetter("relevance")):
        number = len(list(alike))
        yield from repeat(1 - (first + (number - 1) / 2) / size, number)
        first += number


def by_recency(
    hits: Sequence[Hit], weights: Weights, *, limit: int, used: Collection[str] = frozenset()
) -> tuple[Hit, ...]:
    """The best `limit` by recency and importance alone, where there was nothing to search for. `used` as in `judge`."""
    best = _best(((hit, 0.0) for hit in hits), weights, 2 * limit if used else limit)
    return tuple(sorted(best, key=lambda hit: hit.id in used)[:limit]) if used else best


def _best(
    hits: Iterable[tuple[Hit, float]], weights: Weights, limit: int, used: Collection[str] = frozenset()
) -> tuple[Hit, ...]:
    scored = [
        (hit, _score(hit.age, hit.importance, place, weights) + weights.verdict * (settled(hit) or 0.0), place)
        for hit, place in hits
    ]
    scored.sort(key=lambda one: (one[0].id in used, -one[1], one[0].age, one[0].key))
    return tuple(
        Hit._make((*hit[:_FOUND], hit.relevance, score, hit.lexical_rank, hit.vector_rank, place, hit.recency))
        for hit, score, place in scored[:limit]
    )


def settled(hit: Hit) -> float | None:
    """How far an experiment came to something, 0 to 1; None for what is none, or has no verdict."""
    if hit.verdict is None or not hit.path.startswith("experiments/"):
        return None
    return _SETTLED.get(verdict(hit.verdict), 0.0)


def _best_first(hit: Hit) -> tuple[Any, ...]:
    return -hit.score, hit.age, hit.key


def _score(age: float, importance: int, relevance: float, weights: Weights) -> float:
    importance_share = min(importance, 10) / 10
    return (
        weights.relevance * relevance
        + weights.recency * recency(age, weights.half_life_days)
        + weights.importance * importance_share
    )


class Question(NamedTuple):
    """What to look for, and where: memories of `kinds` and `topics` (None: all) and documents in `folders`."""

    text: str
    subject: str | None
    agent: str | None
    kinds: tuple[str, ...] = KINDS
    folders: tuple[str, ...] = FOLDERS
    limit: int = ARM
    topics: tuple[str, ...] | None = None
    is_goal: bool = False
    """A goal gets only what it is about, and nothing where that is nothing. A search is asked for the best there is."""


class Asking(NamedTuple):
    """What a question asks of the index, for who asks it along with other things: see `answer`.

    `request` is the `found` of a request to `Index.read`, `nearest` goes with it. `by_vector`: there is one to search
    by.
    """

    question: Question
    request: Mapping[str, Any]
    nearest: tuple[Ask, ...] = ()
    by_vector: bool = False
    degraded: str | None = None
    min_relevance: float = 0.0


def asking(question: Question, policies: Policies, vector: QueryVector | None) -> Asking:
    """What to ask the index. `vector` None: there is no embedder (`no_embedder`)."""
    scope, limit = _scope(question, policies), max(ARM, question.limit)
    request = scope.request()
    if question.subject is not None:
        request |= searching(question.folders, _asked(question), policies.languages, limit=limit)
    if vector is None or not vector.vector:
        return Asking(question, request, degraded="no_embedder" if vector is None else vector.degraded)
    if policies.sets and vector.set not in policies.sets:
        # The vectors that serve are another model's: its own aren't complete yet. Or it answers as another would.
        wrong = is_resized(vector.set, policies.sets)
        return Asking(question, request, degraded="embedder_failed" if wrong else "no_embedder")
    if question.subject is not None and question.kinds:
        request |= nearing(vector.vector, set=vector.set, floor=vector.min_relevance, limit=limit)
    asks = nearest(scope, question.folders, vector.vector, set=vector.set, limit=limit)
    return Asking(question, request, asks, True, vector.degraded, vector.min_relevance)


def answer(asked: Asking, policies: Policies, read: Read, nearby: Sequence[list[dict[str, Any]]]) -> SearchResult:
    """Everything related to a question, by relevance: out of what was `read`, and of the rows of `asked.nearest`."""
    arms = []
    goal = _asked(asked.question) if asked.question.is_goal else None
    named = things(goal, read.found.words.lexemes) if goal is not None else ()
    if read.found.words.query:
        arms.append(Arm(_by_words(asked.question, read.found, goal, named), policies.weights.lexical))
    if asked.by_vector:
        by_vector = _by_vector(asked, read, nearby)
        if any(thing.is_exact for thing in named):
            by_vector = _meant(by_vector, named, read.found.words.content, arms)
        arms.append(Arm(by_vector, policies.weights.vector, "vector_rank"))
    return SearchResult(asked.degraded, fuse(arms, k=policies.weights.rrf_k))


def _meant(
    hits: tuple[Hit, ...], named: Sequence[Thing], content: frozenset[str], by_words: Sequence[Arm]
) -> tuple[Hit, ...]:
    """The vector arm's hits for a goal, without the neighbours of what it names exactly, which are near it by all else.

    A goal that says nothing else gets what its words found, and otherwise no text of another code of its kind.
    """
    by_their_words = {hit.key for arm in by_words for hit in arm.hits}
    others = content.difference(*(thing.lexemes | thing.noun for thing in named))
    if not any(map(str.isalpha, others)):
        return tuple(hit for hit in hits if hit.key in by_their_words)
    return tuple(
        hit
        for hit in hits
        if hit.key in by_their_words
        or not (others_in(hit.text, named) or any(thing.denied_by(hit.text) for thing in named))
    )


def find(index: Index, question: Question, policies: Policies, vector: QueryVector | None) -> SearchResult:
    """Everything related to a question, by relevance; the recent memories where there was nothing to search by.

    `vector` as in `asking`. Of a subject, in one round trip; over all of a tenant in a few.
    """
    asked = asking(question, policies, vector)
    if question.subject is None:
        read = Read(found=_found_in_tenant(index, question, policies))
        nearby = index.run(*asked.nearest) if asked.nearest else []
    else:
        read, nearby = index.read({"found": asked.request}, *asked.nearest)
    if not read.found.words.query and not asked.by_vector and not question.is_goal:
        scope = _scope(question, policies)
        return SearchResult("recency", recent(index, scope, policies, limit=question.limit))
    return answer(asked, policies, read, nearby)


def _found_in_tenant(index: Index, question: Question, policies: Policies) -> Found:
    words = index.words(_asked(question), policies.languages)
    if not words.query:
        return Found(words)
    common = index.frequencies(words, memories=bool(question.kinds), folders=question.folders)
    limit = max(ARM, question.limit)
    rows = index.by_words(_scope(question, policies), question.folders, words, rarity(common), limit=limit)
    return Found(words, common, *rows)


def _scope(question: Question, policies: Policies) -> Scope:
    return Scope(question.subject, question.agent, question.kinds, policies.retention, question.topics)


def _asked(question: Question) -> str:
    """The question as texts are indexed: without what isn't seen, and full-width letters as letters."""
    seen, _ = clean(scrub(question.text[: 2 * _QUESTION_CHARS])[0])
    return unicodedata.normalize("NFKC", seen)[:_QUESTION_CHARS]


def recent(index: Index, scope: Scope, policies: Policies, *, limit: int) -> tuple[Hit, ...]:
    """The recent memories."""
    return of_recent(index.memories_recent(scope, limit=max(ARM, limit)), policies, limit=limit)


def of_recent(memories: Iterable[Memory], policies: Policies, *, limit: int) -> tuple[Hit, ...]:
    """The recent memories as hits, by recency and importance."""
    hits = (_memory(each, score=_score(each.age, each.importance, 0.0, policies.weights)) for each in memories)
    return tuple(sorted(hits, key=_best_first)[:limit])


def _by_words(question: Question, found: Found, goal: str | None, named: Sequence[Thing]) -> tuple[Hit, ...]:
    memories = [
        (match.strength, _memory(match.memory, shared=match.shared, strength=match.strength))
        for match in found.memories
    ]
    ranked = _strongest(memories, found.documents)
    if not ranked or goal is None:
        return ranked
    tells_nothing = everywhere(found.common) if question.subject is not None else frozenset()
    return about(ranked, found.words.content, tells_nothing, named, goal)


def _by_vector(asked: Asking, read: Read, nearby: Sequence[list[dict[str, Any]]]) -> tuple[Hit, ...]:
    rows, documents = near(asked.nearest, nearby)
    memories = [(match.strength, _memory(match.memory, cosine=match.strength)) for match in (*read.near, *rows)]
    ranked = _strongest(memories, documents)
    return tuple(hit for hit in ranked if (hit.cosine or 0.0) >= asked.min_relevance)


def _strongest(memories: Sequence[tuple[float, Hit]], documents: Sequence[Mapping[str, Any]]) -> tuple[Hit, ...]:
    """An arm's memories and documents, as many of each as were asked for: a handbook takes no memory away."""
    both = [*memories, *((row["strength"], _document(row)) for row in documents)]
    return tuple(hit for _, hit in sorted(both, key=lambda pair: (-pair[0], pair[1].key)))


def _memory(
    memory: Memory,
    *,
    score: float = 0.0,
    shared: frozenset[str] | None = None,
    strength: float | None = None,
    cosine: float | None = None,
) -> Hit:
    # The fields of a memory are the first of a hit: by their names it took twice as long, sixty times a turn.
    matched = None if shared is None else len(shared)
    return Hit(*memory, 0, shared or _NOTHING, matched, strength, cosine, None, True, True, 0.0, score)


def _document(row: Mapping[str, Any]) -> Hit:
    shared = row.get("shared")
    return Hit(
        id=row["id"],
        path=row["path"],
        revision=row["revision"],
        kind="document",
        text=row["text"],
        age=row["age"],
        since=row["since"],
        chunk=row["chunk"],
        shared=frozenset(shared or ()),
        matched=None if shared is None else len(shared),
        cosine=row["strength"] if shared is None else None,
        strength=None if shared is None else row["strength"],
        verdict=row.get("verdict"),
        starts=row["chunk"] == 0,
        ends=len(row["text"]) < _WHOLE,
    )


def check(
    query: object, *, limit: object, kinds: object, folders: object, agent: str | None, topics: object = None
) -> None:
    """Raise `InputError` or `InvalidName` for what can't be searched for."""
    if not isinstance(query, str):
        raise InputError(f"a question is text, not {type(query).__name__}")
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise InputError(f"a limit is a number from 1, not {limit!r}")
    _known("kind", kinds, KINDS)
    _known("folder", folders, FOLDERS)
    topic_names(topics)
    if agent is not None:
        agent_name(agent)


def topic_names(topics: object) -> tuple[str, ...] | None:
    """Topics that somebody asks for (None: all). Raises `InputError` for what can't be their names."""
    if topics is None:
        return None
    if isinstance(topics, str) or not isinstance(topics, Collection):
        raise InputError(f"topics are several, not {topics!r}", hint="give a list of names")
    if len(topics) > _TOPICS:
        raise InputError(f"{len(topics)} topics are asked for", hint=f"ask for {_TOPICS} at most, or for all of them")
    for topic in topics:
        # What Postgres can't take (a NUL, half a surrogate) is no fault of a tenant's rows.
        if not isinstance(topic, str) or not topic.strip() or not topic.isprintable() or len(topic) > _TOPIC_CHARS:
            raise InputError(
                f"a topic is a name, not {str(topic)[:_TOPIC_CHARS]!r}", hint="give one that docmem.yaml declares"
            )
    return tuple(dict.fromkeys(topics))


def check_topics(index: Index, rules: Policies, topics: Collection[str] | None) -> None:
    """Raise `InputError` for topics that no agent declares and no memory has."""
    undeclared = set(topics or ()) - set(rules.topics)
    if undeclared:
        [rows] = index.run(Ask("topics", {"topics": sorted(undeclared)}))
        unknown = undeclared - {row["topic"] for row in rows}
        if unknown:
            raise no_topic(unknown, rules)


def no_topic(unknown: Iterable[str], policies: Policies) -> InputError:
    """What to raise for topics that no agent declares and no memory has."""
    declared = ", ".join(policies.topics) or "none"
    return InputError(f"there is no topic {min(unknown)!r}", hint=f"topics that docmem.yaml declares: {declared}")


def _known(what: str, given: object, known: Collection[str]) -> None:
    if isinstance(given, str) or not isinstance(given, Collection):
        raise InputError(f"{what}s are several, not {given!r}", hint=f"give a list of: {', '.join(known)}")
    for each in given:
        if each not in known:
            raise InputError(f"there is no {what} {each!r}", hint=f"there are: {', '.join(known)}")


def search(
    source: Settings | Reader,
    tenant: str,
    query: str,
    *,
    subject: str | None = None,
    agent: str | None = None,
    limit: int = 10,
    kinds: Sequence[Kind] = KINDS,
    folders: Sequence[str] = FOLDERS,
    topics: Collection[str] | None = None,
    embedder: Embedder | QueryVectors | None = None,
) -> SearchResult:
    """The best `limit` memories and documents for a question, by relevance.

    With a `subject` (a key, or an id) it sees that subject's memories and the tenant's documents; without one it is
    the operator's view and sees all of the tenant's. `kinds=()` leaves memories out, `folders=()` documents.
    `topics`: only memories of these, and no document: those have none.
    `source` is the settings, or a `Reader` to keep connections between searches.
    Raises `NotFound` for a tenant that was never synced, `InputError` and `InvalidName` for what can't be searched for,
    and whatever `Reader.read` raises.
    """
    check(query, limit=limit, kinds=kinds, folders=folders, agent=agent, topics=topics)
    if isinstance(source, Settings):
        reader = Reader(source, timeout=READING, opening=_SEARCH_SECONDS)
        try:
            return search(
                reader, tenant, query, subject=subject, agent=agent, limit=limit, kinds=kinds, folders=folders,
                topics=topics, embedder=embedder,
            )  # fmt: skip
        finally:
            reader.close()
    question = Question(
        text=query,
        subject=None if subject is None else subject_key(tenant, subject),
        agent=agent,
        kinds=tuple(kinds),
        folders=tuple(folders) if topics is None else (),
        topics=topic_names(topics),
        limit=limit,
    )
    vector = _vector(embedder, query)

    def work(index: Index) -> SearchResult:
        rules = known(index, tenant)
        check_topics(index, rules, question.topics)
        found = find(index, question, rules, vector)
        shown = (hit._replace(recency=recency(hit.age, rules.weights.half_life_days)) for hit in found.hits[:limit])
        return replace(found, hits=tuple(shown))

    return source.read(tenant, work)


def _vector(embedder: Embedder | QueryVectors | None, query: str) -> QueryVector | None:
    if embedder is None or isinstance(embedder, QueryVectors):
        return embedder(query) if embedder is not None else None
    return QueryVectors(embedder, timeout=_SEARCH_SECONDS)(query)


def known(index: Index, tenant: str) -> Policies:
    """The tenant's policies. Raises `NotFound` where it was never synced."""
    row = index.tenant()
    if row is None:
        raise NotFound(f"tenant {tenant} is not in the index", hint=f"bring it there with: docmem sync {tenant}")
    return policies(row)
