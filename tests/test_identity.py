import copy
import dataclasses
import gc
import hashlib
import hmac
import json
import pickle
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest

from docmem import identity, names
from docmem.errors import ConfigError, InputError
from docmem.identity import VerifiedPhone

KEY = "a key that is long enough for HS512 as well: 64 bytes at the very least"
SECRET = b"the provider's secret"
BODY = json.dumps({"from": "60123456789", "text": "hi"}).encode()


def token(key: str = KEY, algorithm: str = "HS256", **changes: object) -> str:
    claims: dict[str, object] = {
        "iss": "https://login.example",
        "aud": "concierge",
        "exp": datetime.now(UTC) + timedelta(minutes=5),
        "phone_number": "+60 12-345 6789",
        "phone_number_verified": True,
    }
    merged = {name: value for name, value in (claims | changes).items() if value is not None}
    return jwt.encode(merged, key if algorithm != "none" else "", algorithm=algorithm)


def phone(text: str) -> VerifiedPhone | None:
    return identity.phone_from_jwt(
        text, key=KEY, algorithms=["HS256"], issuer="https://login.example", audience="concierge"
    )


def sender(body: bytes) -> str | None:
    found: Mapping[str, str] = json.loads(body)
    return found.get("from")


def sign(body: bytes, secret: bytes = SECRET) -> str:
    return "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()


def test_two_channels_with_one_verified_phone_are_one_subject() -> None:
    web = phone(token())
    messaging = identity.phone_from_webhook(BODY, sign(BODY), secret=SECRET, sender=sender)
    assert web is not None
    assert identity.subject_of("acme", phone=web) == identity.subject_of("acme", phone=messaging)
    assert identity.subject_of("acme", phone=web) == names.subject_of_phone("acme", "+60123456789")


@pytest.mark.parametrize(
    "change",
    [
        {"aud": "somebody-else"},
        {"iss": "https://evil.example"},
        {"exp": datetime.now(UTC) - timedelta(minutes=5)},
        {"exp": None},
        {"aud": None},
        {"phone_number_verified": False},
        {"phone_number_verified": "true"},
        {"phone_number_verified": None},
        {"phone_number": None},
        {"phone_number": 60123456789},
        {"phone_number": "not a number"},
        {"key": "another key" * 9},
        {"algorithm": "none"},
        {"algorithm": "HS512"},
    ],
)
def test_a_token_that_does_not_hold_is_nobody(change: dict[str, str]) -> None:
    assert phone(token(**change)) is None


def test_alg_none_is_refused_even_when_the_caller_lists_it() -> None:
    found = identity.phone_from_jwt(
        token(algorithm="none"), key="", algorithms=["none"], issuer="https://login.example", audience="concierge"
    )
    assert found is None


@pytest.mark.parametrize("missing", [{"issuer": None}, {"issuer": ""}, {"issuer": []}, {"audience": None}])
def test_without_an_issuer_or_audience_to_check_a_token_is_nobody(missing: dict[str, Any]) -> None:
    given: dict[str, Any] = {"issuer": "https://login.example", "audience": "concierge"} | missing
    for claims in (token(), token(aud=None)):
        assert identity.phone_from_jwt(claims, key=KEY, algorithms=["HS256"], **given) is None


@pytest.mark.parametrize("signature", [None, "", "sha256=", "sha256=00", "é", sign(BODY, b"wrong"), sign(BODY + b" ")])
def test_a_webhook_whose_signature_does_not_hold_is_nobody(signature: str | None) -> None:
    assert identity.phone_from_webhook(BODY, signature, secret=SECRET, sender=sender) is None


@pytest.mark.parametrize("body", [b"", b"not json", b"[]", b"{}", b'{"from": 60123456789}', b'{"from": " "}', b"\xff"])
def test_a_body_that_names_no_sender_is_nobody_and_raises_nothing(body: bytes) -> None:
    assert identity.phone_from_webhook(body, sign(body), secret=SECRET, sender=sender) is None


def test_an_empty_secret_verifies_nothing() -> None:
    assert identity.phone_from_webhook(BODY, sign(BODY, b""), secret=b"", sender=sender) is None


def test_a_bare_number_cannot_become_a_verified_phone() -> None:
    with pytest.raises(TypeError):
        VerifiedPhone("+60123456789")
    with pytest.raises(TypeError):
        identity.subject_of("acme", phone="+60123456789")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "forge",
    [
        lambda real: dataclasses.replace(real, e164="+60199999999"),
        lambda real: VerifiedPhone("+60199999999"),
        lambda real: VerifiedPhone(e164="+60199999999", _made_by=object()),
        copy.copy,
        copy.deepcopy,
        pickle.dumps,
        lambda real: type("Fake", (VerifiedPhone,), {"e164": "+60199999999"}),
        lambda real: identity.subject_of("acme", phone=object.__new__(VerifiedPhone)),
    ],
)
def test_a_verified_phone_is_not_forged(forge: Callable[[VerifiedPhone], object]) -> None:
    real = phone(token())
    assert real is not None
    with pytest.raises(TypeError):
        forge(real)
    with pytest.raises((AttributeError, TypeError)):
        object.__setattr__(real, "e164", "+60199999999")
    assert real.e164 == "+60123456789"


def test_two_checks_of_one_number_are_equal_and_no_log_has_it() -> None:
    one, other = phone(token()), phone(token())
    assert one == other
    assert len({one, other}) == 1
    assert "6012345" not in repr(one)
    del one, other
    gc.collect()
    assert identity._checked == {}


def test_phone_then_authenticated_id_then_nobody() -> None:
    web = phone(token())
    assert identity.subject_of("acme", phone=web, authenticated_id="ana") != names.subject_of_id("acme", "ana")
    assert identity.subject_of("acme", authenticated_id="ana") == names.subject_of_id("acme", "ana")
    assert identity.subject_of("acme") is None
    assert identity.subject_of("acme", authenticated_id="") is None


@pytest.mark.parametrize("text", ["", "hello", "123", "+1", "+60123456789012345678"])
def test_what_is_no_phone_number_says_so(text: str) -> None:
    with pytest.raises(InputError):
        identity.parse_phone(text)


def test_one_number_however_written_is_one() -> None:
    written = ["+60 12-345 6789", "+60123456789", "tel:+60-12-345-6789"]
    assert {identity.parse_phone(text) for text in written} == {"+60123456789"}
    assert identity.parse_phone("012-345 6789", region="MY") == "+60123456789"


def test_the_header_shortcut_works_in_dev_mode_only() -> None:
    found = identity.phone_from_header("+60 12-345 6789", mode="dev")
    assert identity.subject_of("acme", phone=found) == names.subject_of_phone("acme", "+60123456789")
    assert identity.phone_from_header(None, mode="dev") is None
    with pytest.raises(ConfigError, match="refused in mode 'jwt'"):
        identity.phone_from_header("+60 12-345 6789", mode="jwt")
