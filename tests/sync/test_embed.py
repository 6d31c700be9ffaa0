"""embed: vectors for rows that have none, and never a wrong one."""

from __future__ import annotations

import json
import logging
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace

import psycopg
import pytest
from psycopg import sql

from docmem import db, index, recall, repository
from docmem import embedding as vectors
from docmem.config import Settings
from docmem.embedding import LitellmEmbedder, TextRefused
from docmem.erasure import Target
from docmem.errors import ConfigError, ModelUnavailable
from docmem.files import render_memory
from docmem.model import KINDS
from docmem.patience import Patience
from docmem.postgres import Server
from docmem.sql import load
from docmem_sync import embed as embedding
from docmem_sync import erase, hot
from docmem_sync.backlog import Backlog
from docmem_sync.embed import BATCH, embed
from docmem_sync.sync import reembed_tenant, sync_all, sync_tenant
from tests.support.cli import Shell
from tests.support.index import rows
from tests.support.model_server import Embeds, Fails, Hangs, ModelServer, Scripted
from tests.support.models import Counting
from tests.support.repos import NOW, memory, put

VECTORS = "SELECT id, set, embedding::text AS vector FROM docmem.memory_vector ORDER BY set, id"

pytestmark = pytest.mark.usefixtures("tenant")


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that fails is asked again at once."""
    monkeypatch.setattr(embedding, "PATIENCE", Patience(tries=3, first_pause=0.0, longest_pause=0.0))


def write(settings: Settings, *texts: str) -> None:
    memories = [memory(f"Memory {number}", number=number) for number in range(len(texts))]
    put(
        settings,
        "acme",
        {item.path: render_memory(replace(item, text=text)) for item, text in zip(memories, texts, strict=True)},
    )


def test_only_what_has_no_vector_is_embedded(indexed: Settings) -> None:
    model = Counting()
    write(indexed, "a", "b", "c")
    put(indexed, "acme", {"knowledge/visa.md": b"# Visa\nPortugal needs none.\n"})
    done = sync_tenant(indexed, "acme", embedder=model)
    assert (done.embedded, done.pending_embeddings, len(model.asked)) == (4, 0, 4)
    assert len(rows(indexed, VECTORS)) == 3
    assert len(rows(indexed, "SELECT path FROM docmem.document_vector")) == 1
    assert sync_tenant(indexed, "acme", embedder=model).embedded == 0
    write(indexed, "a", "changed", "c")
    done = sync_tenant(indexed, "acme", embedder=model)
    assert (done.embedded, len(model.asked)) == (1, 5)


def test_a_move_embeds_nothing_and_a_changed_text_loses_its_vector(indexed: Settings) -> None:
    model = Counting()
    one = memory("Likes tea.")
    put(indexed, "acme", {one.path: render_memory(one)})
    sync_tenant(indexed, "acme", embedder=model)
    before = rows(indexed, VECTORS)
    moved = one.path.replace("/memories/", "/memories/moved-")
    put(indexed, "acme", {one.path: None, moved: render_memory(one)})
    sync_tenant(indexed, "acme", embedder=model)
    assert rows(indexed, VECTORS) == before
    assert len(model.asked) == 1
    put(indexed, "acme", {moved: render_memory(replace(one, text="Likes coffee."))})
    sync_tenant(indexed, "acme")
    assert rows(indexed, VECTORS) == []


def long(seed: int, *, parts: int) -> str:
    """So many parts under headings, each longer than a chunk."""
    chance = random.Random(seed)
    return "\n\n".join(
        "\n\n".join(
            [f"## Part {seed}.{part}"]
            + [" ".join(f"w{chance.randrange(999)}" for _ in range(chance.randrange(30, 90))) for _ in range(6)]
        )
        for part in range(parts)
    )


CHUNKS = """
    SELECT d.path, d.chunk, d.projection, d.projection_hash = v.projection_hash AS fits, v.embedding::text AS vector
    FROM docmem.document AS d
    LEFT JOIN docmem.document_vector AS v ON v.tenant_id = d.tenant_id AND v.path = d.path AND v.chunk = d.chunk
"""


def assert_each_chunk_has_its_own_vector(settings: Settings) -> None:
    for row in rows(settings, CHUNKS):
        [vector] = Counting().passages([row["projection"]])
        assert row["fits"], row
        assert json.loads(row["vector"]) == pytest.approx([each / math.hypot(*vector) for each in vector], abs=1e-3)


@pytest.mark.parametrize("rebuild", [False, True])
def test_a_text_keeps_its_vector_wherever_it_goes(indexed: Settings, rebuild: bool) -> None:
    """Chunks that are counted anew, a document that moves, one that is copied; and a memory under a new id."""
    model, path = Counting(), "knowledge/long.md"

    def embedded(changed: Mapping[str, bytes | None]) -> int:
        put(indexed, "acme", changed)
        done = sync_tenant(indexed, "acme", embedder=model, rebuild=rebuild)
        assert_each_chunk_has_its_own_vector(indexed)
        assert done.pending_embeddings == 0
        return done.embedded

    text = f"{long(1, parts=1)}\n\n{long(2, parts=12)}".encode()
    assert embedded({path: text}) > 15
    longer = f"{long(1, parts=1)}\n\n{long(3, parts=1)}\n\n{long(2, parts=12)}".encode()
    assert 0 < embedded({path: longer}) <= 7
    assert embedded({path: None, "knowledge/moved.md": longer}) == 0
    assert embedded({"learnings/copy.md": longer}) == 0
    assert embedded({path: text}) <= 7
    assert embedded({"learnings/copy.md": text, "knowledge/moved.md": None}) == 0
    one = memory("Likes tea.")
    assert embedded({one.path: render_memory(one)}) == 1
    other = memory("Likes tea.", number=1)
    assert embedded({one.path: None, other.path: render_memory(other)}) == 0


def test_a_vector_goes_to_no_other_model_and_to_no_other_tenant(indexed: Settings) -> None:
    repository.create(indexed, "other")
    model, one, two = Counting(), memory("Likes tea."), memory("Likes tea.", tenant="other")
    put(indexed, "acme", {one.path: render_memory(one)})
    sync_tenant(indexed, "acme", embedder=model)
    put(indexed, "other", {two.path: render_memory(two)})
    assert sync_tenant(indexed, "other", embedder=model).embedded == 1
    copy = memory("Likes tea.", number=1)
    put(indexed, "acme", {copy.path: render_memory(copy)})
    assert sync_tenant(indexed, "acme", embedder=Counting("another")).embedded == 2


def test_a_rebuild_keeps_the_vectors_of_unchanged_texts(indexed: Settings) -> None:
    model = Counting()
    write(indexed, "a", "b")
    sync_tenant(indexed, "acme", embedder=model)
    assert sync_tenant(indexed, "acme", rebuild=True, embedder=model).embedded == 0


def test_another_model_or_dimension_is_another_set(indexed: Settings) -> None:
    """Case I2."""
    write(indexed, "a", "b", "c")
    for model in (Counting(), Counting(dimension=16), Counting(model="other")):
        done = sync_tenant(indexed, "acme", embedder=model)
        assert (done.embedded, done.pending_embeddings) == (3, 0)
    sizes = {row["set"]: row["vector"].count(",") + 1 for row in rows(indexed, VECTORS)}
    assert sizes == {"counting/8/2": 8, "counting/16/2": 16, "other/8/2": 8}


@pytest.mark.parametrize("error", [ModelUnavailable("away"), RuntimeError("anything")])
def test_a_model_that_fails_leaves_rows_pending_and_sync_in_order(
    indexed: Settings, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise error

    write(indexed, "a", "b", "c")
    with caplog.at_level(logging.WARNING, logger="docmem.sync"):
        done = sync_tenant(indexed, "acme", embedder=Counting(before=fail))
    assert (done.embedded, done.pending_embeddings, done.error) == (0, 3, None)
    assert len(rows(indexed, "SELECT id FROM docmem.memory")) == 3
    assert len(caplog.records) == 1
    done = sync_tenant(indexed, "acme", embedder=Counting())
    assert (done.embedded, done.pending_embeddings) == (3, 0)


def test_vectors_of_the_wrong_size_are_not_taken(indexed: Settings) -> None:
    class Short(Counting):
        def passages(self, texts: Sequence[str]) -> list[list[float]]:
            return [vector[:-1] for vector in super().passages(texts)]

    write(indexed, "a")
    assert sync_tenant(indexed, "acme", embedder=Short()).pending_embeddings == 1
    assert rows(indexed, VECTORS) == []


def test_a_vector_that_comes_after_its_text_changed_is_dropped(indexed: Settings) -> None:
    def change() -> None:
        model.before = lambda: None
        write(indexed, "changed meanwhile", "b")
        sync_tenant(indexed, "acme")

    write(indexed, "a", "b")
    sync_tenant(indexed, "acme")
    model = Counting(before=change)
    with closing(db.connect(indexed, "sync")) as connection:
        assert embed(connection, "acme", embedder=model).count == 2
    hashes = rows(indexed, "SELECT v.projection_hash = m.projection_hash AS same FROM docmem.memory_vector v "
                           "JOIN docmem.memory m USING (tenant_id, id)")  # fmt: skip
    assert hashes == [{"same": True}, {"same": True}]


def test_more_texts_than_a_batch_are_all_embedded(indexed: Settings) -> None:
    write(indexed, *(f"text {number}" for number in range(BATCH + 5)))
    assert sync_tenant(indexed, "acme", embedder=Counting()).embedded == BATCH + 5


def test_vectors_that_no_row_can_hold_are_left_out(indexed: Settings) -> None:
    write(indexed, "a")
    done = sync_tenant(indexed, "acme", embedder=Counting(dimension=8_000))
    assert (done.embedded, done.pending_embeddings) == (0, 1)


def test_what_was_embedded_before_the_model_failed_counts(indexed: Settings) -> None:
    def fail_later() -> None:
        if model.asked:
            raise ModelUnavailable("away")

    write(indexed, *(f"text {number}" for number in range(BATCH + 5)))
    model = Counting(before=fail_later)
    done = sync_tenant(indexed, "acme", embedder=model)
    assert (done.embedded, done.pending_embeddings) == (BATCH, 5)


# -------------------------------------------------------------------------------------- another model, built beside


def test_another_models_vectors_serve_once_all_are_there_and_the_old_ones_until_then(indexed: Settings) -> None:
    """Case I2: vectors of different models never mix, and words serve whoever asks with the new one meanwhile."""

    def fail_later() -> None:
        if new.asked:
            raise ModelUnavailable("away")

    write(indexed, *(f"text {number}" for number in range(BATCH + 5)))
    old = Counting(model="old")
    sync_tenant(indexed, "acme", embedder=old)
    new = Counting(model="new", before=fail_later)
    assert sync_tenant(indexed, "acme", embedder=new).pending_embeddings == 5
    assert ask(indexed, old) == (None, True)
    assert ask(indexed, new) == ("no_embedder", False)
    new.before = lambda: None
    assert sync_tenant(indexed, "acme", embedder=new).embedded == 5
    assert ask(indexed, old) == ask(indexed, new) == (None, True)


def ask(settings: Settings, model: Counting) -> tuple[str | None, bool]:
    """What is degraded when one asks with this model, and whether vectors found something."""
    found = recall.search(settings, "acme", "text 7", embedder=Counting(model=model.model))
    return found.degraded, any(hit.cosine is not None for hit in found.hits)


def test_replaced_vectors_are_dropped_after_a_while(indexed: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    write(indexed, "a")
    for model in (Counting(model="old"), Counting(model="new"), Counting(model="new")):
        sync_tenant(indexed, "acme", embedder=model)
    assert {row["set"] for row in rows(indexed, VECTORS)} == {"old/8/2", "new/8/2"}
    monkeypatch.setattr(embedding, "GRACE", 0)
    sync_tenant(indexed, "acme", embedder=Counting(model="new"))
    assert {row["set"] for row in rows(indexed, VECTORS)} == {"new/8/2"}
    assert [row["set"] for row in rows(indexed, "SELECT set FROM docmem.vector_set")] == ["new/8/2"]


def test_a_model_that_changed_under_its_name_is_made_anew_beside_what_serves(indexed: Settings) -> None:
    write(indexed, "a", "b")
    sync_tenant(indexed, "acme", embedder=Counting())
    before = rows(indexed, VECTORS)
    changed = Counting(salt=b"changed")
    assert reembed_tenant(indexed, "acme", embedder=changed) == (0, 0)
    assert rows(indexed, VECTORS) == before
    assert reembed_tenant(indexed, "acme", embedder=changed, again=True) == (2, 0)
    after = rows(indexed, VECTORS)
    assert [row["set"] for row in after] == ["counting/8/2"] * 2
    assert not {row["vector"] for row in after} & {row["vector"] for row in before}
    assert sync_tenant(indexed, "acme", embedder=changed).embedded == 0


def test_reembed_says_what_it_did_and_what_is_left(shell: Shell, indexed: Settings) -> None:
    for name, value in (("DSN", indexed.dsn), ("SYNC_DSN", indexed.sync_dsn), ("OWNER_DSN", indexed.owner_dsn)):
        shell.set(f"DOCMEM_{name}", value or "")
    write(indexed, "a", "b")
    sync_tenant(indexed, "acme")
    shell.set("DOCMEM_EMBEDDING_MODEL", "none")
    assert shell("reembed", "acme").code == 1
    shell.set("DOCMEM_EMBEDDING_MODEL", "openai/m")
    shell.set("OPENAI_API_KEY", "none")
    with ModelServer([Fails(500)]).running() as server:
        shell.set("OPENAI_API_BASE", server.url)
        ran = shell("reembed", "acme")
    assert (ran.code, "2 texts are still without a vector" in ran.err) == (75, True)
    with ModelServer([Embeds()]).running() as server:
        shell.set("OPENAI_API_BASE", server.url)
        ran = shell("reembed", "acme", "--json")
    assert (ran.code, ran.json["embedded"], ran.json["pending_embeddings"]) == (0, 2, 0)


# ---------------------------------------------------------------------------------------------- providers, over HTTP


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AbstractContextManager[ModelServer]]:
    @contextmanager
    def serve(*script: Scripted) -> Iterator[ModelServer]:
        with ModelServer(script).running() as server:
            monkeypatch.setenv("OPENAI_API_BASE", server.url)
            monkeypatch.setenv("OPENAI_API_KEY", "none")
            yield server

    return serve


@pytest.mark.parametrize(
    "fault",
    [Fails(500), Fails(429, headers={"Retry-After": "0"}), Embeds(first=math.nan), Embeds(dimension=7), Fails(404)],
)
def test_rows_wait_while_a_provider_gives_no_proper_vectors(
    indexed: Settings, provider: Callable[..., AbstractContextManager[ModelServer]], fault: Scripted
) -> None:
    write(indexed, "a", "b")
    model = LitellmEmbedder("openai/m")
    with provider(Embeds(), fault):
        assert model.dimension == 8
        done = sync_tenant(indexed, "acme", embedder=model)
    assert (done.embedded, done.pending_embeddings, done.error) == (0, 2, None)
    with provider(Embeds(backwards=True)):
        assert sync_tenant(indexed, "acme", embedder=model).embedded == 2


def test_no_set_takes_vectors_of_another_dimension_however_often_they_come(
    indexed: Settings, provider: Callable[..., AbstractContextManager[ModelServer]]
) -> None:
    write(indexed, *(f"text {number}" for number in range(BATCH * 3)))
    model = LitellmEmbedder("openai/m")
    with provider(Embeds(), Embeds(dimension=7)):
        assert model.dimension == 8
        done = sync_tenant(indexed, "acme", embedder=model)
    assert (done.embedded, done.pending_embeddings, done.error) == (0, BATCH * 3, None)
    with provider(Embeds(dimension=7)):  # it means it
        assert sync_tenant(indexed, "acme", embedder=model).embedded == BATCH * 3
    assert {row["set"] for row in rows(indexed, VECTORS)} == {"openai/m/7/2"}


def test_a_provider_that_hangs_is_left_alone_after_its_tries(
    indexed: Settings, provider: Callable[..., AbstractContextManager[ModelServer]]
) -> None:
    write(indexed, "a")
    with provider(Hangs()) as server:
        done = sync_tenant(indexed, "acme", embedder=LitellmEmbedder("openai/m", timeout=0.2))
        assert (done.pending_embeddings, len(server.requests)) == (1, 1)  # it doesn't even tell its dimension


def test_a_provider_is_asked_again_after_the_pause_it_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "PATIENCE", Patience(tries=4, first_pause=1.0, longest_pause=60.0))
    pauses: list[float] = []
    away = ModelUnavailable("busy")
    away.retry_after = 7.0
    errors = [ModelUnavailable("away"), away]

    def fail_first() -> None:
        if errors:
            raise errors.pop(0)

    work = embedding._Work(None, "acme", Counting(before=fail_first), pauses.append, [])  # type: ignore[arg-type]
    assert len(work._patiently(["a"])) == 1
    assert pauses == [1.0, 7.0]


def test_a_text_that_the_provider_refuses_holds_up_no_other(
    indexed: Settings, provider: Callable[..., AbstractContextManager[ModelServer]], caplog: pytest.LogCaptureFixture
) -> None:
    write(indexed, *(f"text {number}" for number in range(9)), "forbidden")
    with provider(Embeds(refuses="forbidden")):
        done = sync_tenant(indexed, "acme", embedder=LitellmEmbedder("openai/m"))
        assert (done.embedded, done.pending_embeddings) == (9, 1)
        assert "refuses 1 texts" in caplog.text
        assert recall.search(indexed, "acme", "text", embedder=LitellmEmbedder("openai/m")).degraded is None
    with provider(Embeds()):
        assert sync_tenant(indexed, "acme", embedder=LitellmEmbedder("openai/m")).pending_embeddings == 0


def test_a_provider_that_refuses_everything_is_not_asked_for_each_text(indexed: Settings) -> None:
    calls = 0

    def refuse() -> None:
        nonlocal calls
        calls += 1
        raise TextRefused("no")

    write(indexed, *(f"text {number}" for number in range(BATCH)))
    assert sync_tenant(indexed, "acme", embedder=Counting(before=refuse)).pending_embeddings == BATCH
    assert calls < BATCH


@pytest.mark.parametrize("error", [ModelUnavailable("down"), TextRefused("no"), RuntimeError("a bug of theirs")])
def test_a_failure_with_more_batches_than_are_asked_for_at_a_time_is_an_end(
    indexed: Settings, error: Exception
) -> None:
    """Batches that never began were waited for, for ever."""

    def fail() -> None:
        raise error

    write(indexed, *(f"text {number}" for number in range(BATCH * 8)))
    assert sync_tenant(indexed, "acme", embedder=Counting(before=fail)).pending_embeddings == BATCH * 8
    assert sync_tenant(indexed, "acme", embedder=Counting()).pending_embeddings == 0


@dataclass
class Choosy(Counting):
    """Refuses what is bad, wherever it stands in a batch."""

    calls: int = 0

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        self.calls += 1
        if any("bad" in text for text in texts):
            raise TextRefused("no")
        return super().passages(texts)


def test_many_refused_texts_hold_up_no_other_and_are_not_asked_for_at_every_turn(indexed: Settings) -> None:
    write(indexed, *(f"bad {number}" for number in range(12)), *(f"text {number}" for number in range(BATCH * 3)))
    sync_tenant(indexed, "acme")
    model = Choosy()
    backlog = Backlog(model, settle=lambda *_: None)
    with db.session(indexed, "sync") as connection:
        backlog.add(["acme"])
        assert backlog.turn(connection)
        assert backlog.counts == {"acme": BATCH * 3}
        calls = model.calls
        backlog.add(["acme"])
        assert backlog.turn(connection)
        assert model.calls == calls


def test_what_has_no_vector_of_the_models_new_dimension_is_pending(indexed: Settings) -> None:
    write(indexed, "a", "b")
    assert sync_tenant(indexed, "acme", embedder=Counting()).pending_embeddings == 0
    with db.session(indexed, "sync") as connection:
        embed(connection, "acme", embedder=Counting(dimension=4), limit=1)
        assert embedding.pending(connection, "acme", model="counting") == 1
        embed(connection, "acme", embedder=Counting(dimension=4))
        assert embedding.pending(connection, "acme", model="counting") == 0


def test_batches_are_asked_for_a_few_at_a_time(
    indexed: Settings, provider: Callable[..., AbstractContextManager[ModelServer]]
) -> None:
    write(indexed, *(f"text {number}" for number in range(BATCH * 5)))
    with provider(Embeds()) as server:
        done = sync_tenant(indexed, "acme", embedder=LitellmEmbedder("openai/m"))
    assert (done.embedded, len(server.requests)) == (BATCH * 5, 6)


def test_vectors_are_cut_only_for_models_made_for_it(
    indexed: Settings, provider: Callable[..., AbstractContextManager[ModelServer]]
) -> None:
    write(indexed, "a")
    named = replace(indexed, embedding_model="openai/text-embedding-3-small@4")
    with provider(Embeds()):
        sync_tenant(indexed, "acme", embedder=vectors.embedder(named))
    [row] = rows(indexed, VECTORS)
    assert (row["set"], row["vector"].count(",")) == ("openai/text-embedding-3-small/4/2", 3)
    for wrong in ("openai/ada@4", "openai/text-embedding-3-small@many", "openai/text-embedding-3-small@0"):
        with pytest.raises(ConfigError):
            vectors.embedder(replace(indexed, embedding_model=wrong))


# ----------------------------------------------------------------------------------------------- turns, and hot sets


def test_a_long_backlog_of_one_tenant_does_not_delay_another(
    indexed: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("docmem_sync.backlog.TURN", BATCH)
    write(indexed, *(f"acme {number}" for number in range(BATCH * 3)))
    repository.create(indexed, "other")
    put(indexed, "other", {"knowledge/a.md": b"other\n"})
    sync_all(indexed, ["acme", "other"])
    model = Counting()
    backlog = Backlog(model, settle=lambda tenant, done: None)
    backlog.add(["acme", "other"])
    with closing(db.connect(indexed, "sync")) as connection:
        while backlog.turn(connection):
            pass
    assert next(at for at, text in enumerate(model.asked) if "other" in text) <= BATCH + 12
    assert backlog.counts["acme"] >= BATCH * 3


def test_a_model_that_is_away_is_not_asked_for_each_tenant(indexed: Settings) -> None:
    calls = 0

    def fail() -> None:
        nonlocal calls
        calls += 1
        raise ModelUnavailable("away")

    write(indexed, "a")
    repository.create(indexed, "other")
    put(indexed, "other", {"knowledge/a.md": b"other\n"})
    done = sync_all(indexed, ["acme", "other"], embedder=Counting(before=fail))
    assert [one.pending_embeddings for one in done] == [1, 1]
    assert calls == 3


def test_a_set_gets_an_index_when_it_is_large_and_loses_it_when_it_is_small(
    indexed: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hot, "HOT", 30)
    monkeypatch.setattr(hot, "COOL", 10)
    write(indexed, *(f"text {number}" for number in range(29)))
    sync_tenant(indexed, "acme", embedder=Counting())
    assert hot_indexes(indexed) == []
    write(indexed, *(f"text {number}" for number in range(40)))
    sync_tenant(indexed, "acme", embedder=Counting())
    assert hot_indexes(indexed) == [hot.index_name("acme", "counting/8/2")]
    found = recall.search(indexed, "acme", "text 7", limit=40, embedder=Counting())
    assert len(found.hits) == 40
    put(indexed, "acme", {memory(f"Memory {number}", number=number).path: None for number in range(5, 40)})
    [done] = sync_all(indexed, ["acme"], confirm_deletes=True)
    assert (done.deletes, hot_indexes(indexed)) == (35, [])
    assert rows(indexed, "SELECT indexed FROM docmem.vector_set") == [{"indexed": False}]


def test_a_search_of_a_whole_large_tenant_goes_through_its_index(
    indexed: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planner took conditions that every row passes for rare ones, and read all rows."""
    monkeypatch.setattr(hot, "HOT", 3_000)
    sync_tenant(indexed, "acme")
    with closing(db.connect(indexed, "sync")) as connection:
        with db.tenant_transaction(connection, "acme") as cursor:
            for statement in LARGE:
                cursor.execute(statement)
        hot.settle(indexed, connection, "acme")
    scope = index.Scope(None, None, KINDS, dict.fromkeys(KINDS))
    vector = str([1.0] * 8)
    values = {"tenant": "acme", "vector": vector, "dimension": 8, "set": "counting/8/2", "limit": 30}
    with closing(db.connect(indexed, "reader")) as connection:
        client = psycopg.ClientCursor(connection)
        query = client.mogrify(
            "EXPLAIN " + load("docmem", "index.sql")["memories_by_vector"], {**values, **scope.parameters()}
        )
        with db.tenant_transaction(connection, "acme") as cursor:
            plan = "\n".join(str(row["QUERY PLAN"]) for row in cursor.execute(query.encode()))
    assert hot.index_name("acme", "counting/8/2") in plan, plan


LARGE = (
    "INSERT INTO docmem.memory (tenant_id, id, path, blob, revision, subject, kind, text, importance, turns, "
    "supersedes, meta, projection, projection_hash, tsv, created_at, updated_at) SELECT "
    "'acme', n, n, 'b', 'r', 's' || n / 20, 'fact', 'x', 5, '{}', '{}', '{}', 'x', n, '', now(), now() "
    "FROM generate_series(1, 3000) AS n",
    "INSERT INTO docmem.memory_vector (tenant_id, id, set, projection_hash, embedding) "
    "SELECT 'acme', n, 'counting/8/2', n, ARRAY[n % 7, n % 11, n % 13, n % 17, n % 19, n % 23, n % 29, 1]::halfvec "
    "FROM generate_series(1, 3000) AS n",
    "INSERT INTO docmem.vector_set (tenant_id, set, serves, indexed, used_at) "
    "VALUES ('acme', 'counting/8/2', true, false, now())",
)


def test_erasing_a_tenant_takes_its_index_along(indexed: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its definition in the catalogue names the tenant."""
    monkeypatch.setattr(hot, "HOT", 2)
    write(indexed, "a", "b")
    sync_tenant(indexed, "acme", embedder=Counting())
    assert len(hot_indexes(indexed)) == 1
    erase.erase(indexed, "acme", Target("tenant", "acme"), now=NOW)
    assert hot_indexes(indexed) == []


def test_there_are_only_so_many_indexes(
    indexed: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hot, "HOT", 2)
    monkeypatch.setattr(hot, "MOST", 0)
    write(indexed, "a", "b")
    sync_tenant(indexed, "acme", embedder=Counting())
    assert hot_indexes(indexed) == []
    assert "it gets none" in caplog.text


def test_an_index_whose_making_was_broken_off_is_made_again(
    indexed: Settings, monkeypatch: pytest.MonkeyPatch, postgres_server: Server, database: str
) -> None:
    monkeypatch.setattr(hot, "HOT", 2)
    name = hot.index_name("acme", "counting/8/2")
    write(indexed, "a", "b")
    sync_tenant(indexed, "acme", embedder=Counting(model="other"))
    with closing(db.connect(indexed, "owner")) as owner:
        create = sql.SQL("CREATE INDEX {} ON docmem.memory_vector (id)").format(sql.Identifier(name))
        owner.execute(create)
    with psycopg.connect(postgres_server.dsn("admin", database=database), autocommit=True) as admin:
        admin.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = %s::regclass", [f"docmem.{name}"])
    sync_tenant(indexed, "acme", embedder=Counting())
    with closing(db.connect(indexed, "owner")) as owner:
        row = owner.execute("SELECT indexdef FROM pg_indexes WHERE indexname = %s", [name]).fetchone()
    assert row is not None
    assert "hnsw" in row["indexdef"]


def test_without_the_owner_a_large_set_stays_without_an_index_and_says_so(
    indexed: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hot, "HOT", 2)
    write(indexed, "a", "b")
    done = sync_tenant(replace(indexed, owner_dsn=None), "acme", embedder=Counting())
    assert done.pending_embeddings == 0
    assert "DOCMEM_OWNER_DSN is not set" in caplog.text


def hot_indexes(settings: Settings) -> list[str]:
    with closing(db.connect(settings, "owner")) as owner:
        return [str(row["name"]) for row in owner.execute(load("docmem_sync", "hot.sql")["existing"])]


@pytest.mark.parametrize(
    ("vectors", "indexed", "expected"),
    [(9_999, False, None), (10_000, False, True), (10_000, True, None), (5_000, True, None), (4_999, True, False)],
)
def test_when_an_index_is_made_and_dropped(vectors: int, indexed: bool, expected: bool | None) -> None:
    assert hot.wanted([hot.Size("s", vectors, indexed)]).get("s") is expected
