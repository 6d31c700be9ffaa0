"""Personal data is told by kind, and by each kind the policy says what becomes of it."""

from __future__ import annotations

import pytest

from docmem import pii

PERSONAL = [
    ("The user's email is jane.doe+trips@example.co.uk.", "email", "jane.doe+trips@example.co.uk"),
    ("Reach them at +60 12-345 6789.", "phone", "+60 12-345 6789"),
    ("The user's mobile number is 012-345 6789.", "phone", "012-345 6789"),
    ("WhatsApp: 0171 2345678", "phone", "0171 2345678"),
    ("The refund goes to DE89 3704 0044 0532 0130 00.", "bank_account", "DE89 3704 0044 0532 0130 00"),
    ("The user lives at 12 Baker Street in London.", "address", "12 Baker Street"),
    ("Die Person wohnt in der Musterstraße 12.", "address", "Musterstraße 12"),
    ("The user lives at 27 Jalan Ampang.", "address", "27 Jalan Ampang"),
    ("La personne habite 12 rue de la Paix.", "address", "12 rue de la Paix"),
    ("Vive en Calle Mayor 12.", "address", "Calle Mayor 12"),
    ("The user's NRIC is 880505-14-5678.", "national_id", "880505-14-5678"),
    ("NRIC S1234567D", "national_id", "S1234567D"),
    ("The user's SSN is 536-22-1234.", "national_id", "536-22-1234"),
    ("O CPF é 390.533.447-05.", "national_id", "390.533.447-05"),
    ("Il codice fiscale è RSSMRA85T10A562S.", "national_id", "RSSMRA85T10A562S"),
    ("El DNI es 12345678Z.", "national_id", "12345678Z"),
    ("PESEL 44051401359", "national_id", "44051401359"),
    ("The user's Aadhaar is 2341 2341 2346.", "national_id", "2341 2341 2346"),
    ("National insurance number AB 12 34 56 C", "national_id", "AB 12 34 56 C"),
]
ORDINARY = [
    "The order 123456789 arrived on 2026-05-02 at 10:30.",
    "The budget is RM 12,000 for 2 adults and 3 nights.",
    "The booking 390-533-447 is confirmed.",
    "The invoice is INV-2026-004417.",
    "The user's NRIC was renewed in 2024.",
    "The user's social security number is 536-22-12.",
    "The PESEL 44051401358 has a wrong check digit.",
    "Room 12 in the main building.",
    "The user walked 12345678901 steps.",
    "The user follows @jane on Mastodon.",
    "The user takes the 5 o'clock train to Wall Street stories.",
]


@pytest.mark.parametrize(("text", "kind", "value"), PERSONAL)
def test_personal_data_is_found_by_kind(text: str, kind: pii.Kind, value: str) -> None:
    assert [(each.kind, text[each.start : each.end]) for each in pii.found(text)] == [(kind, value)]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_numbers_and_names_are_none(text: str) -> None:
    assert pii.found(text) == []


def test_the_strictest_action_counts() -> None:
    text = "jane@example.com lives at 12 Baker Street, S1234567D."
    assert pii.strictest(text, {"email": "redact", "address": "hold", "national_id": "reject"}) == "reject"
    assert pii.strictest(text, {"email": "redact", "address": "hold"}) == "hold"
    assert pii.strictest(text, {"email": "redact"}) == "redact"
    assert pii.strictest(text, {}) == "allow"


def test_what_is_taken_out_leaves_its_kind() -> None:
    text = "Mail jane@example.com, NRIC 880505-14-5678, phone +60 12-345 6789."
    kept = pii.redacted(text, {"email": "redact", "national_id": "redact", "phone": "allow"})
    assert kept == "Mail [email], NRIC [national id], phone +60 12-345 6789."


def test_a_policy_that_names_countries_looks_for_theirs_alone() -> None:
    text = "NRIC S1234567D and DNI 12345678Z"
    found = [text[each.start : each.end] for each in pii.found(text, countries=["es"])]
    assert found == ["12345678Z"]


def test_an_account_number_is_no_phone_number() -> None:
    assert pii.strictest("DE89 3704 0044 0532 0130 00", {"phone": "reject"}) == "allow"
