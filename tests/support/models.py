"""Models that need no provider and no weights."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass
class Counting:
    """A deterministic embedder that remembers what it was asked."""

    model: str = "counting"
    dimension: int = 8
    asked: list[str] = field(default_factory=list)
    before: Callable[[], None] = lambda: None
    salt: bytes = b""

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        self.before()
        self.asked += texts
        return [
            [byte / 255 for byte in hashlib.sha256(self.salt + text.encode()).digest()[: self.dimension]]
            for text in texts
        ]

    def query(self, text: str) -> list[float]:
        return self.passages([text])[0]
