"""The stand-in for a model: what it finds, and that it invents nothing."""

from __future__ import annotations

import pytest

from docmem import repository
from docmem.model import Memory, Profile, Turn
from docmem.offline import Offline
from docmem.prompt import Request, handles
from docmem.reply import Reply
from docmem.tenant_config import Agent, Attribute, Topic, parse_config

TEMPLATE = parse_config(repository.template()["docmem.yaml"]).agent("default")
PLAIN = Agent(topics=(Topic(name="likes", description="What the user likes or needs."),))


def heard(*said: str, agent: Agent = TEMPLATE, known: tuple[str, ...] = ()) -> Reply:
    turns = [Turn(f"t{number}", "user", text) for number, text in enumerate(said, start=1)]
    memories = [
        Memory(id=f"{number:016x}", kind="fact", text=text, subject="s", path="p", topic="likes")
        for number, text in enumerate(known, start=1)
    ]
    return Offline().propose(Request("web-1", turns, agent, handles(memories), Profile("s"))).parsed.reply


@pytest.mark.parametrize(
    ("said", "text", "topic", "kind"),
    [
        ("We're flying to Lisbon on the 3rd of May.", "a trip to Lisbon on the 3rd of May", "trip_plans", "fact"),
        ("We'd rather take trains than fly.", "would rather take trains than fly", "trip_preferences", "preference"),
        ("My wife can't do stairs.", "The traveller's wife can't do stairs", "constraints", "fact"),
        ("Please always answer in Malay.", "Always answer in Malay", "service_preferences", "preference"),
        ("Our budget is RM 6,000 for two.", "budget is RM 6,000 for two", "trip_preferences", "fact"),
        ("I'm vegetarian.", "The traveller is vegetarian", "constraints", "fact"),
        ("I hate early flights!", "The traveller hates early flights", "trip_preferences", "fact"),
        ("I never fly at night.", "The traveller never flies at night", "trip_preferences", "preference"),
        ("We stayed in Porto last year.", "The traveller stayed in Porto last year", "past_trips", "episode"),
    ],
)
def test_plain_statements_are_found(said: str, text: str, topic: str, kind: str) -> None:
    (operation,) = heard(said).operations
    assert text in operation.text
    assert (operation.op, operation.topic, operation.kind) == ("create", topic, kind)
    assert operation.evidence_turns == ["t1"]
    assert operation.quote is not None
    assert operation.quote in said


@pytest.mark.parametrize(
    "said",
    [
        "If I were rich I would live in Bali.",
        "Maybe I like jazz.",
        "Can you find a vegan place?",
        "I'd like a coffee.",
        "I need help with this.",
        "I can't wait!",
        "Thanks, see you tomorrow.",
        "The hotel has a budget bar.",
        "She said: prefer the blue one.",
        "",
    ],
)
def test_what_states_nothing_about_the_person_is_left(said: str) -> None:
    assert heard(said).operations == []


def test_only_the_user_is_listened_to() -> None:
    turns = [Turn("t1", "assistant", "I'm vegetarian."), Turn("t2", "tool", "I love jazz.")]
    answer = Offline().propose(Request("web-1", turns, TEMPLATE, {}, Profile("s")))
    assert answer.parsed.reply.operations == []


def test_a_later_value_corrects_the_memory_of_an_earlier_one() -> None:
    reply = heard("Actually our budget is RM 9,000 now.", known=("The traveller's budget is RM 6,000.",))
    (operation,) = reply.operations
    assert (operation.op, operation.id, operation.text) == ("update", "m1", "The traveller's budget is RM 9,000.")
    assert [(pair.key, pair.value) for pair in reply.profile.attributes] == [("budget", "RM 9,000")]


def test_within_a_window_the_last_value_counts() -> None:
    (operation,) = heard("Our budget is RM 6,000.", "Sorry, the budget is RM 7,000.").operations
    assert operation.text == "The traveller's budget is RM 7,000."


def test_what_is_remembered_is_not_proposed_again() -> None:
    assert heard("I'm vegetarian.", known=("The traveller is vegetarian.",)).operations == []


def test_the_user_can_ask_to_forget() -> None:
    reply = heard("Please forget what I said about the budget.", known=("The traveller's budget is RM 6,000.",))
    assert [(each.op, each.id) for each in reply.operations] == [("delete", "m1")]
    vague = heard("Forget about the trip.", known=("A trip to Rome.", "A trip to Oslo."))
    assert vague.operations == []


def test_the_language_of_answers_goes_to_the_profile() -> None:
    assert heard("Please answer in German.").profile.preferred_language == "German"


def test_a_home_goes_to_the_profile_where_it_has_a_place() -> None:
    reply = heard("I live in Kuala Lumpur.")
    assert reply.operations == []
    assert [(pair.key, pair.value) for pair in reply.profile.attributes] == [("home_city", "Kuala Lumpur")]


def test_it_works_for_other_domains_too() -> None:
    (operation,) = heard("I love dark roast coffee.", agent=PLAIN).operations
    assert operation.text == "The user loves dark roast coffee."
    named = Agent(attributes=(Attribute(key="name"),))
    assert heard("My name is Ana Costa.", agent=named).profile.attributes[0].value == "Ana Costa"
