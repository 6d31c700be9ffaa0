Taking a subject, a memory or a tenant out of every table. `{table}` and `{column}` are names from the catalogue, so
that a table which a later migration adds is covered without being named here.

-- name: columns
-- Every column of every table: what can be searched, and by what its rows can belong to somebody.
SELECT c.relname::text AS "table", a.attname::text AS "column"
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = 'docmem'::regnamespace AND c.relkind IN ('r', 'p')
ORDER BY c.relname, a.attnum;

-- name: delete_equal
DELETE FROM docmem.{table} WHERE tenant_id = %(tenant)s AND {column} = ANY(%(values)s);

-- name: delete_below
DELETE FROM docmem.{table} WHERE tenant_id = %(tenant)s AND starts_with({column}, %(folder)s);

-- name: delete_all
DELETE FROM docmem.{table} WHERE tenant_id = %(tenant)s;

-- name: threads
SELECT DISTINCT thread FROM docmem.job WHERE tenant_id = %(tenant)s AND subject = %(subject)s ORDER BY thread;

-- name: unname
UPDATE docmem.memory_history SET superseded_by = NULL
WHERE tenant_id = %(tenant)s AND superseded_by = ANY(%(memories)s);

-- name: derive_again
-- The next sync looks at all commits.
UPDATE docmem.sync_state SET recorded_at = NULL WHERE tenant_id = %(tenant)s;

-- name: recount
UPDATE docmem.sync_state AS s SET files =
    (SELECT count(*) FROM docmem.memory WHERE tenant_id = %(tenant)s)
    + (SELECT count(*) FROM docmem.profile WHERE tenant_id = %(tenant)s)
    + (SELECT count(*) FROM docmem.document WHERE tenant_id = %(tenant)s AND chunk = 0)
WHERE s.tenant_id = %(tenant)s;

-- name: map_revisions
INSERT INTO docmem.revision_map (tenant_id, old, new)
SELECT %(tenant)s, r.old, r.new FROM json_to_recordset(%(rows)s::json) AS r (old text, new text)
ON CONFLICT (tenant_id, old) DO UPDATE SET new = excluded.new;

-- name: follow_revisions
-- What an earlier erase moved moves on.
UPDATE docmem.revision_map AS m SET new = r.new
FROM json_to_recordset(%(rows)s::json) AS r (old text, new text)
WHERE m.tenant_id = %(tenant)s AND m.new = r.old;

-- name: move_rows
UPDATE docmem.{table} AS t SET {column} = m.new
FROM docmem.revision_map AS m
WHERE t.tenant_id = %(tenant)s AND m.tenant_id = %(tenant)s AND t.{column} = m.old;

-- name: count_saying
-- A row is written out once, and then searched for each string.
WITH row AS MATERIALIZED (
    SELECT to_jsonb(t)::text AS said FROM docmem.{table} AS t WHERE tenant_id = %(tenant)s
)
SELECT count(*) AS found FROM row
WHERE EXISTS (SELECT FROM unnest(%(needles)s::text[]) AS n WHERE strpos(row.said, n) > 0);

-- name: count_all
SELECT count(*) AS found FROM docmem.{table} WHERE tenant_id = %(tenant)s;
