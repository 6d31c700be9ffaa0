"""Two threads of one person, a person at the files, a reviewer, a revert and an agent that saves, in any order.

Whatever comes between reading and committing: no memory is lost, doubled or written without evidence, each window is
committed once, and every file parses. The long run is evals/interleavings.py.
"""

from __future__ import annotations

from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from docmem.config import Settings
from tests.support.world import ALONE, THREADS, Step, fresh


def steps() -> st.SearchStrategy[list[Step]]:
    number = st.integers(0, 5)
    single = st.builds(Step, st.sampled_from([*ALONE, *THREADS]), number)
    window = st.builds(Step, st.sampled_from(THREADS), number, st.lists(single, max_size=2).map(tuple))
    return st.lists(window | window | single, min_size=2, max_size=7)


@hypothesis_settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(steps())
def test_in_no_order_is_a_memory_lost_doubled_or_made_up(settings: Settings, plan: list[Step]) -> None:
    world = fresh(settings)
    for step in plan:
        world.do(step)
        world.check()
