"""How long a provider is waited for, and when it is asked again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait and how often to ask again. All in seconds."""

    timeout: float = 120.0
    tries: int = 4
    first_pause: float = 1.0
    longest_pause: float = 60.0

    def pause(self, number: int, retry_after: float | None) -> float | None:
        """Seconds to wait after try `number` (from 1); None to give up. What the provider asks for counts most."""
        if number >= self.tries or (retry_after or 0) > self.longest_pause:
            return None
        backoff: float = self.first_pause * 2 ** (number - 1)
        return min(backoff if retry_after is None else max(retry_after, 0.0), self.longest_pause)


def retry_after(error: Exception) -> float | None:
    """Seconds of a `Retry-After` header; None where there is none, a date, or nothing one could wait for."""
    response = getattr(error, "response", None)
    headers: Mapping[str, str] = getattr(response, "headers", None) or {}
    try:
        seconds = float(headers.get("retry-after", ""))
    except ValueError:
        return None
    return None if math.isnan(seconds) else seconds
