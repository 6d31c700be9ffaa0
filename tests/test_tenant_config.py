"""`docmem.yaml` says what may be kept; what it says wrongly is named, with its line."""

from __future__ import annotations

import pytest

from docmem.errors import FormatError
from docmem.repository import template
from docmem.tenant_config import Policies, parse_config


def test_the_template_spells_the_defaults_out() -> None:
    assert parse_config(template()["docmem.yaml"]).policies == Policies()


def test_a_policy_on_personal_data_is_read_by_kind() -> None:
    config = parse_config(b"format: 1\npolicies:\n  pii: {email: redact, national_id: reject, countries: [MY, sg]}\n")
    pii = config.policies.pii
    assert (pii.email, pii.phone, pii.national_id, pii.countries) == ("redact", "hold", "reject", ("my", "sg"))


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("  pii: {email: perhaps}", "policies.pii.email"),
        ("  pii: {e-mail: redact}", "policies.pii.e-mail"),
        ("  pii: {countries: [xx]}", "policies.pii.countries"),
        ("  admission: {window_turns: 0}", "policies.admission.window_turns"),
        ("  admission: {duplicate_cosine: 1.5}", "policies.admission.duplicate_cosine"),
        ("  admission: {window: 3}", "policies.admission.window: no such key is known here"),
        ("  budgets: {fact: 3}", "policies.budgets.fact: no such key is known here"),
        ("  weights: {half_life_days: 0}", "policies.weights.half_life_days"),
    ],
)
def test_a_policy_that_cannot_be_is_named_with_its_line(line: str, names: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_config(f"format: 1\npolicies:\n{line}\n".encode())
    assert names in caught.value.message
    assert caught.value.line == 3
