"""What sync has to do, decided without touching anything.

From: what changed, what those files say, what the index holds of them. To: files to serve, rows to delete, files to
quarantine and to release. A file that can't be read never takes its row away: what it said last stays served.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from docmem.layout import CONFIG, place
from docmem.model import Memory
from docmem_sync.reading import Broken, Reading, Value

GUARD_ROWS = 20
GUARD_SHARE = 0.3
"""More unannounced deletions than the larger of the two stop sync."""

DUPLICATE = "duplicate_id"


@dataclass(frozen=True, slots=True)
class Row:
    """What a plan has to know of a row that is there. `key` is a memory's id, the path of other files."""

    key: str
    path: str
    blob: str
    revision: str
    created: datetime
    version: int = 0


@dataclass(frozen=True, slots=True)
class Waiting:
    """A file in quarantine."""

    path: str
    blob: str
    code: str
    line: int


@dataclass(frozen=True)
class Index:
    """The rows that a plan is about, by key; all that waits in quarantine, by path; how many files are served."""

    rows: Mapping[str, Row] = field(default_factory=dict)
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    config_blob: str | None = None
    served: int = 0

    def by_path(self) -> dict[str, Row]:
        """The rows by the path of their file. A file has one row at most."""
        return {row.path: row for row in self.rows.values()}


@dataclass(frozen=True)
class Scope:
    """The files in question: those that are there (path to blob) and those that are gone.

    `full`: these are all the files there are, so a row of any other path is gone. `force`: read even what the index
    holds already. `unreadable`: those of `files` with nothing to read.
    """

    files: Mapping[str, str]
    gone: Collection[str] = ()
    unreadable: Mapping[str, Broken] = field(default_factory=dict)
    full: bool = False
    force: bool = False

    def holds(self, path: str) -> bool:
        """Whether the scope says what became of this path."""
        return self.full or path in self.files or path in self.gone


@dataclass(frozen=True, slots=True)
class Served:
    """A file to serve: its value, in this blob. `commit` > 0: the state which that commit (an index into the commits)
    made, since the present one can't be read."""

    path: str
    key: str
    blob: str
    value: Value
    commit: int = 0


@dataclass(frozen=True, slots=True)
class Kept:
    """A row that stays. `commit` as in `Served`."""

    row: Row
    commit: int = 0


@dataclass(frozen=True)
class Plan:
    """What is to be done. `kept`: files that are served as they should be; only their history may read differently."""

    serve: tuple[Served, ...] = ()
    kept: tuple[Kept, ...] = ()
    delete: tuple[Row, ...] = ()
    quarantine: tuple[Broken, ...] = ()
    release: tuple[str, ...] = ()


def to_read(scope: Scope, index: Index) -> dict[str, str]:
    """The files whose content the plan has to see: those the index doesn't serve in this state."""
    rows = index.by_path()

    def is_served(path: str, blob: str) -> bool:
        if path in index.waiting:
            return False
        if path == CONFIG:
            return blob == index.config_blob
        return path in rows and rows[path].blob == blob

    return {path: blob for path, blob in scope.files.items() if scope.force or not is_served(path, blob)}


def claims(scope: Scope, index: Index, reading: Reading) -> dict[str, list[str]]:
    """Memory id to the files that hold it, for ids that more than one holds."""
    found: dict[str, set[str]] = {}
    for path, value in reading.values.items():
        if isinstance(value, Memory):
            found.setdefault(value.id, set()).add(path)
    for row in index.rows.values():
        if row.key in found and _still_holds(row, scope, index, reading):
            found[row.key].add(row.path)
    return {memory: sorted(paths) for memory, paths in found.items() if len(paths) > 1}


def _still_holds(row: Row, scope: Scope, index: Index, reading: Reading) -> bool:
    """Whether a row's file is still there with what the row says (and not broken, or changed, or gone)."""
    if row.path in reading.values or row.path in reading.broken:
        return False
    if scope.holds(row.path):
        return scope.files.get(row.path) == row.blob
    return row.path not in index.waiting


def refuse_duplicates(reading: Reading, winners: Mapping[str, str]) -> Reading:
    """The reading with every file but the winner of its id broken."""
    values, broken = dict(reading.values), dict(reading.broken)
    for path, value in reading.values.items():
        if isinstance(value, Memory) and winners.get(value.id, path) != path:
            del values[path]
            reason = f"the memory id {value.id} is that of {winners[value.id]}; give a copy an id of its own"
            blob = reading.blobs[path]
            broken[path] = Broken(path, blob, DUPLICATE, reading.id_lines.get(blob, 1), reason)
    return replace(reading, values=values, broken=broken)


@dataclass(frozen=True, slots=True)
class State:
    """An earlier state of a file: which commit made it (index into the commits), and what it said."""

    commit: int
    blob: str
    value: Value


@dataclass(frozen=True)
class Past:
    """What the commits in question tell of a broken file: its states that can be read, newest first; whether it
    began in them."""

    states: tuple[State, ...] = ()
    began: bool = False


def plan(scope: Scope, index: Index, reading: Reading, past: Mapping[str, Past]) -> Plan:
    """Decide. `past`: what is known of the broken files' earlier states."""
    served = [_served(path, State(0, reading.blobs[path], value)) for path, value in reading.values.items()]
    taken = {item.key for item in served}
    held = {
        row.key for row in index.rows.values() if not scope.holds(row.path) or _still_holds(row, scope, index, reading)
    }
    for path in sorted(reading.broken):
        states = (_served(path, state) for state in past[path].states)
        earlier = next((item for item in states if item.key not in taken | held), None)
        if earlier is not None:
            served.append(earlier)
            taken.add(earlier.key)
    left = [row for row in index.rows.values() if row.key not in taken and scope.holds(row.path)]
    as_it_was = [row for row in left if row.path not in reading.broken and scope.files.get(row.path) == row.blob]
    stay = {row.key for row in (*as_it_was, *_last_good(left, served, past))}
    same = [] if scope.force else [item for item in served if _is_served(item, index)]
    return Plan(
        serve=tuple(item for item in served if item not in same),
        kept=(*map(Kept, as_it_was), *(Kept(index.rows[item.key], item.commit) for item in same)),
        delete=tuple(row for row in left if row.key not in stay),
        quarantine=tuple(
            item for path, item in sorted(reading.broken.items()) if not _waits(item, index.waiting.get(path))
        ),
        release=tuple(_released(scope, index, reading)),
    )


def _served(path: str, state: State) -> Served:
    key = state.value.id if isinstance(state.value, Memory) else path
    return Served(path, key, state.blob, state.value, state.commit)


def _last_good(left: Iterable[Row], served: Iterable[Served], past: Mapping[str, Past]) -> list[Row]:
    """The rows of files that can't be read any more: what they said last, before the commits in question.

    A file that began in those commits has no such past: the row is of an earlier file of its name.
    """
    resolved = {item.path for item in served}
    return [row for row in left if row.path in past and row.path not in resolved and not past[row.path].began]


def _is_served(item: Served, index: Index) -> bool:
    row = index.rows.get(item.key)
    return row is not None and (row.path, row.blob) == (item.path, item.blob)


def is_plain(scope: Scope, index: Index, past: Mapping[str, Past], decided: Plan) -> bool:
    """Whether the commits since the last sync suffice to decide as all of them would, ids claimed twice aside.

    They don't where a file that waits in quarantine is touched, an id moves or becomes free that a waiting file may
    hold or have held, or a broken file's last good state lies further back and isn't the row that is there.
    """
    if index.waiting.keys() & {*scope.files, *scope.gone}:
        return False
    breaks, waits = _any_memory(past), _any_memory(index.waiting)
    deletes = _any_memory(row.path for row in decided.delete)
    if (deletes and breaks) or (waits and (deletes or breaks or _any_moved(decided, index))):
        return False
    gone = {row.key for row in decided.delete} | {item.key for item in decided.serve}
    stay = {row.path for row in index.rows.values() if row.key not in gone} | {item.path for item in decided.serve}
    return all(found.began or path in stay for path, found in past.items())


def _any_moved(decided: Plan, index: Index) -> bool:
    return any(item.key in index.rows and index.rows[item.key].path != item.path for item in decided.serve)


def _any_memory(paths: Iterable[str]) -> bool:
    return any(place(path).kind == "memory" for path in paths)


def _waits(item: Broken, waiting: Waiting | None) -> bool:
    return waiting is not None and (waiting.blob, waiting.code, waiting.line) == (item.blob, item.code, item.line)


def _released(scope: Scope, index: Index, reading: Reading) -> Iterable[str]:
    for path in sorted(index.waiting):
        still_there = path in scope.files if scope.full else path not in scope.gone
        if path in reading.values or not still_there:
            yield path


def unannounced(plan: Plan, announced: Collection[str]) -> list[Row]:
    """The deletions that no commit announced."""
    return [row for row in plan.delete if row.path not in announced]


def stops(deletions: int, index: Index) -> bool:
    """Whether so many unannounced deletions stop sync until a person confirms them."""
    return deletions > max(GUARD_ROWS, GUARD_SHARE * index.served)
