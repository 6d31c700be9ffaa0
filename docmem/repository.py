"""A tenant's repo in the words of format 1: make it, open it, read it at a revision, commit to it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from docmem import check, files, git, hooks, layout, names, remote
from docmem.config import Settings
from docmem.errors import AlreadyExists, Conflict, DocmemError, FormatError, InvalidName, NotFound
from docmem.git import ENGINE, Author, remotes
from docmem.model import Marks, Memory, Profile, Watermark
from docmem.tenant_config import TenantConfig, parse_config

_ID_LENGTH = 16

REVIEW = "refs/docmem/review"
"""Below it each commit is a change that waits for a person. Never served, never cloned."""


def tenants(settings: Settings) -> list[str]:
    """The names of the tenants that have a repo, sorted."""
    found = []
    for folder in sorted(settings.tenants.glob("*.git")):
        with contextlib.suppress(InvalidName):
            found.append(names.tenant_name(folder.name.removesuffix(".git")))
    return found


def create(settings: Settings, tenant: str, *, now: datetime | None = None, origin: str | None = None) -> Repository:
    """Make a tenant's repo with one commit that lays down the template. Raises `AlreadyExists`.

    With `origin` (a URL or path of another repo) it begins with what is there; the template is laid down, and pushed,
    where nothing is. Built aside and renamed, so that a crash leaves no half-made tenant.
    """
    path = _git_dir(settings, tenant)
    if git.is_repo(path):
        raise AlreadyExists(f"tenant {tenant} is there already: {path}")
    _refuse_broken(settings, tenant, path)
    aside = path.with_name(f".{path.name}.{os.getpid()}.new")
    shutil.rmtree(aside, ignore_errors=True)
    git.init(aside)
    hooks.install_store(aside, settings.root)
    try:
        _begin(settings, aside, origin, now or datetime.now(UTC))
    except DocmemError:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    git.close(aside)
    try:
        aside.rename(path)
    except OSError:  # somebody else was first
        shutil.rmtree(aside, ignore_errors=True)
        raise AlreadyExists(f"tenant {tenant} is there already: {path}") from None
    repository = Repository(settings, tenant, path)
    repository.poke()
    return repository


def _begin(settings: Settings, git_dir: Path, origin: str | None, now: datetime) -> None:
    if origin is not None and remote.connect(git_dir, origin, secret=settings.secret_bytes) == "fetched":
        _ = Snapshot(git_dir, git.resolve(git_dir) or "").config
        return
    git.commit(git_dir, base=None, files=template(), message=f"Lay down format {layout.FORMAT}\n", when=now)
    remote.exchange(git_dir, secret=settings.secret_bytes)


def open(settings: Settings, tenant: str) -> Repository:
    """Open a tenant's repo. Raises `NotFound`, or `InvalidName` for what can't be a tenant."""
    path = _git_dir(settings, tenant)
    if not git.is_repo(path):
        _refuse_broken(settings, tenant, path)
        raise NotFound(
            f"there is no tenant {tenant} in {settings.root}",
            hint=f"make it with: docmem init {tenant} (or set DOCMEM_ROOT to where it is)",
        )
    return Repository(settings, tenant, path)


def exchange_all(settings: Settings, tenants: Iterable[str]) -> dict[str, DocmemError]:
    """Bring each tenant that has an origin up to date with it; what went wrong, by tenant. See `docmem.remote`.

    A repo that is broken or closed is left to the work that follows, which names it.
    """
    failed: dict[str, DocmemError] = {}
    for tenant in tenants:
        try:
            if git.is_repo(_git_dir(settings, tenant)):
                open(settings, tenant).exchange()
        except DocmemError as error:
            failed[tenant] = error
        except OSError:
            continue
    return failed


def _refuse_broken(settings: Settings, tenant: str, path: Path) -> None:
    if path.exists():
        raise NotFound(
            f"there is no tenant {tenant} in {settings.root}: {path} is no git repo, or a broken one",
            hint="restore it from a backup, or move it out of the way",
            code="broken_tenant",
        )


def _git_dir(settings: Settings, tenant: str) -> Path:
    return settings.tenants / f"{names.tenant_name(tenant)}.git"


def template() -> dict[str, bytes]:
    """The files that a new tenant starts with: path to bytes."""
    here = Path(__file__).parent
    root = next(
        folder
        for folder in (here / "_template", here.parent / "memory-repo-template")  # in a wheel, in a source tree
        if (folder / layout.CONFIG).is_file()
    )
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A memory with the file it stands in."""

    memory: Memory
    path: str
    blob: str
    data: bytes


@dataclass(frozen=True)
class Repository:
    """One tenant's bare repo."""

    settings: Settings
    tenant: str
    git_dir: Path

    def head(self) -> str | None:
        """The revision that main is at; None before the first commit."""
        return git.head(self.git_dir)

    def revision(self, name: str) -> str:
        """The commit that a full or short id or a ref names. Raises `NotFound`."""
        found = git.resolve(self.git_dir, name)
        if found is None:
            raise NotFound(f"tenant {self.tenant} has no revision {name!r}", hint=f"see: docmem log {self.tenant}")
        return found

    def has_revision(self, name: str) -> bool:
        """Whether `revision` finds a commit of this name."""
        return git.resolve(self.git_dir, name) is not None

    def snapshot(self, revision: str | None = None) -> Snapshot:
        """The repo at a revision (default: main's). Raises `NotFound` before the first commit."""
        at = revision or self.head()
        if at is None:
            raise NotFound(
                f"tenant {self.tenant} has no commit on main yet", hint=f"push one to {self.git_dir}, branch main"
            )
        return Snapshot(self.git_dir, at)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the writer lock. Never across a model call. Raises `TryAgain` when somebody holds it for long."""
        with git.lock(self.git_dir):
            yield

    def commit(
        self,
        base: str | None,
        changed: Mapping[str, bytes | None],
        *,
        message: str,
        now: datetime,
        author: Author = ENGINE,
    ) -> str:
        """One commit of `changed` (None deletes) on `base`; returns its id. Hold the lock. Raises `Conflict`."""
        for path, data in changed.items():
            if data is not None:
                names.safe_path(path)
        self._refuse_overlap(base, [path for path, data in changed.items() if data is not None])
        if remotes.url(self.git_dir) is not None:
            revision = self._land(base, changed, message=message, now=now, author=author)
        else:
            revision = git.commit(self.git_dir, base=base, files=changed, message=message, when=now, author=author)
        self.poke()
        return revision

    def _land(
        self, base: str | None, changed: Mapping[str, bytes | None], *, message: str, now: datetime, author: Author
    ) -> str:
        """Commit, but on origin first: main moves only to what was accepted there."""
        ref = f"refs/docmem/tmp/out-{os.getpid()}-{secrets.token_hex(4)}"
        new = git.commit(self.git_dir, base=base, files=changed, message=message, when=now, author=author, ref=ref)
        try:
            remote.land(self.git_dir, new, base=base, secret=self.settings.secret_bytes)
            git.move_ref(self.git_dir, git.MAIN, new=new, old=base)
        except Conflict:
            if remote.exchange(self.git_dir, secret=self.settings.secret_bytes) == "fetched":
                self.poke()
            raise
        finally:
            git.move_ref(self.git_dir, ref, new=None, old=new)
        remote.landed(self.git_dir, new)
        return new

    def exchange(self) -> remote.Moved:
        """Fetch from origin and push to it, where there is one. Raises what `remote.exchange` raises."""
        if remotes.url(self.git_dir) is None:
            return "nothing"
        with self.locked():
            moved = remote.exchange(self.git_dir, secret=self.settings.secret_bytes)
        if moved == "fetched":
            self.poke()
        return moved

    def hold(self, review: str, base: str, changed: Mapping[str, bytes | None], *, message: str, now: datetime) -> str:
        """Keep changes that wait for a person as one commit on `base` under `refs/docmem/review/`; hold the lock.

        The same review again (a window that is replayed) takes the place of the one before.
        """
        for path in changed:
            names.safe_path(path)
        ref = f"{REVIEW}/{review}"
        before = git.resolve(self.git_dir, ref)
        return git.commit(self.git_dir, base=base, files=changed, message=message, when=now, ref=ref, old=before)

    def release(self, review: str) -> None:
        """Take a review away, if it is there; hold the lock."""
        ref = f"{REVIEW}/{review}"
        if git.has_ref(self.git_dir, ref):
            git.move_ref(self.git_dir, ref, new=None, old=git.head(self.git_dir, ref))

    def _refuse_overlap(self, base: str | None, paths: list[str]) -> None:
        # fast-import lets a file replace a folder of its name, and all that is in it, without a word.
        path = git.obstructed(self.git_dir, base, paths) if base is not None else None
        if path is not None:
            raise InvalidName(f"{path} would replace a folder, or stand inside a file", hint="choose another name")

    def poke(self) -> None:
        """Tell a running `docmem sync --watch` that there is something to mirror."""
        folder = self.settings.root / "poke"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / self.tenant).touch()


@dataclass(frozen=True)
class Snapshot:
    """A tenant's repo at one revision. Reads what is asked for, when it is asked for."""

    git_dir: Path
    revision: str

    @cached_property
    def config(self) -> TenantConfig:
        """`docmem.yaml`. Raises `NotFound` or `FormatError`."""
        data = self.read(layout.CONFIG)
        if data is None:
            raise NotFound(
                f"{self.git_dir} has no {layout.CONFIG} at {self.revision[:12]}",
                hint="this is no repo of docmem's, or the file was deleted: restore it",
            )
        try:
            return parse_config(data)
        except FormatError as error:
            raise _located(layout.CONFIG, error) from None

    def read(self, path: str) -> bytes | None:
        """A file's bytes, or None where there is none."""
        return git.read_file(self.git_dir, self.revision, path)

    def blob(self, path: str) -> str | None:
        """A file's blob id, or None where there is none."""
        return git.blob_id(self.git_dir, self.revision, path)

    def subject_tree(self, subject: str) -> str | None:
        """Id of the subject's folder; the same id means that nothing about the subject has changed."""
        return git.tree_id(self.git_dir, self.revision, layout.subject_dir(subject))

    def memories(self, subject: str) -> list[StoredMemory]:
        """The subject's memories, by path. Files that don't parse are left out; `broken` names them."""
        return self.memory_files(subject)[0]

    def broken(self, subject: str) -> list[tuple[str, FormatError]]:
        """The subject's memory files that don't parse, and why. They are never rewritten."""
        return self.memory_files(subject)[1]

    def memory_files(self, subject: str) -> tuple[list[StoredMemory], list[tuple[str, FormatError]]]:
        """`memories` and `broken` in one read."""
        found = list(self._memory_files(subject))
        good = [each for each in found if isinstance(each, StoredMemory)]
        return good, [each for each in found if not isinstance(each, StoredMemory)]

    def _memory_files(self, subject: str) -> Iterator[StoredMemory | tuple[str, FormatError]]:
        folder = f"{layout.subject_dir(subject)}/memories"
        blobs = {
            path: blob
            for path, blob in sorted(git.files(self.git_dir, self.revision, folder).items())
            if layout.place(path).kind == "memory"
        }
        contents = dict(git.read_blobs(self.git_dir, blobs.values())) if blobs else {}
        for path, blob in blobs.items():
            try:
                memory = files.parse_memory(path, contents[blob])
            except FormatError as error:
                yield path, _located(path, error)
            else:
                yield StoredMemory(memory, path, blob, contents[blob])

    def profile_bytes(self, subject: str) -> bytes:
        """The profile's file; `b""` where there is none."""
        return self.read(layout.profile_path(subject)) or b""

    def profile(self, subject: str) -> Profile:
        """The subject's profile; an empty one where there is none. Raises `FormatError`."""
        path = layout.profile_path(subject)
        try:
            return files.parse_profile(path, self.profile_bytes(subject))
        except FormatError as error:
            raise _located(path, error) from None

    def watermark(self, thread: str) -> Watermark | None:
        """How far the thread is consolidated; None before its first window. Raises `FormatError`."""
        path = layout.watermark_path(thread)
        data = self.read(path)
        try:
            return files.parse_watermark(data) if data is not None else None
        except FormatError as error:
            raise _located(path, error) from None

    @property
    def reverted(self) -> frozenset[str]:
        """Hashes of the statements that were reverted or forgotten. Raises `FormatError`."""
        return self.marks.reverted

    @cached_property
    def marks(self) -> Marks:
        """What people don't want learned again. Raises `FormatError`."""
        data = self.read(layout.REVERTED)
        try:
            return files.parse_reverted(data) if data is not None else Marks()
        except FormatError as error:
            raise _located(layout.REVERTED, error) from None

    def locate(self, memory: str) -> list[str]:
        """Paths of the files with this memory id, or one that starts so; one, in a repo in good order.

        docmem's own files end with their id: for a whole one the names are looked at before every file is read.
        """
        named = self._named(memory) if len(memory) == _ID_LENGTH else []
        rest = f"[0-9a-f]{{{_ID_LENGTH - len(memory)}}}"
        return named or git.grep(
            self.git_dir, self.revision, rf"^id: *[\"']?{memory}{rest}[\"']?[[:space:]]*$", "subjects"
        )

    def _named(self, memory: str) -> list[str]:
        paths = [path for path in self.subject_paths if path.endswith(f"-{memory}.md")]
        return [path for path in paths if check.memory_id(path, self.read(path) or b"") == memory]

    @cached_property
    def subject_paths(self) -> list[str]:
        """Every path below `subjects/`."""
        return git.paths(self.git_dir, self.revision, "subjects")


def _located(path: str, error: FormatError) -> FormatError:
    return FormatError(
        f"{path}, line {error.line}: {error.message}",
        code=error.code,
        line=error.line,
        column=error.column,
        hint=error.hint or "mend the file and commit it",
    )
