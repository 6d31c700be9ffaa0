"""The one door to language models: any of litellm's, `offline` (a stand-in) and `replay:PATH` (a recording).

litellm takes seconds to import, so it is imported inside the call. Keys and base URLs are litellm's own environment
variables (`OPENAI_API_KEY`, `OPENAI_API_BASE`, …).
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NoReturn, Protocol, TypeAlias

from docmem import config
from docmem.errors import ConfigError, ModelReplyError, ModelUnavailable
from docmem.model import Spent
from docmem.patience import Patience, retry_after
from docmem.prompt import Request, repair_note, schema_note
from docmem.reply import Answer, InvalidReply, json_schema, parse

REPAIRS = 2
"""How often a reply that can't be read is sent back with the error."""

Message: TypeAlias = dict[str, str]
Schema: TypeAlias = dict[str, Any]
Mode: TypeAlias = Literal["schema", "json", "text"]
"""Structured output by a schema; JSON mode with the schema in the prompt; the schema in the prompt alone."""


class Model(Protocol):
    """Proposes what to change for a window of dialogue."""

    @property
    def name(self) -> str:
        """The name it was asked for by, for the trailers and reports."""
        ...

    def propose(self, request: Request) -> Answer:
        """Answer a request. Raises `ModelReplyError`, `ModelUnavailable`, or `ConfigError` where it can't ever."""
        ...


def chat(name: str, *, patience: Patience | None = None) -> Chat:
    """The model called `name`, any that litellm knows, for plain text."""
    return LitellmModel(name, patience or Patience())


def model(name: str, *, patience: Patience | None = None) -> Model:
    """The model called `name`: `offline`, `replay:PATH`, or any name litellm knows. Raises `InputError`."""
    if name == "offline":
        from docmem.offline import Offline

        return Offline()
    if name.startswith("replay:"):
        from docmem import replay

        return replay.load(Path(name.removeprefix("replay:")))
    return LitellmModel(name, patience or Patience())


@dataclass(frozen=True, slots=True)
class Said:
    """What a model said in plain text."""

    text: str
    spent: Spent = field(default_factory=Spent)


class Chat(Protocol):
    """Says something in plain text: what an evaluation asks to answer a question, or to judge an answer."""

    @property
    def name(self) -> str:
        """The name it was asked for by."""
        ...

    def say(self, system: str, user: str) -> Said:
        """Answer. Raises `ModelUnavailable`, or `ConfigError` where it can't ever."""
        ...


@dataclass(frozen=True)
class LitellmModel:
    """A model reached through litellm."""

    name: str
    patience: Patience = field(default_factory=Patience)
    sleep: Callable[[float], None] = time.sleep

    def propose(self, request: Request) -> Answer:
        """Ask, and ask again with the error where the reply can't be read."""
        litellm = _litellm()
        mode = _mode(litellm, self.name)
        talk: list[Message] = [
            {"role": "system", "content": request.system},
            {"role": "user", "content": request.window},
        ]
        schema = json_schema([topic.name for topic in request.agent.topics])
        spent = Spent()
        for repairs in range(REPAIRS + 1):
            try:
                completion, mode = self._complete(litellm, talk, mode, schema)
            except ModelUnavailable as error:
                error.spent = replace(spent, repairs=repairs)
                raise
            spent = _plus(spent, completion)
            text, remark = _content(completion)
            try:
                return Answer(parse(text), spent.tokens_in, spent.tokens_out, spent.cost, repairs)
            except InvalidReply as error:
                reason = f"{remark}{error}"
            talk += [
                {"role": "assistant", "content": text or "(empty)"},
                {"role": "user", "content": repair_note(reason)},
            ]
        failed = ModelReplyError(
            f"{self.name} gave no usable reply after {REPAIRS} repairs: {reason}",
            reply=text,
            hint="nothing was changed; try again, or another model (--model, DOCMEM_MODEL)",
        )
        failed.spent = replace(spent, repairs=REPAIRS)
        raise failed

    def say(self, system: str, user: str) -> Said:
        """Answer in plain text; an empty text where the model refused or said nothing."""
        talk = [_message("system", system), _message("user", user)]
        completion, _ = self._complete(_litellm(), talk, "text", None)
        return Said(_content(completion)[0], _plus(Spent(), completion))

    def _complete(self, litellm: Any, talk: list[Message], mode: Mode, schema: Schema | None) -> tuple[Any, Mode]:
        """One completion, and the mode that worked."""
        from openai import OpenAIError  # the base of all that litellm raises

        number = 0
        while True:
            number += 1
            try:
                return self._call(litellm, talk, mode, schema), mode
            except litellm.exceptions.BadRequestError as error:
                if mode == "text" or not _is_about_format(error):
                    self._refused(error)
                mode, number = ("json" if mode == "schema" else "text"), number - 1
            except litellm.exceptions.AuthenticationError as error:
                self._refused(error, hint="check the provider's API key in the environment")
            except OpenAIError as error:
                self._wait_or_give_up(error, number)

    def _call(self, litellm: Any, talk: list[Message], mode: Mode, schema: Schema | None) -> Any:
        with _quiet():
            return litellm.completion(
                model=self.name,
                messages=talk if mode == "schema" or schema is None else _with_schema(talk, schema),
                temperature=0,
                timeout=self.patience.timeout,
                max_retries=0,
                num_retries=0,
                drop_params=True,
                **_response_format(mode, schema),
            )

    def _wait_or_give_up(self, error: Any, number: int) -> None:
        status = getattr(error, "status_code", None)
        if isinstance(status, int) and status < 500 and status not in {408, 409, 425, 429}:
            self._refused(error)
        pause = self.patience.pause(number, retry_after(error))
        if pause is None:
            raise ModelUnavailable(
                f"{self.name} didn't answer in {number} tries: {_first_line(error)}",
                hint="nothing was changed; run it again later",
            ) from None
        self.sleep(pause)

    def _refused(self, error: Exception, *, hint: str = "check the model's name (--model, DOCMEM_MODEL)") -> NoReturn:
        raise ConfigError(f"{self.name} can't be used: {_first_line(error)}", hint=hint, code="model") from None


def _plus(spent: Spent, completion: Any) -> Spent:
    usage = getattr(completion, "usage", None)
    cost = (getattr(completion, "_hidden_params", None) or {}).get("response_cost")
    return Spent(
        tokens_in=spent.tokens_in + (getattr(usage, "prompt_tokens", 0) or 0),
        tokens_out=spent.tokens_out + (getattr(usage, "completion_tokens", 0) or 0),
        cost=spent.cost if cost is None else (spent.cost or 0.0) + float(cost),
    )


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def _litellm() -> Any:
    """Import litellm without its look at the network, and keep it from printing: stdout is ours."""
    config.set_default("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    with _quiet():
        import litellm
    litellm.suppress_debug_info = True
    return litellm


@contextmanager
def _quiet() -> Iterator[None]:
    # pydantic warns about litellm's own types, at import and when a provider's answer has a field more.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _mode(litellm: Any, name: str) -> Mode:
    """What the provider can do. A model that litellm's list doesn't know is tried with a schema first."""
    with _quiet():
        try:
            bare, provider, _, _ = litellm.get_llm_provider(model=name)
        except litellm.exceptions.BadRequestError as error:
            raise ConfigError(
                f"{name!r} is no model that litellm knows: {_first_line(error)}",
                hint="name it as provider/model, such as openai/gpt-4o-mini, or use offline",
                code="model",
            ) from None
        if "response_format" not in (
            litellm.get_supported_openai_params(model=bare, custom_llm_provider=provider) or ()
        ):
            return "text"
        is_listed = bare in litellm.model_cost or f"{provider}/{bare}" in litellm.model_cost
        takes_schema = litellm.supports_response_schema(model=bare, custom_llm_provider=provider)
    return "schema" if takes_schema or not is_listed else "json"


def _response_format(mode: Mode, schema: Schema | None) -> dict[str, Any]:
    if mode == "text" or schema is None:
        return {}
    if mode == "json":
        return {"response_format": {"type": "json_object"}}
    named = {"name": "memory_operations", "strict": True, "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def _with_schema(talk: list[Message], schema: Schema) -> list[Message]:
    system = {**talk[0], "content": f"{talk[0]['content']}\n\n{schema_note(schema)}"}
    return [system, *talk[1:]]


def _is_about_format(error: Exception) -> bool:
    words = str(error).lower()
    return any(word in words for word in ("response_format", "json_schema", "json_object", "schema", "structured"))


def _content(completion: Any) -> tuple[str, str]:
    """The text of a completion, and a remark on why it may be unusable."""
    choices = getattr(completion, "choices", None) or ()
    if not choices:
        return "", "the answer had no choices; "
    message = choices[0].message
    text = message.content if isinstance(message.content, str) else ""
    refusal = getattr(message, "refusal", None)
    if refusal:
        return text or str(refusal), f"the model refused ({str(refusal)[:200]}); "
    return text, "the reply was cut off at its length limit; " if choices[0].finish_reason == "length" else ""


def _first_line(error: Exception) -> str:
    line = str(error).strip().split("\n")[0]
    return line if len(line) <= 300 else line[:300] + "…"
