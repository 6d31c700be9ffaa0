"""Search over the files of one commit, without Postgres: BM25 over stemmed paragraphs.

For when the server is away, for documents, and to check what the index says. It ranks words only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from docmem import files, git, layout, repository
from docmem.config import Settings
from docmem.errors import FormatError
from docmem.model import KINDS, Document, Kind, Memory
from docmem.names import subject_key
from docmem.packet import path_id
from docmem.passage import passages, stems
from docmem.projection import project_memory
from docmem.recall import Hit, SearchResult
from docmem.repository import Repository
from docmem.tenant_config import Retention, TenantConfig

B = 0.25
"""How much BM25 minds length: on dated conversations .25 finds more than the usual .75 (evals/README.md)."""

_K1 = 1.5


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
    revision: str | None = None,
    now: datetime | None = None,
) -> SearchResult:
    """The best `limit` files for a question, each with the paragraph (at most 500 characters) that answers it.

    Sees what `recall.search` sees, at `revision` (default: main's head), and says `degraded: "files"`. Files that
    don't parse are left out. Raises `NotFound`, `InvalidName`, and `FormatError` for a broken `docmem.yaml`.
    """
    repo = repository.open(settings, tenant)
    key = None if subject is None else subject_key(tenant, subject)
    at = repo.revision(revision) if revision else repo.head()
    if at is None:
        return SearchResult("files")
    config = repo.snapshot(at).config
    memories = memories_at(repo, at, key) if kinds else iter(())
    moment = now or datetime.now(UTC)
    shown = [
        memory
        for memory in memories
        if memory.kind in kinds and agent in {None, memory.agent or agent} and is_current(memory, config, moment)
    ]
    units = [*memory_units(shown, at, moment), *document_units(repo, at, folders)]
    return SearchResult("files", Corpus(units, config.language).ranked(query)[:limit])


def memories_at(repo: Repository, revision: str, subject: str | None) -> Iterator[Memory]:
    """The memories of a subject, or of all, that parse."""
    folder = f"{layout.subject_dir(subject)}/memories" if subject else "subjects"
    for path, data in _contents(repo, revision, folder, "memory"):
        try:
            yield files.parse_memory(path, data)
        except FormatError:  # sync names it; here the others answer
            continue


def documents_at(repo: Repository, revision: str, folders: Sequence[str]) -> Iterator[Document]:
    """The documents of some folders that parse."""
    for folder in folders:
        for path, data in _contents(repo, revision, folder, "document"):
            try:
                yield files.parse_document(path, data)
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


def _retention(retention: Retention, kind: Kind) -> timedelta | None:
    keep = {
        "episode": retention.episode,
        "preference": retention.preference,
        "fact": retention.fact,
        "decision": retention.decision,
    }
    return keep[kind]


Unit = tuple[Hit, str]
"""A passage as it would be shown, and the words to find it by."""


def memory_units(memories: Sequence[Memory], revision: str, now: datetime) -> Iterator[Unit]:
    """The passages of memories."""
    for memory in memories:
        hit = Hit(
            id=memory.id,
            path=memory.path,
            revision=revision,
            kind=memory.kind,
            text="",
            age=max(0.0, (now - memory.valid_from).total_seconds()) if memory.valid_from else 0.0,
            since=memory.valid_from,
            subject=memory.subject,
            thread=memory.source.thread,
            turns=memory.source.turns,
            importance=memory.importance,
        )
        for piece in passages(memory.text):
            yield hit._replace(text=piece), project_memory(replace(memory, text=piece))


def document_units(repo: Repository, revision: str, folders: Sequence[str]) -> Iterator[Unit]:
    """The passages of documents."""
    for document in documents_at(repo, revision, folders):
        hit = Hit(id=path_id(document.path), path=document.path, revision=revision, kind="document", text="", age=0.0)
        for piece in passages(document.text) or [document.title]:
            yield hit._replace(text=piece), f"{document.title} {piece}"


class Corpus:
    """Passages that can be ranked by a question: prepared once, asked often."""

    def __init__(self, units: Sequence[Unit], language: str) -> None:
        from rank_bm25 import BM25Plus

        self._language = language
        self._hits = [hit for hit, _ in units]
        self._words = [stems(text, language=language) for _, text in units]
        # Plus with delta 0 is BM25 with an idf that is never negative: Okapi's is, for words in half of few texts.
        self._ranker = (
            BM25Plus([of_one or [""] for of_one in self._words], k1=_K1, b=B, delta=0) if any(self._words) else None
        )

    def ranked(self, query: str) -> tuple[Hit, ...]:
        """The best passage of each file, best file first, of those that share a word with the question."""
        wanted = list(dict.fromkeys(stems(query[:4_000], language=self._language)))
        if not wanted or self._ranker is None:
            return ()
        scores = [float(score) for score in self._ranker.get_scores(wanted)]
        best: dict[str, Hit] = {}
        for hit, words, score in zip(self._hits, self._words, scores, strict=True):
            shared = frozenset(words).intersection(wanted)
            known = best.get(hit.path)
            if shared and (known is None or score > known.score):
                best[hit.path] = hit._replace(score=score, matched=len(shared), shared=shared)
        return tuple(sorted(best.values(), key=lambda hit: (-hit.score, hit.path)))
