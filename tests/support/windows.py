"""Windows to consolidate: turns, replies, a model that gives them, and a tenant that takes them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from docmem import git, names
from docmem.config import Settings
from docmem.consolidation import Consolidation, consolidate
from docmem.errors import ModelReplyError
from docmem.git import Author
from docmem.model import Job, Memory, Turn
from docmem.prompt import Request
from docmem.reply import Answer, InvalidReply, from_value
from docmem.repository import Repository

NOW = datetime(2026, 5, 3, tzinfo=UTC)
ANA = names.subject_of_id("acme", "ana")
JOB = Job("acme", "web-1", ANA)
PERSON = Author("Ana's colleague", "colleague@example.com")


def turn(number: int, text: str = "We plan Portugal in May. I'm vegetarian.", role: Any = "user") -> Turn:
    return Turn(f"t{number}", role, text, at=datetime(2026, 5, 2, 10, number, tzinfo=UTC))


def telling(number: int, **attributes: str) -> Turn:
    """A turn that says these values about the person, too."""
    return turn(
        number, " ".join(["We plan Portugal in May.", *(f"My {key}: {said}." for key, said in attributes.items())])
    )


def operation(text: str = "The traveller plans Portugal in May.", **changes: Any) -> dict[str, Any]:
    return {
        "op": "create",
        "id": None,
        "kind": "fact",
        "topic": "trip_plans",
        "text": text,
        "confidence": 0.9,
        "importance": 6,
        "evidence_turns": ["t1"],
        "quote": None,
        **changes,
    }


def reply(*operations: Mapping[str, Any], attributes: Mapping[str, str] | None = None, **core: Any) -> dict[str, Any]:
    pairs = [{"key": key, "value": value} for key, value in (attributes or {}).items()]
    nothing = {"preferred_language": None, "locale": None, "lifecycle_stage": None}
    return {"operations": list(operations), "profile": {**nothing, **core, "attributes": pairs}}


def quoting(answer: Any, turns: Sequence[Turn]) -> Any:
    """The reply with a quote of the user's in each operation that has none."""
    if not isinstance(answer, dict) or not isinstance(answer.get("operations"), list):
        return answer
    said = {turn.id: turn.text for turn in turns if turn.role == "user"}

    def quoted(operation: Any) -> Any:
        if not isinstance(operation, dict) or operation.get("quote") is not None:
            return operation
        cited = [said[each] for each in operation.get("evidence_turns") or () if each in said]
        return {**operation, "quote": cited[0].split(". ")[0] if cited else None}

    return {**answer, "operations": [quoted(each) for each in answer["operations"]]}


@dataclass
class Proposes:
    """A model with one answer. `meanwhile` is what others do while it thinks.

    Like a good model it quotes: where an operation has no quote, what the cited user's turn says. `quotes`: whether.
    """

    answer: Any
    meanwhile: Callable[[], object] = lambda: None
    name: str = "scripted"
    requests: list[Request] = field(default_factory=list)
    quotes: bool = True

    def propose(self, request: Request) -> Answer:
        self.requests.append(request)
        self.meanwhile()
        try:
            answer = quoting(self.answer, request.turns) if self.quotes else self.answer
            return Answer(from_value(answer), tokens_in=100, tokens_out=20)
        except InvalidReply as error:
            raise ModelReplyError(str(error), reply=json.dumps(self.answer)) from None


@dataclass
class Tenant:
    """A tenant to consolidate into."""

    settings: Settings
    repo: Repository

    def run(self, answer: Any, turns: Sequence[Turn] = (turn(1),), job: Job = JOB, **options: Any) -> Consolidation:
        model = answer if isinstance(answer, Proposes) else Proposes(answer)
        return consolidate(job, settings=self.settings, turns=turns, model=model, **{"now": NOW, **options})

    def memories(self, subject: str = ANA) -> dict[str, Memory]:
        found = [stored.memory for stored in self.repo.snapshot().memories(subject)]
        assert len({memory.id for memory in found}) == len(found), "never two memories under one id"
        return {memory.text: memory for memory in found}

    def commits(self) -> int:
        return sum(1 for _ in git.history(self.repo.git_dir, git.MAIN))

    def commits_since(self, revision: str | None) -> int:
        return sum(1 for _ in git.history(self.repo.git_dir, git.MAIN, since=revision))

    def last_turn(self, thread: str = "web-1") -> str | None:
        mark = self.repo.snapshot().watermark(thread)
        return mark.last_turn if mark is not None else None

    def write(self, path: str, data: bytes | str | None) -> str:
        """A person's commit."""
        content = data.encode() if isinstance(data, str) else data
        with self.repo.locked():
            return self.repo.commit(self.repo.head(), {path: content}, message="By hand\n", now=NOW, author=PERSON)

    def message(self) -> str:
        command = ["git", "--git-dir", str(self.repo.git_dir), "log", "-1", "--format=%B", "main"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def held(self) -> dict[str, dict[str, bytes]]:
        """Review ref to the files it changes."""
        found = {}
        for ref, commit in git.refs(self.repo.git_dir, "refs/docmem/review").items():
            base = git.resolve(self.repo.git_dir, f"{commit}^")
            assert base is not None
            changed = git.changes(self.repo.git_dir, base, commit)
            found[ref] = {
                each.path: git.read_blob(self.repo.git_dir, each.new) if each.new else b"" for each in changed
            }
        return found


def pushes_come_first(monkeypatch: pytest.MonkeyPatch, *pushed: str) -> None:
    """Let a push come in just before each of the next commits to main moves it: pushes don't take our lock."""
    pending = iter(pushed)
    move = git.move_ref

    def pushed_first(git_dir: Path, ref: str, *, new: str | None, old: str | None) -> None:
        name = next(pending, None) if ref == git.MAIN else None
        if name is not None:
            head = git.head(git_dir)
            files = {f"knowledge/{name}.md": b"x\n"}
            commit = git.commit(git_dir, base=head, files=files, message="Push\n", when=NOW, ref="refs/docmem/pushed")
            move(git_dir, "refs/docmem/pushed", new=None, old=commit)
            move(git_dir, git.MAIN, new=commit, old=head)
        move(git_dir, ref, new=new, old=old)

    monkeypatch.setattr("docmem.git.writing.move_ref", pushed_first)
