"""Random histories of a branch, with syncs at random points: after each the index is what one built anew is.

    python evals/sync_histories.py [--quick] [--seeds 200] [--first 0] [--steps 40] [--json]

Commits that add, edit, move, swap, delete and spoil files, ids that meet, case twins, changed settings, merges with
either side first, branches moved back and rewritten, clocks that go back. After each sync all rows (memories, profiles,
documents, settings, quarantine, both histories) must equal those that a sync into an empty index makes. Exits 1, with
the seed, where they don't, or where a sync fails.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import psycopg

from docmem import git, postgres, repository
from docmem.config import Settings
from docmem_sync.drop import drop
from docmem_sync.migrate import migrate
from docmem_sync.sync import sync_tenant
from tests.support.branches import Branch
from tests.support.index import whole_index


@dataclass
class Run:
    """What was done, and the seeds that went wrong, each with the tables that differ."""

    seeds: int = 0
    commits: int = 0
    syncs: int = 0
    reconciled: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0


def one(run: Run, along: Settings, anew: Settings, seed: int, steps: int) -> None:
    """One tenant through one history."""
    tenant = f"t{seed}"
    repository.create(along, tenant)
    branch = Branch(along, tenant, seed)
    for step in range(steps):
        branch.step()
        run.commits += 1
        if branch.chance.random() < 0.5 and step < steps - 1:
            continue
        run.reconciled += sync_tenant(along, tenant, confirm_deletes=True).reconciled
        drop(anew, [tenant])
        sync_tenant(anew, tenant)
        run.syncs += 1
        brought, built = whole_index(along, tenant=tenant), whole_index(anew, tenant=tenant)
        run.rows.update({table: len(found) for table, found in built.items()})
        differing = [table for table in built if built[table] != brought[table]]
        if differing:
            run.wrong.append(f"seed {seed}, step {step}: {', '.join(differing)}")
            break
    shutil.rmtree(branch.repo.git_dir)
    git.close(branch.repo.git_dir)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3 seeds")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--json", action="store_true", help="one JSON object last")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="docmem-histories-"))
    folder.chmod(0o711)
    settings = Settings(root=folder, secret="histories", embedding_model="none")
    started = time.monotonic()
    run = Run()
    try:
        server = postgres.start(settings)
        along, anew = (_database(settings, server, name) for name in ("along", "anew"))
        for seed in range(options.first, options.first + (3 if options.quick else options.seeds)):
            try:
                one(run, along, anew, seed, options.steps)
            except Exception as error:  # noqa: BLE001 it is what this looks for, and the other seeds are tried as well
                run.wrong.append(f"seed {seed}: {type(error).__name__}: {error}")
            run.seeds += 1
    finally:
        git.close()
        postgres.remove(settings)
        shutil.rmtree(folder, ignore_errors=True)
    run.seconds = round(time.monotonic() - started, 1)
    _print(run, as_json=options.json)
    sys.exit(1 if run.wrong else 0)


def _database(settings: Settings, server: postgres.Server, name: str) -> Settings:
    postgres.create_database(server, name)
    with psycopg.connect(server.dsn("owner", database=name), autocommit=True) as connection:
        migrate(connection)
    return replace(
        settings,
        dsn=server.dsn("reader", database=name),
        sync_dsn=server.dsn("sync", database=name),
        owner_dsn=server.dsn("owner", database=name),
    )


def _print(run: Run, *, as_json: bool) -> None:
    print(
        f"{run.seeds} histories, {run.commits} commits, {run.syncs} syncs ({run.reconciled} over a rewritten history), "
        f"each compared: {len(run.wrong)} wrong  ({run.seconds} s)"
    )
    print("rows compared: " + ", ".join(f"{table} {count}" for table, count in sorted(run.rows.items())))
    for line in run.wrong:
        print(line)
    if as_json:
        print(json.dumps(run.__dict__))


if __name__ == "__main__":
    main()
