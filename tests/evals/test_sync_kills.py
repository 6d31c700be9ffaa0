"""The sync's must-hold scripts in short; the long runs' figures stand in evals/README.md."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "evals" / "sync_kills.py"


def test_after_any_kill_the_next_sync_comes_to_what_one_built_anew_says_and_nobody_read_a_mix() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--quick", "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["wrong"], found["mixed"], sum(found["kills"].values())) == ([], [], 3)
    assert found["reads"] > 0
