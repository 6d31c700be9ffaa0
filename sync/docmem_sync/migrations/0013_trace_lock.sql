-- Whoever may UPDATE a table may lock it, and sync prunes this one: a reader that never ended its transaction stopped all.
REVOKE UPDATE ON docmem.trace FROM docmem_reader;

CREATE OR REPLACE FUNCTION docmem.schema_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 13;
