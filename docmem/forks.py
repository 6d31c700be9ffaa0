"""What a forked child begins anew: whatever holds threads, locks or connections.

A fork keeps one of a process's threads, so queues have nobody left who works them off, and locks stay held by threads
that are gone. Connections are the parent's as well: a child that asked on one of them was given what the parent had
asked for, and so another tenant's memory.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forked(Protocol):
    """What has to begin anew in a child."""

    def after_fork(self) -> None:
        """Begin anew, in a child that has this thread alone. Waits for nothing and says nothing to anybody."""


_things: weakref.WeakSet[Forked] = weakref.WeakSet()


def anew(thing: Forked) -> None:
    """Have `thing` begin anew in each child from now on, for as long as it lives."""
    _things.add(thing)


def _after_fork() -> None:
    for thing in list(_things):
        thing.after_fork()


os.register_at_fork(after_in_child=_after_fork)
