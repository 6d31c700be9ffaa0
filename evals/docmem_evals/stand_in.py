"""`offline` as somebody who answers: a stand-in made of rules, for CI and for trying things out.

It answers with the one line of the memory that shares most words with the question, and says that it doesn't know where
none shares any. Its figures say what it finds, and nothing of a model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from docmem.llm import Said
from docmem_evals.matching import tokens
from docmem_evals.scoring.answer import UNKNOWN

_LABEL = re.compile(r"\s*\[[^\]]*\]$")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ASKING = _words(
    """what which who whom whose where when why how many much does do did is are was were has have had can could should
    would will i my me you your it there any about tell please know"""
)


@dataclass(frozen=True)
class Extract:
    """The rules as a chat."""

    name: str = "offline"

    def say(self, system: str, user: str) -> Said:
        """The best line of the memory, or that it is unknown."""
        memory, _, question = user.rpartition("\nQuestion: ")
        asked = tokens(question) - _ASKING
        lines = [_LABEL.sub("", line[2:]) for line in memory.split("\n") if line.startswith("- ")]
        shared = [(len(asked & tokens(line)), -number, line) for number, line in enumerate(lines)]
        most, _, best = max(shared, default=(0, 0, ""))
        return Said(best if most else UNKNOWN)
