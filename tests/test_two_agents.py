"""Two agents of one tenant: each learns its own topics, both know what is shared, neither sees the other's own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from docmem import Injector, UserMemory, layout, recall, repository
from docmem.config import Settings
from docmem_sync.sync import sync_tenant
from tests.support.windows import ANA, JOB, Proposes, Tenant, operation, reply, turn

DIET = operation("The traveller is vegetarian.", topic="constraints")
DEAL = operation("The traveller expects a quote for a group tour.", topic="deals")
SALES = replace(JOB, agent="sales", thread="sales-1")
DECLARED = "agents:\n  sales:\n    topics:\n      - name: deals\n    attributes:\n      - key: account_size\n"


@pytest.fixture
def acme(indexed: Settings, tenant: str) -> Tenant:
    """A tenant with the agents `default` and `sales`."""
    made = Tenant(indexed, repository.open(indexed, tenant))
    config = (made.repo.snapshot().read(layout.CONFIG) or b"").decode()
    made.write(layout.CONFIG, config.replace("agents:\n", DECLARED, 1))
    return made


def packets(acme: Tenant) -> dict[str, str]:
    sync_tenant(acme.settings, "acme")
    with Injector(acme.settings) as injector:
        return {agent: injector.packet("acme", ANA, agent=agent).text for agent in ("default", "sales")}


def test_each_learns_its_topics_and_is_served_the_shared_and_its_own(acme: Tenant) -> None:
    assert dict(acme.run(reply(DIET, DEAL)).rejected) == {"undeclared_topic": 1}
    assert dict(acme.run(reply(DEAL, DIET), job=SALES).rejected) == {"undeclared_topic": 1}
    assert {text: memory.agent for text, memory in acme.memories().items()} == {
        "The traveller is vegetarian.": None,
        "The traveller expects a quote for a group tour.": "sales",
    }
    served = packets(acme)
    assert "vegetarian" in served["default"]
    assert "group tour" not in served["default"]
    assert "vegetarian" in served["sales"]
    assert "group tour" in served["sales"]
    for agent, found in (("default", 0), ("sales", 1)):
        hits = recall.search(acme.settings, "acme", "group tour", subject=ANA, agent=agent, folders=()).hits
        assert len(hits) == found


def test_each_is_asked_with_what_it_may_see_and_changes_nothing_else(acme: Tenant) -> None:
    acme.run(reply(DEAL), job=SALES)
    mine = acme.memories()["The traveller expects a quote for a group tour."]
    model = Proposes(reply(operation("", op="delete", id=mine.id)))
    done = acme.run(model)
    assert dict(done.rejected) == {"foreign_id": 1}
    assert model.requests[0].memories == {}
    assert [topic.name for topic in model.requests[0].agent.topics] != ["deals"]
    assert list(acme.memories()) == [mine.text]


def test_what_one_knows_by_itself_is_no_duplicate_for_the_other(acme: Tenant) -> None:
    own = operation("The traveller travels with a group.", topic="deals")
    acme.run(reply(own), job=SALES)
    acme.run(reply({**own, "topic": "trip_plans"}))
    stored = [each.memory for each in acme.repo.snapshot().memories(ANA)]
    assert sorted(str(memory.agent) for memory in stored) == ["None", "sales"]
    again = acme.run(reply({**own, "evidence_turns": ["t2"]}), [turn(1), turn(2)], SALES)
    assert dict(again.rejected) == {"duplicate": 1}


def test_an_agents_saves_are_its_own_and_the_default_agents_are_shared(acme: Tenant) -> None:
    sales = UserMemory(acme.settings, "acme", ANA, agent="sales")
    sales.save("The traveller signs contracts in spring.", topic="deals")
    UserMemory(acme.settings, "acme", ANA).save("The traveller prefers mornings.", "preference")
    served = packets(acme)
    assert ("contracts" in served["default"], "contracts" in served["sales"]) == (False, True)
    assert all("prefers mornings" in text for text in served.values())
    assert len(sales.recall("contracts in spring").hits) == 1


def test_the_profile_is_one_and_each_shows_what_it_declares_first(acme: Tenant) -> None:
    acme.run(reply(attributes={"account_size": "40 seats"}), [turn(1, "We need 40 seats.")], SALES)
    acme.run(reply(attributes={"diet": "vegetarian"}))
    served = packets(acme)
    for text in served.values():
        assert "40 seats" in text
        assert "diet: vegetarian" in text
    assert served["sales"].index("account_size") < served["sales"].index("diet")
    assert served["default"].index("diet") < served["default"].index("account_size")
