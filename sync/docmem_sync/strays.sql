Rows without a file, files without a row, tenants without a repo. See strays.py.

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

-- name: served
-- The files that are served, of which blob, in how many rows, and whether each waits in quarantine.
SELECT f.path, f.blob, f.rows,
       EXISTS (SELECT FROM docmem.quarantine AS q WHERE q.tenant_id = %(tenant)s AND q.path = f.path) AS waits
FROM (
    SELECT path, blob, 1 AS rows FROM docmem.memory WHERE tenant_id = %(tenant)s
    UNION ALL
    SELECT path, blob, 1 FROM docmem.profile WHERE tenant_id = %(tenant)s
    UNION ALL
    SELECT path, min(blob), count(*) FROM docmem.document WHERE tenant_id = %(tenant)s GROUP BY path
) AS f;

-- name: waiting
SELECT path FROM docmem.quarantine WHERE tenant_id = %(tenant)s;

-- name: synced
SELECT revision FROM docmem.sync_state WHERE tenant_id = %(tenant)s;

-- name: rows
SELECT (SELECT count(*) FROM docmem.sync_state WHERE tenant_id = %(tenant)s) AS mirrored,
       (SELECT count(*) FROM docmem.memory WHERE tenant_id = %(tenant)s)
           + (SELECT count(*) FROM docmem.profile WHERE tenant_id = %(tenant)s)
           + (SELECT count(*) FROM docmem.document WHERE tenant_id = %(tenant)s) AS rows;
