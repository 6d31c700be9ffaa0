"""Mirror a tenant's branch into Postgres: changes, rows and watermark in one transaction, then vectors.

One sync at a time for a tenant. A crash anywhere means: run it again.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import psycopg

from docmem import db, git, maintenance, receive, repository, root
from docmem.config import Settings
from docmem.embedding import Embedder
from docmem.errors import DocmemError, GitError, GuardStop, ServerUnavailable
from docmem.git.walk import PIECE, Piece, listing, walk
from docmem.layout import CONFIG, place
from docmem.model import Memory
from docmem.projection import VERSION
from docmem.repository import Repository
from docmem_sync import branch, embed, guard, hot, migrate, reading, statistics
from docmem_sync.along import Along
from docmem_sync.backlog import Backlog, settle
from docmem_sync.beside import Beside
from docmem_sync.guard import Announced
from docmem_sync.ledger import DUPLICATE, At, Ledger, Standing, Waiting
from docmem_sync.reading import Broken, Told
from docmem_sync.rows import DEFAULT_CONFIG
from docmem_sync.store import Busy, Known, Mark, Store, open_lock

LOCK_SECONDS = 10.0
"""How long a sync waits for another one of the same tenant."""

JOBS = 4
"""Tenants that are synced at once, where nothing else is said: git and Postgres work while we parse."""

ALONG_MAX = 20_000
"""More changes than this are worth building the index anew beside the served one: in bounded memory. Deletions count
half: nothing but an id and a path is held of them."""

_PLAN_LINES = 20
_log = logging.getLogger("docmem.sync")
_metrics = logging.getLogger("docmem.metrics")


class SyncFailed(DocmemError):
    """A sync that a bug of ours ended."""

    code = "internal"
    exit_code = 3


@dataclass(frozen=True, slots=True)
class TenantSync:
    """What one sync did. `upserts`, `deletes` and `unchanged` count files; `quarantined` is all that waits now."""

    tenant: str
    before: str | None = None
    after: str | None = None
    upserts: int = 0
    deletes: int = 0
    unchanged: int = 0
    embedded: int = 0
    pending_embeddings: int = 0
    reconciled: bool = False
    quarantined: tuple[Broken, ...] = ()
    seconds: float = 0.0
    error: DocmemError | None = None

    @property
    def outcome(self) -> str:
        """`ok`, `unchanged`, or the code of what stopped it."""
        if self.error is not None:
            return self.error.code
        return "unchanged" if self.before == self.after else "ok"

    def as_json(self) -> dict[str, Any]:
        """A row of `sync --json`; `error` only where there is one."""
        shown: dict[str, Any] = {
            "tenant": self.tenant,
            "from": self.before,
            "to": self.after,
            "upserts": self.upserts,
            "deletes": self.deletes,
            "unchanged": self.unchanged,
            "embedded": self.embedded,
            "pending_embeddings": self.pending_embeddings,
            "reconciled": self.reconciled,
            "quarantined": [{"path": item.path, "code": item.code, "line": item.line} for item in self.quarantined],
            "seconds": round(self.seconds, 3),
        }
        if self.error is not None:
            shown["error"] = {"code": self.error.code, "message": self.error.message, "hint": self.error.hint}
        return shown


def sync_all(
    settings: Settings,
    tenants: Iterable[str],
    *,
    confirm_deletes: bool = False,
    rebuild: bool = False,
    embedder: Embedder | None = None,
    jobs: int = JOBS,
) -> list[TenantSync]:
    """Sync several tenants, up to `jobs` at once. What stops one (see its `error`) doesn't stop the others, but a
    server that's away does.

    All are mirrored before any is embedded, and then each in its turn.
    """
    with connected(settings) as connection:
        many = _Many(settings, list(tenants), confirm_deletes, rebuild)
        done = many.run(connection, jobs)
        return done if embedder is None else _embedded(settings, connection, done, embedder)


class _Many:
    """Several tenants' syncs, each taken by whichever session is free."""

    def __init__(self, settings: Settings, tenants: Sequence[str], confirm_deletes: bool, rebuild: bool) -> None:
        self._settings = settings
        self._done: list[TenantSync | None] = [None] * len(tenants)
        self._confirm_deletes = confirm_deletes
        self._rebuild = rebuild
        self._left: Iterator[tuple[int, str]] = iter(enumerate(tenants))
        self._lock = threading.Lock()

    def run(self, connection: psycopg.Connection[Any], jobs: int) -> list[TenantSync]:
        """What became of each, in order. `connection` is one of the sessions."""
        more = min(jobs, len(self._done)) - 1
        if more < 1:
            self._work(connection)
        else:
            with ThreadPoolExecutor(more) as pool:
                helpers = [pool.submit(self._help) for _ in range(more)]
                self._work(connection)
                for helper in helpers:
                    helper.result()
        return [one for one in self._done if one is not None]

    def _help(self) -> None:
        with db.session(self._settings, "sync") as connection:
            self._work(connection)

    def _work(self, connection: psycopg.Connection[Any]) -> None:
        while (taken := self._take()) is not None:
            number, tenant = taken
            try:
                self._done[number] = mirror(
                    self._settings, connection, tenant, confirm_deletes=self._confirm_deletes, rebuild=self._rebuild
                )
            except BaseException:
                with self._lock:
                    self._left = iter(())  # nobody begins another
                raise

    def _take(self) -> tuple[int, str] | None:
        with self._lock:
            return next(self._left, None)


def mirror(
    settings: Settings,
    connection: psycopg.Connection[Any],
    tenant: str,
    *,
    confirm_deletes: bool = False,
    rebuild: bool = False,
    patience: float = LOCK_SECONDS,
) -> TenantSync:
    """Bring a tenant's rows to its branch's head, with a connection of `connected`. What stops it is its `error`.

    `patience`: how many seconds to wait for another sync of the tenant; then the error is `store.Busy`.
    Raises `ServerUnavailable`: that stops the others too.
    """
    try:
        return _Job(connection, repository.open(settings, tenant), confirm_deletes, rebuild, patience).run()
    except ServerUnavailable:
        raise
    except DocmemError as error:
        error.hint = error.hint or "see what is wrong, and what mends it: docmem doctor"
        return _counted(TenantSync(tenant, error=error))
    except Exception as error:  # noqa: BLE001 a door: a bug that one tenant's commits find stops no other's sync
        known = root.explanation(error, settings.root) if isinstance(error, OSError) else None
        return _counted(TenantSync(tenant, error=known or _bug(tenant, error)))


def _bug(tenant: str, error: Exception) -> SyncFailed:
    """A fault of ours as a tenant's error. The log has where it is, and nothing of what anybody wrote."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    _log.error("%s: %s in %s, line %d", tenant, type(error).__name__, where.filename, where.lineno or 0)
    return SyncFailed(
        f"{tenant}: a bug of docmem ended its sync ({type(error).__name__} in {Path(where.filename).name}, line "
        f"{where.lineno}); what was served stays served",
        hint="please report this line; the other tenants are synced",
    )


def _counted(done: TenantSync) -> TenantSync:
    """A sync, once its counts are logged; never content."""
    _metrics.info(
        "sync tenant=%s outcome=%s upserts=%d deletes=%d quarantined=%d reconciled=%s seconds=%.3f",
        done.tenant, done.outcome, done.upserts, done.deletes, len(done.quarantined), done.reconciled, done.seconds,
    )  # fmt: skip
    return done


def sync_tenant(
    settings: Settings,
    tenant: str,
    *,
    confirm_deletes: bool = False,
    rebuild: bool = False,
    embedder: Embedder | None = None,
) -> TenantSync:
    """Bring a tenant's rows to its branch's head, and embed them with `embedder` (None: no vectors are made).

    `rebuild` reads every file again; vectors of unchanged texts stay. Raises `NotFound` (no such tenant or branch),
    `GuardStop` (more deletions than a person should leave unread), `TryAgain` and what `db.connect` raises.
    """
    repo = repository.open(settings, tenant)
    with connected(settings) as connection:
        done = _Job(connection, repo, confirm_deletes, rebuild).run()
        return done if embedder is None else _embedded(settings, connection, [done], embedder)[0]


def reembed_tenant(settings: Settings, tenant: str, *, embedder: Embedder, again: bool = False) -> tuple[int, int]:
    """Give every row of a tenant a vector of this model; see `embed.reembed`. Raises what `db.connect` raises."""
    with connected(settings) as connection:
        made, left = embed.reembed(settings, connection, tenant, embedder=embedder, again=again)
        hot.settle(settings, connection, tenant)
        return made, left


def _embedded(
    settings: Settings, connection: psycopg.Connection[Any], done: Sequence[TenantSync], embedder: Embedder
) -> list[TenantSync]:
    """The syncs with what was embedded after them."""
    backlog = Backlog(embedder, settle=partial(settle, settings, connection))
    backlog.add(one.tenant for one in done if one.error is None and one.after is not None)
    with db.explained(connection):
        while backlog.turn(connection):
            pass
        return [
            replace(
                one,
                embedded=backlog.counts.get(one.tenant, 0),
                pending_embeddings=embed.pending(connection, one.tenant, model=embedder.model),
            )
            for one in done
        ]


@contextmanager
def connected(settings: Settings) -> Iterator[psycopg.Connection[Any]]:
    """A sync session on a schema that is up to date."""
    with db.session(settings, "sync") as connection:
        migrate.ensure(settings, connection)
        yield connection


@dataclass(frozen=True)
class _Job:
    """One tenant's sync."""

    connection: psycopg.Connection[Any]
    repo: Repository
    confirm_deletes: bool
    rebuild: bool
    patience: float = LOCK_SECONDS

    def run(self) -> TenantSync:
        started = time.monotonic()
        with db.explained(self.connection):
            done = self._at_rest() or self._at_work()
        statistics.refresh(self.repo.settings, self.repo.tenant, done.upserts)
        if done.deletes:
            hot.settle(self.repo.settings, self.connection, self.repo.tenant)
        maintenance.if_due(self.repo)
        return _counted(replace(done, seconds=time.monotonic() - started))

    def _at_rest(self) -> TenantSync | None:
        """What is said where there is nothing to do: for that nobody is waited for, and nothing is locked."""
        with db.tenant_transaction(self.connection, self.repo.tenant) as cursor:
            store = Store(cursor, self.repo.tenant)
            state = store.state()
            head = branch.head(self.repo, state.revision if state else None)
            done = TenantSync(self.repo.tenant, before=state.revision if state else None, after=head)
            if state is not None and state.revision == head and not self._is_anew(state):
                done = self._said(store, done, files=state.files or 0, upserts=0)
            elif (head, state) != (None, None):
                return None
            store.prune()
            return done

    def _at_work(self) -> TenantSync:
        open_lock(self.connection, self.repo.tenant)
        with db.tenant_transaction(self.connection, self.repo.tenant) as cursor:
            store = Store(cursor, self.repo.tenant)
            self._lock(store)
            done = self._mirror(store)
            store.prune()
            return done

    def _lock(self, store: Store) -> None:
        deadline = time.monotonic() + self.patience
        while not store.try_lock():
            if time.monotonic() >= deadline:
                raise Busy(
                    f"another sync of {self.repo.tenant} is at work for {self.patience:.0f} s",
                    hint="run it again later",
                )
            time.sleep(0.02)

    def _is_anew(self, state: Mark) -> bool:
        """Whether every file is to be read."""
        return self.rebuild or state.projection != VERSION or state.recorded is None or state.files is None

    def _mirror(self, store: Store) -> TenantSync:
        state = store.state()
        head = branch.head(self.repo, state.revision if state else None)
        done = TenantSync(self.repo.tenant, before=state.revision if state else None, after=head)
        if head is None:
            return done
        if state is None or self._is_anew(state):
            return self._beside(store, head, done)
        if state.revision == head:
            return self._said(store, done, files=state.files or 0, upserts=0)
        pieces = self._since(state.revision, head)
        if pieces is None:
            _log.warning(
                "%s: the indexed revision %s is no longer part of main; every file is compared",
                self.repo.tenant,
                done.before,
            )
            return replace(self._beside(store, head, done), reconciled=True)
        return self._along(store, state, pieces, done) or self._beside(store, head, done)

    def _since(self, indexed: str, head: str) -> list[Piece] | None:
        """The commits after the indexed one; None where that isn't on the first-parent chain any more, or not there.

        Of too many changes the first are enough: see `_along`.
        """
        pieces: list[Piece] = []
        weight = 0.0
        try:
            for piece in walk(self.repo.git_dir, head, since=indexed):
                if not pieces and piece.commit.parent != indexed:
                    return None
                pieces.append(piece)
                weight += _weight(piece)
                if weight > ALONG_MAX:
                    break
        except GitError:
            if git.has_commit(self.repo.git_dir, indexed):
                raise
            return None
        return pieces or None

    def _along(self, store: Store, state: Mark, pieces: Sequence[Piece], done: TenantSync) -> TenantSync | None:
        """Bring the index along; None where that takes looking at all commits: a file whose id is another's waits for
        it, and who has waited longest isn't known here; or there are too many changes."""
        if sum(map(_weight, pieces)) > ALONG_MAX:
            return None
        known = Known.begin(store)
        waiting = dict(known.standing.waiting)
        if any(item.broken.code == DUPLICATE for item in waiting.values()) and _touch_memory(pieces):
            return None
        book = Along()
        ledger = Ledger(known.standing, book, partial(reading.load, self.repo.git_dir))
        announced = Announced(receive.confirmed(self.repo.git_dir))
        at = At(0, state.revision, state.recorded or 0)
        for group in _groups(pieces):
            told = list(reading.tell(self.repo.git_dir, [touch for piece in group for touch in piece.touches]))
            known.bring(*_asked(told))
            at = _feed(ledger, announced, at, group, iter(told))
        deleted = book.deleted(known)
        self._guard(announced.lacks(deleted), state.files or 0)
        book.write(known)
        _notify(store, book.touched(known))
        before = {path: (item.broken, item.since) for path, item in waiting.items()}
        self._write_waiting(store, known.standing, before)
        files = (state.files or 0) + known.grown()
        store.write_state(at, files=files)
        return self._said(store, done, files=files, upserts=book.upserts(), deletes=len(deleted))

    def _beside(self, store: Store, head: str, done: TenantSync) -> TenantSync:
        """Build the index anew beside what is served, and swap it in."""
        git_dir = self.repo.git_dir
        book = Beside(store, ((reading.printable(path), blob) for path, blob in listing(git_dir, head)))
        load = partial(reading.load, git_dir)
        ledger = Ledger(Standing(), book, load)
        announced = Announced(receive.confirmed(git_dir))
        at = At(-1, "", 0)
        for group in _groups(walk(git_dir, head)):
            told = reading.tell(git_dir, [touch for piece in group for touch in piece.touches])
            at = _feed(ledger, announced, at, group, told)
        first = book.first()
        if not ledger.standing.has_config:
            ledger.standing.waiting.setdefault(CONFIG, Waiting(reading.no_config(), first))
        book.close(ledger, load)
        deleted = book.deleted()
        state = store.state()
        self._guard(announced.lacks(deleted), state.files if state and state.files is not None else len(deleted))
        store.write_config(*(book.settings or (DEFAULT_CONFIG, None, first.revision)))
        upserts = book.swap()
        self._write_waiting(store, ledger.standing, store.quarantine())
        if upserts or deleted:
            store.notify(None)
        files = ledger.standing.files
        store.write_state(at, files=files)
        return self._said(store, done, files=files, upserts=upserts, deletes=len(deleted))

    def _write_waiting(self, store: Store, standing: Standing, before: Mapping[str, tuple[Broken, At]]) -> None:
        """What waits, with the reason for files that hold the id of another."""
        claims = {path: item.claims for path, item in standing.waiting.items() if item.claims is not None}
        served = {row["id"]: row["path"] for row in store.memories(set(claims.values()), ())} if claims else {}
        waiting = dict(standing.waiting)
        for path, memory in claims.items():
            item = waiting[path]
            told = reading.duplicate(self.repo.git_dir, item.broken, memory, served.get(memory) or "another file")
            waiting[path] = replace(item, broken=told)
        store.write_quarantine(waiting, before)

    def _said(self, store: Store, done: TenantSync, *, files: int, upserts: int, deletes: int = 0) -> TenantSync:
        waiting = tuple(broken for broken, _ in store.quarantine().values())
        return replace(done, upserts=upserts, deletes=deletes, unchanged=max(0, files - upserts), quarantined=waiting)

    def _guard(self, unannounced: Sequence[str], served: int) -> None:
        if self.confirm_deletes or not guard.stops(len(unannounced), served):
            return
        lines = [f"delete {path}" for path in unannounced[:_PLAN_LINES]]
        if len(unannounced) > _PLAN_LINES:
            lines.append(f"and {len(unannounced) - _PLAN_LINES} more")
        raise GuardStop(
            f"{self.repo.tenant}: this would delete {len(unannounced)} of {served} rows, and no commit announces "
            "it; nothing was changed",
            hint=f"if it is meant: docmem sync {self.repo.tenant} --confirm-deletes",
            plan=lines,
        )


def _notify(store: Store, paths: Sequence[str]) -> None:
    """Tell caches whose memory changed. What is nobody's (a document, the settings) concerns the whole tenant."""
    subjects = {place(path).subject for path in paths}
    if subjects:
        store.notify(None if "" in subjects else subjects)


def _groups(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Pieces whose files are read by one `cat-file`: small commits together."""
    group: list[Piece] = []
    touches = 0
    for piece in pieces:
        group.append(piece)
        touches += len(piece.touches)
        if touches >= PIECE:
            yield group
            group, touches = [], 0
    if group:
        yield group


def _weight(piece: Piece) -> float:
    """How much a piece's changes count towards `ALONG_MAX`."""
    return sum(1.0 if touch.new is not None else 0.5 for touch in piece.touches)


def _asked(told: Iterable[Told | None]) -> tuple[set[str], set[str]]:
    """The ids and paths that these changes are about."""
    ids: set[str] = set()
    paths: set[str] = set()
    for each in told:
        if each is not None:
            paths.add(each.path)
            if isinstance(each.value, Memory):
                ids |= {each.value.id, *each.value.supersedes}
    return ids, paths


def _feed(ledger: Ledger, announced: Announced, at: At, pieces: Iterable[Piece], told: Iterator[Told | None]) -> At:
    """Take the ledger through these commits, of which the first may be the one that is at work (`at`)."""
    for piece in pieces:
        announced.see(piece)
        if piece.commit.id != at.revision:
            at = At(at.number + 1, piece.commit.id, max(at.seconds, piece.commit.seconds))
            ledger.begin(at)
        ledger.feed(at, (each for each in islice(told, len(piece.touches)) if each is not None))
        if piece.ends:
            announced.settle(piece.commit, ledger.settle(at))
    return at


def _touch_memory(pieces: Iterable[Piece]) -> bool:
    return any(place(touch.path).kind == "memory" for piece in pieces for touch in piece.touches)
