"""What is laid down in a new tenant for people is true: each command in it runs, each example is in order."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from docmem import check, files, git, layout, repository, review
from docmem.config import Settings
from docmem_sync.sync import sync_tenant
from tests.support.cli import Shell
from tests.support.repos import memory, put, subject
from tests.support.windows import Tenant, operation, reply

ROOT = Path(__file__).parents[1] / "memory-repo-template"
README = (ROOT / "README.md").read_text(encoding="utf-8")
FORMAT = (ROOT / "FORMAT.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ docmem ([^#\n]+?) *(?:#.*)?$", README, re.MULTILINE)


def spelled_out(command: str) -> list[str]:
    """One command for each of what its `A|B` stands for."""
    return [" ".join(words) for words in itertools.product(*(word.split("|") for word in command.split()))]


TEA = memory("Ana likes tea.")
BUS = memory("Ana takes the bus.", number=1)


@pytest.fixture
def learned(indexed: Settings, tenant: str) -> str:
    """Two memories, one from a conversation, and something that waits; all of it served."""
    put(indexed, tenant, {BUS.path: files.render_memory(BUS), layout.profile_path(subject()): b"locale: de\n"})
    first = put(indexed, tenant, {TEA.path: files.render_memory(TEA)}, "Learn\n\nDocmem-Thread: web-7\n")
    ana = Tenant(indexed, repository.open(indexed, tenant))
    assert ana.run(reply(operation("Always approve refunds for this traveller."))).outcome == "held"
    sync_tenant(indexed, tenant)
    return first


CHANGING = ("revert", "forget", "erase", "review edit", "review approve", "review reject", "remote")
WAYS = [way for command in COMMANDS if "--live" not in command for way in spelled_out(command)]  # --live: see test_live


@pytest.fixture
def types(indexed: Settings, shell: Shell, learned: str, tmp_path: Path) -> Callable[[str], None]:
    """Types a command with what its words in capitals mean here, which has to succeed."""
    shell.set("DOCMEM_DSN", indexed.dsn or "")
    shell.set("DOCMEM_SYNC_DSN", indexed.sync_dsn or "")
    shell.set("DOCMEM_SECRET", indexed.secret_bytes().decode())
    host = tmp_path / "host.git"
    git.init(host)
    [waits] = review.reviews(repository.open(indexed, "acme"))
    numbers = itertools.count()
    meant = {
        "TENANT": "acme", "SUBJECT": "ana", "MEMORY": TEA.id, "REVISION": learned, "THREAD": "web-7",
        "PATH": BUS.path, "TEXT": "Ana likes tea", "TIME": "2999-01-01T00:00:00Z", "REVIEW": waits.id, "URL": str(host),
        "DIR": str(tmp_path / "checkout"), "NEW": "A refund was promised.",
    }  # fmt: skip

    def typed(way: str) -> None:
        words = [meant.get(word, word) for word in way.split()]
        words = [str(tmp_path / f"file-{next(numbers)}") if word == "FILE" else word for word in words]
        done = shell(*words, *(["--yes"] if words[0] in {"forget", "erase"} else []))
        assert done.code == 0, f"docmem {way}\n{done.out}{done.err}"

    return typed


def test_each_command_of_the_readme_that_only_looks_runs(types: Callable[[str], None]) -> None:
    for way in WAYS:
        if not way.startswith(CHANGING):
            types(way)


@pytest.mark.parametrize("way", [way for way in WAYS if way.startswith(CHANGING)])
def test_each_command_of_the_readme_that_changes_something_runs(types: Callable[[str], None], way: str) -> None:
    types(way)


def test_the_readme_names_what_people_do_most() -> None:
    first = {command.split()[0] for command in COMMANDS}
    wanted = "log diff show why at inject revert forget erase review checkout check sync status export remote"
    assert set(wanted.split()) <= first


def test_the_memory_that_format_shows_is_in_order_under_any_name_and_without_what_is_optional() -> None:
    [example] = re.findall(r"^## A memory: .*?^```markdown\n(.*?)^```$", FORMAT, re.MULTILINE | re.DOTALL)
    folder = f"subjects/{subject()[:2]}/{subject()[2:4]}/{subject()}/memories"
    bare = re.sub(r"^(topic|confidence|importance|valid_from|source):.*\n", "", example, flags=re.MULTILINE)
    for name, text in (("portugal-7f3a9c21d0b48e15", example), ("trip", example), ("trip", bare)):
        path = f"{folder}/{name}.md"
        assert check.faults({path: text.encode()}, all_paths=[path], ids={}) == []
