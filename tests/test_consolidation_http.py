"""Consolidation through litellm against a server on loopback, as a process of its own where it gets killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from docmem import audit, git, names, repository
from docmem.config import Settings
from docmem.consolidation import Consolidation, consolidate
from docmem.llm import LitellmModel
from docmem.model import Job, Turn
from docmem.patience import Patience
from tests.support.model_server import BreaksOff, Fails, Hangs, ModelServer, Says, Scripted
from tests.support.waiting import wait_until

JOB = Job("acme", "web-1", names.subject_of_id("acme", "ana"))
TURN = Turn("t1", "user", "We plan Portugal in May.")
OPERATION: dict[str, Any] = {
    "op": "create",
    "id": None,
    "kind": "fact",
    "topic": "trip_plans",
    "text": "The traveller plans Portugal in May.",
    "confidence": 0.9,
    "importance": 6,
    "evidence_turns": ["t1"],
    "quote": "plan Portugal",
}
PROFILE: dict[str, Any] = {"preferred_language": None, "locale": None, "lifecycle_stage": None, "attributes": []}
REPLY: dict[str, Any] = {"operations": [OPERATION], "profile": PROFILE}
GOOD = Says(json.dumps(REPLY))


@contextmanager
def serving(monkeypatch: pytest.MonkeyPatch, *script: Scripted) -> Iterator[ModelServer]:
    with ModelServer(script).running() as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "unused")
        yield server


def run(settings: Settings, *, timeout: float = 20) -> Consolidation:
    model = LitellmModel("openai/test", Patience(timeout=timeout), sleep=lambda seconds: None)
    return consolidate(JOB, settings=settings, turns=[TURN], model=model)


def test_a_window_goes_from_the_model_to_a_commit(
    settings: Settings, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(monkeypatch, GOOD) as server:
        done = run(settings)
    assert (done.outcome, done.operations, done.tokens_in, done.tokens_out) == ("committed", {"create": 1}, 100, 20)
    (request,) = server.requests
    assert request["response_format"]["type"] == "json_schema"
    assert "We plan Portugal in May." in request["messages"][1]["content"]


WRAPPED = [
    f"Sure, here it is:\n```json\n{json.dumps(REPLY)}\n```\nAnything else?",
    f"<think>Portugal {{maybe}}</think>{json.dumps(REPLY)}",
    json.dumps({**REPLY, "note": "extra"}),
]


@pytest.mark.parametrize("text", WRAPPED)
def test_c1_a_wrapped_reply_needs_no_repair(
    settings: Settings, tenant: str, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    with serving(monkeypatch, Says(text)) as server:
        done = run(settings)
    assert (done.outcome, len(server.requests), done.dropped_keys) == ("committed", 1, int("extra" in text))


BROKEN = {
    "empty": "",
    "truncated": json.dumps(REPLY)[:-30],
    "single quotes": str(REPLY),
    "missing key": json.dumps({"operations": []}),
    "list for object": json.dumps([REPLY]),
    "null operations": json.dumps({**REPLY, "operations": None}),
    "refusal": "I'm sorry, but I can't help with that.",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_c1_a_broken_reply_gets_two_repairs_and_then_nothing_is_written(
    settings: Settings, tenant: str, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    repo = repository.open(settings, tenant)
    head = repo.head()
    with serving(monkeypatch, Says(text)) as server:
        done = run(settings)
    assert (done.outcome, done.watermark, repo.head(), len(server.requests)) == ("failed", None, head, 3)
    assert repo.snapshot().watermark(JOB.thread) is None
    assert audit.entries(settings, tenant)[0]["reply"] == text
    with serving(monkeypatch, Says(text), GOOD):
        assert run(settings).outcome == "committed", "the same window, repaired"


@pytest.mark.parametrize(
    "trouble",
    [Fails(500), Fails(503), BreaksOff(), Fails(429, headers={"Retry-After": "2"}), Hangs()],
    ids=lambda trouble: f"{type(trouble).__name__} {getattr(trouble, 'status', '')}",
)
def test_a_provider_in_trouble_for_once_costs_a_retry_and_for_ever_the_window_stays(
    settings: Settings, tenant: str, monkeypatch: pytest.MonkeyPatch, trouble: Scripted
) -> None:
    repo = repository.open(settings, tenant)
    head = repo.head()
    timeout = 0.3 if isinstance(trouble, Hangs) else 20
    with serving(monkeypatch, trouble) as server:
        done = run(settings, timeout=timeout)
    assert (done.outcome, repo.head(), len(server.requests)) == ("failed", head, 4)
    with serving(monkeypatch, trouble, GOOD):
        assert run(settings, timeout=timeout).outcome == "committed"


# ------------------------------------------------------------------------------------------------------------- kill


def command(settings: Settings, server: ModelServer, dialogue: Path) -> tuple[list[str], dict[str, str]]:
    arguments = ["consolidate", "acme", "--thread", JOB.thread, "--subject", JOB.subject, "--dialogue", str(dialogue)]
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("DOCMEM_")},
        "DOCMEM_ROOT": str(settings.root),
        "DOCMEM_SECRET": str(settings.secret),
        "OPENAI_API_BASE": server.url,
        "OPENAI_API_KEY": "unused",
    }
    return [sys.executable, "-m", "docmem", *arguments, "--model", "openai/test", "--json"], environment


def waits_for_lock(process: subprocess.Popen[str]) -> bool:
    """Whether the process has opened the repo's lock file (and, since we hold the lock, waits for it)."""
    assert process.poll() is None, process.communicate()
    try:
        links = [os.readlink(entry) for entry in Path(f"/proc/{process.pid}/fd").iterdir()]  # noqa: PTH115
    except FileNotFoundError:
        return False
    return any(link.endswith("docmem.lock") for link in links)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to see where the process is")
def test_a_kill_between_reply_and_commit_loses_nothing(settings: Settings, tenant: str, tmp_path: Path) -> None:
    repo = repository.open(settings, tenant)
    head = repo.head()
    dialogue = tmp_path / "web-1.jsonl"
    dialogue.write_text(json.dumps({"id": "t1", "role": "user", "text": TURN.text}) + "\n")
    with ModelServer([GOOD]).running() as server:
        line, environment = command(settings, server, dialogue)
        with git.lock(repo.git_dir):
            with subprocess.Popen(line, env=environment, text=True, stdout=-1, stderr=-1) as process:
                wait_until(lambda: waits_for_lock(process))
                process.send_signal(signal.SIGKILL)
            assert len(server.requests) == 1
            assert repo.head() == head
        again = subprocess.run(line, env=environment, text=True, capture_output=True, check=True)
        once_more = subprocess.run(line, env=environment, text=True, capture_output=True, check=True)
    assert json.loads(again.stdout)["outcome"] == "committed"
    assert again.stderr == ""
    assert json.loads(once_more.stdout)["outcome"] == "nothing_new"
    assert git.resolve(repo.git_dir, "main^") == head
    mark = repo.snapshot().watermark(JOB.thread)
    assert mark is not None
    assert mark.last_turn == "t1"
    assert len(repo.snapshot().memories(JOB.subject)) == 1
    fsck = ["git", "--git-dir", str(repo.git_dir), "fsck", "--strict"]
    assert subprocess.run(fsck, check=True, capture_output=True, text=True).stderr == ""
