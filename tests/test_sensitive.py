from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from docmem import sensitive

DATA = Path(__file__).parent / "data"
# In the file a `|` breaks each secret up, so that no scanner of repos takes it for a leak.
SECRETS = [
    pytest.param(text.replace("|", "").replace("\\n", "\n"), id=kind)
    for kind, text in (line.split("\t") for line in (DATA / "secrets.txt").read_text("utf-8").splitlines())
]


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


@pytest.mark.parametrize("text", SECRETS)
def test_secrets_of_many_kinds_are_found_and_removed(text: str) -> None:
    assert sensitive.secrets(text)
    assert not sensitive.secrets(sensitive.redacted(text))


@pytest.mark.parametrize("text", (DATA / "no_secrets.txt").read_text("utf-8").splitlines())
def test_what_only_looks_like_a_secret_is_left_alone(text: str) -> None:
    assert sensitive.secrets(text) == []
    assert sensitive.card_numbers(text) == []


@pytest.mark.parametrize("text", (DATA / "passwords.txt").read_text("utf-8").splitlines())
def test_a_password_is_found_however_it_is_written(text: str) -> None:
    # In the file the secret stands between braces.
    secret, plain = text[text.index("{") + 1 : text.index("}")], text.replace("{", "").replace("}", "")
    assert sensitive.secrets(plain)
    assert secret not in sensitive.redacted(plain)


NUMBERS = ["4111111111111111", "5555555555554444", "378282246310005", "6011111111111117", "3530111333300000"]
SEPARATORS = [" ", "-", ".", "/", "–", "—", "_", "\n", "\u00a0", "\u2009", "\u200b", "·", "*", ":", " - ", ", ", "\t"]


@pytest.mark.parametrize("sign", SEPARATORS)
@pytest.mark.parametrize("number", NUMBERS)
def test_a_card_number_is_found_whatever_stands_between_its_groups(number: str, sign: str) -> None:
    sizes = [4, 6, 5] if len(number) == 15 else [4, 4, 4, 4]
    ends = [sum(sizes[:at]) for at in range(len(sizes) + 1)]
    written = sign.join(number[start:end] for start, end in itertools.pairwise(ends))
    for text in (written, f"card {written} thanks", f"card{written}exp 12/27", f"({written})."):
        assert sensitive.card_numbers(text) == [written]
        assert not any(map(str.isdigit, sensitive.redacted(text).replace("12/27", "")))


@pytest.mark.parametrize(
    "text",
    [
        "card4111111111111111",
        "visa_4111111111111111_exp",
        "４１１１１１１１１１１１１１１１",
        "٤١١١١١١١١١١١١١١١",
        "४१११११११११११११११",
        "4111 1111 1111 1111 12/27 123",
        "4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
        "ref 12, 4111-1111-1111-1111",
    ],
)
def test_a_card_number_is_found_in_other_digits_and_among_others(text: str) -> None:
    assert len(sensitive.card_numbers(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "4111.1111.1111.1112",
        "ticket4111111111111112",
        "x1234567890123452",  # it passes the check sum, and no card begins so
        "+4111111111111111 rang",
        "24.05.2026-30.06.2026",
        "550e8400-e29b-41d4-a716-446655440000",
        "²³⁴⁵⁶⁷⁸⁹¹²³⁴⁵",
    ],
)
def test_what_is_no_card_number_is_left_alone(text: str) -> None:
    assert not sensitive.card_numbers(text)


WORDS = "witch collapse practice feed shame open despair creek road again ice least"


@pytest.mark.parametrize(
    "text",
    [
        f"The recovery phrase is {WORDS}.",
        f"My wallet's recovery phrase is: {WORDS} {WORDS}",
        f"seed phrase = {WORDS}",
        f"The seed is '{WORDS}'",
        "My 12 words are " + ", ".join(WORDS.split()),
        "Recovery words: " + " ".join(f"{at}. {word}" for at, word in enumerate(WORDS.split(), start=1)),
        f"Die Wiederherstellungsphrase lautet {WORDS}",
        f"La frase de recuperación es {WORDS}",
        f"助记词是 {WORDS}",
        f"{WORDS} is my seed phrase",
    ],
)
def test_a_recovery_phrase_is_a_secret(text: str) -> None:
    assert sensitive.secrets(text) == ["recovery phrase"]
    assert not set(WORDS.split()) & set(sensitive.redacted(text).split())


@pytest.mark.parametrize(
    "text",
    [
        "The recovery phrase is written on paper and kept in the safe at home with his sister Ana in Rome.",
        "The seed is best sown in early spring when nights stay above ten degrees and soil feels warm.",
        "The recovery phrase is lost.",
        "IMEI 356938035643809",
        "The phone's IMEI is 490154203237518.",
        "867530901234565",
        "Order 1234567890123452 arrived.",
    ],
)
def test_neither_an_imei_nor_talk_of_a_phrase_is_a_secret(text: str) -> None:
    assert sensitive.secrets(text) == []
    assert sensitive.card_numbers(text) == []


@pytest.mark.parametrize(
    "part",
    ["4 ", "4111 ", "pin ", "login: a / ", "pass a ", "password is a ", "password: a ", "seed is able ", "able ", "ˇ"],
)
def test_a_huge_text_is_searched_in_time(part: str) -> None:
    text = part * (100_000 // len(part)) + "\n4111.1111.1111.1111"
    assert len(sensitive.card_numbers(text)) == 1
    assert isinstance(sensitive.secrets(text), list)


def test_only_a_text_with_something_like_a_token_loads_the_detectors() -> None:
    loaded = "print(json.dumps([sensitive.secrets(text) is None, 'detect_secrets' in sys.modules]))"
    for text, expected in (("The user prefers night trains.", False), ("glpat-" + "a1B2c3D4e5F6g7H8i9J0", True)):
        program = f"import json, sys; from docmem import sensitive; text = {text!r}; {loaded}"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert json.loads(done.stdout) == [False, expected]


@pytest.mark.parametrize("part", ["token", "://:", "sk-", "password is the ", "a1", "-----BEGIN PRIVATE KEY-----"])
def test_a_long_hostile_text_is_read_to_its_end(part: str) -> None:
    text = part * (40_000 // len(part)) + " hf_" + "a1B2c3" * 6
    assert "Hugging Face token" in sensitive.secrets(text)
