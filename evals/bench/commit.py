"""What a commit of 4 files costs as the tenant grows: docmem, `git add` + `git commit`, GitPython's index.

    python evals/bench/commit.py [--quick] [--json]

Ratios: `growth` = docmem's p50 at the largest size / at 1k files; `vs_git` = git add + commit / docmem at the largest;
`vs_gitpython` alike; `tries` = fast-imports per commit of 8 processes that each commit 25 times.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from docmem import git, layout, names
from report import Bench, arguments, timed

WHEN = datetime(2026, 1, 1, tzinfo=UTC)
WHO = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]


def path_of(number: int) -> str:
    """A memory's path, sharded as format 1 does it."""
    subject = names.subject_of_id("bench", f"person {number // 10}")
    return f"{layout.subject_dir(subject)}/memories/{number}.md"


def content(number: int, turn: int = 0) -> bytes:
    """A small memory."""
    return f"---\nid: {number:016x}\nkind: fact\n---\nStatement {number}, said {turn} times.\n".encode()


def filled(folder: Path, size: int) -> Path:
    """A bare repo with `size` files in one commit."""
    repo = folder / f"{size}.git"
    git.init(repo)
    git.commit(repo, base=None, files={path_of(n): content(n) for n in range(size)}, message="fill", when=WHEN)
    return repo


def work_tree(repo: Path) -> Path:
    """A clone with a work tree."""
    tree = repo.with_suffix(".work")
    subprocess.run(["git", "clone", "-q", "--no-local", str(repo), str(tree)], check=True)
    return tree


def docmem_commit(repo: Path, size: int) -> Callable[[], None]:
    """Commits 4 files the docmem way."""
    turn = 0

    def commit() -> None:
        nonlocal turn
        turn += 1
        changed = {path_of(turn * 7 + n): content(n, turn) for n in range(4)}
        with git.lock(repo):
            git.commit(repo, base=git.head(repo), files=changed, message=f"turn {turn}", when=WHEN)

    return commit


def git_commit(tree: Path) -> Callable[[], None]:
    """Commits 4 files with `git add` and `git commit`."""
    turn = 0

    def commit() -> None:
        nonlocal turn
        turn += 1
        paths = write(tree, turn)
        subprocess.run(["git", "-C", str(tree), "add", *paths], check=True)
        subprocess.run(["git", "-C", str(tree), *WHO, "commit", "-qm", f"turn {turn}"], check=True)

    return commit


def gitpython_commit(tree: Path) -> Callable[[], None]:
    """Commits 4 files with GitPython's index."""
    from git import Actor, Repo

    repo, who, turn = Repo(tree), Actor("bench", "bench@localhost"), 0

    def commit() -> None:
        nonlocal turn
        turn += 1
        repo.index.add(write(tree, turn))
        repo.index.commit(f"turn {turn}", author=who, committer=who)

    return commit


def write(tree: Path, turn: int) -> list[str]:
    """Write 4 files into a work tree; returns their paths."""
    paths = []
    for n in range(4):
        path = path_of(turn * 7 + n)
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(content(n, turn))
        paths.append(path)
    return paths


def write_alone(repo: str, writer: int, commits: int) -> int:
    """One of several processes; returns how many fast-imports it needed."""
    tries = 0
    for number in range(commits):
        with git.lock(Path(repo)):
            tries += 1
            changed: dict[str, bytes | None] = {f"knowledge/{writer}-{number}.md": b"x\n"}
            git.commit(Path(repo), base=git.head(Path(repo)), files=changed, message="x", when=WHEN)
    return tries


def interleaved(ways: Mapping[tuple[str, int], Callable[[], None]], rounds: int) -> dict[tuple[str, int], list[float]]:
    """Seconds of each way's commits, one of each in turn: a busy moment of the machine falls on all of them."""
    times: dict[tuple[str, int], list[float]] = {key: [] for key in ways}
    for _ in range(rounds):
        for key, commit in ways.items():
            times[key] += timed(commit, 1)
    return times


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__ or "")
    bench = Bench("commit", options.quick)
    sizes = [1_000, 2_000] if options.quick else [1_000, 10_000, 100_000]
    rounds = 10 if options.quick else 60
    with tempfile.TemporaryDirectory() as name:
        repos = {size: filled(Path(name), size) for size in sizes}
        trees = {size: work_tree(repo) for size, repo in repos.items()}
        times = interleaved({("docmem", size): docmem_commit(repo, size) for size, repo in repos.items()}, rounds)
        largest = sizes[-1]
        peers = {
            ("docmem", largest): docmem_commit(repos[largest], largest + 1),
            **{("git add + commit", size): git_commit(tree) for size, tree in trees.items()},
        }
        beside = interleaved(peers, min(rounds, 15))
        beside |= interleaved({("GitPython index", size): gitpython_commit(tree) for size, tree in trees.items()}, 3)
        writers, commits = 8, 5 if options.quick else 25
        with multiprocessing.get_context("spawn").Pool(writers) as pool:
            jobs = [(str(repos[largest]), writer, commits) for writer in range(writers)]
            tries = sum(pool.starmap(write_alone, jobs))
    found = {key: bench.row(*key, times[key])["p50_ms"] for key in times}
    near = bench.row("docmem, beside git", largest, beside.pop(("docmem", largest)))["p50_ms"]
    found |= {key: bench.row(*key, seconds)["p50_ms"] for key, seconds in beside.items()}
    bench.ratios = {
        "growth": found["docmem", largest] / found["docmem", sizes[0]],
        "vs_git": found["git add + commit", largest] / near,
        "vs_gitpython": found["GitPython index", largest] / near,
        "tries": tries / (writers * commits),
    }
    bench.finish(as_json=options.json)


if __name__ == "__main__":
    os.environ["GIT_CONFIG_GLOBAL"] = os.devnull
    main()
