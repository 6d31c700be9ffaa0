What the migrations need around them.

-- name: lock
SELECT pg_advisory_xact_lock(hashtextextended('docmem.migrate', 0));

-- name: lock_timeout
-- Whoever holds a table, or migrates, is waited for, not for ever.
SELECT set_config('lock_timeout', '10s', true);

-- name: schema_there
-- Readable without rights on the schema, which a role has only once it is migrated.
SELECT 1 FROM pg_namespace WHERE nspname = 'docmem';

-- name: extension_there
SELECT 1 FROM pg_extension WHERE extname = 'vector';

-- name: create_extension
CREATE EXTENSION vector;

-- name: sync_there
SELECT 1 FROM pg_roles WHERE rolname = 'docmem_sync';

-- name: create_sync
CREATE ROLE docmem_sync NOLOGIN NOSUPERUSER NOBYPASSRLS;

-- name: reader_there
SELECT 1 FROM pg_roles WHERE rolname = 'docmem_reader';

-- name: create_reader
CREATE ROLE docmem_reader NOLOGIN NOSUPERUSER NOBYPASSRLS;

-- name: sync_plans
ALTER ROLE docmem_sync SET plan_cache_mode = force_custom_plan;

-- name: sync_timeout
ALTER ROLE docmem_sync SET statement_timeout = '10min';

-- name: reader_plans
ALTER ROLE docmem_reader SET plan_cache_mode = force_custom_plan;

-- name: reader_timeout
ALTER ROLE docmem_reader SET statement_timeout = '10s';

-- name: lacks_group
-- Whether a role that logs in has not what a group role was granted. A role that isn't there lacks nothing.
SELECT 1
FROM pg_roles AS login
WHERE login.rolname = %(login)s
  AND NOT EXISTS (SELECT FROM pg_roles AS one
                  WHERE one.rolname = %(group)s AND pg_has_role(login.oid, one.oid, 'USAGE'));

-- name: grant_group
GRANT {group} TO {login};
