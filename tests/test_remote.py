"""Several machines and people on one tenant, through a plain bare repo: over a path, and over HTTP."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from docmem import files, git, remote, repository
from docmem.config import Settings
from docmem.errors import Conflict, GitError
from docmem.git import remotes
from docmem.repository import Repository
from tests.support.cli import Shell
from tests.support.clones import Person
from tests.support.git_http import refusing, serving
from tests.support.repos import NOW, memory, subject
from tests.support.windows import JOB, Proposes, Tenant, operation, reply, turn

TEA = memory("Ana likes tea.")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A bare repo as any host has it: none of docmem's settings or hooks."""
    path = tmp_path / "host" / "acme.git"
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(path)], check=True)
    subprocess.run(["git", "-C", str(path), "config", "http.receivepack", "true"], check=True)
    return path


@pytest.fixture(params=["path", "http"])
def origin(request: pytest.FixtureRequest, bare: Path) -> Iterator[str]:
    """Where machines reach it."""
    if request.param == "path":
        yield str(bare)
        return
    with serving(bare.parent) as url:
        yield f"{url}/acme.git"


@pytest.fixture
def a(settings: Settings, origin: str) -> Repository:
    """The first machine: it laid the tenant down."""
    return repository.create(settings, "acme", origin=origin, now=NOW)


@pytest.fixture
def near(settings: Settings, bare: Path) -> Repository:
    """A machine whose origin is a path."""
    return repository.create(settings, "acme", origin=str(bare), now=NOW)


@pytest.fixture
def b(settings: Settings, a: Repository, tmp_path: Path, origin: str) -> Repository:
    """The second machine, with a root of its own and the same secret."""
    return repository.create(replace(settings, root=tmp_path / "root-b"), "acme", origin=origin)


def at_origin(repo: Repository) -> str | None:
    url = remotes.url(repo.git_dir)
    assert url is not None
    return remotes.tip(repo.git_dir, url)


def write(repo: Repository, path: str, data: bytes = b"x\n") -> str:
    """As every writer does: again on the new head, where somebody else was first."""
    for _ in range(5):
        with repo.locked():
            try:
                return repo.commit(repo.head(), {path: data}, message=f"Write {path}\n", now=NOW)
            except Conflict:
                continue
    raise AssertionError


def test_a_second_machine_begins_with_what_the_first_laid_down(a: Repository, b: Repository) -> None:
    assert a.head() == b.head() == at_origin(a)


def test_a_commit_is_at_origin_before_it_is_here(a: Repository, b: Repository) -> None:
    mine = write(a, "knowledge/a.md")
    assert at_origin(a) == a.head() == mine
    assert b.head() != mine
    with b.locked(), pytest.raises(Conflict):
        b.commit(b.head(), {"knowledge/b.md": b"x\n"}, message="B\n", now=NOW)
    assert b.head() == mine, "what was fetched is what the next try stands on"
    theirs = write(b, "knowledge/b.md")
    assert a.exchange() == "fetched"
    assert a.head() == theirs
    assert set(git.refs(a.git_dir, "refs")) == {git.MAIN, remote.SEEN}


def test_two_machines_consolidate_one_tenant_without_loss(a: Repository, b: Repository) -> None:
    """Each thinks while the other commits; both windows and both watermarks are in one history."""
    first, second = Tenant(a.settings, a), Tenant(b.settings, b)
    diet, plan = operation("The traveller is vegetarian.", topic="constraints"), operation()
    other = replace(JOB, thread="web-2")
    model = Proposes(reply(diet), meanwhile=lambda: second.run(reply(plan), job=other))
    assert first.run(model).outcome == "committed"
    b.exchange()
    assert a.head() == b.head() == at_origin(a)
    assert set(second.memories()) == {"The traveller is vegetarian.", "The traveller plans Portugal in May."}
    assert (first.last_turn("web-1"), first.last_turn("web-2")) == ("t1", "t1")


def test_one_window_that_two_machines_take_is_kept_once(a: Repository, b: Repository) -> None:
    first, second = Tenant(a.settings, a), Tenant(b.settings, b)
    model = Proposes(reply(operation()), meanwhile=lambda: second.run(reply(operation())))
    assert first.run(model, now=NOW + timedelta(days=2)).outcome == "conflict"
    assert first.run(reply(operation()), turns=[turn(1)]).outcome == "nothing_new"
    assert first.commits() == 2


def test_a_person_pushes_to_a_machines_store_and_it_is_at_origin_first(
    a: Repository, b: Repository, tmp_path: Path
) -> None:
    pat = Person(tmp_path / "pat").clones(a.git_dir)
    mine = pat.commits(TEA.path, files.render_memory(TEA))
    pat.pushes()
    assert at_origin(a) == a.head() == mine
    write(b, "knowledge/b.md")
    pat.commits("knowledge/a.md", "x\n")
    assert "git pull, then push again" in pat.pushes(ok=False)
    pat.git("pull", "--quiet", "--rebase", "origin", "main")
    pat.pushes()
    b.exchange()
    assert a.head() == b.head() == at_origin(a)


def test_what_a_person_pushes_to_the_host_arrives(a: Repository, bare: Path, tmp_path: Path) -> None:
    mine = Person(tmp_path / "pat").clones(bare)
    pushed = mine.commits("knowledge/a.md", "x\n")
    mine.pushes()
    theirs = write(a, "knowledge/b.md")
    assert git.is_ancestor(a.git_dir, pushed, theirs)


@pytest.mark.parametrize("back", [True, False])
def test_a_rewritten_upstream_is_kept_aside_and_reported_and_waits(
    a: Repository, bare: Path, tmp_path: Path, shell: Shell, back: bool
) -> None:
    """A force-push to another history, and one that only takes commits back."""
    write(a, "knowledge/a.md")
    before = a.head()
    vandal = Person(tmp_path / "vandal").clones(bare)
    vandal.git("reset", "--quiet", "--hard", "HEAD^")
    theirs = vandal.git("rev-parse", "HEAD").strip() if back else vandal.commits("knowledge/c.md", "c\n")
    vandal.pushes("--force")
    for _ in range(2):
        with a.locked(), pytest.raises(remote.Rewritten, match="kept as refs/docmem/aside/"):
            a.commit(a.head(), {"knowledge/b.md": b"x\n"}, message="B\n", now=NOW)
    assert a.head() == before
    assert at_origin(a) == theirs
    assert remote.state(a.git_dir).aside == {f"{remote.ASIDE}/{theirs[:12]}": theirs}
    assert shell("remote", "acme", "--json").json["error"]["code"] == "upstream_rewritten"
    taken = shell("remote", "acme", "--take", "ours" if back else "theirs", "--json").json
    assert taken["main"] == taken["upstream"] == at_origin(a) == (before if back else theirs)
    assert a.head() == taken["main"]
    assert taken["aside"] == {}
    assert len(git.refs(a.git_dir, remote.KEPT)) >= 1
    assert git.has_commit(a.git_dir, before or "")
    assert write(a, "knowledge/b.md") == at_origin(a)


def test_what_origin_refuses_is_not_here_either(a: Repository, bare: Path) -> None:
    before = a.head()
    hook = bare / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'not on Fridays' >&2\nexit 1\n")
    hook.chmod(0o755)
    with a.locked(), pytest.raises(GitError, match="not on Fridays"):
        a.commit(before, {"knowledge/b.md": b"x\n"}, message="B\n", now=NOW)
    assert a.head() == before
    assert not [ref for ref in git.refs(a.git_dir, "refs/docmem/tmp") if "out-" in ref]


def test_an_origin_that_is_away_leaves_everything_as_it_is(a: Repository, bare: Path) -> None:
    before = a.head()
    bare.rename(bare.with_name("gone.git"))
    with a.locked(), pytest.raises(GitError):
        a.commit(before, {"knowledge/b.md": b"x\n"}, message="B\n", now=NOW)
    assert a.head() == before
    bare.with_name("gone.git").rename(bare)
    write(a, "knowledge/b.md")


def test_a_tenant_that_is_there_gets_an_origin_later_and_loses_it_again(
    settings: Settings, tenant: str, origin: str, shell: Shell
) -> None:
    repo = repository.open(settings, tenant)
    assert "no origin" in shell("remote", "acme").err
    assert shell("remote", "acme", origin, "--json").json["moved"] == "pushed"
    assert at_origin(repo) == repo.head()
    assert shell("remote", "acme", "--remove").code == 0
    write(repo, "knowledge/a.md")


def test_another_origin_is_looked_at_anew(
    settings: Settings, tenant: str, origin: str, bare: Path, tmp_path: Path, shell: Shell
) -> None:
    """Taken away, or moved to a new, empty host: it was never there, and isn't called gone or rewritten."""
    repo = repository.open(settings, tenant)
    assert shell("remote", "acme", origin).code == 0
    fresh = tmp_path / "fresh.git"
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(fresh)], check=True)
    assert shell("remote", "acme", str(fresh), "--json").json["moved"] == "pushed"
    assert at_origin(repo) == repo.head()
    assert shell("remote", "acme", "--remove").code == 0
    assert set(git.refs(repo.git_dir, "refs")) == {git.MAIN}
    subprocess.run(["git", "-C", str(bare), "update-ref", "-d", "refs/heads/main"], check=True)
    assert shell("remote", "acme", origin, "--json").json["moved"] == "pushed"
    write(repo, "knowledge/a.md")
    assert at_origin(repo) == repo.head()


@pytest.mark.parametrize(
    ("at", "code", "says"),
    [
        ("/nowhere/acme.git", 1, "can't be used"),
        ("relative/acme.git", 1, "can't be used"),
        ("http://127.0.0.1:1/acme.git", 75, "can't be reached"),
        ("http://acme.invalid/acme.git", 75, "can't be reached"),
        ("nosuch://host/acme.git", 1, "can't be used"),
        ("--upload-pack=touch /tmp/x", 1, "can't be used"),
        ("ext::sh -c true", 1, "can't be used"),
    ],
)
def test_an_origin_that_does_not_answer_is_not_taken(
    settings: Settings, tenant: str, bare: Path, shell: Shell, at: str, code: int, says: str
) -> None:
    """What, which one, what to do; 75 where the same may work later. The one before stays."""
    repo = repository.open(settings, tenant)
    for before in (None, str(bare)):
        if before:
            assert shell("remote", "acme", before).code == 0
        failed = shell("remote", "acme", "--", at)
        assert (failed.code, says in failed.err, at.split("/")[-1] in failed.err) == (code, True, True), failed.err
        assert "\n  " in failed.err
        assert remotes.url(repo.git_dir) == before
        write(repo, f"knowledge/{len(str(before))}.md")


def test_git_that_dies_of_a_signal_while_it_asks_is_an_origin_that_cannot_be_used(
    settings: Settings, tenant: str, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git dies of SIGPIPE where a transport's helper is gone before it was told anything: a race, made certain here."""
    real = shutil.which("git")
    dying = tmp_path / "bin" / "git"
    dying.parent.mkdir()
    dying.write_text(
        f"""#!/bin/sh
case " $* " in *" ls-remote "*) echo "git: 'remote-nosuch' is not a git command." >&2; kill -PIPE $$ ;; esac
exec {real} "$@"
"""
    )
    dying.chmod(0o755)
    monkeypatch.setenv("PATH", f"{dying.parent}:{os.environ['PATH']}")
    failed = shell("remote", "acme", "nosuch://host/acme.git")
    assert failed.code == 1
    assert "nosuch://host/acme.git can't be used: git: 'remote-nosuch' is not a git command." in failed.err
    assert "to try: git ls-remote" in failed.err
    assert remotes.url(repository.open(settings, tenant).git_dir) is None


def test_a_password_in_a_url_is_not_printed(settings: Settings, tenant: str, shell: Shell) -> None:
    failed = shell("remote", "acme", "http://ana:hunter2@127.0.0.1:1/acme.git")
    assert failed.code == 75
    assert "http://127.0.0.1:1/acme.git" in failed.err
    assert "hunter2" not in failed.err + failed.out


def test_a_host_that_asks_for_a_password_that_nobody_gives_is_told_so(
    settings: Settings, tenant: str, shell: Shell
) -> None:
    with refusing(401) as url:
        failed = shell("remote", "acme", f"{url}/acme.git")
    assert (failed.code, "lets nobody in" in failed.err, "credential helper" in failed.err) == (1, True, True)
    with refusing(503) as url:
        assert shell("remote", "acme", f"{url}/acme.git").code == 75


def test_two_histories_that_never_met_are_joined_by_a_person_alone(
    settings: Settings, tenant: str, bare: Path, tmp_path: Path, shell: Shell
) -> None:
    repo, before = repository.open(settings, tenant), repository.open(settings, tenant).head()
    other = repository.create(replace(settings, root=tmp_path / "other"), "acme", origin=str(bare), now=NOW)
    theirs = other.head()
    write(other, "knowledge/theirs.md")
    refused = shell("remote", "acme", str(bare))
    assert (refused.code, "have gone apart" in refused.err) == (1, True)
    assert f"docmem remote acme {bare} --take theirs" in refused.err
    assert (remotes.url(repo.git_dir), repo.head()) == (None, before)
    assert set(git.refs(repo.git_dir, "refs")) == {git.MAIN}
    assert shell("remote", "acme", str(bare), "--take", "theirs", "--json").json["moved"] == "fetched"
    assert repo.head() == other.head() != theirs
    assert list(git.refs(repo.git_dir, remote.KEPT).values()) == [before]
    write(repo, "knowledge/a.md")


def test_what_is_no_tenant_is_not_taken(
    settings: Settings, tenant: str, bare: Path, tmp_path: Path, shell: Shell
) -> None:
    code = Person(tmp_path / "pat").clones(bare)
    code.commits("main.c", "int main;\n")
    code.pushes()
    for words in ([], ["--take", "theirs"]):
        failed = shell("remote", "acme", str(bare), *words)
        assert (failed.code, "has no docmem.yaml" in failed.err) == (1, True)
    assert remotes.url(repository.open(settings, tenant).git_dir) is None


def test_an_upstream_that_is_gone_is_put_back(near: Repository, bare: Path, shell: Shell) -> None:
    subprocess.run(["git", "-C", str(bare), "update-ref", "-d", "refs/heads/main"], check=True)
    gone = shell("remote", "acme")
    assert (gone.code, "docmem remote acme --take ours puts it back" in gone.err) == (1, True)
    assert shell("remote", "acme", "--take", "theirs").code == 1
    assert shell("remote", "acme", "--take", "ours").code == 0
    assert at_origin(near) == near.head()
    assert shell("remote", "acme", "--remove", "--take", "ours").code == 2


def test_what_was_erased_does_not_come_back_through_an_upstream_that_holds_it(
    settings: Settings, near: Repository, bare: Path, tmp_path: Path, shell: Shell
) -> None:
    """Somebody pushes the old history over there again, or edits what was erased on top of the new one."""
    shell.set("DOCMEM_SECRET", settings.secret_bytes().decode())
    a, key = near, subject()
    write(a, TEA.path, files.render_memory(TEA))
    stale = Person(tmp_path / "stale").clones(bare)
    assert shell("erase", "acme", key, "--yes", "--no-index", "--json").json["verified"]["found"] == 0
    assert a.head() == at_origin(a)
    write(a, "knowledge/a.md")
    fresh = Person(tmp_path / "fresh").clones(bare)
    for pushes, force in ((stale, ["--force"]), (fresh, [])):
        if pushes is fresh:
            fresh.commits(TEA.path, files.render_memory(replace(TEA, text="Ana likes green tea.")))
        before = a.head()
        pushes.pushes(*force)
        failed = shell("remote", "acme", "--json")
        assert (failed.code, failed.json["error"]["code"]) == (1, "upstream_holds_erased")
        assert "--take ours" in failed.json["error"]["hint"]
        with a.locked(), pytest.raises(remote.StillThere):
            a.commit(a.head(), {"knowledge/b.md": b"x\n"}, message="B\n", now=NOW)
        assert shell("remote", "acme", "--take", "theirs").code == 1
        assert a.head() == before
        assert not [data for _, _, data in git.objects(a.git_dir) if TEA.id.encode() in data or b"Ana likes" in data]
        assert shell("remote", "acme", "--take", "ours").code == 0
        assert at_origin(a) == a.head() == before
    assert shell("remote", "acme", "--remove").code == 0
    stale.pushes("--force")
    hint = shell("remote", "acme", str(bare), "--json").json["error"]["hint"]
    assert shell(*hint.split(" puts")[0].split()[1:]).code == 0
    assert at_origin(a) == a.head() == before
    theirs = Person(tmp_path / "new").clones(bare)
    theirs.commits("knowledge/c.md", "c\n")
    theirs.pushes()
    assert a.exchange() == "fetched"
    assert not (a.git_dir / "docmem.incoming").exists()


def test_status_sync_and_doctor_name_an_upstream_that_is_away_or_rewritten(
    indexed: Settings, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    monkeypatch.setenv("DOCMEM_ROOT", str(indexed.root))
    store = repository.create(indexed, "acme", origin=str(bare), now=NOW)
    assert (shell("sync").code, shell("status").code) == (0, 0)
    hidden = bare.with_name("hidden.git")
    bare.rename(hidden)
    assert shell("doctor", "--json").json["checks"][3]["ok"] is False
    away = shell("sync", "--json")
    assert (away.code, away.json["tenants"][0]["origin"]["code"]) == (1, "origin_unusable")
    told = shell("status")
    assert (told.code, "acme: origin: " in told.err, str(bare) in told.err) == (1, True, True)
    hidden.rename(bare)
    assert (shell("sync").code, shell("status").code) == (0, 0)
    remotes.set_url(store.git_dir, "http://127.0.0.1:1/acme.git")
    assert shell("sync").code == 75
    remotes.set_url(store.git_dir, str(bare))
    write(store, "knowledge/a.md")
    vandal = Person(tmp_path / "vandal").clones(bare)
    vandal.git("reset", "--quiet", "--hard", "HEAD^")
    vandal.pushes("--force")
    assert shell("sync").code == 1
    row = shell("status", "--json").json["tenants"][0]
    assert row["origin"]["code"] == "upstream_rewritten"
    assert row["lag_commits"] == 0
    assert shell("remote", "acme", "--take", "ours").code == 0
    assert (shell("sync").code, shell("status").code) == (0, 0)


def test_a_repo_that_is_none_of_docmems_makes_no_tenant(settings: Settings, bare: Path, tmp_path: Path) -> None:
    other = Person(tmp_path / "other").clones(bare)
    other.commits("main.c", "int main;\n")
    other.pushes()
    with pytest.raises(Exception, match=r"has no docmem\.yaml"):
        repository.create(settings, "acme", origin=str(bare))
    assert repository.tenants(settings) == []


def test_who_pushes_at_the_same_moment_is_told_to_pull_and_nobody_that_what_arrived_has_failed(
    near: Repository, tmp_path: Path
) -> None:
    """The hook of the one who comes second looks upstream while the first one's push stands there and not here yet."""
    people = [Person(tmp_path / name, name).clones(near.git_dir) for name in ("Pat", "Kim", "Liv")]
    for person in people:
        person.commits(f"knowledge/{person.name}.md", "x\n")
    with ThreadPoolExecutor(3) as pool:
        said = list(pool.map(lambda each: each.git("push", "origin", "HEAD:main", ok=None), people))
    refused = [line for line in said if "rejected" in line]
    assert len(refused) == 2, said
    assert not [line for line in refused if "failed to update ref" in line or "cannot lock ref" in line], said
    [accepted] = [person for person, line in zip(people, said, strict=True) if "rejected" not in line]
    assert near.head() == at_origin(near) == accepted.git("rev-parse", "HEAD").strip()
