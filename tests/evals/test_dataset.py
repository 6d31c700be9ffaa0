"""Cases are read strictly: what isn't understood is an error with file and line."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from docmem.errors import InputError
from docmem_evals import dataset, dialogues, people

HEAD = "domain: mine\ntopics:\n  - {name: food, description: What they eat}\ncases:\n"
CASE = "  - id: a\n    says: [[user, I'm vegan.]]\n    expected: {memories: [The user is vegan.]}\n"
RECALL = "task: recall\ndomain: mine\npeople:\n  ana:\n    memories:\n      m1: The user is vegan.\nquestions:\n"
ANSWER = RECALL.replace("recall", "answer")


def write(folder: Path, text: str, name: str = "mine.yaml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_more_than_120_cases_ship_over_the_domains_languages_and_hard_kinds() -> None:
    cases = dialogues.extractions().cases
    assert len(cases) >= 120
    assert {case.domain for case in cases} >= {"travel", "support", "finance", "coding", "health"}
    languages = Counter(case.language for case in cases)
    assert all(languages[language] >= 9 for language in ("en", "ms", "pt", "de", "zh", "ar"))
    kinds = Counter(case.kind for case in cases)
    hard = ("correction", "negation", "hypothetical", "joke", "third-party", "two-people", "numbers", "relative-date")
    assert all(kinds[kind] >= 5 for kind in (*hard, "restated", "secret", "instruction"))


def test_the_other_tasks_ship_cases_of_their_hard_kinds() -> None:
    merges = {case.kind for case in dialogues.merges().cases}
    assert merges >= {"correction", "restated", "taken-back", "near-duplicate", "there-and-back", "lifecycle"}
    recalls = {asked.kind for asked in people.recalls().asked}
    assert recalls >= {"near-duplicate", "distractor", "same-name", "superseded", "expired", "outage", "empty"}
    answers = {asked.kind for asked in people.answers().asked}
    assert answers >= {"correction", "same-name", "expired", "outage", "empty", "hostile", "nothing"}


def test_one_folder_may_hold_all_tasks_side_by_side_or_apart(tmp_path: Path) -> None:
    write(tmp_path, HEAD + CASE, "a.yaml")
    write(tmp_path, RECALL + "  - {id: q, of: ana, ask: Vegan?, relevant: [m1]}\n", "b.yaml")
    (tmp_path / "answer").mkdir()
    write(tmp_path / "answer", ANSWER + "  - {id: q, of: ana, ask: Vegan?, answer: [vegan]}\n")
    assert [case.id for case in dialogues.extractions(tmp_path).cases] == ["a"]
    assert [asked.id for asked in people.recalls(tmp_path).asked] == ["q"]
    assert [asked.id for asked in people.answers(tmp_path).asked] == ["q"]
    with pytest.raises(InputError, match=r"no \*\.yaml for merge \(only for extraction, recall\)"):
        dialogues.merges(tmp_path)


def test_either_ending_of_yaml_will_do_and_no_questions_are_a_mistake(tmp_path: Path) -> None:
    write(tmp_path, HEAD + CASE, "a.yml")
    assert [case.id for case in dialogues.extractions(tmp_path).cases] == ["a"]
    for task in (RECALL, ANSWER):
        write(tmp_path, task.replace("questions:", "questions: []"))
        with pytest.raises(InputError, match=r"mine\.yaml, line 7: questions: there is no question in it"):
            (people.recalls if task == RECALL else people.answers)(tmp_path)


def test_a_hash_names_the_content(tmp_path: Path) -> None:
    first = dialogues.extractions(write(tmp_path, HEAD + CASE)).name
    assert dialogues.extractions(tmp_path).name == first
    assert dialogues.extractions(write(tmp_path, HEAD + CASE.replace("vegan", "sober"))).name != first


SECOND = CASE.replace("id: a", "id: b")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (HEAD + CASE + SECOND.replace("user,", "nobody,"), r"mine\.yaml, line 9: cases\.1\.says\.0\.role"),
        (HEAD + CASE + SECOND.replace("memories", "memmories"), r"line 10: cases\.1\.expected\.memmories.*isn't known"),
        (HEAD + CASE + CASE, r"line 8: the id 'a' stands in mine\.yaml as well"),
        (HEAD + CASE + "  - id: c\n    says: []\n    expected: {}\n", r"line 9: cases\.1\.says"),
        (HEAD + CASE + "  - id: c\n    says: [[user]]\n    expected: {}\n", r"line 9: cases\.1\.says\.0: a turn is"),
        (HEAD + CASE + "  - id: c\n   says: []\n", r"mine\.yaml, line 9"),
        ("task: extract\n" + HEAD + CASE, r"line 1: task: 'extract' is none of"),
        (HEAD.replace("description", "descripton") + CASE, r"line 3: topics\.0\.descripton"),
        (
            HEAD.replace("cases:", "attributes:\n  - {key: allergy, description: What}\ncases:")
            + CASE.replace("}", ", profile: {attributes: {alergy: nuts}}}"),
            r"line 9: 'alergy' is no attribute that the file declares .*there are allergy",
        ),
        ("domain: mine\ncases:\n" + CASE, r"mine\.yaml, line 1: topics: say what is to be remembered"),
        (HEAD.replace("cases:", "cases: []"), r"mine\.yaml, line 4: cases: there is no case in it"),
        (
            HEAD + CASE.replace("expected", "known: [{text: Vegan., topic: fod}]\n    expected"),
            r"line 7: 'fod' is no topic",
        ),
        (HEAD + CASE.replace("expected", "at: yesterday\n    expected"), r"line 7: cases\.0\.at"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as caught:
        dialogues.extractions(write(tmp_path, text))
    assert "evals/README.md" in caught.value.hint


MERGE = "task: merge\n" + HEAD + "  - id: a\n    known: [One., Two.]\n    says: [[user, Three.]]\n    expected: "


@pytest.mark.parametrize(
    ("expected", "complaint"),
    [
        ("{updates: {3: Three.}}", r"line 9: 3 is no known memory; they are numbered 1 to 2"),
        ("{deletes: [0]}", r"line 9: 0 is no known memory"),
        ("{updates: {1: Three.}, deletes: [1]}", r"can't be both"),
        ("{memories: [Three.]}", r"cases\.0\.expected\.memories: this key isn't known"),
    ],
)
def test_a_merge_case_names_what_is_there(tmp_path: Path, expected: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        dialogues.merges(write(tmp_path, MERGE + expected + "\n"))


@pytest.mark.parametrize(
    ("question", "complaint"),
    [
        ("{id: q, of: bo, ask: Vegan?, relevant: [m1]}", r"line 8: 'bo' is none of the people"),
        ("{id: q, of: ana, ask: Vegan?, relevant: [m2]}", r"line 8: 'm2' is no memory of this file"),
        ("{id: q, of: ana, ask: Vegan?}", r"questions\.0\.relevant: Field required"),
    ],
)
def test_a_question_names_what_is_there(tmp_path: Path, question: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        people.recalls(write(tmp_path, RECALL + f"  - {question}\n"))


def test_what_holds_no_more_or_is_another_s_answers_nothing(tmp_path: Path) -> None:
    lapsed = RECALL.replace("m1: The user is vegan.", "m1: {text: The user is vegan., ended: 3d}")
    with pytest.raises(InputError, match="doesn't hold any more"):
        people.recalls(write(tmp_path, lapsed + "  - {id: q, of: ana, ask: Vegan?, relevant: [m1]}\n"))
    two = RECALL.replace("questions", "  bo:\n    memories: {m2: The user is sober.}\nquestions")
    with pytest.raises(InputError, match="no memory of ana"):
        people.recalls(write(tmp_path, two + "  - {id: q, of: ana, ask: Sober?, relevant: [m2]}\n"))


def test_a_statement_may_have_several_wordings_and_a_turn_more_than_two_parts(tmp_path: Path) -> None:
    case = """  - id: a
    at: 2026-05-02T10:00:00Z
    says:
      - [user, "Ich bin vegan."]
      - {role: user, speaker: Bo, text: "Ich nicht.", at: 2026-05-02T11:00:00Z}
    expected: {memories: [[Sie ist vegan., The user is vegan.]]}
"""
    [read] = dialogues.extractions(write(tmp_path, HEAD + case)).cases
    assert read.expected.memories == (("Sie ist vegan.", "The user is vegan."),)
    assert [(turn.id, turn.speaker, str(turn.at)) for turn in read.turns] == [
        ("t1", None, "2026-05-02 10:00:00+00:00"),
        ("t2", "Bo", "2026-05-02 11:00:00+00:00"),
    ]


def test_the_line_of_a_place_is_that_of_its_deepest_part() -> None:
    text = "a:\n  - x: 1\n  - y: 2\n"
    assert dataset.line_of(text, ("a", 1, "y")) == 3
    assert dataset.line_of(text, ("a", 1, "missing")) == 3
    assert dataset.line_of(text, ("missing",)) == 1
