"""Where things stand in a tenant's repo (format 1). Pure: paths in, paths out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from docmem.names import slug, thread_hash

FORMAT = 1
CONFIG = "docmem.yaml"
REVERTED = "reverted.yaml"
FOLDERS = (
    "knowledge",
    "conventions",
    "learnings",
    "research",
    "procedures",
    "steering",
    "experiments",
    "corpus",
)
"""First path parts of tenant-level documents."""

FileKind: TypeAlias = Literal["memory", "profile", "document", "config", "watermark", "reverted", "other"]

_SUBJECT = r"subjects/(?P<ab>[0-9a-f]{2})/(?P<cd>[0-9a-f]{2})/(?P<subject>(?P=ab)(?P=cd)[0-9a-f]{60})"
_MEMORY = re.compile(_SUBJECT + r"/memories/[^/]+\.md")
_PROFILE = re.compile(_SUBJECT + r"/profile\.yaml")
_WATERMARK = re.compile(r"watermarks/([0-9a-f]{2})/([0-9a-f]{2})/\1\2[0-9a-f]{60}\.yaml")


@dataclass(frozen=True, slots=True)
class Place:
    """What a path holds; `subject` for memories and profiles, `folder` for documents."""

    kind: FileKind
    subject: str = ""
    folder: str = ""


def place(path: str) -> Place:
    """Tell what a path of the repo holds. Paths that format 1 doesn't know are `other`, and left alone."""
    if path == CONFIG:
        return Place("config")
    if path == REVERTED:
        return Place("reverted")
    for kind, pattern in (("memory", _MEMORY), ("profile", _PROFILE)):
        found = pattern.fullmatch(path)
        if found:
            return Place("memory" if kind == "memory" else "profile", subject=found["subject"])
    if _WATERMARK.fullmatch(path):
        return Place("watermark")
    folder, slash, _ = path.partition("/")
    if slash and folder in FOLDERS and path.endswith(".md"):
        return Place("document", folder=folder)
    return Place("other")


def subject_dir(subject: str) -> str:
    """Folder of a subject. Two levels of two hex digits keep directories small, so a commit stays O(changed)."""
    return f"subjects/{subject[:2]}/{subject[2:4]}/{subject}"


def profile_path(subject: str) -> str:
    """Path of a subject's profile."""
    return f"{subject_dir(subject)}/profile.yaml"


def memory_path(subject: str, memory: str, text: str) -> str:
    """Path of a new memory: a slug of its text for people, its id for uniqueness."""
    return f"{subject_dir(subject)}/memories/{slug(text)}-{memory}.md"


def watermark_path(thread: str) -> str:
    """Path of a thread's watermark."""
    digest = thread_hash(thread)
    return f"watermarks/{digest[:2]}/{digest[2:4]}/{digest}.yaml"
