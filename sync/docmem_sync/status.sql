What `status` and `doctor` ask.

-- name: server
SELECT current_setting('server_version') AS version,
       (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS pgvector;

-- name: tenant
SELECT (SELECT revision FROM docmem.sync_state WHERE tenant_id = %(tenant)s) AS synced,
       (SELECT synced_at FROM docmem.sync_state WHERE tenant_id = %(tenant)s) AS synced_at,
       (SELECT count(*) FROM docmem.memory WHERE tenant_id = %(tenant)s)
           + (SELECT count(*) FROM docmem.profile WHERE tenant_id = %(tenant)s)
           + (SELECT count(*) FROM docmem.document WHERE tenant_id = %(tenant)s AND chunk = 0) AS rows;

-- name: quarantine
SELECT path, code, line, reason FROM docmem.quarantine WHERE tenant_id = %(tenant)s ORDER BY path;

-- name: undeclared
-- Keys of served profiles that no agent of the tenant declares, and how many profiles have them.
WITH declared AS (
    SELECT k #>> '{}' AS key
    FROM docmem.tenant_config AS c, jsonb_path_query(c.config, '$.agents.*.attributes[*].key') AS k
    WHERE c.tenant_id = %(tenant)s
)
SELECT a.key, count(*) AS profiles
FROM docmem.profile AS p, jsonb_object_keys(p.attributes) AS a (key)
WHERE p.tenant_id = %(tenant)s AND a.key NOT IN (SELECT key FROM declared)
GROUP BY a.key
ORDER BY profiles DESC, a.key;

-- name: open_tables
-- Tables that row-level security doesn't close to everyone, their owner too, or that have no policy.
SELECT c.relname AS table
FROM pg_class AS c
WHERE c.relnamespace = 'docmem'::regnamespace AND c.relkind IN ('r', 'p')
  AND NOT (c.relrowsecurity AND c.relforcerowsecurity
           AND EXISTS (SELECT FROM pg_policy AS p WHERE p.polrelid = c.oid))
ORDER BY c.relname;

-- name: writable_tables
-- Tables that this session's role may write to, and a reader may not.
SELECT c.relname AS table
FROM pg_class AS c
WHERE c.relnamespace = 'docmem'::regnamespace AND c.relkind IN ('r', 'p')
  AND has_table_privilege(
      c.oid, CASE WHEN c.relname IN ('usage', 'trace') THEN '' ELSE 'INSERT, UPDATE, ' END || 'DELETE, TRUNCATE'
  )
ORDER BY c.relname;

-- name: unreadable_tables
SELECT c.relname AS table
FROM pg_class AS c
WHERE c.relnamespace = 'docmem'::regnamespace AND c.relkind IN ('r', 'p')
  AND NOT has_table_privilege(c.oid, 'SELECT')
ORDER BY c.relname;
