"""Answers of a run as a recording that `replay:FILE` serves: a run with a key once, the same run without one after.

See `docmem.replay` for the format. What admission or a scorer does may change; the replies stay those of that day.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docmem.prompt import Request
from docmem.reply import Answer


@dataclass
class Recording:
    """Replies by window. A memory is noted by its id, not by the handle it was shown under that day."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, request: Request, answer: Answer) -> None:
        """Note a reply."""
        turns = [request.turns[0].id, request.turns[-1].id]
        reply = answer.parsed.reply.model_dump()
        for operation in reply["operations"]:
            shown = request.memories.get(operation["id"] or "")
            operation["id"] = shown.id if shown is not None else operation["id"]
        row = {"thread": request.thread, "turns": turns, "reply": reply}
        with self._lock:
            self.rows.append(row)

    def write(self, path: Path) -> None:
        """Write the recording, in the order of the threads' names."""
        rows = sorted(self.rows, key=lambda row: str(row["thread"]))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
