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

-- name: lacking
-- What of the index isn't there, or this session's role, a reader's, may not use as it must.
SELECT t.name AS what, CASE WHEN c.oid IS NULL THEN 'is gone' ELSE 'may not be used' END AS fault
FROM unnest(%(tables)s::text[]) AS t (name)
LEFT JOIN pg_class AS c
    ON c.relname = t.name AND c.relnamespace = 'docmem'::regnamespace AND c.relkind IN ('r', 'p')
WHERE c.oid IS NULL OR NOT has_table_privilege(c.oid, 'SELECT')
   OR t.name IN ('usage', 'trace') AND NOT (has_table_privilege(c.oid, 'INSERT')
                                            AND has_table_privilege(c.oid, 'UPDATE'))
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

-- name: orphans
-- What belongs to nothing; each must be 0.
SELECT 'open versions of no memory' AS what, count(*) AS found
FROM docmem.memory_history AS h
WHERE h.tenant_id = %(tenant)s AND h.recorded_to IS NULL AND NOT EXISTS (
    SELECT FROM docmem.memory AS m
    WHERE m.tenant_id = %(tenant)s AND m.id = h.id AND m.path = h.path AND m.blob = h.blob
)
UNION ALL
SELECT 'memories without an open version', count(*)
FROM docmem.memory AS m
WHERE m.tenant_id = %(tenant)s AND NOT EXISTS (
    SELECT FROM docmem.memory_history AS h
    WHERE h.tenant_id = %(tenant)s AND h.id = m.id AND h.recorded_to IS NULL
)
UNION ALL
SELECT 'open versions of no profile', count(*)
FROM docmem.profile_history AS h
WHERE h.tenant_id = %(tenant)s AND h.recorded_to IS NULL AND NOT EXISTS (
    SELECT FROM docmem.profile AS p WHERE p.tenant_id = %(tenant)s AND p.subject = h.subject AND p.blob = h.blob
)
UNION ALL
SELECT 'profiles without an open version', count(*)
FROM docmem.profile AS p
WHERE p.tenant_id = %(tenant)s AND NOT EXISTS (
    SELECT FROM docmem.profile_history AS h
    WHERE h.tenant_id = %(tenant)s AND h.subject = p.subject AND h.recorded_to IS NULL
)
UNION ALL
SELECT 'vectors of no memory', count(*)
FROM docmem.memory_vector AS v
WHERE v.tenant_id = %(tenant)s AND NOT EXISTS (
    SELECT FROM docmem.memory AS m WHERE m.tenant_id = %(tenant)s AND m.id = v.id
)
UNION ALL
SELECT 'vectors of no document', count(*)
FROM docmem.document_vector AS v
WHERE v.tenant_id = %(tenant)s AND NOT EXISTS (
    SELECT FROM docmem.document AS d WHERE d.tenant_id = %(tenant)s AND d.path = v.path AND d.chunk = v.chunk
);

-- name: served_paths
-- The files that are served, whether each waits in quarantine, and the revision that they are of.
SELECT s.revision, f.path,
       EXISTS (SELECT FROM docmem.quarantine AS q WHERE q.tenant_id = %(tenant)s AND q.path = f.path) AS waits
FROM docmem.sync_state AS s
CROSS JOIN (
    SELECT path FROM docmem.memory WHERE tenant_id = %(tenant)s
    UNION ALL
    SELECT path FROM docmem.profile WHERE tenant_id = %(tenant)s
    UNION ALL
    SELECT path FROM docmem.document WHERE tenant_id = %(tenant)s AND chunk = 0
) AS f
WHERE s.tenant_id = %(tenant)s;
