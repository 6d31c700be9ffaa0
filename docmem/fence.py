"""The fence around injected memory: its markers, and text that can't break out of it.

A block is memory as data. What stands in it was once said by somebody, so it may hold the fence's own markers,
bidi overrides that reorder what a reviewer sees, or invisible characters that carry a second text. `clean` takes
those out and leaves every ordinary text as it is, joined emoji and Persian or Indic joiners too.
"""

from __future__ import annotations

import re
import unicodedata

OPEN = "<docmem:memory>"
CLOSE = "</docmem:memory>"

_MARKER = re.compile(r"</?docmem:memory[^<>\n]*>", re.IGNORECASE)
_LOOKALIKE = re.compile(r"<([\s/\\]*docmem[\s:._-]*memory)", re.IGNORECASE)
_ALIKE = {
    ord(other): plain
    for plain, others in {
        "<": "‹〈⟨❮❬≺⋖˂ᐸ",
        "/": "⁄∕⧸⟋╱",
        ":": "∶꞉ː˸׃։܃⁚",
        "o": "οоօ",
        "e": "еҽ",
        "c": "сϲ",
        "m": "м",
        "d": "ԁ",
        "y": "уγ",
    }.items()
    for other in others
}
"""Characters that look like those of a marker, and aren't made the same by NFKC."""

_FLAGS = "|".join(
    "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"
    for region in ("gbeng", "gbsct", "gbwls")
)
_SUSPECT = re.compile(
    f"(?P<flag>{_FLAGS})|"
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
_BREAKS = frozenset("\x0b\x0c\r\x1c\x1d\x1e\x85\u2028\u2029")
_ZWNJ, _ZWJ = "\u200c", "\u200d"


def strip_injected(text: str) -> str:
    """`text` without the blocks that docmem put in, so that what was recalled is never learned again.

    A block whose end was cut off reaches to the end of the text; a stray end marker alone goes.
    """
    kept, at = "", 0
    while found := _MARKER.search(text, at):
        kept = _join(kept, text[at : found.start()])
        at = found.end() if _closes(found) else _end_of_block(text, found.end())
        kept, at = _drop_blank_line(text, kept, at)
    return _join(kept, text[at:])


def clean(text: str) -> tuple[str, int]:
    """Make stored text safe inside the fence; returns it and how many characters were removed or replaced.

    Removed: control and bidi characters, invisible ones that no script needs where they stand. Line breaks other
    than LF become LF. Whatever looks like a marker of the fence loses its bracket.
    """
    if text.isascii() and text.isprintable() and "<" not in text:  # nearly every text, and there is nothing in it
        return text, 0
    visible, removed = _visible(text)
    safe, replaced = _defused(visible)
    return safe, removed + replaced


def one_line(text: str) -> str:
    """`text` on one line: each run of white space is one space."""
    return " ".join(text.split())


def _closes(marker: re.Match[str]) -> bool:
    return marker[0][1] == "/"


def _end_of_block(text: str, at: int) -> int:
    found = next((marker for marker in _MARKER.finditer(text, at) if _closes(marker)), None)
    return found.end() if found else len(text)


def _drop_blank_line(text: str, kept: str, at: int) -> tuple[str, int]:
    """Take the blank line away that set the block apart."""
    if kept:
        return kept.removesuffix("\n\n"), at
    return kept, at + 2 if text.startswith("\n\n", at) else at


def _join(left: str, right: str) -> str:
    # What stood on both sides of a block must not become a marker, or one word, by its removal.
    apart = not left or not right or left[-1] == "\n" or right[0] == "\n"
    return left + right if apart else f"{left}\n{right}"


def _visible(text: str) -> tuple[str, int]:
    parts: list[str] = []
    last, at, changed = "", 0, 0
    for found in _SUSPECT.finditer(text):
        if found.start() > at:
            parts.append(text[at : found.start()])
            last = parts[-1][-1]
        at = found.end()
        keep = found[0] if found["flag"] or _belongs(last, found[0], text[at : at + 1]) else ""
        if found[0] in _BREAKS:
            keep = "" if found[0] == "\r" and text[at : at + 1] == "\n" else "\n"
        changed += keep != found[0]
        parts.append(keep)
        last = keep[-1:] or last
    return ("".join(parts) + text[at:], changed) if at else (text, 0)


def _belongs(before: str, char: str, after: str) -> bool:
    """Whether an invisible character does its proper work between its neighbours."""
    if not before:
        return False
    code, base, kind = ord(char), ord(before), unicodedata.category(before)
    joins_letters = 0x0590 <= base <= 0x1FFF and kind in {"Lo", "Mn", "Mc"}
    if char == _ZWNJ:
        return joins_letters
    if char == _ZWJ:
        return joins_letters or (_pictorial(before) and _pictorial(after))
    if char in "\ufe0e\ufe0f":
        keycap = before in "0123456789#*" and after == "\u20e3"
        return keycap or before == "ℹ" or (base > 0x7F and kind in {"So", "Sm", "Po", "Pd"})
    if 0xFE00 <= code <= 0xFE0D:
        return base > 0x7F and kind in {"Lo", "So", "Sm", "Po"}
    if 0xE0100 <= code <= 0xE01EF:
        return base >= 0x2E80 and kind == "Lo"
    return 0x180B <= code <= 0x180F and code != 0x180E and 0x1800 <= base <= 0x18AF and kind == "Lo"


def _pictorial(char: str) -> bool:
    return bool(char) and (char in "\ufe0e\ufe0f" or unicodedata.category(char) in {"So", "Sm", "Sk"})


def _defused(text: str) -> tuple[str, int]:
    folded = text if text.isascii() else "".join(map(_folded, text)).translate(_ALIKE)
    starts = [found.start() for found in _LOOKALIKE.finditer(folded)]
    if not starts:
        return text, 0
    chars = list(text)
    for at in starts:
        chars[at] = "("
    return "".join(chars), len(starts)


def _folded(char: str) -> str:
    """`char` in its plain form where that is one character: a full-width marker reads as a marker."""
    plain = unicodedata.normalize("NFKC", char)
    return plain if len(plain) == 1 else char
