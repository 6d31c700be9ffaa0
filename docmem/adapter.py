"""Memory around an agent's turn, behind two flags: what a host calls that has no framework, and what adapters stand on.

`DOCMEM_INJECTION_ENABLED` and `DOCMEM_CONSOLIDATION_ENABLED` are independent and off by default, so that installing
docmem changes nothing. They gate this and `Scheduler.schedule`; commands and the library's own calls do what they say.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from docmem import config
from docmem.config import Settings
from docmem.errors import InvalidName
from docmem.inject import Injector
from docmem.messages import Style, inject_messages
from docmem.model import Job
from docmem.names import in_cohort, subject_key
from docmem.packet import Packet
from docmem.scheduler import Scheduler

T = TypeVar("T")

_log = logging.getLogger("docmem.adapters")


class Adapter:
    """One for a process. `injector` and `scheduler` are the host's; one that is None is as good as switched off."""

    def __init__(
        self, injector: Injector | None = None, scheduler: Scheduler | None = None, *, settings: Settings | None = None
    ) -> None:
        chosen = settings or config.settings()
        self._injection = chosen.injection_enabled if injector is not None else "off"
        self._cohort = chosen.injection_cohort
        self._injector = injector
        self._scheduler = scheduler if chosen.consolidation_enabled else None

    def messages(
        self,
        messages: Sequence[Any],
        *,
        tenant: str,
        subject: str | None,
        goal: str | None = None,
        agent: str | None = None,
        run: int | None = None,
        style: Style | None = None,
    ) -> list[Any]:
        """The messages of a model call with the person's memory in them, as a new list. Never raises.

        `off`: as they are. `shadow`: a packet is built and logged as counts, and the messages stay as they are.
        Without a subject (an anonymous thread) there is no memory. What is no list is none.
        """
        try:
            packet = self.packet(tenant, subject, goal, agent=agent, run=run)
            return list(messages) if packet is None else inject_messages(messages, packet, style=style)
        except Exception as error:  # noqa: BLE001 the turn goes on, whatever its messages are
            _log.error("memory can't be put into messages: %s", type(error).__name__)
            return list(messages) if isinstance(messages, Iterable) else []

    def packet(
        self,
        tenant: str,
        subject: str | None,
        goal: str | None = None,
        *,
        agent: str | None = None,
        run: int | None = None,
    ) -> Packet | None:
        """The packet to add to a prompt, None where the flag adds none. Never raises.

        A subject outside of the cohort is as if the flag were off.
        """
        if self._injector is None or self._injection == "off" or subject is None or not self._is_in(tenant, subject):
            return None
        is_on = self._injection == "on"
        packet = self._injector.packet(tenant, subject, goal, agent=agent, run=run, consumed=is_on)
        return packet if is_on else None

    def next_run(self, tenant: str, agent: str | None = None, *, subject: str | None = None) -> int | None:
        """Count a run of an agent where packets are made; see `Injector.next_run`. Never raises.

        For a `subject` outside of the cohort none are made.
        """
        if self._injector is None or self._injection == "off":
            return None
        if self._cohort <= 0 or (subject is not None and not self._is_in(tenant, subject)):
            return None
        return self._injector.next_run(tenant, agent)

    async def aside(self, work: Callable[[], T]) -> T:
        """What `work` gives, which calls this: in a thread of the injector's, where packets are made."""
        if self._injector is None or self._injection == "off":
            return work()
        return await self._injector.aside(work)

    def _is_in(self, tenant: str, subject: str) -> bool:
        if self._cohort >= 1:
            return True  # a name that can't be is the injector's to report
        try:
            return in_cohort(tenant, subject_key(tenant, subject), self._cohort)
        except InvalidName:
            return self._cohort > 0

    def heard(self, job: Job) -> None:
        """A turn of this thread came in: consolidate it once the conversation goes quiet. Returns at once."""
        if self._scheduler is not None:
            self._scheduler.schedule(job)
