"""Memory around an agent's turn, behind two flags: what a host calls that has no framework, and what adapters stand on.

`DOCMEM_INJECTION_ENABLED` and `DOCMEM_CONSOLIDATION_ENABLED` are independent and off by default, so that installing
docmem changes nothing. They gate this and `Scheduler.schedule`; commands and the library's own calls do what they say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from docmem import config
from docmem.config import Settings
from docmem.inject import Injector
from docmem.messages import Style, inject_messages
from docmem.model import Job
from docmem.scheduler import Scheduler


class Adapter:
    """One for a process. `injector` and `scheduler` are the host's; one that is None is as good as switched off."""

    def __init__(
        self, injector: Injector | None = None, scheduler: Scheduler | None = None, *, settings: Settings | None = None
    ) -> None:
        chosen = settings or config.settings()
        self._injection = chosen.injection_enabled if injector is not None else "off"
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
        Without a subject (an anonymous thread) there is no memory.
        """
        if self._injector is None or self._injection == "off" or subject is None:
            return list(messages)
        packet = self._injector.packet(tenant, subject, goal, agent=agent, run=run)
        return inject_messages(messages, packet, style=style) if self._injection == "on" else list(messages)

    def heard(self, job: Job) -> None:
        """A turn of this thread came in: consolidate it once the conversation goes quiet. Returns at once."""
        if self._scheduler is not None:
            self._scheduler.schedule(job)
