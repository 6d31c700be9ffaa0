"""People with a clone: plain git in a shell of their own, as on any developer's machine."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Person:
    """Somebody with a clone in `folder`, a name, and an empty home."""

    folder: Path
    name: str = "Pat"

    @property
    def environment(self) -> dict[str, str]:
        """No configuration of the machine's or the developer's who runs the tests."""
        home = self.folder.parent / f"home-of-{self.name}"
        home.mkdir(exist_ok=True)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "DOCMEM_"))}
        config = home / ".gitconfig"
        if not config.exists():
            config.write_text(f"[user]\n\tname = {self.name}\n\temail = {self.name.lower()}@example.com\n")
        return {**kept, "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8"}

    def git(self, *words: str, ok: bool | None = True) -> str:
        """Run git in the clone; what it printed. `ok`: whether it has to succeed (None: either)."""
        done = subprocess.run(
            ["git", "-C", str(self.folder), *words], env=self.environment, capture_output=True, text=True, check=False
        )
        assert ok is None or (done.returncode == 0) == ok, f"git {' '.join(words)}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def clones(self, source: Path | str) -> Person:
        """An ordinary `git clone`."""
        done = subprocess.run(
            ["git", "clone", "--quiet", str(source), str(self.folder)],
            env=self.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return self

    def write(self, path: str, data: bytes | str | None) -> None:
        """Save a file, or remove it."""
        file = self.folder / path
        if data is None:
            file.unlink()
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)

    def commits(self, path: str, data: bytes | str | None, *, message: str = "By hand") -> str:
        """Save a file and commit it, whatever a hook says."""
        self.write(path, data)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--no-verify", "-m", message)
        return self.git("rev-parse", "HEAD").strip()

    def pushes(self, *options: str, ok: bool = True) -> str:
        """`git push` of the branch to main; what it printed."""
        return self.git("push", *options, "origin", "HEAD:main", ok=ok)
