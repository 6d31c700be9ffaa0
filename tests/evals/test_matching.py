"""Statements are matched greedily; which matcher was used is part of every figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmem.config import Settings
from docmem.errors import ConfigError
from docmem.llm import Said
from docmem.model import Spent
from docmem_evals import calibration, counting, extraction, figures, judge, matchers, matching, merge
from docmem_evals.cosine import Cosine, threshold_of
from docmem_evals.judge import Judge, NoVerdict
from docmem_evals.matching import Jaccard
from docmem_evals.replies import Store
from docmem_evals.runner import Options
from tests.support.cli import Shell

WORDS = st.lists(st.sampled_from(["likes tea", "lives in Porto", "plays chess", "hates rain"]), max_size=5)


@dataclass
class Axes:
    """An embedder whose vectors are given."""

    vectors: dict[str, list[float]]
    model: str = "axes"
    dimension: int = 2
    asked: list[str] = field(default_factory=list)

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += texts
        return [self.vectors[text] for text in texts]

    def query(self, text: str) -> list[float]:
        return self.vectors[text]


@dataclass
class Replies:
    """A chat with these replies, one after the other."""

    texts: list[str]
    name: str = "replies"

    def say(self, system: str, user: str) -> Said:
        return Said(self.texts.pop(0), Spent(10, 1, 0.001))


def test_each_expected_statement_claims_one_extracted_one() -> None:
    expected = [("The user likes tea.",), ("The user likes tea.",)]
    assert matching.pairs(expected, ["User likes tea", "User lives in Porto"], Jaccard()) == {0: 0}
    assert matching.pairs([], ["anything"], Jaccard()) == {}
    assert Jaccard().same("旅客吃素,不吃鸡蛋。", "旅客吃素不吃鸡蛋")


def test_the_first_unclaimed_match_is_claimed_and_not_the_best() -> None:
    expected = [("likes green tea",), ("likes green tea a lot",)]
    assert matching.pairs(expected, ["likes green tea a lot", "likes green tea"], Jaccard()) == {0: 0, 1: 1}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The client has a budget of RM 12,000.", "The client has a budget of RM 8,000."),
        ("The customer wants twenty rolls on Friday.", "The customer wants twelve rolls on Friday."),
        ("The customer is allergic to nuts.", "The customer is not allergic to nuts."),
        ("The traveller flies to Lisbon in September.", "The traveller flies to Lisbon in May."),
        ("The traveller flies to Lisbon on 5 May.", "The traveller flies to Porto on 5 May."),
        ("The person swims on Fridays.", "The person swims on Mondays."),
        ("The customer's laptop runs version 3.9.", "The customer's phone runs version 4.1."),
        ("It was -5 degrees in the cellar.", "It was 5 degrees in the cellar."),
        ("Priya administers the workspace.", "Olaf administers the workspace."),
        ("The person is allergic to peanuts.", "The person's son is allergic to peanuts."),
        ("The traveller's wife is vegan.", "The traveller's mother is vegan."),
        ("The traveller prefers trains to cars.", "The traveller prefers cars to trains."),
        ("Sie fliegen am 5. Juli nach Wien.", "Sie fliegen am 5. Juni nach Wien."),
        ("Die Person isst Fleisch.", "Die Person isst kein Fleisch."),
        ("O viajante gosta de cruzeiros.", "O viajante não gosta de cruzeiros."),
        ("Pengembara makan daging lembu.", "Pengembara tidak makan daging lembu."),
        ("旅客订了两间房。", "旅客订了三间房。"),
        ("旅客吃鸡蛋。", "旅客不吃鸡蛋。"),
        ("لا يحب المسافر الرحلات الليلية.", "يحب المسافر الرحلات الليلية."),
    ],
)
def test_words_in_common_prove_nothing_where_a_number_a_date_a_name_or_a_no_differs(one: str, other: str) -> None:
    assert not Jaccard().same(one, other)
    assert not Jaccard().same(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The customer wants twenty rolls on Friday.", "The customer wants 20 rolls on Fridays."),
        ("The client puts aside 40,000 EUR.", "The client puts aside 40000 EUR."),
        ("The code freeze starts on 18 May 2026.", "The code freeze starts on 2026-05-18."),
        ("The client puts aside 350 EUR a month since the raise.", "The client puts aside 350 EUR a month."),
        ("The traveller doesn't eat meat any longer.", "The traveller does not eat meat."),
        ("The client does not need help in May.", "The client doesn't need help."),
        ("旅客订了十二间房。", "旅客订了12间房。"),
        ("Sie fliegen am 5. Juli nach Wien.", "Am 5. Juli fliegen sie nach Wien."),
    ],
)
def test_a_figure_may_be_written_in_another_way_and_a_detail_may_be_missing(one: str, other: str) -> None:
    assert Jaccard().same(one, other)
    assert Jaccard().same(other, one)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("two hundred and five rolls", [205]), ("twenty-five", [25]), ("three thousand two hundred", [3200]),
        ("one, two and three", [1, 2, 3]), ("zwölf", [12]), ("八千元", [8000]), ("三万五千", [35000]),
        ("二〇二六", [2026]), ("May 5 2026", [5, 2026]), ("5.5.2026", [5, 2026]), ("-5 to 5", [-5, 5]),
        ("a range of 2-3", [2, 3]),
    ],
)  # fmt: skip
def test_numbers_are_read_however_they_are_written(text: str, found: list[int]) -> None:
    assert figures.numbers(text) == found


def test_no_labelled_pair_that_shares_its_words_is_refused_in_vain() -> None:
    refused = [
        pair for pair in calibration.pairs()
        if pair.same and matching.jaccard(pair.one, pair.other) >= 0.5 and not Jaccard().same(pair.one, pair.other)
    ]  # fmt: skip
    assert [pair.other for pair in refused] == ["旅客不吃肉。"], "eats no meat, for vegetarian: a no more"


def test_cosine_looks_at_figures_before_it_asks_for_vectors() -> None:
    embedder = Axes({})
    assert not Cosine(embedder, 0.1).same("flies in May", "flies in September")
    assert not Cosine(embedder, 0.1).same("pays 300 EUR", "pays 350 EUR")
    assert embedder.asked == []


def test_any_of_several_wordings_will_do() -> None:
    assert matching.pairs([("isst kein Fleisch", "eats no meat")], ["eats no meat"], Jaccard()) == {0: 0}


@given(WORDS)
def test_what_is_extracted_as_expected_matches_in_any_order(texts: list[str]) -> None:
    found = matching.pairs([(text,) for text in texts], texts[::-1], Jaccard())
    assert sorted(found) == sorted(found.values()) == list(range(len(texts)))


def test_counts_are_defined_where_there_is_nothing_to_count() -> None:
    assert counting.precision(0, 0) == counting.recall(0, 0) == counting.f1(0, extracted=0, expected=0) == 1.0
    assert counting.share(0, 0) == 0.0
    assert counting.f1(2, extracted=4, expected=4) == 0.5
    assert counting.precision(2, 4) == 0.5
    assert counting.means([{"x": 1.0}, {"y": 0.0}, {"x": 0.0}]) == {"x": 0.5, "y": 0.0}


def test_cosine_has_a_threshold_for_each_model_and_embeds_a_text_once() -> None:
    embedder = Axes({"a": [1.0, 0.0], "b": [0.9, 0.4358899], "c": [0.0, 1.0]})
    near = Cosine(embedder, 0.85)
    assert near.name == "cosine 0.85 of axes"
    assert near.same("a", "b")
    assert not near.same("a", "c")
    assert embedder.asked == ["a", "b", "c"]
    assert threshold_of("text-embedding-3-small") == threshold_of("openai/text-embedding-3-large") == 0.82
    with pytest.raises(ConfigError, match="no cosine is known") as caught:
        threshold_of("some/model")
    assert "docmem eval calibrate" in caught.value.hint


def test_a_judge_says_yes_or_no_and_anything_else_is_no_verdict() -> None:
    asked = Judge(Replies(["Yes.", "**No**, it isn't", "Perhaps"]))
    assert asked.same("one", "other")
    assert not asked.same("one", "other")
    with pytest.raises(NoVerdict, match="neither yes nor no"):
        asked.same("one", "other")
    assert asked.same("equal", "equal"), "nobody is asked"
    assert judge.verdict(Replies(["yes"]), "", "")


@pytest.mark.parametrize("name", ["jacard", "jaccard:2", "cosine:x", "judge", "judge:"])
def test_a_matcher_that_isn_t_known_is_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        matchers.matcher(Settings(root=Path("/nowhere"), embedding_model="local"), name, store=Store())


def test_matchers_are_named_with_their_threshold_or_model() -> None:
    settings = Settings(root=Path("/nowhere"), embedding_model="none")
    assert matchers.matcher(settings, "jaccard:0.6", store=Store()).name == "jaccard 0.6"
    assert matchers.matcher(settings, "judge:openai/x", store=Store()).name == "judge openai/x"
    openai = matchers.matcher(settings, "cosine", embedding_model="text-embedding-3-small", store=Store())
    assert openai.name == "cosine 0.82 of text-embedding-3-small"
    with pytest.raises(ConfigError, match="needs an embedder"):
        matchers.matcher(settings, "cosine", store=Store())


def test_whoever_gates_by_words_alone_is_told_so() -> None:
    assert matchers.warnings(Jaccard(), None, 0.9) == (matchers.WEAK,)
    assert matchers.warnings(Jaccard(), None, None) == ()
    assert matchers.warnings(Cosine(Axes({}), 0.9), 0.9) == ()
    settings = Settings(root=Path("/nowhere"), embedding_model="none")
    gated: list[dict[str, Any]] = [{"min_value": 0.1}, {"max_wrong_merges": 0.1}, {"max_duplicate_rate": 0.1}]
    for bounds in gated:
        assert merge.run(settings, model="offline", options=Options(domains=("travel",)), **bounds).warnings
    assert extraction.run(settings, model="offline", min_f1=0.1).warnings == (matchers.WEAK,)


# ----------------------------------------------------------------------------------------------------- calibration


def test_the_threshold_parts_pairs_that_can_be_parted() -> None:
    rows = [(0.95, True), (0.9, True), (0.7, False), (0.5, False)]
    assert calibration.best(rows) == pytest.approx(0.8)
    assert calibration.best([*rows, (0.72, True)]) == pytest.approx(0.71)


def test_pairs_ship_in_several_languages_and_are_read_strictly(tmp_path: Path) -> None:
    pairs = calibration.pairs()
    assert len(pairs) >= 60
    assert {pair.language for pair in pairs} >= {"en", "de", "ms", "pt", "zh", "ar"}
    assert 0.3 < sum(pair.same for pair in pairs) / len(pairs) < 0.7
    file = tmp_path / "pairs.yaml"
    file.write_text("pairs:\n" + "  - {one: a, other: b, same: true}\n" * 4)
    with pytest.raises(Exception, match="line 1: a threshold needs pairs that say the same and pairs that don't"):
        calibration.pairs(file)


def test_calibrating_says_the_threshold_and_how_good_it_is() -> None:
    pairs = [calibration.Pair(one="a", other="b", same=True), calibration.Pair(one="a", other="c", same=False)] * 3
    embedder = Axes({"a": [1.0, 0.0], "b": [0.9, 0.4358899], "c": [0.0, 1.0]})
    found = calibration.calibrate(pairs, Cosine(embedder, 1.0))
    assert found.as_json() == {
        "model": "axes", "pairs": 6, "threshold": 0.45, "f1": 1.0, "held_out_f1": 1.0,
        "same": {"lowest": 0.9, "median": 0.9}, "differ": {"highest": 0.0, "median": 0.0},
    }  # fmt: skip
    assert "--matcher cosine:0.45" in found.table()


def test_there_is_nothing_to_calibrate_without_an_embedder(shell: Shell) -> None:
    done = shell("eval", "calibrate", "--embedding-model", "none", "--json")
    assert (done.code, done.json["error"]["code"]) == (1, "bad_setting")
