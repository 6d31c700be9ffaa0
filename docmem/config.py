"""The only place that reads the environment."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from docmem.errors import ConfigError

Injection: TypeAlias = Literal["off", "shadow", "on"]
"""What adapters do with a packet: nothing, build and log it, or add it to the prompt."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says. `None` means: not set."""

    root: Path
    model: str | None = None
    embedding_model: str | None = None
    dsn: str | None = None
    sync_dsn: str | None = None
    owner_dsn: str | None = None
    secret: str | None = None
    require_memory: bool = False
    consolidation_enabled: bool = False
    injection_enabled: Injection = "off"
    injection_cohort: float = 1.0
    listen_dsn: str | None = None
    replica_dsn: str | None = None

    @property
    def tenants(self) -> Path:
        """Folder of the tenants' bare repos."""
        return self.root / "tenants"

    @property
    def external(self) -> bool:
        """Whether some Postgres other than our embedded one is configured."""
        return any((self.dsn, self.sync_dsn, self.owner_dsn))

    def secret_bytes(self) -> bytes:
        """The key of memory ids: `DOCMEM_SECRET`, else `$DOCMEM_ROOT/secret`, made at first use (mode 0600)."""
        if self.secret:
            return self.secret.encode()
        return _secret_file(self.root / "secret")


def settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings from `environ` (default: the process environment). Blank means unset."""
    env = os.environ if environ is None else environ

    def text(name: str) -> str | None:
        return env.get(name, "").strip() or None

    root = text("DOCMEM_ROOT")
    return Settings(
        root=Path(root).expanduser().absolute() if root else Path.home() / ".docmem",
        model=text("DOCMEM_MODEL"),
        embedding_model=text("DOCMEM_EMBEDDING_MODEL"),
        dsn=text("DOCMEM_DSN"),
        sync_dsn=text("DOCMEM_SYNC_DSN"),
        owner_dsn=text("DOCMEM_OWNER_DSN"),
        secret=text("DOCMEM_SECRET"),
        require_memory=_flag("DOCMEM_REQUIRE_MEMORY", text("DOCMEM_REQUIRE_MEMORY")),
        consolidation_enabled=_flag("DOCMEM_CONSOLIDATION_ENABLED", text("DOCMEM_CONSOLIDATION_ENABLED")),
        injection_enabled=_injection("DOCMEM_INJECTION_ENABLED", text("DOCMEM_INJECTION_ENABLED")),
        injection_cohort=_share("DOCMEM_INJECTION_COHORT", text("DOCMEM_INJECTION_COHORT")),
        listen_dsn=text("DOCMEM_LISTEN_DSN"),
        replica_dsn=text("DOCMEM_REPLICA_DSN"),
    )


def scrubbed_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for a child process that must not hear of ours: without `GIT_*` and `PG*`.

    A hook, a rebase or an IDE sets `GIT_DIR` or `GIT_INDEX_FILE`; git in another repo would obey them.
    """
    env = os.environ if environ is None else environ
    return {key: value for key, value in env.items() if not key.startswith(("GIT_", "PG"))}


_QUARANTINE = ("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH")
_OF_A_PERSON = ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_EXEC_PATH")


def person_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for git on a person's behalf: their configuration and their keys, but no repo of a caller's."""
    env = os.environ if environ is None else environ
    kept = {key: env[key] for key in _OF_A_PERSON if key in env}
    return {**scrubbed_environment(env), **kept, "GIT_TERMINAL_PROMPT": "0"}


def quarantine(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Where git keeps the objects of a push until pre-receive has agreed: all three variables, or none.

    Without the first two the objects can't be read; without the third git would let refs point at them. A push that
    brings no objects has none. Raises `ConfigError` for some of them without the others.
    """
    env = os.environ if environ is None else environ
    found = {key: env[key] for key in _QUARANTINE if key in env}
    if found and len(found) < len(_QUARANTINE):
        missing = ", ".join(key for key in _QUARANTINE if key not in found)
        raise ConfigError(f"this push gives {', '.join(found)} without {missing}", hint="push with git 2.39 or newer")
    return found


def push_options(environ: Mapping[str, str] | None = None) -> list[str]:
    """What a person gave with `git push -o`."""
    env = os.environ if environ is None else environ
    count = env.get("GIT_PUSH_OPTION_COUNT", "0")
    return [env.get(f"GIT_PUSH_OPTION_{number}", "") for number in range(int(count) if count.isdigit() else 0)]


def index_file(environ: Mapping[str, str] | None = None) -> Path | None:
    """The index that git commits from, told to its hooks: another one than usual under `git commit PATH`."""
    env = os.environ if environ is None else environ
    value = env.get("GIT_INDEX_FILE")
    return Path(value).absolute() if value else None


def set_default(name: str, value: str) -> None:
    """Set a variable of this process for a library that reads it at import, unless the user has set it."""
    os.environ.setdefault(name, value)


def _flag(name: str, value: str | None) -> bool:
    if value is None or value.lower() in {"0", "false", "off", "no"}:
        return False
    if value.lower() in {"1", "true", "on", "yes"}:
        return True
    raise ConfigError(f"{name}={value!r} is neither on nor off", hint=f"set {name} to 1 or 0")


def _injection(name: str, value: str | None) -> Injection:
    if value is not None and value.lower() == "shadow":
        return "shadow"
    try:
        return "on" if _flag(name, value) else "off"
    except ConfigError:
        raise ConfigError(f"{name}={value!r} is none of off, shadow, on", hint=f"set {name} to one of them") from None


def _share(name: str, value: str | None) -> float:
    if value is None:
        return 1.0
    try:
        share = float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ConfigError(
            f"{name}={value!r} is no share", hint=f"set {name} to a number from 0 to 1, or to a percentage"
        )
    return share


def _secret_file(path: Path) -> bytes:
    try:
        return _read_secret(path)
    except FileNotFoundError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".secret.{os.getpid()}.{secrets.token_hex(4)}")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "w") as file:
        file.write(secrets.token_hex(32))
        file.flush()
        os.fsync(file.fileno())
    try:
        path.hardlink_to(fresh)  # the first of several starters wins; the others read its secret
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
    return _read_secret(path)


def _read_secret(path: Path) -> bytes:
    secret = path.read_bytes().strip()
    if not secret:
        raise ConfigError(f"{path} is empty", hint="restore it from a backup, or set DOCMEM_SECRET")
    return secret
