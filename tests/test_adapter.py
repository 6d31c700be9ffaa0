"""The two flags: each works by itself, both are off at first, and neither reaches past adapters and `schedule`."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from docmem import Adapter, Injector, config, files
from docmem.config import Injection, Settings
from docmem.errors import ConfigError
from docmem.model import Job
from docmem.names import in_cohort, subject_key
from docmem.scheduler import DeadLetter, Scheduler
from docmem_sync.sync import sync_tenant
from tests.support.cli import Shell
from tests.support.repos import memory, put, subject

CHAT = [{"role": "user", "content": "What does Ana drink?"}]
JOB = Job("acme", "web-1", subject())


class Kept:
    def keep(self, letter: DeadLetter) -> None:
        raise AssertionError(letter)

    def clear(self, job: Job) -> None:
        """Nothing was kept."""


@pytest.fixture
def served(indexed: Settings, tenant: str) -> Settings:
    """A tenant whose memory is served."""
    tea = memory("Ana likes tea.", kind="preference")
    put(indexed, tenant, {tea.path: files.render_memory(tea)})
    sync_tenant(indexed, tenant)
    return indexed


def turn(settings: Settings) -> tuple[str, int]:
    """What the model is given in a turn, and how many consolidations are due after it."""
    jobs: list[Job] = []
    now = [0.0]

    def run(job: Job) -> str:
        jobs.append(job)
        return "done"

    scheduler = Scheduler(
        run,  # type: ignore[arg-type]
        dead_letters=Kept(),
        clock=lambda: now[0],
        enabled=settings.consolidation_enabled,
    )
    with Injector(settings, timeout=30) as injector:
        adapter = Adapter(injector, scheduler, settings=settings)
        given = adapter.messages(CHAT, tenant="acme", subject="ana", goal="What does Ana drink?")
    adapter.heard(JOB)
    now[0] += 10_000
    scheduler.run_due()
    return str(given), len(jobs)


@pytest.mark.parametrize("consolidation", [False, True])
@pytest.mark.parametrize("injection", ["off", "on"])
def test_the_four_combinations(served: Settings, consolidation: bool, injection: Injection) -> None:
    given, due = turn(replace(served, consolidation_enabled=consolidation, injection_enabled=injection))
    assert ("Ana likes tea." in given, due) == (injection == "on", int(consolidation))
    assert injection == "on" or given == str(CHAT)


def test_shadow_builds_and_logs_a_packet_and_adds_nothing(served: Settings, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="docmem.inject"):
        given, _ = turn(replace(served, injection_enabled="shadow"))
    assert given == str(CHAT)
    [line] = [record.getMessage() for record in caplog.records if record.getMessage().startswith("packet ")]
    assert "items=1" in line
    assert "tea" not in line
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="docmem.inject"):
        turn(replace(served, injection_enabled="off"))
    assert not caplog.records


def test_an_anonymous_thread_has_no_memory(served: Settings) -> None:
    with Injector(served) as injector:
        adapter = Adapter(injector, settings=replace(served, injection_enabled="on"))
        assert adapter.messages(CHAT, tenant="acme", subject=None) == CHAT


def test_without_flags_both_are_off(monkeypatch: pytest.MonkeyPatch) -> None:
    unset = config.settings({})
    assert (unset.consolidation_enabled, unset.injection_enabled) == (False, "off")
    monkeypatch.delenv("DOCMEM_CONSOLIDATION_ENABLED", raising=False)
    scheduler = Scheduler(lambda job: "done", dead_letters=Kept(), clock=lambda: 1e9)
    scheduler.schedule(JOB)
    assert scheduler.run_due() == 0


@pytest.mark.parametrize(
    ("value", "means"), [("off", "off"), ("0", "off"), ("shadow", "shadow"), ("Shadow", "shadow"), ("on", "on")]
)
def test_the_injection_flag_has_three_values(value: str, means: str) -> None:
    assert config.settings({"DOCMEM_INJECTION_ENABLED": value}).injection_enabled == means


def test_a_flag_that_is_none_of_its_values_is_said() -> None:
    with pytest.raises(ConfigError, match="none of off, shadow, on"):
        config.settings({"DOCMEM_INJECTION_ENABLED": "maybe"})


def test_commands_do_what_they_say_whatever_the_flags_say(shell: Shell, served: Settings, tmp_path: Path) -> None:
    for name, value in (("DSN", served.dsn), ("SYNC_DSN", served.sync_dsn), ("EMBEDDING_MODEL", "none")):
        shell.set(f"DOCMEM_{name}", value or "")
    shell.set("DOCMEM_CONSOLIDATION_ENABLED", "off")
    shell.set("DOCMEM_INJECTION_ENABLED", "off")
    chat = tmp_path / "chat.jsonl"
    chat.write_text('{"id": "t1", "role": "user", "text": "I am vegetarian.", "at": "2026-05-02T10:00:00Z"}\n')
    options = ["--thread", "w", "--subject", "ana", "--dialogue", str(chat), "--model", "offline"]
    assert shell("consolidate", "acme", *options, "--json").json["outcome"] == "committed"
    assert "Ana likes tea." in shell("inject", "acme", "ana", "--json").json["text"]


@pytest.mark.parametrize("cohort", [0.0, 0.5, 1.0])
def test_whatever_a_host_hands_over_nothing_raises(served: Settings, cohort: float) -> None:
    odd: Any
    with Injector(served) as injector:
        adapter = Adapter(injector, settings=replace(served, injection_enabled="on", injection_cohort=cohort))
        for odd in (5, b"x", "", "\ud800", ["a"]):
            assert adapter.messages(CHAT, tenant="acme", subject=odd) == CHAT
            assert adapter.messages(CHAT, tenant=odd, subject="ana") == CHAT
            assert adapter.next_run(odd, subject="ana") is None
        for odd in (None, 5, [None], ["x"], [{"role": "user"}], [{"role": "system", "content": 5}]):
            assert isinstance(adapter.messages(odd, tenant="acme", subject="ana", goal="tea"), list)


def test_outside_of_the_cohort_no_run_is_counted(served: Settings) -> None:
    some = replace(served, injection_enabled="on", injection_cohort=0.5)
    subjects = [f"user {number}" for number in range(20)]
    with Injector(served, timeout=30) as injector:
        adapter = Adapter(injector, settings=some)
        counted = [adapter.next_run("acme", subject=each) is not None for each in subjects]
        assert counted == [in_cohort("acme", subject_key("acme", each), 0.5) for each in subjects]
        nobody = Adapter(injector, settings=replace(some, injection_cohort=0.0))
        assert nobody.next_run("acme") is None
