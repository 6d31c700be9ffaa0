from __future__ import annotations

import pytest

from docmem_evals.values import same_value


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("RM90,000", "90000"),
        ("Lisbon ", "lisbon"),
        ("40 000 EUR", "EUR 40,000"),
        ("1'250'000", "1250000 CHF"),
        ("2.500 Euro", "2500 euro"),
        ("1.234,50", "1,234.50"),
        ("90k", "90,000"),
        ("1200 دينار", "١٢٠٠ دينار"),
        ("每人八千元", "每人八千元"),
        ("5:45", "5:45"),
        ("2.500 Euro", "2500 EUR"),
        ("每人八千元", "8,000元"),
        ("عمّان", "عمان"),
        ("Kraków", "krakow"),
        ("-5", "-5 °C"),
        ("10 May", "may 10"),
    ],
)
def test_a_value_is_the_same_however_it_is_written(one: str, other: str) -> None:
    assert same_value(one, other)
    assert same_value(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("RM 9", "RM 10"),
        ("tea", "coffee"),
        ("2 adults", "2 children"),
        ("1.5", "15"),
        ("40,000 EUR", "40,000 USD"),
        ("90k", "90"),
        ("", "0"),
        ("5:45", "545"),
        ("3 and 4", "4 and 3"),
        ("-5", "5"),
        ("10 May", "10"),
        ("10 May", "10 June"),
        ("成都", "重庆"),
    ],
)
def test_other_values_are_others(one: str, other: str) -> None:
    assert not same_value(one, other)
    assert not same_value(other, one)
