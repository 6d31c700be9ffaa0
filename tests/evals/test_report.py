"""A run as Markdown and as a page; two runs beside each other."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmem.errors import InputError
from docmem_evals import bootstrap, markdown, page, tasks
from docmem_evals.comparison import compare
from docmem_evals.gates import Gate
from docmem_evals.run import Header, Run, load
from docmem_evals.samples import Judged, Scored
from tests.support.cli import Shell

HOSTILE = "</li><script>alert(1)</script> | <b>x</b> `y` [z](javascript:1)\n# heading"


def sample(name: str, *, right: bool, kind: str = "plain", text: str = "The user likes tea.") -> Scored:
    counts = {"matched": int(right), "extracted": 1, "expected": 1, "junk": int(not right)}
    problems = () if right else (f"junk: {text}",)
    return Scored(
        name, kind, "travel", "en", Judged(counts, ("The user likes tea.",), (text,), problems), ("user: Tea!",)
    )


def made(*samples: Scored, model: str = "a/model", gates: tuple[Gate, ...] = (), dataset: str = "cases@1") -> Run:
    return Run(Header("extraction", model, "jaccard 0.5", dataset, "c" * 40, "p" * 16, "0.1.0"), samples, gates)


GOOD = made(*(sample(f"s{n}", right=True, kind="odd" if n % 2 else "even") for n in range(10)))
BAD = made(
    *(sample(f"s{n}", right=n > 3, kind="odd" if n % 2 else "even", text=HOSTILE) for n in range(10)),
    model="b/model",
    gates=(Gate("f1", 0.9), Gate("junk_rate", 0.5, at_most=True)),
)


class Page(HTMLParser):
    """Tags and text of a page; refuses a tag that isn't closed."""

    VOID = frozenset({"meta", "br", "rect", "line", "circle"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") or "javascript" in str(value) for name, value in attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_the_page_needs_nothing_else_and_shows_hostile_text_as_text() -> None:
    text = page.render(BAD, compare(GOOD, BAD))
    read = Page(text)
    assert not {"script", "link", "img", "iframe", "a"} & set(read.tags)
    assert not re.search(r"(?:src|href)=|url\(|@import", text)
    assert "alert(1)" in "".join(read.words)
    assert "default-src 'none'" in text
    assert "prefers-color-scheme: dark" in text
    assert "max-width: 640px" in text


def test_the_page_has_bars_by_kind_intervals_and_failing_samples_beside_what_was_expected() -> None:
    text = page.render(BAD, compare(GOOD, BAD))
    said = "".join(Page(text).words)
    assert "f1 by kind" in said
    assert "paired bootstrap" in said
    assert text.count('class="sides"') == 4
    assert "failed" in said
    assert "4 samples are worse, 0 better." in said
    assert "None: every sample is right." in "".join(Page(page.render(GOOD)).words)


def test_the_markdown_shows_hostile_text_in_one_line_without_markup() -> None:
    text = markdown.report(BAD)
    assert "<script>" not in text.replace("\\<script\\>", "")
    assert "\n# heading" not in text
    rows = [line for line in text.splitlines() if line.startswith("| The user likes tea.")]
    assert len(rows) == 4
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 3 for row in rows)


def test_the_markdown_tells_figures_gates_groups_and_problems() -> None:
    text = markdown.report(BAD, compare(GOOD, BAD))
    assert "# extraction: b/model" in text
    assert "| f1 | 0.600 | at least 0.9 | **failed** |" in text
    assert "| junk_rate | 0.400 | at most 0.5 | passed |" in text
    assert "## By kind" in text
    assert "## By domain" not in text, "one domain is no group"
    assert "## Samples with problems (4 of 10)" in text
    assert "| f1 | 1.000 | 0.600 | -0.400 |" in text


def test_the_stand_in_is_labelled_wherever_it_is_shown() -> None:
    run = made(*GOOD.samples, model="offline")
    assert "stand-in" in markdown.report(run)
    assert "stand-in" in markdown.summary(run)
    assert "stand-in" in page.render(run)


def test_what_wasn_t_scored_counts_nowhere_and_is_said() -> None:
    unscored = replace(sample("s9", right=True), unscored="the judge said nothing", judged=Judged({}))
    run = made(sample("s1", right=True), unscored)
    assert (run.metrics["f1"], run.as_json()["unscored"]) == (1.0, 1)
    assert "unscored: 1 of 2" in markdown.summary(run)
    assert "unscored: the judge said nothing" in page.render(run)


# -------------------------------------------------------------------------------------------------------- comparing


def test_comparing_says_which_samples_changed() -> None:
    more = made(*BAD.samples[1:], sample("new", right=True), dataset="cases@2")
    found = compare(GOOD, more)
    assert {each.id: each.change for each in found.samples} == {
        "s1": "worse", "s2": "worse", "s3": "worse", "new": "added", "s0": "removed",
        **dict.fromkeys(["s4", "s5", "s6", "s7", "s8", "s9"], "reworded"),
    }  # fmt: skip
    assert "only samples of both are compared" in found.warnings[0]
    assert {each.change for each in compare(BAD, GOOD).samples} == {"better", "reworded"}
    assert compare(GOOD, GOOD).samples == ()
    assert "No sample changed." in markdown.comparison(compare(GOOD, GOOD))
    other = made(sample("s0", right=False, text="x"), *BAD.samples[1:])
    assert [each.change for each in compare(BAD, other).samples] == ["different"]


def test_comparing_lists_what_is_only_worded_otherwise() -> None:
    [one, *others] = GOOD.samples
    worded = replace(one, judged=replace(one.judged, got=("The user eats no meat at all.",)))
    found = compare(GOOD, replace(GOOD, samples=(worded, *others)))
    assert [(each.id, each.change) for each in found.samples] == [(one.id, "reworded")]
    assert "- got: The user eats no meat at all." in markdown.comparison(found)
    assert found.as_json()["samples"][0]["got_after"] == ["The user eats no meat at all."]


def test_the_bound_on_unscored_samples_is_kept_with_the_run(tmp_path: Path) -> None:
    [one, *others] = GOOD.samples
    half = replace(
        GOOD, samples=(replace(one, unscored="no verdict"), *others), gates_asked=(Gate("f1", 0.5),), max_unscored=0.01
    )
    assert not half.passed
    file = tmp_path / "run.jsonl"
    file.write_text("".join(half.lines()), encoding="utf-8")
    assert load(file).gates == half.gates
    assert "unscored_rate ≤ 0.01" in markdown.summary(half)


def test_the_terminal_names_the_first_samples_with_problems_and_how_to_see_them() -> None:
    told = markdown.summary(BAD)
    wrong = [sample.id for sample in BAD.samples if not sample.right]
    assert f"samples with problems: {', '.join(wrong[:5])}" in told
    assert "docmem eval report run.jsonl" in told
    assert "samples with problems" not in markdown.summary(GOOD)


@pytest.mark.parametrize("bound", ["5", "-0.1", "nan", "inf", "many"])
def test_a_bound_that_is_no_share_is_refused(shell: Shell, bound: str) -> None:
    assert shell("eval", "extraction", "--model", "offline", f"--min-f1={bound}").code == 2
    assert shell("eval", "merge", "--model", "offline", f"--max-wrong-merges={bound}").code == 2


def test_runs_of_different_tasks_don_t_compare() -> None:
    merge = replace(GOOD, header=replace(GOOD.header, task="merge"))
    with pytest.raises(InputError, match="a run of extraction doesn't compare with one of merge"):
        compare(GOOD, merge)


def test_a_difference_has_an_interval_that_holds_it_and_the_same_seed_gives_the_same_one() -> None:
    found = compare(GOOD, BAD).differences["f1"]
    assert (found.baseline, found.value) == (1.0, 0.6)
    assert found.change == pytest.approx(-0.4)
    assert -0.75 < found.low < -0.4 < found.high < -0.05
    assert found.is_clear
    assert compare(GOOD, BAD).differences["f1"] == found
    same = compare(GOOD, GOOD).differences["f1"]
    assert (same.change, same.low, same.high, same.is_clear) == (0, 0, 0, False)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12))
def test_the_interval_of_a_mean_lies_within_what_can_be(pairs: list[tuple[bool, bool]]) -> None:
    before = [{"x": float(one)} for one, _ in pairs]
    after = [{"x": float(other)} for _, other in pairs]
    found = bootstrap.differences(before, after, tasks.TASKS["answer"].metrics, draws=40)["x"]
    assert -1 <= found.low <= found.high <= 1


def test_the_commands_read_runs_and_write_reports(shell: Shell, tmp_path: Path) -> None:
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    one.write_text("".join(GOOD.lines()))
    other.write_text("".join(BAD.lines()))
    shown = shell("eval", "report", str(other), "--baseline", str(one), "--html", str(tmp_path / "page.html"))
    assert (shown.code, shown.out) == (0, "")
    Page((tmp_path / "page.html").read_text("utf-8"))
    assert shell("eval", "report", str(other)).out == markdown.report(BAD)
    compared = shell("eval", "compare", str(one), str(other), "--json").json
    assert [each["change"] for each in compared["samples"]] == ["worse"] * 4 + ["reworded"] * 6
    assert compared["differences"]["f1"]["clear"] is True
    assert "worse: `s0`" in shell("eval", "compare", str(one), str(other)).out
    missing = shell("eval", "report", str(tmp_path / "page.html"))
    assert missing.code == 1
