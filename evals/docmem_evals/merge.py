"""`docmem eval merge`: what becomes of known memories and a new window, through the whole engine.

Warm: each case is a person with memories and a profile in a tenant of its file's domain. The window is consolidated as
it would be (prompt, model, admission, profile) up to the commit, which isn't made. See scoring/merge.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from docmem import files, layout, llm, names
from docmem.config import Settings
from docmem.consolidation import Consolidation, Model, consolidate
from docmem.errors import ModelReplyError
from docmem.model import Job, Memory, Spent
from docmem_evals import dialogues, gates, matchers, runner, seeding
from docmem_evals.dialogues import MergeCase
from docmem_evals.extraction import prompt_hash, said
from docmem_evals.judge import NoVerdict
from docmem_evals.matching import Jaccard, Matcher
from docmem_evals.replies import Asking, digest
from docmem_evals.run import Header, Run
from docmem_evals.runner import Options
from docmem_evals.samples import Judged, Scored
from docmem_evals.scoring import merge as scorer
from docmem_evals.scoring.merge import Outcome
from docmem_evals.workplace import workplace

NOW = datetime(2026, 5, 20, 12, 0, tzinfo=UTC)
"""When every window is consolidated."""
BEFORE = NOW - timedelta(days=30)
"""When what is known was said, unless a case says when."""


@dataclass(frozen=True)
class Seeded:
    """A case with the person it was laid down as."""

    case: MergeCase
    tenant: str
    subject: str
    memories: tuple[Memory, ...]


def run(
    settings: Settings,
    *,
    model: str | Model,
    folder: Path | None = None,
    matcher: Matcher | None = None,
    max_duplicate_rate: float | None = None,
    max_wrong_merges: float | None = None,
    min_value: float | None = None,
    options: Options | None = None,
) -> Run:
    """Consolidate each case of a folder (default: the shipped). Raises `InputError`, `ModelUnavailable`.

    A reply that could not be used leaves everything as it was. No Postgres is needed.
    """
    loaded = dialogues.merges(folder)
    asked = llm.model(model) if isinstance(model, str) else model
    how = options or Options()
    by = matcher or Jaccard()
    with ExitStack() as stack:
        work, seeded = _seeded(stack, settings, how.chosen(loaded.cases))
        return runner.run(
            Header("merge", asked.name, by.name, how.named(loaded.name)),
            seeded,
            partial(_scored, work=work, model=asked, matcher=by, how=how),
            options=how,
            gates=gates.asked(
                {"value": min_value}, {"duplicate_rate": max_duplicate_rate, "wrong_merge_rate": max_wrong_merges}
            ),
            warnings=matchers.warnings(by, max_duplicate_rate, max_wrong_merges, min_value),
            prompt=prompt_hash,
            matcher=by,
        )


def _seeded(stack: ExitStack, settings: Settings, cases: Sequence[MergeCase]) -> tuple[Settings, list[Seeded]]:
    """A tenant for each file's agent and policies, with a person for each case."""
    groups: dict[str, list[MergeCase]] = {}
    for case in cases:
        groups.setdefault(case.file, []).append(case)
    # Named after its file, so that ids, and recordings that name them, outlive another file.
    wanted = [f"merge-{names.slug(file.removesuffix('.yaml'))[:40]}-{digest(file)[:8]}" for file in groups]
    work, tenants = stack.enter_context(workplace(settings, wanted, postgres=False))
    found = []
    for tenant, group in zip(tenants, groups.values(), strict=True):
        seeded = [_seed(tenant, case) for case in group]
        contents: dict[str, bytes | None] = {
            layout.CONFIG: seeding.config(group[0].agent, policies=group[0].policies),
            **{
                path: data for each in seeded for path, data in seeding.profile(each.subject, each.case.profile).items()
            },
        }
        every = [memory for each in seeded for memory in each.memories]
        seeding.lay_down(work, tenant, contents, every, now=BEFORE)
        found += seeded
    return work, sorted(found, key=lambda each: cases.index(each.case))


def _seed(tenant: str, case: MergeCase) -> Seeded:
    subject = names.subject_of_id(tenant, case.id)
    memories = tuple(
        seeding.memory(
            tenant, subject, each.text, number=number, kind=each.kind, topic=each.topic, at=each.at or BEFORE
        )
        for number, each in enumerate(case.known)
    )
    return Seeded(case, tenant, subject, memories)


def _scored(seeded: Seeded, work: Settings, model: Model, matcher: Matcher, how: Options) -> Scored:
    case, asking = seeded.case, Asking(model, how.store_for(model.name), how.recording)
    job = Job(seeded.tenant, case.id, seeded.subject)
    done = consolidate(job, settings=work, turns=case.turns, model=asking, now=NOW, dry_run=True)
    if done.error is not None and not isinstance(done.error, ModelReplyError):
        raise done.error
    unscored = None
    try:
        judged = scorer.score(case, outcome(seeded, done.files), matcher)
    except NoVerdict as error:
        judged, unscored = Judged({}), error.message
    return Scored(
        id=case.id,
        kind=case.kind,
        domain=case.domain,
        language=case.language,
        judged=_with_admission(judged, done),
        said=said(case.turns),
        unscored=unscored,
        cached=asking.cached,
        spent=Spent(done.tokens_in, done.tokens_out, done.cost, done.repairs),
        prompt=asking.key.prompt if asking.key else "",
        input=asking.key.input if asking.key else "",
    )


def outcome(seeded: Seeded, changed: Mapping[str, tuple[bytes | None, bytes | None]]) -> Outcome:
    """What stands, by the files that a consolidation would write."""
    kept: dict[int, str | None] = {}
    paths = {memory.path: number for number, memory in enumerate(seeded.memories)}
    created = []
    profile = dict(seeded.case.profile.values)
    for number, memory in enumerate(seeded.memories):
        kept[number] = memory.text
    for path, (_, after) in changed.items():
        if path in paths:
            kept[paths[path]] = None if after is None else files.parse_memory(path, after).text
        elif path == layout.profile_path(seeded.subject) and after is not None:
            read = files.parse_profile(path, after)
            core = {name: getattr(read, name) for name in ("preferred_language", "locale", "lifecycle_stage")}
            profile = {**read.attributes, **{name: value for name, value in core.items() if value}}
        elif path.endswith(".md") and after is not None:
            created.append(files.parse_memory(path, after).text)
    return Outcome(kept, tuple(created), profile)


def _with_admission(judged: Judged, done: Consolidation) -> Judged:
    """With what admission kept out, for a reader who wonders where it is."""
    codes = [f"{code} × {count}" for code, count in {**done.rejected, **done.held_codes}.items()]
    failed = [f"no usable reply: {done.error.message}"] if done.error is not None else []
    got = (*judged.got, f"(admission: {', '.join(codes)})") if codes else judged.got
    counts = {**judged.counts, "failed": 1} if failed else judged.counts
    return Judged(counts, judged.expected, got, (*failed, *judged.problems))
