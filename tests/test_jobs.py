"""Consolidation on its own: the scheduler over a real repo and a real index, the sweep, the dead letters."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from docmem import audit, repository
from docmem.config import Settings
from docmem.dialogue import JsonlFolder
from docmem.errors import ModelReplyError, ServerUnavailable
from docmem.jobs import JobTable
from docmem.model import Job
from docmem.postgres import Server
from docmem.prompt import Request
from docmem.reply import Answer
from docmem.scheduler import DeadLetter, Scheduler, Timing, consolidating, due
from tests.support.cli import Shell
from tests.support.repos import NOW, subject

JOB = Job(tenant="acme", thread="web-1", subject=subject())


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


class Broken:
    """A model whose reply can never be used."""

    name = "broken"

    def propose(self, request: Request) -> Answer:
        raise ModelReplyError("no operations in it", reply="I can't, my password=hunter22hunter22")


def say(folder: Path, thread: str, *texts: str) -> None:
    folder.mkdir(exist_ok=True)
    rows = [{"id": f"t{n}", "role": "user", "text": text, "at": "2026-05-02T10:00:00Z"} for n, text in enumerate(texts)]
    (folder / f"{thread}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def about_ana(thread: str) -> Job | None:
    return replace(JOB, thread=thread) if thread.startswith("web") else None


def test_a_quiet_thread_is_consolidated_and_is_due_no_more(indexed: Settings, tenant: str, tmp_path: Path) -> None:
    source, clock = JsonlFolder(tmp_path / "chats"), Clock()
    say(source.path, "web-1", "I am vegetarian.")
    say(source.path, "anonymous", "I am vegetarian.")
    assert [each.thread for each in due(indexed, source, about_ana)] == ["web-1"]
    scheduler = Scheduler(
        consolidating(indexed, source, "offline"), dead_letters=JobTable(indexed), clock=clock, enabled=True
    )
    scheduler.schedule(JOB)
    clock.now = 45
    assert scheduler.run_due() == 1
    assert [each.memory.text for each in repository.open(indexed, tenant).snapshot().memories(subject())] == [
        "The traveller is vegetarian."
    ]
    assert due(indexed, source, about_ana) == []
    say(source.path, "web-1", "I am vegetarian.", "I live in Lisbon.")
    assert due(indexed, source, about_ana) == [JOB]


def test_the_sweep_goes_past_a_thread_it_cannot_read(
    indexed: Settings, tenant: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = JsonlFolder(tmp_path / "chats")
    say(source.path, "web-1", "I am vegetarian.")
    (source.path / "web-0.jsonl").write_text("not json\n")
    assert [each.thread for each in due(indexed, source, about_ana)] == ["web-1"]
    assert "can't be swept" in caplog.text


def test_what_fails_for_good_becomes_a_dead_letter_until_it_succeeds(
    indexed: Settings, tenant: str, tmp_path: Path
) -> None:
    """C3: the provider fails and no more turns come."""
    source, clock, table = JsonlFolder(tmp_path / "chats"), Clock(), JobTable(indexed)
    say(source.path, "web-1", "I am vegetarian.")
    failing = Scheduler(
        consolidating(indexed, source, Broken()),
        dead_letters=table,
        clock=clock,
        timing=Timing(retries=2),
        enabled=True,
    )
    failing.schedule(JOB)
    for _ in range(3):
        clock.now += 10_000
        assert failing.run_due() == 1
    [letter] = table.listed("acme")
    assert (letter.thread, letter.attempts) == ("web-1", 3)
    assert "no operations in it" in letter.reason
    assert table.listed("globex") == []
    assert due(indexed, source, about_ana) == [JOB]
    working = Scheduler(consolidating(indexed, source, "offline"), dead_letters=table, clock=clock, enabled=True)
    working.schedule(JOB)
    clock.now += 10_000
    working.run_due()
    assert table.listed("acme") == []


def test_a_dead_letter_without_postgres_says_so(settings: Settings) -> None:
    away = replace(settings, sync_dsn="postgresql://docmem_sync@127.0.0.1:1/none")
    with pytest.raises(ServerUnavailable):
        JobTable(away).keep(DeadLetter(JOB, 3, "why"))


def test_jobs_lists_dead_letters_and_unusable_replies(
    shell: Shell, indexed: Settings, tenant: str, tmp_path: Path
) -> None:
    shell.set("DOCMEM_DSN", indexed.dsn or "")
    assert shell("jobs").out == "none\n"
    JobTable(indexed).keep(DeadLetter(JOB, 6, "bad_reply: not JSON\0 password=hunter22hunter22"))
    audit.keep(indexed, JOB, model="m", reason="not JSON", reply="Sure! Here it is", input_hash="ab" * 32, now=NOW)
    row = shell("jobs", "acme", "--json").json
    assert (row["jobs"][0]["thread"], row["jobs"][0]["attempts"]) == ("web-1", 6)
    assert "hunter22" not in row["jobs"][0]["reason"]
    assert row["replies"][0]["reply"] == "Sure! Here it is"
    text = shell("jobs").out
    assert "failed 6 times" in text
    assert "unusable reply of m" in text


def test_before_the_first_sync_nothing_waits(shell: Shell, tenant: str, postgres_server: Server) -> None:
    shell.set("DOCMEM_DSN", postgres_server.dsn("reader", database="postgres"))
    ran = shell("jobs", tenant)
    assert (ran.code, ran.out, ran.err) == (0, "none\n", "")
    assert shell("jobs", tenant, "--json").json == {"jobs": [], "replies": []}


def test_jobs_shows_the_replies_when_postgres_is_away(shell: Shell, settings: Settings, tenant: str) -> None:
    shell.set("DOCMEM_DSN", "postgresql://docmem_reader@127.0.0.1:1/none")
    audit.keep(settings, JOB, model="m", reason="not JSON", reply="Sure!", input_hash="ab" * 32, now=NOW)
    ran = shell("jobs")
    assert ran.code == 75
    assert "Sure!" in ran.out
    assert "dead letters can't be read" in ran.err
