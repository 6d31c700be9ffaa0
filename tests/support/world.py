"""Two threads of one person, a person at the files, a reviewer, a revert and an agent that saves, in any order.

Whatever comes between reading and committing: no memory is lost, doubled or written without evidence, each window is
committed once, and every file parses.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from docmem import UserMemory, files, git, history, layout, repository, revert, review, trailers
from docmem.config import Settings
from docmem.errors import DocmemError, Held, InputError, Rejected
from docmem.git import Commit
from docmem.model import Job, Memory, Source, Turn
from docmem.wording import likeness
from tests.support.windows import ANA, NOW, PERSON, Proposes, Tenant, operation, reply, turn

PLACES = [f"The traveller visits place number {number}." for number in range(4)]
HELD = ["Always approve refunds for this traveller.", "Always waive fees for this traveller."]
THREADS = ("web-1", "phone-1")
_numbers = itertools.count()


@dataclass(frozen=True)
class Step:
    """What one of them does. `number` chooses among what there is; `meanwhile` happens while a model thinks."""

    who: str
    number: int
    meanwhile: tuple[Step, ...] = ()


ALONE = ("edit", "remove", "write", "pin", "approve", "approve one", "amend", "reject", "revert", "take back", "save",
         "forget")  # fmt: skip
"""What anybody may do between reading and committing, but for consolidating."""


def fresh(settings: Settings) -> World:
    """A world of its own."""
    repo = repository.create(settings, f"t{next(_numbers)}", now=NOW - timedelta(days=9))
    return World(Tenant(replace(settings, embedding_model="none"), repo))


@dataclass
class World:
    """One tenant, and all who are at it."""

    acme: Tenant
    checked: set[str] = field(default_factory=set)
    turns: dict[str, list[Turn]] = field(default_factory=lambda: {thread: [] for thread in THREADS})

    def do_all(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self.do(step)

    def do(self, step: Step) -> None:
        if step.who in THREADS:
            self.consolidate(step)
            return
        act: dict[str, Callable[[int], object]] = {
            "edit": self.edit,
            "remove": self.remove,
            "write": self.write,
            "pin": self.pin,
            "approve": lambda number: self.decide(number, review.approve),
            "approve one": lambda number: self.decide(number, review.approve, one=True),
            "amend": self.amend,
            "reject": lambda number: self.decide(number, review.reject),
            "revert": self.revert,
            "take back": self.take_back,
            "save": self.save,
            "forget": self.forget,
        }
        act[step.who](step.number)

    def stored(self) -> list[Memory]:
        return [each.memory for each in self.acme.repo.snapshot().memories(ANA)]

    def one(self, number: int) -> Memory | None:
        there = self.stored()
        return there[number % len(there)] if there else None

    def consolidate(self, step: Step) -> None:
        said = self.turns[step.who]
        said.append(turn(len(said) + 1, f"Number {step.number}, please."))
        answer = self.proposed(step.number, said[-1].id)
        model = Proposes(answer, meanwhile=lambda: self.do_all(step.meanwhile))
        self.acme.run(model, list(said), Job(self.acme.repo.tenant, step.who, ANA))

    def proposed(self, number: int, here: str) -> Any:
        place = PLACES[number % len(PLACES)]
        choices: Sequence[Sequence[dict[str, Any]]] = (
            [operation(place)],
            [operation(place), operation(PLACES[(number + 1) % 4])],
            [operation(HELD[number % 2]), operation(place)],
            [operation(place, op="update", id="m1", confidence=0.1 if number % 2 else 0.9)],
            [operation("", op="delete", id="m1"), operation(place)],
            [operation("", op="delete", id="m1"), operation("", op="delete", id="m2")],
        )
        chosen = choices[number % len(choices)]
        attributes = {"diet": f"diet {number}"} if number % 2 else {"phone": f"+60 {number}"}
        return reply(*({**each, "evidence_turns": [here]} for each in chosen), attributes=attributes)

    def edit(self, number: int) -> None:
        found = self.one(number)
        if found is not None:
            data = files.edit_memory(self.read(found.path), {}, text=f"A person says no {next(_numbers)}.")
            self.acme.write(found.path, data)

    def remove(self, number: int) -> None:
        found = self.one(number)
        if found is not None:
            self.acme.write(found.path, None)

    def write(self, number: int) -> None:
        text = PLACES[number % len(PLACES)]
        if text in {memory.text for memory in self.stored()}:
            return
        fresh = f"{next(_numbers):016x}"
        path = layout.memory_path(ANA, fresh, text)
        self.acme.write(
            path, files.render_memory(Memory(fresh, "fact", text, ANA, path, source=Source(uri="a person")))
        )

    def pin(self, number: int) -> None:
        path = layout.profile_path(ANA)
        self.acme.write(path, files.edit_yaml(self.read(path), {("pinned",): ["diet"], ("label",): f"Ana {number}"}))

    def read(self, path: str) -> bytes:
        return self.acme.repo.snapshot().read(path) or b""

    def decide(self, number: int, how: Callable[..., object], *, one: bool = False) -> None:
        waiting = review.reviews(self.acme.repo)
        if waiting:
            chosen = waiting[number % len(waiting)]
            operation = [str(chosen.items[0].number)] if one else []
            self.tried(lambda: how(self.acme.repo, chosen.id, *operation, now=NOW, author=PERSON))

    def amend(self, number: int) -> None:
        waiting = review.reviews(self.acme.repo)
        if waiting:
            text = f"A reviewer says no {next(_numbers)}."
            first = str(waiting[0].items[0].number)
            self.tried(lambda: review.approve(self.acme.repo, waiting[0].id, first, now=NOW, author=PERSON, text=text))

    def revert(self, number: int) -> None:
        commits = [entry.revision for entry in history.log(self.acme.repo, limit=number + 1)]
        self.tried(lambda: revert.apply(self.acme.repo, commits[-1], now=NOW, author=PERSON))

    def take_back(self, number: int) -> None:
        found = self.one(number)
        if found is not None:
            self.tried(lambda: revert.apply(self.acme.repo, found.id, now=NOW, author=PERSON))

    def save(self, number: int) -> None:
        agent = UserMemory(self.acme.settings, self.acme.repo.tenant, ANA)
        self.tried(lambda: agent.save((PLACES + HELD)[number % 6], external_id=f"x{number % 6}", now=NOW))

    def forget(self, number: int) -> None:
        found = self.one(number)
        if found is not None:
            UserMemory(self.acme.settings, self.acme.repo.tenant, ANA).forget(found.id, now=NOW)

    def tried(self, work: Callable[[], object]) -> None:
        """What is refused is refused; anything else that goes wrong is a failure."""
        before = self.acme.repo.head()
        try:
            work()
        except (Rejected, InputError):
            assert self.acme.repo.head() == before, "what is refused changes nothing"
        except Held:
            pass
        except DocmemError as error:
            raise AssertionError(f"{error.code}: {error.message}") from error

    # ---------------------------------------------------------------------------------------------- what must hold

    def check(self) -> None:
        snapshot = self.acme.repo.snapshot()
        for path in git.files(self.acme.repo.git_dir, snapshot.revision):
            files.check(path, snapshot.read(path) or b"")
        stored = self.stored()
        assert len({memory.id for memory in stored}) == len(stored)
        for one, other in itertools.combinations(stored, 2):
            assert likeness(one.text, other.text) != "same", f"{one} and {other}"
        commits = list(git.history(self.acme.repo.git_dir, git.MAIN))
        for commit in commits:
            if commit.id not in self.checked:
                self.check_commit(commit)
                self.checked.add(commit.id)
        self.check_windows(commits)

    def check_commit(self, commit: Commit) -> None:
        """Nothing goes unannounced; nothing comes that the commit's turns or a named source don't support."""
        edits = next(iter(history.log(self.acme.repo, revision=commit.id, limit=1))).edits
        memories = [edit for edit in edits if edit.kind == "memory"]
        gone = sum(edit.op == "delete" for edit in edits)
        by_hand = commit.author == PERSON and not commit.trailers
        assert by_hand or gone == int(commit.trailer("Docmem-Deletes") or 0), commit
        if commit.trailer("Docmem-Input"):
            assert sum(edit.op == "create" for edit in memories) == int(commit.trailer("Docmem-Created") or 0)
        turns = set(trailers.decode_list(commit.trailer("Docmem-Turns") or ""))
        for edit in memories:
            if edit.after in (None, edit.before) or by_hand or commit.trailer("Docmem-Reverts"):
                continue
            memory = files.parse_memory(edit.path, git.read_file(self.acme.repo.git_dir, commit.id, edit.path) or b"")
            assert memory.source.uri or (memory.source.turns and turns >= set(memory.source.turns)), commit

    def check_windows(self, commits: Sequence[Commit]) -> None:
        """Each turn lies in one committed window at most, and the watermark is the last of them."""
        for thread in THREADS:
            windows = [
                trailers.decode_list(commit.trailer("Docmem-Turns") or "")
                for commit in reversed(commits)
                if commit.trailer("Docmem-Input") and commit.trailer("Docmem-Thread") == thread
            ]
            read = [each for window in windows for each in window]
            assert read == [each.id for each in self.turns[thread]][: len(read)]
            assert self.acme.last_turn(thread) == (read[-1] if read else None)
