"""What turns cost while Postgres is away and the repo that serves instead is large, broken, or changing under them.

    python evals/broken_repos.py [--quick] [--seconds 20] [--seed 1] [--json]

- `thousands`: one person has 20,000 memories;
- `unreadable`: nine of ten of 20,000 files don't parse;
- `large`: documents of 1 MB, of one line and of many, and of 20 MB, which are refused;
- `vandal`: commits, forced pushes, `gc --prune=now`, garbage for main, and the repo, its HEAD and its objects moved
  away and back, all in a random order while two threads ask.

Printed: turns, how many were served from the files, p50, p99 and the slowest. Exits 1 where one took more than 250 ms,
or ended by an error that nobody expects.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from docmem import names, repository
from docmem.config import Settings
from docmem.errors import DocmemError
from docmem.files import render_memory
from docmem.inject import Injector
from docmem.layout import memory_path
from docmem.model import Memory, Source

TENANT, PERSON = "acme", "ana"
SLOWEST_MS = 250.0
GOALS = ("Where does the traveller like the museum?", None, "boats and trains 7", "the traveller likes Porto")
WORDS = (
    "museum",
    "boat",
    "train",
    "hotel",
    "castle",
    "garden",
    "market",
    "ferry",
    "wine",
    "coffee",
    "island",
    "bridge",
)
CONFIG = b"format: 1\nlanguage: english\nagents: {default: {}}\n"

Files = dict[str, bytes | None]


def memories(rng: random.Random, size: int, *, readable: Callable[[int], bool] = lambda _: True) -> Files:
    """So many memories of one person, and files that are none in place of those that aren't readable."""
    subject = names.subject_of_id(TENANT, PERSON)
    found: Files = {}
    for number in range(size):
        text = f"The traveller likes the {' and the '.join(rng.choices(WORDS, k=6))} {number} in Porto."
        path = memory_path(subject, f"{number:016x}", "m")
        memory = Memory(
            id=f"{number:016x}",
            kind=("fact", "decision", "preference")[number % 3],
            text=text,
            subject=subject,
            path=path,
            source=Source(thread="t", turns=("1",)),
        )
        broken = (b"---\n" + b"[" * 5_000 + b"\n---\nx", b"no head \xff\xfe\0")[number % 2]
        found[path] = render_memory(memory) if readable(number) else broken
    return found


def large() -> Files:
    """A memory, and documents as large as may be and larger."""
    page = "The traveller likes Porto, for 1.200,50 euros.\n\n"
    return {
        **memories(random.Random(1), 1),
        "steering/kind.md": b"Be kind. " * 110_000,
        "knowledge/line.md": b"porto " * 170_000,
        "knowledge/paragraphs.md": page.encode() * 20_000,
        "knowledge/refused.md": page.encode() * 420_000,
    }


def vandalize(settings: Settings, rng: random.Random, stop: threading.Event) -> None:
    """Do to a repo what may be done to it, until `stop`."""
    repo = repository.open(settings, TENANT)
    git_dir, base = repo.git_dir, repo.head()
    main, away = git_dir / "refs/heads/main", settings.root / "away"

    def git(*arguments: str) -> None:
        subprocess.run(["git", "--git-dir", str(git_dir), *arguments], capture_output=True, check=False)

    def commit() -> None:
        changed: Files = {
            "docmem.yaml": rng.choice((CONFIG, b"format: [")),
            f"knowledge/{rng.random()}.md": b"Porto.\n",
        }
        with suppress(DocmemError), repo.locked():
            repo.commit(repo.head(), changed, message="write", now=datetime.now(UTC))

    def garbage() -> None:
        main.parent.mkdir(parents=True, exist_ok=True)
        main.write_bytes(rng.choice((b"\xff garbage", b"0" * 40, b"", b"ref: refs/heads/none\n")))
        time.sleep(0.1)
        main.write_text(f"{base}\n")

    def move() -> None:
        moved = rng.choice((git_dir, git_dir / "HEAD", git_dir / "objects"))
        moved.rename(away)
        time.sleep(0.1)
        away.rename(moved)

    acts: list[Callable[[], None]] = [
        commit, commit, garbage, move, lambda: git("update-ref", "refs/heads/main", str(base)),
        lambda: git("gc", "--prune=now", "--quiet"),
    ]  # fmt: skip
    while not stop.wait(0.05):
        rng.choice(acts)()


def measure(name: str, files: Files, *, seconds: float, seed: int, askers: int = 1) -> Mapping[str, Any]:
    """Turns over a repo of these files, Postgres being away."""
    with tempfile.TemporaryDirectory() as root:
        away = "postgresql://nobody@127.0.0.1:1/docmem"
        settings = Settings(root=Path(root), dsn=away, embedding_model="none", secret="of the measure")
        repo = repository.create(settings, TENANT)
        with repo.locked():
            repo.commit(repo.head(), {"docmem.yaml": CONFIG, **files}, message="fill", now=datetime.now(UTC))
        stop, took, said = threading.Event(), [], Counter[str | None]()
        vandal = threading.Thread(target=vandalize, args=(settings, random.Random(seed), stop))
        if askers > 1:
            vandal.start()

        def ask(injector: Injector) -> None:
            number, end = 0, time.monotonic() + seconds
            while time.monotonic() < end:
                goal = GOALS[number % len(GOALS)]
                began = time.perf_counter()
                packet = injector.packet(TENANT, PERSON, goal and f"{goal} {number}", documents=("knowledge/line.md",))
                took.append(1e3 * (time.perf_counter() - began))
                said[packet.degraded] += 1
                number += 1
                time.sleep(0.02)

        with Injector(settings) as injector:
            threads = [threading.Thread(target=ask, args=(injector,)) for _ in range(askers)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        stop.set()
        if askers > 1:
            vandal.join()
    cuts = statistics.quantiles(took, n=100)
    return {
        "name": name,
        "n": len(took),
        "served": said["files"],
        "errors": said["error"],
        "p50_ms": round(cuts[49], 2),
        "p99_ms": round(cuts[98], 2),
        "slowest_ms": round(max(took), 1),
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the files, five seconds each")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each is asked")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one JSON object last")
    options = parser.parse_args()
    size, seconds = (2_000, 5.0) if options.quick else (20_000, options.seconds)
    logging.getLogger("docmem").setLevel(logging.CRITICAL + 1)
    rng = random.Random(options.seed)
    rows = [
        measure("thousands", memories(rng, size), seconds=seconds, seed=options.seed),
        measure("unreadable", memories(rng, size, readable=lambda n: n % 10 == 0), seconds=seconds, seed=options.seed),
        measure("large", large(), seconds=seconds, seed=options.seed),
        measure("vandal", memories(rng, 300), seconds=seconds, seed=options.seed, askers=2),
    ]
    for row in rows:
        print(
            "{name:<11} {n:>5} turns, {served:>5} served; ms: p50 {p50_ms}, p99 {p99_ms}, slowest {slowest_ms}".format(
                **row
            )
        )
    if options.json:
        print(json.dumps({"bench": "broken_repos", "quick": options.quick, "rows": rows}))
    return int(any(row["slowest_ms"] > SLOWEST_MS or row["errors"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
