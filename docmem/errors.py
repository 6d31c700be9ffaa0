"""What can go wrong, in words a user can act on.

Every expected failure is a `DocmemError`: it says what happened, to what, and (in `hint`) what to do. Its
`exit_code` is the command's: 1 the user can fix it, 75 try again. Anything else that escapes is a bug (3).
"""

from __future__ import annotations

from collections.abc import Sequence

from docmem.model import Spent


class DocmemError(Exception):
    """An expected failure. `code` is stable and machine-readable; `hint` says what to do next."""

    code = "error"
    exit_code = 1

    def __init__(self, message: str, *, hint: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if code is not None:
            self.code = code


class InvalidName(DocmemError):
    """A tenant, thread, path or other name that breaks the rules of the format."""

    code = "invalid_name"


class NotFound(DocmemError):
    """A tenant, revision, memory or file that is not there."""

    code = "not_found"


class AlreadyExists(DocmemError):
    """Something to be made that is there already."""

    code = "already_exists"


class InputError(DocmemError):
    """A file or value handed to docmem that it can't read."""

    code = "bad_input"


class FormatError(DocmemError):
    """A file of a tenant's repo that breaks format 1. `line` and `column` count from 1."""

    code = "bad_format"

    def __init__(
        self, message: str, *, code: str | None = None, line: int = 1, column: int = 1, hint: str = ""
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.line = line
        self.column = column


class ConfigError(DocmemError):
    """A setting that is missing or makes no sense."""

    code = "bad_setting"


class RoleRefused(DocmemError):
    """A Postgres role that row-level security doesn't bind, so it is never served."""

    code = "role_refused"


class SchemaError(DocmemError):
    """The index's schema is missing, too old or too new for this version."""

    code = "schema"


class GuardStop(DocmemError):
    """A guard stopped the work before anything changed; a person has to confirm it. `plan` lists what it would do."""

    code = "guard_stop"

    def __init__(self, message: str, *, hint: str = "", plan: Sequence[str] = ()) -> None:
        super().__init__(message, hint=hint)
        self.plan = tuple(plan)


class Rejected(DocmemError):
    """Something that admission refuses to keep; `code` is admission's."""

    code = "rejected"


class Held(DocmemError):
    """Something that is kept only once a person has approved it; it waits in the review `review`."""

    code = "held"

    def __init__(self, message: str, *, review: str, hint: str = "", code: str | None = None) -> None:
        super().__init__(message, hint=hint, code=code)
        self.review = review


class TryAgain(DocmemError):
    """Nothing was lost; the same command may succeed later."""

    code = "try_again"
    exit_code = 75


class Conflict(TryAgain):
    """Somebody else changed the same thing first."""

    code = "conflict"


class ServerUnavailable(TryAgain):
    """Postgres doesn't answer."""

    code = "server_unavailable"


class ModelFailed(TryAgain):
    """A model was asked, at a price, and there is no usable answer."""

    spent = Spent()


class ModelUnavailable(ModelFailed):
    """The model doesn't answer: network, timeout, rate limit, provider error. It may ask for a pause, in seconds."""

    code = "model_unavailable"
    retry_after: float | None = None


class ModelReplyError(ModelFailed):
    """The model answered, but not with what was asked for, after every repair. `reply` is its last answer."""

    code = "bad_reply"

    def __init__(self, message: str, *, reply: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reply = reply


class GitError(DocmemError):
    """git failed in a way we didn't expect. Carries git's own words."""

    code = "git"
