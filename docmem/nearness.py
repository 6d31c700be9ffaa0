"""Whether two statements that words alone keep apart are one: what an embedder is asked, and never under the lock.

Whoever decides under the lock asks `Compared` for the pairs it needs. One that hasn't been compared yet ends the
attempt (`Uncompared`), `comparing` asks the embedder with nothing held, and the attempt starts over.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from docmem import embedding
from docmem.config import Settings
from docmem.errors import DocmemError

Pair: TypeAlias = tuple[str, str]
"""An older statement and a newer one."""

_TRIES = 4
_log = logging.getLogger(__name__)
T = TypeVar("T")


class Uncompared(Exception):
    """Pairs that have to be compared first. `bound`: the tenant's own cosine, where its policy names one."""

    def __init__(self, pairs: Iterable[Pair], bound: float | None) -> None:
        super().__init__("statements that may be one have to be compared first")
        self.pairs = frozenset(pairs)
        self.bound = bound


@dataclass(frozen=True)
class Compared:
    """What is known of pairs. `is_last`: what isn't known by now counts as two statements."""

    known: Mapping[Pair, bool] = field(default_factory=dict)
    is_last: bool = False

    def one(self, pairs: Iterable[Pair], bound: float | None) -> frozenset[Pair]:
        """Those of the pairs that are one statement. Raises `Uncompared`."""
        wanted = frozenset(pairs)
        if not self.is_last and (missing := wanted - self.known.keys()):
            raise Uncompared(missing, bound)
        return frozenset(pair for pair in wanted if self.known.get(pair))


def comparing(settings: Settings, tenant: str, work: Callable[[Compared], T]) -> T:
    """Run `work`, which takes the lock itself, again and again with what its attempts asked for compared."""
    known: dict[Pair, bool] = {}
    for _ in range(_TRIES):
        try:
            return work(Compared(known))
        except Uncompared as asked:
            known |= compared(settings, tenant, asked.pairs, bound=asked.bound)
    return work(Compared(known, is_last=True))


def compared(settings: Settings, tenant: str, pairs: Iterable[Pair], *, bound: float | None) -> dict[Pair, bool]:
    """Whether each pair is one statement, says the embedder. Without one, or if it fails, words alone decide: it isn't.

    `bound`: the cosine from which it is; None: the model's own, and nothing is one for a model nobody has measured.
    """
    wanted = sorted(pairs)
    embedder = embedding.embedder(settings) if wanted else None
    cosine = bound if bound is not None else embedding.same_above(embedder.model) if embedder else None
    close: frozenset[Pair] = frozenset()
    if embedder is not None and cosine is not None:
        try:
            close = embedding.are_close(embedder, wanted, cosine=cosine)
        except DocmemError as error:
            _log.warning("statements not compared by vector: tenant=%s code=%s", tenant, error.code)
    return {pair: pair in close for pair in wanted}
