"""embed: vectors for rows that have none, and never a wrong one."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

import pytest

from docmem import db
from docmem.config import Settings
from docmem.errors import ModelUnavailable
from docmem.files import render_memory
from docmem_sync.embed import BATCH, embed
from docmem_sync.sync import sync_tenant
from tests.support.index import rows
from tests.support.repos import memory, put

VECTORS = "SELECT id, set, embedding::text AS vector FROM docmem.memory_vector ORDER BY set, id"

pytestmark = pytest.mark.usefixtures("tenant")


@dataclass
class Counting:
    """A deterministic embedder that remembers what it was asked."""

    model: str = "counting"
    dimension: int = 8
    asked: list[str] = field(default_factory=list)
    before: Callable[[], None] = lambda: None

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        self.before()
        self.asked += texts
        return [[byte / 255 for byte in hashlib.sha256(text.encode()).digest()[: self.dimension]] for text in texts]

    def query(self, text: str) -> list[float]:
        return self.passages([text])[0]


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
    assert sizes == {"counting/8/1": 8, "counting/16/1": 16, "other/8/1": 8}


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
        assert embed(connection, "acme", embedder=model) == 2
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
