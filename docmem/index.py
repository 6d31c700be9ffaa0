"""The index as a reader sees it: named statements, as one tenant and within a deadline, several in one round trip.

A server that is stopped answers no timeout of its own, so the deadline is kept here: whatever is still waiting when
it passes gets its socket shut down under it.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, lru_cache, partial
from importlib.resources import files
from itertools import repeat
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg.rows import DictRow
from psycopg.types.json import Json
from psycopg_pool import ConnectionPool, PoolTimeout

from docmem import db, forks, threads
from docmem.config import Settings
from docmem.errors import DocmemError, ServerUnavailable
from docmem.gate import Gate
from docmem.names import tenant_name
from docmem.relay import Relay
from docmem.sql import load

T = TypeVar("T")

_SQL = partial(load, "docmem", "index.sql")
READING = 5.0
"""Seconds that a command waits for an answer once it is connected: a locked table mustn't hold it up."""

_SAMPLE = 200
"""Texts that say how common a word is: on LoCoMo 100 of them and all find the same (recall@10 .67)."""
_CANDIDATES = 200
"""Texts that the words' weights choose from: recall@10 .66 from 30, .67 from 100 as from all."""
_NEXT, _NEXT_BUT_ONE = 0.3, 0.2
"""Shares of its own strength that a text lends to its neighbours."""
_LONGEST = 1e11
"""Seconds that the database can still count back from today."""
_TRIES = 10
_OPEN_SECONDS, _CLOSE_SECONDS = 20.0, 10.0
_LINGER = 1.0
"""Seconds that the thread which opened a pool stays. Who is told that the pool is open may fork at once, while a
thread that connected ends: of 900 children forked then 6 hung in their first connection for ever, of 900 forked beside
a thread that stayed none.
"""

_WHO = "who holds or takes it: SELECT pid, usename, query FROM pg_stat_activity, in that database; see: docmem status"

CONNECTIONS = 8
"""Of a process. Who finds none free waits in the order of coming."""

AT_ONCE = 4
"""Turns of a process that Postgres answers at once. What is made of an answer takes the interpreter's lock for as long
as Postgres takes for it, so more of them wait for each other anyway, and in no order: of eight readers' turns the
slowest hundredth took 31 ms with eight at once, 19 with four, the median 4.5 and 4.3 ms; on a machine three times as
slow 48 and 41, and 12 and 16.
"""

_LEAST = 0.01
"""Seconds within which an answer may come at all: with less left, nothing is learned by asking."""

_MOST = 0.9
"""Share of a turn's time: who waits for less of it tells nothing by having waited in vain. The turns of one tenant may
take all there is, and the others' runs, which wait for a quarter, would have shut memory for everybody."""

_POSTGRES_SHARE = 0.9
"""Of the time that is left, for Postgres' own timeouts: it is to say by itself that a statement was slow, for whoever
is cut off can't tell that from a server that stands still."""


class IndexFailed(DocmemError):
    """Postgres answers and the index can't be read: a table is gone, a right is missing, a row is garbage."""

    code = "index_failed"


class Slow(ServerUnavailable):
    """Postgres answers, and took too long for this: another tenant's read may well be in time."""

    code = "slow"


class Locked(Slow):
    """Postgres answers, and somebody holds a lock: of what is only read on a whole table, so that all wait for it."""

    code = "locked"


class Busy(Slow):
    """Postgres answers, and what was asked had to wait for others, or there was no time left to ask: nobody's fault."""

    code = "busy"


class Closed(DocmemError):
    """It was closed, and opens no connection any more."""

    code = "closed"


class Words(NamedTuple):
    """A question as lexemes, and as a query that finds any of them (None: it has no lexemes).

    `content`: the lexemes that say what it is about.
    """

    lexemes: tuple[str, ...] = ()
    query: str | None = None
    content: frozenset[str] = frozenset()


_NONE: Mapping[str, int] = MappingProxyType({})


class Frequencies(NamedTuple):
    """In how many of a sample's texts a lexeme stands: of its `memories`, and of all its `texts` with documents."""

    memories: int = 0
    texts: int = 0
    in_memories: Mapping[str, int] = _NONE
    in_texts: Mapping[str, int] = _NONE


class Memory(NamedTuple):
    """A memory as it is shown. `age`: seconds since `since`, by the database's clock."""

    id: str
    path: str
    revision: str
    kind: str
    text: str
    age: float
    since: datetime
    subject: str
    thread: str | None
    turns: tuple[str, ...]
    importance: int


class Match(NamedTuple):
    """A memory that a question found. `strength`: the sum of what the lexemes of it that it `shared` count, or, found
    by its vector (`shared` None), the cosine."""

    memory: Memory
    strength: float
    shared: frozenset[str] | None = None


class Found(NamedTuple):
    """What the words of a question found: memories and documents, each best first, and how common the words are.

    A row's `strength` is the sum of what its lexemes of the question count, `shared` are these; of a document, a
    neighbour in the text lends a part of its strength.
    """

    words: Words = Words()
    common: Frequencies = Frequencies()
    memories: Sequence[Match] = ()
    documents: Sequence[Mapping[str, Any]] = ()


class Read(NamedTuple):
    """What `Index.read` was asked for. `tenant`: its revision and policies, None for one that was never synced.

    `good_for`: seconds until the first of its memories ends.
    """

    tenant: Mapping[str, Any] | None = None
    profile: Mapping[str, Any] | None = None
    standing: Sequence[Mapping[str, Any]] = ()
    documents: Sequence[Mapping[str, Any]] = ()
    preferences: Sequence[Memory] = ()
    recent: Sequence[Memory] = ()
    used: Sequence[str] = ()
    found: Found = Found()
    near: Sequence[Match] = ()
    good_for: float = math.inf


class Scope(NamedTuple):
    """Which memories may be seen. None means all: the tenant's subjects, agents, topics."""

    subject: str | None
    agent: str | None
    kinds: tuple[str, ...]
    retention: Mapping[str, float | None]
    topics: tuple[str, ...] | None = None

    def parameters(self) -> dict[str, Any]:
        """As the statements name them."""
        return {
            "subject": self.subject,
            "agent": self.agent,
            "kinds": list(self.kinds),
            "topics": None if self.topics is None else list(self.topics),
            "retention": Json(dict(self.retention)),
        }

    def request(self) -> dict[str, Any]:
        """As `docmem.found` names them."""
        limits = {kind: min(limit, _LONGEST) for kind, limit in self.retention.items() if limit is not None}
        kept = {"limited": list(limits), "kept": list(limits.values())}
        seen = {"subject": self.subject, "agent": self.agent, "kinds": self.kinds, "topics": self.topics}
        return {**seen, **kept}


@dataclass(frozen=True, slots=True)
class Ask:
    """A statement of index.sql by its name, and its parameters."""

    name: str
    values: Mapping[str, Any] = field(default_factory=dict)


class Moved(Exception):
    """A sync was committed between two calls."""


_UNSEEN = object()


class Index:
    """One tenant's rows. Each call is one transaction and one round trip, and waits until `deadline` at most."""

    def __init__(
        self, connection: psycopg.Connection[Any], tenant: str, *, deadline: float, relay: Relay | None = None
    ) -> None:
        self._connection = connection
        self._tenant = tenant
        self._deadline = deadline
        self._relay = relay or Relay(1)
        self._seen: object = _UNSEEN
        self.asked = time.monotonic()
        """When Postgres was asked last."""

    def run(self, *asks: Ask) -> list[list[DictRow]]:
        """The rows of each of several statements, at once. Raises `Moved` where they are of another revision than those
        of the call before: the rows of two wouldn't fit together."""
        seen, *found = self._together(Ask("revision"), *asks)
        self._see(seen[0]["revision"] if seen else None)
        return found

    def read(self, request: Mapping[str, Any], *asks: Ask) -> tuple[Read, list[list[DictRow]]]:
        """The parts of the function `docmem.read` that are asked for, and the rows of other statements, at once.

        What a request holds stands at that function, in the schema; its `found` is `Scope.request` with `recent`,
        `searching` and `nearing`. An empty one is the tenant's row. Raises `Moved` like `run`.
        """
        values = {"request": json.dumps(request)}
        answer: dict[str, Any]
        rows: list[list[DictRow]] = []
        if asks:
            [[row], *rows] = self._together(Ask("read", values), *asks)
            answer = row["read"]
        else:
            answer = db.answer(
                self._connection,
                self._tenant,
                _SQL()["read"],
                values,
                seconds=self._left,
                until=self._deadline - _LEAST,
                relay=self._relay,
            )
        self._see((answer["tenant"] or {}).get("revision"))
        profile = answer["profile"]
        if profile is not None and profile["last_interaction_at"] is not None:
            profile["last_interaction_at"] = datetime.fromisoformat(profile["last_interaction_at"])
        memories = self._memories(answer["found"], request["found"]["subject"]) if answer["found"] else {}
        read = Read(
            tenant=answer["tenant"],
            profile=profile,
            standing=_dated(answer["standing"]),
            documents=_dated(answer["documents"]),
            used=answer["used"] or (),
            **memories,
        )
        return read, rows

    def write(self, *asks: Ask) -> list[list[DictRow]]:
        """`run` for what writes: each statement sees what was committed before it."""
        return self._together(*asks, writes=True)

    def _together(self, *asks: Ask, writes: bool = False) -> list[list[DictRow]]:
        statements = [(_SQL()[ask.name], ask.values) for ask in asks]
        return db.run(self._connection, self._tenant, statements, seconds=self._left(), writes=writes)

    def _left(self) -> float:
        self.asked = time.monotonic()
        return max(0.001, _POSTGRES_SHARE * (self._deadline - self.asked))

    def in_one_view(self, work: Callable[[Index], T]) -> T:
        """What `work` gives; once more where a sync was committed meanwhile, all in one view of the rows then."""
        try:
            return work(self)
        except Moved:  # two round trips more
            with self._connection.transaction():
                self._connection.execute(_SQL()["one_view"])
                self._seen = _UNSEEN
                return work(self)

    def _see(self, revision: str | None) -> None:
        if self._seen is not _UNSEEN and revision != self._seen:
            raise Moved
        self._seen = revision

    def _memories(self, answer: Mapping[str, Any], subject: str) -> dict[str, Any]:
        """The parts of a `Read` that the function `docmem.found` gives."""
        now, ends = datetime.fromisoformat(answer["now"]), answer["ends"]
        known = _memories(answer["memories"], now=now, subject=subject)
        lexemes = answer["lexemes"] or ()
        by_words = [
            Match(known[id], strength, frozenset([lexemes[n - 1] for n in shared]))
            for id, strength, shared in answer["by_words"] or ()
        ]
        common = dict(zip(lexemes, answer["in_memories"] or (), strict=False))
        found = Found(
            words=self._words(answer["words"] or ()),
            common=Frequencies(answer["sampled"], in_memories=common),
            memories=by_words,
            documents=_dated(answer["documents"]),
        )
        return {
            "preferences": [known[id] for id in answer["preferences"] or ()],
            "recent": [known[id] for id in answer["recent"] or ()],
            "near": [Match(known[id], strength) for id, strength in answer["near"] or ()],
            "found": found,
            "good_for": math.inf if ends is None else (datetime.fromisoformat(ends) - now).total_seconds(),
        }

    def tenant(self) -> Mapping[str, Any] | None:
        """Revision and policies; None for a tenant that was never synced."""
        return self.read({})[0].tenant

    def words(self, text: str, languages: Sequence[str]) -> Words:
        """A question as lexemes, in some text search configurations."""
        rows = self._rows("question", question=text, languages=list(languages))
        return self._words([(row["language"], row["lexemes"]) for row in rows])

    def _words(self, found: Sequence[tuple[str, Sequence[str]]]) -> Words:
        """A question's lexemes, out of those in each language."""
        lexemes = sorted({lexeme for _, each in found for lexeme in each})
        filler = self._filler({language for language, each in found if each})
        content = (lexeme for language, each in found for lexeme in each if says_something(lexeme, filler[language]))
        return Words(tuple(lexemes), " | ".join(map(_quoted, lexemes)) or None, frozenset(content))

    def _filler(self, languages: Iterable[str]) -> Mapping[str, frozenset[str]]:
        """The lexemes of filler.txt by language; asked once a process."""
        missing = [language for language in languages if language not in _fillers]
        if missing:
            [rows] = self.run(Ask("filler", {"languages": missing, "filler": filler_words()}))
            _fillers.update((row["language"], frozenset(row["lexemes"])) for row in rows)
        return _fillers

    def frequencies(self, words: Words, *, memories: bool, folders: Sequence[str]) -> Frequencies:
        """How common the lexemes are in a fair sample of all of a tenant's texts."""
        rows = self._rows(
            "frequencies",
            lexemes=list(words.lexemes),
            each=[_quoted(lexeme) for lexeme in words.lexemes],
            memories=memories,
            folders=list(folders),
            sample=_SAMPLE,
        )
        return Frequencies(
            memories=rows[0]["memories"] if rows else 0,
            texts=rows[0]["memories"] + rows[0]["documents"] if rows else 0,
            in_memories={row["lexeme"]: row["in_memories"] for row in rows},
            in_texts={row["lexeme"]: row["in_all"] for row in rows},
        )

    def by_words(
        self, scope: Scope, folders: Sequence[str], words: Words, weights: Mapping[str, float], *, limit: int
    ) -> tuple[list[Match], list[DictRow]]:
        """Memories and documents of all of a tenant, by what the lexemes in them weigh: see `Found`."""
        values = {**_weighed(words, weights), "limit": limit}
        near = {"folders": list(folders), "next": _NEXT, "next_but_one": _NEXT_BUT_ONE}
        asks = []
        if scope.kinds:
            asks.append(Ask("memories_by_words", {**values, **scope.parameters()}))
        if folders:
            asks.append(Ask("documents_by_words", {**values, **near}))
        found = iter(self.run(*asks))
        memories = next(found) if scope.kinds else []
        return _matches(memories), next(found) if folders else []

    def memories_recent(self, scope: Scope, *, limit: int) -> Sequence[Memory]:
        """Newest first."""
        if scope.subject is None:
            return [
                match.memory for match in _matches(self._rows("memories_recent", limit=limit, **scope.parameters()))
            ]
        return self.read({"found": {**scope.request(), **recent(scope.kinds, limit=limit)}})[0].recent

    def document_paths(self) -> list[str]:
        """All documents' paths, sorted."""
        return [row["path"] for row in self._rows("document_paths")]

    def _rows(self, name: str, **parameters: Any) -> list[DictRow]:
        return self.run(Ask(name, parameters))[0]


_fillers: dict[str, frozenset[str]] = {}
_FUNCTION = (
    "的了是在我你您他她它们这那有没不也都就和与要会能可以想请吗呢什么怎哪谁几多少个一些"
    "给把被让对为从到跟吧啊还很太再又只才但而且或如果因所得着过该应样"
)
_SMALL = re.compile(f"[0-9]{{1,2}}|[\u3041-\u309f]+|[{_FUNCTION}]{{1,2}}")
"""Numbers of a date; Hiragana, which are the endings of words; the function words of Chinese, and two of them."""


def searching(folders: Sequence[str], text: str, languages: Sequence[str], *, limit: int) -> dict[str, Any]:
    """Of a request's `found`: what the words of a question find of a subject's memories, and in documents."""
    return {
        "folders": folders,
        "question": text,
        "languages": languages,
        "sample": _SAMPLE,
        "candidates": _CANDIDATES,
        "best": limit,
        "next": _NEXT,
        "next_but_one": _NEXT_BUT_ONE,
    }


def nearing(vector: Sequence[float], *, set: str, floor: float, limit: int) -> dict[str, Any]:
    """Of a request's `found`: the memories of a subject that are nearest to a vector, no cosine below `floor`."""
    return {"vector": _halfvec(vector), "set": set, "floor": floor, "best": limit}


def recent(kinds: Sequence[str], *, limit: int) -> dict[str, Any]:
    """Of a request's `found`: the newest memories of some kinds."""
    return {"recent": kinds, "at_most": limit}


def nearest(scope: Scope, folders: Sequence[str], vector: Sequence[float], *, set: str, limit: int) -> tuple[Ask, ...]:
    """What asks for the memories of all of a tenant, and for documents, that are nearest to a vector: see `near`."""
    all_subjects = bool(scope.kinds) and scope.subject is None
    if not all_subjects and not folders:
        return ()
    values = {"vector": _halfvec(vector), "set": set, "limit": limit}
    asks = []
    if all_subjects:
        memories = {**values, "dimension": len(vector), **scope.parameters()}
        asks = [Ask("search_widely"), Ask("memories_by_vector", memories)]
    if folders:
        asks.append(Ask("documents_by_vector", {**values, "folders": list(folders)}))
    return tuple(asks)


def near(asks: Sequence[Ask], found: Sequence[list[DictRow]]) -> tuple[list[Match], list[DictRow]]:
    """Memories and documents out of the rows of `nearest`, each nearest first; `strength` is the cosine."""
    rows = dict(zip((ask.name for ask in asks), found, strict=True))
    return _matches(rows.get("memories_by_vector", [])), rows.get("documents_by_vector", [])


def _memories(columns: Sequence[Sequence[Any]] | None, *, now: datetime, subject: str) -> dict[str, Memory]:
    """Memories by id, out of what `docmem.found` says column by column."""
    if columns is None or columns[0] is None:
        return {}
    ids, paths, revisions, kinds, texts, dates, threads, turns, importance = columns
    since = list(map(datetime.fromisoformat, dates))
    ages = [(now - date).total_seconds() for date in since]
    rows = zip(
        ids, paths, revisions, kinds, texts, ages, since, repeat(subject), threads, map(tuple, turns), importance
    )
    return dict(zip(ids, map(Memory._make, rows), strict=True))


def _matches(rows: Iterable[Mapping[str, Any]]) -> list[Match]:
    """What statements of index.sql find, whose columns are named like the fields of `Memory` and `Match`."""
    return [
        Match(
            Memory._make(tuple(row[name]) if name == "turns" else row[name] for name in Memory._fields),
            row.get("strength", 0.0),
            None if row.get("shared") is None else frozenset(row["shared"]),
        )
        for row in rows
    ]


def _dated(rows: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    for row in rows or ():
        row["since"] = datetime.fromisoformat(row["since"])
    return rows or []


def _quoted(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def _weighed(words: Words, weights: Mapping[str, float]) -> dict[str, Any]:
    lexemes = list(words.lexemes)
    return {
        "query": words.query,
        "lexemes": lexemes,
        "each": [_quoted(lexeme) for lexeme in lexemes],
        "weights": [weights[lexeme] for lexeme in lexemes],
        "candidates": _CANDIDATES,
    }


def says_something(lexeme: str, filler: Collection[str]) -> bool:
    """Whether a word of a goal is one of content: no filler, no small number."""
    return lexeme not in filler and not _SMALL.fullmatch(lexeme)


@cache
def filler_words() -> str:
    """The words of filler.txt; its first lines say what it is."""
    return files("docmem").joinpath("filler.txt").read_text(encoding="utf-8").partition("\n\n")[2]


def _halfvec(vector: Sequence[float]) -> str:
    return _numbers(len(vector)) % tuple(vector)


@lru_cache(maxsize=8)
def _numbers(count: int) -> str:
    """A format of so many numbers: more digits than half precision has, a third of the characters of a float."""
    return f"[{','.join(['%.6g'] * count)}]"


class Reader:
    """Reads the index through a pool that opens at the first read. Nothing here takes longer than `timeout` seconds.

    `opening`: how long the pool may take instead, where a server may have to be started first.
    Safe between threads; `close` it when done. An embedded server that isn't running is started, aside.
    """

    def __init__(self, settings: Settings, *, timeout: float, opening: float | None = None) -> None:
        self._settings = settings
        self._timeout = timeout
        self._opening = opening
        self._closed = False
        self.after_fork()
        forks.anew(self)

    def after_fork(self) -> None:
        """Begin without a connection."""
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._opened: Future[ConnectionPool[Any]] | None = None
        self._watchdog = _Watchdog()
        self._gate, self._relay = Gate(CONNECTIONS), Relay(AT_ONCE)
        self._ended = threading.Event()
        self._answered = 0.0

    def read(self, tenant: str, work: Callable[[Index], T], *, seconds: float | None = None, ahead: bool = False) -> T:
        """Run `work` on a connection as `tenant`. `seconds` instead of `timeout`; `ahead` of the other reads.

        Raises `InvalidName`, `ServerUnavailable`, `RoleRefused`, `SchemaError`, `ConfigError`, `IndexFailed`, `Closed`.
        """
        tenant_name(tenant)
        if self._process != os.getpid():  # forked by something that Python wasn't told of
            self.after_fork()
        limit = self._timeout if seconds is None else seconds
        if limit < _LEAST:
            raise Busy("there is no time left to ask Postgres")
        began = time.monotonic()
        pool = self._pool(began + (limit if self._opening is None else self._opening))
        if self._opening is not None:
            began = time.monotonic()
        deadline = began + limit
        for _ in range(_TRIES):
            try:
                return self._once(pool, tenant, work, began, deadline, ahead=ahead)
            except PoolTimeout:
                raise self._late("no connection to Postgres", began) from None
            except (psycopg.OperationalError, psycopg.InterfaceError):
                # A pool hands out connections that a restart of the server has killed; the next may be good.
                if time.monotonic() > deadline:
                    raise self._late("no answer from Postgres", began) from None
            except psycopg.Error as error:
                self._answered = time.monotonic()
                raise IndexFailed(f"the index can't be read: {_short(error)}", hint="see: docmem doctor") from None
        raise ServerUnavailable("Postgres closes every connection", hint="see: docmem status")

    def tell(self, payload: str) -> None:
        """Send a notification over a connection of the pool. Raises like `read`."""
        self.read("docmem", lambda index: index.write(Ask("tell", {"payload": payload})))

    def _once(
        self,
        pool: ConnectionPool[Any],
        tenant: str,
        work: Callable[[Index], T],
        began: float,
        deadline: float,
        *,
        ahead: bool,
    ) -> T:
        gate = self._gate
        if not gate.enter(seconds=max(0.001, deadline - time.monotonic()), ahead=ahead):
            if (
                deadline - began < _MOST * self._timeout
            ):  # those inside have longer, and tell what is wrong, if anything is
                raise Busy("all connections to Postgres are in use", hint="see: docmem status")
            raise self._late("no connection to Postgres", began)
        try:
            return self._inside(pool, tenant, work, began, deadline)
        finally:
            gate.leave()

    def _inside(
        self, pool: ConnectionPool[Any], tenant: str, work: Callable[[Index], T], began: float, deadline: float
    ) -> T:
        # Not as a context: that one commits, and nothing is begun here that isn't ended here.
        connection = pool.getconn(timeout=max(0.001, deadline - time.monotonic()))
        try:
            with self._watchdog.guard(connection, deadline):
                return self._answer(connection, tenant, work, began, deadline)
        finally:
            pool.putconn(connection)

    def _answer(self, connection: Any, tenant: str, work: Callable[[Index], T], began: float, deadline: float) -> T:
        if deadline - time.monotonic() < _LEAST:
            raise Busy("there was no time left to ask Postgres")
        index = Index(connection, tenant, deadline=deadline, relay=self._relay)
        try:
            found = index.in_one_view(work)
        except (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable) as error:
            self._answered = time.monotonic()
            kind = Locked if isinstance(error, psycopg.errors.LockNotAvailable) else Slow
            waited, left = index.asked - began, deadline - index.asked
            if left <= waited:  # who had to wait for others had too little time
                kind = Busy
            by = ": somebody holds a lock" if kind is Locked else ""
            raise kind(f"no answer from Postgres within {left:.2g} s{by}", hint=_WHO) from None
        self._answered = time.monotonic()
        return found

    def _late(self, what: str, began: float) -> ServerUnavailable:
        """What to raise where nothing came in time: while others are answered, Postgres isn't away."""
        kind = Busy if self._answered > began else ServerUnavailable
        return kind(f"{what} within {self._timeout:g} s", hint="see: docmem status")

    def open(self, *, seconds: float) -> None:
        """Open the pool now, within `seconds`. Raises what is wrong with the index."""
        self._pool(time.monotonic() + seconds)

    def reset(self) -> None:
        """Leave the pool; the next read opens a new one. A pool that lost its server waits ever longer.

        One that is being opened stays: where connecting takes long (of several hosts the first is away), and each try
        began anew, it would never be done.
        """
        with self._lock:
            if self._opened is None or not self._opened.done():
                return
            opened, self._opened = self._opened, None
            # Whom a signal stopped between two steps took a connection or a place along.
            self._gate, self._relay = Gate(CONNECTIONS), Relay(AT_ONCE)
        _close_aside(opened)

    def close(self) -> None:
        """Close the pool, for good."""
        self._closed = True
        self._ended.set()
        self._watchdog.stop()
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None and opened.done() and opened.exception() is None:
            opened.result().close()
        elif opened is not None:
            opened.add_done_callback(_close_aside)

    def _pool(self, deadline: float) -> ConnectionPool[Any]:
        with self._lock:
            if self._closed:
                raise Closed("this reader was closed", hint="make another, or close it later")
            opened = self._opened
            if opened is None:
                opened = Future()
                if threads.aside(partial(self._open, opened), name="docmem-open") is None:
                    raise _no_thread()
                self._opened = opened
        try:
            return opened.result(timeout=max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            raise self._late("no connection to Postgres", time.monotonic()) from None
        except DocmemError:
            with self._lock:
                if self._opened is opened:
                    self._opened = None
            raise

    def _open(self, opened: Future[ConnectionPool[Any]]) -> None:
        try:
            with db.session(self._settings, "reader") as connection:
                db.check_schema(connection)
            pool = db.reader_pool(self._settings, max_size=CONNECTIONS)
            try:
                pool.wait(_OPEN_SECONDS)
            except PoolTimeout:
                pool.close()
                raise
            opened.set_result(pool)
        except DocmemError as error:
            opened.set_exception(_bare(error))
        except Exception as error:  # noqa: BLE001 it belongs to the thread that waits
            opened.set_exception(ServerUnavailable(f"Postgres can't be reached: {_short(error)}"))
        self._ended.wait(_LINGER)


def _no_thread() -> Busy:
    return Busy("no thread can be started to keep the deadline", hint="the process has too many threads, or ends")


def _bare(error: DocmemError) -> DocmemError:
    """An error without its past: it would hold the socket of each failed connection until the collector comes by."""
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)


def _close_aside(opened: Future[ConnectionPool[Any]]) -> None:
    if opened.exception() is None:
        pool = opened.result()
        threads.aside(partial(pool.close, timeout=_CLOSE_SECONDS), name="docmem-close")


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


_TICK = 0.02
_AWAKE = 1.0


class _Watchdog:
    """Shuts down the sockets of connections that are past their deadline, from one thread for all of them.

    While there is work it looks every 20 ms of its own accord: to wake it for each read cost as much as the read.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._due: dict[object, tuple[float, psycopg.Connection[Any]]] = {}
        self._thread: threading.Thread | None = None
        self._idle = False
        self._stopped = False

    def stop(self) -> None:
        """End the thread as soon as nobody is guarded any more, be it by another that came in just now."""
        with self._condition:
            self._stopped = True
            self._condition.notify_all()

    @contextlib.contextmanager
    def guard(self, connection: psycopg.Connection[Any], deadline: float) -> Iterator[None]:
        key = object()
        with self._condition:
            if self._thread is None:
                self._thread = threads.aside(self._run, name="docmem-watchdog")
                if self._thread is None:
                    raise _no_thread()
            self._due[key] = (deadline, connection)
            if self._idle:
                self._condition.notify()
        try:
            yield
        finally:
            with self._condition:
                self._due.pop(key, None)

    def _run(self) -> None:
        quiet_from = time.monotonic() + _AWAKE
        with self._condition:
            while self._due or not self._stopped:
                now = time.monotonic()
                for key, (deadline, connection) in list(self._due.items()):
                    if deadline <= now:
                        del self._due[key]
                        _shut(connection)
                if self._due:
                    quiet_from = now + _AWAKE
                self._idle = now > quiet_from
                self._condition.wait(None if self._idle else _TICK)
            self._thread = None


def _shut(connection: psycopg.Connection[Any]) -> None:
    """Make a connection fail for whoever waits on it. Its own descriptor stays open, so that nobody gets its number."""
    with contextlib.suppress(OSError, psycopg.Error):
        twin = socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM)
        with twin:
            twin.shutdown(socket.SHUT_RDWR)
