"""Two clones, one live checkout, two engine writers, one remote: random work, and every accepted change is in the
history exactly once.

    python evals/two_clones.py [--quick] [--minutes 10] [--seed 1] [--json]

Two machines share one tenant through a plain bare repo. On each an engine consolidates; one person pushes to a
machine's store, another to the bare repo, a third saves files in a live checkout (in place, by rename, as vim does,
half a file first, invalid ones that stay). Each change carries a word of its own. Exits 1 where an accepted word was
added to main's files no time or twice, where a file of the live person's isn't what they saved last, or where
`git fsck --strict` finds anything.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from docmem import checkout, names, repository
from docmem.config import Settings
from docmem.consolidation import consolidate
from docmem.errors import DocmemError
from docmem.model import Job, Turn
from docmem.prompt import Request
from docmem.reply import Answer, from_value

TENANT = "acme"
BOARD = "knowledge/board.md"
ACTORS = ("pat", "kim", "liv")
PAUSE = (0.2, 2.0)
"""How long people think between two changes, in seconds."""
_KEEP = "a line between\n" * 4


@dataclass(frozen=True)
class Says:
    """A model that states one thing."""

    text: str
    name: str = "scripted"

    def propose(self, request: Request) -> Answer:
        """One create, with the window's first turn as evidence."""
        operation = {
            "op": "create", "id": None, "kind": "fact", "topic": "trip_plans", "text": self.text, "confidence": 0.9,
            "importance": 5, "evidence_turns": ["t1"], "quote": None,
        }  # fmt: skip
        profile: dict[str, Any] = {
            "preferred_language": None,
            "locale": None,
            "lifecycle_stage": None,
            "attributes": [],
        }
        return Answer(from_value({"operations": [operation], "profile": profile}), tokens_in=0, tokens_out=0)


def engine(root: str, name: str, until: float, seed: int, out: str) -> None:
    """Consolidate one window after the other; an accepted word is noted in the file `out`."""
    settings = Settings(root=Path(root), secret="two clones", embedding_model="none")
    chance = random.Random(f"{seed}{name}")
    tries, number = Counter[str](), 0
    with Path(out).open("w") as accepted:
        while time.time() < until:
            word = f"{name}{number:05d}x"
            job = Job(TENANT, f"{name}-{number}", names.subject_of_id(TENANT, f"{name}{number % 5}"))
            said = Turn("t1", "user", f"I plan the trip {word}.", at=datetime.now(UTC))
            try:
                done = consolidate(job, settings=settings, turns=[said], model=Says(f"The traveller plans {word}."))
                tries[done.outcome] += 1
            except DocmemError as error:
                tries[error.code] += 1
                continue
            if done.outcome == "committed":
                accepted.write(f"{word}\n")
            if done.outcome != "conflict":
                number += 1
            time.sleep(chance.uniform(*PAUSE))
        accepted.write(f"# {json.dumps(tries)}\n")


@dataclass
class Actor:
    """Somebody at work in a folder. `accepted`: words of changes that are in; `open`: of those that nobody knows of."""

    name: str
    folder: Path
    chance: random.Random
    accepted: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    number: int = 0
    saved: dict[str, bytes] = field(default_factory=dict)

    def word(self) -> str:
        """A word that stands for one change."""
        self.number += 1
        return f"{self.name}{self.number:05d}x"

    def git(self, *words: str) -> tuple[bool, str]:
        """Run git in the folder, under a name of their own."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "DOCMEM_"))}
        identity = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER")
                    for key, value in (("NAME", self.name), ("EMAIL", f"{self.name}@example.com"))}  # fmt: skip
        done = subprocess.run(
            ["git", "-C", str(self.folder), *words], env=kept | identity, capture_output=True, text=True, check=False
        )
        return done.returncode == 0, done.stdout + done.stderr

    def change(self, word: str) -> tuple[str, bytes | None]:
        """A file to write: a new one, one's own line of the shared board, or an old one of one's own to remove."""
        mine = sorted((self.folder / "knowledge").glob(f"{self.name}-*.md"))
        kind = self.chance.choice(["new", "new", "board", "edit", "remove"])
        if kind == "board":
            return BOARD, on_board(self.folder / BOARD, self.name, word)
        if kind == "new" or not mine:
            return f"knowledge/{self.name}-{word}.md", f"# {word}\n".encode()
        path = f"knowledge/{self.chance.choice(mine).name}"
        if kind == "remove":
            return path, None
        return path, (self.folder / path).read_bytes() + f"{word}\n".encode()


def on_board(file: Path, name: str, word: str) -> bytes:
    """The shared file with another word on somebody's line."""
    lines = file.read_text().splitlines(keepends=True)
    return "".join(f"{name}: {word}\n" if line.startswith(f"{name}:") else line for line in lines).encode()


def commit_and_push(actor: Actor) -> None:
    """One change of a person with plain git: commit, push; pull and push again where somebody was faster."""
    actor.git("pull", "--quiet", "--rebase")
    word = actor.word()
    path, data = actor.change(word)
    file = actor.folder / path
    file.parent.mkdir(exist_ok=True)
    if data is None:
        file.unlink()
    else:
        file.write_bytes(data)
    actor.git("add", "--all")
    if not actor.git("commit", "--quiet", "--no-verify", "-m", word)[0]:
        return
    for _ in range(6):
        if actor.git("push", "--quiet", "origin", "HEAD:main")[0]:
            actor.done["pushed"] += 1
            if data is not None:
                actor.accepted.append(word)
            return
        if not actor.git("pull", "--quiet", "--rebase")[0]:
            break
    actor.git("rebase", "--abort")
    actor.git("fetch", "--quiet")
    actor.git("reset", "--quiet", "--hard", "origin/main")
    actor.done["given up"] += 1


def save(actor: Actor) -> None:
    """One save in the live checkout, in one of the ways that editors have."""
    word = actor.word()
    if actor.chance.random() < 0.1:
        path = f"knowledge/{actor.name}-bad-{actor.number % 3}.md"
        write(actor.folder / path, b"<<<<<<< HEAD\n" + word.encode() + b"\n", actor.chance)
        actor.saved[path] = (actor.folder / path).read_bytes()
        actor.done["invalid"] += 1
        return
    path, data = actor.change(word)
    if "-bad-" in path:
        return
    file = actor.folder / path
    if data is None:
        file.unlink()
        actor.saved.pop(path, None)
        actor.done["removed"] += 1
        return
    if path == BOARD and on_board(file, actor.name, word) != data:
        return  # it changed on disk: the editor asks, and the person starts again
    write(file, data, actor.chance)
    actor.saved[path] = data
    actor.done["saved"] += 1
    if is_committed(actor, path, data, word):  # a later save would take its place
        actor.accepted.append(word)


def is_committed(actor: Actor, path: str, data: bytes, word: str) -> bool:
    """Wait for a save to be committed; what a person has to settle first is settled, for upstream."""
    deadline = time.time() + 60
    while time.time() < deadline:
        good, text = actor.git("show", f"HEAD:{path}")
        if good and (text.encode() == data or (path == BOARD and word in text)):
            return True
        for row in actor.git("diff", "--name-only", "--diff-filter=U")[1].split():
            actor.git("checkout", "--ours", "--", row)
            actor.git("add", row)
            actor.saved.pop(row, None)
            actor.done["settled"] += 1
        time.sleep(0.2)
    actor.done["not committed"] += 1
    return False


def write(file: Path, data: bytes, chance: random.Random) -> None:
    """In place, in two halves, by rename, or as vim."""
    file.parent.mkdir(exist_ok=True)
    kind = chance.choice(["place", "halves", "rename", "vim"])
    if kind == "rename" or file.name == Path(BOARD).name:
        fresh = file.with_name(f".goutputstream-{chance.randrange(10**6)}")
        fresh.write_bytes(data)
        fresh.replace(file)
    elif kind == "vim" and file.exists():
        file.rename(file.with_name(file.name + "~"))
        file.write_bytes(data)
        file.with_name(file.name + "~").unlink()
    elif kind == "halves":
        with file.open("wb") as out:
            out.write(data[: len(data) // 2])
            out.flush()
            time.sleep(chance.uniform(0, 0.8))
            out.write(data[len(data) // 2 :])
    else:
        file.write_bytes(data)


def goes_on(work: Callable[[Actor], None], actor: Actor, until: float) -> threading.Thread:
    """Do `work` again and again until the time is up."""

    def loop() -> None:
        while time.time() < until:
            work(actor)
            time.sleep(actor.chance.uniform(*PAUSE))

    thread = threading.Thread(target=loop)
    thread.start()
    return thread


def run(base: Path, seconds: float, seed: int) -> dict[str, Any]:
    """Lay it all out, work, wait until it is quiet, and look."""
    host = base / "host.git"
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(host)], check=True)
    roots = [base / "a", base / "b"]
    stores = [repository.create(Settings(root=root, secret="two clones"), TENANT, origin=str(host)) for root in roots]
    board = "".join(f"{name}: nothing\n{_KEEP}" for name in ACTORS)
    with stores[0].locked():
        stores[0].commit(stores[0].head(), {BOARD: board.encode()}, message="Board\n", now=datetime.now(UTC))
    stores[1].exchange()
    pat, kim, liv = (Actor(name, base / name, random.Random(f"{seed}{name}")) for name in ACTORS)
    checkout.checkout(stores[0].settings, TENANT, pat.folder)
    subprocess.run(["git", "clone", "--quiet", str(host), str(kim.folder)], check=True)
    checkout.checkout(stores[1].settings, TENANT, liv.folder)
    liv.git("config", "user.name", "liv")
    until = time.time() + seconds
    outs = [base / "engine-a", base / "engine-b"]
    engines = [
        multiprocessing.Process(target=engine, args=(str(root), name, until, seed, str(out)))
        for root, name, out in zip(roots, ("ena", "enb"), outs, strict=True)
    ]
    for process in engines:
        process.start()
    live = subprocess.Popen(
        [sys.executable, "-m", "docmem", "checkout", TENANT, str(liv.folder), "--live"],
        env={**os.environ, "DOCMEM_ROOT": str(roots[1]), "DOCMEM_SECRET": "two clones"},
        stdout=(base / "live.log").open("w"), stderr=subprocess.STDOUT,
    )  # fmt: skip
    for thread in [
        goes_on(commit_and_push, pat, until),
        goes_on(commit_and_push, kim, until),
        goes_on(save, liv, until),
    ]:
        thread.join()
    for process in engines:
        process.join()
    quiet(stores, liv)
    live.send_signal(signal.SIGINT)
    live.wait(60)
    for store in stores:
        store.exchange()
    return found(host, stores, (pat, kim, liv), outs, (base / "live.log").read_text(), live.returncode)


def quiet(stores: list[repository.Repository], liv: Actor) -> None:
    """Wait until the live checkout has nothing more to commit, push or fetch."""
    deadline = time.time() + 60
    calm = 0
    while calm < 4 and time.time() < deadline:
        stores[1].exchange()
        time.sleep(1)
        same = liv.git("rev-parse", "HEAD")[1].strip() == stores[1].head()
        rest = [line for line in liv.git("status", "--porcelain")[1].splitlines() if "-bad-" not in line]
        calm = calm + 1 if same and not rest else 0


def found(
    host: Path, stores: list[repository.Repository], actors: tuple[Actor, ...], outs: list[Path], log: str, code: int
) -> dict[str, Any]:
    """The figures, and what is wrong."""
    patch = ["git", "-C", str(host), "log", "--first-parent", "-m", "-p", "-U0", "--no-renames", "--format=", "main"]
    lines = subprocess.run(patch, capture_output=True, text=True, check=True).stdout.splitlines()
    words = [word.strip(".#:") for line in lines if line[:1] == "+" and line[:3] != "+++" for word in line[1:].split()]
    added = Counter(words)
    noted = [line for out in outs for line in out.read_text().splitlines()]
    accepted = [line for line in noted if not line.startswith("#")]
    accepted += [word for actor in actors for word in actor.accepted]
    ours = {word for word in added if word[:3] in {*ACTORS, "ena", "enb"} and word.endswith("x")}
    liv = actors[2]
    changed = [path for path, data in liv.saved.items() if path != BOARD and _bytes(liv.folder / path) != data]
    checked = [host, *(store.git_dir for store in stores), *(actor.folder for actor in actors)]
    fsck = [str(path) for path in checked if not _is_sound(path)]
    heads = {_tip(path) for path in (host, *(store.git_dir for store in stores))}
    commits = subprocess.run(
        ["git", "-C", str(host), "rev-list", "--count", "main"], capture_output=True, text=True, check=True
    ).stdout.strip()  # fmt: skip
    return {
        "commits": int(commits),
        "accepted": len(accepted),
        "lost": sorted(word for word in accepted if added[word] == 0),
        "twice": sorted(word for word in ours if added[word] > 1),
        "overwritten": changed,
        "fsck": fsck,
        "one_head": len(heads) == 1,
        "live": dict(Counter(line.split()[1] for line in log.splitlines() if line[2:3] == ":")) | {"exit": code},
        "actors": {actor.name: dict(actor.done) for actor in actors},
        "engines": [json.loads(line[2:]) for line in noted if line.startswith("#")],
    }


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _tip(path: Path) -> str:
    return subprocess.run(["git", "-C", str(path), "rev-parse", "main"], capture_output=True, text=True).stdout


def _is_sound(path: Path) -> bool:
    done = subprocess.run(
        ["git", "-C", str(path), "fsck", "--strict", "--no-dangling"], capture_output=True, text=True, check=False
    )
    return done.returncode == 0 and not done.stdout.strip()


def is_well(figures: dict[str, Any]) -> bool:
    """Whether all holds."""
    wrong = [figures[key] for key in ("lost", "twice", "overwritten", "fsck")]
    return not any(wrong) and figures["one_head"] and figures["live"]["exit"] == 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--quick", action="store_true", help="twelve seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="work in this folder and leave it")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    seconds = 12.0 if given.quick else given.minutes * 60
    with tempfile.TemporaryDirectory() as folder:
        base = given.keep or Path(folder)
        base.mkdir(exist_ok=True)
        figures = {"seed": given.seed, "seconds": seconds, **run(base, seconds, given.seed)}
    for key, value in figures.items():
        print(f"{key:12} {value}")
    if given.json:
        print(json.dumps(figures))
    return 0 if is_well(figures) else 1


if __name__ == "__main__":
    sys.exit(main())
