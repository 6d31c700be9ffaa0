"""A real fork of the process that runs the tests: the child does one thing, says what came of it, and is gone."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable
from typing import Any

from tests.support.waiting import wait_until


class Child:
    """A child at work since it was made. It never returns into the tests, and runs no exit handlers."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._out, inward = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                said: dict[str, object] = {"result": work()}
            except BaseException:  # noqa: BLE001 it belongs to the test
                said = {"failed": traceback.format_exc()}
            with os.fdopen(inward, "w") as out:
                json.dump(said, out)
            os._exit(0)
        os.close(inward)

    def result(self) -> Any:
        """What the work gave, as JSON has it; what it raised fails the test."""
        os.set_blocking(self._out, False)
        heard = b""

        def ended() -> bool:
            nonlocal heard
            try:
                piece = os.read(self._out, 65_536)
            except BlockingIOError:
                return False
            heard += piece
            return not piece

        try:
            wait_until(ended)
        except AssertionError:
            os.kill(self._pid, 9)
            raise
        finally:
            os.close(self._out)
            os.waitpid(self._pid, 0)
        said = json.loads(heard)
        assert "failed" not in said, said["failed"]
        return said["result"]
