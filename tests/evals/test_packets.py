"""The short form of evals/packets.py."""

from __future__ import annotations

import packets
from docmem.config import Settings


def test_every_packet_is_exact_its_own_and_within_its_budget(indexed: Settings) -> None:
    done = packets.run(indexed, packets=150, seed=7, tenants=4, subjects=3, memories=25)
    assert done.faults == ()
    assert done.spans > 500
    assert done.scrubbed > 0
