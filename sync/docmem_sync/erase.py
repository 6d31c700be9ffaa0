"""`docmem erase`: take a subject, a memory or a tenant out of a repo's whole history, the index and the audit copies.

The order of things, each kept in the journal before the next begins: intent → flag (pushes are refused) → writer lock →
the history written anew into a repo aside → fetched back → the refs swapped at once, if nobody moved them → leftovers,
reflogs, unreachable objects gone → a new generation, so that open readers look again → the index, in one transaction →
audit copies → a search for what may be left → the receipt. A crash anywhere: the same command goes on.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg

from docmem import audit, db, erasure, git, journal, locks, maintenance, names, repository
from docmem.config import Settings
from docmem.erased import FLAG, Ledger
from docmem.erasure import Content, Erasing, Target, finder
from docmem.errors import Conflict, GitError, InputError, NotFound, TryAgain
from docmem.git import remotes
from docmem.journal import Journal
from docmem.repository import Repository
from docmem.times import format_time
from docmem_sync import hot, migrate
from docmem_sync.erased_rows import ErasedRows
from docmem_sync.store import open_lock
from docmem_sync.sync import sync_tenant

OUT_OF_REACH = (
    "clones and checkouts that people or machines made, other machines' stores, and the remotes they push to",
    "backups of the repos and of Postgres, and Postgres' own log until it is recycled",
    "the dialogues themselves, where the host keeps them: this store doesn't read again what it has read of them",
    "what a model provider has logged",
)
"""What an erase doesn't reach, for the person who has to see to it."""

_UPSTREAM = (
    "the upstream, whose main still holds it (see docmem remote): have it take main as it is here, or cut it off, "
    "before anything is fetched from it"
)
_BELOW = "refs/docmem/erasing/"
_IDLE_SECONDS = 15.0
_TRIES = 5

Report = Callable[[str], object]
"""Called with the name of each step once it is done."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: objects of git, other files of the repo, rows by table, audit copies."""

    objects: int = 0
    files: int = 0
    rows: Mapping[str, int] | None = None
    audit: int = 0

    @property
    def total(self) -> int:
        """All of it; 0 means that nothing is left."""
        return self.objects + self.files + sum((self.rows or {}).values()) + self.audit

    def as_json(self) -> dict[str, Any]:
        """The object of `erase --verify --json`; `rows` is null where no index was searched."""
        rows = None if self.rows is None else sum(self.rows.values())
        return {
            "found": self.total,
            "objects": self.objects,
            "files": self.files,
            "rows": rows,
            "tables": dict(self.rows or {}),
            "audit": self.audit,
        }


def erase(
    settings: Settings,
    tenant: str,
    target: Target,
    *,
    now: datetime,
    index: bool = True,
    report: Report = lambda step: None,
) -> dict[str, Any]:
    """Erase, or go on with an erase that broke off; returns the receipt, which holds no content.

    `index`: False where the tenant was never served from a Postgres. Raises `TryAgain` while somebody is at work on the
    repo, `Conflict` where refs move all the time, `InputError` where another erase has to be finished first, and what
    `db.connect` raises.
    """
    with connected(settings, index=index) as connection:
        begun = journal.read(settings, tenant)
        if begun is not None and begun.target != target:
            raise InputError(
                f"an erase in tenant {tenant} broke off and comes first", hint=f"docmem erase {tenant} --resume"
            )
        if begun is None:
            begun = journal.write(settings, Journal(tenant, target, began=format_time(now)))
        report("journal")
        job = _Erase(settings, tenant, connection, now, report)
        return job.tenant_wide(begun) if target.kind == "tenant" else job.run(begun)


def resume(
    settings: Settings, tenant: str, *, now: datetime, index: bool = True, report: Report = lambda step: None
) -> dict[str, Any]:
    """Go on with the erase that broke off. Raises `NotFound` where none did."""
    begun = journal.read(settings, tenant)
    if begun is None:
        raise NotFound(f"no erase in tenant {tenant} waits to be finished")
    return erase(settings, tenant, begun.target, now=now, index=index, report=report)


@contextmanager
def connected(settings: Settings, *, index: bool) -> Iterator[psycopg.Connection[Any] | None]:
    """A sync session on a schema that is up to date; None without an index."""
    if not index:
        yield None
        return
    with closing(db.connect(settings, "sync")) as connection:
        migrate.ensure(settings, connection)
        yield connection


@dataclass(frozen=True)
class _Erase:
    """One erase. Each method does one step, whether or not it was done before a crash."""

    settings: Settings
    tenant: str
    connection: psycopg.Connection[Any] | None
    now: datetime
    report: Report

    def run(self, begun: Journal) -> dict[str, Any]:
        repo = repository.open(self.settings, self.tenant)
        (repo.git_dir / FLAG).touch()
        self.report("flag")
        maintenance.clean(repo.git_dir, maintenance.PATIENCE)
        texts: frozenset[str] = frozenset()
        with repo.locked():
            state = self._found_swapped(repo, begun)
            if state.step in {"begun", "rewritten"}:
                state, texts = self._rewrite(repo, state)
            if state.step == "swapped":
                state = self._prune(repo, state)
            if state.step == "pruned":
                state = self._unindex(state)
            self._drop_audit(state)
            self.report("audit")
            upstream = self._push(repo, state)
            found = self._search(repo, state, texts)
            git.write_commit_graph(repo.git_dir, anew=True)
            (repo.git_dir / FLAG).unlink(missing_ok=True)
            receipt = self._receipt(state, found, repo.head(), upstream)
            journal.end(self.settings, state, receipt)
        repo.poke()
        self.report("done")
        return receipt

    # ------------------------------------------------------------------------------------------------- the history

    def _found_swapped(self, repo: Repository, state: Journal) -> Journal:
        """A crash between the swap and the journal: the refs tell."""
        if state.step != "rewritten" or not state.moves:
            return state
        _, new = state.moves.get(git.MAIN, next(iter(state.moves.values())))
        ref = git.MAIN if git.MAIN in state.moves else next(iter(state.moves))
        there = git.resolve(repo.git_dir, ref)
        swapped = there == new or (new is not None and there is not None and git.is_ancestor(repo.git_dir, new, there))
        return replace(state, step="swapped") if swapped else state

    def _rewrite(self, repo: Repository, state: Journal) -> tuple[Journal, frozenset[str]]:
        for _ in range(_TRIES):
            refs = {ref: new for ref, new in git.refs(repo.git_dir, "refs/").items() if not ref.startswith(_BELOW)}
            content = erasure.collect(repo, state.target)
            ledger = Ledger(repo.git_dir, self.settings.secret_bytes())
            ledger.remember(content.blobs, content.memories, content.turns)
            self.report("collected")
            state = replace(state.with_content(content), failed=self._waiting(state.target))
            state = self._written(repo, state, content, refs)
            self.report("rewritten")
            try:
                git.fetch(repo.git_dir, self._aside(repo), _BELOW)
                self.report("fetched")
                git.move_refs(repo.git_dir, state.moves)
            except Conflict:
                continue
            self.report("moved")
            return journal.write(self.settings, replace(state, step="swapped")), content.texts
        raise Conflict(f"the refs of {self.tenant} move all the time", hint="run it again: it goes on from here")

    def _written(self, repo: Repository, state: Journal, content: Content, refs: Mapping[str, str]) -> Journal:
        kept = [ref for ref in refs if ref not in content.reviews]
        rule = Erasing(content, lambda blob: git.read_blob(repo.git_dir, blob))
        rewritten = git.rewrite(repo.git_dir, self._aside(repo), rule, refs=kept)
        moves: dict[str, tuple[str | None, str | None]] = {
            ref: (old, rewritten.refs.get(ref)) for ref, old in refs.items() if rewritten.refs.get(ref) != old
        }
        old, new = moves.get(git.MAIN, (None, None))
        with_map = replace(
            state,
            step="rewritten",
            moves=moves,
            commits={old: new for old, new in rewritten.commits.items() if old != new},
            quoting=len(rule.quoting),
            rebuild=erasure.touches_others(self._aside(repo), old, new),
        )
        return journal.write(self.settings, with_map)

    def _aside(self, repo: Repository) -> Path:
        return repo.git_dir.with_name(f".{repo.git_dir.name}.erase")

    def _prune(self, repo: Repository, state: Journal) -> Journal:
        self._wait_for_idle(repo)
        shutil.rmtree(self._aside(repo), ignore_errors=True)
        temporary = git.refs(repo.git_dir, _BELOW)
        git.move_refs(repo.git_dir, {ref: (old, None) for ref, old in temporary.items()})
        for path in (*git.leftovers(repo.git_dir), *git.keeps(repo.git_dir)):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        git.drop_notes_of_git(repo.git_dir)
        self.report("cleaned")
        git.drop_unreachable(repo.git_dir)
        self.report("dropped")
        git.new_generation(repo.git_dir)
        done = journal.write(self.settings, replace(state, step="pruned"))
        self.report("pruned")
        return done

    def _push(self, repo: Repository, state: Journal) -> str | None:
        """Bring origin's main to the new history, if it stands somewhere on the old one. What went wrong, else None.

        One that was rewritten waits for a person as before: only what main held before the erase is put over.
        """
        at = remotes.url(repo.git_dir)
        head = repo.head()
        if at is None or head is None or not state.commits:
            return None
        try:
            there = remotes.tip(repo.git_dir, at)
            if there == head:
                return None
            new = state.commits.get(there or "", there)
            known = (
                new is not None and git.resolve(repo.git_dir, new) == new and git.is_ancestor(repo.git_dir, new, head)
            )
            if known and remotes.push(repo.git_dir, at, new=head, old=there):
                return None
        except (GitError, TryAgain):
            pass
        return _UPSTREAM

    def _wait_for_idle(self, repo: Repository) -> None:
        """No push may be between its check and its refs: its objects would be dropped under it."""
        deadline = time.monotonic() + _IDLE_SECONDS
        while not locks.is_idle(repo.git_dir):
            if time.monotonic() > deadline:
                if not locks.sees_processes():
                    return  # pushes have been refused for as long as one takes
                raise TryAgain(f"a git is at work in {repo.git_dir}", hint="run it again: it goes on from here")
            time.sleep(0.05)

    # ------------------------------------------------------------------------------------------------- the index

    def _unindex(self, state: Journal) -> Journal:
        rows: dict[str, int] = {}
        if self.connection is not None:
            open_lock(self.connection, self.tenant)
            with db.tenant_transaction(self.connection, self.tenant) as cursor:
                tables = ErasedRows(cursor, self.tenant)
                tables.lock()
                rows = tables.delete(state)
                tables.move(state.commits, rebuild=state.rebuild)
            if state.rebuild:
                sync_tenant(self.settings, self.tenant)
        self.report("index")
        return journal.write(self.settings, replace(state, step="unindexed", rows=rows))

    def _drop_audit(self, state: Journal) -> None:
        for path in self._audit_of(state):
            path.unlink(missing_ok=True)

    def _audit_of(self, state: Journal) -> list[Path]:
        """Failed replies of the erased conversations, or that name what was erased."""
        says = finder(state.names)
        starts = tuple(f"{names.thread_hash(thread)[:16]}-" for thread in state.threads)
        about = set[Path]()
        if state.target.kind == "subject":
            about.update(audit.of_subject(self.settings, self.tenant, state.target.value, state.failed))
        return [
            path
            for path in sorted(audit.folder(self.settings, self.tenant).glob("*"))
            if path in about or path.name.startswith(starts or ("\0",)) or says(path.read_bytes())
        ]

    def _waiting(self, target: Target) -> tuple[str, ...]:
        """The conversations about a subject that the table of jobs knows."""
        if self.connection is None or target.kind != "subject":
            return ()
        with db.tenant_transaction(self.connection, self.tenant) as cursor:
            return ErasedRows(cursor, self.tenant).threads(target.value)

    # ------------------------------------------------------------------------------------------------- the end

    def _search(self, repo: Repository, state: Journal, texts: frozenset[str]) -> Found:
        found = search(self.settings, repo.git_dir, state.names | texts, blobs=frozenset(state.blobs))
        rows = None
        if self.connection is not None:
            with db.tenant_transaction(self.connection, self.tenant) as cursor:
                rows = ErasedRows(cursor, self.tenant).saying(state.names | texts)
        self.report("searched")
        return replace(found, rows=rows, audit=len(self._audit_of(state)))

    def _receipt(
        self, state: Journal, found: Found, revision: str | None, upstream: str | None = None
    ) -> dict[str, Any]:
        mark = names.proposal_hash(self.settings.secret_bytes(), state.target.value, "erased")[:16]
        return {
            "tenant": self.tenant,
            "what": state.target.kind,
            "mark": mark,
            "when": format_time(self.now),
            "commits": len(state.commits),
            "files": len(state.blobs),
            "memories": len(state.memories),
            "reviews": state.reviews,
            "rows": dict(state.rows),
            "elsewhere": state.elsewhere,
            "messages": state.quoting,
            "revision": revision,
            "verified": found.as_json(),
            "out_of_reach": [*OUT_OF_REACH, *([upstream] if upstream else [])],
        }

    def tenant_wide(self, begun: Journal) -> dict[str, Any]:
        """Everything of a tenant."""
        here = self.settings.tenants / f"{names.tenant_name(self.tenant)}.git"
        gone = here.with_name(f".{here.name}.erased")
        state = begun
        if git.is_repo(here):
            (here / FLAG).touch()
            self.report("flag")
            with git.lock(here):
                self._wait_for_idle(Repository(self.settings, self.tenant, here))
                git.new_generation(here)
                shutil.rmtree(gone, ignore_errors=True)
                here.rename(gone)
            self.report("moved")
        git.close(here)
        shutil.rmtree(gone, ignore_errors=True)
        shutil.rmtree(here.with_name(f".{here.name}.erase"), ignore_errors=True)
        self.report("pruned")
        if self.connection is not None:
            hot.drop(self.settings, self.connection, self.tenant)
        state = self._unindex(state)
        shutil.rmtree(audit.folder(self.settings, self.tenant), ignore_errors=True)
        (self.settings.root / "poke" / self.tenant).unlink(missing_ok=True)
        receipt = self._receipt(state, verify_tenant(self.settings, self.tenant, self.connection), None)
        journal.end(self.settings, state, receipt)
        self.report("done")
        return receipt


# ------------------------------------------------------------------------------------------------------ searching


def verify(settings: Settings, tenant: str, needles: frozenset[str], *, index: bool = True) -> Found:
    """Search every object, other file, row and audit copy of a tenant for these strings."""
    repo = repository.open(settings, tenant)
    found = search(settings, repo.git_dir, needles)
    says = finder(needles)
    copies = sum(says(path.read_bytes()) for path in audit.folder(settings, tenant).glob("*"))
    rows = None
    with connected(settings, index=index) as connection:
        if connection is not None:
            with db.tenant_transaction(connection, tenant) as cursor:
                rows = ErasedRows(cursor, tenant).saying(needles)
    return replace(found, rows=rows, audit=copies)


def verify_tenant(settings: Settings, tenant: str, connection: psycopg.Connection[Any] | None) -> Found:
    """What is left of a tenant as a whole."""
    folder = settings.tenants
    files = sum(1 for each in folder.glob(f"*{tenant}.git*") if each.name.strip(".").split(".git")[0] == tenant)
    copies = sum(1 for _ in audit.folder(settings, tenant).glob("*"))
    rows = None
    if connection is not None:
        with db.tenant_transaction(connection, tenant) as cursor:
            rows = ErasedRows(cursor, tenant).left()
    return Found(files=files, rows=rows, audit=copies)


def search(settings: Settings, git_dir: Path, needles: frozenset[str], *, blobs: frozenset[str] = frozenset()) -> Found:
    """Every object, decompressed, reachable or not, and every other file of a repo. `blobs` must not be there at all.

    A pack that git can't read counts as a find: nobody can say what is in it.
    """
    says = finder(needles)
    found = sum(object_id in blobs or says(data) for object_id, _, data in git.objects(git_dir))
    others = [path for path in git_dir.rglob("*") if path.is_file() and not _is_object(path, git_dir)]
    unread = [path for path in git.leftovers(git_dir) if path.name.startswith(("tmp_", "pack-", "incoming-"))]
    return Found(objects=found, files=len(unread) + sum(says(path.read_bytes()) for path in others))


def _is_object(path: Path, git_dir: Path) -> bool:
    parts = path.relative_to(git_dir).parts
    return parts[0] == "objects" and (len(parts[1]) == 2 or path.suffix in {".pack", ".idx", ".rev"})
