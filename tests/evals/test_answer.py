"""Whether a model uses the evidence, and says that it doesn't know where there is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from docmem.config import Settings
from docmem.llm import Said
from docmem.model import Spent
from docmem_evals import answer
from docmem_evals.people import AnswerQuestion
from docmem_evals.run import Run
from docmem_evals.runner import Options
from docmem_evals.scoring import answer as scorer
from docmem_evals.stand_in import Extract

CASES = """\
task: answer
domain: mine
search: english
people:
  ana:
    memories:
      city: {text: "The person lives in Porto.", ago: 5d}
      city-before: {text: "The person lives in Lyon.", ago: 90d, ended: 5d}
  ana-2:
    memories: {dog: "The person has a dog called Bolt."}
questions:
  - {id: city, kind: correction, of: ana, ask: "In which city does the person live?", answer: [Porto], never: [Lyon]}
  - {id: dog, kind: same-name, of: ana, ask: "What is the person's dog called?", never: [Bolt]}
"""


@dataclass
class Says:
    """A chat that says what a function makes of the question."""

    replies: dict[str, str]
    name: str = "says"
    heard: list[str] = field(default_factory=list)

    def say(self, system: str, user: str) -> Said:
        self.heard.append(user)
        return Said(next(text for part, text in self.replies.items() if part in user), Spent(50, 5, 0.002))


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "mine.yaml").write_text(CASES)
    return folder


def run(settings: Settings, model: Any, folder: Path | None, **options: Any) -> Run:
    return answer.run(settings, model=model, folder=folder, **options)


def test_a_model_gets_the_packet_and_its_answers_are_matched(cases: Path, indexed: Settings) -> None:
    model = Says({"which city": "In Porto.", "dog called": "I don't know."})
    done = run(indexed, model, cases, min_accuracy=1.0, min_abstention=1.0, options=Options(jobs=2))
    assert done.passed
    assert done.metrics == {
        "accuracy": 1, "answer_accuracy": 1, "abstention_accuracy": 1, "withheld_rate": 0,
    }  # fmt: skip
    city = next(user for user in model.heard if "which city" in user)
    assert "lives in Porto" in city
    assert "Lyon" not in city
    assert not any("Bolt" in user for user in model.heard), "a person of the same name is another person"
    assert done.as_json()["tokens"] == {"in": 100, "out": 10}
    assert done.as_json()["cost"] == pytest.approx(0.004)


def test_a_judge_without_a_verdict_leaves_a_sample_unscored_which_is_not_zero(cases: Path, indexed: Settings) -> None:
    model = Says({"which city": "Somewhere by the sea.", "dog called": "Bolt"})
    judge = Says({"which city": "yes", "dog called": "Hard to say."})
    done = run(indexed, model, cases, judge_model=judge, min_accuracy=1.0)
    assert (len(done.samples), len(done.scored), done.as_json()["unscored"]) == (2, 1, 1)
    assert done.metrics["accuracy"] == 1
    assert "abstention_accuracy" not in done.metrics
    assert done.as_json()["matcher"] == "judge says"
    left = {"value": 0.5, "bound": 0.1, "passed": False}
    assert done.gates == {"accuracy": {"value": 1, "bound": 1, "passed": True}, "unscored_rate": left}
    assert run(indexed, model, cases, judge_model=judge, options=Options(max_unscored=0.5), min_accuracy=1.0).passed
    assert run(indexed, model, cases, judge_model=judge).passed, "nothing is gated"


def test_a_gate_on_what_could_not_be_scored_is_red(cases: Path, indexed: Settings) -> None:
    model = Says({"which city": "Porto", "dog called": "Bolt"})
    judge = Says({"": "No idea."})
    done = run(indexed, model, cases, judge_model=judge, min_accuracy=0.5)
    assert done.metrics == {}
    assert done.gates["accuracy"] == {"value": None, "bound": 0.5, "passed": False}


def test_the_stand_in_answers_the_shipped_questions(indexed: Settings) -> None:
    done = run(indexed, "offline", None, min_accuracy=0.8, min_abstention=0.6)
    assert done.passed
    assert done.as_json()["stand_in"] is True
    assert len(done.samples) >= 35


# -------------------------------------------------------------------------------------------------- worked by hand


def question(*answers: str, never: tuple[str, ...] = ()) -> AnswerQuestion:
    return AnswerQuestion(id="q", ask="?", of="ana", answer=answers, never=never)


@pytest.mark.parametrize(
    ("wanted", "said", "right"),
    [
        (question("Porto"), "They live in Porto.", True),
        (question("Porto"), "They live in Portonovo.", False),
        (question("2,200"), "The budget is 2200 EUR.", True),
        (question("2200", never=("1500",)), "It was 1,500, now 2,200.", False),
        (question("成都"), "旅客住在成都。", True),
        (question("عمّان"), "يسكن في عمّان.", True),
        (question("no"), "I don't know.", False),
        (question(), "I don't know.", True),
        (question(), "I don’t know.", True),
        (question(), "", True),
        (question(), "Their dog is called Bolt.", False),
        (question(never=("yes",)), "Yes. But I don't know.", False),
        (question(), "I don't know what their dog is called.", True),
        (question(), "I don't know. The memory doesn't say.", True),
        (question(), "Sorry, I don't know, as the memory does not say.", True),
        (question(), "I don't know, but I think it's Bolt.", False),
        (question(), "I don't know. It may be Bolt.", False),
        (question(), "I don't know, it's Bolt", False),
        (question(), "I don't know; probably Bolt.", False),
        (question(), "They are called Bolt, I don't know why.", False),
        (question("no"), "There is no information.", False),
        (question("no"), "No information is there.", False),
        (question("no"), "No, they eat no fish.", True),
        (question("no"), "No they don't.", True),
        (question("no"), "**No.**", True),
        (question("yes"), "They said yes to it.", False),
        (question(never=("yes",)), "Yes, they do.", False),
        (question("عمّان"), "يسكن في عمان.", True),
        (question("5.0"), "Version 5.0", True),
        (question("5.0"), "Version 15.0", False),
    ],
)
def test_an_answer_is_right_by_its_words(wanted: AnswerQuestion, said: str, right: bool) -> None:
    assert scorer.is_right(wanted, said) is right


def test_withholding_what_is_known_is_told_from_saying_something_else() -> None:
    withheld = scorer.score(question("Porto"), "I don't know.", right=False)
    assert withheld.counts["withheld_rate"] == 1
    assert withheld.problems == ("the memory says, and it didn't use it",)
    other = scorer.score(question("Porto"), "Lyon", right=False)
    assert (other.counts["withheld_rate"], other.problems) == (0, ("another answer than the memory gives",))
    assert "withheld_rate" not in scorer.score(question(), "I don't know.", right=True).counts


def test_the_stand_in_says_the_line_that_shares_most_words() -> None:
    memory = "- The person lives in Porto. [1a2b, 2 May]\n- The person plays chess. [3c4d, 2 May]"
    assert Extract().say("", f"{memory}\n\nQuestion: Who plays chess?").text == "The person plays chess."
    assert Extract().say("", f"{memory}\n\nQuestion: Any allergies?").text == scorer.UNKNOWN
