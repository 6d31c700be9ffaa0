-- A vector is found by its text too: one that moves to another path, number or id keeps it.
CREATE INDEX memory_vector_hash ON docmem.memory_vector (tenant_id, projection_hash, set);
CREATE INDEX document_vector_hash ON docmem.document_vector (tenant_id, projection_hash, set);

CREATE OR REPLACE FUNCTION docmem.schema_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 12;
