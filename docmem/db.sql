What every session asks. See db.py.

-- name: session
-- Who may become whom: membership counts even where INHERIT or SET are off, since ADMIN can turn them on.
SELECT session_user::text AS role,
       ARRAY(
           SELECT rolname::text FROM pg_roles
           WHERE (rolsuper OR rolbypassrls
                  OR rolname IN ('pg_execute_server_program', 'pg_write_server_files', 'pg_read_server_files'))
             AND pg_has_role(session_user, oid, 'MEMBER')
           ORDER BY oid
       ) AS unbound,
       (SELECT rolcreaterole FROM pg_roles WHERE rolname = session_user)
           AND current_setting('server_version_num')::int < 160000 AS grants_itself,
       (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS pgvector;

-- name: set_tenant
-- Plans are made for this tenant: a cached one made for another gave 0 rows, silently.
-- A table that somebody has locked is waited for, not for ever.
-- Times come in UTC and ISO 8601 whatever the database is set to: until 9999-12-31T23:59:59Z is the year 10000 in Asia.
SELECT set_config('app.current_tenant', %(tenant)s, true), set_config('plan_cache_mode', 'force_custom_plan', true),
       set_config('timezone', 'UTC', true), set_config('datestyle', 'ISO', true),
       set_config('lock_timeout', '10s', true);

-- name: set_turn
-- The same for a turn, which waits for no lock and for no statement longer than it would for the answer.
SELECT set_config('app.current_tenant', %(tenant)s, true), set_config('plan_cache_mode', 'force_custom_plan', true),
       set_config('timezone', 'UTC', true), set_config('datestyle', 'ISO', true),
       set_config('lock_timeout', %(lock)s, true), set_config('statement_timeout', %(limit)s, true);

-- name: one_view
-- Each statement would see what was committed before it: a packet with the profile of one commit and the memories of
-- another.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;

-- name: listen
LISTEN docmem;

-- name: schema_version
SELECT docmem.schema_version() AS version;
