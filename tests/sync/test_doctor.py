"""doctor: it sees what opens the index or shuts it, and what each fault names mends it when it is run as printed."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest

from docmem import db, git, layout, repository
from docmem.config import Settings
from docmem.files import render_memory
from docmem.postgres import Server
from docmem_sync import doctor
from docmem_sync.checks import Check
from docmem_sync.doctor import REPAIR, of_postgres
from docmem_sync.status import status
from docmem_sync.sync import sync_all, sync_tenant
from tests.support.cli import Shell
from tests.support.repos import memory, put, subject

pytestmark = pytest.mark.usefixtures("tenant")

OPEN = "CREATE POLICY tenant ON docmem.memory USING"
OTHERS = "tenant_id LIKE current_setting('app.current_tenant', true) || '%'"

SCHEMA = {
    "row-level security off": ("ALTER TABLE docmem.memory DISABLE ROW LEVEL SECURITY", "not forced on memory"),
    "the owner let through": ("ALTER TABLE docmem.profile NO FORCE ROW LEVEL SECURITY", "not forced on profile"),
    "no policy": ("DROP POLICY tenant ON docmem.memory", "policy of memory"),
    "a policy for all": (f"DROP POLICY tenant ON docmem.memory; {OPEN} (true)", "policy of memory"),
    "a policy for a prefix": (f"DROP POLICY tenant ON docmem.memory; {OPEN} ({OTHERS})", "policy of memory"),
    "a policy for one role": ("ALTER POLICY tenant ON docmem.usage TO docmem_reader", "policy of usage"),
    "a policy of reading": (
        "DROP POLICY tenant ON docmem.job; CREATE POLICY tenant ON docmem.job FOR SELECT"
        " USING (tenant_id = current_setting('app.current_tenant', true))",
        "policy of job",
    ),
    "rows of others written": ("ALTER POLICY tenant ON docmem.trace WITH CHECK (true)", "policy of trace"),
    "a policy beside": ("CREATE POLICY x ON docmem.document USING (true)", "policy x on document"),
    "one for the reader": ('CREATE POLICY "x Y" ON docmem.document TO docmem_reader USING (true)', "policy x Y on"),
    "a function gone": ("DROP FUNCTION docmem.read", "function read is gone"),
    "a table of somebody's": ("CREATE TABLE docmem.copy AS SELECT * FROM docmem.memory", "not forced on copy"),
    "a superuser's view": (
        "CREATE VIEW docmem.v AS SELECT * FROM docmem.memory; GRANT SELECT ON docmem.v TO docmem_reader",
        "view docmem.v shows",
    ),
    "a view of a view": (
        "CREATE VIEW public.v AS SELECT * FROM docmem.memory;"
        "CREATE VIEW public.w AS SELECT * FROM public.v; GRANT SELECT (text) ON public.w TO docmem_reader",
        "view public.v shows",
    ),
    "a copy": (
        "CREATE MATERIALIZED VIEW public.m AS SELECT * FROM docmem.profile; GRANT SELECT ON public.m TO PUBLIC",
        "everybody may read public.m",
    ),
    "a function of a superuser's": (
        "CREATE FUNCTION public.leak(text) RETURNS SETOF docmem.memory LANGUAGE sql SECURITY DEFINER"
        " AS 'SELECT * FROM docmem.memory'",
        "function public.leak(text) runs as docmem_admin",
    ),
}

READER = {
    "deletes": ("GRANT DELETE ON docmem.memory TO docmem_reader", "may DELETE on memory"),
    "writes a column": ("GRANT UPDATE (text) ON docmem.memory TO docmem_reader", "may UPDATE on memory"),
    "truncates, as everybody": ("GRANT TRUNCATE ON docmem.trace TO PUBLIC", "everybody may TRUNCATE on trace"),
    "hands on": ("GRANT SELECT ON docmem.memory TO docmem_reader WITH GRANT OPTION", "hand on SELECT on memory"),
    "makes tables": ("GRANT CREATE ON SCHEMA docmem TO docmem_reader", "may CREATE on docmem"),
    "by a group": (
        "CREATE ROLE x_group; GRANT INSERT ON docmem.memory TO x_group; GRANT x_group TO docmem_reader",
        "x_group may INSERT on memory",
    ),
    "reads no memory": ("REVOKE SELECT ON docmem.memory FROM docmem_reader", "may not SELECT memory"),
    "counts nothing": ("REVOKE INSERT, UPDATE ON docmem.usage FROM docmem_reader", "may not INSERT usage"),
    "sees no schema": ("REVOKE USAGE ON SCHEMA docmem FROM docmem_reader", "may not use schema docmem"),
    "calls nothing": ("REVOKE EXECUTE ON FUNCTION docmem.read FROM PUBLIC", "may not call docmem.read"),
    "plans for all": ("ALTER ROLE docmem_reader RESET plan_cache_mode", "plan_cache_mode = nothing of its own"),
    "waits for ever": ("ALTER ROLE docmem_reader SET statement_timeout = 0", "statement_timeout = 0"),
    "begins as a tenant": ("ALTER ROLE docmem_reader SET app.current_tenant = 'acme'", "begins as tenant acme"),
    "bypasses": ("ALTER ROLE docmem_reader BYPASSRLS", "docmem_reader has BYPASSRLS"),
    "is the server's": ("ALTER ROLE docmem_reader SUPERUSER", "docmem_reader has SUPERUSER"),
    "copies the server": ("ALTER ROLE docmem_reader REPLICATION", "docmem_reader has REPLICATION"),
    "owns it": ("GRANT docmem_owner TO docmem_reader", "is a member of docmem_owner"),
    "syncs": ("GRANT docmem_sync TO docmem_reader", "is a member of docmem_sync"),
    "writes all": ("GRANT pg_write_all_data TO docmem_reader", "is a member of pg_write_all_data"),
    "owns a table": ("ALTER TABLE docmem.job OWNER TO docmem_reader", "owns table docmem.job"),
    "is shut out": ("ALTER ROLE docmem_reader NOLOGIN", "may not log in"),
}

SYNC = {
    "writes no memory": ("REVOKE INSERT ON docmem.memory FROM docmem_sync", "may not INSERT memory"),
    "changes nothing": ("REVOKE UPDATE, DELETE ON ALL TABLES IN SCHEMA docmem FROM docmem_sync", "may not DELETE job"),
    "reads no quarantine": ("REVOKE SELECT ON docmem.quarantine FROM docmem_sync", "may not SELECT quarantine"),
    "sees no schema": ("REVOKE USAGE ON SCHEMA docmem FROM docmem_sync", "may not use schema docmem"),
    "makes no temporary tables": ("REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC, docmem_sync", "temporary"),
    "plans for all": ("ALTER ROLE docmem_sync SET plan_cache_mode = auto", "plan_cache_mode = auto"),
    "plans for all here": (
        "ALTER ROLE docmem_sync IN DATABASE {database} SET plan_cache_mode = auto",
        "plan_cache_mode = auto",
    ),
    "truncates": ("GRANT TRUNCATE ON docmem.memory TO docmem_sync", "may TRUNCATE on memory"),
    "is the server's": ("ALTER ROLE docmem_sync SUPERUSER", "docmem_sync has SUPERUSER"),
    "may become somebody": (
        "CREATE ROLE x_dba BYPASSRLS; CREATE ROLE x_between ROLE docmem_sync; GRANT x_dba TO x_between",
        "is a member of x_between",
    ),
}

OWNER = {
    "bypasses": ("ALTER ROLE docmem_owner BYPASSRLS", "docmem_owner has BYPASSRLS"),
    "is the server's": ("ALTER ROLE docmem_owner SUPERUSER", "docmem_owner has SUPERUSER"),
    "is the first superuser": (
        "ALTER TABLE docmem.memory OWNER TO docmem_admin; ALTER SCHEMA docmem OWNER TO docmem_admin",
        "docmem_admin owns table docmem.memory",
    ),
}


@dataclass(frozen=True)
class Spoilt:
    """How a database is spoilt, and what which check says of it."""

    name: str
    spoil: str
    said: str


FAULTS = [
    Spoilt(name, spoil, said)
    for name, kinds in {"schema": SCHEMA, "role reader": READER, "role sync": SYNC, "role owner": OWNER}.items()
    for spoil, said in kinds.values()
]
ADMINISTRATORS = re.compile("ROLE|OWNER TO|GRANT (docmem|pg)_")
BATCHES = 18
"""Three faults at a time, of parts that don't hide each other."""


@dataclass(frozen=True)
class Bench:
    """An index, and an administrator's session in its database."""

    settings: Settings
    admin: psycopg.Connection
    server: Server

    def failing(self) -> list[Check]:
        return [check for check in of_postgres(self.settings) if not check.ok]

    def run(self, hint: str) -> None:
        """What a hint says, as it is printed."""
        if hint == REPAIR:
            doctor.repair(self.settings)
            return
        who, _, statements = hint.partition(", in that database:\n")
        if who == "as an administrator":
            self.admin.execute(statements.encode())
            return
        assert who == "as the owner of schema docmem"
        with psycopg.connect(self.server.dsn("owner", database=self.admin.info.dbname), autocommit=True) as owner:
            owner.execute(statements.encode())


@pytest.fixture(params=["an owner", "no owner"])
def bench(indexed: Settings, postgres_server: Server, request: pytest.FixtureRequest) -> Iterator[Bench]:
    """With an owner's connection string, by which docmem mends, and without one."""
    database = psycopg.conninfo.conninfo_to_dict(indexed.dsn or "")["dbname"]
    settings = indexed if request.param == "an owner" else replace(indexed, owner_dsn=None)
    with psycopg.connect(postgres_server.dsn("admin", database=str(database)), autocommit=True) as admin:
        yield Bench(settings, admin, postgres_server)
        for role in ("docmem_reader", "docmem_sync", "docmem_owner"):
            admin.execute(f"ALTER ROLE {role} LOGIN NOSUPERUSER NOBYPASSRLS NOREPLICATION".encode())
        admin.execute("REASSIGN OWNED BY docmem_reader TO docmem_owner")
        admin.execute("DROP OWNED BY docmem_reader")
        for role in ("x_group", "x_between", "x_dba"):
            if admin.execute("SELECT FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is not None:
                admin.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


def test_each_fault_of_the_database_is_seen_and_mended_by_what_it_names(bench: Bench) -> None:
    assert bench.failing() == []
    # Who mends what is for an administrator is the same in both.
    faults = (
        FAULTS if bench.settings.owner_dsn else [fault for fault in FAULTS if not ADMINISTRATORS.search(fault.spoil)]
    )
    for number in range(BATCHES):
        batch = faults[number::BATCHES]
        for fault in batch:
            bench.admin.execute(fault.spoil.replace("{database}", f'"{bench.admin.info.dbname}"').encode())
        found = bench.failing()
        unseen = [one for one in batch if not any(one.name == each.name and one.said in each.detail for each in found)]
        assert unseen == [], found
        for _ in range(2):  # a table that comes back to its owner comes without the grants of who had it
            for check in found:
                bench.run(check.hint)
            found = bench.failing()
            if not found:
                break
        assert found == [], batch
    sync_tenant(bench.settings, "acme", rebuild=True)
    with db.session(bench.settings, "reader") as reader, db.tenant_transaction(reader, "acme") as cursor:
        assert cursor.execute("SELECT docmem.read('acme', '{}') IS NOT NULL AS served").fetchone() == {"served": True}


def test_an_index_of_which_a_table_is_gone_is_made_anew_by_what_is_printed(bench: Bench) -> None:
    put(bench.settings, "acme", {"knowledge/a.md": b"a\n"})
    sync_tenant(bench.settings, "acme")
    bench.admin.execute("DROP TABLE docmem.memory CASCADE")
    (check,) = bench.failing()
    assert "memory is gone" in check.detail
    statements, _, command = check.hint.partition("\nthen: ")
    bench.run(statements)
    assert command == "docmem sync"
    with_owner = replace(bench.settings, owner_dsn=bench.server.dsn("owner", database=bench.admin.info.dbname))
    sync_all(with_owner, ["acme"])
    assert [check for check in doctor.doctor(bench.settings) if not check.ok] == []


def test_on_the_embedded_server_repair_mends_what_elsewhere_takes_an_administrator(postgres_server: Server) -> None:
    embedded = Settings(root=postgres_server.data.parent.parent, embedding_model="none")
    sync_all(embedded, [])  # makes the index
    with psycopg.connect(postgres_server.dsn("admin"), autocommit=True) as admin:
        for role in ("docmem_reader", "docmem_sync"):
            admin.execute(f"ALTER ROLE {role} BYPASSRLS; GRANT docmem_owner TO {role}".encode())
        admin.execute("CREATE POLICY x ON docmem.memory USING (true)")
        admin.execute("CREATE VIEW docmem.v AS SELECT * FROM docmem.memory; GRANT SELECT ON docmem.v TO docmem_reader")
    assert {check.hint for check in of_postgres(embedded) if not check.ok} == {REPAIR}
    doctor.repair(embedded)
    assert [check for check in of_postgres(embedded) if not check.ok] == []


# --- the repos and their rows

RUINS = ("renamed", "detached", "gone", "garbage", "binary", "folder", "blob", "nothing")
"""Ways in which a branch goes away."""


def ruin(git_dir: Path, how: str) -> None:
    main, head = git_dir / git.MAIN, git.head(git_dir) or ""
    blob = git.blob_id(git_dir, head, "docmem.yaml") or ""
    if how in ("renamed", "detached", "gone", "folder"):
        git.move_ref(git_dir, git.MAIN, new=None, old=head)
    if how == "renamed":
        git.move_ref(git_dir, "refs/heads/master", new=head, old=None)
    elif how == "detached":
        (git_dir / "HEAD").write_text(f"{head}\n")
    elif how == "folder":
        (main / "x").mkdir(parents=True)
    elif how != "gone":
        main.write_bytes({"garbage": b"garbage", "binary": b"\xff\xfe", "blob": blob.encode()}.get(how, b"12" * 20))


@pytest.mark.parametrize("indexed_before", [False, True])
def test_a_branch_that_is_gone_is_never_up_to_date_and_one_command_brings_it_back(
    indexed: Settings, indexed_before: bool
) -> None:
    """Case F11."""
    heads = {}
    for name in RUINS:
        repository.create(indexed, name)
        heads[name] = put(indexed, name, {"knowledge/a.md": b"a\n"})
    if indexed_before:
        sync_all(indexed, RUINS)
    for name in RUINS:
        ruin(repository.open(indexed, name).git_dir, name)
    everybody = ["acme", *RUINS]
    said = {row["tenant"]: row for row in status(indexed)["tenants"]}
    synced = {one.tenant: one for one in sync_all(indexed, everybody)}
    found = {check.name: check for check in doctor.doctor(indexed)}
    assert ("error" in said["acme"], synced["acme"].error, found["repo acme"].ok) == (False, None, True)
    for name in RUINS:
        error = synced[name].error
        assert error is not None
        assert f"{name} has no branch main" in error.message
        assert said[name]["error"] == found[f"index {name}"].detail == error.message
        assert said[name]["hint"] == found[f"repo {name}"].hint == found[f"index {name}"].hint == error.hint
        subprocess.run(error.hint, shell=True, check=True)
        assert repository.open(indexed, name).head() == heads[name]
    assert [one.error for one in sync_all(indexed, everybody)] == [None] * len(everybody)
    assert [check for check in doctor.doctor(indexed) if not check.ok] == []


LOST = (
    "DELETE FROM docmem.document WHERE path = 'knowledge/a.md'",
    "DELETE FROM docmem.document WHERE path = 'knowledge/long.md' AND chunk > 1",
    "DELETE FROM docmem.memory",
    "DELETE FROM docmem.profile",
    "UPDATE docmem.document SET blob = repeat('0', 40) WHERE path = 'knowledge/a.md'",
)


def test_rows_that_were_lost_are_named_and_a_rebuild_brings_them_back(indexed: Settings) -> None:
    kept = memory("Plans Porto.")
    files = {"knowledge/a.md": b"a\n", "knowledge/long.md": b"word " * 5_000, kept.path: render_memory(kept)}
    put(indexed, "acme", files | {layout.profile_path(subject()): b"label: Ana\n"})
    sync_tenant(indexed, "acme")
    for lost in LOST:
        with db.session(indexed, "sync") as sync, db.tenant_transaction(sync, "acme") as cursor:
            cursor.execute(lost.encode())
            assert cursor.rowcount > 0
        failing = [check for check in doctor.doctor(indexed) if not check.ok]
        assert {check.hint for check in failing} == {"docmem sync acme --rebuild"}, lost
        assert "orphans acme" in {check.name for check in failing}
        (row,) = status(indexed)["tenants"]
        assert row.get("hint") == ("docmem sync acme --rebuild" if lost in (LOST[0], *LOST[2:4]) else None)
        sync_tenant(indexed, "acme", rebuild=True)
        assert [check for check in doctor.doctor(indexed) if not check.ok] == []


def served(shell: Shell, settings: Settings) -> Shell:
    for name, value in (("DSN", settings.dsn), ("SYNC_DSN", settings.sync_dsn), ("OWNER_DSN", settings.owner_dsn)):
        shell.set(f"DOCMEM_{name}", value or "")
    shell.set("DOCMEM_EMBEDDING_MODEL", settings.embedding_model or "none")
    return shell


def test_rows_of_a_tenant_whose_repo_is_gone_are_named_and_can_be_taken_away(indexed: Settings, shell: Shell) -> None:
    docmem = served(shell, indexed)
    repository.create(indexed, "zed")
    repository.create(indexed, "never")
    put(indexed, "zed", {"knowledge/a.md": b"a\n"})
    sync_all(indexed, ["acme", "zed"])
    for name in ("zed", "never"):
        shutil.rmtree(indexed.tenants / f"{name}.git")
    for command in ("status", "doctor", "sync"):
        ran = docmem(command)
        assert "zed" in ran.out + ran.err
        assert "docmem erase zed --all" in ran.out + ran.err
        assert "never" not in ran.out + ran.err
    assert docmem("status").code == docmem("doctor").code == 1
    assert docmem("erase", "never", "--all", "--yes").code == 1
    assert docmem("erase", "zed", "--all", "--yes").code == 0
    assert docmem("doctor").code == docmem("status").code == 0


def test_texts_without_a_vector_name_the_command_that_makes_them(indexed: Settings, shell: Shell) -> None:
    put(indexed, "acme", {"knowledge/a.md": b"a\n"})
    sync_tenant(indexed, "acme")
    without = replace(indexed, embedding_model="some/model")
    (check,) = [check for check in doctor.doctor(without) if not check.ok]
    assert (check.name, check.hint) == ("vectors acme", "docmem sync acme")
    ran = served(shell, without)("status")
    assert ran.code == 0
    assert "acme: 1 texts have no vector yet" in ran.err
    assert "docmem sync acme" in ran.err


def test_an_object_that_is_gone_or_spoilt_is_no_matter_for_sync(indexed: Settings, tmp_path: Path) -> None:
    for name in ("gone", "spoilt"):
        repository.create(indexed, name)
        head = put(indexed, name, {"knowledge/a.md": name.encode()})
        git_dir = repository.open(indexed, name).git_dir
        subprocess.run(["git", "clone", "--quiet", str(git_dir), str(tmp_path / name)], check=True)
        git.close(git_dir)
        loose_object(git_dir, git.blob_id(git_dir, head, "knowledge/a.md") or "", spoil=name == "spoilt")
        error = sync_all(indexed, [name, "acme"])[0].error
        assert error is not None
        assert "docmem doctor" in error.hint
    found = {check.name: check for check in doctor.doctor(indexed)}
    assert not found["repo gone"].ok
    for name in ("gone", "spoilt"):
        hint = found[f"index {name}"].hint
        git_dir = repository.open(indexed, name).git_dir
        assert hint.endswith(f"git --git-dir {git_dir} fetch --refetch PATH-OF-A-CLONE-OR-BACKUP main")
        git.close(git_dir)
        subprocess.run(hint.replace("PATH-OF-A-CLONE-OR-BACKUP", str(tmp_path / name)), shell=True, check=True)
        assert sync_tenant(indexed, name).after


def loose_object(git_dir: Path, name: str, *, spoil: bool) -> None:
    """Take an object out of a repo, or make it unreadable."""
    packs = list((git_dir / "objects" / "pack").glob("*.pack"))
    contents = [pack.read_bytes() for pack in packs]
    for pack in packs:
        for path in pack.parent.glob(f"{pack.stem}.*"):
            path.unlink()
    for content in contents:
        subprocess.run(["git", "--git-dir", str(git_dir), "unpack-objects", "-q"], input=content, check=True)
    place = git_dir / "objects" / name[:2] / name[2:]
    place.chmod(0o644)
    if spoil:
        place.write_bytes(place.read_bytes()[:8])
    else:
        place.unlink()
