"""A Markdown file with an optional YAML head: decode the bytes, tell head from body.

Only a `---` at byte 0 that is closed by a line that is exactly `---` is a head. A byte order mark and CRLF line
ends are read as if they weren't there, so a file and its LF twin parse and hash alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from docmem import strictyaml
from docmem.errors import FormatError

FILE_MAX = 1024 * 1024
"""Bytes of one file that docmem reads as memory, profile, document or setting."""

_FENCE = "---"
_KEY_LINE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*:(\s|$)")
_CONFLICT = re.compile(r"(<{7} |={7}$|>{7} |\|{7} )")
_CODE_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Parts:
    """A file taken apart. `head` is None where there is none; `head_line` and `body_line` count from 1."""

    head: str | None
    body: str
    body_line: int
    scrubbed: int = 0

    def mapping(self) -> dict[str, strictyaml.Value]:
        """The head's keys and values; `{}` without a head."""
        return strictyaml.load_mapping(self.head, first_line=2) if self.head is not None else {}


def decode(data: bytes) -> tuple[str, int]:
    """Bytes to text with LF line ends, without byte order mark, NUL and lone surrogates.

    Returns the text and how many characters had to be removed. Raises `FormatError` (`too_large`, `not_utf8`).
    """
    if len(data) > FILE_MAX:
        raise FormatError(f"{len(data)} bytes; the limit is {FILE_MAX}", code="too_large")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(f"byte {error.start} is not UTF-8", code="not_utf8", line=line) from None
    return scrub(text.replace("\r\n", "\n").replace("\r", "\n"))


def scrub(text: str) -> tuple[str, int]:
    """Remove what neither `text` nor `jsonb` of Postgres can hold: NUL and lone surrogates. Count what went."""
    if "\0" not in text and text.isascii():
        return text, 0
    kept = "".join(char for char in text if char != "\0" and not "\ud800" <= char <= "\udfff")
    return kept, len(text) - len(kept)


def scrub_value(value: strictyaml.Value) -> tuple[strictyaml.Value, int]:
    """`scrub` every text in a parsed value, nested keys and values too."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, list):
        pairs = [scrub_value(item) for item in value]
        return [item for item, _ in pairs], sum(count for _, count in pairs)
    if isinstance(value, dict):
        total, clean = 0, {}
        for key, item in value.items():
            plain_key, in_key = scrub(key)
            plain_item, in_item = scrub_value(item)
            clean[plain_key] = plain_item
            total += in_key + in_item
        return clean, total
    return value, 0


def split(data: bytes) -> Parts:
    """Take a file apart. Raises `FormatError`: also `two_heads` and `conflict_marker`."""
    text, scrubbed = decode(data)
    head, body, body_line = _split_text(text)
    if head is not None and _stacked(body):
        raise FormatError("two heads, one after the other", code="two_heads", line=body_line)
    if head is not None:
        refuse_conflict_markers(head, first_line=2)
    refuse_conflict_markers(body, first_line=body_line)
    return Parts(head=head, body=body, body_line=body_line, scrubbed=scrubbed)


def _split_text(text: str) -> tuple[str | None, str, int]:
    if not text.startswith(_FENCE + "\n"):
        return None, text, 1
    lines = text.split("\n")
    for number, line in enumerate(lines[1:], start=1):
        if line == _FENCE:
            return "\n".join(lines[1:number]) + "\n", "\n".join(lines[number + 1 :]), number + 2
    return None, text, 1


def _stacked(body: str) -> bool:
    """Whether the body begins with a second head (and not with a rule)."""
    head, _, _ = _split_text(body.lstrip("\n"))
    first = next((line for line in (head or "").split("\n") if line.strip()), "")
    return _KEY_LINE.match(first) is not None


def refuse_conflict_markers(text: str, *, first_line: int) -> None:
    """Raise `FormatError` where git left conflict markers; a fenced code sample may show them."""
    if "<<<<<<< " not in text and ">>>>>>> " not in text:
        return
    fence = ""
    for number, line in enumerate(text.split("\n")):
        mark = _CODE_FENCE.match(line)
        if mark and not fence:
            fence = mark.group(1)
        elif mark and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        elif not fence and _CONFLICT.match(line):
            raise FormatError(
                f"a conflict marker {line[:7]!r}",
                code="conflict_marker",
                line=first_line + number,
                hint="resolve the merge, then commit the file again",
            )
