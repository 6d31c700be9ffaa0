"""C3 and the writers in short: the long runs' figures stand in evals/README.md."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

EVALS = Path(__file__).parents[2] / "evals"


def figures(script: str, *options: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(EVALS / script), "--quick", "--json", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_kill_at_any_step_or_time_leaves_exactly_one_commit_a_window() -> None:
    """C3"""
    found = figures("kill_matrix.py", "--kills", "8")
    assert found["wrong"] == []
    assert found["kills"]["killed alone"] + found["kills"]["killed with their git"] == 8
    assert found["windows"] > found["steps"]


def test_of_several_processes_on_one_tenant_none_loses_a_window() -> None:
    found = figures("writers.py")
    assert (found["windows"], found["committed"], found["lost"], found["twice"]) == (20, 20, 0, 0)


def test_a_seeded_run_of_random_interleavings_loses_doubles_and_makes_up_nothing() -> None:
    found = figures("interleavings.py", "--worlds", "2")
    assert found["worlds"] == 2
    assert found["commits"] > found["worlds"]
