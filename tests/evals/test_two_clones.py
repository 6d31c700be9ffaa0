"""The must-hold script in short; the long run's figures stand in evals/README.md."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "evals" / "two_clones.py"


def test_every_accepted_change_of_everyone_is_in_the_history_exactly_once() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--quick", "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["lost"], found["twice"], found["overwritten"], found["fsck"]) == ([], [], [], [])
    assert found["accepted"] > 10
    assert all(found["actors"][name] for name in ("pat", "kim", "liv"))
