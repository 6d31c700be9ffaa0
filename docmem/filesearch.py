"""Search over the files of one commit, without Postgres: BM25 over the lexemes of paragraphs.

For when the server is away, for documents, and to check what the index says. It ranks words only.
The ranking is rank-bm25's `BM25Plus` with delta 0. What it is given comes from lists of where each word stands: a model
of all texts keeps a dictionary a paragraph, which was ten times the text, and looks at each of them for each question.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rank_bm25 import BM25Plus

from docmem import files, git, layout, repository
from docmem.config import Settings
from docmem.errors import FormatError, NotFound
from docmem.lexemes import lexemes
from docmem.model import KINDS, Document, Kind, Memory
from docmem.names import subject_key
from docmem.packet import path_id, recency
from docmem.passage import passages
from docmem.projection import project_memory
from docmem.recall import Hit, Policies, SearchResult, check, no_topic
from docmem.repository import Repository
from docmem.tenant_config import Retention, TenantConfig

B = 0.25
"""How much BM25 minds length: on dated conversations .25 finds more than the usual .75 (evals/README.md)."""

_K1 = 1.5
_CONFIGS = 100
"""Commits that changed `docmem.yaml` among which a good one is looked for."""


def search(
    settings: Settings,
    tenant: str,
    query: str,
    *,
    subject: str | None = None,
    agent: str | None = None,
    limit: int = 10,
    kinds: Sequence[Kind] = KINDS,
    folders: Sequence[str] = layout.FOLDERS,
    topics: Collection[str] | None = None,
    revision: str | None = None,
    now: datetime | None = None,
) -> SearchResult:
    """The best `limit` files for a question, each with the paragraph (at most 500 characters) that answers it.

    Sees what `recall.search` sees, at `revision` (default: main's head), and says `degraded: "files"`. Files that
    don't parse are left out; of a broken `docmem.yaml` the last good one holds. Raises `NotFound`, `InputError` and
    `InvalidName`.
    """
    check(query, limit=limit, kinds=kinds, folders=folders, agent=agent, topics=topics)
    repo = repository.open(settings, tenant)
    key = None if subject is None else subject_key(tenant, subject)
    at = repo.revision(revision) if revision else repo.head()
    if at is None:
        return SearchResult("files")
    config = config_at(repo, at)
    memories = list(memories_at(repo, at, key)) if kinds else []
    _check_topics(topics, memories, config)
    moment = now or datetime.now(UTC)
    shown = (
        memory
        for memory in memories
        if memory.kind in kinds
        and (topics is None or memory.topic in topics)
        and agent in {None, memory.agent or agent}
        and is_current(memory, config, moment)
    )
    found = Passages(config.language)
    for memory in shown:
        found.add_memory(memory, at, moment)
    for document, blob in documents_in(repo, document_blobs(repo, at, folders if topics is None else ())):
        found.add_document(document, at, blob)
    hits = ranked(query, [found], limit=limit)[:limit]
    weights = config.policies.weights
    places = {score: place for place, score in reversed(list(enumerate((hit.score for hit in hits), start=1)))}
    return SearchResult(
        "files",
        tuple(
            hit._replace(
                relevance=hit.score / hits[0].score if hits[0].score > 0 else 0.0,
                lexical_rank=places[hit.score],
                recency=recency(hit.age, weights.half_life_days) if hit.since else None,
            )
            for hit in hits
        ),
    )


def _check_topics(topics: Collection[str] | None, memories: Iterable[Memory], config: TenantConfig) -> None:
    undeclared = set(topics or ()) - {topic.name for agent in config.agents.values() for topic in agent.topics}
    unknown = undeclared - {memory.topic for memory in memories}
    if unknown:
        raise no_topic(unknown, policies_of(config, revision=""))


def policies_of(config: TenantConfig, *, revision: str) -> Policies:
    """What a `docmem.yaml` says about serving, as the index would hold it."""
    return Policies(
        revision=revision,
        language=config.language,
        budgets=config.policies.budgets,
        weights=config.policies.weights,
        agents=config.model_dump(mode="json")["agents"],
    )


def config_at(repo: Repository, revision: str) -> TenantConfig:
    """`docmem.yaml` at a revision; where it is broken the last good one before, as the index keeps it."""
    try:
        return repo.snapshot(revision).config
    except (FormatError, NotFound):
        pass
    for commit in git.history(repo.git_dir, revision, paths=[layout.CONFIG], limit=_CONFIGS):
        try:
            return repo.snapshot(commit.id).config
        except (FormatError, NotFound):
            continue
    return TenantConfig(format=layout.FORMAT)


def memories_at(repo: Repository, revision: str, subject: str | None) -> Iterator[Memory]:
    """The memories of a subject, or of all, that parse."""
    folder = f"{layout.subject_dir(subject)}/memories" if subject is not None else "subjects"
    for path, data in _contents(repo, revision, folder, "memory"):
        try:
            yield files.parse_memory(path, data)
        except FormatError:  # sync names it; here the others answer
            continue


def document_blobs(repo: Repository, revision: str, folders: Sequence[str]) -> dict[str, str]:
    """Path to blob id of the documents in some folders."""
    return {
        path: blob
        for folder in folders
        for path, blob in sorted(git.files(repo.git_dir, revision, folder).items())
        if layout.place(path).kind == "document"
    }


def documents_in(repo: Repository, blobs: Mapping[str, str]) -> Iterator[tuple[Document, str]]:
    """Those of some documents that parse, and their blob ids, in order of their paths; one at a time in memory."""
    paths: dict[str, list[str]] = {}
    for path, blob in sorted(blobs.items()):
        paths.setdefault(blob, []).append(path)
    for blob, data in git.read_blobs(repo.git_dir, paths) if paths else ():
        for path in paths[blob]:
            try:
                yield files.parse_document(path, data), blob
            except FormatError:
                continue


def _contents(repo: Repository, revision: str, folder: str, kind: str) -> Iterator[tuple[str, bytes]]:
    blobs = {
        path: blob
        for path, blob in git.files(repo.git_dir, revision, folder).items()
        if layout.place(path).kind == kind
    }
    contents = dict(git.read_blobs(repo.git_dir, set(blobs.values()))) if blobs else {}
    for path, blob in sorted(blobs.items()):
        yield path, contents[blob]


def is_current(memory: Memory, config: TenantConfig, now: datetime) -> bool:
    """Whether a memory is valid, not expired and within its kind's retention."""
    keep = _retention(config.policies.retention, memory.kind)
    kept = keep is None or memory.valid_from is None or now - memory.valid_from < keep
    return (
        kept
        and (memory.valid_from is None or memory.valid_from <= now)
        and all(end is None or now < end for end in (memory.valid_until, memory.expires))
    )


def stays_for(memory: Memory, config: TenantConfig, now: datetime) -> float:
    """Seconds until `is_current` says something else of it than now; infinity where it never will."""
    keep = _retention(config.policies.retention, memory.kind)
    turns = [end - now for end in (memory.valid_from, memory.valid_until, memory.expires) if end is not None]
    if keep is not None and memory.valid_from is not None:
        turns.append(keep - (now - memory.valid_from))
    return min((left.total_seconds() for left in turns if left > timedelta()), default=math.inf)


def _retention(retention: Retention, kind: Kind) -> timedelta | None:
    keep = {
        "episode": retention.episode,
        "preference": retention.preference,
        "fact": retention.fact,
        "decision": retention.decision,
    }
    return keep[kind]


def memory_hit(memory: Memory, revision: str, now: datetime, text: str = "") -> Hit:
    """A memory as recall finds it."""
    return Hit(
        id=memory.id,
        path=memory.path,
        revision=revision,
        kind=memory.kind,
        text=text,
        age=max(0.0, (now - memory.valid_from).total_seconds()) if memory.valid_from else 0.0,
        since=memory.valid_from,
        subject=memory.subject,
        thread=memory.source.thread,
        turns=memory.source.turns,
        importance=memory.importance,
    )


_TIMES = 8
"""Bits of an entry that say how often a word stands in a passage; those above say in which."""
_MANY = (1 << _TIMES) - 1


class Passages:
    """The passages of files, and where in them each word stands: prepared once, compact, asked often."""

    def __init__(self, language: str) -> None:
        self.language = language
        self.words = 0
        self.cost = 0
        """Bytes that it takes, about."""
        self._files: list[tuple[Hit, str]] = []
        self._file = array("I")
        self._texts: list[str] = []
        self._lengths = array("I")
        self._places: dict[str, int | array[int]] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def add_memory(self, memory: Memory, revision: str, now: datetime) -> None:
        """Add the passages of a memory."""
        self._add(
            memory_hit(memory, revision, now), "", project_memory(replace(memory, text="")), passages(memory.text)
        )

    def add_document(self, document: Document, revision: str, blob: str) -> None:
        """Add the passages of a document; `blob`: the id of its content."""
        said = document.meta.get("verdict")
        hit = Hit(
            id=path_id(document.path),
            path=document.path,
            revision=revision,
            kind="document",
            text="",
            age=0.0,
            verdict=None if said is None else str(said),
        )
        self._add(hit, blob, document.title, passages(document.text) or [document.title])

    def _add(self, hit: Hit, blob: str, head: str, pieces: Iterable[str]) -> None:
        file = len(self._files)
        self._files.append((hit, blob))
        self.cost += 500
        found_by = lexemes(head, language=self.language)
        for text in pieces:
            words = Counter([*found_by, *lexemes(text, language=self.language)])
            length = sum(words.values())
            place = len(self._texts) << _TIMES
            for word, times in words.items():
                self._note(word, place | (times if times < _MANY else _MANY))
            self._texts.append(text)
            self._file.append(file)
            self._lengths.append(length)
            self.words += length
            self.cost += 80 + len(text) * (1 if text.isascii() else 2)

    def _note(self, word: str, entry: int) -> None:
        # Most words stand in one passage, and a list of one is three times as large.
        known = self._places.get(word)
        if known is None:
            self._places[word] = entry
            self.cost += 180
        elif isinstance(known, int):
            self._places[word] = array("I", (known, entry))
            self.cost += 80
        else:
            known.append(entry)
            self.cost += 4

    def places(self, word: str) -> Sequence[int]:
        """Where a word stands: passages, each with how often, in one number."""
        found = self._places.get(word, ())
        return (found,) if isinstance(found, int) else found

    def files_with(self, words: Iterable[str]) -> dict[str, int]:
        """In how many files each word stands."""
        return {word: len({self._file[entry >> _TIMES] for entry in self.places(word)}) for word in words}

    def length(self, passage: int) -> int:
        """Words of a passage."""
        return self._lengths[passage]

    def file(self, passage: int) -> tuple[Hit, str]:
        """The file that a passage is of, as a hit without text, and its content's id (empty for a memory's)."""
        return self._files[self._file[passage]]

    def path(self, passage: int) -> str:
        """The path of the file that a passage is of."""
        return self._files[self._file[passage]][0].path

    def kind(self, passage: int) -> str:
        """The kind of the file that a passage is of."""
        return self._files[self._file[passage]][0].kind

    def hit(self, passage: int) -> Hit:
        """A passage as it is found."""
        file = self._file[passage]
        last = passage + 1 == len(self) or self._file[passage + 1] != file
        first = passage == 0 or self._file[passage - 1] != file
        return self._files[file][0]._replace(text=self._texts[passage], starts=first, ends=last)


def asked(query: str, language: str) -> list[str]:
    """The words of a question, each once."""
    return list(dict.fromkeys(lexemes(query[:4_000], language=language, asked=True)))


def ranked(
    query: str,
    parts: Sequence[Passages],
    *,
    limit: int,
    serves: Callable[[Hit, str], bool] | None = None,
    most: int = 1_000_000,
) -> tuple[Hit, ...]:
    """The best passages for a question, one a file, best first: of the `limit` memories and the `limit` documents that
    share most with it, so that no handbook takes a memory away.

    The parts are of one language and count as one. `serves`: whether a file (a hit without text, and its blob) may be
    found. `most`: places of words to look at, rare words first: what stands everywhere tells little and costs most.
    """
    parts = [part for part in parts if len(part)]
    if not parts:
        return ()
    size = sum(map(len, parts))
    average = max(1.0, sum(part.words for part in parts) / size)
    chosen = dict(_rare_first(asked(query, parts[0].language), parts, most))
    counts: list[dict[int, dict[str, int]]] = [{} for _ in parts]
    for word in chosen:
        for part, held in zip(parts, counts, strict=True):
            for entry in part.places(word):
                held.setdefault(entry >> _TIMES, {})[word] = entry & _MANY
    lengths = [part.length(passage) for part, held in zip(parts, counts, strict=True) for passage in held]
    held_words = [words for held in counts for words in held.values()]
    scores = iter(_scores(chosen, held_words, lengths, size=size, average=average))
    found = [{passage: (next(scores), tuple(words)) for passage, words in held.items()} for held in counts]
    best: dict[str, tuple[float, Passages, int, tuple[str, ...]]] = {}
    for part, scored in zip(parts, found, strict=True):
        for passage, (score, words) in scored.items():
            path = part.path(passage)
            known = best.get(path)
            better = known is None or (score, -passage) > (known[0], -known[2])
            if better and (serves is None or serves(*part.file(passage))):
                best[path] = score, part, passage, words
    top: list[tuple[str, tuple[float, Passages, int, tuple[str, ...]]]] = []
    for are_documents in (False, True):
        of_kind = (item for item in best.items() if (item[1][1].kind(item[1][2]) == "document") is are_documents)
        top += heapq.nsmallest(limit, of_kind, key=_by_score)
    return tuple(
        part.hit(passage)._replace(score=score, strength=score, matched=len(words), shared=frozenset(words))
        for _, (score, part, passage, words) in sorted(top, key=_by_score)
    )


def _by_score(found: tuple[str, tuple[float, Passages, int, tuple[str, ...]]]) -> tuple[float, str]:
    path, (score, *_) = found
    return -score, path


def _scores(
    standing: Mapping[str, int],
    words: Sequence[Mapping[str, int]],
    lengths: Sequence[int],
    *,
    size: int,
    average: float,
) -> list[float]:
    """What some passages of a corpus score, by rank-bm25: `words` are those of the question in each, and how often.

    Its model holds every word of all texts; here it is given what the question touches, and the whole corpus' numbers.
    """
    if not words:
        return []
    model = BM25Plus([[""]], k1=_K1, b=B, delta=0)
    model.corpus_size, model.avgdl, model.idf = size, average, {}
    model.doc_len, model.doc_freqs = lengths, words
    model._calc_idf(standing)
    model.corpus_size = len(words)  # of which scores are asked for; what is rare was counted in all
    return list(map(float, model.get_scores(list(standing))))


def _rare_first(wanted: Iterable[str], parts: Sequence[Passages], most: int) -> Iterator[tuple[str, int]]:
    """The words that stand somewhere, and in how many passages, until so many places are looked at."""
    standing = {word: sum(len(part.places(word)) for part in parts) for word in wanted}
    looked_at = 0
    for word in sorted((word for word in standing if standing[word]), key=lambda word: (standing[word], word)):
        if looked_at and looked_at + standing[word] > most:
            return
        looked_at += standing[word]
        yield word, standing[word]
