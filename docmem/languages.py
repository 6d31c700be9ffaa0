"""Which text search configuration a text is searched with, from what people write: `pt-BR`, `Portuguese`."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias, get_args

Language: TypeAlias = Literal[
    "simple", "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "finnish", "french", "german",
    "greek", "hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian", "nepali", "norwegian",
    "portuguese", "romanian", "russian", "serbian", "spanish", "swedish", "tamil", "turkish", "yiddish",
]  # fmt: skip
"""Text search configurations that every Postgres from 15 on has."""

CONFIGURATIONS: tuple[Language, ...] = get_args(Language)

_CODES: dict[str, Language] = {
    "ar": "arabic", "hy": "armenian", "eu": "basque", "ca": "catalan", "da": "danish", "nl": "dutch", "en": "english",
    "fi": "finnish", "fr": "french", "de": "german", "el": "greek", "hi": "hindi", "hu": "hungarian",
    "id": "indonesian", "ga": "irish", "it": "italian", "lt": "lithuanian", "ne": "nepali", "no": "norwegian",
    "nb": "norwegian", "nn": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian",
    "es": "spanish", "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
_TAG = re.compile(r"([a-z]{2,3})([-_][a-z0-9]{1,8})*")


def configuration(language: str | None) -> Language | None:
    """The configuration for a language's tag or English name; `simple` for one that Postgres has no words of.

    None stays None: no language is named.
    """
    if language is None:
        return None
    written = language.strip().lower()
    if written in CONFIGURATIONS:
        return written
    tag = _TAG.fullmatch(written)
    return _CODES.get(tag[1], "simple") if tag else "simple"


def is_language(written: str) -> bool:
    """Whether this is a configuration's name or looks like a language tag (`pt`, `pt-BR`), known or not."""
    return written.strip().lower() in CONFIGURATIONS or _TAG.fullmatch(written.strip().lower()) is not None
