"""A tenant's branch that goes through anything: what people, engines and git hosts do to one, from a seed."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TypeAlias

from docmem import git, layout, repository
from docmem.config import Settings
from docmem.files import render_memory
from tests.support.repos import NOW, memory, subject

Files: TypeAlias = Mapping[str, bytes | None]

BROKEN = (b"no head\n", b"---\nid: *x*\n---\n", b"\xff", b"<<<<<<< HEAD\n", b"tenant: x\n")
PEOPLE = ("ana", "Ana")
DOCUMENTS = ("knowledge/a.md", "knowledge/A.md", "steering/b.md")


class Branch:
    """A tenant's main, changed at random: ids and paths are few, so that they meet.

    `sound`: every file can be read and no two have one id, so that what is served is what main says.
    """

    def __init__(self, settings: Settings, tenant: str, seed: int, *, sound: bool = False) -> None:
        self._sound = sound
        self.chance = random.Random(seed)
        self.settings = settings
        self.repo = repository.open(settings, tenant)
        self.files: dict[str, dict[str, bytes]] = {}
        """What stood at each commit, but for the template."""
        head = self.repo.head()
        assert head is not None
        self.files[head] = {}
        self._side = 0

    @property
    def head(self) -> str:
        """The commit that main is at."""
        found = self.repo.head()
        assert found is not None
        return found

    def step(self) -> None:
        """One more thing happens: mostly a commit; now and then a merge, or main is moved back or elsewhere."""
        chance = self.chance.random()
        if chance < 0.08:
            self._rewind()
        elif chance < 0.2 and not self._sound:
            self._merge()
        else:
            self._commit(self.head, self._changes(self.files[self.head]), git.MAIN)

    # ---------------------------------------------------------------------------------------------- the chain

    def _commit(self, base: str, changed: Files, ref: str) -> str:
        when = NOW + timedelta(seconds=self.chance.randint(-50, 50))
        old = git.resolve(self.repo.git_dir, ref)
        new = git.commit(self.repo.git_dir, base=base, files=changed, message="change\n", when=when, ref=ref, old=old)
        self.files[new] = _after(self.files[base], changed)
        return new

    def _past(self) -> list[str]:
        """The first commits back from main."""
        return list(git.times(self.repo.git_dir, self.head))[:4]

    def _rewind(self) -> None:
        """Main is moved back: what comes next rewrites its history."""
        back = self.chance.choice(self._past())
        git.move_ref(self.repo.git_dir, git.MAIN, new=back, old=self.head)

    def _merge(self) -> None:
        """A side branch is merged; with either side first, as `git pull` may have it."""
        base, head = self.chance.choice(self._past()), self.head
        self._side += 1
        changed: dict[str, bytes | None] = {}
        side = base
        for _ in range(self.chance.randint(1, 2)):
            more = self._changes(self.files[side])
            side = self._commit(side, more, f"refs/docmem/tmp/side-{self._side}-{len(changed)}-{self.chance.random()}")
            changed |= more
        both = self._commit(head, changed, f"refs/docmem/tmp/both-{self._side}")
        parents = [head, side] if self.chance.random() < 0.7 else [side, head]
        tree = git.tree_id(self.repo.git_dir, both, "")
        merge = self._git("commit-tree", str(tree), "-m", "merge", *(f"-p{parent}" for parent in parents))
        self.files[merge] = self.files[both]
        git.move_ref(self.repo.git_dir, git.MAIN, new=merge, old=head)

    def _git(self, *arguments: str) -> str:
        when = f"{int(NOW.timestamp())} +0000"
        who = {"GIT_AUTHOR_NAME": "Ana", "GIT_AUTHOR_EMAIL": "ana@example.org"}
        who |= {"GIT_COMMITTER_NAME": "Ana", "GIT_COMMITTER_EMAIL": "ana@example.org"}
        who |= {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        command = ["git", "--git-dir", str(self.repo.git_dir), *arguments]
        return subprocess.run(command, env=who, capture_output=True, text=True, check=True).stdout.strip()

    # -------------------------------------------------------------------------------------------- the changes

    def _changes(self, files: Mapping[str, bytes]) -> Files:
        changed: dict[str, bytes | None] = {}
        for _ in range(self.chance.randint(1, 3)):
            changed |= self.chance.choice(self._ways())(_after(files, changed))
        kept = {path: data for path, data in changed.items() if data is not None or path in files}
        return kept or {"knowledge/filler.md": str(self.chance.random()).encode()}

    def _ways(self) -> tuple[Callable[[Mapping[str, bytes]], Files], ...]:
        if self._sound:
            return (self._add_another, self._edit, self._delete, self._move, self._swap, self._other)
        return (self._add, self._edit, self._delete, self._move, self._swap, self._spoil, self._other, self._join)

    def _pick(self, files: Mapping[str, bytes]) -> str | None:
        memories = sorted(path for path in files if "/memories/" in path)
        return self.chance.choice(memories) if memories else None

    def _content(self, **more: object) -> bytes:
        number = self.chance.randrange(4)
        text = f"says {self.chance.randrange(100)}"
        return render_memory(replace(memory(f"{number}", number=number), text=text, **more))  # type: ignore[arg-type]

    def _path(self) -> str:
        who = self.chance.choice(PEOPLE)
        return f"{layout.subject_dir(subject(value=who))}/memories/{self.chance.choice('abcdA')}.md"

    def _add_another(self, files: Mapping[str, bytes]) -> Files:
        new = self._content()
        told = new.split(b"\n")[1]
        return {} if any(told in data for data in files.values()) else {self._path(): new}

    def _add(self, files: Mapping[str, bytes]) -> Files:
        return {self._path(): self._content()}

    def _join(self, files: Mapping[str, bytes]) -> Files:
        """A memory takes the place of others."""
        gone = self._pick(files)
        ids = tuple(memory(f"{number}", number=number).id for number in self.chance.sample(range(4), 2))
        return ({gone: None} if gone else {}) | {self._path(): self._content(supersedes=ids)}

    def _edit(self, files: Mapping[str, bytes]) -> Files:
        path = self._pick(files)
        return {path: files[path] + b"more\n"} if path else {}

    def _delete(self, files: Mapping[str, bytes]) -> Files:
        path = self._pick(files)
        return {path: None} if path else {}

    def _move(self, files: Mapping[str, bytes]) -> Files:
        path, target = self._pick(files), self._path()
        more = self.chance.choice((b"", b"moved\n"))
        return {path: None, target: files[path] + more} if path and target != path else {}

    def _swap(self, files: Mapping[str, bytes]) -> Files:
        one, two = self._pick(files), self._pick(files)
        return {one: files[two], two: files[one]} if one and two else {}

    def _spoil(self, files: Mapping[str, bytes]) -> Files:
        path = self.chance.choice([self._pick(files) or self._path(), self._profile(), *DOCUMENTS, "docmem.yaml"])
        return {path: self.chance.choice(BROKEN)}

    def _profile(self) -> str:
        return layout.profile_path(subject(value=self.chance.choice(PEOPLE)))

    def _other(self, files: Mapping[str, bytes]) -> Files:
        number = str(self.chance.randrange(100)).encode()
        languages = (b"english", b"simple", b"german")
        profile, document = self._profile(), self.chance.choice(DOCUMENTS)
        changes: list[Files] = [
            {profile: b"label: " + number + b"x\n"},
            {profile: None} if profile in files else {},
            {document: b"# " + number + b"\n" + b"word " * self.chance.randrange(1_000)},
            {document: None} if document in files else {},
            {"docmem.yaml": b"format: 1\nlanguage: " + self.chance.choice(languages) + b"\n"},
        ]
        return self.chance.choice(changes)


def _after(files: Mapping[str, bytes], changed: Files) -> dict[str, bytes]:
    found = {**files, **{path: data for path, data in changed.items() if data is not None}}
    return {path: data for path, data in found.items() if changed.get(path, b"") is not None}
