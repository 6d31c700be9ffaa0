"""8 separate processes × 50 windows on one tenant: every window committed, none lost, and `git log` says so.

    python evals/writers.py [--quick] [--writers 8] [--windows 50] [--json]

Each process consolidates a thread and a subject of its own, all at once. Exits 1 where a window is missing or twice.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from docmem import repository
from docmem.config import Settings
from kill_matrix import TENANT, one_window


def writes(root: str, thread: str, windows: int) -> Counter[str]:
    """One process: consolidate `windows` windows; returns the outcomes."""
    settings = Settings(root=Path(root), secret="killed", embedding_model="none")
    return Counter(one_window(settings, thread) for _ in range(windows))


def logged(git_dir: Path) -> Counter[tuple[str, str]]:
    """(thread, turns) of every commit on main, as plain `git log` tells."""
    form = (
        "%(trailers:key=Docmem-Thread,valueonly,separator=%x20)|%(trailers:key=Docmem-Turns,valueonly,separator=%x20)"
    )
    command = ["git", "-C", str(git_dir), "log", "--first-parent", f"--format={form}", "main"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    pairs = (line.partition("|")[::2] for line in lines)
    return Counter((thread, turns) for thread, turns in pairs if thread)


def main() -> int:
    """Write, count and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="4 writers of 5 windows")
    parser.add_argument("--writers", type=int)
    parser.add_argument("--windows", type=int)
    parser.add_argument("--json", action="store_true", help="one JSON object last")
    options = parser.parse_args()
    writers = options.writers or (4 if options.quick else 8)
    windows = options.windows or (5 if options.quick else 50)
    with tempfile.TemporaryDirectory(prefix="docmem-writers-") as root:
        settings = Settings(root=Path(root), secret="killed", embedding_model="none")
        repo = repository.create(settings, TENANT)
        started = time.perf_counter()
        with multiprocessing.get_context("spawn").Pool(writers) as pool:
            outcomes = sum(
                pool.starmap(writes, [(root, f"web-{number}", windows) for number in range(writers)]), Counter[str]()
            )
        seconds = time.perf_counter() - started
        found = logged(repo.git_dir)
    lost = writers * windows - len(found)
    twice = sum(found.values()) - len(found)
    figures = {"windows": writers * windows, "committed": len(found), "lost": lost, "twice": twice}
    print(
        f"{writers} processes x {windows} windows: {len(found)} committed, {lost} lost, {twice} twice ({seconds:.1f} s)"
    )
    print(f"outcomes: {dict(outcomes)}")
    if options.json:
        print(json.dumps({**figures, "outcomes": dict(outcomes), "seconds": round(seconds, 1)}))
    return 1 if lost or twice else 0


if __name__ == "__main__":
    sys.exit(main())
