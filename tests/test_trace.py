from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from docmem import trace
from docmem.config import Settings
from docmem.erasure import Target
from docmem.files import render_memory
from docmem.inject import Injector
from docmem.layout import profile_path
from docmem.packet import Packet
from docmem.recorder import given_now
from docmem_sync import erase as sync_erase
from docmem_sync.sync import sync_tenant
from tests.support.cli import Shell
from tests.support.index import rows
from tests.support.repos import memory, put, subject
from tests.test_inject import NOW, patient, shown

DECLARED = """\
format: 1
agents: {default: {attributes: [{key: diet, description: d}, {key: home_city, description: h}]}}
policies: {budgets: {value_characters: 60}}
"""
OTHERWISE = """\
format: 1
agents: {default: {attributes: [{key: home_city, description: h}, {key: diet, description: d}]}}
policies: {budgets: {value_characters: 20, attributes: 2}}
"""
PROFILE = """\
label: Ana
last_interaction_at: 2026-05-02T23:30:00-05:00
attributes:
  label: Eva
  diet: fish
  home_city: Rome
  "home\\u200b_city": Oslo
  wishes: A room that is quiet, on a high floor, with a view of the harbour and not of the road.
"""


@pytest.fixture
def acme(indexed: Settings, tenant: str) -> Settings:
    return replace(indexed, embedding_model="none")


@pytest.fixture
def injector(acme: Settings) -> Iterator[Injector]:
    with patient(acme) as made:
        yield made


def serve(settings: Settings, **files: str | None) -> None:
    paths = {"config": "docmem.yaml", "profile": profile_path(subject())}
    put(settings, "acme", {paths[name]: None if text is None else text.encode() for name, text in files.items()})
    sync_tenant(settings, "acme")


def told(settings: Settings, run: int) -> list[str | None]:
    return [piece.text for packet in trace.read(settings, "acme", run) for piece in packet.pieces]


def given(injector: Injector, run: int) -> Packet:
    packet = injector.packet("acme", "ana", run=run, blocks=["persona"])
    assert injector.flush()
    return packet


def as_older_versions(settings: Settings) -> None:
    """Forget which value each piece was, as what older versions recorded."""
    with psycopg.connect(str(settings.sync_dsn), autocommit=True) as sync, sync.transaction():
        sync.execute("SELECT set_config('app.current_tenant', 'acme', true)")
        sync.execute("UPDATE docmem.trace SET block = 'persona'")


def test_a_trace_tells_each_value_of_a_profile_whatever_was_declared_before_and_since(
    acme: Settings, injector: Injector
) -> None:
    serve(acme, config=DECLARED, profile=PROFILE)
    serve(acme, config=OTHERWISE)
    few = shown(given(injector, 1))
    assert len(few) == 2
    serve(acme, config=DECLARED)
    whole = shown(given(injector, 2))
    assert {"Ana", "Eva", "fish", "Rome", "Oslo"} < set(whole)
    serve(acme, profile=PROFILE.replace("fish", "milk").replace("Rome", "Bonn"))
    serve(acme, config=OTHERWISE)
    assert told(acme, 1) == few
    assert told(acme, 2) == whole
    assert {piece.block for packet in trace.read(acme, "acme", 2) for piece in packet.pieces} == {"persona"}


def test_a_trace_tells_of_a_long_text_what_was_given(acme: Settings, injector: Injector) -> None:
    days = [f"On day {number} of her s{'o' * number} long trip Ana saw town{number}." for number in range(60)]
    long = memory("\n\n".join(days))
    rules = "\n".join(f"- Rule {number}: say {'please ' * 20}" for number in range(200))
    pages = "\n\n".join(f"Paragraph {number} about h{'m' * number} and harbour{number}." for number in range(90))
    put(
        acme,
        "acme",
        {
            long.path: render_memory(long),
            "knowledge/towns.md": f"# Towns\n\n{pages}\n".encode(),
            "steering/rules.md": f"# Rules\n\n{rules}\n".encode(),
        },
    )
    sync_tenant(acme, "acme")
    packet = injector.packet("acme", "ana", "town42 and harbour17", run=1)
    assert injector.flush()
    assert told(acme, 1) == shown(packet)
    assert {"steering", "subjects", "knowledge"} == {span.path.partition("/")[0] for span in packet.spans}
    assert days[42] in shown(packet)


def test_a_trace_keeps_neither_a_value_nor_its_name(acme: Settings, injector: Injector) -> None:
    serve(acme, profile="attributes: {illness: asthma}\n")
    assert shown(given(injector, 1)) == ["asthma"]
    kept = repr(rows(acme, "SELECT * FROM docmem.trace WHERE tenant_id = %(tenant)s"))
    assert "persona" in kept
    assert "asthma" not in kept
    assert "illness" not in kept


def test_what_an_older_version_recorded_is_told_where_it_can_be_one_value_only(
    acme: Settings, injector: Injector
) -> None:
    serve(acme, config=DECLARED, profile="locale: pt-PT\nattributes: {diet: fish, home_city: Rome}\n")
    assert shown(given(injector, 1)) == ["pt-PT", "fish", "Rome"]
    as_older_versions(acme)
    assert told(acme, 1) == ["pt-PT", None, None]


def test_an_erase_takes_away_what_a_trace_tells_and_a_late_writer_brings_nothing_back(
    acme: Settings, injector: Injector
) -> None:
    serve(acme, profile=PROFILE)
    late = given(injector, 1)
    assert told(acme, 1)
    sync_erase.erase(acme, "acme", Target("subject", subject()), now=NOW)
    injector._recorder.put(given_now("acme", subject(), "default", 1, late, consumed=True))
    assert injector.flush()
    assert told(acme, 1) == []


def test_what_has_no_date_of_its_own_is_as_old_as_its_file(acme: Settings, shell: Shell) -> None:
    serve(acme, profile=PROFILE)
    serve(acme, config=DECLARED)
    for name, value in (("DOCMEM_DSN", acme.dsn), ("DOCMEM_SYNC_DSN", acme.sync_dsn)):
        shell.set(name, str(value))
    explained = shell("inject", "acme", "ana", "--explain", "--json").json["explain"]
    assert explained
    assert all(0 <= row["age_days"] < 1 for row in explained)


def test_the_run_numbered_zero_is_a_run(acme: Settings, injector: Injector, shell: Shell) -> None:
    serve(acme, profile=PROFILE)
    given(injector, 0)
    for name, value in (("DOCMEM_DSN", acme.dsn), ("DOCMEM_SYNC_DSN", acme.sync_dsn)):
        shell.set(name, str(value))
    done = shell("trace", "acme", "0", "--json")
    assert (done.code, done.json["packets"][0]["spans"][0]["text"]) == (0, "Ana")
