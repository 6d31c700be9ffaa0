"""Who is speaking: a verified phone, else an authenticated id, else nobody (and then nothing is remembered).

`VerifiedPhone` is the only type that the phone key accepts, and only the checks here make one: a signed token whose
issuer vouches for the number, or a messaging provider's webhook whose signature over the raw body holds. A number
that somebody merely typed proves nothing: it would open another person's memory.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Literal, NoReturn, Self, TypeAlias, final

from docmem.errors import ConfigError, InputError
from docmem.names import subject_of_id, subject_of_phone

Mode: TypeAlias = Literal["jwt", "dev"]
"""How a deployment knows people: by signed tokens and webhooks, or, on a developer's machine, also by a header."""

_log = logging.getLogger(__name__)


@final
class VerifiedPhone:
    """A phone number (E.164) that somebody we trust has checked. Made by `phone_from_jwt`, `phone_from_webhook`.

    No dataclass: `dataclasses.replace` would put another number into one that was checked. It can't be made, changed,
    copied, pickled or subclassed from outside; one that was smuggled in otherwise has no number.
    """

    __slots__ = ("__weakref__",)

    def __new__(cls, *_: object, **__: object) -> Self:
        """Raises `TypeError`, always."""
        raise TypeError("a VerifiedPhone comes from phone_from_jwt or phone_from_webhook, not from a bare number")

    def __init_subclass__(cls) -> None:
        """Raises `TypeError`: a class of somebody else's checks nothing."""
        raise TypeError("VerifiedPhone has no subclasses")

    @property
    def e164(self) -> str:
        """The number, as `phonenumbers` formats it. Raises `TypeError` for one that no check has made."""
        number = _checked.get(id(self))
        if number is None:
            raise TypeError("no check has made this VerifiedPhone")
        return number

    def __eq__(self, other: object) -> bool:
        """Whether both are the same number."""
        return self.e164 == other.e164 if isinstance(other, VerifiedPhone) else NotImplemented

    def __hash__(self) -> int:
        """By the number."""
        return hash(self.e164)

    def __repr__(self) -> str:
        """The last digits only: it ends up in logs."""
        return f"VerifiedPhone(…{self.e164[-2:]})"

    def __copy__(self) -> NoReturn:
        """Raises `TypeError`."""
        raise TypeError("a VerifiedPhone isn't copied: it stands for a check that was made once")

    def __deepcopy__(self, memo: object) -> NoReturn:
        """Raises `TypeError`."""
        self.__copy__()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Raises `TypeError`: bytes prove nothing."""
        raise TypeError("a VerifiedPhone isn't pickled: whoever reads it back has checked nothing")


_checked: dict[int, str] = {}
"""The number of each VerifiedPhone there is, by its `id`: outside of it, so that nothing can be set on it."""


def _issued(number: str) -> VerifiedPhone:
    phone = object.__new__(VerifiedPhone)
    _checked[id(phone)] = number
    weakref.finalize(phone, _checked.pop, id(phone), None)
    return phone


def parse_phone(text: str, *, region: str | None = None) -> str:
    """A phone number in E.164, so that `+60 12-345 6789` and `0123456789` in Malaysia are one person.

    `region` (two letters) is needed for numbers without `+`. Raises `InputError`.
    """
    import phonenumbers

    try:
        number = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException as error:
        hint = "write it with its country code, like +60123456789"
        raise InputError(f"{text!r} is no phone number: {error}", hint=hint) from None
    if not phonenumbers.is_possible_number(number):
        raise InputError(f"{text!r} can't be a phone number of its country", hint="check its digits")
    return str(phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164))


def phone_from_jwt(
    token: str,
    *,
    key: Any,
    algorithms: Sequence[str],
    issuer: str,
    audience: str,
    leeway: float = 30,
) -> VerifiedPhone | None:
    """The phone a token vouches for: `phone_number` with `phone_number_verified: true` (OpenID Connect Core, 5.1).

    Signature, issuer, audience and expiry have to hold; the algorithms are named by the caller and `none` is never one.
    Returns None for a token that doesn't hold, or vouches for no phone, and where no issuer or audience is given:
    anybody's token would do then.
    """
    import jwt

    if not issuer or not audience:
        _log.warning("a token can't be checked without both an issuer and an audience")
        return None
    allowed = [name for name in algorithms if name.lower() != "none"]
    try:
        claims = jwt.decode(
            token,
            key,
            algorithms=allowed,
            issuer=issuer,
            audience=audience,
            leeway=leeway,
            options={"require": ["exp", "iss", "aud"]},
        )
    except (jwt.PyJWTError, UnicodeError, RecursionError):
        return None
    if claims.get("phone_number_verified") is not True:
        return None
    return _verified(claims.get("phone_number"))


def phone_from_webhook(
    body: bytes, signature: str | None, *, secret: bytes, sender: Callable[[bytes], str | None]
) -> VerifiedPhone | None:
    """The sender's phone of a messaging provider's webhook.

    `signature` is the hex HMAC-SHA256 of the raw body under `secret`, with or without `sha256=` in front (as WhatsApp
    sends it in X-Hub-Signature-256), compared in constant time before anything of the body is read. `sender` takes the
    number out of the body. Returns None where there is no signature, it doesn't hold, or `sender` finds no number or
    fails: a body is whatever somebody sent, and it's nobody's then.
    """
    if not secret or not isinstance(signature, str):
        return None
    expected = hmac.new(secret, body, hashlib.sha256).hexdigest()
    given = signature.strip().removeprefix("sha256=").lower()
    if not hmac.compare_digest(expected.encode(), given.encode("utf-8", "replace")):
        return None
    try:
        number = sender(body)
    except Exception as error:  # noqa: BLE001 - a door: the host's reading of a body must not end the host's request
        _log.warning("a webhook's sender could not be read: %s", type(error).__name__)
        return None
    return _verified(number)


def phone_from_header(value: str | None, *, mode: Mode) -> VerifiedPhone | None:
    """A number that a developer put into a request header, on a developer's machine.

    Raises `ConfigError` in any mode but `dev`: outside it, whoever can send a header could be anybody.
    """
    if mode != "dev":
        raise ConfigError(
            f"the header shortcut for phone numbers is refused in mode {mode!r}",
            hint="verify the phone by a signed token or webhook; mode `dev` is for a developer's machine",
        )
    return _verified(value)


def _verified(number: object) -> VerifiedPhone | None:
    if not isinstance(number, str) or not number.strip():
        return None
    try:
        return _issued(parse_phone(number if number.startswith("+") else f"+{number}"))
    except InputError:
        return None


def subject_of(tenant: str, *, phone: VerifiedPhone | None = None, authenticated_id: str | None = None) -> str | None:
    """The subject's key: of the verified phone, else of the authenticated id, else None: then nothing is remembered.

    Two channels that verify one phone speak of one subject.
    """
    if phone is not None:
        if not isinstance(phone, VerifiedPhone):
            raise TypeError(f"phone must be a VerifiedPhone, not {type(phone).__name__}")
        return subject_of_phone(tenant, phone.e164)
    return subject_of_id(tenant, authenticated_id) if authenticated_id else None
