"""Erase: nothing is left of a person in git or in Postgres, and nothing else has changed. Also after kill -9."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from docmem import (
    audit,
    db,
    dialogue,
    erased,
    erasure,
    files,
    git,
    history,
    journal,
    layout,
    names,
    remote,
    repository,
    review,
)
from docmem.config import Settings
from docmem.erasure import Target
from docmem.errors import ConfigError, InputError, NotFound
from docmem.git import remotes
from docmem.model import Job, Memory, Source, Turn, Watermark
from docmem.repository import Repository
from docmem.scheduler import due
from docmem_sync import erase
from docmem_sync.sync import sync_tenant
from tests.support.clones import Person
from tests.support.index import whole_index
from tests.support.repos import memory, put, subject
from tests.support.windows import JOB, Proposes, Tenant, operation, reply, turn
from tests.test_db import FILL

NOTHING = {"found": 0, "objects": 0, "files": 0, "rows": 0, "tables": {}, "audit": 0}
NOW = datetime(2026, 6, 1, tzinfo=UTC)
ANA, BOB = subject(), subject(value="bob")
TEA = memory("Ana likes her tea green and hot.", source=Source("web-ana-0001", ("t1",), "green and hot"))
BUS = memory("Ana takes the bus to the harbour.", number=1)
SKI = memory("Bob skis in the Dolomites.", who="bob")
HELD = memory("Ana pays with the card that ends in 4242.", number=7)
PROFILE = b"label: Ana of the harbour\nattributes:\n  diet: vegan\n"
STEPS = [
    "journal", "flag", "collected", "rewritten", "fetched", "moved", "cleaned", "dropped", "pruned", "index", "audit",
    "searched",
]  # fmt: skip


def watermark(thread: str, who: str) -> dict[str, bytes]:
    mark = Watermark(thread, who, "default", "t1", "a" * 64)
    return {layout.watermark_path(thread): files.render_watermark(mark)}


def rendered(*memories: Memory) -> dict[str, bytes]:
    return {one.path: files.render_memory(one) for one in memories}


@pytest.fixture
def repo(indexed: Settings, tenant: str) -> Repository:
    """Ana and Bob, learned, changed, forgotten and held, and all of it served."""
    said = "Consolidate\n\nDocmem-Thread: web-ana-0001\nDocmem-Turns: t1\n"
    put(indexed, tenant, rendered(SKI), "Consolidate\n\nDocmem-Thread: web-bob\n")
    put(indexed, tenant, rendered(TEA) | watermark("web-ana-0001", ANA), said)
    both = rendered(BUS, replace(SKI, text="Bob skis near Bolzano.")) | watermark("web-bob", BOB)
    put(indexed, tenant, both | {layout.profile_path(ANA): PROFILE}, f"mend what {TEA.id} says\n\nand Bob's\n")
    put(indexed, tenant, rendered(replace(TEA, text="Ana likes her tea black, always.")))
    put(indexed, tenant, {BUS.path: None}, "by hand")
    put(indexed, tenant, {"knowledge/a.md": f"# Regulars\n\nAsk {ANA} first.\n".encode()})
    put(indexed, tenant, rendered(replace(SKI, text="Bob skis in the Dolomites, alone.")))
    repo = repository.open(indexed, tenant)
    hold(repo)
    sync_tenant(indexed, tenant)
    return repo


def hold(repo: Repository) -> None:
    reason = {
        "op": "create",
        "id": HELD.id,
        "path": HELD.path,
        "code": "high_impact",
        "proposal": {"quote": "the card that ends in 4242", "evidence_turns": ["t1"]},
    }
    held = {"subject": ANA, "operations": [reason], "profile": []}
    with repo.locked():
        repo.hold(
            "0123456789abcdef",
            repo.head() or "",
            rendered(HELD) | {review.REASONS: json.dumps(held).encode()},
            message="Hold\n\nDocmem-Thread: web-ana-0001\n",
            now=NOW,
        )


def everything(repo: Repository) -> bytes:
    """Every byte of the repo: objects decompressed, and all other files."""
    objects = b"".join(data for _, _, data in git.objects(repo.git_dir))
    others = [path for path in repo.git_dir.rglob("*") if path.is_file() and path.suffix not in {".pack", ".idx"}]
    return objects + b"".join(path.read_bytes() for path in others)


NEEDLES = [
    ANA,
    TEA.id,
    BUS.id,
    HELD.id,
    "green and hot",
    "tea black",
    "bus to the harbour",
    "ends in 4242",
    "web-ana-0001",
]


def assert_gone(settings: Settings, repo: Repository) -> None:
    said = everything(repo)
    assert [needle for needle in NEEDLES if needle.encode() in said] == []
    assert erase.verify(settings, "acme", frozenset(NEEDLES)).total == 0
    command = ["git", "--git-dir", str(repo.git_dir), "fsck", "--strict", "--full"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == ""
    assert not erased.is_erasing(repo.git_dir)
    assert journal.read(settings, "acme") is None


def of_bob(settings: Settings) -> list[dict[str, Any]]:
    hidden = {"revision", "xmin"}
    return [
        {key: value for key, value in row.items() if key not in hidden}
        for row in whole_index(settings)["memory"]
        if row["subject"] == BOB
    ]


def test_nothing_is_left_of_a_subject_and_nobody_else_has_changed(indexed: Settings, repo: Repository) -> None:
    bob, life = of_bob(indexed), history.why(repo, SKI.id)
    times = list(git.times(repo.git_dir, repo.head() or "").values())
    assert [needle for needle in NEEDLES if needle.encode() not in everything(repo)] == []
    receipt = erase.erase(indexed, "acme", Target("subject", ANA), now=NOW)
    assert receipt["verified"] == NOTHING
    erased = {"memory": 1, "memory_history": 3, "profile": 1, "profile_history": 1}
    assert (receipt["memories"], receipt["reviews"], receipt["rows"]) == (3, 1, erased)
    assert not [needle for needle in NEEDLES if needle in json.dumps(receipt)]
    assert_gone(indexed, repo)
    assert of_bob(indexed) == bob
    assert list(git.times(repo.git_dir, repo.head() or "").values()) == times
    assert [(s.when, s.text, s.op) for s in history.why(repo, SKI.id).steps] == [
        (s.when, s.text, s.op) for s in life.steps
    ]
    assert git.refs(repo.git_dir, "refs/docmem") == {}


def test_the_next_sync_is_about_nothing(indexed: Settings, repo: Repository) -> None:
    put(indexed, "acme", {"knowledge/a.md": None})
    sync_tenant(indexed, "acme")
    with closing(db.connect(indexed, "sync")) as connection, db.tenant_transaction(connection, "acme") as cursor:
        before = cursor.execute("SELECT id, xmin::text FROM docmem.memory_vector").fetchall()
    erase.erase(indexed, "acme", Target("subject", BOB), now=NOW)
    index = whole_index(indexed)
    done = sync_tenant(indexed, "acme")
    assert (done.before, done.after) == (repo.head(), repo.head())
    assert (done.upserts, done.deletes, done.reconciled) == (0, 0, False)
    assert whole_index(indexed) == index
    put(indexed, "acme", rendered(memory("Ana swims.", number=9)))
    again = sync_tenant(indexed, "acme")
    assert (again.upserts, again.deletes, again.reconciled) == (1, 0, False)
    incremental = whole_index(indexed)
    sync_tenant(indexed, "acme", rebuild=True)
    assert whole_index(indexed) == incremental
    with closing(db.connect(indexed, "sync")) as connection, db.tenant_transaction(connection, "acme") as cursor:
        assert cursor.execute("SELECT id, xmin::text FROM docmem.memory_vector").fetchall() == before


def test_the_map_of_revisions_leads_from_any_old_commit_to_todays(indexed: Settings, repo: Repository) -> None:
    old = repo.head() or ""
    erase.erase(indexed, "acme", Target("memory", BUS.id), now=NOW)
    erase.erase(indexed, "acme", Target("subject", ANA), now=NOW)
    with closing(db.connect(indexed, "reader")) as connection, db.tenant_transaction(connection, "acme") as cursor:
        rows = cursor.execute("SELECT old, new FROM docmem.revision_map").fetchall()
    assert {row["old"]: row["new"] for row in rows}[old] == repo.head()


def test_a_memory_goes_and_the_one_that_replaced_it_stays(indexed: Settings, repo: Repository) -> None:
    merged = memory("Ana likes tea, and takes the tram.", number=3, supersedes=(TEA.id, BUS.id))
    put(indexed, "acme", rendered(merged) | {TEA.path: None})
    sync_tenant(indexed, "acme")
    content = erasure.collect(repo, erasure.find(repo, TEA.id[:8]))
    assert [stored.memory.id for stored in content.supersede] == [merged.id]
    receipt = erase.erase(indexed, "acme", Target("memory", TEA.id), now=NOW)
    assert receipt["verified"] == NOTHING
    said = everything(repo)
    assert [needle for needle in (TEA.id, "green and hot", "tea black") if needle.encode() in said] == []
    assert b"bus to the harbour" in said
    [stored] = repo.snapshot().memories(ANA)
    assert stored.memory.supersedes == (BUS.id,)
    row = next(row for row in whole_index(indexed)["memory"] if row["id"] == merged.id)
    assert (row["supersedes"], row["blob"]) == ([BUS.id], stored.blob)
    assert review.reviews(repo)[0].items[0].key == HELD.id


def test_a_held_memory_that_was_never_kept_can_be_erased(indexed: Settings, repo: Repository) -> None:
    assert erasure.find(repo, HELD.id) == Target("memory", HELD.id)
    receipt = erase.erase(indexed, "acme", Target("memory", HELD.id), now=NOW)
    assert (receipt["reviews"], receipt["verified"]) == (1, NOTHING)
    assert b"ends in 4242" not in everything(repo)


def test_unreachable_objects_leftovers_and_failed_replies_go_too(indexed: Settings, repo: Repository) -> None:
    pack = repo.git_dir / "objects" / "pack"
    next(pack.glob("*.pack")).with_suffix(".keep").write_text("kept on purpose\n")
    (pack / "tmp_pack_old").write_bytes(b"tea black")
    (repo.git_dir / "fast_import_crash_1").write_text(f"M {TEA.path}\n")
    (repo.git_dir / "logs").mkdir()
    (repo.git_dir / "logs" / "HEAD").write_text(f"{TEA.id}\n")
    job = Job("acme", "web-ana-0001", ANA)
    audit.keep(indexed, job, model="m", reason="r", reply="tea black", input_hash="a" * 64, now=NOW)
    audit.keep(
        indexed, replace(job, thread="b", subject=BOB), model="m", reason="r", reply="Bob", input_hash="b" * 64, now=NOW
    )
    erase.erase(indexed, "acme", Target("subject", ANA), now=NOW)
    assert_gone(indexed, repo)
    assert [entry["thread"] for entry in audit.entries(indexed, "acme")] == ["b"]


def test_a_reader_that_was_open_serves_no_erased_bytes(indexed: Settings, repo: Repository) -> None:
    old = repo.snapshot()
    path = layout.profile_path(ANA)
    blob = old.blob(path) or ""
    code = (
        "import sys; from pathlib import Path; from docmem import git\n"
        "for line in sys.stdin:\n"
        "    try: print(git.read_blob(Path(sys.argv[1]), line.strip())[:9], flush=True)\n"
        "    except Exception as error: print(type(error).__name__, flush=True)\n"
    )
    command = [sys.executable, "-c", code, str(repo.git_dir)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        other.stdin.write(f"{blob}\n")
        other.stdin.flush()
        assert other.stdout.readline() == "b'label: An'\n"
        erase.erase(indexed, "acme", Target("subject", ANA), now=NOW)
        assert other.communicate(f"{blob}\n")[0] == "NotFound\n"
    with pytest.raises(NotFound):
        git.read_blob(repo.git_dir, blob)


def test_what_was_erased_may_not_come_back(indexed: Settings, repo: Repository, tmp_path: Path) -> None:
    (indexed.root / "secret").write_text(indexed.secret or "")  # what the hook finds
    stale = Person(tmp_path / "stale").clones(repo.git_dir)
    data = (stale.folder / TEA.path).read_bytes()
    erase.erase(indexed, "acme", Target("subject", ANA), now=NOW)
    fresh = Person(tmp_path / "fresh").clones(repo.git_dir)
    for bad in (data, data.replace(b"black", b"cold")):
        fresh.commits(TEA.path, bad)
        fresh.commits(TEA.path, None)  # gone again in the end, and yet in history
        assert "was erased" in fresh.pushes(ok=False)
        fresh.git("reset", "--hard", "--quiet", "origin/main")
    anew = memory("Ana is back.", number=20)
    fresh.commits(anew.path, files.render_memory(anew))
    fresh.pushes()


def test_pushes_are_refused_while_an_erase_is_at_work(indexed: Settings, repo: Repository) -> None:
    (repo.git_dir / erased.FLAG).touch()
    [reason] = erased.refusals(repo.git_dir, indexed.secret_bytes, old=None, new=repo.head() or "")
    assert "at work" in reason


def test_another_secret_than_the_stores_is_refused_and_not_taken_for_nothing_erased(
    indexed: Settings, repo: Repository
) -> None:
    erase.erase(indexed, "acme", Target("subject", ANA), now=NOW)
    with pytest.raises(ConfigError, match="another secret"):
        erased.refusals(repo.git_dir, lambda: b"another", old=None, new=repo.head() or "")


@pytest.mark.parametrize("step", STEPS)
def test_killed_after_any_step_it_goes_on(indexed: Settings, repo: Repository, step: str) -> None:
    bob = of_bob(indexed)
    code = (
        "import os, signal, sys, json; from datetime import UTC, datetime; from pathlib import Path\n"
        "from docmem.config import Settings; from docmem.erasure import Target; from docmem_sync import erase\n"
        "values = json.loads(sys.argv[1]); values['root'] = Path(values['root'])\n"
        "kill = lambda step: os.kill(os.getpid(), signal.SIGKILL) if step == sys.argv[2] else None\n"
        "erase.erase(Settings(**values), 'acme', Target('subject', sys.argv[3]), now=datetime.now(UTC), report=kill)\n"
    )
    values = {key: getattr(indexed, key) for key in ("secret", "dsn", "sync_dsn", "owner_dsn")}
    values["root"] = str(indexed.root)
    done = subprocess.run([sys.executable, "-c", code, json.dumps(values), step, ANA], check=False)
    assert done.returncode == -signal.SIGKILL
    assert erased.is_erasing(repo.git_dir) == (step != "journal")
    put(indexed, "acme", rendered(replace(SKI, text="Bob skis, and somebody writes meanwhile.")))
    with pytest.raises(InputError, match="broke off"):
        erase.erase(indexed, "acme", Target("subject", BOB), now=NOW)
    receipt = erase.resume(indexed, "acme", now=NOW)
    assert receipt["verified"] == NOTHING
    assert_gone(indexed, repo)
    assert [row["id"] for row in of_bob(indexed)] == [row["id"] for row in bob]
    assert repo.snapshot().memories(BOB)[0].memory.text.endswith("meanwhile.")
    assert sync_tenant(indexed, "acme").reconciled is False
    assert whole_index(indexed)["memory"][0]["text"].endswith("meanwhile.")


def test_a_writer_that_is_quicker_is_not_lost(indexed: Settings, repo: Repository) -> None:
    came = memory("Bob swims too.", who="bob", number=5)
    pushed: list[str] = []

    def meanwhile(step: str) -> None:
        if step == "fetched" and not pushed:  # a push needs no lock of ours
            base = repo.head()
            pushed.append(git.commit(repo.git_dir, base=base, files=rendered(came), message="push", when=NOW))

    erase.erase(indexed, "acme", Target("subject", ANA), now=NOW, report=meanwhile)
    assert_gone(indexed, repo)
    assert {stored.memory.id for stored in repo.snapshot().memories(BOB)} == {SKI.id, came.id}


def test_every_table_is_cleared_of_a_subject_and_of_a_tenant(indexed: Settings, repo: Repository) -> None:
    with closing(db.connect(indexed, "sync")) as connection, db.tenant_transaction(connection, "acme") as cursor:
        cursor.execute(
            f"INSERT INTO docmem.job (tenant_id, {FILL['job']})".replace("'w', 's'", "'web-ana-0001', %(s)s"),
            {"t": "acme", "s": ANA},
        )
        cursor.execute(
            f"INSERT INTO docmem.quarantine (tenant_id, {FILL['quarantine']})".replace("'p'", "%(p)s"),
            {"t": "acme", "p": f"{layout.subject_dir(ANA)}/memories/bad.md"},
        )
    receipt = erase.erase(indexed, "acme", Target("subject", ANA), now=NOW)
    history = {"memory_history": 3, "profile_history": 1}
    assert receipt["rows"] == {"memory": 1, "profile": 1, "job": 1, "quarantine": 1} | history
    put(indexed, "acme", rendered(memory("Ana again.", number=30)))
    sync_tenant(indexed, "acme")
    repository.create(indexed, "acme-two")
    sync_tenant(indexed, "acme-two")
    receipt = erase.erase(indexed, "acme", Target("tenant", "acme"), now=NOW)
    assert receipt["verified"] == NOTHING
    assert repository.tenants(indexed) == ["acme-two"]
    assert whole_index(indexed, tenant="acme-two")["sync_state"] != []
    with pytest.raises(NotFound):
        repository.open(indexed, "acme")
    with pytest.raises(NotFound):
        git.read_file(repo.git_dir, receipt["revision"] or "0" * 40, "docmem.yaml")


def test_the_wrong_name_is_told(indexed: Settings, repo: Repository) -> None:
    assert erasure.find(repo, "ana") == Target("subject", ANA)
    with pytest.raises(NotFound, match="neither a memory nor a subject"):
        erasure.find(repo, "nobody")
    with pytest.raises(NotFound, match="no erase"):
        erase.resume(indexed, "acme", now=NOW)


def test_the_upstream_follows_or_is_named(indexed: Settings, repo: Repository, tmp_path: Path) -> None:
    upstream = tmp_path / "up.git"
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(upstream)], check=True)
    remotes.set_url(repo.git_dir, str(upstream))
    with repo.locked():
        remote.exchange(repo.git_dir, secret=indexed.secret_bytes)
    receipt = erase.erase(indexed, "acme", Target("memory", TEA.id), now=NOW)
    assert git.resolve(upstream) == repo.head()
    assert receipt["out_of_reach"] == list(erase.OUT_OF_REACH)
    put(indexed, "acme", rendered(replace(SKI, text="Bob skis on.")))
    assert git.resolve(upstream) == repo.head()
    subprocess.run(["git", "--git-dir", str(upstream), "config", "receive.denyNonFastForwards", "true"], check=True)
    receipt = erase.erase(indexed, "acme", Target("subject", ANA), now=NOW)
    assert receipt["out_of_reach"][-1].startswith("the upstream, whose main still holds it")
    assert_gone(indexed, repo)


def test_every_version_of_a_memory_goes_under_every_name_its_file_ever_had(indexed: Settings, repo: Repository) -> None:
    """Renamed by people, broken for a while, quoted in a document: only what is this memory goes."""
    folder = f"{layout.subject_dir(ANA)}/memories"
    first, second = f"{folder}/drinks.md", f"{folder}/tea.md"
    put(indexed, "acme", {TEA.path: None, first: files.render_memory(replace(TEA, text="Ana likes oolong, mild."))})
    put(indexed, "acme", {first: None})
    put(indexed, "acme", {second: files.render_memory(replace(TEA, text="Ana likes sencha, grassy."))})
    put(indexed, "acme", {second: b"<<<<<<< HEAD\nAna likes gunpowder tea.\n>>>>>>> mine\n"})
    put(indexed, "acme", {second: None})
    example = f"# How a memory looks\n\n```\n---\nid: {TEA.id}\n---\n```\n".encode()
    put(indexed, "acme", {"knowledge/format.md": example})
    receipt = erase.erase(indexed, "acme", erasure.find(repo, TEA.id), now=NOW)
    assert receipt["verified"] == NOTHING
    said = everything(repo)
    assert [
        words for words in (TEA.id, "oolong", "sencha", "gunpowder", "green and hot") if words.encode() in said
    ] == []
    assert repo.snapshot().read("knowledge/format.md") == example.replace(TEA.id.encode(), b"0" * 16)
    assert history.why(repo, BUS.id).id == BUS.id
    assert history.find_memory(repo, TEA.id) is None


def test_names_that_are_no_text_and_broken_files_go_too(indexed: Settings, repo: Repository) -> None:
    """They came by fetch, or before the check knew them: a name that isn't UTF-8, one with a newline, a broken head."""
    folder = f"{layout.subject_dir(ANA)}/memories"
    odd = [f"{folder}/caf\udce9.md", f"{folder}/two\nlines.md", f"{folder}/broken.md"]
    data = (
        files.render_memory(BUS),
        files.render_memory(TEA),
        f"---\nid: {HELD.id}\nkind: *x\n---\nAna pays.\n".encode(),
    )
    changed: dict[str, bytes | None] = dict(zip(odd, data, strict=True))
    git.commit(repo.git_dir, base=repo.head(), files=changed | {TEA.path: None}, message="odd\n", when=NOW)
    sync_tenant(indexed, "acme")
    assert history.why(repo, BUS.id).path == odd[0]
    for target in (Target("memory", BUS.id), Target("subject", ANA)):
        assert erase.erase(indexed, "acme", target, now=NOW)["verified"] == NOTHING
        assert sync_tenant(indexed, "acme").error is None
    assert_gone(indexed, repo)
    assert [row for row in whole_index(indexed)["quarantine"] if ANA in row["path"]] == []


def test_a_line_that_others_have_as_well_stays_theirs(indexed: Settings, repo: Repository) -> None:
    """Two profiles of the same bytes, and an empty file: erasing one person takes nothing from the other."""
    common = b"preferred_language: en\n"
    put(indexed, "acme", {layout.profile_path(ANA): common, layout.profile_path(BOB): common})
    put(indexed, "acme", {f"{layout.subject_dir(ANA)}/memories/empty.md": b"", "knowledge/empty.md": b""})
    sync_tenant(indexed, "acme")
    receipt = erase.erase(indexed, "acme", Target("subject", ANA), now=NOW)
    assert receipt["verified"] == NOTHING
    now = repo.snapshot()
    assert now.read(layout.profile_path(BOB)) == common
    assert now.read("knowledge/empty.md") == b""
    assert now.read(layout.profile_path(ANA)) is None
    put(indexed, "acme", {layout.profile_path(ANA): common})
    assert erased.refusals(repo.git_dir, indexed.secret_bytes, old=now.revision, new=repo.head() or "") == []


def test_a_memory_that_a_person_moved_to_somebody_else_is_theirs_and_one_that_only_passed_by_goes(
    indexed: Settings, repo: Repository
) -> None:
    to_bob = f"{layout.subject_dir(BOB)}/memories"
    moved, passed = f"{to_bob}/tea.md", f"{to_bob}/bus.md"
    put(indexed, "acme", {TEA.path: None, moved: files.render_memory(replace(TEA, text="Bob likes his tea white."))})
    put(indexed, "acme", {passed: files.render_memory(replace(BUS, text="Bob takes the bus to the harbour."))})
    put(indexed, "acme", {passed: None})
    sync_tenant(indexed, "acme")
    assert erase.erase(indexed, "acme", Target("subject", ANA), now=NOW)["verified"] == NOTHING
    now = repo.snapshot()
    assert {each.memory.id: each.memory.text for each in now.memories(BOB)}[TEA.id] == "Bob likes his tea white."
    said = everything(repo)
    assert [words for words in (ANA, BUS.id, "bus to the harbour", "tea black") if words.encode() in said] == []
    assert sync_tenant(indexed, "acme").upserts == 0
    assert TEA.id in {row["id"] for row in whole_index(indexed)["memory"]}


def test_a_conversation_that_was_read_before_is_not_learned_from_again_and_what_is_said_since_is(
    settings: Settings, tenant: str
) -> None:
    """The host still has the dialogue: neither a sweep nor a call takes what was erased out of it again."""
    ana = Tenant(settings, repository.open(settings, tenant))
    said = [turn(1), turn(2, "And a hotel by the sea.")]
    assert ana.run(reply(operation()), turns=said[:1]).outcome == "committed"
    assert ana.run(reply(), turns=said).outcome == "nothing_kept"
    erase.erase(settings, tenant, Target("subject", JOB.subject), now=NOW, index=False)
    ledger = (ana.repo.git_dir / erased.LEDGER).read_text()
    assert not any(word in ledger for word in ("web-1", "t1", "t2", JOB.subject))
    source = Threads({"web-1": said})
    assert due(settings, source, lambda thread: JOB) == []
    again = Proposes(reply(operation()))
    assert ana.run(again, turns=said).outcome == "nothing_new"
    assert again.requests == []
    source.turns["web-1"] = [*said, turn(3, "I moved to Lisbon.")]
    assert due(settings, source, lambda thread: JOB) == [JOB]
    moved = operation("The traveller lives in Lisbon.", evidence_turns=["t3"])
    assert ana.run(reply(moved), turns=source.turns["web-1"]).outcome == "committed"
    assert list(ana.memories()) == ["The traveller lives in Lisbon."]
    other = ana.run(reply(operation()), turns=said, job=replace(JOB, thread="web-2"))
    assert other.outcome == "committed", "another conversation is another one"


@dataclass
class Threads:
    """A host's dialogues."""

    turns: dict[str, list[Turn]]

    def threads(self) -> Sequence[str]:
        return list(self.turns)

    def after(self, thread: str, turn: str | None) -> Sequence[Turn]:
        return dialogue.after(self.turns[thread], turn)


@pytest.mark.parametrize("settled", [None, "ours", "theirs"])
def test_the_tips_of_a_rewritten_upstream_hold_nothing_of_it_either(
    indexed: Settings, repo: Repository, tmp_path: Path, settled: remote.Side | None
) -> None:
    """Aside or kept: no other ref reaches them, and they can hold what main never held."""
    upstream = tmp_path / "up.git"
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(upstream)], check=True)
    remotes.set_url(repo.git_dir, str(upstream))
    with repo.locked():
        remote.exchange(repo.git_dir, secret=indexed.secret_bytes)
    pat = Person(tmp_path / "pat").clones(upstream)
    pat.write(BUS.path, files.render_memory(replace(BUS, text="Ana takes the bus to the harbour, at nine.")))
    pat.git("add", "--all")
    pat.git("commit", "--quiet", "--amend", "-m", "Amended")
    pat.pushes("--force")
    with pytest.raises(remote.Rewritten):
        repo.exchange()
    if settled is not None:
        with repo.locked():
            remote.take(repo.git_dir, settled, secret=indexed.secret_bytes)
    theirs = git.resolve(upstream)
    apart = git.refs(repo.git_dir, remote.KEPT if settled else remote.ASIDE)
    assert len(apart) == (2 if settled == "theirs" else 1)
    receipt = erase.erase(indexed, "acme", Target("subject", ANA), now=NOW)
    assert receipt["verified"] == NOTHING
    assert_gone(indexed, repo)
    assert git.refs(repo.git_dir, remote.KEPT if settled else remote.ASIDE).keys() == apart.keys()
    if settled is None:
        assert git.resolve(upstream) == theirs
        assert receipt["out_of_reach"][-1].startswith("the upstream, whose main still holds it")
    else:
        assert git.resolve(upstream) == repo.head()


def test_failed_replies_of_conversations_that_never_were_committed_go(indexed: Settings, repo: Repository) -> None:
    new = subject(value="carla")
    for who, thread in ((new, "c1"), (BOB, "c2")):
        job = Job("acme", thread, who)
        audit.keep(indexed, job, model="m", reason="r", reply="her diagnosis", input_hash="a" * 64, now=NOW)
    old = {"at": "2026-05-01T00:00:00Z", "thread": "c3", "reply": "of an older docmem"}
    place = audit.folder(indexed, "acme") / f"{names.thread_hash('c3')[:16]}-{'b' * 16}.json"
    place.write_text(json.dumps(old))
    with closing(db.connect(indexed, "sync")) as connection, db.tenant_transaction(connection, "acme") as cursor:
        cursor.execute(
            f"INSERT INTO docmem.job (tenant_id, {FILL['job']})".replace("'w', 's'", "'c3', %(s)s"),
            {"t": "acme", "s": new},
        )
    assert erasure.find(repo, "carla") == Target("subject", new)
    assert erase.verify(indexed, "acme", frozenset([new])).audit == 1
    assert erase.erase(indexed, "acme", Target("subject", new), now=NOW)["verified"] == NOTHING
    assert [entry["thread"] for entry in audit.entries(indexed, "acme")] == ["c2"]


def test_messages_lose_conversations_and_quotes_and_those_of_others_are_counted(
    indexed: Settings, repo: Repository
) -> None:
    """Older stores named the conversation in the subject line; a person may quote what they correct."""
    tram = memory("Ana takes the night tram to her mother.", number=9, source=Source("web-ana-0001", ("t2",), "tram"))
    said = "Docmem-Thread: web-ana-0001\nDocmem-Turns: t2\n"
    put(
        indexed,
        "acme",
        rendered(tram, replace(SKI, text="Bob skis.")),
        f"Consolidate web-ana-0001: 1 created\n\n{said}",
    )
    both = rendered(replace(tram, text="Ana takes the tram."), SKI)
    put(indexed, "acme", both, "No, Ana takes the night\ntram, says Priya\n\nAnd Bob's too.\n")
    put(indexed, "acme", {"knowledge/b.md": b"# B\n"}, "As web-ana-0001 said\n\nShe takes the night tram to work.\n")
    receipt = erase.erase(indexed, "acme", Target("subject", ANA), now=NOW)
    assert_gone(indexed, repo)
    assert receipt["messages"] == 1
    objects = [data for _, kind, data in git.objects(repo.git_dir) if kind == "commit"]
    assert not [data for data in objects if b"night\ntram" in data]
    subjects = [entry.subject for entry in history.log(repo, limit=3)]
    assert subjects == ["As (erased) said", "Erased", "Consolidate: 1 created"]
