"""Answers of models, kept: the same prompt and input to the same model is asked and paid for once.

That makes a run resumable: one that was broken off goes on where it stopped. The key is (prompt hash, model, input
hash); an answer that could not be used is not kept. `offline` and `replay` cost nothing and are never kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docmem.consolidation import Model
from docmem.llm import Chat, Said
from docmem.model import Spent
from docmem.prompt import Request
from docmem.reply import Answer, InvalidReply, from_value, json_schema
from docmem_evals.recording import Recording


@dataclass(frozen=True)
class Key:
    """What an answer depends on, as hashes of 16 hex digits, and the model's name."""

    prompt: str
    model: str
    input: str

    @property
    def file(self) -> str:
        """Name of its file."""
        return hashlib.sha256(f"{self.prompt}\n{self.model}\n{self.input}".encode()).hexdigest()[:32] + ".json"


def key_of(request: Request, model: str) -> Key:
    """The key of a window put to a model: its instructions and the reply's schema, and what there is to read."""
    schema = json.dumps(json_schema([topic.name for topic in request.agent.topics]), sort_keys=True)
    return Key(digest(f"{request.hash}\n{schema}"), model, digest(request.window))


def digest(text: str) -> str:
    """16 hex digits of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True)
class Store:
    """A folder of answers, one file each. `folder` None keeps nothing."""

    folder: Path | None = None

    def get(self, key: Key) -> Mapping[str, Any] | None:
        """The answer that was kept; None where there is none, or none that can be read."""
        if self.folder is None:
            return None
        try:
            row = json.loads((self.folder / key.file).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return row if isinstance(row, dict) and row.get("key") == [key.prompt, key.model, key.input] else None

    def put(self, key: Key, row: Mapping[str, Any]) -> None:
        """Keep an answer. Whoever reads meanwhile sees it whole or not at all."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        fd, name = tempfile.mkstemp(dir=self.folder, prefix=".answer-")
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump({"key": [key.prompt, key.model, key.input], **row}, file, ensure_ascii=True)
        Path(name).replace(self.folder / key.file)


@dataclass
class Asking:
    """A model for one sample: answers from what was kept, and remembers what it took."""

    model: Model
    store: Store
    recording: Recording | None = None
    key: Key | None = None
    answer: Answer | None = None
    cached: bool = False
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.model.name

    def propose(self, request: Request) -> Answer:
        """As `Model.propose`."""
        self.key = key_of(request, self.name)
        self.answer = self._kept(self.key)
        self.cached = self.answer is not None
        if self.answer is None:
            self.answer = self.model.propose(request)
            self.store.put(self.key, _row(self.answer.parsed.reply.model_dump(), self.answer.spent))
        if self.recording is not None:
            self.recording.add(request, self.answer)
        return self.answer

    def _kept(self, key: Key) -> Answer | None:
        row = self.store.get(key)
        if row is None:
            return None
        with contextlib.suppress(InvalidReply, KeyError, TypeError):
            spent = _spent(row)
            return Answer(from_value(row["reply"]), spent.tokens_in, spent.tokens_out, spent.cost, spent.repairs)
        return None


@dataclass
class Saying:
    """A chat for one sample, likewise. `spent` adds up; `cached` if nothing had to be asked."""

    chat: Chat
    store: Store
    spent: Spent = field(default_factory=Spent)
    cached: bool = True
    key: Key | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def name(self) -> str:
        """The chat's."""
        return self.chat.name

    def say(self, system: str, user: str) -> Said:
        """As `Chat.say`."""
        key = self.key = Key(digest(system), self.name, digest(user))
        row = self.store.get(key)
        if row is not None and isinstance(row.get("text"), str):
            said = Said(row["text"], _spent(row))
        else:
            said, self.cached = self.chat.say(system, user), False
            if said.text.strip():
                self.store.put(key, _row(None, said.spent) | {"text": said.text})
        with self._lock:  # a judge is shared by the samples that run at a time
            self.spent = plus(self.spent, said.spent)
        return said


def plus(one: Spent, other: Spent) -> Spent:
    """Both together; the cost is None only where neither is known."""
    costs = [each.cost for each in (one, other) if each.cost is not None]
    return Spent(
        one.tokens_in + other.tokens_in,
        one.tokens_out + other.tokens_out,
        sum(costs) if costs else None,
        one.repairs + other.repairs,
    )


def _row(reply: Any, spent: Spent) -> dict[str, Any]:
    return {
        "reply": reply,
        "tokens": [spent.tokens_in, spent.tokens_out],
        "cost": spent.cost,
        "repairs": spent.repairs,
    }


def _spent(row: Mapping[str, Any]) -> Spent:
    tokens_in, tokens_out = row["tokens"]
    return Spent(tokens_in, tokens_out, row["cost"], row["repairs"])
