from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from docmem import repository
from docmem.assembly import requested
from docmem.config import Settings
from docmem.fallback import Fallback, shelf_at
from docmem.files import render_memory
from docmem.inject import Injector
from docmem.model import Memory
from docmem.names import subject_key
from docmem.packet import Packet
from tests.support.cli import Shell
from tests.support.repos import memory, put
from tests.support.waiting import wait_until

NOW = datetime.now(UTC)
CONFIG = b"format: 1\nlanguage: english\nagents: {default: {}}\n"


def keep(
    settings: Settings, *memories: Memory, files: Mapping[str, bytes | None] | None = None, tenant: str = "acme"
) -> str:
    changed: dict[str, bytes | None] = {one.path: render_memory(one) for one in memories}
    return put(settings, tenant, changed | dict(files or {}))


@pytest.fixture
def files(settings: Settings, tenant: str) -> Fallback:
    return Fallback(replace(settings, embedding_model="none"))


def packet(
    files: Fallback, goal: str | None, *, tenant: str = "acme", who: str = "ana", documents: tuple[str, ...] = ()
) -> Packet:
    asked = requested(tenant, who, goal, agent=None, run=None, blocks=None, documents=documents)
    made = files.packet(asked, wait=60)
    assert made is not None
    assert made.degraded == "files"
    return made


def packet_or_none(files: Fallback, goal: str) -> Packet | None:
    return files.packet(requested("acme", "ana", goal, agent=None, run=None, blocks=None, documents=()), wait=1)


def shown(made: Packet) -> list[str]:
    return [made.text[span.start : span.end] for span in made.spans]


def test_a_failed_experiment_keeps_its_warning(settings: Settings, files: Fallback) -> None:
    pages: dict[str, bytes | None] = {
        "experiments/mail.md": b"---\nverdict: worked\n---\nOffering a refund by email.\n",
        "experiments/phone.md": b"---\nverdict: failed\n---\nOffering a refund by phone.\n",
    }
    keep(settings, files=pages)
    text = packet(files, "offering a refund by phone or email").text
    assert "- worked, a template: Offering a refund by email. [experiments/mail.md]\n" in text
    assert "- failed, a warning: Offering a refund by phone. [experiments/phone.md]\n" in text


def test_a_goal_that_is_about_nothing_here_finds_nothing(settings: Settings, files: Fallback) -> None:
    """By the rule of the index: filler, small numbers and what stands everywhere tell nothing."""
    others = [memory(f"Tom likes the walk number {number}.", number=number) for number in range(10)]
    keep(settings, memory("Please check the weather with Tom."), *others, files={"docmem.yaml": CONFIG})
    assert shown(packet(files, "Could you please check this for me and let me know?")) == []
    assert shown(packet(files, "Does Tom own a telescope or 3 boats?")) == []
    assert shown(packet(files, "How is the weather?")) == ["Please check the weather with Tom."]


def test_what_is_reverted_is_gone_and_what_is_new_is_there(settings: Settings, files: Fallback) -> None:
    wrong, right = memory("Has a boat called Ulysses."), memory("Has a boat called Nemo.")
    keep(settings, wrong, files={"knowledge/boats.md": b"Boats sink.\n", "knowledge/birds.md": b"Birds fly.\n"})
    assert {wrong.text, "Boats sink."} <= set(shown(packet(files, "boat")))
    head = keep(settings, right, files={wrong.path: None, "knowledge/boats.md": b"Boats swim.\n"})
    wait_until(lambda: {*shown(packet(files, "boat"))} == {right.text, "Boats swim."})
    assert {span.revision for span in packet(files, "birds").spans} == {head}
    put(settings, "acme", {"knowledge/boats.md": None})
    wait_until(lambda: shown(packet(files, "boat")) == [right.text])


def test_a_broken_config_leaves_the_last_good_one(settings: Settings, files: Fallback) -> None:
    small = CONFIG + b"policies: {budgets: {facts: 1}}\n"
    keep(settings, memory("Likes tea."), memory("Drinks tea."), files={"docmem.yaml": small})
    assert len(packet(files, "tea").spans) == 1
    put(settings, "acme", {"docmem.yaml": b"format: [1\n"})
    put(settings, "acme", {"docmem.yaml": b"agents: nobody\n"})
    assert len(packet(files, "tea").spans) == 1
    assert len(packet(Fallback(settings), "tea").spans) == 1


def test_documents_asked_for_by_path_are_shown(settings: Settings, files: Fallback) -> None:
    keep(settings, files={"corpus/a.md": b"First.\n", "steering/b.md": b"Be kind.\n", "knowledge/c.md": b"Third.\n"})
    made = packet(files, None, documents=("knowledge/c.md", "corpus/none.md", "corpus/a.md"))
    assert shown(made) == ["Be kind.", "Third.", "First."]


def test_a_tenants_documents_are_kept_once_for_all_its_subjects(settings: Settings, files: Fallback) -> None:
    words = [f"word{number % 300} thing{number}" for number in range(4_000)]
    pages: dict[str, bytes | None] = {
        f"knowledge/{at}.md": " ".join(words[at * 20 : at * 20 + 20]).encode() for at in range(200)
    }
    keep(settings, *(memory("Likes tea.", who=f"u{number}") for number in range(8)), files=pages)
    assert "word7 " in packet(files, "word7", who="u0").text
    alone = files.kept_bytes
    for number in range(8):
        assert "word7 " in packet(files, "word7", who=f"u{number}").text
    assert files.kept_bytes < 1.2 * alone


def test_what_is_kept_of_all_tenants_is_bounded(settings: Settings, tenant: str) -> None:
    files = Fallback(settings, keep_bytes=150_000)
    for number in range(6):
        name = f"t{number}"
        repository.create(settings, name)
        keep(settings, memory(f"Likes tea {number}.", tenant=name), tenant=name, files={
            f"knowledge/{page}.md": f"Tea of {name}, {page}. {'Leaf. ' * 100}".encode() for page in range(40)
        })  # fmt: skip
        assert f"Likes tea {number}." in packet(files, "tea", tenant=name).text
    assert 0 < files.kept_bytes <= 150_000
    assert "Likes tea 0." in packet(files, "tea", tenant="t0").text


def test_no_handbook_takes_a_persons_memory_out(settings: Settings, files: Fallback) -> None:
    pages: dict[str, bytes | None] = {f"knowledge/{page}.md": b"Tea. Tea or tea.\n" for page in range(40)}
    kept = memory("Has a boat called Nemo, on which there is nothing to drink but tea of the cheapest kind.")
    keep(settings, kept, files=pages)
    assert kept.text in shown(packet(files, "tea"))


def test_what_others_commit_lets_a_subjects_part_stand(settings: Settings, tenant: str) -> None:
    """Thousands of memories take seconds to read, and a busy tenant commits each second."""
    ana, bo = subject_key(tenant, "ana"), subject_key(tenant, "bo")
    head = keep(settings, memory("Likes tea."), memory("Likes milk.", who="bo"))
    old = shelf_at(settings, tenant, ana, None)
    later = keep(settings, memory("Likes wine.", who="bo"))
    new = shelf_at(settings, tenant, ana, old)
    assert (old.revision, new.revision) == (head, later)
    assert new.passages is old.passages
    assert new.known is old.known
    assert len(shelf_at(settings, tenant, bo, shelf_at(settings, tenant, bo, None)).memories) == 2
    keep(settings, memory("Has a boat."))
    assert len(shelf_at(settings, tenant, ana, new).memories) == 2


def test_what_ends_goes_while_no_file_changes(settings: Settings, files: Fallback) -> None:
    ends = memory("Likes tea until now.", expires=datetime.now(UTC) + timedelta(seconds=0.5))
    keep(settings, ends, memory("Likes tea."))
    old = shelf_at(settings, "acme", ends.subject or "", None)
    wait_until(lambda: len(shelf_at(settings, "acme", ends.subject or "", old).memories) == 1)
    assert set(shown(packet(files, "tea"))) == {"Likes tea."}


@pytest.mark.parametrize(
    ("changes", "is_there"),
    [
        (lambda soon: {"expires": soon}, [True, False]),
        (lambda soon: {"kind": "episode", "valid_from": soon - timedelta(hours=1)}, [True, False]),
        (lambda soon: {"valid_from": soon}, [False, True]),
    ],
    ids=["expires", "was kept for as long as its kind is", "begins"],
)
def test_what_ends_or_begins_does_so_in_packets_at_once(
    settings: Settings, files: Fallback, changes: Callable[[datetime], dict[str, Any]], is_there: list[bool]
) -> None:
    keep(settings, memory("Likes tea."), files={"docmem.yaml": CONFIG + b"policies: {retention: {episode: 1h}}\n"})
    packet(files, None)
    soon = datetime.now(UTC) + timedelta(seconds=0.7)
    head = keep(settings, memory("Likes tea for a while.", **changes(soon)))
    wait_until(lambda: {span.revision for span in packet(files, None).spans} == {head}, seconds=0.7)
    for there in is_there:
        wait_until(lambda: ("Likes tea for a while." in shown(packet(files, None))) is there, seconds=10)  # noqa: B023


def test_a_packet_is_dated_by_now_and_names_the_commit_of_now(settings: Settings, files: Fallback) -> None:
    keep(settings, memory("Likes tea."), files={"docmem.yaml": CONFIG})
    packet(files, "tea")
    head = keep(settings, memory("Has a boat.", who="bo"))
    wait_until(lambda: {span.revision for span in packet(files, "tea").spans} == {head})


def test_each_turn_goes_on_while_a_repo_is_broken_under_it(settings: Settings, files: Fallback) -> None:
    keep(settings, *(memory(f"Likes tea number {number}.", number=number) for number in range(20)))
    repo, away = settings.tenants / "acme.git", settings.root / "away"
    main, objects = repo / "refs/heads/main", repo / "objects"
    head = main.read_bytes()
    asked = requested("acme", "ana", "tea", agent=None, run=None, blocks=None, documents=("knowledge/a.md",))

    def turns() -> None:
        for number in range(3):
            made = files.packet(asked._replace(goal=f"tea number {number}"), wait=0.2)
            assert made is None or made.degraded == "files"

    for broken in (b"\xff garbage", b"0" * 40, b"", b"ref: refs/heads/none\n"):
        main.write_bytes(broken)
        turns()
    main.write_bytes(head)
    for moved in (repo, repo / "HEAD", objects, main):
        moved.rename(away)
        turns()
        away.rename(moved)
    wait_until(lambda: bool(packet_or_none(files, "tea")))


def test_a_packet_is_made_once_until_the_files_change(settings: Settings, files: Fallback) -> None:
    keep(settings, memory("Likes tea."), files={"knowledge/milk.md": b"Milk goes into tea.\n"})
    wait_until(lambda: len(packet(files, "tea").spans) == 2)
    assert packet(files, "tea").cached
    assert not packet(files, "milk").cached
    assert not packet(files, "tea", documents=("knowledge/milk.md",)).cached
    put(settings, "acme", {"knowledge/milk.md": b"Milk goes into coffee.\n"})
    wait_until(lambda: shown(packet(files, "tea")) == ["Likes tea."])


def test_what_many_ask_for_at_once_is_there_at_their_next_turn(settings: Settings, files: Fallback) -> None:
    people = [f"u{number}" for number in range(40)]
    keep(settings, *(memory("Likes tea.", who=who) for who in people))
    packet(files, "tea", who="nobody")  # so that what is the tenant's is read

    def turns() -> list[bool]:
        made = [
            files.packet(requested("acme", who, "tea", agent=None, run=None, blocks=None, documents=()), wait=0)
            for who in people
        ]
        return [bool(one) for one in made]

    assert not all(turns())
    wait_until(lambda: not files._reading)
    assert all(turns())


def test_a_turn_that_cant_wait_has_all_of_it_read_for_the_next(settings: Settings, files: Fallback) -> None:
    keep(settings, memory("Likes tea."), files={"knowledge/tea.md": b"# Tea\n\nTea is served at five.\n"})
    asked = requested("acme", "ana", "tea", agent=None, run=None, blocks=None, documents=())
    assert files.packet(asked, wait=0) is None
    wait_until(lambda: not files._reading)
    made = files.packet(asked, wait=0)
    assert made is not None
    assert [span.path.partition("/")[0] for span in made.spans] == ["subjects", "knowledge"]


def test_a_tenant_without_a_repo_has_no_packet(settings: Settings, files: Fallback) -> None:
    asked = requested("nobody", "ana", "tea", agent=None, run=None, blocks=None, documents=())
    assert files.packet(asked, wait=60) is None


def test_the_command_waits_for_the_files_as_no_turn_would(settings: Settings, tenant: str, shell: Shell) -> None:
    keep(settings, memory("Likes tea."))
    shell.set("DOCMEM_DSN", "postgresql://x@127.0.0.1:1/docmem")
    shell.set("DOCMEM_EMBEDDING_MODEL", "none")
    packet = shell("inject", "acme", "ana", "--goal", "tea", "--json").json
    assert packet["degraded"] == "files"
    assert "Likes tea." in packet["text"]


def test_while_nobody_asks_postgres_no_turn_waits_for_files_and_the_next_has_them(
    settings: Settings, tenant: str
) -> None:
    keep(settings, *(memory(f"Likes {who}.", who=who) for who in ("tea", "rum", "gin")))
    away = replace(settings, dsn="postgresql://docmem_reader:x@127.0.0.1:1/docmem", embedding_model="none")
    with Injector(away, timeout=30) as injector:
        for _ in range(3):
            injector.packet("acme", "tea")
        assert injector._breakers.shut("acme")
        for who in ("rum", "gin"):
            assert injector.packet("acme", who).degraded == "server_unavailable"
            wait_until(lambda: shown(injector.packet("acme", who)) == [f"Likes {who}."])  # noqa: B023
