from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta

from docmem import audit
from docmem.config import Settings
from docmem.model import Job
from docmem.names import thread_hash

NOW = datetime.now(UTC)
JOB = Job("acme", "web-1", "ab" * 32)


def keep(settings: Settings, *, thread: str = "web-1", reply: str = "no", window: str = "a" * 64) -> None:
    audit.keep(
        settings,
        Job("acme", thread, JOB.subject),
        model="m",
        reason="password: hunter2",
        reply=reply,
        input_hash=window,
        now=NOW,
    )


def test_a_failed_reply_is_cut_and_freed_of_credentials(settings: Settings) -> None:
    keep(settings, reply="x" * 70_000)
    (entry,) = audit.entries(settings, "acme")
    assert (len(entry["reply"]), entry["cut"]) == (audit.REPLY_MAX, True)
    assert "hunter2" not in entry["reason"]
    assert entry["thread"] == "web-1"


def test_old_ones_go_when_a_new_one_comes(settings: Settings) -> None:
    keep(settings)
    (path,) = audit.folder(settings, "acme").iterdir()
    old = (NOW - timedelta(days=15)).timestamp()
    os.utime(path, (old, old))
    keep(settings, thread="web-2")
    assert [entry["thread"] for entry in audit.entries(settings, "acme")] == ["web-2"]


def test_each_window_has_its_own_and_no_tenant_sees_anothers(settings: Settings) -> None:
    keep(settings)
    keep(settings, window="b" * 64)
    assert len(audit.entries(settings, "acme")) == 2
    assert audit.entries(settings, "other") == []


def test_a_subjects_are_told_by_whom_they_are_about_and_older_ones_by_thread(settings: Settings) -> None:
    keep(settings)
    keep(settings, thread="old")
    (old,) = audit.folder(settings, "acme").glob(f"{thread_hash('old')[:16]}-*")
    old.write_text(json.dumps(json.loads(old.read_text()) | {"subject": None}).replace('"subject": null, ', ""))
    (audit.folder(settings, "acme") / "cut.json").write_text("{")
    assert [path.name[:16] for path in audit.of_subject(settings, "acme", JOB.subject)] == [thread_hash("web-1")[:16]]
    assert old in audit.of_subject(settings, "acme", JOB.subject, ["old"])
    assert audit.of_subject(settings, "acme", "cd" * 32, ["web-1"]) == []
