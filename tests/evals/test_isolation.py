"""The isolation fuzz in short; the long run's figures stand in evals/README.md."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from docmem_evals.proxy import program

SCRIPT = Path(__file__).parents[2] / "evals" / "isolation.py"


def test_nobody_sees_or_changes_rows_of_another_tenant() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--quick", "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["foreign"], found["misplaced"], found["tries"]) == ([], [], 400)
    assert found["own"] > 50
    assert found["control"] > 0
    assert found["proxied"] == (200 if program() else 0)
