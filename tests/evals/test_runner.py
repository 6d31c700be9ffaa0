"""Runs go on where they stopped, ask for nothing twice, and are kept in a file."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from docmem.config import Settings
from docmem.errors import InputError, ModelUnavailable
from docmem.llm import Said
from docmem.model import Spent
from docmem.prompt import Request
from docmem.reply import Answer
from docmem_evals import dialogues, extraction, run, runner
from docmem_evals.judge import Judge
from docmem_evals.replies import Asking, Key, Saying, Store, key_of
from docmem_evals.run import Run
from docmem_evals.runner import Options
from tests.support import note_takers
from tests.support.cli import Shell
from tests.support.windows import operation, reply

HEAD = "domain: mine\ntopics:\n  - {name: food, description: What they eat}\ncases:\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve cases."""
    made = tmp_path / "cases"
    made.mkdir()
    case = "  - id: c{n}\n    kind: {kind}\n    says: [[user, I eat {n} apples.]]\n    expected: {wanted}\n"
    wanted = "{{memories: [The user eats {n} apples.]}}"
    kinds = ["even", "odd"]
    text = "".join(case.format(n=n, kind=kinds[n % 2], wanted=wanted.format(n=n)) for n in range(12))
    (made / "mine.yaml").write_text(HEAD + text)
    return made


def careful(request: Request) -> note_takers.Reply:
    number = request.turns[0].text.split()[2]
    return reply(operation(f"The user eats {number} apples.", topic="food"))


def score(model: Any, folder: Path, **options: Any) -> Run:
    return extraction.run(Settings(root=Path("/nowhere")), model=model, folder=folder, options=Options(**options))


@dataclass
class BreaksOff:
    """A model that goes away after some answers."""

    left: int
    name: str = "scripted"

    def propose(self, request: Request) -> Answer:
        self.left -= 1
        if self.left < 0:
            raise ModelUnavailable("the provider is away")
        return note_takers.Scripted(careful).propose(request)


def test_a_run_that_was_broken_off_goes_on_where_it_stopped(folder: Path, tmp_path: Path) -> None:
    kept, out = tmp_path / "answers", tmp_path / "run.jsonl"
    with pytest.raises(ModelUnavailable):
        score(BreaksOff(5), folder, cache=kept, jobs=1, out=out)
    with pytest.raises(InputError, match="broken off after 5 samples"):
        run.load(out)
    model = note_takers.Scripted(careful)
    done = score(model, folder, cache=kept, jobs=1, out=out)
    assert model.asked == [f"c{n}" for n in range(5, 12)]
    assert done.spent == {"tokens": {"in": 1200, "out": 240}, "cost": 0.012, "cost_now": 0.007, "cached": 5}
    assert run.load(out).metrics == done.metrics


@dataclass
class Counting:
    """A model that notes how many ask it at a time, and answers once three do."""

    name: str = "scripted"
    now: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    three: threading.Barrier = field(default_factory=lambda: threading.Barrier(3, timeout=10))

    def propose(self, request: Request) -> Answer:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        self.three.wait()
        with self.lock:
            self.now -= 1
        return note_takers.Scripted(careful).propose(request)


def test_so_many_are_asked_at_a_time_and_they_stay_in_order(folder: Path) -> None:
    model = Counting()
    done = score(model, folder, jobs=3)
    assert model.most == 3
    assert [sample.id for sample in done.samples] == [f"c{n}" for n in range(12)]
    assert done.metrics["f1"] == 1


def test_the_file_has_a_header_a_line_a_sample_and_the_figures(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "run.jsonl"
    done = score(note_takers.Scripted(careful), folder, out=out)
    head, *samples, figures = map(json.loads, out.read_text("utf-8").splitlines())
    assert (head["task"], head["model"], head["matcher"]) == ("extraction", "scripted", "jaccard 0.5")
    assert head["dataset"].startswith("cases@")
    assert len(head["prompt"]) == 16
    assert len(head["commit"]) == 40, "the tests run in a git repo"
    assert [sample["id"] for sample in samples] == [f"c{n}" for n in range(12)]
    assert samples[0]["tokens"] == {"in": 100, "out": 20}
    assert samples[0]["expected"] == samples[0]["got"] == ["The user eats 0 apples."]
    assert figures == {"figures": done.as_json()}
    read = run.load(out)
    assert (read.header, read.metrics, read.by("kind")) == (done.header, done.metrics, done.by("kind"))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is no run"),
        ("{}\n", "is no run"),
        ("no json\n", "line 1: not JSON"),
        ("[1]\n", "line 1: not a JSON object"),
        ('{"format": 1, "task": "extraction"}\n{"figures": {}}\n', "line 1: not a line of a run"),
        ('{"format": 9, "task": "extraction"}\n{"figures": {}}\n', "is no run"),
    ],
)
def test_what_is_no_run_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "run.jsonl").write_text(text)
    with pytest.raises(InputError, match=complaint):
        run.load(tmp_path / "run.jsonl")


def test_another_prompt_model_or_input_is_asked_anew(folder: Path) -> None:
    first, second = dialogues.extractions(folder).cases[:2]
    request = extraction.request(first)
    key = key_of(request, "a/model")
    assert key == key_of(extraction.request(first), "a/model")
    others = {key_of(request, "b/model"), key_of(extraction.request(second), "a/model")}
    text = (folder / "mine.yaml").read_text().replace("What they eat", "What they like to eat")
    (folder / "mine.yaml").write_text(text)
    others.add(key_of(extraction.request(dialogues.extractions(folder).cases[0]), "a/model"))
    assert len({each.file for each in others} | {key.file}) == 4


def test_a_kept_answer_that_can_t_be_read_is_asked_anew(tmp_path: Path, folder: Path) -> None:
    request = extraction.request(dialogues.extractions(folder).cases[0])
    store = Store(tmp_path / "answers")
    model = note_takers.Scripted(careful)
    first = Asking(model, store).propose(request)
    [file] = (tmp_path / "answers").iterdir()
    for broken in ("", "[]", '{"key": ["x", "y", "z"]}', file.read_text().replace("operations", "operation")):
        file.write_text(broken)
        asking = Asking(model, store)
        assert asking.propose(request).parsed == first.parsed
        assert not asking.cached
        assert Asking(model, store).propose(request) == first
    assert store.get(Key("a", "b", "c")) is None


def test_a_recording_is_served_again_without_a_key(folder: Path, tmp_path: Path, shell: Shell) -> None:
    path = tmp_path / "replies.jsonl"
    command = ("eval", "extraction", "--cases", str(folder), "--json")
    recorded = shell(*command, "--model", "offline", "--record", str(path))
    again = shell(*command, "--model", f"replay:{path}")
    assert len(path.read_text().splitlines()) == 12
    assert again.json["metrics"] == recorded.json["metrics"]


def test_progress_is_a_line_now_and_then_where_there_is_no_terminal(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    score(note_takers.Scripted(careful), folder, quiet=False, jobs=1)
    assert capsys.readouterr().err == "", "of twelve nobody wonders how far it is"
    more = (folder / "mine.yaml").read_text().replace("id: c", "id: d")
    (folder / "more.yaml").write_text(more)
    score(note_takers.Scripted(careful), folder, quiet=False, jobs=1)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[-1] == "extraction: 24 of 24, $0.0240"


def test_progress_is_a_bar_on_a_terminal(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    score(note_takers.Scripted(careful), folder, quiet=False, jobs=1)
    assert "12/12" in capsys.readouterr().err


@dataclass
class Agrees:
    """A chat that says yes."""

    name: str = "agrees"

    def say(self, system: str, user: str) -> Said:
        return Said("yes", Spent(30, 1, 0.0005))


def test_what_a_judge_takes_is_counted_apart_and_a_verdict_is_kept(folder: Path, tmp_path: Path) -> None:
    def measured() -> Run:
        judge = Judge(Saying(Agrees(), Store(tmp_path / "answers")))
        return extraction.run(
            Settings(root=Path("/nowhere")),
            model=note_takers.Scripted(lambda request: reply(operation("Apples.", topic="food"))),
            folder=folder,
            matcher=judge,
            options=Options(jobs=4),
        )

    first = measured()
    assert (first.header.matcher, first.metrics["f1"]) == ("judge agrees", 1.0)
    assert first.as_json()["judging"]["tokens"] == {"in": 360, "out": 12}
    assert first.as_json()["judging"]["cost"] == pytest.approx(0.006)
    assert len(list((tmp_path / "answers").iterdir())) == 12
    assert measured().metrics == first.metrics


def test_a_judge_without_a_verdict_leaves_a_case_unscored(folder: Path) -> None:
    @dataclass
    class Wavers(Agrees):
        def say(self, system: str, user: str) -> Said:
            return Said("perhaps" if " 3 apples" in user else "yes")

    done = extraction.run(
        Settings(root=Path("/nowhere")),
        model=note_takers.Scripted(lambda request: reply(operation("Apples.", topic="food"))),
        folder=folder,
        matcher=Judge(Wavers()),
    )
    assert [(sample.id, bool(sample.unscored)) for sample in done.samples if sample.unscored] == [("c3", True)]
    assert (done.metrics["f1"], len(done.scored)) == (1.0, 11)


def test_who_costs_nothing_is_asked_one_by_one_and_never_kept(tmp_path: Path) -> None:
    options = Options(cache=tmp_path)
    assert options.jobs_for("offline") == options.jobs_for("replay:x") == 1
    assert options.jobs_for("openai/x") == runner.JOBS
    assert options.store_for("offline").folder is None
    assert options.store_for("openai/x").folder == tmp_path
