"""Matchers by name: `jaccard[:0.5]`, `cosine[:0.82]`, `judge:MODEL`."""

from __future__ import annotations

from docmem import embedding, llm
from docmem.config import Settings
from docmem.errors import ConfigError
from docmem.llm import Chat
from docmem_evals.cosine import Cosine, threshold_of
from docmem_evals.judge import Judge
from docmem_evals.matching import JACCARD, Jaccard, Matcher
from docmem_evals.replies import Saying, Store

HINT = "write jaccard, jaccard:0.6, cosine, cosine:0.85 or judge:MODEL"

WEAK = (
    "statements were told apart by words alone (jaccard): one put in other words counts as another, "
    "and one that differs in a word that is no number, date, name or negation may count as the same. "
    "Gate them with --matcher cosine or judge:MODEL"
)
"""Said where words alone gate a figure."""


def warnings(by: Matcher, *bounds: float | None) -> tuple[str, ...]:
    """What is to be said of a matcher's figures where any of them is gated."""
    return (WEAK,) if isinstance(by, Jaccard) and any(bound is not None for bound in bounds) else ()


def matcher(settings: Settings, name: str = "jaccard", *, embedding_model: str | None = None, store: Store) -> Matcher:
    """The matcher called `name`. Raises `ConfigError` for one that isn't known, or has no threshold."""
    kind, _, rest = name.partition(":")
    if kind == "jaccard":
        return Jaccard(_threshold(rest) if rest else JACCARD)
    if kind == "cosine":
        embedder = embedding.embedder(settings, name=embedding_model)
        if embedder is None:
            raise ConfigError(
                "the matcher cosine needs an embedder", hint="--embedding-model, DOCMEM_EMBEDDING_MODEL, or [local]"
            )
        return Cosine(embedder, _threshold(rest) if rest else threshold_of(embedder.model))
    if kind == "judge" and rest:
        return Judge(kept_chat(rest, store))
    raise ConfigError(f"{name!r} is no matcher", hint=HINT)


def kept_chat(name: str, store: Store) -> Chat:
    """A chat whose answers are kept."""
    return Saying(llm.chat(name), store)


def _threshold(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= 1:
        raise ConfigError(f"{text!r} is no threshold between 0 and 1", hint=HINT)
    return value
