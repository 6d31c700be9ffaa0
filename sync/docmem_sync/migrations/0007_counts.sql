-- How many files are served, so that a sync without news has nothing to count. NULL: not counted yet.
ALTER TABLE docmem.sync_state ADD COLUMN files integer;

-- An index is built anew in temporary tables. Most databases let everyone make them; where not even we may let sync,
-- it says what an administrator has to grant.
DO $$
BEGIN
    EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO docmem_sync', current_database());
EXCEPTION WHEN insufficient_privilege THEN
    NULL;
END
$$;

CREATE OR REPLACE FUNCTION docmem.schema_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 7;
