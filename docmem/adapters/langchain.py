"""LangChain and deepagents: memory in the system message of each model call, and what was said noted afterwards.

    agent = create_agent(model, tools, middleware=[DocmemMiddleware(injector, scheduler)], checkpointer=checkpointer)
    agent.invoke({"messages": [...]}, context={"tenant": "acme", "subject": subject}, config=...)

The runtime context says whom a run is about, as a mapping or as attributes: `tenant`, `subject` (None or missing: an
anonymous thread, without memory), and if need be `agent`, `run` and `thread`. A run without a number is counted, the
thread is the checkpointer's. Whatever is wrong with these, or with memory, the agent goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import SystemMessage, convert_to_messages
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Overwrite

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
"""Runs at once whose numbers and goals are known."""

_MESSAGES = "messages"
"""The channel of an agent's state that holds them."""

_MADE = frozenset({"lc_source", "read_file_media_result"})
"""Keys of a human message's `additional_kwargs` that say that a middleware or a tool wrote it: a summary of what was
said, a skill, a grader's wish, a picture out of a file."""

_log = logging.getLogger("docmem.adapters")


@dataclass(frozen=True, slots=True)
class _Whom:
    """Whom and what a run is about, by its runtime context."""

    tenant: str
    subject: str | None
    agent: str | None
    run: int | None
    thread: str | None
    execution: tuple[object, str] | None
    """What is equal for as long as a run goes on, and to no other run's, nor to those of its sub-agents; None where the
    framework has none."""


@dataclass(frozen=True, slots=True)
class _Run:
    """A run that goes on, and all that it was known by. `goal`: what its user asked, be it summarized by now."""

    number: int | None
    goal: str | None = None
    keys: frozenset[tuple[object, ...]] = frozenset()


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
        self._runs: Cache[tuple[object, ...], _Run] = Cache(_RUNS)

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
        keys = _run_keys(whom, state.get("messages") or ())
        going = self._going(keys)
        for key in going.keys if going is not None else ():
            self._runs.discard(key)
        if whom.thread is not None:
            run = whom.run if whom.run is not None or going is None else going.number
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
        run = self._run(whom, whom.subject, request.messages)
        packet = self._adapter.packet(whom.tenant, whom.subject, run.goal, agent=whom.agent, run=run.number)
        if packet is None:
            return request
        given = request.system_message
        content = inject_system(None if given is None else given.content, packet)
        if content is None:
            return request
        message = SystemMessage(content=content) if given is None else given.model_copy(update={"content": content})
        return request.override(system_message=message)

    def _run(self, whom: _Whom, subject: str, messages: Sequence[Any]) -> _Run:
        """This run: counted at its first model call, and not again where that can't be done now."""
        keys, asked = _run_keys(whom, messages), _asked(messages)
        run = self._going(keys)
        if run is None:
            number = whom.run
            if number is None:
                number = self._adapter.next_run(whom.tenant, whom.agent, subject=subject)
            run = _Run(number)
        goal = run.goal if asked is None else _text(asked) or None
        run = replace(run, goal=goal, keys=run.keys.union(keys))
        for key in run.keys:
            self._runs.put(key, run)
        return run

    def _going(self, keys: Sequence[tuple[object, ...]]) -> _Run | None:
        return next((run for key in keys if (run := self._runs.get(key)) is not None), None)

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
            execution=_execution(runtime),
        )


def _run_keys(whom: _Whom, messages: Sequence[Any]) -> list[tuple[object, ...]]:
    """What tells a run that is going on from others: the message that it answers, in its thread, and its execution.

    One that was interrupted is resumed in another execution; and of one that is long the message may be gone, with a
    summary in its place. Without a thread nothing can be resumed, and a host may give the same message to several at
    once.
    """
    whose = whom.tenant, whom.subject, whom.agent
    asked = _asked(messages)
    where = whom.execution if whom.thread is None else whom.thread
    keys: list[tuple[object, ...]] = [] if asked is None else [(*whose, where, asked.id)]
    return keys if whom.execution is None else [*keys, (*whose, *whom.execution)]


def _execution(runtime: Any) -> tuple[object, str] | None:
    control, info = getattr(runtime, "control", None), getattr(runtime, "execution_info", None)
    # A sub-agent has its caller's control, and a place of its own below it.
    return None if control is None else (control, (getattr(info, "checkpoint_ns", None) or "").rpartition("|")[0])


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
    asked = _asked(messages)
    return None if asked is None else _text(asked) or None


def _asked(messages: Sequence[Any]) -> Any:
    """The last message that somebody wrote; None where there is none."""
    return next((message for message in reversed(messages) if message.type == "human" and not _is_made(message)), None)


def _is_made(message: Any) -> bool:
    return not _MADE.isdisjoint(getattr(message, "additional_kwargs", None) or ())


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
        """The turns after `turn`; all without one. A call of a tool says nothing, so it is no turn; nor is what a
        middleware wrote, as a summary of what was said."""
        return after(list(_turns(self._messages(thread))), turn)

    def _messages(self, thread: str) -> Sequence[Any]:
        """All that was said. What a summary took the place of stands in the checkpoint before it."""
        state = self._checkpointer.get_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": ""}})
        messages = there = self._at(state)
        while state is not None and (summary := _summary(there)) is not None:
            while state is not None and any(message.id == summary.id for message in there):
                state = self._checkpointer.get_tuple(state.parent_config) if state.parent_config else None
                there = self._at(state)
            known = {message.id for message in messages}
            messages = [*(message for message in there if message.id not in known), *messages]
        return messages

    def _at(self, state: Any) -> Sequence[Any]:
        """The messages at a checkpoint. A deep agent's holds what was written since the last that has them all."""
        if state is None or _MESSAGES not in state.checkpoint["channel_versions"]:
            return ()
        kept = state.checkpoint["channel_values"].get(_MESSAGES)
        if kept is not None:
            return _whole(kept)
        history = self._checkpointer.get_delta_channel_history(config=state.config, channels=[_MESSAGES])[_MESSAGES]
        return _written(_whole(history.get("seed")), (write for _, _, write in history["writes"]))


def _whole(kept: Any) -> Sequence[Any]:
    """Messages as a checkpoint holds them: a list, or a snapshot of one."""
    messages: Sequence[Any] = getattr(kept, "value", kept) or ()
    return messages


def _written(messages: Sequence[Any], writes: Iterable[Any]) -> Sequence[Any]:
    """What messages are after some writes: one of the same id stands where that stood."""
    by_id = {message.id: message for message in messages}
    for write in writes:
        if isinstance(write, Overwrite):
            by_id, write = {}, write.value
        for message in convert_to_messages(write if isinstance(write, list) else [write]):
            if message.type != "remove":
                by_id[message.id] = message
            elif message.id == REMOVE_ALL_MESSAGES:
                by_id.clear()
            else:
                by_id.pop(message.id, None)
    return list(by_id.values())


def _summary(messages: Sequence[Any]) -> Any:
    return next((each for each in messages if each.additional_kwargs.get("lc_source") == "summarization"), None)


def _turns(messages: Sequence[Any]) -> Iterator[Turn]:
    for message in messages:
        text = _text(message)
        if message.id and message.type in _ROLES and text.strip() and not _is_made(message):
            yield Turn(id=str(message.id), role=_ROLES[message.type], text=text, speaker=message.name)
