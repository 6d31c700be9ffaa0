"""sync/deploy: what an operator copies is valid, and does what it says."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from docmem.config import Settings
from docmem.files import render_memory
from tests.support.index import rows
from tests.support.repos import memory, put
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "sync" / "deploy"
DOCMEM = Path(sys.executable).with_name("docmem")
UNITS = sorted(path.name for path in DEPLOY.iterdir() if path.suffix in {".service", ".timer"})
SERVED = "SELECT text FROM docmem.memory"


def environment(settings: Settings) -> dict[str, str]:
    """That of a service: only what its settings say."""
    dsns = {"DOCMEM_DSN": settings.dsn, "DOCMEM_SYNC_DSN": settings.sync_dsn, "DOCMEM_OWNER_DSN": settings.owner_dsn}
    named = {"DOCMEM_ROOT": str(settings.root), "DOCMEM_EMBEDDING_MODEL": "none", "PATH": os.environ["PATH"]}
    return named | {name: dsn or "" for name, dsn in dsns.items()}


def command(unit: str) -> list[str]:
    """What a unit starts, as it is installed here."""
    parsed = configparser.ConfigParser(strict=False, interpolation=None)
    parsed.read(DEPLOY / unit)
    words = shlex.split(parsed["Service"]["ExecStart"])
    assert words[0] == "/opt/docmem/bin/docmem"
    return [str(DOCMEM), *(word for word in words[1:] if not word.startswith("$"))]


def cronjob() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "cronjob.yaml").read_text())
    return found


def container() -> dict[str, Any]:
    [found] = cronjob()["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    return dict(found)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    for unit in UNITS:
        text = (DEPLOY / unit).read_text().replace("/opt/docmem/bin/docmem", str(DOCMEM))
        (tmp_path / unit).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", *(str(tmp_path / unit) for unit in UNITS)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    ours = [line for line in done.stderr.splitlines() if "docmem" in line]
    assert (done.returncode, ours) == (0, [])


@pytest.mark.usefixtures("tenant")
def test_the_service_mirrors_commits_and_ends_in_order(indexed: Settings) -> None:
    options = re.findall(r"^# SYNC_OPTIONS=(.*)$", (DEPLOY / "docmem.env").read_text(), re.MULTILINE)
    assert shlex.split(options[0])[0] == "--metrics-port"
    words = [*command("docmem-sync.service"), *shlex.split(options[0])[2:]]
    process = subprocess.Popen(words, env=environment(indexed), stdout=subprocess.PIPE)
    try:
        item = memory("Likes tea.")
        put(indexed, "acme", {item.path: render_memory(item)})
        wait_until(lambda: rows(indexed, SERVED))
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 0


@pytest.mark.usefixtures("tenant")
def test_the_timers_service_and_the_cron_job_do_one_pass(indexed: Settings) -> None:
    for number, words in enumerate((command("docmem-sync-once.service"), [str(DOCMEM), *container()["command"][1:]])):
        item = memory(f"Likes tea {number}.", number=number)
        put(indexed, "acme", {item.path: render_memory(item)})
        subprocess.run(words, env=environment(indexed), check=True, capture_output=True)
        assert len(rows(indexed, SERVED)) == number + 1


def test_the_cron_job_is_one() -> None:
    kubernetes = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    kubernetes.validate(cronjob(), "1.30", strict=True)


def test_settings_are_named_as_docmem_reads_them() -> None:
    known = set(re.findall(r'"(DOCMEM_[A-Z_]+)"', (ROOT / "docmem" / "config.py").read_text()))
    written = set(re.findall(r"^(DOCMEM_\w+)=", (DEPLOY / "docmem.env").read_text(), re.MULTILINE))
    assert written <= known
    assert {item["name"] for item in container()["env"]} <= known


@pytest.mark.usefixtures("tenant")
def test_a_push_to_an_origin_with_the_hook_is_served(indexed: Settings, tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=Ana", "-c", "user.email=ana@example.org"]
    home = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"} | environment(indexed)

    def run(*words: str, folder: Path = tmp_path) -> None:
        subprocess.run(words, cwd=folder, env=home, check=True, capture_output=True)

    run("git", "init", "--quiet", "--bare", "--initial-branch=main", "origin.git")
    run(str(DOCMEM), "remote", "acme", str(tmp_path / "origin.git"))
    shutil.copy(DEPLOY / "post-receive", tmp_path / "origin.git" / "hooks")
    for key, value in (("docmem.tenant", "acme"), ("docmem.command", str(DOCMEM))):
        run("git", "config", key, value, folder=tmp_path / "origin.git")
    run("git", "clone", "--quiet", "origin.git", "clone")
    item = memory("Likes tea.")
    file = tmp_path / "clone" / item.path
    file.parent.mkdir(parents=True)
    file.write_bytes(render_memory(item))
    run("git", "add", "--all", folder=tmp_path / "clone")
    run(*git, "commit", "--quiet", "--message", "edit", folder=tmp_path / "clone")
    run("git", "push", "--quiet", "origin", "main", folder=tmp_path / "clone")
    assert wait_until(lambda: rows(indexed, SERVED)) == [{"text": "Likes tea."}]
