What `status` and `doctor` ask.

-- name: server
SELECT current_setting('server_version') AS version,
       (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS pgvector;

-- name: tenant
SELECT (SELECT revision FROM docmem.sync_state WHERE tenant_id = %(tenant)s) AS synced,
       (SELECT synced_at FROM docmem.sync_state WHERE tenant_id = %(tenant)s) AS synced_at,
       (SELECT files FROM docmem.sync_state WHERE tenant_id = %(tenant)s) AS files,
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

-- name: lacking
-- What of the index isn't there, or this session's role, a reader's, may not use as it must.
SELECT t.name AS what, CASE WHEN c.oid IS NULL THEN 'is gone' ELSE 'may not be used' END AS fault
FROM unnest(%(tables)s::text[]) AS t (name)
LEFT JOIN pg_class AS c
    ON c.relname = t.name AND c.relnamespace = 'docmem'::regnamespace AND c.relkind IN ('r', 'p')
WHERE c.oid IS NULL OR NOT has_table_privilege(c.oid, 'SELECT')
   OR t.name IN ('usage', 'trace') AND NOT has_table_privilege(c.oid, 'INSERT')
   OR t.name = 'usage' AND NOT has_table_privilege(c.oid, 'UPDATE')
UNION ALL
SELECT f.name || '()', CASE WHEN p.oid IS NULL THEN 'is gone' ELSE 'may not be used' END
FROM unnest(%(functions)s::text[]) AS f (name)
LEFT JOIN pg_proc AS p ON p.proname = f.name AND p.pronamespace = 'docmem'::regnamespace
WHERE p.oid IS NULL OR NOT has_function_privilege(p.oid, 'EXECUTE')
ORDER BY what;

-- name: somebody
-- Whom a packet is made for, to see whether packets are made.
SELECT coalesce(
    (SELECT subject FROM docmem.memory WHERE tenant_id = %(tenant)s ORDER BY id LIMIT 1),
    (SELECT subject FROM docmem.profile WHERE tenant_id = %(tenant)s ORDER BY subject LIMIT 1)
) AS subject;

-- name: locks
-- Who keeps readers from a table, or waits to: whoever comes later waits behind.
SELECT c.relname AS what, l.pid, a.usename AS who
FROM pg_locks AS l
JOIN pg_class AS c ON c.oid = l.relation AND c.relnamespace = to_regnamespace('docmem')
LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE l.locktype = 'relation' AND l.mode = 'AccessExclusiveLock'
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
ORDER BY l.granted DESC, c.relname;
