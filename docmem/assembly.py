"""What a packet is made of: what is asked for, what was gathered for it, and how that becomes tiers. Pure.

The index and, where that is away, the files of the repo gather the same things; here they are laid out alike.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from docmem.errors import InputError
from docmem.names import agent_name, is_safe_path, subject_key, tenant_name
from docmem.packet import BLOCKS, MARK, Block, Entry, Packet, Signals, Tier, Tokenizer, build, fitting, persona, verdict
from docmem.passage import LIMIT, best
from docmem.recall import Hit, Policies, by_recency, judge, settled, topic_names

ALWAYS: tuple[Block, ...] = ("steering", "conventions")
"""Blocks that show the whole folder of their name."""

STRATEGY = "procedures/strategy"
"""Where the documents of the block `strategy` stand: `procedures/strategy.md`, and what is below this folder."""

CHUNKS = 40
"""Chunks of documents that a block reads at most: some 60,000 characters."""

FACTS = ("fact", "decision")
EPISODES = ("episode",)
_SEARCHED = frozenset({"facts", "learned", "episodes", "experiments"})
_GROUPS: Mapping[str, str] = {
    **dict.fromkeys(FACTS, "facts"),
    **dict.fromkeys(EPISODES, "episodes"),
    **dict.fromkeys(("knowledge", "research", "procedures", "corpus"), "knowledge"),
    "learnings": "learned",
    "experiments": "experiments",
}
"""Which of what was found is chosen from together: by a memory's kind, a document's folder."""
MEMORY_CHARS = 2_000
"""Of one memory: a longer text would leave no room for others."""
_DOCUMENTS_MAX = 1_000
_RUN_MAX = 10**15
"""Far from what Postgres can count to, so that there is always a next one."""


class Request(NamedTuple):
    """What a packet is asked for."""

    tenant: str
    subject: str
    agent: str = "default"
    goal: str | None = None
    run: int | None = None
    blocks: tuple[str, ...] = BLOCKS
    documents: tuple[str, ...] = ()
    topics: tuple[str, ...] | None = None
    impossible: int = 0
    """Documents that were asked for by paths that no repo can have; nothing is looked for there."""

    @property
    def whom(self) -> tuple[str, str]:
        """Tenant and subject."""
        return self.tenant, self.subject

    @property
    def recalls(self) -> bool:
        """Whether somebody wants what recall gives."""
        return not _SEARCHED.isdisjoint(self.blocks)

    @property
    def searches(self) -> bool:
        """Whether there is something to search, and somebody who wants it."""
        return bool(self.goal) and self.recalls

    @property
    def key(self) -> tuple[object, ...]:
        """What it is cached under: tenant and subject first, the goal as a hash.

        The run too: what the last runs used is shown less, and one run's packet stays as it is.
        """
        goal = sha256(self.goal.encode("utf-8", "surrogatepass")).digest() if self.goal else None
        return self.tenant, self.subject, self.agent, self.blocks, goal, self.documents, self.topics, self.run


def requested(
    tenant: str,
    subject: str,
    goal: str | None,
    *,
    agent: str | None,
    run: int | None,
    blocks: Iterable[str] | None,
    documents: Sequence[str],
    topics: Collection[str] | None = None,
) -> Request:
    """A request out of what a caller says. Raises `InvalidName` and `InputError`: what is wrong with it is the
    caller's, and none of what is done for it afterwards may fail by it. A path that can't be is left out and counted:
    models write paths too, and one of them is no reason to go without memory."""
    if goal is not None and not isinstance(goal, str):
        raise InputError(f"a goal is text, not {type(goal).__name__}", hint="give the turn's question or task")
    paths, impossible = _paths(documents) if documents else ((), 0)
    return Request(
        tenant=tenant_name(tenant),
        subject=subject_key(tenant, subject),
        agent="default" if agent is None else agent_name(agent),
        goal=(goal or "").strip() or None,
        run=None if run is None else run_number(run),
        blocks=BLOCKS if blocks is None else _blocks(blocks),
        documents=paths,
        topics=topic_names(topics),
        impossible=impossible,
    )


def run_number(run: object) -> int:
    """Return `run` if it may number a run, else raise `InputError`."""
    if not isinstance(run, int) or isinstance(run, bool) or not 0 <= run <= _RUN_MAX:
        raise InputError(
            f"a run's number is a whole number of 0 to {_RUN_MAX}, not {str(run)[:40]!r}",
            hint="count runs upwards, or leave it to Injector.next_run",
        )
    return run


def _blocks(blocks: object) -> tuple[Block, ...]:
    wanted = _listed(blocks, "blocks")
    known = {str(block): block for block in BLOCKS}
    unknown = [block for block in wanted if block not in known]
    if unknown:
        raise InputError(f"there is no block {unknown[0][:40]!r}", hint=f"blocks are: {', '.join(BLOCKS)}")
    return tuple(known[block] for block in dict.fromkeys(wanted))


def _paths(documents: object) -> tuple[tuple[str, ...], int]:
    """Paths that can be, and how many can't."""
    paths = _listed(documents, "documents")
    if len(paths) > _DOCUMENTS_MAX:
        raise InputError(f"{len(paths)} documents at once; ask for {_DOCUMENTS_MAX} at most")
    possible = tuple(filter(is_safe_path, paths))
    return possible, len(paths) - len(possible)


def _listed(given: object, what: str) -> list[str]:
    """Texts out of what should be several of them. A text alone isn't: its letters would be."""
    found = list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else None
    if found is None or not all(isinstance(each, str) for each in found):
        raise InputError(f"{what} are a list of texts, not {type(given).__name__}", hint=f"give them as {what}=[…]")
    return found


class Gathered(NamedTuple):
    """What is there for a request. Documents are rows with `id`, `path`, `revision`, `folder`, `text` and `since`.

    `found` is what the goal is about, by relevance; without a goal, what is recent. `used`: ids of what the last runs
    were given. `good_for`: seconds until the first of the memories ends.
    """

    standing: Sequence[Mapping[str, Any]] = ()
    asked: Sequence[Mapping[str, Any]] = ()
    profile: Mapping[str, Any] | None = None
    preferences: Sequence[Hit] = ()
    found: Sequence[Hit] = ()
    used: Collection[str] = frozenset()
    degraded: str | None = None
    good_for: float = math.inf


def assemble(
    request: Request, rules: Policies, gathered: Gathered, *, now: datetime, tokenizer: Tokenizer | None = None
) -> Packet:
    """The packet of what was gathered."""
    budgets = rules.budgets
    tiers = (*_standing(request, rules, gathered), *_recalled(request, rules, gathered))
    return build(
        # What is asked for by its path is shown even where nobody asks for the block.
        (tier for tier in tiers if tier.block in request.blocks or tier.block == "documents"),
        tokens=budgets.tokens,
        blocks=budgets.blocks,
        now=now,
        degraded=gathered.degraded,
        candidates=len(gathered.found) + len(gathered.preferences),
        tokenizer=tokenizer,
    )


def _standing(request: Request, rules: Policies, gathered: Gathered) -> Iterable[Tier]:
    """What is shown whatever the goal is."""
    budgets = rules.budgets
    if gathered.standing:
        for block in ALWAYS:
            yield Tier(block, laid_out(row for row in gathered.standing if row["folder"] == block), whole=True)
        strategy = (row for row in gathered.standing if row["path"].startswith(STRATEGY))
        yield Tier("strategy", laid_out(strategy), whole=True)
    if gathered.asked:
        yield Tier("documents", laid_out(gathered.asked), whole=True)
    # Some may say the same, so that a few more than are shown are looked at.
    told = gathered.preferences[: 2 * budgets.preferences]
    preferences = [_entry(hit, rules, gathered.used) for hit in told]
    more = len(gathered.preferences) - len(told)
    yield Tier("preferences", preferences, limit=budgets.preferences, more=more)
    if gathered.profile is not None:
        said = persona(
            gathered.profile,
            declared=rules.attributes(request.agent),
            limit=budgets.attributes,
            value_characters=budgets.value_characters,
        )
        there = len(gathered.profile.get("attributes") or ()) if len(said) == budgets.attributes else 0
        yield Tier("persona", said, more=max(0, there - len(said)))


def _recalled(request: Request, rules: Policies, gathered: Gathered) -> Iterable[Tier]:
    """What is shown because of the goal."""
    budgets = rules.budgets
    choose = partial(by_recency if request.goal is None else judge, weights=rules.weights, used=gathered.used)

    def chosen(block: Block, *several: tuple[Sequence[Hit], int]) -> Tier:
        entries, there = [], 0
        for of, limit in several:
            hits = choose(of, limit=limit) if of else ()
            entries += [_entry(hit, rules, gathered.used, question=request.goal) for hit in hits]
            there += len(of)
        return Tier(block, entries, more=there - len(entries))

    in_full = {row["path"] for row in gathered.asked}
    if "strategy" in request.blocks:
        in_full |= {row["path"] for row in gathered.standing if row["path"].startswith(STRATEGY)}
    groups: dict[str, list[Hit]] = {group: [] for group in _GROUPS.values()}
    for hit in gathered.found:
        is_document = hit.kind == "document"
        if not (is_document and hit.path in in_full):
            group = _GROUPS.get(hit.path.partition("/")[0] if is_document else hit.kind)
            if group is not None:
                groups[group].append(hit)
    yield chosen("facts", (groups["facts"], budgets.facts), (groups["knowledge"], budgets.knowledge))
    if groups["learned"]:
        yield chosen("learned", (groups["learned"], budgets.learned))
    if groups["episodes"]:
        yield chosen("episodes", (groups["episodes"], budgets.episodes))
    if groups["experiments"]:
        yield chosen("experiments", (groups["experiments"], budgets.experiments))


def _entry(hit: Hit, rules: Policies, used: Collection[str], *, question: str | None = None) -> Entry:
    """A memory in full, or of a document, or of a memory as long as one, the passage that answers the question."""
    seen = Signals(
        hit.score, hit.relevance, hit.place, hit.lexical_rank, hit.vector_rank, hit.matched, hit.cosine, hit.strength,
        hit.age, rules.weights.half_life_days, hit.importance, settled(hit), hit.id in used,
    )  # fmt: skip
    text, starts, ends = hit.text, hit.starts, hit.ends
    is_memory = hit.kind != "document"
    if question and len(text) > (MEMORY_CHARS if is_memory else LIMIT):
        found = best(text, question, language=rules.language)
        text, starts, ends = found.text, starts and found.is_first, ends and found.is_last
    elif is_memory:
        text, ends = fitting(text, MEMORY_CHARS)
    if text.endswith(MARK) and not (is_memory and text == hit.text):  # of a sentence too long for a passage
        text, ends = text.removesuffix(MARK), False
    since = hit.since
    if is_memory:
        return Entry(text, hit.id, hit.path, hit.revision, "", "", since, False, since, seen, starts, ends)
    key = verdict(hit.verdict) if hit.path.startswith("experiments/") else ""
    return Entry(text, hit.id, hit.path, hit.revision, key, hit.path, None, True, since, seen, starts, ends)


def laid_out(rows: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """Documents out of their chunks, each of them one text again. Past `CHUNKS` of these the last ends with a mark."""
    listed = list(rows)
    entries = []
    for path, group in groupby(listed[:CHUNKS], key=itemgetter("path")):
        chunks = list(group)
        first = chunks[0]
        entries.append(
            Entry(
                "".join(chunk["text"] for chunk in chunks),
                id=first["id"],
                path=path,
                revision=first["revision"],
                label=path,
                multiline=True,
                since=first.get("since"),
            )
        )
    if len(listed) > CHUNKS:
        entries[-1] = entries[-1]._replace(ends=False)
    return entries
