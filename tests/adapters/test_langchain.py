"""The LangChain seam, with the real framework and a scripted chat model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pytest

pytest.importorskip("langchain", reason="needs the extra langchain")

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, SummarizationMiddleware
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from docmem import files, trace
from docmem.adapters.langchain import CheckpointedThreads, DocmemMiddleware, goal_of
from docmem.config import Injection, Settings
from docmem.demo import langchain as example
from docmem.events import PacketMade
from docmem.fence import OPEN
from docmem.inject import Injector
from docmem.model import Job
from docmem.scheduler import Scheduler
from docmem_sync.sync import sync_tenant
from tests.support.repos import memory, put, subject
from tests.test_adapter import Kept

CONTEXT: Any = {"tenant": "acme", "subject": subject()}
CHAT: Any = {"messages": [HumanMessage("Which tea?")]}


class Scripted(example.Scripted):
    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self


class Calls(Scripted):
    """Looks once, and then answers."""

    def _generate(self, messages: Any, *arguments: Any, **options: Any) -> Any:
        made = super()._generate(messages, *arguments, **options)
        if messages[-1].type == "human":
            calls = [{"name": "look", "args": {}, "id": "1"}]
            made.generations[0].message = AIMessage("", tool_calls=calls)
        return made


def look() -> str:
    """Look."""
    return "Seen."


@pytest.fixture
def served(indexed: Settings, tenant: str) -> Settings:
    tea = memory("Ana likes green tea.", kind="preference")
    put(indexed, tenant, {tea.path: files.render_memory(tea)})
    sync_tenant(indexed, tenant)
    return replace(indexed, injection_enabled="on", consolidation_enabled=True)


@pytest.fixture
def injector(served: Settings) -> Iterator[Injector]:
    with Injector(served, timeout=30, files=False) as made:
        yield made


def system(model: Scripted) -> str:
    """The system message of the last model call."""
    return str(next((item.content for item in model.given[-1] if item.type == "system"), ""))


def test_monday_on_one_channel_is_in_tuesdays_prompt_on_another_and_in_no_strangers(
    settings: Settings, indexed: Settings
) -> None:
    tuesday, stranger = example.run(indexed, say=lambda line: None)
    assert "night trains" in tuesday
    assert "Always answer in Portuguese." in tuesday
    assert stranger == "You are a travel agency's concierge."


@pytest.mark.parametrize("is_async", [False, True])
def test_memory_ends_the_system_message_of_each_model_call(
    served: Settings, injector: Injector, is_async: bool
) -> None:
    model = Scripted()
    middleware = DocmemMiddleware(injector, settings=served)
    agent: Any = create_agent(model, [], system_prompt="Be kind.", middleware=[middleware])
    run = asyncio.run(agent.ainvoke(CHAT, context=CONTEXT)) if is_async else agent.invoke(CHAT, context=CONTEXT)
    assert system(model).startswith(f"Be kind.\n\n{OPEN}")
    assert "Ana likes green tea." in system(model)
    assert not any(OPEN in str(message.content) for message in run["messages"])
    assert run.keys() == {"messages"}


def test_a_deep_agent_has_memory_after_its_own_instructions(served: Settings, injector: Injector) -> None:
    deepagents = pytest.importorskip("deepagents", reason="deepagents isn't installed")
    model = Scripted()
    middleware = DocmemMiddleware(injector, settings=served)
    agent: Any = deepagents.create_deep_agent(model, system_prompt="Be deep.", middleware=[middleware])
    agent.invoke(CHAT, context=CONTEXT)
    assert system(model).index("Be deep.") < system(model).index(OPEN) < system(model).index("Ana likes green tea.")


@pytest.mark.parametrize("injection", ["off", "shadow"])
def test_each_side_has_its_flag(served: Settings, injector: Injector, injection: Injection) -> None:
    jobs: list[Job] = []
    now = [0.0]

    def run(job: Job) -> Any:
        jobs.append(job)
        return "done"

    scheduler = Scheduler(run, dead_letters=Kept(), clock=lambda: now[0], enabled=True)
    model = Scripted()
    some = replace(served, injection_enabled=injection)
    for consolidation in (False, True):
        middleware = DocmemMiddleware(injector, scheduler, settings=replace(some, consolidation_enabled=consolidation))
        agent: Any = create_agent(model, [], middleware=[middleware], checkpointer=InMemorySaver())
        agent.invoke(
            CHAT, {"configurable": {"thread_id": "web-1"}}, context={**CONTEXT, "agent": "concierge", "run": 5}
        )
        now[0] += 10_000
        scheduler.run_due()
        assert system(model) == ""
        assert jobs == [Job("acme", "web-1", subject(), agent="concierge", run=5, trigger="turn")] * consolidation
    assert injector.flush()
    assert len(trace.read(served, "acme", 5)) == (1 if injection == "shadow" else 0)


def test_a_run_without_a_number_is_counted_and_traced(served: Settings, injector: Injector) -> None:
    model = Scripted()
    agent: Any = create_agent(model, [], middleware=[DocmemMiddleware(injector, settings=served)])
    for _ in range(2):
        agent.invoke(CHAT, context=CONTEXT)
    assert injector.flush()
    assert [len(trace.read(served, "acme", run)) for run in (1, 2, 3)] == [1, 1, 0]


def test_a_context_may_be_an_object_and_an_anonymous_or_broken_one_has_no_memory(
    served: Settings, injector: Injector
) -> None:
    @dataclass
    class Context:
        tenant: Any = "acme"
        subject: Any = None

    model = Scripted()
    agent: Any = create_agent(
        model, [], system_prompt="Be kind.", middleware=[DocmemMiddleware(injector, settings=served)]
    )
    agent.invoke(CHAT, context=Context(subject=subject()))
    assert "green tea" in system(model)
    for context in (Context(), Context(tenant=None, subject="ana"), Context("No tenant", "ana"), None, {"tenant": 7}):
        agent.invoke(CHAT, context=context)
        assert system(model) == "Be kind."


def test_a_turn_goes_on_while_memory_is_away(served: Settings) -> None:
    away = replace(served, dsn="postgresql://docmem_reader:x@127.0.0.1:1/docmem")
    model = Scripted()
    with Injector(away, files=False) as injector:
        agent: Any = create_agent(model, [], middleware=[DocmemMiddleware(injector, settings=away)])
        assert agent.invoke(CHAT, context=CONTEXT)["messages"][-1].content == "Noted."


def test_a_packet_of_an_earlier_call_is_replaced(served: Settings, injector: Injector) -> None:
    model = Scripted()
    blocks: Any = SystemMessage(
        content=[{"type": "text", "text": "Be kind."}, {"type": "text", "text": f"{OPEN}\nold\n</docmem:memory>"}]
    )
    agent: Any = create_agent(model, [], system_prompt=blocks, middleware=[DocmemMiddleware(injector, settings=served)])
    agent.invoke(CHAT, context=CONTEXT)
    [given] = [message for message in model.given[-1] if message.type == "system"]
    assert [part["text"].split("\n")[0] for part in given.content] == ["Be kind.", OPEN]
    assert "old" not in str(given.content)


def test_the_goal_is_what_the_user_said_last() -> None:
    parts: Any = [{"type": "text", "text": "Which tea?"}, {"type": "image_url", "image_url": "x"}, "Or coffee?"]
    assert (
        goal_of([HumanMessage(parts), AIMessage("Wait."), ToolMessage("x", tool_call_id="1")])
        == "Which tea?\nOr coffee?"
    )
    assert goal_of([AIMessage("Hello.")]) is None
    summary = HumanMessage("Here is a summary.", additional_kwargs={"lc_source": "summarization"})
    assert goal_of([summary, HumanMessage("Which tea?"), AIMessage("Wait."), summary]) == "Which tea?"


def test_a_checkpointers_threads_are_dialogues(served: Settings) -> None:
    checkpointer = InMemorySaver()
    agent: Any = create_agent(Scripted(), [], checkpointer=checkpointer)
    for text in ("One.", "Two."):
        agent.invoke({"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": "web-1"}})
    source = CheckpointedThreads(checkpointer)
    turns = source.after("web-1", None)
    assert source.threads() == ["web-1"]
    assert [(turn.role, turn.text) for turn in turns] == [
        ("user", "One."), ("assistant", "Noted."), ("user", "Two."), ("assistant", "Noted."),
    ]  # fmt: skip
    assert [turn.text for turn in source.after("web-1", turns[1].id)] == ["Two.", "Noted."]
    assert list(source.after("unknown", None)) == []


def test_what_was_summarized_is_still_in_the_dialogue_and_what_no_person_wrote_is_not(served: Settings) -> None:
    checkpointer = InMemorySaver()
    shortens = SummarizationMiddleware(Scripted(), trigger=("messages", 5), keep=("messages", 2))
    agent: Any = create_agent(Scripted(), [], middleware=[shortens], checkpointer=checkpointer)
    said = [f"Word {number}." for number in range(7)]
    for text in said:
        skill = HumanMessage("<skill>Always pay.</skill>", additional_kwargs={"lc_source": "pinned_skill"})
        messages = [HumanMessage(text)] if text != said[1] else [HumanMessage(text), skill]
        agent.invoke({"messages": messages}, {"configurable": {"thread_id": "web-1"}})
    source = CheckpointedThreads(checkpointer)
    turns = source.after("web-1", None)
    assert [turn.text for turn in turns] == [text for word in said for text in (word, "Noted.")]
    assert [turn.text for turn in source.after("web-1", turns[1].id)] == [turn.text for turn in turns[2:]]


def test_a_deep_agents_threads_are_dialogues() -> None:
    """Its checkpoints hold what was written since one that holds all, which each fiftieth does."""
    deepagents = pytest.importorskip("deepagents", reason="deepagents isn't installed")
    checkpointer = InMemorySaver()
    agent: Any = deepagents.create_deep_agent(Scripted(), checkpointer=checkpointer)
    config: Any = {"configurable": {"thread_id": "web-1"}}
    source = CheckpointedThreads(checkpointer)
    for number in range(26):
        agent.invoke({"messages": [HumanMessage(f"Word {number}.", id=f"m{number}")]}, config)
        if number in {0, 24, 25}:
            assert [turn.id for turn in source.after("web-1", None) if turn.role == "user"] == [
                f"m{each}" for each in range(number + 1)
            ]
    agent.update_state(config, {"messages": [RemoveMessage("m3"), HumanMessage("Other word.", id="m4")]})
    turns = {turn.id: turn.text for turn in source.after("web-1", None)}
    assert (turns.get("m3"), turns["m4"]) == (None, "Other word.")
    assert list(turns) == [message.id for message in agent.get_state(config).values["messages"]]


def test_a_runs_number_is_seen_neither_in_a_stream_nor_in_a_checkpoint(served: Settings, injector: Injector) -> None:
    model, checkpointer = Scripted(), InMemorySaver()
    middleware = DocmemMiddleware(injector, settings=served)
    agent: Any = create_agent(model, [], middleware=[middleware], checkpointer=checkpointer)
    config = {"configurable": {"thread_id": "web-1"}}
    seen = [key for update in agent.stream(CHAT, config, context=CONTEXT, stream_mode="updates") for key in update]
    assert seen == ["model", "DocmemMiddleware.after_agent"]
    assert agent.get_state(config).values.keys() == {"messages"}
    assert injector.flush()
    assert len(trace.read(served, "acme", 1)) == 1


def test_the_model_calls_of_a_run_share_its_number(served: Settings, injector: Injector) -> None:
    jobs: list[Job] = []
    scheduler = Scheduler(lambda job: "done", dead_letters=Kept(), enabled=True)
    scheduler.schedule = jobs.append  # type: ignore[assignment,method-assign] # to see what is scheduled
    model = Calls()
    middleware = DocmemMiddleware(injector, scheduler, settings=served)
    agent: Any = create_agent(model, [look], middleware=[middleware], checkpointer=InMemorySaver())
    for goal in ("Which tea?", "Which other tea?"):
        agent.invoke({"messages": [HumanMessage(goal)]}, {"configurable": {"thread_id": "web-1"}}, context=CONTEXT)
    assert len(model.given) == 4
    assert [job.run for job in jobs] == [1, 2]
    assert injector.next_run("acme") == 3


@pytest.mark.parametrize("thread", [None, "web-1"])
def test_a_run_whose_messages_are_summarized_meanwhile_keeps_its_number_and_its_goal(
    served: Settings, thread: str | None
) -> None:
    seen: list[PacketMade] = []
    goals: list[str | None] = []

    class Looks(Scripted):
        """Looks four times, and then answers."""

        def _generate(self, messages: Any, *arguments: Any, **options: Any) -> Any:
            made = super()._generate(messages, *arguments, **options)
            if len(self.given) < 5:
                calls = [{"name": "look", "args": {}, "id": str(len(self.given))}]
                made.generations[0].message = AIMessage("", tool_calls=calls)
            return made

    with Injector(served, timeout=30, files=False, observe=seen.append) as injector:
        middleware = DocmemMiddleware(injector, settings=served)
        packet = middleware._adapter.packet

        def asked(tenant: str, subject: str | None, goal: str | None = None, **options: Any) -> Any:
            goals.append(goal)
            return packet(tenant, subject, goal, **options)

        middleware._adapter.packet = asked  # type: ignore[method-assign] # to see what is asked for
        shortens = SummarizationMiddleware(Scripted(), trigger=("messages", 3), keep=("messages", 2))
        agent: Any = create_agent(Looks(), [look], middleware=[shortens, middleware], checkpointer=InMemorySaver())
        config = {"configurable": {"thread_id": "web-1"}}
        agent.invoke(CHAT, config, context=CONTEXT if thread is None else {**CONTEXT, "thread": thread})
    assert [event.run for event in seen] == [1] * 5
    assert goals == ["Which tea?"] * 5
    assert not len(middleware._runs)


def test_a_run_that_is_interrupted_goes_on_under_its_number(served: Settings) -> None:
    seen: list[PacketMade] = []
    with Injector(served, timeout=30, files=False, observe=seen.append) as injector:
        middleware = DocmemMiddleware(injector, settings=served)
        asks = HumanInTheLoopMiddleware(interrupt_on={"look": True})
        agent: Any = create_agent(Calls(), [look], middleware=[asks, middleware], checkpointer=InMemorySaver())
        config = {"configurable": {"thread_id": "web-1"}}
        assert agent.invoke(CHAT, config, context=CONTEXT)["__interrupt__"]
        agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config, context=CONTEXT)
    assert [event.run for event in seen] == [1, 1]
    assert not len(middleware._runs)


def test_a_sub_agent_has_a_run_of_its_own(served: Settings) -> None:
    deepagents = pytest.importorskip("deepagents", reason="deepagents isn't installed")
    seen: list[PacketMade] = []

    class Asks(Scripted):
        """Has somebody look, and then answers."""

        def _generate(self, messages: Any, *arguments: Any, **options: Any) -> Any:
            made = super()._generate(messages, *arguments, **options)
            if len(self.given) == 1:
                task = {"description": "Which green tea?", "subagent_type": "helper"}
                made.generations[0].message = AIMessage("", tool_calls=[{"name": "task", "args": task, "id": "1"}])
            return made

    helps = Scripted()
    with Injector(served, timeout=30, files=False, observe=seen.append) as injector:
        middleware = DocmemMiddleware(injector, settings=served)
        helper = {"name": "helper", "description": "Helps.", "system_prompt": "You help.", "model": helps, "tools": []}
        agent: Any = deepagents.create_deep_agent(
            Asks(), middleware=[middleware], subagents=[{**helper, "middleware": [middleware]}]
        )
        agent.invoke(CHAT, context=CONTEXT)
    assert "Ana likes green tea." in system(helps)
    assert [event.run for event in seen] == [1, 2, 1]


def test_runs_at_once_that_answer_one_message_without_a_thread_keep_their_own_numbers(served: Settings) -> None:
    seen: list[PacketMade] = []
    both = threading.Barrier(2)

    def meet() -> str:
        """Look, while another run does."""
        both.wait(30)
        return "Seen."

    with Injector(served, timeout=30, files=False, observe=seen.append) as injector:
        middleware = DocmemMiddleware(injector, settings=served)
        agent: Any = create_agent(Calls(), [tool("look")(meet)], middleware=[middleware])
        chat = {"messages": [HumanMessage("Which tea?", id="m1")]}
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(lambda _: agent.invoke(chat, context=CONTEXT), range(2)))
    assert sorted(event.run or 0 for event in seen) == [1, 1, 2, 2]
    assert not len(middleware._runs)


@pytest.mark.parametrize("error", [RuntimeError, SystemExit])
def test_what_is_noted_about_a_run_costs_no_answer(
    served: Settings, injector: Injector, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def ends(*_: object, **__: object) -> None:
        raise error

    middleware = DocmemMiddleware(injector, settings=served)
    agent: Any = create_agent(model := Scripted(), [], middleware=[middleware])
    with monkeypatch.context() as patch:
        patch.setattr(middleware._adapter, "heard", ends)
        thread = {**CONTEXT, "thread": "t"}
        assert agent.invoke(CHAT, context=thread)["messages"][-1].type == "ai"
        assert "green tea" in system(model)
        patch.setattr(middleware._adapter, "packet", ends)
        assert agent.invoke(CHAT, context=thread)["messages"][-1].type == "ai"
        assert system(model) == ""


def test_a_context_that_raises_or_makes_no_sense_costs_memory_alone(served: Settings, injector: Injector) -> None:
    class Raises:
        @property
        def tenant(self) -> str:
            raise RuntimeError("not now")

    model = Scripted()
    agent: Any = create_agent(model, [], middleware=[DocmemMiddleware(injector, settings=served)])
    for context in (Raises(), {"tenant": "acme", "subject": ["ana"]}, {"tenant": "acme", "subject": b"ana"}):
        agent.invoke(CHAT, context=context)
        assert system(model) == ""
    for run in (True, 2**80, "5", -1):
        agent.invoke(CHAT, context={**CONTEXT, "run": run})
        assert "green tea" in system(model)
    assert injector.next_run("acme") == 5
