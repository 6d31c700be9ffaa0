"""LoCoMo as published (Maharana et al., ACL 2024): conversations in sessions, observed facts, questions.

CC BY-NC 4.0: read from where the user has it, and never shipped with docmem.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from docmem.errors import InputError
from docmem.model import Turn

KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
"""Question categories; 5, adversarial, has no evidence to find and is left out."""

_SESSION = re.compile(r"session_(\d+)")
_TURN = re.compile(r"D:?(\d+):(\d+)")


@dataclass(frozen=True, slots=True)
class Observation:
    """A fact that an annotator drew from some turns."""

    text: str
    turns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Session:
    """One sitting. All its turns carry its date."""

    number: int
    date: str
    turns: tuple[Turn, ...]
    observations: tuple[Observation, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A question and the turns that answer it."""

    text: str
    kind: str
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Two people over months."""

    name: str
    sessions: tuple[Session, ...]
    queries: tuple[Query, ...]

    def texts(self) -> dict[str, str]:
        """Every turn's id and its text with date and speaker, as it is searched."""
        return {
            turn.id: f"{session.date}. {turn.speaker}: {turn.text}"
            for session in self.sessions
            for turn in session.turns
        }


def load(folder: Path, *, numbers: Sequence[int] = ()) -> list[Conversation]:
    """The conversations of a folder with a `locomo*.json`, or those of these numbers. Raises `InputError`."""
    found = sorted(folder.glob("locomo*.json"))
    if not found:
        raise InputError(f"{folder} has no locomo*.json", hint="point --locomo to a folder with LoCoMo's conversations")
    try:
        entries = json.loads(found[0].read_text("utf-8"))
        every = [_conversation(entry, folder) for entry in entries]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{found[0]} is not LoCoMo as published: {error!r}") from None
    wanted = [one for one in every if not numbers or one.name in {f"conv-{number}" for number in numbers}]
    if not wanted:
        raise InputError(f"{found[0]} has none of the conversations {list(numbers)}")
    return wanted


def _conversation(entry: Mapping[str, Any], folder: Path) -> Conversation:
    name = entry["sample_id"]
    dialogue, observed = entry["conversation"], entry["observation"]
    numbers = sorted(int(found[1]) for key in dialogue if (found := _SESSION.fullmatch(key)))
    sessions = tuple(_session(number, dialogue, observed) for number in numbers if dialogue[f"session_{number}"])
    known = {turn.id for session in sessions for turn in session.turns}
    given = folder / f"{name}.queries.jsonl"
    queries = _queries_file(given) if given.is_file() else _queries(entry["qa"])
    return Conversation(name, sessions, tuple(query for query in queries if query.relevant & known))


def _session(number: int, dialogue: Mapping[str, Any], observed: Mapping[str, Any]) -> Session:
    date = dialogue[f"session_{number}_date_time"]
    at = datetime.strptime(date, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    turns = tuple(_turn(turn, at) for turn in dialogue[f"session_{number}"])
    by_speaker = observed.get(f"session_{number}_observation", {})
    facts = (Observation(text, _ids(cited)) for facts in by_speaker.values() for text, cited in facts)
    here = {turn.id for turn in turns}
    return Session(number, date, turns, tuple(fact for fact in facts if fact.turns and here.issuperset(fact.turns)))


def _turn(turn: Mapping[str, Any], at: datetime) -> Turn:
    photo = turn.get("blip_caption")
    text = turn["text"] + (f" [shared a photo: {photo}]" if photo else "")
    return Turn(turn["dia_id"], "user", text, at, turn["speaker"])


def _ids(cited: Any) -> tuple[str, ...]:
    """The turns named in `"D1:3"`, `["D1:3", "D1:5"]`, `"D8:6; D9:17"` or `"D:11:26"`, each once."""
    return tuple(dict.fromkeys(f"D{session}:{turn}" for session, turn in _TURN.findall(str(cited))))


def _queries(entries: Sequence[Mapping[str, Any]]) -> Iterator[Query]:
    for entry in entries:
        if entry["category"] in KINDS:
            yield Query(entry["question"], KINDS[entry["category"]], frozenset(_ids(entry.get("evidence", []))))


def _queries_file(path: Path) -> Iterator[Query]:
    for line in path.read_text("utf-8").splitlines():
        entry = json.loads(line)
        yield Query(entry["question"], entry["category_name"], frozenset(_ids(entry["relevant"])))
