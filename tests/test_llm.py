"""litellm over real HTTP against a server on loopback: structured output, repairs, retries, and giving up."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from docmem import llm
from docmem.errors import ConfigError, ModelReplyError, ModelUnavailable
from docmem.llm import LitellmModel
from docmem.model import Profile, Spent, Turn
from docmem.patience import Patience
from docmem.prompt import Request
from docmem.reply import json_schema
from docmem.tenant_config import Agent, Topic
from tests.support.model_server import BreaksOff, Fails, Hangs, ModelServer, Raw, Says, Scripted

REPLY: dict[str, Any] = {
    "operations": [],
    "profile": {"preferred_language": "Malay", "locale": None, "lifecycle_stage": None, "attributes": []},
}
GOOD = Says(json.dumps(REPLY))
AGENT = Agent(topics=(Topic(name="trips"), Topic(name="wishes")))
REQUEST = Request("web-1", [Turn("t1", "user", "Hello")], AGENT, {}, Profile("s"))


@contextmanager
def serving(monkeypatch: pytest.MonkeyPatch, *script: Scripted) -> Iterator[ModelServer]:
    with ModelServer(script).running() as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "unused")
        yield server


def ask(name: str = "openai/test", *, patience: Patience | None = None) -> tuple[Any, list[float]]:
    """The answer, and the pauses that were made for it."""
    pauses: list[float] = []
    model = LitellmModel(name, patience or Patience(timeout=20), pauses.append)
    return model.propose(REQUEST), pauses


def test_the_request_carries_the_schema_and_the_fenced_window(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(monkeypatch, GOOD) as server:
        answer, pauses = ask()
    (request,) = server.requests
    assert request["response_format"]["json_schema"]["schema"] == json_schema(["trips", "wishes"])
    assert request["response_format"]["json_schema"]["strict"] is True
    assert [message["role"] for message in request["messages"]] == ["system", "user"]
    assert request["messages"][1]["content"] == REQUEST.window
    assert answer.parsed.reply.profile.preferred_language == "Malay"
    assert (answer.tokens_in, answer.tokens_out, answer.repairs, pauses) == (100, 20, 0, [])


def test_a_listed_model_without_schemas_gets_json_mode_and_the_schema_in_the_prompt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(monkeypatch, GOOD) as server:
        ask("openai/gpt-3.5-turbo")
    assert server.requests[0]["response_format"] == {"type": "json_object"}
    assert "evidence_turns" in server.requests[0]["messages"][0]["content"]


def test_a_provider_that_refuses_the_schema_is_asked_in_json_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = Fails(400, "response_format of type json_schema is not supported")
    with serving(monkeypatch, refusal, GOOD) as server:
        ask()
    assert [request["response_format"]["type"] for request in server.requests] == ["json_schema", "json_object"]
    with serving(monkeypatch, refusal, refusal, GOOD) as server:
        ask()
    assert "response_format" not in server.requests[2]


@pytest.mark.parametrize(
    "broken", [Says("Sure! {"), Says(""), Says(None, refusal="I can't help"), Says('{"operations": null}')]
)
def test_a_broken_reply_is_repaired_with_the_error_fed_back(monkeypatch: pytest.MonkeyPatch, broken: Says) -> None:
    with serving(monkeypatch, broken, GOOD) as server:
        answer, _ = ask()
    talk = server.requests[1]["messages"]
    assert [message["role"] for message in talk] == ["system", "user", "assistant", "user"]
    assert "not the JSON object that was asked for" in talk[3]["content"]
    assert answer.repairs == 1
    assert answer.tokens_in == 200, "every try is counted"


def test_after_two_repairs_the_reply_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    script = (Says("no"), Says("no"), Says("still no"), GOOD)
    with serving(monkeypatch, *script) as server, pytest.raises(ModelReplyError, match="after 2 repairs") as caught:
        ask()
    assert len(server.requests) == 3
    assert caught.value.reply == "still no"
    assert caught.value.spent == Spent(tokens_in=300, tokens_out=60, cost=caught.value.spent.cost, repairs=2)


def test_a_cut_off_reply_says_so_in_the_repair(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(monkeypatch, Says('{"operations": [', finish="length"), GOOD) as server:
        ask()
    assert "cut off" in server.requests[1]["messages"][3]["content"]


def test_a_rate_limit_is_waited_out_as_long_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = Fails(429, headers={"Retry-After": "7"})
    with serving(monkeypatch, limit, Fails(429), GOOD) as server:
        _, pauses = ask()
    assert len(server.requests) == 3
    assert pauses == [7.0, 2.0]


@pytest.mark.parametrize("seconds", ["nan", "-5", "soon"])
def test_a_wait_that_makes_no_sense_is_our_own_backoff(monkeypatch: pytest.MonkeyPatch, seconds: str) -> None:
    with serving(monkeypatch, Fails(429, headers={"Retry-After": seconds}), GOOD):
        _, pauses = ask()
    assert pauses in ([1.0], [0.0])


def test_what_was_spent_before_the_model_went_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(monkeypatch, Says("no"), Fails(500)), pytest.raises(ModelUnavailable) as caught:
        ask()
    assert (caught.value.spent.tokens_in, caught.value.spent.repairs) == (100, 1)


def test_server_errors_back_off_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(monkeypatch, Fails(500), Fails(503), Fails(502), Fails(500)) as server:
        pauses: list[float] = []
        with pytest.raises(ModelUnavailable, match="didn't answer in 4 tries"):
            LitellmModel("openai/test", Patience(timeout=20), pauses.append).propose(REQUEST)
    assert len(server.requests) == 4
    assert pauses == [1.0, 2.0, 4.0]


def test_a_rate_limit_longer_than_our_patience_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(monkeypatch, Fails(429, headers={"Retry-After": "3600"})) as server, pytest.raises(ModelUnavailable):
        ask()
    assert len(server.requests) == 1


@pytest.mark.parametrize("trouble", [BreaksOff(), Raw(b"<html>garbage"), Raw(b"{}")])
def test_a_broken_answer_of_the_server_is_asked_for_again(monkeypatch: pytest.MonkeyPatch, trouble: Scripted) -> None:
    with serving(monkeypatch, trouble, GOOD) as server:
        _, pauses = ask()
    assert len(server.requests) == 2
    assert pauses == [1.0]


def test_an_answer_without_choices_is_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(monkeypatch, Raw(b'{"id": "x", "object": "chat.completion", "model": "m", "choices": []}'), GOOD):
        assert ask()[0].repairs == 1


def test_silence_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(monkeypatch, Hangs(), GOOD) as server:
        _, pauses = ask(patience=Patience(timeout=0.3))
    assert len(server.requests) == 2
    assert pauses == [1.0]


def test_nobody_there_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(monkeypatch, GOOD):
        pass
    with pytest.raises(ModelUnavailable):
        ask(patience=Patience(timeout=5, tries=1))


@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_no_retry_can_mend_is_said_at_once(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    with serving(monkeypatch, Fails(status)) as server, pytest.raises(ConfigError, match="can't be used"):
        ask()
    assert len(server.requests) == 1


def test_a_name_that_is_no_model_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="no model that litellm knows"):
        ask("nonsense")


def test_the_pause_doubles_and_is_bounded() -> None:
    patience = Patience(tries=9)
    assert [patience.pause(number, None) for number in range(1, 10)] == [1, 2, 4, 8, 16, 32, 60, 60, None]
    assert patience.pause(1, 0) == 0
    assert patience.pause(1, 61) is None


def test_offline_needs_no_litellm() -> None:
    code = (
        "import sys; from docmem import llm; llm.model('offline');"
        "sys.exit(any(name in sys.modules for name in ('litellm', 'psycopg', 'numpy')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_litellm_prints_nothing(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    with serving(monkeypatch, Fails(404)), pytest.raises(ConfigError):
        ask()
    assert tuple(capfd.readouterr()) == ("", "")
    assert llm.model("openai/test").name == "openai/test"


def test_plain_text_is_asked_for_without_a_schema_and_waits_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    with serving(monkeypatch, Fails(503), Says("By night train.")) as server:
        said = LitellmModel("openai/test", Patience(timeout=20), pauses.append).say("Be brief.", "How?")
    assert said == llm.Said("By night train.", Spent(100, 20, said.spent.cost))
    assert len(pauses) == 1
    assert "response_format" not in server.requests[-1]
    assert server.requests[-1]["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "How?"},
    ]


def test_a_model_that_says_nothing_said_an_empty_text(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(monkeypatch, Says(None)):
        assert llm.chat("openai/test").say("", "How?").text == ""
