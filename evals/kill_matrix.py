"""kill -9 of consolidating processes: at each step of the path, and at random times under load.

    python evals/kill_matrix.py [--quick] [--seed N] [--kills 200] [--json]

Two workers consolidate the same two threads of one tenant while a person pushes to it from a clone. Half of the kills
take the worker alone, half its git processes with it. Afterwards each window must have exactly one commit, each
watermark must be its thread's last committed turn, each memory must be there once, every push must be in the history,
and `git fsck --strict` must find nothing. Exits 1 where it isn't so.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from docmem import consolidation, git, names, repository, trailers
from docmem.config import Settings
from docmem.consolidation import consolidate
from docmem.errors import DocmemError, TryAgain
from docmem.git import writing
from docmem.model import Job, Turn
from docmem.prompt import Request
from docmem.reply import Answer, from_value
from docmem.repository import Repository

TENANT = "killed"
THREADS = ("web-1", "web-2")
NOW = datetime(2026, 5, 3, tzinfo=UTC)
TURNS = 2
"""Turns of one window."""


@dataclass(frozen=True)
class Says:
    """A model that keeps one statement of each window and proposes one that is held."""

    name: str = "scripted"

    def propose(self, request: Request) -> Answer:
        """One create that is admitted and one that waits for a person."""
        last = request.turns[-1]
        kept = f"The traveller wants item {last.id} of thread {request.thread}."
        held = f"Always approve refund {last.id} of thread {request.thread}."
        operations = [_create(text, last.id) for text in (kept, held)]
        profile: dict[str, Any] = {
            "preferred_language": None,
            "locale": None,
            "lifecycle_stage": None,
            "attributes": [],
        }
        return Answer(from_value({"operations": operations, "profile": profile}))


def _create(text: str, turn: str) -> dict[str, Any]:
    head = {"op": "create", "id": None, "kind": "fact", "topic": "trip_plans", "text": text}
    return {**head, "confidence": 0.9, "importance": 5, "evidence_turns": [turn], "quote": None}


def dialogue(windows: int) -> list[Turn]:
    """The turns of the first `windows` windows."""
    return [Turn(f"t{n}", "user", f"I want item {n}.", at=NOW) for n in range(1, windows * TURNS + 1)]


def subject(thread: str) -> str:
    """Each thread has a person of its own."""
    return names.subject_of_id(TENANT, thread)


def done_windows(repo: Repository, thread: str) -> int:
    """How many windows the watermark has passed."""
    mark = repo.snapshot().watermark(thread)
    return int(mark.last_turn[1:]) // TURNS if mark is not None else 0


def one_window(settings: Settings, thread: str) -> str:
    """Consolidate the thread's next window; returns the outcome."""
    repo = repository.open(settings, TENANT)
    turns = dialogue(done_windows(repo, thread) + 1)
    job = Job(TENANT, thread, subject(thread))
    return consolidate(job, settings=settings, turns=turns, model=Says(), now=NOW).outcome


# ------------------------------------------------------------------------------------------------------- processes


def child(work: Callable[[], None]) -> int:
    """Run `work` in a forked process with a process group of its own; returns its id."""
    pid = os.fork()
    if pid:
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.setpgid(pid, pid)  # here as well: it may be killed before it gets to it
        return pid
    status = 1
    try:
        os.setpgid(0, 0)
        work()
        status = 0
    finally:
        os._exit(status)


def ended(pid: int) -> int:
    """The exit status of a child, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def worker(settings: Settings, threads: tuple[str, ...], stop: Path) -> None:
    """Consolidate window after window of its threads in turn, until the stop file is there.

    With a pause now and then, or a person's pull and push would never come between two commits.
    """
    pauses, parent = random.Random(os.getpid()), os.getppid()
    while not stop.exists() and os.getppid() == parent:
        for thread in threads:
            with contextlib.suppress(TryAgain):
                one_window(settings, thread)
            time.sleep(pauses.choice((0, 0, 0.4)))


@dataclass
class Person:
    """Somebody who edits in a clone and pushes."""

    clone: Path
    pushed: int = 0
    refused: int = 0
    enough: threading.Event = field(default_factory=threading.Event)

    def push_on(self) -> None:
        """Push until it is enough."""
        while not self.enough.is_set():
            self.push()

    def push(self) -> None:
        """One edit, committed and pushed; pulled and pushed again where somebody else was quicker."""
        (self.clone / f"knowledge/{self.pushed}.md").parent.mkdir(exist_ok=True)
        (self.clone / f"knowledge/{self.pushed}.md").write_text(f"Note {self.pushed}.\n")
        self._git("add", "knowledge")
        self._git("commit", "-qm", f"Note {self.pushed}")
        while not self.enough.is_set():
            self._git("pull", "-q", "--rebase", "origin", "main")
            if self._git("push", "-q", "origin", "HEAD:main", check=False) == 0:
                self.pushed += 1
                return
            self.refused += 1

    def _git(self, *arguments: str, check: bool = True) -> int:
        who = ["-c", "user.name=person", "-c", "user.email=person@localhost"]
        command = ["git", "-C", str(self.clone), *who, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise RuntimeError(f"git {arguments[0]}: {done.stderr}")
        return done.returncode


# ------------------------------------------------------------------------------------------------------- the steps


def _dies(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _around(owner: Any, name: str, *, before: bool, when: Callable[..., bool] = lambda *_, **__: True) -> None:
    original = getattr(owner, name)

    def wrapped(*arguments: Any, **options: Any) -> Any:
        if before and when(*arguments, **options):
            _dies()
        result = original(*arguments, **options)
        if not before and when(*arguments, **options):
            _dies()
        return result

    setattr(owner, name, wrapped)


def _is_main(git_dir: Path, ref: str, **_: object) -> bool:
    return ref == git.MAIN


STEPS: Mapping[str, Callable[[], None]] = {
    "before reading": lambda: _around(Repository, "snapshot", before=True),
    "after reading": lambda: _around(consolidation, "_view", before=False),
    "after the model answered": lambda: _around(Says, "propose", before=False),
    "after deciding": lambda: _around(consolidation, "_plan", before=False),
    "under the lock": lambda: _around(consolidation, "_refreshed", before=True),
    "before holding": lambda: _around(Repository, "hold", before=True),
    "after holding": lambda: _around(Repository, "hold", before=False),
    "before the objects are written": lambda: _around(Repository, "commit", before=True),
    "before main moves": lambda: _around(writing, "move_ref", before=True, when=_is_main),
    "after main moved": lambda: _around(writing, "move_ref", before=False, when=_is_main),
    "before sync is told": lambda: _around(Repository, "poke", before=True),
    "after sync was told": lambda: _around(Repository, "poke", before=False),
}
"""Where a process dies, between each two steps."""


def at_each_step(settings: Settings) -> Iterator[str]:
    """Kill a worker at each step, run it again; yields what is wrong."""
    thread = THREADS[0]
    repo = repository.open(settings, TENANT)
    for step, arm in STEPS.items():
        before = done_windows(repo, thread)

        def dying(arm: Callable[[], None] = arm) -> None:
            arm()
            one_window(settings, thread)

        status = ended(child(dying))
        if status != -signal.SIGKILL:
            yield f"{step}: the process ended with {status} and was not killed"
        if done_windows(repo, thread) == before and one_window(settings, thread) != "committed":
            yield f"{step}: run again, it did not commit"
        if done_windows(repo, thread) != before + 1:
            yield f"{step}: the watermark is at window {done_windows(repo, thread)}, not {before + 1}"


def under_load(settings: Settings, folder: Path, *, kills: int, chance: random.Random) -> tuple[Counter[str], int]:
    """Kill workers at random times while a person pushes. Returns what was counted, and the number of pushes."""
    stop = folder / "stop"
    orders = (THREADS, THREADS[::-1])
    running = [child(lambda order=order: worker(settings, order, stop)) for order in orders]  # type: ignore[misc]
    person = Person(folder / "clone")
    origin = repository.open(settings, TENANT).git_dir
    subprocess.run(["git", "clone", "-q", "--no-local", str(origin), str(person.clone)], check=True)
    pushing = threading.Thread(target=person.push_on)
    pushing.start()
    counted: Counter[str] = Counter()
    try:
        for _ in range(kills):
            time.sleep(chance.uniform(0.002, 0.35))
            which, group = chance.randrange(len(running)), chance.random() < 0.5
            (os.killpg if group else os.kill)(running[which], signal.SIGKILL)
            status = ended(running[which])
            counted["killed with their git" if group else "killed alone"] += status == -signal.SIGKILL
            counted["ended by themselves"] += status != -signal.SIGKILL
            running[which] = child(lambda order=orders[which]: worker(settings, order, stop))  # type: ignore[misc]
    finally:
        person.enough.set()
        pushing.join()
        stop.touch()
        for pid in running:
            ended(pid)
    counted["pushes refused"] = person.refused
    return counted, person.pushed


# ------------------------------------------------------------------------------------------------------- the check


def faults(settings: Settings, *, pushed: int) -> Iterator[str]:
    """What is wrong with the repo now."""
    repo = repository.open(settings, TENANT)
    head = repo.head()
    assert head is not None
    commits = list(git.history(repo.git_dir, head))
    for thread in THREADS:
        windows = [
            trailers.decode_list(commit.trailer("Docmem-Turns") or "")
            for commit in reversed(commits)
            if commit.trailer("Docmem-Thread") == thread
        ]
        every = done_windows(repo, thread)
        expected = [tuple(f"t{n * TURNS + k}" for k in range(1, TURNS + 1)) for n in range(every)]
        if [tuple(turns) for turns in windows] != expected:
            yield f"{thread}: {len(windows)} commits for {every} windows, or not in order"
        texts = Counter(stored.memory.text for stored in repo.snapshot().memories(subject(thread)))
        wanted = Counter(f"The traveller wants item t{n * TURNS} of thread {thread}." for n in range(1, every + 1))
        if texts != wanted:
            yield f"{thread}: {len(texts - wanted)} memories too many, {len(wanted - texts)} too few"
    notes = [path for path in git.files(repo.git_dir, head, "knowledge") if path.endswith(".md")]
    if len(notes) != pushed:
        yield f"{len(notes)} pushed notes are there, and {pushed} were pushed"
    done = subprocess.run(
        ["git", "-C", str(repo.git_dir), "fsck", "--strict", "--no-dangling"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or done.stderr.strip():
        yield f"fsck: {done.stdout} {done.stderr}"


def main() -> int:
    """Kill, check and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="15 random kills")
    parser.add_argument("--kills", type=int, help="random kills (200)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one JSON object last")
    options = parser.parse_args()
    kills = options.kills or (15 if options.quick else 200)
    folder = Path(tempfile.mkdtemp(prefix="docmem-kill-"))
    settings = Settings(root=folder / "root", secret="killed", embedding_model="none")
    try:
        repository.create(settings, TENANT)
        wrong = list(at_each_step(settings))
        wrong += faults(settings, pushed=0)
        print(f"{len(STEPS)} steps, one kill each: {wrong or 'clean'}")
        counted, pushed = under_load(settings, folder, kills=kills, chance=random.Random(options.seed))
        for thread in THREADS:  # whoever died last is run again
            one_window(settings, thread)
        wrong += faults(settings, pushed=pushed)
        repo = repository.open(settings, TENANT)
        windows = sum(done_windows(repo, thread) for thread in THREADS)
    except DocmemError as error:
        print(f"{type(error).__name__}: {error.message}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    figures = {"steps": len(STEPS), "kills": dict(counted), "windows": windows, "pushes": pushed, "wrong": wrong}
    print(f"{kills} random kills ({dict(counted)}): {windows} windows committed, {pushed} pushes")
    print("\n".join(wrong) if wrong else "one commit a window, watermarks at the last turn, fsck clean")
    if options.json:
        print(json.dumps(figures))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
