-- Where commits went when a history was written anew by an erase. A rebuild keeps it.
CREATE TABLE docmem.revision_map (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    old text NOT NULL,
    new text NOT NULL,
    PRIMARY KEY (tenant_id, old)
);

ALTER TABLE docmem.revision_map ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.revision_map FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.revision_map
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

GRANT SELECT ON docmem.revision_map TO docmem_reader;
GRANT SELECT, INSERT, UPDATE, DELETE ON docmem.revision_map TO docmem_sync;

CREATE OR REPLACE FUNCTION docmem.schema_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 3;
