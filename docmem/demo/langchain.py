"""Monday on the website, Tuesday in a messaging app: one person, one memory, a LangChain agent.

    python -m docmem.demo.langchain

On Monday a login's token vouches for a phone number, and an agent talks with its owner. The conversation goes quiet,
is consolidated and synced. On Tuesday a signed webhook names the same number on another channel: what was learned is in
the system message of the very first model call. A stranger's has none of it. The model is scripted, the rest is real.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field

from docmem import postgres, repository
from docmem.adapters.langchain import CheckpointedThreads, DocmemMiddleware
from docmem.config import Settings
from docmem.demo import TENANT, message_sender, web_login
from docmem.inject import PATIENCE, Injector
from docmem.jobs import JobTable
from docmem.scheduler import Scheduler, Timing, consolidating

MONDAY = ["I prefer night trains, and my budget is 800 EUR.", "Please always answer in Portuguese."]
TUESDAY = "Which trains suit me?"


class Scripted(BaseChatModel):
    """A model that says the same each time, and keeps what it was given."""

    given: list[Any] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: Any, *arguments: Any, **options: Any) -> ChatResult:
        self.given.append(messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Noted."))])


def run(settings: Settings, *, say: Callable[[str], None]) -> tuple[str, str]:
    """Play both days on a fresh root; returns Tuesday's system message and the stranger's."""
    from docmem_sync.sync import sync_tenant

    on = replace(settings, injection_enabled="on", consolidation_enabled=True, embedding_model="none")
    repository.create(on, TENANT)
    sync_tenant(on, TENANT)
    checkpointer = InMemorySaver()
    threads = CheckpointedThreads(checkpointer)
    scheduler = Scheduler(
        consolidating(on, threads, "offline"), dead_letters=JobTable(on), timing=Timing(debounce=0.0), enabled=True
    )
    with Injector(on, timeout=PATIENCE, opening=PATIENCE) as injector:
        model = Scripted()
        agent = create_agent(
            model,
            [],
            system_prompt="You are a travel agency's concierge.",
            middleware=[DocmemMiddleware(injector, scheduler, settings=on)],
            checkpointer=checkpointer,
        )

        def talk(subject: str, thread: str, text: str) -> str:
            config: Any = {"configurable": {"thread_id": thread}}
            context: Any = {"tenant": TENANT, "subject": subject}
            agent.invoke({"messages": [{"role": "user", "content": text}]}, config, context=context)
            return str(model.given[-1][0].content)

        for text in MONDAY:
            say(f"Monday, on the website: {text}")
            talk(web_login(), "web-812", text)
        say(f"the conversation goes quiet: {scheduler.run_due()} job ran")
        sync_tenant(on, TENANT)
        say(f"Tuesday, in a messaging app: {TUESDAY}")
        tuesday = talk(message_sender(), "chat-77", TUESDAY)
        say(f"the system message of the same person:\n{tuesday}")
        stranger = talk("somebody-else", "chat-78", TUESDAY)
        say(f"the system message of a stranger:\n{stranger}")
    return tuesday, stranger


def main() -> None:
    """Run it on a root and an embedded Postgres of its own, and leave nothing behind."""
    logging.basicConfig(level=logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="docmem-demo-") as folder:
        root = Path(folder)
        root.chmod(0o755)  # run by root, Postgres gets a user of its own, which has to reach its data
        settings = Settings(root=root)
        try:
            run(settings, say=print)
        finally:
            postgres.remove(settings)


if __name__ == "__main__":
    main()
