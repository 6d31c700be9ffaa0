"""Mirror a tenant's branch into Postgres: changes, rows and watermark in one transaction, then vectors.

One sync at a time for a tenant. A crash anywhere means: run it again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import psycopg

from docmem import db, git, maintenance, receive, repository, root
from docmem.config import Settings
from docmem.embedding import Embedder
from docmem.errors import DocmemError, GitError, GuardStop, NotFound, ServerUnavailable, TryAgain
from docmem.git import Commit, diffs
from docmem.layout import CONFIG, place
from docmem.model import Memory
from docmem.projection import VERSION
from docmem.repository import Repository
from docmem.tenant_config import TenantConfig
from docmem_sync import embed, hot, migrate, plan, reading
from docmem_sync import trace as tracing
from docmem_sync.backlog import Backlog, settle
from docmem_sync.plan import Past, Row, Scope, State
from docmem_sync.reading import Broken
from docmem_sync.rows import DEFAULT_CONFIG
from docmem_sync.store import Mark, Store
from docmem_sync.trace import Trace

LOCK_SECONDS = 10.0
"""How long a sync waits for another one of the same tenant."""

_PLAN_LINES = 20
_log = logging.getLogger("docmem.sync")


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
    quarantined: tuple[plan.Waiting, ...] = ()
    seconds: float = 0.0
    error: DocmemError | None = None

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
) -> list[TenantSync]:
    """Sync several tenants. What stops one (see its `error`) doesn't stop the others, but a server that's away does.

    All are mirrored before any is embedded, and then each in its turn.
    """
    done = []
    with _connected(settings) as connection:
        for tenant in tenants:
            try:
                job = _Job(connection, repository.open(settings, tenant), confirm_deletes, rebuild)
                done.append(job.run())
            except ServerUnavailable:
                raise
            except DocmemError as error:
                done.append(TenantSync(tenant, error=error))
            except OSError as error:
                found = root.explanation(error, settings.root)
                if found is None:
                    raise
                done.append(TenantSync(tenant, error=found))
        return done if embedder is None else _embedded(settings, connection, done, embedder)


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
    with _connected(settings) as connection:
        done = _Job(connection, repo, confirm_deletes, rebuild).run()
        return done if embedder is None else _embedded(settings, connection, [done], embedder)[0]


def reembed_tenant(settings: Settings, tenant: str, *, embedder: Embedder, again: bool = False) -> tuple[int, int]:
    """Give every row of a tenant a vector of this model; see `embed.reembed`. Raises what `db.connect` raises."""
    with _connected(settings) as connection:
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
def _connected(settings: Settings) -> Iterator[psycopg.Connection[Any]]:
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

    def run(self) -> TenantSync:
        started = time.monotonic()
        with db.explained(self.connection), db.tenant_transaction(self.connection, self.repo.tenant) as cursor:
            store = Store(cursor, self.repo.tenant)
            self._lock(store)
            done = self._mirror(store)
            store.prune()
        maintenance.if_due(self.repo)
        return replace(done, seconds=time.monotonic() - started)

    def _lock(self, store: Store) -> None:
        deadline = time.monotonic() + LOCK_SECONDS
        while not store.try_lock():
            if time.monotonic() > deadline:
                raise TryAgain(
                    f"another sync of {self.repo.tenant} is at work for {LOCK_SECONDS:.0f} s", hint="run it again later"
                )
            time.sleep(0.02)

    def _mirror(self, store: Store) -> TenantSync:
        head = self._head()
        state = store.state()
        done = TenantSync(self.repo.tenant, before=state.revision if state else None, after=head)
        if head is None:
            if state is not None:
                raise _branch_gone(self.repo, f"{state.revision[:12]} is indexed")
            return done
        pass_ = _choose(self.repo, head, done.before, again=self._reads_all(state))
        if pass_ is None:
            return replace(done, unchanged=store.served(), quarantined=tuple(store.waiting()))
        if pass_.lost:
            _log.warning(
                "%s: the indexed revision %s is no longer part of main; every file is compared",
                self.repo.tenant,
                done.before,
            )
        work = _Work(self.repo, store, pass_)
        if not work.is_plain:
            work = _Work(self.repo, store, _whole(self.repo, head))
        self._guard(work)
        self._write(store, work, head)
        upserts = sum(item.path != CONFIG for item in work.plan.serve)
        return replace(
            done,
            upserts=upserts,
            deletes=len(work.plan.delete),
            unchanged=store.served() - upserts,
            reconciled=pass_.lost,
            quarantined=tuple(store.waiting()),
        )

    def _write(self, store: Store, work: _Work, head: str) -> None:
        traces = work.traces()
        config = work.config(traces)
        if config is not None:
            store.write_config(*config)
        store.apply(work.plan, traces, head)
        restamps = work.restamps(traces)
        store.restamp(restamps)
        store.write_state(head)
        changed = [item.path for item in work.plan.serve] + [row.path for row in work.plan.delete]
        _notify(store, changed + [row.path for row, _ in restamps])

    def _reads_all(self, state: Mark | None) -> bool:
        return self.rebuild or (state is not None and state.projection != VERSION)

    def _head(self) -> str | None:
        head = self.repo.head()
        if head is None:
            branches = git.refs(self.repo.git_dir, "refs/heads")
            if branches:
                raise _branch_gone(self.repo, f"it has {', '.join(sorted(branches))}")
            if git.resolve(self.repo.git_dir, "HEAD") is not None:
                raise _branch_gone(self.repo, "it has a detached HEAD")
        return head

    def _guard(self, work: _Work) -> None:
        confirmed = receive.confirmed(self.repo.git_dir)
        rows = plan.unannounced(work.plan, tracing.announced(work.commits, confirmed))
        if self.confirm_deletes or not plan.stops(len(rows), work.index):
            return
        lines = [f"delete {row.path}" for row in rows[:_PLAN_LINES]]
        if len(rows) > _PLAN_LINES:
            lines.append(f"and {len(rows) - _PLAN_LINES} more")
        raise GuardStop(
            f"{self.repo.tenant}: this would delete {len(rows)} of {work.index.served} rows, and no commit announces "
            "it; nothing was changed",
            hint=f"if it is meant: docmem sync {self.repo.tenant} --confirm-deletes",
            plan=lines,
        )


def _notify(store: Store, paths: Sequence[str]) -> None:
    """Tell caches whose memory changed. What is nobody's (a document, the settings) concerns the whole tenant."""
    subjects = {place(path).subject for path in paths}
    if subjects:
        store.notify(None if "" in subjects else subjects)


def _branch_gone(repo: Repository, what: str) -> NotFound:
    return NotFound(
        f"{repo.tenant} has no branch main ({what})",
        hint=f"bring it back: git --git-dir {repo.git_dir} branch main REVISION",
    )


@dataclass(frozen=True)
class _Pass:
    """Which commits a sync is about: those since `since`, or all. `lost`: the indexed revision is off the chain."""

    head: str
    commits: Sequence[Commit]
    since: str | None = None
    force: bool = False
    lost: bool = False


def _choose(repo: Repository, head: str, indexed: str | None, *, again: bool) -> _Pass | None:
    """Tell the cases apart; None where there is nothing to do."""
    if indexed == head and not again:
        return None
    if indexed is not None and not again:
        commits = _since(repo, indexed, head)
        if commits is not None:
            return _Pass(head, commits, since=indexed)
    return replace(_whole(repo, head), force=again, lost=indexed is not None and not again)


def _whole(repo: Repository, head: str) -> _Pass:
    """A pass over all files and all commits."""
    return _Pass(head, list(git.history(repo.git_dir, head)))


def _since(repo: Repository, indexed: str, head: str) -> Sequence[Commit] | None:
    """The commits after the indexed one; None where that isn't on the first-parent chain any more, or not there."""
    try:
        commits = list(git.history(repo.git_dir, head, since=indexed))
    except GitError:
        if git.has_commit(repo.git_dir, indexed):
            raise
        return None
    return commits if commits and commits[-1].parents[:1] == (indexed,) else None


class _Work:
    """Gathers what the plan needs: from git what changed and what it says, from the store what is there."""

    def __init__(self, repo: Repository, store: Store, which: _Pass) -> None:
        self.store = store
        self.which = which
        self.git_dir = repo.git_dir
        self.commits = which.commits
        self.scope = self._scope()
        self.index = store.index(None if self.scope.full else [*self.scope.files, *self.scope.gone])
        found = reading.read(
            self.git_dir,
            plan.to_read(self.scope, self.index),
            also=_memory_blobs(self.commits),
            unreadable=self.scope.unreadable,
        )
        self.index = store.with_memories(self.index, _ids(found.values.values()))
        self.claims = plan.claims(self.scope, self.index, found)
        self.reading = plan.refuse_duplicates(found, self._winners(found.ids))
        self.past = self._past()
        states = (state.value for item in self.past.values() for state in item.states)
        self.index = store.with_memories(self.index, _ids(states))
        self.plan = plan.plan(self.scope, self.index, self.reading, self.past)

    def _scope(self) -> Scope:
        if self.which.since is None:
            files = _indexed(git.files(self.git_dir, self.which.head).items())
            unreadable = self._unreadable(CONFIG in files)
            files |= {path: broken.blob for path, broken in unreadable.items()}
            return Scope(files, full=True, force=self.which.force, unreadable=unreadable)
        # Also what was changed and changed back: its history says something else now.
        now: dict[str, str | None] = {}
        for commit in self.commits:
            for change in commit.changes:
                now.setdefault(change.path, change.new)
        gone = {reading.printable(path) for path, blob in now.items() if blob is None}
        return Scope(_indexed(now.items()), gone=gone)

    def _unreadable(self, has_config: bool) -> dict[str, Broken]:
        """What stands where a file belongs, and is none."""
        links = diffs.irregular(self.git_dir, None, self.which.head)
        shown = ((reading.printable(path), blob) for path, blob in links.items() if reading.belongs(path))
        found = {path: reading.no_file(path, blob) for path, blob in shown}
        return found if has_config or CONFIG in found else found | {CONFIG: reading.no_config()}

    @property
    def is_plain(self) -> bool:
        """Whether these commits suffice to decide."""
        if self.scope.full:
            return True
        if CONFIG in self.scope.gone or self._concerns_irregular():
            return False
        return not self.claims and plan.is_plain(self.scope, self.index, self.past, self.plan)

    def _concerns_irregular(self) -> bool:
        since = self.which.since
        return since is not None and diffs.concerns_irregular(self.git_dir, since, self.which.head)

    def _winners(self, ids: Mapping[str, str]) -> dict[str, str]:
        """The file that keeps each id which several files hold. Only all commits can tell."""
        if not self.scope.full:
            return {}
        return {memory: tracing.holder(self.commits, paths, memory, ids) for memory, paths in self.claims.items()}

    def _past(self) -> dict[str, Past]:
        """What the commits tell of the broken files' earlier states."""
        found, began = tracing.versions(self.commits, self.reading.broken)
        blobs = {blob for states in found.values() for _, blob in states}
        contents = dict(git.read_blobs(self.git_dir, sorted(blobs))) if blobs else {}
        past = {}
        for path, states in found.items():
            values = ((commit, blob, reading.parse(path, blob, contents[blob])) for commit, blob in states)
            good = [State(commit, blob, value) for commit, blob, value in values if not isinstance(value, Broken)]
            past[path] = Past(tuple(good), path in began)
        return past

    def traces(self) -> dict[tuple[str, int], Trace]:
        """What history says of each file that is served or kept, by key and commit."""
        keys: dict[int, dict[str, str]] = {}
        for item in self.plan.serve:
            keys.setdefault(item.commit, {})[item.path] = item.key
        for kept in self.plan.kept:
            keys.setdefault(kept.commit, {})[kept.row.path] = kept.row.key
        found: dict[tuple[str, int], Trace] = {}
        for commit, wanted in keys.items():
            for key, trace in tracing.trace(self.commits[commit:], wanted, self.reading.ids).items():
                found[key, commit] = self._continued(trace, self.index.rows.get(key))
        return found

    def _continued(self, trace: Trace, row: Row | None) -> Trace:
        if trace.whole or row is None:
            return trace
        return replace(trace, created=row.created, changes=trace.changes + row.version)

    def restamps(self, traces: Mapping[tuple[str, int], Trace]) -> list[tuple[Row, Trace]]:
        """The rows that stay, of which history says something else now."""
        found = ((kept.row, traces.get((kept.row.key, kept.commit))) for kept in self.plan.kept)
        return [(row, trace) for row, trace in found if trace is not None and _differs(row, trace)]

    def config(self, traces: Mapping[tuple[str, int], Trace]) -> tuple[TenantConfig, str | None, str] | None:
        """The settings to write, their blob and revision; None where they are as they were, or can't be read."""
        for item in self.plan.serve:
            if isinstance(item.value, TenantConfig):
                return item.value, item.blob, traces[item.key, item.commit].revision
        gone = CONFIG not in self.scope.files and self.scope.holds(CONFIG) and self.index.config_blob is not None
        return (DEFAULT_CONFIG, None, self.which.head) if gone or self.store.language() is None else None


def _indexed(files: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    return {reading.printable(path): blob for path, blob in files if blob is not None and reading.is_indexed(path)}


def _memory_blobs(commits: Iterable[Commit]) -> Iterator[str]:
    for commit in commits:
        for change in commit.changes:
            if place(change.path).kind == "memory":
                yield from (blob for blob in (change.old, change.new) if blob is not None)


def _ids(values: Iterable[object]) -> list[str]:
    return [value.id for value in values if isinstance(value, Memory)]


def _differs(row: Row, trace: Trace) -> bool:
    kind = place(row.path).kind
    return (
        row.revision != trace.revision
        or (kind == "memory" and row.created != trace.created)
        or (kind == "profile" and row.version != trace.changes)
    )
