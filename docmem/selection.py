"""Choose which existing memories a model is shown, so that it can update instead of repeating.

Pure. Most of the budget goes to the newest memories, a reserve to those that a search finds relevant, and what the
reserve leaves open to the next newest.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from docmem.model import Memory
from docmem.wording import content_words

Search: TypeAlias = Callable[[], Sequence[str] | None]
Strategy: TypeAlias = Literal["all", "recency", "recency+relevance"]

_log = logging.getLogger(__name__)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Selection:
    """The memories to show, newest first. `strategy` says how they were chosen of `total`.

    `failed`: the name of the error where a search was asked and failed; recency chose then.
    """

    memories: tuple[Memory, ...]
    total: int
    strategy: Strategy
    failed: str | None = None

    @property
    def truncated(self) -> bool:
        """Whether some memories aren't shown."""
        return len(self.memories) < self.total


def select_existing(
    memories: Sequence[Memory], search: Search | None = None, *, limit: int = 100, quota: int = 40
) -> Selection:
    """At most `limit` of `memories`: the `limit - quota` newest, up to `quota` that `search` ranks best, then newest.

    `search` returns memory ids, best first, or None where no search is possible; it is called only when there are
    more memories than `limit`. Without it, or where it can't search or raises, the newest are taken (`strategy`
    "recency"; `failed` says which error it was).
    """
    if limit < 0 or not 0 <= quota <= limit:
        raise ValueError(f"a quota of {quota} doesn't fit into a limit of {limit}")
    newest = sorted({memory.id: memory for memory in memories}.values(), key=_recency, reverse=True)
    if len(newest) <= limit:
        return Selection(tuple(newest), len(newest), "all")
    ranked, failed = _searched(search) if search is not None and quota else (None, None)
    if ranked is None:
        return Selection(tuple(newest[:limit]), len(newest), "recency", failed)
    chosen = {memory.id for memory in newest[: limit - quota]}
    known = {memory.id for memory in newest}
    for found in ranked:
        if len(chosen) == limit:
            break
        if found in known:
            chosen.add(found)
    for memory in newest:
        if len(chosen) == limit:
            break
        chosen.add(memory.id)
    kept = tuple(memory for memory in newest if memory.id in chosen)
    return Selection(kept, len(newest), "recency+relevance")


def _searched(search: Search) -> tuple[Sequence[str] | None, str | None]:
    try:
        found = search()
        return (list(found) if found is not None else None), None
    except Exception as error:  # noqa: BLE001 - a door: whoever searches, a window is consolidated without it
        _log.warning("existing memories were chosen by recency alone: the search failed (%s)", type(error).__name__)
        return None, type(error).__name__


def by_words(memories: Sequence[Memory], dialogue: str) -> list[str] | None:
    """Ids of the memories that share words with the dialogue, rare words counting more; None where it has no words."""
    wanted = set(content_words(dialogue))
    if not wanted:
        return None
    words = {memory.id: wanted & set(content_words(memory.text)) for memory in memories}
    seen_in = Counter(word for found in words.values() for word in found)
    rarity = {word: math.log(1 + len(words) / count) for word, count in seen_in.items()}
    score = {each: sum(rarity[word] for word in sorted(found)) for each, found in words.items() if found}
    return sorted(score, key=lambda each: (-score[each], each))


def _recency(memory: Memory) -> tuple[datetime, str]:
    return memory.valid_from or _LONG_AGO, memory.id
