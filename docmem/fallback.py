"""Packets from the files of the local repo, for while Postgres is away: the same tiers, found by words alone.

Reading a repo takes longer than a turn may wait, so it happens aside: a turn waits for it as long as it has time left,
and the next one finds it done. What is read of a tenant (its rules, its documents) is read once for all its subjects,
and kept while its files stay as they are; all that is kept has a bound in bytes.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from docmem import threads
from docmem.assembly import ALWAYS, CHUNKS, EPISODES, FACTS, STRATEGY, Gathered, Request, assemble
from docmem.cache import Cache
from docmem.codes import things
from docmem.config import Settings
from docmem.errors import DocmemError, NotFound
from docmem.index import Frequencies, filler_words, says_something
from docmem.lexemes import lexemes
from docmem.packet import Packet, Tokenizer, path_id
from docmem.recall import ARM, KNOWLEDGE, Arm, Hit, Policies, about, by_recency, everywhere, fuse

if TYPE_CHECKING:
    from docmem.filesearch import Passages
    from docmem.model import Memory
    from docmem.repository import Repository
    from docmem.serving import Weights
    from docmem.tenant_config import TenantConfig

T = TypeVar("T")

KEEP_SECONDS = 30.0
"""How long a subject's memories are served before their ends are looked at again, unless one of them ends or begins
sooner: as long as a packet of the index."""

STALE_SECONDS = 0.5
"""How long what is known to be old is served while the new is being read."""

KEEP_BYTES = 64 << 20
"""What is kept of all tenants and subjects together, about."""

_PACKET_BYTES = 2 << 20
"""Of packets that are kept, beside what they are made of: an agent asks for the same several times a turn."""

_LIBRARY_BYTES = 24 << 20
"""Of one tenant's documents: those past it aren't searched while Postgres is away."""

_SHARE = 0.8
"""Of the time that a turn has left: the rest is for what is done with the files."""
_AT_ONCE = 2
_WAITING = 256
"""What is asked for past that isn't read: a turn doesn't wait for it, and the next one asks again."""

_HEAD_SECONDS = 0.05
_TENANTS = 4_096
_PLACES = 15_000
"""Places of a goal's words that a turn looks at: some 20 ms."""

_NEWEST = 100
_VIEWS = 4
_AGAIN_SECONDS = 1.0
_PARTS = 4
_CHUNK = 1_500
_serials = count()
_log = logging.getLogger("docmem.inject")


@dataclass(frozen=True)
class Ground:
    """What of a tenant's repo all of its subjects share, at a revision. `blobs`: path to blob id of its documents."""

    rules: Policies
    standing: tuple[Mapping[str, Any], ...]
    blobs: Mapping[str, str]
    stamp: Hashable
    """Changes with the documents that are searched, and how."""
    serial: int = field(default_factory=_serials.__next__, compare=False)

    @property
    def cost(self) -> int:
        """Bytes that it takes, about."""
        return 10_000 + 300 * len(self.blobs) + sum(2 * len(row["text"]) for row in self.standing)


@dataclass(frozen=True)
class Library:
    """A tenant's documents, to be searched: those read first, and those that changed since."""

    parts: tuple[Passages, ...]
    blobs: Mapping[str, str]
    """What stands in the parts."""
    serial: int = field(default_factory=_serials.__next__, compare=False)

    @property
    def cost(self) -> int:
        """Bytes that it takes, about."""
        return sum(part.cost for part in self.parts) + 300 * len(self.blobs)


@dataclass(frozen=True)
class View:
    """What an agent may see of a subject: all that a goal may find, and what is shown without one."""

    memories: Mapping[str, Memory]
    preferences: tuple[Hit, ...]
    recent: tuple[Hit, ...]


@dataclass(frozen=True)
class Shelf:
    """One subject's part of a repo at a revision."""

    revision: str
    tree: str | None
    """The id of its folder."""
    config: TenantConfig
    profile: Mapping[str, Any] | None
    known: Mapping[str, Memory]
    """All that parse, by path."""
    memories: Mapping[str, Memory]
    """Those of them that are current."""
    passages: Passages
    good_for: float = math.inf
    """Seconds from when it was read until the first of all ends, or begins."""
    serial: int = field(default_factory=_serials.__next__, compare=False)
    _views: dict[Hashable, View] = field(default_factory=dict, compare=False)

    @property
    def cost(self) -> int:
        """Bytes that it takes, about."""
        return 5_000 + self.passages.cost + sum(1_500 + 2 * len(memory.text) for memory in self.known.values())

    def view(self, request: Request, weights: Weights, now: datetime) -> View:
        """What is there for a request, sorted once: there may be thousands, and a turn asks for a few."""
        key = request.agent, request.topics, request.goal is None
        found = self._views.get(key)
        if found is None:
            if len(self._views) >= _VIEWS:
                self._views.clear()
            found = self._views[key] = self._seen(request, weights, now)
        return found

    def _seen(self, request: Request, weights: Weights, now: datetime) -> View:
        from docmem.filesearch import memory_hit

        def newest(memories: Iterable[Memory]) -> tuple[Hit, ...]:
            hits = [memory_hit(memory, self.revision, now, memory.text) for memory in memories]
            return by_recency(hits, weights, limit=_NEWEST)

        seen = [memory for memory in self.memories.values() if memory.agent in {None, request.agent}]
        mine = {
            memory.path: memory
            for memory in seen
            if memory.kind in FACTS + EPISODES and (request.topics is None or memory.topic in request.topics)
        }
        preferences = newest(memory for memory in seen if memory.kind == "preference")
        return View(mine, preferences, newest(mine.values()) if request.goal is None else ())


@dataclass(frozen=True)
class Page:
    """A document that was asked for by its path."""

    text: str

    @property
    def cost(self) -> int:
        """Bytes that it takes, about."""
        return 200 + 2 * len(self.text)


@dataclass
class _Kept:
    """Something read, or None where that failed; `stamp` says of what, `at` when."""

    value: Any
    stamp: Hashable
    at: float = field(default_factory=time.monotonic)
    stale_from: float | None = None

    @property
    def cost(self) -> int:
        return 500 if self.value is None else int(self.value.cost)

    def most(self, keep: float | None) -> float | None:
        """Seconds that it is fresh for, `keep` at most."""
        return min(keep, self.value.good_for) if keep is not None and isinstance(self.value, Shelf) else keep


def _weight(kept: tuple[object, Packet]) -> int:
    return 1_000 + sys.getsizeof(kept[1].text) + 600 * len(kept[1].spans)


class _Job(NamedTuple):
    """Something to read aside."""

    key: Hashable
    stamp: Hashable
    make: Callable[[], Any]
    done: threading.Event


@dataclass
class _Lane:
    """What waits to be read, and how many threads read it, a few at once."""

    at_once: int
    waiting: deque[_Job] = field(default_factory=deque)
    readers: int = 0


class Fallback:
    """Reads local repos aside, a few at a time, and makes packets of what it has read. Safe between threads."""

    def __init__(self, settings: Settings, *, keep_bytes: int = KEEP_BYTES) -> None:
        self._settings = settings
        self._most = keep_bytes
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._bytes = 0
        self._reading: dict[Hashable, threading.Event] = {}
        self._libraries, self._others = _Lane(at_once=1), _Lane(at_once=_AT_ONCE)
        self._heads: Cache[str, str] = Cache(_TENANTS, ttl=_HEAD_SECONDS)
        self._packets: Cache[tuple[object, ...], tuple[object, Packet]] = Cache(
            _TENANTS, ttl=KEEP_SECONDS, weigh=_weight, most=_PACKET_BYTES
        )

    @property
    def kept_bytes(self) -> int:
        """What is kept takes so many bytes, about."""
        return self._bytes

    def packet(self, request: Request, *, wait: float, tokenizer: Tokenizer | None = None) -> Packet | None:
        """A packet with `degraded` = `files`; None where there is no such repo, or it isn't read within `wait` seconds.

        Documents that aren't read by then are missing in it, those of the tenant and those asked for by their path. All
        of it is read aside by then: the first turn of a person that can't wait has no memory, and the next one has.
        """
        if not (self._settings.tenants / f"{request.tenant}.git").is_dir():
            return None
        if self._pid != os.getpid():  # what was being read at a fork is read in the parent
            self._begin()
        deadline = time.monotonic() + _SHARE * wait
        head = self._head(request, deadline)
        if head is None:
            return None
        tenant = request.tenant
        ground, shelf = self._ground(request, head, deadline), self._shelf(request, head, deadline)
        if ground is None or shelf is None:
            return None
        library = self._library(tenant, ground, deadline) if request.searches else None
        pages = [page for path in request.documents for page in self._page(tenant, ground, path, deadline)]
        made_of = ground.serial, shelf.serial, library and library.serial, len(pages), tokenizer is None
        known = self._packets.get(request.key)
        if known is not None and known[0] == made_of:
            return known[1]
        now = datetime.now(UTC)
        gathered = gather(request, ground, shelf, library, pages, now=now)
        made = assemble(request, ground.rules, gathered, now=now, tokenizer=tokenizer)
        self._packets.put(request.key, (made_of, replace(made, cached=True)))
        return made

    def _head(self, request: Request, deadline: float) -> str | None:
        known = self._heads.get(request.tenant)
        if known is not None:
            return known

        def make() -> Page:
            loaded = _load()
            head = self._head_now(request.tenant)
            if head is not None:
                self._ground(request, head, 0.0)
                self._shelf(request, head, 0.0)
            return loaded

        return self._head_now(request.tenant) if self._read("git", "loaded", make, deadline) is not None else None

    def _head_now(self, tenant: str) -> str | None:
        from docmem import git

        try:
            head = git.head(self._settings.tenants / f"{tenant}.git")
        except (DocmemError, OSError):
            return None
        if head is not None:
            self._heads.put(tenant, head)
        return head

    def _ground(self, request: Request, head: str, deadline: float) -> Ground | None:
        def make() -> Ground:
            ground = ground_at(self._settings, request.tenant)
            if request.searches:
                self._library(request.tenant, ground, 0.0)
            return ground

        return self._read(("ground", request.tenant), head, make, deadline)

    def _shelf(self, request: Request, head: str, deadline: float) -> Shelf | None:
        key = "subject", request.tenant, request.subject
        old = self._last(key)
        return self._read(key, head, lambda: _seen_shelf(self._settings, request, old), deadline, keep=KEEP_SECONDS)

    def _library(self, tenant: str, ground: Ground, deadline: float) -> Library | None:
        key = "library", tenant
        old = self._last(key)

        def make() -> Library:
            return library_of(self._settings, tenant, ground, old)

        # An old one is never wrong: what it holds is compared with the files of now before it is shown.
        return self._read(key, ground.stamp, make, deadline, stale=None)

    def _page(self, tenant: str, ground: Ground, path: str, deadline: float) -> list[Mapping[str, Any]]:
        blob = ground.blobs.get(path)
        if blob is None:
            return []
        page = self._read(
            ("page", tenant, path, blob), blob, lambda: page_of(self._settings, tenant, path, blob), deadline
        )
        return [] if page is None else _rows(path, page.text, ground.rules.revision)

    # ------------------------------------------------------------------------------------------------------- aside

    def _read(
        self,
        key: Hashable,
        stamp: Hashable,
        make: Callable[[], T],
        deadline: float,
        *,
        keep: float | None = None,
        stale: float | None = STALE_SECONDS,
    ) -> T | None:
        """What `make` reads, kept while `stamp` is the same; an older one for `stale` seconds (None: however old)."""
        kept = self._fresh(key, stamp, keep)
        if kept is None:
            done = self._aside(key, stamp, make)
            if done is not None and done.wait(max(0.0, deadline - time.monotonic())):
                kept = self._fresh(key, stamp, keep)
        if kept is None:
            kept = self._still(key, stale)
        value: T | None = kept.value if kept is not None else None
        return value

    def _last(self, key: Hashable) -> Any:
        with self._lock:
            kept = self._kept.get(key)
        return kept.value if kept is not None else None

    def _fresh(self, key: Hashable, stamp: Hashable, keep: float | None) -> _Kept | None:
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or kept.stamp != stamp:
                return None
            # What couldn't be read is tried again soon: there may just have been no file descriptor left.
            most = _AGAIN_SECONDS if kept.value is None else kept.most(keep)
            if most is not None and time.monotonic() - kept.at > most:
                return None
            self._kept.move_to_end(key)
            return kept

    def _still(self, key: Hashable, seconds: float | None) -> _Kept | None:
        now = time.monotonic()
        with self._lock:
            kept = self._kept.get(key)
            if kept is None or seconds is None:
                return kept
            kept.stale_from = now if kept.stale_from is None else kept.stale_from
            return kept if now - kept.stale_from <= seconds else None

    def _aside(self, key: Hashable, stamp: Hashable, make: Callable[[], Any]) -> threading.Event | None:
        # One tenant's documents take seconds to read: they never keep the memories of others waiting.
        lane = self._libraries if isinstance(key, tuple) and key[0] == "library" else self._others
        with self._lock:
            if key in self._reading:
                return self._reading[key]
            if len(lane.waiting) >= _WAITING:
                return None
            done = self._reading[key] = threading.Event()
            lane.waiting.append(_Job(key, stamp, make, done))
            if lane.readers >= lane.at_once:
                return done
            lane.readers += 1
        if threads.aside(partial(self._work, lane), name="docmem-files") is None:
            with self._lock:
                lane.readers -= 1
                while lane.waiting:
                    self._end(lane.waiting.pop())
        return done

    def _work(self, lane: _Lane) -> None:
        while True:
            with self._lock:
                if not lane.waiting:
                    lane.readers -= 1
                    return
                job = lane.waiting.popleft()
            self._make(job)

    def _make(self, job: _Job) -> None:
        value = None
        try:
            value = job.make()
        except Exception as error:  # noqa: BLE001 it belongs to a thread that nobody would see end
            code = error.code if isinstance(error, DocmemError) else type(error).__name__
            _log.warning("the files can't serve either: %s", code)
        finally:
            self._keep(job.key, _Kept(value, job.stamp))
            with self._lock:
                self._end(job)

    def _end(self, job: _Job) -> None:
        del self._reading[job.key]
        job.done.set()

    def _keep(self, key: Hashable, kept: _Kept) -> None:
        with self._lock:
            self._drop(key)
            self._kept[key] = kept
            self._bytes += kept.cost
            while self._bytes > self._most and len(self._kept) > 1:
                self._drop(next(iter(self._kept)))

    def _drop(self, key: Hashable) -> None:
        old = self._kept.pop(key, None)
        if old is not None:
            self._bytes -= old.cost


def gather(
    request: Request,
    ground: Ground,
    shelf: Shelf,
    library: Library | None,
    pages: Sequence[Mapping[str, Any]],
    *,
    now: datetime,
) -> Gathered:
    """What the index would have gathered, as far as files tell."""
    view = shelf.view(request, ground.rules.weights, now)
    found = view.recent
    if request.goal is not None:
        found = _found(request.goal, ground, shelf, library, view.memories, now=now)
    return Gathered(
        standing=ground.standing,
        asked=pages,
        profile=shelf.profile,
        preferences=view.preferences,
        found=found,
        degraded="files",
    )


def _found(
    goal: str, ground: Ground, shelf: Shelf, library: Library | None, mine: Mapping[str, Memory], *, now: datetime
) -> tuple[Hit, ...]:
    """What a goal is about, by the rules that hold for the index."""
    from docmem.filesearch import asked, memory_hit, ranked

    rules = ground.rules

    def serves(file: Hit, blob: str) -> bool:
        if file.kind == "document":
            return ground.blobs.get(file.path) == blob
        return file.path in mine

    parts = (shelf.passages, *(library.parts if library is not None else ()))
    best = ranked(goal, parts, limit=ARM, serves=serves, most=_PLACES)
    words = asked(goal, rules.language)
    common = Frequencies(memories=len(shelf.memories), in_memories=shelf.passages.files_with(words))
    content = frozenset(word for word in words if says_something(word, _filler(rules.language)))
    arm = Arm(about(best, content, everywhere(common), things(goal, words), goal), rules.weights.lexical)

    def as_now(hit: Hit) -> Hit:
        # What was read of a file may be from before, while its text is what it was.
        if hit.path not in mine:
            return hit._replace(revision=rules.revision)
        fresh = memory_hit(mine[hit.path], shelf.revision, now, mine[hit.path].text)
        return hit._replace(text=fresh.text, age=fresh.age, revision=fresh.revision)

    return tuple(map(as_now, fuse([arm], k=rules.weights.rrf_k)))


@lru_cache(maxsize=8)
def _filler(language: str) -> frozenset[str]:
    return frozenset(lexemes(filler_words(), language=language, asked=True))


def _load() -> Page:
    """Import what reads files: that takes longer than a turn may wait."""
    from docmem import filesearch, repository

    return Page(filesearch.__name__ + repository.__name__)


def _opened(settings: Settings, tenant: str) -> tuple[Repository, str]:
    from docmem import repository

    repo = repository.open(settings, tenant)
    head = repo.head()
    if head is None:
        raise NotFound(f"{tenant} has no commit yet", hint="write something first")
    return repo, head


def ground_at(settings: Settings, tenant: str) -> Ground:
    """A tenant's rules and standing documents at main's head. Raises `DocmemError`."""
    from docmem import filesearch, layout

    repo, head = _opened(settings, tenant)
    config = filesearch.config_at(repo, head)
    rules = filesearch.policies_of(config, revision=head)
    blobs = filesearch.document_blobs(repo, head, layout.FOLDERS)
    searched = frozenset((path, blob) for path, blob in blobs.items() if path.partition("/")[0] in KNOWLEDGE)
    return Ground(rules, _standing(repo, head, blobs), blobs, (config.language, hash(searched)))


def shelf_at(settings: Settings, tenant: str, subject: str, old: Shelf | None) -> Shelf:
    """A subject's part of a repo at main's head; of an `old` one what is still so isn't read. Raises `DocmemError`."""
    from docmem import filesearch, git, layout

    repo, head = _opened(settings, tenant)
    config, now = filesearch.config_at(repo, head), datetime.now(UTC)
    tree = git.tree_id(repo.git_dir, head, layout.subject_dir(subject))
    if old is not None and (old.tree, old.config) != (tree, config):
        old = None
    known = old.known if old else {memory.path: memory for memory in filesearch.memories_at(repo, head, subject)}
    memories = {path: memory for path, memory in known.items() if filesearch.is_current(memory, config, now)}
    profile = old.profile if old else profile_at(repo, head, subject)
    if old is not None and old.memories.keys() == memories.keys():
        passages = old.passages
    else:
        passages = filesearch.Passages(config.language)
        for memory in memories.values():
            passages.add_memory(memory, head, now)
    good_for = min((filesearch.stays_for(memory, config, now) for memory in known.values()), default=math.inf)
    return Shelf(head, tree, config, profile, known, memories, passages, good_for)


def _seen_shelf(settings: Settings, request: Request, old: Shelf | None) -> Shelf:
    """A subject's part with the view that a request will take of it: that takes too long for a turn."""
    shelf = shelf_at(settings, request.tenant, request.subject, old)
    shelf.view(request, shelf.config.policies.weights, datetime.now(UTC))
    return shelf


def library_of(settings: Settings, tenant: str, ground: Ground, old: Library | None) -> Library:
    """A tenant's documents, to be searched; with an `old` library only what changed is read. Raises `DocmemError`."""
    from docmem import filesearch

    wanted = {path: blob for path, blob in ground.blobs.items() if path.partition("/")[0] in KNOWLEDGE}
    if old is not None and (not old.parts or old.parts[0].language != ground.rules.language):
        old = None
    known = old.blobs if old is not None else {}
    changed = {path: blob for path, blob in wanted.items() if known.get(path) != blob}
    if old is not None and (len(old.parts) >= _PARTS or len(known) + len(changed) > 2 * len(wanted) + 100):
        old, known, changed = None, {}, wanted
    if old is not None and not changed:
        return old
    repo, _ = _opened(settings, tenant)
    passages = filesearch.Passages(ground.rules.language)
    room = _LIBRARY_BYTES - (old.cost if old is not None else 0)
    for document, blob in filesearch.documents_in(repo, changed):
        passages.add_document(document, ground.rules.revision, blob)
        if passages.cost > room:
            _log.warning(
                "the documents of %s are too many to be searched in files: from %s on they aren't",
                tenant,
                document.path,
            )
            break
        time.sleep(0)  # turns come first
    return Library((*(old.parts if old is not None else ()), passages), {**known, **wanted})


def page_of(settings: Settings, tenant: str, path: str, blob: str) -> Page:
    """A document's text. Raises `DocmemError`."""
    from docmem import files, git

    repo, _ = _opened(settings, tenant)
    return Page(files.parse_document(path, git.read_blob(repo.git_dir, blob)).text[: _CHUNK * CHUNKS + 1])


def _standing(repo: Repository, head: str, blobs: Mapping[str, str]) -> tuple[Mapping[str, Any], ...]:
    """What is shown of the documents whatever the goal is, a bounded part of each folder."""
    from docmem.filesearch import documents_in

    rows: list[Mapping[str, Any]] = []
    for start in (*(f"{folder}/" for folder in ALWAYS), STRATEGY):
        wanted = {
            path: blob
            for path, blob in blobs.items()
            if path.startswith(start) and (start != STRATEGY or path[len(start) :].startswith((".md", "/")))
        }
        of_one: list[Mapping[str, Any]] = []
        for document, _ in documents_in(repo, wanted):
            of_one += _rows(document.path, document.text, head)
            if len(of_one) > CHUNKS:
                break
        rows += of_one
    return tuple(rows)


def _rows(path: str, text: str, revision: str) -> list[Mapping[str, Any]]:
    """A document as the index has it: in chunks, and of a long one no more than are shown."""
    pieces = [text[at : at + _CHUNK] for at in range(0, min(len(text), _CHUNK * CHUNKS + 1), _CHUNK)]
    folder = path.partition("/")[0]
    return [
        {"id": path_id(path), "path": path, "revision": revision, "folder": folder, "text": piece} for piece in pieces
    ]


def profile_at(repo: Repository, head: str, subject: str) -> Mapping[str, Any] | None:
    """A subject's profile as the index has it; None where it can't be read."""
    from docmem.errors import FormatError
    from docmem.layout import profile_path

    try:
        profile = repo.snapshot(head).profile(subject)
    except FormatError:  # sync names it; the rest answers
        return None
    return {
        "path": profile_path(subject),
        "revision": head,
        "label": profile.label,
        "preferred_language": profile.preferred_language,
        "locale": profile.locale,
        "lifecycle_stage": profile.lifecycle_stage,
        "last_interaction_at": profile.last_interaction_at,
        "attributes": dict(profile.attributes),
    }
