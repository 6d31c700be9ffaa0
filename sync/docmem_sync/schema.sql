-- The schema as all migrations together make it. A test holds the two equal.

CREATE SCHEMA docmem;

-- How far a tenant's repo is mirrored, and how many files that are. `recorded_at` is the effective time of that
-- revision: no later commit is older. NULL: history isn't filled yet, and the next sync derives it from all commits.
CREATE TABLE docmem.sync_state (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    revision text NOT NULL,
    synced_at timestamptz NOT NULL,
    projection integer NOT NULL,
    recorded_at timestamptz,
    files integer,
    PRIMARY KEY (tenant_id)
);

-- The last valid docmem.yaml. `language` is the one that the tenant's tsv were made with; `languages`: those of texts
-- that name their own.
CREATE TABLE docmem.tenant_config (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    config jsonb NOT NULL,
    language text NOT NULL,
    retention jsonb NOT NULL,
    budgets jsonb NOT NULL,
    weights jsonb NOT NULL,
    blob text,
    revision text NOT NULL,
    languages text[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (tenant_id)
);

-- One row a memory file. `revision` is the last first-parent commit that changed the file.
CREATE TABLE docmem.memory (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    id text NOT NULL,
    path text NOT NULL,
    blob text NOT NULL,
    revision text NOT NULL,
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
    projection text NOT NULL,
    projection_hash text NOT NULL,
    tsv tsvector NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    language text,
    PRIMARY KEY (tenant_id, id)
);

-- Vectors of memories. PLAIN keeps them in the row: out of line an exact scan takes three times as long.
CREATE TABLE docmem.memory_vector (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    id text NOT NULL,
    set text NOT NULL,
    projection_hash text NOT NULL,
    embedding halfvec STORAGE PLAIN NOT NULL,
    PRIMARY KEY (tenant_id, id, set),
    FOREIGN KEY (tenant_id, id) REFERENCES docmem.memory ON DELETE CASCADE
);

-- One row a profile. `version` counts the first-parent commits that changed the file since it is there.
CREATE TABLE docmem.profile (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    subject text NOT NULL,
    path text NOT NULL,
    blob text NOT NULL,
    revision text NOT NULL,
    version integer NOT NULL,
    label text,
    preferred_language text,
    locale text,
    lifecycle_stage text,
    last_interaction_at timestamptz,
    remember boolean NOT NULL,
    attributes jsonb NOT NULL,
    pinned text[] NOT NULL,
    meta jsonb NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, subject)
);

-- Tenant-level Markdown. The chunks of a path, in order, are its text.
CREATE TABLE docmem.document (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    path text NOT NULL,
    chunk integer NOT NULL,
    id text NOT NULL,
    blob text NOT NULL,
    revision text NOT NULL,
    folder text NOT NULL,
    title text NOT NULL,
    text text NOT NULL,
    meta jsonb NOT NULL,
    projection text NOT NULL,
    projection_hash text NOT NULL,
    tsv tsvector NOT NULL,
    updated_at timestamptz NOT NULL,
    language text,
    PRIMARY KEY (tenant_id, path, chunk)
);

-- Vectors of documents' chunks.
CREATE TABLE docmem.document_vector (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    path text NOT NULL,
    chunk integer NOT NULL,
    set text NOT NULL,
    projection_hash text NOT NULL,
    embedding halfvec STORAGE PLAIN NOT NULL,
    PRIMARY KEY (tenant_id, path, chunk, set),
    FOREIGN KEY (tenant_id, path, chunk) REFERENCES docmem.document ON DELETE CASCADE
);

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

-- Which sets of vectors a tenant has.
-- `serves`: its vectors answer questions; another model's set is built beside it and serves once it is complete.
-- `indexed`: it has an HNSW index of its own. `revision`: up to there every text has a vector.
CREATE TABLE docmem.vector_set (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    set text NOT NULL,
    serves boolean NOT NULL,
    indexed boolean NOT NULL,
    revision text,
    used_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, set)
);

-- Files that can't be read as format 1. What they said last stays served; a file waits here until its blob changes.
CREATE TABLE docmem.quarantine (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    path text NOT NULL,
    blob text NOT NULL,
    revision text NOT NULL,
    code text NOT NULL,
    line integer NOT NULL,
    reason text NOT NULL,
    since timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, path)
);

-- A subject's cost is its own. There is no GIN index on tsv: `@@` isn't leakproof, so row-level security keeps
-- the planner off it, and it would only make writes dearer.
CREATE INDEX memory_subject ON docmem.memory (tenant_id, subject);
CREATE INDEX memory_path ON docmem.memory (tenant_id, path);
CREATE INDEX memory_history_subject ON docmem.memory_history (tenant_id, subject);
CREATE INDEX memory_language ON docmem.memory (tenant_id, language) WHERE language IS NOT NULL;
CREATE INDEX document_language ON docmem.document (tenant_id, language) WHERE language IS NOT NULL;

-- Without a tenant the setting is NULL, after a transaction '': neither is anybody's.
-- Consolidations that failed for good. Operational: a rebuild keeps it, and losing it loses no memory.
CREATE TABLE docmem.job (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    thread text NOT NULL,
    subject text NOT NULL,
    agent text NOT NULL,
    attempts integer NOT NULL,
    reason text NOT NULL,
    failed_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, thread)
);

-- Where commits went when a history was written anew by an erase. A rebuild keeps it.
CREATE TABLE docmem.revision_map (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    old text NOT NULL,
    new text NOT NULL,
    PRIMARY KEY (tenant_id, old)
);

-- How often, and in which run last, a memory was given to an agent. Operational: a rebuild keeps it, and losing it loses
-- no memory.
CREATE TABLE docmem.usage (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    memory text NOT NULL,
    agent text NOT NULL,
    last_used_run bigint NOT NULL,
    uses bigint NOT NULL,
    used_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, memory, agent)
);

-- What a run was given: each piece of each packet, and the file and commit it came from. `packet` is a hash of the
-- packet's text. A row without a packet says that a run was counted. Operational, and kept for 30 days.
CREATE TABLE docmem.trace (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    agent text NOT NULL,
    run bigint NOT NULL,
    packet text NOT NULL,
    starts integer NOT NULL,
    ends integer NOT NULL,
    block text NOT NULL,
    memory text NOT NULL,
    path text NOT NULL,
    revision text NOT NULL,
    subject text NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, agent, run, packet, starts)
);

-- The key of a tenant's notifications. Channels know no row-level security: what is said on them is hashed with this,
-- and so means something only to who may read the tenant's rows. A rebuild keeps it, so that caches go on hearing.
CREATE TABLE docmem.channel (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    key text NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', ''),
    PRIMARY KEY (tenant_id)
);

CREATE INDEX usage_run ON docmem.usage (tenant_id, agent, last_used_run);
CREATE INDEX trace_at ON docmem.trace (tenant_id, at);

ALTER TABLE docmem.sync_state ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.sync_state FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.sync_state
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.tenant_config ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.tenant_config FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.tenant_config
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.memory ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.memory FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.memory
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.memory_vector ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.memory_vector FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.memory_vector
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.profile ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.profile FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.profile
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.document ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.document FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.document
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.document_vector ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.document_vector FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.document_vector
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.vector_set ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.vector_set FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.vector_set
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.quarantine ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.quarantine FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.quarantine
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

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

ALTER TABLE docmem.job ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.job FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.job
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.revision_map ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.revision_map FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.revision_map
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.usage ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.usage FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.usage
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.trace ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.trace FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.trace
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.channel ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.channel FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.channel
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

-- A text as somebody types it who leaves accents out. Built in: the extension unaccent isn't everywhere.
CREATE FUNCTION docmem.folded(text text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN translate(
    replace(replace(replace(replace(
        normalize(regexp_replace(
            normalize(text, NFD), '([A-Za-z\u0391-\u03a9\u03b1-\u03c9])[\u0300-\u036f]+', '\1', 'g'
        ), NFC),
        'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'þ', 'th'),
    'øØłŁđĐðÐıİ', 'oOlLdDdDii'
);

-- The lexemes of a text. With accents: those of the text as it is, which stem best, and those without accents, at the
-- same places. In UTF-8 only a text of ASCII has as many bytes as characters.
CREATE FUNCTION docmem.words(language regconfig, text text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN octet_length(text) = char_length(text) THEN to_tsvector(language, text)
    ELSE (to_tsvector(language, normalize(text, NFC))::text || ' '
          || to_tsvector(language, docmem.folded(text))::text)::tsvector
END;

CREATE FUNCTION docmem.schema_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 7;

GRANT USAGE ON SCHEMA docmem TO docmem_sync, docmem_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA docmem TO docmem_reader;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA docmem TO docmem_sync;
GRANT INSERT, UPDATE ON docmem.usage, docmem.trace TO docmem_reader;
