"""LangChain and deepagents: memory in the system message of each model call, and what was said noted afterwards.

    agent = create_agent(model, tools, middleware=[DocmemMiddleware(injector, scheduler)], checkpointer=checkpointer)
    agent.invoke({"messages": [...]}, context={"tenant": "acme", "subject": subject}, config=...)

The runtime context says whom a run is about, as a mapping or as attributes: `tenant`, `subject` (None or missing: an
anonymous thread, without memory), and if need be `agent`, `run` and `thread`. A run without a number is counted, the
thread is the checkpointer's. Whatever is wrong with these, or with memory, the agent goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import SystemMessage

from docmem.adapter import Adapter
from docmem.assembly import run_number
from docmem.cache import Cache
from docmem.dialogue import after
from docmem.errors import InputError
from docmem.messages import inject_system
from docmem.model import Job, Role, Turn

if TYPE_CHECKING:
    from docmem.config import Settings
    from docmem.inject import Injector
    from docmem.scheduler import Scheduler

_ROLES: Mapping[str, Role] = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}
_RUNS = 4_096
"""Runs at once whose numbers are known."""

_log = logging.getLogger("docmem.adapters")


@dataclass(frozen=True, slots=True)
class _Whom:
    """Whom and what a run is about, by its runtime context."""

    tenant: str
    subject: str | None
    agent: str | None
    run: int | None
    thread: str | None
    execution: object
    """What is the same object for as long as a run goes on, and no other run's; None where the framework has none."""


class DocmemMiddleware(AgentMiddleware[Any, Any, Any]):
    """Memory for `create_agent` and `create_deep_agent`: one for a process, as `Injector` and `Scheduler` are.

    `DOCMEM_INJECTION_ENABLED` switches what is added to the system message, `DOCMEM_CONSOLIDATION_ENABLED` whether a
    run is noted for consolidation; one that is None is as good as switched off. `agent`: the name that this agent has
    in `docmem.yaml`, where the context names none.
    """

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
        # Not in the agent's state, where a caller's stream and each checkpoint would show it.
        self._runs: Cache[tuple[object, ...], tuple[int | None]] = Cache(_RUNS)

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Add what is remembered to the system message of a model call."""
        return handler(self._with_memory(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`wrap_model_call`; memory is read in a thread of the injector's."""
        return await handler(await self._adapter.aside(lambda: self._with_memory(request)))

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Note that something was said, so that it is consolidated once the conversation goes quiet."""
        try:
            self._note(self._whom(runtime), state)
        except (Exception, SystemExit) as error:  # noqa: BLE001 what was answered isn't lost to what is noted about it
            _log.error("a run is not consolidated: %s", type(error).__name__)
        return None

    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """`after_agent`: it only puts a job into a queue."""
        return self.after_agent(state, runtime)

    def _note(self, whom: _Whom | None, state: Any) -> None:
        if whom is None or whom.subject is None:
            return
        key = _run_key(whom, state.get("messages") or ())
        counted = self._runs.get(key) or (None,)
        self._runs.discard(key)
        if whom.thread is not None:
            run = whom.run if whom.run is not None else counted[0]
            agent = whom.agent or "default"
            self._adapter.heard(Job(whom.tenant, whom.thread, whom.subject, agent=agent, run=run, trigger="turn"))

    def _with_memory(self, request: Any) -> Any:
        try:
            return self._remembering(request)
        except (Exception, SystemExit) as error:  # noqa: BLE001 the turn goes on, whatever its messages are
            _log.error("a model call goes without memory: %s", type(error).__name__)
            return request

    def _remembering(self, request: Any) -> Any:
        whom = self._whom(request.runtime)
        if whom is None or whom.subject is None:
            return request
        run = whom.run if whom.run is not None else self._counted(whom, whom.subject, request.messages)
        packet = self._adapter.packet(whom.tenant, whom.subject, goal_of(request.messages), agent=whom.agent, run=run)
        if packet is None:
            return request
        given = request.system_message
        content = inject_system(None if given is None else given.content, packet)
        if content is None:
            return request
        message = SystemMessage(content=content) if given is None else given.model_copy(update={"content": content})
        return request.override(system_message=message)

    def _counted(self, whom: _Whom, subject: str, messages: Sequence[Any]) -> int | None:
        """The number of this run; counted at its first model call, and not again where that can't be done now."""
        key = _run_key(whom, messages)
        known = self._runs.get(key)
        if known is None:
            known = (self._adapter.next_run(whom.tenant, whom.agent, subject=subject),)
            self._runs.put(key, known)
        return known[0]

    def _whom(self, runtime: Any) -> _Whom | None:
        try:
            return self._read(runtime)
        except (Exception, SystemExit) as error:  # noqa: BLE001 a context is the host's, and its properties may do anything
            _log.warning("a run has no memory: its runtime context raises %s", type(error).__name__)
            return None

    def _read(self, runtime: Any) -> _Whom | None:
        context = getattr(runtime, "context", None)
        tenant = _get(context, "tenant")
        if not isinstance(tenant, str):
            _log.warning("a run has no memory: its runtime context names no tenant")
            return None
        subject, agent, run = (_get(context, key) for key in ("subject", "agent", "run"))
        if not isinstance(subject, str | int | None) or isinstance(subject, bool):
            _log.warning("a run has no memory: its subject is no text but %s", type(subject).__name__)
            return None
        thread = _get(context, "thread") or getattr(getattr(runtime, "execution_info", None), "thread_id", None)
        return _Whom(
            tenant=tenant,
            subject=None if subject is None else str(subject),
            agent=str(agent) if agent else self._agent,
            run=_number(run),
            thread=None if thread is None else str(thread),
            execution=getattr(runtime, "control", None),
        )


def _run_key(whom: _Whom, messages: Sequence[Any]) -> tuple[object, ...]:
    """What tells a run that is going on from others: the message that it answers, in its thread.

    Without a thread nothing can be interrupted and resumed, and a host may give the same message to several at once.
    """
    where = whom.execution if whom.thread is None else whom.thread
    asked = next((message for message in reversed(messages) if message.type == "human"), None)
    return whom.tenant, whom.subject, whom.agent, where, getattr(asked, "id", None)


def _number(run: Any) -> int | None:
    if run is None:
        return None
    try:
        return run_number(run)
    except InputError as error:
        _log.warning("a run is counted anew: %s", error.message)
        return None


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
