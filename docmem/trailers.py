"""Commit trailers: one-line ASCII values, whatever a thread or turn is called.

A line feed in a value would forge another trailer and a NUL would cut the message, so all that isn't plain ASCII is
percent-encoded, and the space too, which separates the items of a list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import quote, unquote

_SAFE = "!\"#$&'()*+,/:;<=>?@[\\]^`{|}~"


def encode(value: str) -> str:
    """`value` as one word of printable ASCII."""
    return quote(value, safe=_SAFE, errors="replace")


def decode(value: str) -> str:
    """What `encode` was given."""
    return unquote(value)


def encode_list(values: Iterable[str]) -> str:
    """Several values on one line."""
    return " ".join(encode(value) for value in values)


def decode_list(value: str) -> tuple[str, ...]:
    """What `encode_list` was given."""
    return tuple(decode(word) for word in value.split())


def message(subject: str, trailers: Mapping[str, str]) -> str:
    """A commit message: a subject line and trailers, those without a value left out."""
    lines = [f"{key}: {value}" for key, value in trailers.items() if value]
    return f"{subject}\n\n" + "".join(f"{line}\n" for line in lines)
