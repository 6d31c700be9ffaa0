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

GRANT SELECT ON docmem.usage, docmem.trace, docmem.channel TO docmem_reader;
GRANT INSERT, UPDATE ON docmem.usage, docmem.trace TO docmem_reader;
GRANT SELECT, INSERT, UPDATE, DELETE ON docmem.usage, docmem.trace, docmem.channel TO docmem_sync;

CREATE OR REPLACE FUNCTION docmem.schema_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 6;
