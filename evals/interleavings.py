"""Random interleavings, long and seeded: in none is a memory lost, doubled or written without evidence.

    python evals/interleavings.py [--quick] [--seed 1] [--worlds 60] [--steps 25] [--json]

In each world two threads of one person are consolidated; while a model thinks, the other thread may be consolidated
too, and a person edits, removes, writes or pins, reviews (approve, amend, reject), reverts, and an agent saves and
forgets. After every step all of the repo is looked at: every file parses, each id and each statement is there once,
what is gone was announced, what came is borne by its commit's turns, and each turn lies in one window. The test suite
runs the same in short, with plans that hypothesis chooses. Exits 1 at the first thing wrong, with the plan to repeat.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the world is the test suite's

from docmem import git
from docmem.config import Settings
from tests.support.world import ALONE, THREADS, Step, World, fresh


def step(chance: random.Random, *, deep: bool = True) -> Step:
    """Something that one of them does; every second time a window, with what comes meanwhile."""
    if deep and chance.random() < 0.5:
        meanwhile = tuple(step(chance, deep=False) for _ in range(chance.randrange(4)))
        return Step(chance.choice(THREADS), chance.randrange(6), meanwhile)
    return Step(chance.choice([*ALONE, *THREADS]), chance.randrange(6))


def lived(world: World, plan: list[Step]) -> Counter[str]:
    """What was done in a world. Raises `AssertionError`, with how far it came, where something is wrong."""
    done: Counter[str] = Counter()
    for number, each in enumerate(plan, start=1):
        try:
            world.do(each)
            world.check()
        except Exception as error:
            raise AssertionError(f"step {number} of {plan}") from error
        done[each.who] += 1
        done.update(inner.who for inner in each.meanwhile)
    return done


def main() -> int:
    """Live through the worlds, count and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="3 worlds of 8 steps")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worlds", type=int)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--json", action="store_true", help="one JSON object last")
    options = parser.parse_args()
    worlds = options.worlds or (3 if options.quick else 60)
    steps = options.steps or (8 if options.quick else 25)
    chance = random.Random(options.seed)
    done: Counter[str] = Counter()
    commits = memories = 0
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="docmem-interleavings-") as root:
        for _ in range(worlds):
            world = fresh(Settings(root=Path(root), secret="interleaved", embedding_model="none"))
            done += lived(world, [step(chance) for _ in range(steps)])
            commits += world.acme.commits()
            memories += len(world.stored())
            git.close(world.acme.repo.git_dir)
    seconds = time.perf_counter() - started
    windows = sum(done[thread] for thread in THREADS)
    print(f"{worlds} worlds x {steps} steps, seed {options.seed}: {sum(done.values())} acts, {windows} of them windows")
    print(f"{commits} commits, {memories} memories at the ends; nothing lost, doubled or made up ({seconds:.0f} s)")
    if options.json:
        figures = {"worlds": worlds, "done": dict(sorted(done.items())), "commits": commits, "memories": memories}
        print(json.dumps({**figures, "seed": options.seed, "seconds": round(seconds, 1)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
