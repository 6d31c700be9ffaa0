"""Merge is scored by what stands afterwards: once, the right thing, and nothing of another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmem.config import Settings
from docmem.prompt import Request
from docmem_evals import dialogues, merge
from docmem_evals.dialogues import MergeCase
from docmem_evals.matching import Jaccard
from docmem_evals.recording import Recording
from docmem_evals.run import Run
from docmem_evals.runner import Options
from docmem_evals.samples import Judged
from docmem_evals.scoring import merge as scorer
from docmem_evals.scoring.merge import Outcome
from tests.support import note_takers
from tests.support.cli import Shell
from tests.support.windows import operation, reply

HEAD = "task: merge\ndomain: mine\ntopics:\n  - {name: food, description: What they eat}\ncases:\n"


def run(by: Callable[[Request], note_takers.Reply], **options: Any) -> Run:
    settings = Settings(root=Path("/nowhere"), embedding_model="none")
    return merge.run(settings, model=note_takers.Scripted(by), **options)


# ------------------------------------------------------------------------------------------ through the whole engine


def test_what_a_careful_person_replies_comes_to_a_value_of_one() -> None:
    done = run(note_takers.careful)
    assert [(sample.id, sample.judged.problems) for sample in done.samples if not sample.right] == []
    assert (done.metrics["value"], done.metrics["duplicate_rate"], done.metrics["wrong_merge_rate"]) == (1, 0, 0)
    assert done.metrics["lifecycle_accuracy"] == 1
    assert len(done.samples) >= 50


@pytest.fixture
def travel(tmp_path: Path) -> Path:
    """A folder with the cases about travel alone."""
    folder = tmp_path / "travel"
    folder.mkdir()
    shipped = Path(dialogues.__file__).parent / "cases" / "merge" / "travel.yaml"
    (folder / "travel.yaml").write_bytes(shipped.read_bytes())
    return folder


def recorded(by: Callable[[Request], note_takers.Reply], folder: Path) -> str:
    recording = Recording()
    run(by, folder=folder, options=Options(recording=recording))
    recording.write(folder.parent / "replies.jsonl")
    return f"replay:{folder.parent / 'replies.jsonl'}"


GATES = ("--max-duplicate-rate", "0.1", "--max-wrong-merges", "0.1", "--json")


@pytest.mark.parametrize(
    ("by", "red"),
    [
        (note_takers.careful, []),
        (note_takers.duplicating, ["duplicate_rate"]),
        (note_takers.merging, ["wrong_merge_rate"]),
    ],
    ids=["careful", "duplicating", "merging everything"],
)
def test_a_model_that_is_wrong_in_one_way_turns_that_gate_red(
    shell: Shell, travel: Path, by: Callable[[Request], note_takers.Reply], red: list[str]
) -> None:
    shell.set("DOCMEM_EMBEDDING_MODEL", "none")
    done = shell("eval", "merge", "--model", recorded(by, travel), "--cases", str(travel), *GATES)
    assert [name for name, gate in done.json["gates"].items() if not gate["passed"]] == red
    assert done.code == (1 if red else 0)
    assert "by words alone (jaccard)" in done.err
    assert done.json["warnings"]


def test_a_model_that_does_nothing_keeps_both_gates_and_not_the_value(travel: Path) -> None:
    done = run(note_takers.nothing, folder=travel, max_duplicate_rate=0.1, max_wrong_merges=0.1, min_value=0.6)
    assert {name for name, gate in done.gates.items() if not gate["passed"]} == {"value"}


def test_a_reply_that_failed_leaves_everything_as_it_was(travel: Path) -> None:
    settings = Settings(root=Path("/nowhere"), embedding_model="none")
    done = merge.run(settings, model=note_takers.Fails(), folder=travel)
    assert done.as_json()["failed"] == len(done.samples)
    assert (done.metrics["update_recall"], done.metrics["no_op_accuracy"]) == (0, 1)


def test_what_admission_turned_away_was_never_written(tmp_path: Path) -> None:
    case = (
        "  - id: a\n    known: [The person eats no meat., The person lives in Porto.]\n"
        "    says: [[user, I eat no meat.]]\n    expected: {}\n"
    )
    (tmp_path / "mine.yaml").write_text(HEAD + case)

    def repeats(request: Request) -> note_takers.Reply:
        return reply(operation("The person eats no meat.", topic="food"))

    [sample] = run(repeats, folder=tmp_path).samples
    assert sample.right
    assert sample.judged.got == ("nothing done", "(admission: duplicate × 1)")


# -------------------------------------------------------------------------------------------------- worked by hand

KNOWN = ("The person lives in Porto.", "The person plays chess on Fridays.", "The person eats no meat.")


def case(**expected: Any) -> MergeCase:
    found = dialogues.merges().cases[0]
    fields: dict[str, Any] = {"creates": (), "updates": {}, "deletes": frozenset(), "card": dialogues.Card()}
    known = tuple(dialogues.Known(text=text) for text in KNOWN)
    return MergeCase(
        **{name: getattr(found, name) for name in ("file", "domain", "language", "kind", "agent", "policies", "turns")},
        id="x", known=known, profile=dialogues.Card(), **{**fields, **expected},
    )  # fmt: skip


def known(text: str, **expected: Any) -> MergeCase:
    """A case with this memory, and one that has nothing to do with it."""
    return replace(case(**expected), known=tuple(dialogues.Known(text=each) for each in (text, KNOWN[0])))


def kept(*changes: tuple[int, str | None]) -> dict[int, str | None]:
    return {**dict(enumerate(KNOWN)), **dict(changes)}


def judged(wanted: MergeCase, outcome: Outcome) -> Judged:
    return scorer.score(wanted, outcome, Jaccard())


def metrics(wanted: MergeCase, outcome: Outcome) -> dict[str, float]:
    return scorer.metrics([judged(wanted, outcome).counts])


def test_nothing_done_where_nothing_was_to_do_is_perfect() -> None:
    assert metrics(case(), Outcome(kept()))["value"] == 1
    assert scorer.metrics([])["value"] == 1


def test_the_value_is_that_of_the_formula() -> None:
    wanted = case(
        creates=(("The person swims on Mondays.",), ("The person has a dog called Bolt.",)),
        updates={0: ("The person lives in Ghent.",)},
        deletes=frozenset({1}),
        card=dialogues.Card(lifecycle_stage="active"),
    )
    outcome = Outcome(
        kept((0, "The person lives in Ghent.")),
        created=("The person swims on Mondays.", "The person eats no meat at all.", "The person collects stamps."),
        profile={"lifecycle_stage": "active"},
    )
    found = metrics(wanted, outcome)
    # One of two new facts found, with one create too many besides a duplicate; the update done, the delete not.
    assert found["new_f1"] == pytest.approx(2 * 1 / (2 + 2))
    assert (found["update_recall"], found["delete_recall"]) == (1, 0)
    assert found["reconciliation"] == pytest.approx((0.5 + 1 + 0) / 3)
    assert found["op_economy"] == 1  # four were needed, four were done
    assert found["duplicate_rate"] == pytest.approx(1 / 3)
    assert found["wrong_merge_rate"] == 0
    assert found["value"] == pytest.approx((0.5 + 1 + 1) / 3 * (1 - 1 / 3))


def test_without_a_stage_to_score_the_value_is_of_two_parts() -> None:
    wanted = case(updates={0: ("The person lives in Ghent.",)})
    found = metrics(wanted, Outcome(kept()))
    assert found["reconciliation"] == pytest.approx((1 + 0 + 1) / 3)
    assert found["value"] == pytest.approx((2 / 3 + 1) / 2)


def test_a_create_that_repeats_a_memory_an_update_or_another_create_is_a_duplicate() -> None:
    again = judged(case(), Outcome(kept(), created=("The person lives in Porto, really.",)))
    assert again.problems == ("duplicate: The person lives in Porto, really.",)
    moved = case(updates={0: ("The person lives in Ghent.",)})
    beside = judged(moved, Outcome(kept(), created=("The person lives in Ghent.",)))
    assert beside.counts["duplicates"] == 1
    new = case(creates=(("The person swims on Mondays.",),))
    twice = judged(new, Outcome(kept(), created=("The person swims on Mondays.", "The person swims on Mondays, too.")))
    assert (twice.counts["new_right"], twice.counts["duplicates"], twice.counts["creates"]) == (1, 1, 2)


def test_a_memory_replaced_by_a_new_one_that_says_the_update_is_an_update() -> None:
    moved = case(updates={0: ("The person lives in Ghent.",)})
    found = judged(moved, Outcome(kept((0, None)), created=("The person lives in Ghent.",)))
    assert (found.counts["updates_right"], found.counts["duplicates"], found.counts["wrong_merges"]) == (1, 0, 0)
    assert found.counts["economy"] == 0.5
    assert found.problems == ()


@pytest.mark.parametrize(
    ("wanted", "outcome", "why"),
    [
        (case(), kept((1, "The person bought a boat.")), "wrong merge: The person plays chess on Fridays."),
        (case(), kept((1, None)), "lost: The person plays chess on Fridays."),
        (
            case(creates=(("The person is afraid of big dogs.",),)),
            kept((1, "The person plays chess on Fridays and is afraid of big dogs.")),
            "wrong merge: The person plays chess on Fridays.",
        ),
        (
            case(),
            kept((1, "The person plays chess on Fridays and eats no meat.")),
            "wrong merge: The person plays chess on Fridays.",
        ),
    ],
    ids=["replaced", "lost", "took in what is new", "took in another memory"],
)
def test_a_memory_that_lost_what_it_said_or_took_in_another_is_a_wrong_merge(
    wanted: MergeCase, outcome: dict[int, str | None], why: str
) -> None:
    found = judged(wanted, Outcome(outcome))
    assert found.counts["wrong_merges"] == 1
    assert any(problem.startswith(why) for problem in found.problems)


def test_a_memory_that_is_only_worded_otherwise_is_no_wrong_merge_and_costs_economy() -> None:
    found = judged(case(), Outcome(kept((1, "On Fridays the person plays chess."))))
    assert (found.counts["wrong_merges"], found.counts["economy"], found.counts["no_ops_right"]) == (0, 0, 0)


def test_an_update_that_says_something_else_than_expected_is_none() -> None:
    moved = case(updates={0: ("The person lives in Ghent.",)})
    found = judged(moved, Outcome(kept((0, "The person sold a house, a car and a horse."))))
    assert (found.counts["updates_right"], found.counts["wrong_merges"]) == (0, 1)


@pytest.mark.parametrize(
    "text",
    [
        "The project uses MySQL 8. The project uses Postgres 17.",
        "The project uses MySQL 8 on Linux, and the project uses Postgres 17 on Linux.",
        "The project uses Postgres 16 on Linux.",
        "The project uses Postgres 17.",
        "The project doesn't use Postgres 17 on Linux.",
        "The project uses Postgres 17 on Linux and the person lives in Porto.",
    ],
    ids=["both", "both in one sentence", "another number", "a name less", "denied", "another's"],
)
def test_an_update_says_all_that_was_expected_and_no_more_what_it_replaced(text: str) -> None:
    wanted = known("The project uses MySQL 8 on Linux.", updates={0: ("The project uses Postgres 17 on Linux.",)})
    found = judged(wanted, Outcome({0: text, 1: KNOWN[0]}))
    assert (found.counts["updates_right"], found.counts["wrong_merges"]) == (0, 1)


@pytest.mark.parametrize(
    "text",
    ["The project uses Postgres 17 on Linux.", "The project uses Postgres 17 on Linux instead of MySQL 8."],
)
def test_an_update_may_tell_what_was_before(text: str) -> None:
    wanted = known("The project uses MySQL 8 on Linux.", updates={0: ("The project uses Postgres 17 on Linux.",)})
    found = judged(wanted, Outcome({0: text, 1: KNOWN[0]}))
    assert (found.counts["updates_right"], found.counts["wrong_merges"], found.problems) == (1, 0, ())


@pytest.mark.parametrize(
    "text",
    [
        "The person plays chess on Mondays.",
        "The person plays chess on Fridays and bought a boat.",
        "The person plays chess.",
        "The person doesn't play chess on Fridays.",
    ],
    ids=["another day", "added to", "taken from", "denied"],
)
def test_a_memory_changed_where_nothing_was_to_change_is_damage(text: str) -> None:
    found = judged(case(), Outcome(kept((1, text))))
    assert found.counts["wrong_merges"] == 1
    assert found.problems == (f"wrong merge: {KNOWN[1]} → {text}",)


def test_a_new_memory_with_another_number_repeats_none() -> None:
    wanted = known("The customer's laptop runs 3.9.", creates=(("The customer's phone runs 4.1.",),))
    found = judged(wanted, Outcome({0: wanted.known[0].text, 1: KNOWN[0]}, created=("The customer's phone runs 4.1.",)))
    assert (found.counts["new_right"], found.problems) == (1, ())
    loose = judged(known("The customer's laptop runs 3.9."), Outcome(
        {0: "The customer's laptop runs 3.9.", 1: KNOWN[0]}, created=("The customer's phone runs 4.1.",)
    ))  # fmt: skip
    assert loose.counts["duplicates"] == 0


def test_what_is_optional_is_neither_required_nor_too_much() -> None:
    wanted = case(deletes=frozenset({1}), optional=(("The club decides when chess is played.",),))
    without = judged(wanted, Outcome(kept((1, None))))
    beside = judged(wanted, Outcome(kept((1, None)), created=("The club decides when chess is played.",)))
    turned = judged(wanted, Outcome(kept((1, "The club decides when chess is played."))))
    for found in (without, beside, turned):
        assert found.problems == ()
        assert scorer.metrics([found.counts])["value"] == 1


CREATED = st.sampled_from([*KNOWN, "The person swims on Mondays.", "The person owns a kite."])
OUTCOMES = st.builds(
    Outcome,
    kept=st.fixed_dictionaries({n: st.sampled_from([*KNOWN, "The person bought a boat.", None]) for n in range(3)}),
    created=st.lists(CREATED, max_size=4).map(tuple),
)


@given(st.lists(OUTCOMES, max_size=3))
@hypothesis.settings(max_examples=40)
def test_every_metric_lies_between_0_and_1_and_needs_no_order(outcomes: list[Outcome]) -> None:
    wanted = case(creates=(("The person swims on Mondays.",),), deletes=frozenset({2}))
    counts = [judged(wanted, outcome).counts for outcome in outcomes]
    found = scorer.metrics(counts)
    assert all(0 <= value <= 1 + 1e-9 for value in found.values())
    assert found == pytest.approx(scorer.metrics(counts[::-1]))
