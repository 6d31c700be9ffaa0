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

ALTER TABLE docmem.job ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.job FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.job
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

GRANT SELECT ON docmem.job TO docmem_reader;
GRANT SELECT, INSERT, UPDATE, DELETE ON docmem.job TO docmem_sync;

CREATE OR REPLACE FUNCTION docmem.schema_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 2;
