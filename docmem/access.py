"""All that is kept about one person, as one Markdown file that they can read: the answer to an access request."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from docmem import git, history, layout, review
from docmem.errors import AlreadyExists
from docmem.history import Entry
from docmem.model import Memory
from docmem.repository import Repository, StoredMemory
from docmem.times import format_time

_TITLE = "# What is kept about you"


def report(repository: Repository, subject: str, *, now: datetime) -> str:
    """The Markdown file about a subject (a key): what is known now, what waits for review, what was known before."""
    return "\n".join(_lines(repository, subject, now)) + "\n"


def write(file: Path, text: str) -> None:
    """Save a report; an older one is replaced. Raises `AlreadyExists` where another file stands there."""
    if file.is_file() and file.stat().st_size and not file.read_bytes().startswith(_TITLE.encode()):
        raise AlreadyExists(f"{file} is there already, and is no such report", hint="give another name, or remove it")
    file.write_text(text, encoding="utf-8")


def _lines(repository: Repository, subject: str, now: datetime) -> Iterator[str]:
    then = repository.snapshot()
    good, broken = then.memory_files(subject)
    profile = then.profile_bytes(subject).decode("utf-8", "replace").strip()
    yield _TITLE
    yield ""
    yield f"Tenant {repository.tenant}, subject `{subject}`, as of {format_time(now)} (revision {then.revision[:12]})."
    yield from _section("Profile", ["```yaml", *profile.splitlines(), "```"] if profile else [])
    yield from _section("Memories", [line for stored in good for line in _memory(stored)])
    yield from _section(
        "Files that can't be read", [line for path, _ in broken for line in _raw(then.read(path), path)]
    )
    yield from _section("Waits for a person's decision", list(_held(repository, subject)))
    yield from _section("Conversations", list(_threads(repository, subject)))
    folder = layout.subject_dir(subject)
    entries = history.log(repository, paths=[folder])
    changed = [line for each in entries for line in _entry(each, f"{folder}/")]
    yield from _section("What was learned, changed and taken back", changed)


def _section(title: str, lines: list[str]) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""
    yield from lines or ["Nothing."]


def _memory(stored: StoredMemory) -> Iterator[str]:
    memory = stored.memory
    yield f"- {_quoted(memory.text)}"
    facts = [memory.kind, *([memory.topic] if memory.topic else []), f"id {memory.id}", *_times(memory)]
    yield f"  - {', '.join(facts)}"
    source = memory.source
    if source.thread:
        yield f"  - from conversation {source.thread}, turns {' '.join(source.turns)}"
    if source.uri:
        yield f"  - from {source.uri}"
    if source.quote:
        yield f"  - you said: “{_quoted(source.quote)}”"


def _times(memory: Memory) -> Iterator[str]:
    for name, when in (("from", memory.valid_from), ("until", memory.valid_until), ("expires", memory.expires)):
        if when is not None:
            yield f"{name} {format_time(when)}"


def _quoted(text: str) -> str:
    return "\n  ".join(text.splitlines())


def _raw(data: bytes | None, path: str) -> Iterator[str]:
    yield f"- `{path.rsplit('/', 1)[-1]}`"
    yield from ("      " + line for line in (data or b"").decode("utf-8", "replace").splitlines())


def _held(repository: Repository, subject: str) -> Iterator[str]:
    for each in review.reviews(repository):
        for item in each.items if each.subject == subject else ():
            yield f"- {item.op}: {_quoted(item.after or item.before or item.key)}"
            if item.quote:
                yield f"  - you said: “{_quoted(item.quote)}”"


def _threads(repository: Repository, subject: str) -> Iterator[str]:
    """Conversations whose watermark says that they were about this person."""
    then = repository.snapshot()
    marks = git.grep(repository.git_dir, then.revision, f"^subject: *[\"']?{subject}", "watermarks")
    for path in sorted(marks):
        fields = (then.read(path) or b"").decode("utf-8", "replace").splitlines()
        yield f"- {', '.join(field for field in fields if field.startswith(('thread:', 'agent:', 'last_turn:')))}"


def _entry(entry: Entry, folder: str) -> Iterator[str]:
    """What a commit changed of a person's; of a memory that moved from or to somebody else only their side."""
    yield f"- {format_time(entry.when)}, {entry.author}, revision {entry.revision[:12]}"
    for edit in entry.edits:
        moved = edit.op == "move" and edit.path.startswith(folder)
        before = edit.before if not moved and (edit.moved_from or edit.path).startswith(folder) else None
        after = edit.after if edit.path.startswith(folder) else None
        for sign, text in (("before", before), ("after", after)):
            if text is not None:
                yield f"  - {edit.op} {edit.kind}, {sign}: {' '.join(text.split())}"
