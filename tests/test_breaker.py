from __future__ import annotations

from docmem.breaker import Breaker


def test_opens_after_failures_in_a_row_and_lets_one_try_through_each_pause() -> None:
    now = 0.0
    breaker = Breaker(failures=2, pause=5, clock=lambda: now)
    breaker.failed()
    breaker.succeeded()
    breaker.failed()
    assert breaker.allows()
    breaker.failed()
    assert breaker.open
    assert not breaker.allows()
    now = 5.0
    assert [breaker.allows(), breaker.allows()] == [True, False]
    breaker.succeeded()
    assert [breaker.allows(), breaker.allows(), breaker.open] == [True, True, False]
