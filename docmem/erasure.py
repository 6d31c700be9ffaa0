"""What an erase takes out of a tenant's repo, over all history, and the rule by which the history is written anew.

A subject: its whole folder at every commit, the watermarks of its conversations, what waits for review about it, and
its key wherever else it stands. A memory: every version of it, in whatever file, and its id wherever else it stands.
Commits stay, with their times and authors; one that did nothing else becomes an empty one that says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from docmem import audit, files, git, history, layout, names, pairs, review, trailers
from docmem.document import split
from docmem.errors import FormatError, InputError, NotFound
from docmem.git.rewriting import Kept
from docmem.repository import REVIEW, Repository, StoredMemory
from docmem.splice import DELETE

_KEY = re.compile(r"[0-9a-f]{16,}")
"""Subject keys and memory ids."""
_KEY_BYTES = re.compile(rb"[0-9a-f]{16}")
_TELLING = 12
"""A shorter text is found in other people's files by chance."""
_RUN = 4
"""So many words in a row are told from chance, in the message of a commit that changed what is erased."""
_SAID_NOTHING_ELSE = b"Erased\n"
_NAMING_THREAD = re.compile(rb"(Consolidate|Held for review|Revert thread):? (\S+?)(?=:? |:?$)")
_CITED = r"thread: [\"']?{}[\"']?[,}}\s]"


@dataclass(frozen=True, slots=True)
class Target:
    """What to erase: a subject's key, a memory's id, or a whole tenant."""

    kind: Literal["subject", "memory", "tenant"]
    value: str


@dataclass(frozen=True)
class Content:
    """What goes. `threads`: conversations that were about nobody else.
    `mentions`: blobs that stay and name the target; `supersede`: memories that replaced it.

    `turns`: (thread, turn) up to which watermarks that go had been read. `texts` are those that no other file has: what
    can be searched for afterwards. `elsewhere`: how many files say the same words about others, and stay.
    """

    target: Target
    folder: str = ""
    blobs: frozenset[str] = frozenset()
    memories: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    threads: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    mentions: frozenset[str] = frozenset()
    reviews: Mapping[str, str] = field(default_factory=dict)
    supersede: tuple[StoredMemory, ...] = ()
    elsewhere: int = 0
    turns: frozenset[tuple[str, str]] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """What names the target: its key and the ids of its memories."""
        return self.memories | ({self.target.value} if self.target.kind == "subject" else frozenset())

    @property
    def needles(self) -> frozenset[str]:
        """What must be found nowhere afterwards."""
        return self.names | self.texts | {thread for thread in self.threads if len(thread) >= _TELLING}


def find(repository: Repository, wanted: str) -> Target:
    """The subject or memory that a person means. Raises `NotFound`; `InputError` where it may be either."""
    subject = names.subject_key(repository.tenant, wanted)
    memory = history.find_memory(repository, wanted) or _held_memory(repository, wanted)
    known = bool(git.versions_ever(repository.git_dir, layout.subject_dir(subject)))
    known = known or bool(audit.of_subject(repository.settings, repository.tenant, subject))
    if memory and known:
        raise InputError(f"{wanted} is a memory and a subject", hint=f"give the subject as its key: {subject}")
    if memory:
        return Target("memory", memory)
    if known or subject == wanted or any(each.subject == subject for each in review.reviews(repository)):
        return Target("subject", subject)
    raise NotFound(
        f"tenant {repository.tenant} has neither a memory nor a subject {wanted!r}",
        hint=f"see: docmem log {repository.tenant}; a phone's subject: docmem subject {repository.tenant} PHONE",
    )


def _held_memory(repository: Repository, wanted: str) -> str | None:
    held = {item.key for each in review.reviews(repository) for item in each.items if item.op != "profile"}
    return wanted if wanted in held else None


# ------------------------------------------------------------------------------------------------------ collecting


def collect(repository: Repository, target: Target) -> Content:
    """Gather what goes, from every object that there is."""
    start = _of_subject(repository, target) if target.kind == "subject" else _of_memory(repository, target)
    others: dict[str, bytes] = {}
    concerns = finder(start.names | start.texts)
    shared: set[str] = set()
    cited = {thread: re.compile(_CITED.format(re.escape(thread)).encode()) for thread in start.threads}
    for blob, _, data in git.objects(repository.git_dir, wanted=_is_blob):
        if blob in start.blobs:
            continue
        shared |= {thread for thread, cites in cited.items() if cites.search(data) and not _marks(data, target)}
        if concerns(data):
            others[blob] = data
    if target.kind == "subject":
        start = _with_strays(repository, start, others)
    names_it, says_it = finder(start.names), finder(start.texts)
    mentions = {blob: data for blob, data in others.items() if blob not in start.blobs and names_it(data)}
    apart = [data for blob, data in others.items() if blob not in start.blobs | mentions.keys() and says_it(data)]
    said_elsewhere = [text for data in apart for text in start.texts if text.encode() in data]
    read = {turn for data in mentions.values() for turn in _watermark_turn(data, target)}
    return replace(
        start,
        threads=(start.threads - shared) | {thread for thread, _ in read},
        turns=frozenset(read),
        texts=start.texts - set(said_elsewhere),
        elsewhere=len(said_elsewhere),
        mentions=frozenset(mentions),
        reviews=_reviews(repository, target),
        supersede=_superseding(repository, target, start.paths),
    )


def _with_strays(repository: Repository, start: Content, others: Mapping[str, bytes]) -> Content:
    """Count the versions that the subject's memories had outside its folder, by id, among what goes.

    One that stands there today is about somebody else: a person moved it, and it stays, with its id.
    """
    now = git.files(repository.git_dir, repository.snapshot().revision, "subjects")
    outside = {blob for path, blob in now.items() if not path.startswith(start.folder)}
    inside = _claimed(repository, start.blobs) if outside & start.blobs else {}
    strays = {blob: memory for blob, data in others.items() if (memory := pairs.claimed_id(data)) in start.memories}
    stay = {memory for blob, memory in (inside | strays).items() if blob in outside}
    kept = {blob for blob, memory in inside.items() if memory in stay}
    return replace(
        start,
        blobs=(start.blobs - kept) | {blob for blob, memory in strays.items() if memory not in stay},
        memories=start.memories - stay,
    )


def _claimed(repository: Repository, blobs: Collection[str]) -> dict[str, str]:
    """The ids that these blobs give as their own."""
    read = git.read_blobs(repository.git_dir, sorted(blobs)) if blobs else ()
    return {blob: memory for blob, data in read if (memory := pairs.claimed_id(data)) is not None}


def _is_blob(kind: str) -> bool:
    return kind == "blob"


def finder(needles: Iterable[str]) -> Callable[[bytes], bool]:
    """Tells whether one of these strings stands in some bytes."""
    keys = [needle.encode() for needle in needles if _KEY.fullmatch(needle)]
    others = [needle.encode() for needle in needles if not _KEY.fullmatch(needle)]

    def stands_in(data: bytes) -> bool:
        # Most of a long history is trees, and most trees have no run of 16 digits: one look instead of one a key.
        has_key = bool(keys) and _KEY_BYTES.search(data) is not None and any(key in data for key in keys)
        return has_key or any(other in data for other in others)

    return stands_in


def _of_subject(repository: Repository, target: Target) -> Content:
    folder = layout.subject_dir(target.value)
    versions = git.versions_ever(repository.git_dir, folder)
    found = Content(target, folder=f"{folder}/", blobs=frozenset(blob for _, blob in versions))
    data = dict(git.read_blobs(repository.git_dir, sorted(found.blobs))) if versions else {}
    memories, texts, threads = set(), set(), set()
    nameless = set(found.blobs)
    for path, blob in versions:
        memory = pairs.claimed_id(data[blob])
        if memory is None or layout.place(path).kind != "memory":
            continue
        nameless.discard(blob)
        memories.add(memory)
        texts |= _texts(data[blob])
        thread = _thread(path, data[blob])
        threads |= {thread} if thread else set()
    return replace(
        found,
        blobs=found.blobs - _said_of_others(repository, found.folder, nameless),
        memories=frozenset(memories),
        paths=frozenset(path for path, _ in versions),
        texts=frozenset(texts),
        threads=frozenset(threads),
    )


def _thread(path: str, data: bytes) -> str | None:
    try:
        return files.parse_memory(path, data).source.thread
    except FormatError:
        return None


def _said_of_others(repository: Repository, folder: str, blobs: Iterable[str]) -> set[str]:
    """Those that stand elsewhere too, byte by byte: a profile of one common line. They go here and stay there."""
    places = git.places_ever(repository.git_dir, sorted(blobs))
    return {blob for path, blob in places if not path.startswith(folder)}


def _of_memory(repository: Repository, target: Target) -> Content:
    """Every version that says it is this memory, wherever it stands; and at its paths those that say nothing."""
    versions = git.versions_ever(repository.git_dir, "subjects")
    objects = git.objects(repository.git_dir, wanted=_is_blob)
    found = {blob: data for blob, _, data in objects if pairs.claimed_id(data) == target.value}
    paths = {path for path, blob in versions if blob in found}
    there = {blob for path, blob in versions if path in paths} - found.keys()
    broken = dict(git.read_blobs(repository.git_dir, sorted(there))) if there else {}
    found |= {blob: data for blob, data in broken.items() if pairs.claimed_id(data) is None and len(data) >= _TELLING}
    return Content(
        target,
        blobs=frozenset(found),
        memories=frozenset([target.value]),
        paths=frozenset(paths),
        texts=frozenset(text for data in found.values() for text in _texts(data)),
    )


def _texts(data: bytes) -> set[str]:
    """The body of a memory's file, where it is long enough to be told from chance."""
    try:
        body = split(data).body.strip()
    except FormatError:
        return set()
    return {body} if len(body) >= _TELLING else set()


def _marks(data: bytes, target: Target) -> bool:
    return f"subject: {target.value}".encode() in data


def _watermark_turn(data: bytes, target: Target) -> set[tuple[str, str]]:
    if target.kind != "subject":
        return set()
    try:
        mark = files.parse_watermark(data)
    except FormatError:
        return set()
    return {(mark.thread, mark.last_turn)} if mark.subject == target.value else set()


def _reviews(repository: Repository, target: Target) -> dict[str, str]:
    """The reviews that are about nothing else: ref to commit."""
    found = {}
    for each in review.reviews(repository):
        only = bool(each.items) and all(item.key == target.value for item in each.items)
        if (target.kind == "subject" and each.subject == target.value) or (target.kind == "memory" and only):
            found[f"{REVIEW}/{each.id}"] = each.revision
    return found


def _superseding(repository: Repository, target: Target, paths: Iterable[str]) -> tuple[StoredMemory, ...]:
    if target.kind != "memory":
        return ()
    now = repository.snapshot()
    subjects = {layout.place(path).subject for path in paths}
    stored = (each for subject in sorted(subjects) for each in now.memories(subject))
    return tuple(each for each in stored if target.value in each.memory.supersedes)


# ------------------------------------------------------------------------------------------------------- rewriting


@dataclass(frozen=True)
class Erasing:
    """The rule of `git.rewrite`. `read` gives a blob's bytes. `quoting` gathers the messages that stay and quote."""

    content: Content
    read: Callable[[str], bytes]
    quoting: list[bytes] = field(default_factory=list)

    def is_gone(self, path: str) -> bool:
        """Whether a path lies in the erased subject's folder."""
        return bool(self.content.folder) and path.startswith(self.content.folder)

    def version(self, path: str, blob: str) -> Kept:
        """Erased content goes wherever it stands; what only mentions it stays without the mention."""
        if blob in self.content.blobs:
            return "delete"
        if blob not in self.content.mentions:
            return "keep"
        if layout.place(path).kind == "watermark":
            return "delete"
        return self._without_mention(path, self.read(blob))

    def _without_mention(self, path: str, data: bytes) -> bytes:
        if path == review.REASONS:
            data = _without_operations(data, self.content.names)
        if layout.place(path).kind == "memory":
            data = _without_links(path, data, self.content.memories)
        for name in self.content.names:
            data = data.replace(name.encode(), b"0" * len(name))
        return data

    def message(self, message: bytes, *, touched: bool, emptied: bool) -> bytes:
        """A commit that did nothing else says so; another one loses the lines that name what went, and its quotes.

        What a commit says that had nothing to do with it stays, and is counted where it quotes.
        """
        if emptied:
            return _SAID_NOTHING_ELSE
        lines = [self._without_thread(line) for line in message.splitlines(keepends=True)]
        gone = {number for number, line in enumerate(lines) if self._tells(line)}
        quotes = self._quoting(lines) - gone
        if touched:
            gone |= quotes
        elif quotes:
            self.quoting.append(message)
        kept = [line for number, line in enumerate(lines) if number not in gone]
        if 0 in gone:
            kept.insert(0, _SAID_NOTHING_ELSE)
        return b"".join(kept) if any(line.strip() for line in kept) else _SAID_NOTHING_ELSE

    def _tells(self, line: bytes) -> bool:
        return line.strip() in self._trailers or any(needle in line for needle in self._needles)

    @cached_property
    def _trailers(self) -> set[bytes]:
        return {f"Docmem-Thread: {trailers.encode(thread)}".encode() for thread in self.content.threads}

    @cached_property
    def _needles(self) -> list[bytes]:
        target = self.content.target
        start = (
            {target.value[:_TELLING]} if target.kind == "subject" else set()
        )  # as docmem's own subject lines have it
        return [needle.encode() for needle in self.content.names | self.content.texts | start]

    def _without_thread(self, line: bytes) -> bytes:
        """docmem put a conversation's id into the subject line once; people may quote one anywhere."""
        found = _NAMING_THREAD.match(line)
        if found is not None and found[2] in self._threads:
            line = found[1] + line[found.end() :]
        is_trailer = line.strip() in self._trailers
        for thread in self._threads if not is_trailer else ():
            if len(thread) >= _TELLING and thread in line:  # not as a part of somebody else's
                line = re.sub(rb"(?<![\w%+-])" + re.escape(thread) + rb"(?![\w%+-])", b"(erased)", line)
        return line

    @cached_property
    def _threads(self) -> frozenset[bytes]:
        """As they are, and as they are written in a message."""
        both = ((thread, trailers.encode(thread)) for thread in self.content.threads)
        return frozenset(name.encode("utf-8", "replace") for names_ in both for name in names_)

    def _quoting(self, lines: Sequence[bytes]) -> set[int]:
        """Which lines share a run of words with an erased text."""
        told = [(word, number) for number, line in enumerate(lines) for word in _words(line.decode("utf-8", "replace"))]
        found: set[int] = set()
        for at in range(len(told)):
            for length in self._runs:
                part = told[at : at + length]
                if tuple(word for word, _ in part) in self._runs[length]:
                    found |= {number for _, number in part}
        return found

    @cached_property
    def _runs(self) -> dict[int, set[tuple[str, ...]]]:
        """The runs of words that tell a text, by how many they are: `_RUN`, or all of a shorter one."""
        runs: dict[int, set[tuple[str, ...]]] = {}
        for words in map(_words, self.content.texts):
            length = min(_RUN, len(words))
            if length > 1:
                starts = range(len(words) - length + 1)
                runs.setdefault(length, set()).update(tuple(words[at : at + length]) for at in starts)
        return runs


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _without_operations(data: bytes, gone: frozenset[str]) -> bytes:
    """`review.json` without the operations on what is erased."""
    held = json.loads(data)
    held["operations"] = [each for each in held.get("operations", ()) if each.get("id") not in gone]
    return json.dumps(held, indent=1).encode() + b"\n"


def _without_links(path: str, data: bytes, gone: frozenset[str]) -> bytes:
    """A memory without its links to erased ones."""
    try:
        supersedes = files.parse_memory(path, data).supersedes
        left = [memory for memory in supersedes if memory not in gone]
        return files.edit_memory(data, {("supersedes",): left or DELETE}) if len(left) < len(supersedes) else data
    except FormatError:
        return data


def touches_others(git_dir: Path, old: str | None, new: str | None) -> bool:
    """Whether main's files changed but for those that are gone: the index has to read them again."""
    if old is None or new is None:
        return False
    return any(change.new is not None for change in git.changes(git_dir, old, new))
