An index built beside the one that is served, in tables that nobody else sees and that end with the transaction; then
what differs is swapped in. `{…}` are names from the catalogue, so that a column which a migration adds is carried along.

-- name: columns
SELECT attname::text AS "column" FROM pg_attribute
WHERE attrelid = ('docmem.' || %(table)s)::regclass AND attnum > 0 AND NOT attisdropped
  AND attname NOT IN ('tenant_id', 'tsv', 'closed_revision', 'recorded_to', 'superseded_by')
ORDER BY attnum;

-- name: create
-- `number`: which commit it is of.
CREATE TEMPORARY TABLE {stage} ON COMMIT DROP AS
SELECT {columns}, 0::integer AS number FROM docmem.{table} WITH NO DATA;

-- name: create_closed
CREATE TEMPORARY TABLE {stage} (
    key text, step integer, closed_revision text, recorded_to timestamptz
) ON COMMIT DROP;

-- name: create_superseded
CREATE TEMPORARY TABLE {stage} (key text, step integer, superseded_by text, number integer) ON COMMIT DROP;

-- name: copy
COPY {stage} FROM STDIN;

-- name: analyze
ANALYZE {stage};

-- name: drop_closed
-- What was written of a version that closed after all.
DELETE FROM {stage} AS s
WHERE NOT EXISTS (
    SELECT FROM {history} AS h
    WHERE h.{key} = s.{key} AND h.number = s.number
      AND NOT EXISTS (SELECT FROM {closed} AS c WHERE c.key = h.{key} AND c.step = h.step)
);

-- name: drop_earlier
-- The last state of a document counts.
DELETE FROM {stage} AS s USING (SELECT {key}, max(number) AS number FROM {stage} GROUP BY {key}) AS last
WHERE s.{key} = last.{key} AND s.number < last.number;

-- name: gone_memories
SELECT t.id AS key, t.path FROM docmem.memory AS t
WHERE t.tenant_id = %(tenant)s AND NOT EXISTS (SELECT FROM stage_memory AS s WHERE s.id = t.id);

-- name: gone_profiles
SELECT t.path AS key, t.path FROM docmem.profile AS t
WHERE t.tenant_id = %(tenant)s AND NOT EXISTS (SELECT FROM stage_profile AS s WHERE s.subject = t.subject);

-- name: gone_documents
SELECT t.path AS key, t.path FROM docmem.document AS t
WHERE t.tenant_id = %(tenant)s AND t.chunk = 0 AND NOT EXISTS (SELECT FROM stage_document AS s WHERE s.path = t.path);

-- name: delete_gone
DELETE FROM docmem.{table} AS t
WHERE t.tenant_id = %(tenant)s AND NOT EXISTS (SELECT FROM {stage} AS s WHERE ({s_key}) = ({t_key}));

-- name: swap_memory
INSERT INTO docmem.memory (tenant_id, {columns}, tsv)
SELECT %(tenant)s, {s_columns}, docmem.words(coalesce(s.language, %(language)s)::regconfig, s.projection)
FROM stage_memory AS s
LEFT JOIN docmem.memory AS t ON t.tenant_id = %(tenant)s AND t.id = s.id
WHERE t.id IS NULL OR ({t_columns}) IS DISTINCT FROM ({s_columns})
ON CONFLICT (tenant_id, id) DO UPDATE SET ({columns}, tsv) = ROW ({x_columns}, excluded.tsv);

-- name: swap_profile
INSERT INTO docmem.profile (tenant_id, {columns})
SELECT %(tenant)s, {s_columns}
FROM stage_profile AS s
LEFT JOIN docmem.profile AS t ON t.tenant_id = %(tenant)s AND t.subject = s.subject
WHERE t.subject IS NULL OR ({t_columns}) IS DISTINCT FROM ({s_columns})
ON CONFLICT (tenant_id, subject) DO UPDATE SET ({columns}) = ROW ({x_columns});

-- name: swap_document
INSERT INTO docmem.document (tenant_id, {columns}, tsv)
SELECT %(tenant)s, {s_columns}, docmem.words(coalesce(s.language, %(language)s)::regconfig, s.projection)
FROM stage_document AS s
LEFT JOIN docmem.document AS t ON t.tenant_id = %(tenant)s AND t.path = s.path AND t.chunk = s.chunk
WHERE t.path IS NULL OR ({t_columns}) IS DISTINCT FROM ({s_columns})
ON CONFLICT (tenant_id, path, chunk) DO UPDATE SET ({columns}, tsv) = ROW ({x_columns}, excluded.tsv);

-- name: documents_differ
SELECT count(DISTINCT s.path) AS files
FROM stage_document AS s
LEFT JOIN docmem.document AS t ON t.tenant_id = %(tenant)s AND t.path = s.path AND t.chunk = s.chunk
WHERE t.path IS NULL OR ({t_columns}) IS DISTINCT FROM ({s_columns});

-- name: swap_history
INSERT INTO docmem.{table} (tenant_id, {columns}, closed_revision, recorded_to)
SELECT %(tenant)s, {s_columns}, c.closed_revision, c.recorded_to
FROM {stage} AS s
LEFT JOIN {closed} AS c ON c.key = s.{key} AND c.step = s.step
LEFT JOIN docmem.{table} AS t ON t.tenant_id = %(tenant)s AND t.{key} = s.{key} AND t.step = s.step
WHERE t.step IS NULL
   OR ({t_columns}, t.closed_revision, t.recorded_to)
      IS DISTINCT FROM ({s_columns}, c.closed_revision, c.recorded_to)
ON CONFLICT (tenant_id, {key}, step) DO UPDATE SET
    ({columns}, closed_revision, recorded_to) = ROW ({x_columns}, excluded.closed_revision, excluded.recorded_to);

-- name: swap_superseded
-- The first word on what replaced a version stands.
UPDATE docmem.memory_history AS h SET superseded_by = m.superseded_by
FROM (
    SELECT t.id, t.step, first.superseded_by
    FROM docmem.memory_history AS t
    LEFT JOIN (
        SELECT DISTINCT ON (key, step) key, step, superseded_by FROM stage_superseded
        ORDER BY key, step, number, superseded_by
    ) AS first ON first.key = t.id AND first.step = t.step
    WHERE t.tenant_id = %(tenant)s AND t.superseded_by IS DISTINCT FROM first.superseded_by
) AS m
WHERE h.tenant_id = %(tenant)s AND h.id = m.id AND h.step = m.step;
