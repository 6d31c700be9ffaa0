"""Inject: an agent's packet in a turn, and never at the price of the turn.

Whatever fails, `Injector.packet` returns: a packet from the local files, or an empty one, that says in `degraded` what
was away. A broken server costs the first two turns a fifth of a second each and later ones nothing, until it is back.
Isolation alone fails closed: a tenant that can't be one, or a role that row-level security doesn't bind, is never
served.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import operator
import secrets
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from docmem import config, embedding, events, forks
from docmem.assembly import ALWAYS, CHUNKS, EPISODES, FACTS, STRATEGY, Gathered, Request, assemble, requested
from docmem.breaker import Breakers, Try
from docmem.cache import Cache
from docmem.config import Settings
from docmem.embedding import Embedder, QueryVector, QueryVectors
from docmem.errors import DocmemError, InputError, InvalidName, RoleRefused
from docmem.events import Observer, PacketMade
from docmem.fallback import Fallback
from docmem.index import Ask, Busy, Closed, Index, IndexFailed, Locked, Reader, Scope, Slow, recent
from docmem.listener import Listener, name_of
from docmem.names import agent_name, tenant_name
from docmem.packet import Packet, Tokenizer
from docmem.recall import KNOWLEDGE, Policies, Question, answer, asking, of_recent, policies
from docmem.recorder import Recorder, given_now
from docmem.runs import Runs

TURN_TIMEOUT = 0.2
"""Seconds that Postgres may hold up a turn."""

TTL = 30.0
"""Seconds that a packet is kept while changes are heard."""

DEAF_TTL = 0.25
"""Seconds that a packet is kept while nobody says what changed."""

PATIENCE = 30.0
"""Seconds for where nobody waits for a turn: the start of a process, or of a server."""

_CACHED = 2_048
_CACHED_BYTES = 2 * 2**20
"""Of packets that are kept: with it a process stays below 60 MB, of which the driver and an idle one take 56."""

_TENANTS = 4_096
_PREFERENCES = 100
_WRITING = 5.0
_RETRY_SECONDS = 0.5
_TRYING = 2.0
"""Seconds for a try aside: a connection that is made while the machine is busy takes longer than a turn waits."""

_UNFIT_SECONDS = 5.0
"""For which an embedder whose vectors don't fit a tenant's isn't asked for that one again."""

_SPARE = 0.03
"""Seconds past `timeout` that a turn still waits for the files."""

_RESERVED = 0.05
"""Seconds of a turn that the embedder leaves to Postgres, which takes a tenth of that."""

_QUICKLY = 0.25
"""Share of `timeout` for the number of a run, and for whatever is asked right after a failure: the two stand in one
turn, and a server that is well answers in a fraction of it."""

_SAME_TURN = 0.1
"""Seconds within which a packet follows what its turn waited for before: what that took, the packet has the less."""


class _Spent(NamedTuple):
    """When a turn last waited, and the seconds that it did: for a thread, and for the number of its run."""

    ended: float = -1e9
    for_thread: float = 0.0
    for_number: float = 0.0

    def before(self, began: float) -> _Spent:
        """What the same turn had spent when something of it began."""
        return self if 0 <= began - self.ended < _SAME_TURN else _NOTHING


_NOTHING = _Spent()
_spent: contextvars.ContextVar[_Spent] = contextvars.ContextVar("docmem_spent", default=_NOTHING)

_THREADS = 16
"""Turns of asynchronous callers at once."""

T = TypeVar("T")

_NOBODY_THERE = f"nobody-{secrets.token_hex(16)}"
"""A tenant that isn't there: what fails for it is no tenant's matter."""

_TABLES = ("tables",)
"""Opens where packets of several tenants fail one after another, or one subject's do, and shuts nobody out: is it the
tables of all? That is found out at once, aside."""

_RUNS = ("runs",)
"""Opens where the runs of several tenants can't be counted, one after another: whosever they are, the table is one."""

_NOBODY = "?"
"""Stands in the log for what can't be a tenant's name."""

_log = logging.getLogger("docmem.inject")


@dataclass(frozen=True, slots=True)
class _Rules:
    """A tenant's row of the index, and what it means."""

    row: Any
    policies: Policies
    channel: _Channel | None


class _Channel(NamedTuple):
    """The key of a tenant's notifications, and what the tenant is called there."""

    key: str
    tenant: str


class _Kept(NamedTuple):
    """A packet, whether what changes it is heard, and what its tenant and subject are called there.

    `good_for`: seconds until the first of the memories that it was chosen from ends.
    """

    packet: Packet
    good_for: float
    tenant: str | None = None
    subject: str = ""


def _bytes(kept: _Kept) -> int:
    """What a packet takes of memory, its key included; a span with what recall saw of it takes about 450 bytes."""
    return 1_000 + sys.getsizeof(kept.packet.text) + 450 * len(kept.packet.spans)


class Injector:
    """Makes packets. One for a process: it keeps a pool, a cache, a listener and a breaker. Safe between threads.

    `embedder` None means what `DOCMEM_EMBEDDING_MODEL` says. `opening`: seconds for the first connection, where it may
    take longer than `timeout`. `tokenizer` counts tokens exactly where the estimate won't do. `observe` is told of each
    packet (default: the log). `files`: while Postgres is away, packets come from the tenant's repo, if it is here.
    Under `DOCMEM_REQUIRE_MEMORY` it opens the index at once and raises what is wrong with it; otherwise nothing is
    opened before the first packet. Close it, so that what was recorded is written.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        embedder: Embedder | None = None,
        timeout: float = TURN_TIMEOUT,
        embedding_timeout: float = embedding.QUERY_TIMEOUT,
        ttl: float = TTL,
        opening: float | None = None,
        tokenizer: Tokenizer | None = None,
        observe: Observer = events.log,
        files: bool = True,
    ) -> None:
        self._settings = settings or config.settings()
        model = embedder or embedding.embedder(self._settings)
        self._vectors = QueryVectors(model, timeout=embedding_timeout) if model is not None else None
        self._timeout = timeout
        self._whole = max(timeout, embedding_timeout)
        self._tokenizer = tokenizer
        self._observe = observe
        self._ttl = ttl
        self._files = files
        self._closed = False
        self._writer = Reader(self._settings, timeout=timeout, opening=opening)
        self._reader = self._writer
        if self._settings.replica_dsn:
            at_replica = replace(self._settings, dsn=self._settings.replica_dsn)
            self._reader = Reader(at_replica, timeout=timeout, opening=opening)
        self.after_fork()
        forks.anew(self)
        if self._settings.require_memory:
            self._reader.open(seconds=PATIENCE)

    def after_fork(self) -> None:
        """Begin with nothing kept, nothing heard and nothing to record; the parent's goes on with the parent."""
        self._cache: Cache[tuple[object, ...], _Kept] = Cache(_CACHED, weigh=_bytes, most=_CACHED_BYTES)
        self._rules: Cache[str, _Rules] = Cache(_TENANTS)
        self._unfit: Cache[str, bool] = Cache(_TENANTS, ttl=_UNFIT_SECONDS)
        self._last_rules: _Rules | None = None
        self._listener = Listener(self._settings, tell=self._writer.tell, changed=self._changed, lost=self._cache.clear)
        self._recorder = Recorder(self._record)
        self._runs = Runs(self._count)
        self._fallback = Fallback(self._settings) if self._files else None
        self._breakers = Breakers(pause=_RETRY_SECONDS)
        # Where packets come from a replica, a primary that is away is no reason to go without them.
        self._counting = self._breakers if self._reader is self._writer else Breakers(pause=_RETRY_SECONDS)
        self._threads: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._warned = False

    @property
    def lost(self) -> int:
        """Packets of runs that could not be recorded."""
        return self._recorder.lost

    @property
    def hears(self) -> bool:
        """Whether changes are heard, so that a packet may be kept for `ttl` seconds and not only for a moment."""
        return self._listener.hears

    def packet(
        self,
        tenant: str,
        subject: str,
        goal: str | None = None,
        *,
        agent: str | None = None,
        run: int | None = None,
        blocks: Iterable[str] | None = None,
        documents: Sequence[str] = (),
        topics: Collection[str] | None = None,
        consumed: bool = True,
    ) -> Packet:
        """What a prompt should hold about `subject` (a key, or an id) for `goal`, the turn's question or task.

        `blocks`: only these (see `packet.BLOCKS`); `documents`: paths to show in full as well (those that no repo can
        have are left out, and counted in `omitted`). `topics`: facts, decisions and episodes of these alone. With a
        `run` (see `next_run`) what the last runs were given stands behind the rest, and `docmem trace` tells afterwards
        what this one was given; `consumed` False: it is only traced. Never raises; see `Packet.degraded`: `no_embedder`
        (configured, and not installed, or its vectors don't serve yet), `embedder_failed`, `files` (Postgres is away,
        this is from the local repo; the first turn of a person may be without that, too, while it is read), or, with an
        empty text, the code of what failed: `server_unavailable` (Postgres is away), `locked` (it isn't, and somebody
        holds a table), `slow` and `busy` (it took too long, for this or for what came before), or another.
        """
        return self._turn(time.monotonic(), tenant, subject, goal, agent, run, blocks, documents, topics, consumed)

    async def apacket(
        self,
        tenant: str,
        subject: str,
        goal: str | None = None,
        *,
        agent: str | None = None,
        run: int | None = None,
        blocks: Iterable[str] | None = None,
        documents: Sequence[str] = (),
        topics: Collection[str] | None = None,
        consumed: bool = True,
    ) -> Packet:
        """`packet`, in a thread of the injector's own: the loop's may all be busy with something else."""
        began = time.monotonic()
        return await self.aside(
            lambda: self._turn(began, tenant, subject, goal, agent, run, blocks, documents, topics, consumed)
        )

    async def aside(self, work: Callable[[], T]) -> T:
        """What `work` gives, in a thread of the injector's own."""
        if self._closed:
            return work()
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="docmem-turn")
            threads = self._threads
        asked = time.monotonic()

        def in_thread() -> T:
            began = time.monotonic()
            _spent.set(_Spent(began, for_thread=began - asked))
            return work()

        try:
            done = asyncio.get_running_loop().run_in_executor(threads, contextvars.copy_context().run, in_thread)
        except RuntimeError:  # it was closed just now, no thread can be started, or the interpreter ends
            return work()
        return await done

    def next_run(self, tenant: str, agent: str | None = None) -> int | None:
        """Count a run of an agent and return its number, one more than any before; None where that can't be done now.

        For hosts that don't number their runs. One write, which waits for no disk, and for a quarter of `timeout` at
        most: a packet is still to be made in the same turn. Never raises. A tenant that was never synced has no runs.
        """
        began = time.monotonic()
        try:
            return self._next_run(tenant, agent)
        finally:
            ended = time.monotonic()
            _spent.set(_Spent(ended, _spent.get().before(began).for_thread, ended - began))

    def _next_run(self, tenant: str, agent: str | None) -> int | None:
        key: tuple[str, ...] = ()
        try:
            tenant_name(tenant)
            name = agent_name("default" if agent is None else agent)
            if self._closed or self._counting.shut(tenant, _RUNS, ("runs", tenant)):
                return None
            key = "runs", tenant
            run = self._runs.next(tenant, name, seconds=_QUICKLY * self._timeout)
            self._counting.succeeded(_RUNS, key)
            return run
        except Exception as error:  # noqa: BLE001 the turn goes on, whatever it is
            _log.warning("a run goes without a number: %s", _code(error))
            if key:
                self._note_uncounted(tenant, name, error)
            return None

    def _count(self, tenant: str, agent: str, many: Callable[[], int], seconds: float) -> int | None:
        """Count some runs; the number of the first. See `Runs`."""

        def work(index: Index) -> int | None:
            _, counted = index.write(
                Ask("lock_runs", {"agent": agent}), Ask("next_runs", {"agent": agent, "runs": many()})
            )
            return int(counted[0]["first"]) if counted else None

        return self._writer.read(tenant, work, seconds=seconds, ahead=True)

    def _count_one(self, tenant: str, agent: str) -> None:
        self._count(tenant, agent, lambda: 1, _QUICKLY * self._timeout)

    def flush(self, *, seconds: float = 5.0) -> bool:
        """Wait until what runs were given is recorded, for so long at most; whether it is."""
        return self._recorder.flush(seconds=seconds)

    def close(self) -> None:
        """Write what waits to be recorded, and close the connections. Packets after it are empty: `closed`."""
        self._closed = True
        self._breakers.close()
        self._counting.close()
        self._recorder.close()
        self._listener.close()
        self._writer.close()
        self._reader.close()
        with self._lock:
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False)

    def __enter__(self) -> Injector:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # ------------------------------------------------------------------------------------------------- the turn

    def _turn(
        self,
        began: float,
        tenant: str,
        subject: str,
        goal: str | None,
        agent: str | None,
        run: int | None,
        blocks: Iterable[str] | None,
        documents: Sequence[str],
        topics: Collection[str] | None,
        consumed: bool,
    ) -> Packet:
        name, number = _NOBODY, None
        try:
            name = tenant_name(tenant)
            request = requested(
                tenant, subject, goal, agent=agent, run=run, blocks=blocks, documents=documents, topics=topics
            )
            number = request.run
            spent = _spent.get().before(began)
            made = self._guarded(request, began - spent.for_thread - spent.for_number)
            if request.impossible:
                _log.warning("%d documents of a packet are left out: no repo can have their paths", request.impossible)
                made = replace(made, omitted=made.omitted + request.impossible)
            if number is not None and made.spans:
                self._recorder.put(given_now(name, request.subject, request.agent, number, made, consumed=consumed))
        except Exception as error:  # noqa: BLE001 the turn goes on, whatever it is
            made = Packet(degraded=self._said(error))
        _spent.set(_NOTHING)  # or the next turn of this thread, which may follow at once, had the less for this one
        self._tell(name, number, made, time.monotonic() - began)
        return made

    def _guarded(self, request: Request, began: float) -> Packet:
        if self._closed:
            raise Closed("this injector was closed", hint="make another, or close it later")
        again = _again(lambda: self._fresh(request, time.monotonic(), request.key))
        why = self._breakers.shut(request.tenant, request.whom, again=again)
        if why is not None:
            return self._instead(request, why, wait=0.0)
        key = request.key
        kept = self._kept(key)
        if kept is not None:
            return kept
        ends = began + self._timeout + _SPARE
        try:
            made = self._fresh(request, began, key)
        except Exception as error:  # noqa: BLE001 the files may serve the turn, whatever it is
            code = self._said(error)
            self._note_failure(request, error, again)
            return self._instead(request, code, wait=max(0.0, ends - time.monotonic()))
        self._breakers.succeeded(None, _TABLES, request.tenant, request.whom)
        self._warned = False
        return made

    def _note_failure(self, request: Request, error: Exception, again: Try) -> None:
        """A server that is away, or a table that somebody locks, is so for all. What fails otherwise may be the rows of
        one subject, garbage or too many, or all of its tenant's.

        That all connections are in use is nobody's fault.
        """
        if isinstance(error, Busy):
            return
        if _is_outage(error):
            self._shut_all(error)
            return
        tenant, subject = request.whom
        why, tables = _code(error), _again(self._try_tables)
        if isinstance(error, Locked):
            self._shut_all(error)
            self._breakers.failed(_TABLES, why, tables, surely=True)
            return
        opened = self._breakers.failed(request.whom, why, again)
        self._breakers.failed(_TABLES, why, tables, by=tenant, surely=opened)
        # Who fails alone shuts the tenant only where nobody else of it was answered meanwhile.
        alone = opened and self._breakers.failing(tenant)
        self._breakers.failed(tenant, why, again, by=subject, surely=alone)
        self._cache.drop(lambda key, _: key[0] == tenant)

    def _note_uncounted(self, tenant: str, agent: str, error: Exception) -> None:
        """A run couldn't be counted: by a tenant's own lock, or a table's, or because Postgres is away."""
        if isinstance(error, Busy):
            return
        if _is_outage(error) and self._counting is self._breakers:
            self._shut_all(error)
        elif _is_outage(error):
            self._counting.failed(None, _code(error), _again(partial(self._try_server, self._writer)))
        else:
            self._counting.failed(("runs", tenant), _code(error), _again(lambda: self._count_one(tenant, agent)))
            nobodys = _again(lambda: self._count_one(_NOBODY_THERE, agent))
            self._counting.failed(_RUNS, _code(error), nobodys, by=tenant)

    def _shut_all(self, error: Exception, *, surely: bool = False) -> None:
        """Note what fails whoever asks."""
        again = _again(self._try_anew if _is_outage(error) else self._try_index)
        if self._breakers.failed(None, _code(error), again, surely=surely):
            self._cache.clear()

    # ------------------------------------------------------------------------- what is tried aside, for no turn to wait

    def _try_tables(self) -> None:
        """What fails for who has no rows at all is no tenant's matter."""
        try:
            self._touch()
        except Busy:
            raise
        except Exception as error:  # whatever it is, it is so for all; and it is raised again
            self._shut_all(error, surely=True)
            raise

    def _try_anew(self) -> None:
        self._reader.reset()
        self._try_index()

    def _try_index(self) -> None:
        self._try_server(self._reader)
        self._touch()

    def _try_server(self, reader: Reader) -> None:
        """Connect anew, and ask for next to nothing."""
        try:
            reader.read(_NOBODY_THERE, Index.tenant, seconds=max(_TRYING, self._timeout))
        except DocmemError as error:
            if _is_outage(error):
                reader.reset()
            raise

    def _touch(self) -> None:
        """Read all that a packet is made of, of a tenant that isn't there, within a turn's time."""
        request = Request(_NOBODY_THERE, _NOBODY_THERE, goal=_NOBODY_THERE)
        rules = policies({"revision": ""})
        self._reader.read(_NOBODY_THERE, lambda index: gather(index, request, rules, None))

    def _instead(self, request: Request, code: str, *, wait: float) -> Packet:
        """What the files give, or nothing but the reason."""
        if code == RoleRefused.code:
            return Packet(degraded=code)
        if self._fallback is None:
            return Packet(degraded=code)
        fallback = self._fallback
        made = self._laid(lambda tokenizer: fallback.packet(request, wait=wait, tokenizer=tokenizer))
        return made or Packet(degraded=code)

    def _laid(self, lay: Callable[[Tokenizer | None], T]) -> T:
        """What is laid out by the host's tokenizer, or by the estimate where that fails on one of the texts."""
        if self._tokenizer is None:
            return lay(None)
        try:
            return lay(partial(_counted, self._tokenizer))
        except _TokenizerFailed as error:
            _log.warning("the tokenizer failed, so tokens are estimated: %s", error)
            return lay(None)

    def _kept(self, key: tuple[object, ...]) -> Packet | None:
        found = self._cache.aged(key)
        if found is not None:
            age, kept = found
            if age <= min(self._ttl, kept.good_for) and (kept.tenant is not None or age <= DEAF_TTL):
                return replace(kept.packet, cached=True)
        return None

    def _fresh(self, request: Request, began: float, key: tuple[object, ...]) -> Packet:
        vector = None
        ends = began + self._timeout
        if self._vectors is not None and request.goal and request.searches:
            ends = began + self._whole
            if len(self._unfit) and self._unfit.get(request.tenant):
                vector = QueryVector(degraded="embedder_failed")
            else:
                vector = self._vectors(request.goal, within=ends - _RESERVED - time.monotonic())
        mark = self._listener.mark()
        at_most = _QUICKLY * self._timeout if self._breakers.failing(None) else self._timeout
        made, channel, good_for = self._made(request, vector, seconds=max(0.0, min(at_most, ends - time.monotonic())))
        if self._reader is self._writer:  # what the primary says that a replica doesn't have yet would be kept for long
            self._listener.start()
        if made.degraded == "embedder_failed" and vector is not None and vector.vector:
            self._note_unfit(request)
        if made.degraded is None:
            self._keep(key, request.subject, made, good_for, channel, mark)
        return made

    def _note_unfit(self, request: Request) -> None:
        """The embedder answered, and not as it did for this tenant's texts: its other tenants may be as it is now."""
        self._unfit.put(request.tenant, True)
        if self._vectors is not None and request.goal:
            self._vectors.forget(request.goal)

    def _made(
        self, request: Request, vector: QueryVector | None, *, seconds: float
    ) -> tuple[Packet, _Channel | None, float]:
        """A packet of the index, the tenant's channel, and the seconds until the first memory of it ends."""
        known = self._rules.get(request.tenant)
        # Most tenants serve alike: a new one is read by the rules of another, and again if its own are different.
        guessed = known or self._last_rules

        def work(index: Index) -> tuple[_Rules | None, Gathered]:
            rules = guessed or _rules(index.tenant())
            if rules is None:
                return None, Gathered()
            row, gathered = gather(index, request, rules.policies, vector)
            if row is not None and row == rules.row:
                return rules, gathered
            fresh = _rules(row)
            if fresh is not None and _serves_alike(fresh.row, rules.row):
                return fresh, gathered
            if fresh is None:
                return None, gathered
            return fresh, gather(index, request, fresh.policies, vector)[1]

        asked = time.monotonic()
        rules, gathered = self._reader.read(request.tenant, work, seconds=seconds)
        if rules is None:
            return Packet(degraded="not_synced"), None, 0.0
        if rules is not known:
            self._rules.put(request.tenant, rules)
            self._last_rules = rules
        lay = partial(assemble, request, rules.policies, gathered, now=datetime.now(UTC))
        made = self._laid(lambda tokenizer: lay(tokenizer=tokenizer))
        return (
            made,
            rules.channel,
            gathered.good_for - (time.monotonic() - asked),
        )  # the index counts from when it was asked

    def _keep(
        self,
        key: tuple[object, ...],
        subject: str,
        made: Packet,
        good_for: float,
        channel: _Channel | None,
        mark: int | None,
    ) -> None:
        """Cache a packet, unless something changed while it was made. One from before anything was heard ages soon."""
        if channel is None or mark is None:
            self._cache.put(key, _Kept(made, good_for))
            return
        with self._listener.lock:
            if not self._listener.is_news(channel.tenant, mark):
                self._cache.put(key, _Kept(made, good_for, channel.tenant, name_of(channel.key, subject)))

    def _changed(self, tenant: str, subjects: frozenset[str] | None) -> None:
        self._cache.drop(lambda _, kept: kept.tenant == tenant and (subjects is None or kept.subject in subjects))

    # ------------------------------------------------------------------------------------------------- around it

    def _record(self, tenant: str, asks: Sequence[Ask]) -> None:
        self._writer.read(tenant, lambda index: index.write(*asks), seconds=_WRITING)

    def _said(self, error: Exception) -> str:
        """Log what failed; returns its code. The code and the hint only: a message may hold what somebody wrote."""
        if isinstance(error, DocmemError):
            hint = f" ({error.hint})" if error.hint else ""
            _log.log(self._level(error), "no packet from the index: %s%s", error.code, hint)
        else:
            _log.error("packet failed: %s", type(error).__name__)
        return _code(error)

    def _level(self, error: DocmemError) -> int:
        """An outage is CRITICAL once, until it is over; a caller's mistake or a refused role is an error each time."""
        if isinstance(error, InvalidName | InputError | RoleRefused | Closed):
            return logging.ERROR
        level = logging.WARNING if self._warned else logging.CRITICAL
        self._warned = True
        return level

    def _tell(self, tenant: str, run: int | None, made: Packet, seconds: float) -> None:
        event = PacketMade(
            tenant=tenant,
            run=run,
            chars=len(made.text),
            tokens=made.tokens,
            items=len(made.spans),
            candidates=made.candidates,
            omitted=made.omitted,
            scrubbed=made.scrubbed,
            cached=made.cached,
            degraded=made.degraded,
            seconds=seconds,
        )
        try:
            self._observe(event)
        except (Exception, SystemExit) as error:  # noqa: BLE001 an observer is the host's, and no reason to lose a turn
            _log.error("the observer failed: %s", type(error).__name__)


class _TokenizerFailed(Exception):
    """The host's tokenizer raised on a text, or gave no number."""


def _counted(tokenizer: Tokenizer, text: str) -> int:
    try:
        tokens = operator.index(tokenizer(text))
    except (Exception, SystemExit) as error:  # noqa: BLE001 it is the host's
        raise _TokenizerFailed(type(error).__name__) from None
    if tokens < 0:
        raise _TokenizerFailed(f"{tokens} tokens")
    return tokens


def _code(error: Exception) -> str:
    return error.code if isinstance(error, DocmemError) else "error"


def _what_fails(work: Callable[[], object]) -> str | None:
    """Do it; the code of what failed."""
    try:
        work()
    except Exception as error:  # noqa: BLE001 whatever it is, a thread that ended here would leave memory off
        return _code(error)
    return None


def _again(work: Callable[[], object]) -> Try:
    return partial(_what_fails, work)


def _is_outage(error: Exception) -> bool:
    """Whether Postgres is away for every tenant, as against one whose rows are garbage or too many."""
    return isinstance(error, DocmemError) and not isinstance(error, IndexFailed | Slow | InputError | InvalidName)


def _rules(row: Any) -> _Rules | None:
    if row is None:
        return None
    key = row.get("channel")
    return _Rules(row, policies(row), None if key is None else _Channel(key, name_of(key, "tenant")))


def _serves_alike(one: Any, other: Any) -> bool:
    """Whether two rows of a tenant differ in nothing that a search depends on."""
    aside = {"revision", "channel", "agents", "budgets"}
    return {key: value for key, value in one.items() if key not in aside} == {
        key: value for key, value in other.items() if key not in aside
    }


def gather(index: Index, request: Request, rules: Policies, vector: QueryVector | None) -> tuple[Any, Gathered]:
    """What the index holds for a request, and the tenant's row as it is now: in one round trip."""
    wanted = _wanted(request, rules)
    asked = None
    if request.searches and request.goal is not None:
        folders = KNOWLEDGE if rules.documents else ()
        question = Question(
            request.goal, request.subject, request.agent, _kinds(request), folders, topics=request.topics, is_goal=True
        )
        asked = asking(question, rules, vector)
        wanted["found"] |= asked.request
    read, nearby = index.read(wanted, *(asked.nearest if asked else ()))
    found, degraded = of_recent(read.recent, rules, limit=_PREFERENCES), None
    if asked is not None:
        result = answer(asked, rules, read, nearby)
        found = result.hits
        # Without an embedder, searching words alone is what was chosen.
        degraded = None if vector is None and result.degraded == "no_embedder" else result.degraded
    return read.tenant, Gathered(
        standing=read.standing,
        asked=read.documents,
        profile=read.profile,
        preferences=of_recent(read.preferences, rules, limit=_PREFERENCES),
        found=found,
        used=frozenset(read.used),
        degraded=degraded,
        good_for=read.good_for,
    )


_KINDS = (("facts", FACTS), ("episodes", EPISODES))


def _kinds(request: Request) -> tuple[str, ...]:
    """Kinds of memories that recall gives to the blocks that are asked for."""
    return tuple(kind for block, kinds in _KINDS for kind in kinds if block in request.blocks)


def _wanted(request: Request, rules: Policies) -> dict[str, Any]:
    """What is read by its key, as `docmem.read` names it."""
    of_memories = Scope(request.subject, request.agent, (), rules.retention, request.topics).request()
    if "preferences" in request.blocks:
        of_memories |= {"preferences": True, "at_most": _PREFERENCES}
    if request.recalls and request.goal is None:
        of_memories |= recent(_kinds(request), limit=_PREFERENCES)
    wanted: dict[str, Any] = {
        "subject": request.subject,
        "agent": request.agent,
        "chunks": CHUNKS + 1,  # one more says that there are more
        "folders": [block for block in ALWAYS if block in request.blocks],
        "strategy": STRATEGY if "strategy" in request.blocks else None,
        "persona": "persona" in request.blocks,
        "found": of_memories,
    }
    if request.documents:
        wanted["paths"] = request.documents
    if request.run is not None and request.recalls and rules.weights.stale_runs:
        wanted |= {"run": request.run, "runs": rules.weights.stale_runs}
    return wanted
