"""Replies that couldn't be used, kept for a while so that somebody can see what a model said.

`$DOCMEM_ROOT/audit/<tenant>/`, readable by the owner alone, bounded in size and age, credentials removed.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from docmem.config import Settings
from docmem.model import Job
from docmem.names import tenant_name, thread_hash
from docmem.sensitive import redacted
from docmem.times import format_time

REPLY_MAX = 64_000
"""Characters of a reply that are kept."""
KEPT = timedelta(days=14)
_FILES_MAX = 500


def folder(settings: Settings, tenant: str) -> Path:
    """Where a tenant's failed replies are."""
    return settings.root / "audit" / tenant_name(tenant)


def keep(settings: Settings, job: Job, *, model: str, reason: str, reply: str, input_hash: str, now: datetime) -> Path:
    """Write one failed reply, and remove those that are too old or too many. Returns the file.

    The same window failing again replaces its file: retries don't pile up.
    """
    place = folder(settings, job.tenant)
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    entry = {
        "at": format_time(now),
        "thread": job.thread,
        "subject": job.subject,
        "agent": job.agent,
        "model": model,
        "reason": redacted(reason)[:2000],
        "reply": redacted(reply)[:REPLY_MAX],
        "cut": len(reply) > REPLY_MAX,
    }
    path = place / f"{thread_hash(job.thread)[:16]}-{input_hash[:16]}.json"
    fresh = path.with_suffix(f".{os.getpid()}.tmp")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(entry, file, indent=1)
    fresh.replace(path)
    _prune(place, now)
    return path


def entries(settings: Settings, tenant: str) -> list[dict[str, Any]]:
    """A tenant's failed replies, newest first."""
    found = []
    for path in folder(settings, tenant).glob("*.json"):
        with contextlib.suppress(FileNotFoundError):  # another process has just removed it
            found.append(json.loads(path.read_text()))
    return sorted(found, key=lambda entry: str(entry["at"]), reverse=True)


def of_subject(settings: Settings, tenant: str, subject: str, threads: Collection[str] = ()) -> list[Path]:
    """The failed replies about a subject, and of these threads those that don't say whom they are about."""
    found = []
    for path in sorted(folder(settings, tenant).glob("*.json")):
        try:
            entry = json.loads(path.read_text())
        except (FileNotFoundError, ValueError):  # just removed, or cut short by a full disk
            continue
        if entry.get("subject", subject if entry.get("thread") in threads else None) == subject:
            found.append(path)
    return found


def _prune(place: Path, now: datetime) -> None:
    aged: list[tuple[float, Path]] = []
    for path in place.iterdir():
        with contextlib.suppress(FileNotFoundError):
            aged.append((path.stat().st_mtime, path))
    for number, (written, path) in enumerate(sorted(aged, reverse=True)):
        if number >= _FILES_MAX or written < (now - KEPT).timestamp():
            path.unlink(missing_ok=True)
