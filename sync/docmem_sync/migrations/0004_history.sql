-- What the index served, and when: one row a version of a memory, derived from the first-parent commits. `revision` is
-- the commit that opened it, `op` how (create, update, move), `closed_revision` the one that closed it; the recorded
-- times are these commits' effective ones, [from, to). The open row of an id is what `memory` holds. `step` counts an
-- id's versions: commits of one second have one time.
CREATE TABLE docmem.memory_history (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    id text NOT NULL,
    step integer NOT NULL,
    op text NOT NULL,
    revision text NOT NULL,
    recorded_from timestamptz NOT NULL,
    closed_revision text,
    recorded_to timestamptz,
    superseded_by text,
    path text NOT NULL,
    blob text NOT NULL,
    subject text NOT NULL,
    agent text,
    kind text NOT NULL,
    topic text,
    text text NOT NULL,
    confidence real,
    importance smallint NOT NULL,
    valid_from timestamptz,
    valid_until timestamptz,
    expires timestamptz,
    thread text,
    turns text[] NOT NULL,
    quote text,
    uri text,
    supersedes text[] NOT NULL,
    meta jsonb NOT NULL,
    PRIMARY KEY (tenant_id, id, step)
);

-- The same of profiles.
CREATE TABLE docmem.profile_history (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    subject text NOT NULL,
    step integer NOT NULL,
    op text NOT NULL,
    revision text NOT NULL,
    recorded_from timestamptz NOT NULL,
    closed_revision text,
    recorded_to timestamptz,
    path text NOT NULL,
    blob text NOT NULL,
    label text,
    preferred_language text,
    locale text,
    lifecycle_stage text,
    last_interaction_at timestamptz,
    remember boolean NOT NULL,
    attributes jsonb NOT NULL,
    pinned text[] NOT NULL,
    meta jsonb NOT NULL,
    PRIMARY KEY (tenant_id, subject, step)
);

CREATE INDEX memory_history_subject ON docmem.memory_history (tenant_id, subject);

-- The effective time of the revision that is indexed: no later commit is older. NULL: history isn't filled yet, and the
-- next sync derives it from all commits.
ALTER TABLE docmem.sync_state ADD COLUMN recorded_at timestamptz;

ALTER TABLE docmem.memory_history ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.memory_history FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.memory_history
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.profile_history ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.profile_history FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.profile_history
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

GRANT SELECT ON docmem.memory_history, docmem.profile_history TO docmem_reader;
GRANT SELECT, INSERT, UPDATE, DELETE ON docmem.memory_history, docmem.profile_history TO docmem_sync;

CREATE OR REPLACE FUNCTION docmem.schema_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 4;
