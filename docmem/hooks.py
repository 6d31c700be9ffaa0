"""The git hooks that docmem installs: in each store before and after a push, in a checkout before a commit.

A hook finds its Python and its root by itself: a push runs in somebody else's shell, or in a server's. Where docmem
can't be run the push is refused with a line that says so: a check that is skipped is none.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

_VERSION = 1
REFUSED = 10
"""Exit code of a hook's Python that looked and refused; any other failure means that nothing was looked at."""

_HEAD = """\
#!/bin/sh
# docmem's hook, version {version}. `docmem doctor --repair` writes it anew; what is changed here is lost then.
"""

_PYTHON = """\
unset PYTHONHOME
python={python}
for candidate in "$python" python3; do
  if "$candidate" -P -c 'import docmem.hooks' 2>/dev/null; then python=$candidate; break; fi
  if [ "$candidate" = python3 ]; then
    echo "docmem: {action} refused, since nothing can be checked: there is no docmem in $python any more" >&2
    echo "docmem:   {remedy}" >&2
    exit 1
  fi
done
"""

_ROOT = """\
root={root}
here=$(pwd -P)
case $here in */tenants/*.git) root=${{here%/tenants/*}};; esac
tenant=$(basename "$here" .git)
"""

_PRE_RECEIVE = """\
DOCMEM_ROOT=$root "$python" -P -m docmem.receive
case $? in
  0) exit 0;;
  10) exit 1;;
  *) echo "docmem: the push is refused, since the check itself failed (see above)" >&2; exit 1;;
esac
"""

_POST_RECEIVE = """\
cat >/dev/null
{ mkdir -p "$root/poke" && touch "$root/poke/$tenant"; } 2>/dev/null
exit 0
"""

_PRE_COMMIT = """\
exec "$python" -P -m docmem check --staged
"""


def install_store(git_dir: Path, root: Path) -> None:
    """Put the hooks of a store in place, unless they are."""
    for name, script in _store(root).items():
        _write(git_dir / "hooks" / name, script)


def store_fault(git_dir: Path, root: Path) -> str | None:
    """What is wrong with a store's hooks; None where they are in order, whichever Python they name."""
    for name, script in _store(root).items():
        path = git_dir / "hooks" / name
        there = path.read_text(errors="replace") if path.is_file() else ""
        if _without_places(there) != _without_places(script):
            return f"its {name} hook is {'not the one of this version' if there else 'missing'}"
        if not os.access(path, os.X_OK):
            return f"its {name} hook can't be executed"
        gone = [python for python in _pythons(there) if not os.access(python, os.X_OK)]
        if gone:
            return f"its {name} hook names {gone[0]}, which is gone"
    return None


def install_checkout(git_dir: Path) -> None:
    """Put the check before a commit in place. `git_dir`: the clone's."""
    remedy = "install it again and repeat docmem checkout, or commit without the check: git commit --no-verify"
    script = _HEAD.format(version=_VERSION) + _python("the commit is", remedy) + _PRE_COMMIT
    _write(git_dir / "hooks" / "pre-commit", script)


def _store(root: Path) -> dict[str, str]:
    remedy = "whoever keeps the store: install it again, then docmem doctor --repair"
    head = _HEAD.format(version=_VERSION)
    where = _ROOT.format(root=shlex.quote(str(root)))
    return {
        "pre-receive": head + _python("the push is", remedy) + where + _PRE_RECEIVE,
        "post-receive": head + where + _POST_RECEIVE,
    }


def _python(action: str, remedy: str) -> str:
    return _PYTHON.format(python=shlex.quote(sys.executable), action=action, remedy=remedy)


def _without_places(script: str) -> list[str]:
    return [line for line in script.splitlines() if not line.startswith(("python=", "root="))]


def _pythons(script: str) -> list[str]:
    return [shlex.split(line)[0].removeprefix("python=") for line in script.splitlines() if line.startswith("python=/")]


def _write(path: Path, script: str) -> None:
    """Whole or not at all: a push may come at any moment."""
    if path.is_file() and path.read_text(errors="replace") == script and os.access(path, os.X_OK):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(script)
    fresh.chmod(0o755)
    fresh.replace(path)
