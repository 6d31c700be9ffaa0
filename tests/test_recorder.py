from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from docmem.errors import ServerUnavailable
from docmem.index import Ask, IndexFailed
from docmem.packet import Packet, Span
from docmem.recorder import Given, Recorder, given_now

PACKET = Packet("- Tea.", spans=(Span(2, 6, "7f3a", "m.md", "abc"),))


def given(run: Any) -> Given:
    return given_now("acme", "s", "default", run, PACKET, consumed=True)


class Written:
    """Takes what is written, and refuses some runs as the index would."""

    def __init__(self, *refused: int) -> None:
        self.refused = refused
        self.runs: set[int] = set()

    def __call__(self, tenant: str, asks: Sequence[Ask]) -> None:
        runs = {row["run"] for row in json.loads(asks[0].values["rows"])}
        if runs & set(self.refused):
            raise IndexFailed("refused")
        self.runs |= runs


def test_what_cant_be_written_is_counted_and_ends_neither_its_batch_nor_what_comes_after() -> None:
    written = Written(5)
    recorder = Recorder(written)
    for run in (1, "2", 3, {4}, 5, 6):
        recorder.put(given(run))
    assert recorder.flush(seconds=30)
    assert (written.runs, recorder.lost) == ({1, "2", 3, 6}, 2)
    recorder.put(given(7))
    assert recorder.flush(seconds=30)
    assert (7 in written.runs, recorder.lost) == (True, 2)
    recorder.close()


def test_what_a_server_away_took_too_long_for_is_lost_and_counted() -> None:
    def away(tenant: str, asks: Sequence[Ask]) -> None:
        raise ServerUnavailable("away")

    recorder = Recorder(away)
    recorder.put(given(1))
    recorder.close(seconds=30)
    assert recorder.flush(seconds=30)
    assert recorder.lost == 1
    recorder.put(given(2))
    assert recorder.lost == 2
