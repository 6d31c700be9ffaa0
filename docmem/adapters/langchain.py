"""LangChain and deepagents: memory in the system message of each model call, and what was said noted afterwards.

    agent = create_agent(model, tools, middleware=[DocmemMiddleware(injector, scheduler)], checkpointer=checkpointer)
    agent.invoke({"messages": [...]}, context={"tenant": "acme", "subject": subject}, config=...)

The runtime context says whom a run is about, as a mapping or as attributes: `tenant`, `subject` (None or missing: an
anonymous thread, without memory), and if need be `agent`, `run` and `thread`. A run without a number is counted, the
thread is the checkpointer's. Whatever is wrong with these, or with memory, the agent goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import SystemMessage

from docmem.adapter import Adapter
from docmem.dialogue import after
from docmem.messages import inject_system
from docmem.model import Job, Role, Turn

if TYPE_CHECKING:
    from docmem.config import Settings
    from docmem.inject import Injector
    from docmem.scheduler import Scheduler

_ROLES: Mapping[str, Role] = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}
_log = logging.getLogger("docmem.adapters")


class DocmemState(AgentState[Any]):
    """An agent's state with the number of its run, which no caller sees."""

    docmem_run: NotRequired[Annotated[int | None, PrivateStateAttr]]


@dataclass(frozen=True, slots=True)
class _Whom:
    """Whom and what a run is about, by its runtime context."""

    tenant: str
    subject: str | None
    agent: str | None
    run: int | None
    thread: str | None


class DocmemMiddleware(AgentMiddleware[DocmemState, Any, Any]):
    """Memory for `create_agent` and `create_deep_agent`: one for a process, as `Injector` and `Scheduler` are.

    `DOCMEM_INJECTION_ENABLED` switches what is added to the system message, `DOCMEM_CONSOLIDATION_ENABLED` whether a
    run is noted for consolidation; one that is None is as good as switched off. `agent`: the name that this agent has
    in `docmem.yaml`, where the context names none.
    """

    state_schema = DocmemState

    def __init__(
        self,
        injector: Injector | None = None,
        scheduler: Scheduler | None = None,
        *,
        agent: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        super().__init__()
        self.tools = []
        self._adapter = Adapter(injector, scheduler, settings=settings)
        self._agent = agent

    def before_agent(self, state: DocmemState, runtime: Any) -> dict[str, Any] | None:
        """Give the run a number, where the context has none."""
        whom = self._whom(runtime)
        if whom is None or whom.subject is None or whom.run is not None:
            return None
        return {"docmem_run": self._adapter.next_run(whom.tenant, whom.agent)}

    async def abefore_agent(self, state: DocmemState, runtime: Any) -> dict[str, Any] | None:
        """`before_agent`, in a thread."""
        return await asyncio.to_thread(self.before_agent, state, runtime)

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Add what is remembered to the system message of a model call."""
        return handler(self._with_memory(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`wrap_model_call`; memory is read in a thread."""
        return await handler(await asyncio.to_thread(self._with_memory, request))

    def after_agent(self, state: DocmemState, runtime: Any) -> dict[str, Any] | None:
        """Note that something was said, so that it is consolidated once the conversation goes quiet."""
        whom = self._whom(runtime)
        if whom is not None and whom.subject is not None and whom.thread is not None:
            run = whom.run if whom.run is not None else state.get("docmem_run")
            agent = whom.agent or "default"
            self._adapter.heard(Job(whom.tenant, whom.thread, whom.subject, agent=agent, run=run, trigger="turn"))
        return None

    async def aafter_agent(self, state: DocmemState, runtime: Any) -> dict[str, Any] | None:
        """`after_agent`: it only puts a job into a queue."""
        return self.after_agent(state, runtime)

    def _with_memory(self, request: Any) -> Any:
        whom = self._whom(request.runtime)
        if whom is None:
            return request
        run = whom.run if whom.run is not None else request.state.get("docmem_run")
        packet = self._adapter.packet(whom.tenant, whom.subject, goal_of(request.messages), agent=whom.agent, run=run)
        if packet is None:
            return request
        given = request.system_message
        content = inject_system(None if given is None else given.content, packet)
        if content is None:
            return request
        message = SystemMessage(content=content) if given is None else given.model_copy(update={"content": content})
        return request.override(system_message=message)

    def _whom(self, runtime: Any) -> _Whom | None:
        context = getattr(runtime, "context", None)
        tenant = _get(context, "tenant")
        if not isinstance(tenant, str):
            _log.warning("a run has no memory: its runtime context names no tenant")
            return None
        subject, agent, run = (_get(context, key) for key in ("subject", "agent", "run"))
        thread = _get(context, "thread") or getattr(getattr(runtime, "execution_info", None), "thread_id", None)
        return _Whom(
            tenant=tenant,
            subject=None if subject is None else str(subject),
            agent=str(agent) if agent else self._agent,
            run=run if isinstance(run, int) else None,
            thread=None if thread is None else str(thread),
        )


def _get(context: Any, key: str) -> Any:
    return context.get(key) if isinstance(context, Mapping) else getattr(context, key, None)


def goal_of(messages: Sequence[Any]) -> str | None:
    """What a turn is about: the text of the last message of the user."""
    for message in reversed(messages):
        if message.type == "human":
            return _text(message) or None
    return None


def _text(message: Any) -> str:
    content = message.content
    if isinstance(content, str):
        return content
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
    return "\n".join(text for text in texts if isinstance(text, str))


class CheckpointedThreads:
    """Conversations as a LangGraph checkpointer keeps them: a `DialogueSource` for `scheduler.consolidating`."""

    def __init__(self, checkpointer: Any) -> None:
        self._checkpointer = checkpointer

    def threads(self) -> Sequence[str]:
        """All threads of the checkpointer, sorted."""
        return sorted({item.config["configurable"]["thread_id"] for item in self._checkpointer.list(None)})

    def after(self, thread: str, turn: str | None) -> Sequence[Turn]:
        """The turns after `turn`; all without one. A call of a tool says nothing, so it is no turn."""
        found = self._checkpointer.get_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": ""}})
        messages = found.checkpoint["channel_values"].get("messages", ()) if found is not None else ()
        return after(list(_turns(messages)), turn)


def _turns(messages: Sequence[Any]) -> Iterator[Turn]:
    for message in messages:
        text = _text(message)
        if message.id and message.type in _ROLES and text.strip():
            yield Turn(id=str(message.id), role=_ROLES[message.type], text=text, speaker=message.name)
