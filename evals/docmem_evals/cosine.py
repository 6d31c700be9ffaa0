"""The matcher `cosine`: statements as vectors of an embedding model, with a threshold of that model's own.

Cosines of different models don't compare (e5's "unrelated" is 0.7, text-embedding-3's is 0.2), so a model without a
threshold isn't used until `docmem eval calibrate` has found one on labelled pairs.
"""

from __future__ import annotations

import math
import operator
import threading
from dataclasses import dataclass, field

from docmem.embedding import Embedder
from docmem.errors import ConfigError
from docmem_evals.agreement import values_differ

THRESHOLDS = {
    "text-embedding-3-small": 0.82,
    "text-embedding-3-large": 0.82,
}
"""Cosine from which two statements say the same, by model."""


def threshold_of(model: str) -> float:
    """The threshold of a model. Raises `ConfigError` for one that nobody has calibrated."""
    for name in (model, model.rsplit("/", 1)[-1]):
        if name in THRESHOLDS:
            return THRESHOLDS[name]
    raise ConfigError(
        f"no cosine is known from which two statements are one for {model}",
        hint="find it with `docmem eval calibrate`, then give it: --matcher cosine:0.9",
    )


@dataclass
class Cosine:
    """Compares meanings as an embedding model sees them."""

    embedder: Embedder
    threshold: float
    _vectors: dict[str, list[float]] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def name(self) -> str:
        """`cosine 0.82 of text-embedding-3-small`."""
        return f"cosine {self.threshold:g} of {self.embedder.model}"

    def same(self, one: str, other: str) -> bool:
        """Whether their vectors lie close enough, and no number or date differs. Raises like `Embedder.passages`."""
        # "In May" and "in September" lie as close together as any two that say the same.
        return not values_differ(one, other) and self.cosine(one, other) >= self.threshold

    def cosine(self, one: str, other: str) -> float:
        """Cosine of their vectors."""
        with self._lock:  # one text is embedded once, whoever asks first
            left, right = self._vector(one), self._vector(other)
        return math.fsum(map(operator.mul, left, right))

    def _vector(self, text: str) -> list[float]:
        if text not in self._vectors:
            self._vectors[text] = self.embedder.passages([text])[0]
        return self._vectors[text]
