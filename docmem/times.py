"""Times as files write them: ISO 8601, UTC. A date alone is its first moment."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_DURATION = re.compile(r"([1-9][0-9]{0,5})([hdwy])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1), "y": timedelta(days=365)}


def parse_time(text: str) -> datetime:
    """Read `2026-05-02T10:14:00Z`, any other ISO 8601 time or a date. Without a zone it is UTC.

    Raises `ValueError`.
    """
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time like 2026-05-02T10:14:00Z") from None
    try:
        return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except OverflowError:  # 0001-01-01T00:00+14:00 lies before the first year there is
        raise ValueError(f"{text!r} is outside the years 1 to 9999") from None


def format_time(when: datetime) -> str:
    """Write a time as `2026-05-02T10:14:00Z`; fractions of a second only where there are any."""
    text = when.astimezone(UTC).replace(tzinfo=None).isoformat()
    return text + "Z"


def parse_duration(text: str) -> timedelta | None:
    """Read `12h`, `90d`, `6w`, `1y`; `none` is no limit. Raises `ValueError`."""
    if text == "none":
        return None
    found = _DURATION.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is not a duration like 90d, 12h, 6w, 1y or none")
    return int(found[1]) * _UNITS[found[2]]
