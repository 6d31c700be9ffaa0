Vectors of what has none yet. A row counts as embedded when a vector of the set has its projection's hash.

-- name: open_set
-- A tenant's first set serves from its first vector on; another is built beside it until it is complete.
INSERT INTO docmem.vector_set (tenant_id, set, serves, indexed, used_at)
SELECT %(tenant)s, %(set)s, NOT EXISTS (SELECT FROM docmem.vector_set WHERE tenant_id = %(tenant)s AND serves), false,
       clock_timestamp()
ON CONFLICT DO NOTHING;

-- name: standing
-- Where a set stands. `current`: it has a vector of every text of the revision that is served.
SELECT v.serves, v.revision = s.revision AS current, v.used_at < now() - interval '1 hour' AS stale,
       EXISTS (SELECT FROM docmem.vector_set AS o WHERE o.tenant_id = %(tenant)s AND o.set <> v.set) AS others
FROM docmem.vector_set AS v
LEFT JOIN docmem.sync_state AS s ON s.tenant_id = v.tenant_id
WHERE v.tenant_id = %(tenant)s AND v.set = %(set)s;

-- name: memories_without_vector
SELECT m.id, m.projection, m.projection_hash
FROM docmem.memory AS m
WHERE m.tenant_id = %(tenant)s AND m.projection_hash <> ALL (%(refused)s) AND NOT EXISTS (
    SELECT FROM docmem.memory_vector AS v
    WHERE v.tenant_id = %(tenant)s AND v.id = m.id AND v.set = %(set)s AND v.projection_hash = m.projection_hash
)
ORDER BY m.updated_at DESC, m.id
LIMIT %(limit)s;

-- name: documents_without_vector
SELECT d.path, d.chunk, d.projection, d.projection_hash
FROM docmem.document AS d
WHERE d.tenant_id = %(tenant)s AND d.projection_hash <> ALL (%(refused)s) AND NOT EXISTS (
    SELECT FROM docmem.document_vector AS v
    WHERE v.tenant_id = %(tenant)s AND v.path = d.path AND v.chunk = d.chunk AND v.set = %(set)s
      AND v.projection_hash = d.projection_hash
)
ORDER BY d.updated_at DESC, d.path, d.chunk
LIMIT %(limit)s;

-- name: write_memory_vectors
-- A vector may come late: it is taken only where the row still says what was embedded. FOR SHARE makes a change of
-- the row wait for us, or us for it; then its hash is looked at again.
WITH still AS (
    SELECT m.id, r.projection_hash, r.embedding
    FROM docmem.memory AS m
    JOIN json_to_recordset(%(rows)s::json) AS r (id text, projection_hash text, embedding text)
        ON r.id = m.id AND r.projection_hash = m.projection_hash
    WHERE m.tenant_id = %(tenant)s
    FOR SHARE OF m
)
INSERT INTO docmem.memory_vector (tenant_id, id, set, projection_hash, embedding)
SELECT %(tenant)s, still.id, %(set)s, still.projection_hash, still.embedding::halfvec FROM still
ON CONFLICT (tenant_id, id, set) DO UPDATE SET
    projection_hash = excluded.projection_hash, embedding = excluded.embedding;

-- name: write_document_vectors
WITH still AS (
    SELECT d.path, d.chunk, r.projection_hash, r.embedding
    FROM docmem.document AS d
    JOIN json_to_recordset(%(rows)s::json) AS r (path text, chunk integer, projection_hash text, embedding text)
        ON r.path = d.path AND r.chunk = d.chunk AND r.projection_hash = d.projection_hash
    WHERE d.tenant_id = %(tenant)s
    FOR SHARE OF d
)
INSERT INTO docmem.document_vector (tenant_id, path, chunk, set, projection_hash, embedding)
SELECT %(tenant)s, still.path, still.chunk, %(set)s, still.projection_hash, still.embedding::halfvec FROM still
ON CONFLICT (tenant_id, path, chunk, set) DO UPDATE SET
    projection_hash = excluded.projection_hash, embedding = excluded.embedding;

-- name: settle
-- Everything was tried: the set serves from now on. It is current where every text has its vector in the same view of
-- the tables as the revision is read.
UPDATE docmem.vector_set AS t SET serves = true, used_at = clock_timestamp(), revision = CASE
    WHEN EXISTS (
        SELECT FROM docmem.memory AS m
        WHERE m.tenant_id = %(tenant)s AND NOT EXISTS (
            SELECT FROM docmem.memory_vector AS v
            WHERE v.tenant_id = %(tenant)s AND v.id = m.id AND v.set = %(set)s AND v.projection_hash = m.projection_hash
        )
    ) OR EXISTS (
        SELECT FROM docmem.document AS d
        WHERE d.tenant_id = %(tenant)s AND NOT EXISTS (
            SELECT FROM docmem.document_vector AS v
            WHERE v.tenant_id = %(tenant)s AND v.path = d.path AND v.chunk = d.chunk AND v.set = %(set)s
              AND v.projection_hash = d.projection_hash
        )
    ) THEN NULL
    ELSE (SELECT s.revision FROM docmem.sync_state AS s WHERE s.tenant_id = %(tenant)s)
END
WHERE t.tenant_id = %(tenant)s AND t.set = %(set)s;

-- name: touch
UPDATE docmem.vector_set SET used_at = clock_timestamp() WHERE tenant_id = %(tenant)s AND set = %(set)s;

-- name: replaced_sets
-- Sets that nobody has made vectors of for a while, where the one at hand serves.
SELECT o.set, o.indexed FROM docmem.vector_set AS o
WHERE o.tenant_id = %(tenant)s AND o.set <> %(set)s AND o.used_at < now() - %(grace)s * interval '1 second'
  AND EXISTS (SELECT FROM docmem.vector_set AS v WHERE v.tenant_id = %(tenant)s AND v.set = %(set)s AND v.serves);

-- name: drop_memory_vectors
DELETE FROM docmem.memory_vector WHERE tenant_id = %(tenant)s AND set = %(set)s;

-- name: drop_document_vectors
DELETE FROM docmem.document_vector WHERE tenant_id = %(tenant)s AND set = %(set)s;

-- name: drop_set
DELETE FROM docmem.vector_set WHERE tenant_id = %(tenant)s AND set = %(set)s;

-- name: rename_memory_vectors
UPDATE docmem.memory_vector SET set = %(to)s WHERE tenant_id = %(tenant)s AND set = %(set)s;

-- name: rename_document_vectors
UPDATE docmem.document_vector SET set = %(to)s WHERE tenant_id = %(tenant)s AND set = %(set)s;

-- name: rename_set
UPDATE docmem.vector_set SET set = %(to)s WHERE tenant_id = %(tenant)s AND set = %(set)s;

-- name: current
-- Whether a set of this model has a vector of every text of the revision that is served, and nothing else is to be
-- seen to: no other set to drop, no hour to note.
SELECT EXISTS (
    SELECT FROM docmem.vector_set AS v
    JOIN docmem.sync_state AS s ON s.tenant_id = v.tenant_id AND s.revision = v.revision
    WHERE v.tenant_id = %(tenant)s AND regexp_replace(v.set, '/[0-9]+/[0-9]+$', '') = %(model)s
      AND v.used_at >= now() - interval '1 hour'
      AND NOT EXISTS (SELECT FROM docmem.vector_set AS o WHERE o.tenant_id = %(tenant)s AND o.set <> v.set)
) AS current;

-- name: pending
-- Rows without a vector of the model's present set: the one that was made or touched last. A set is named
-- model/dimension/projection, and the dimension is known to the model alone; a projection of another version has another
-- hash anyway.
WITH chosen AS (
    SELECT v.set, EXISTS (
        SELECT FROM docmem.sync_state AS s WHERE s.tenant_id = v.tenant_id AND s.revision = v.revision
    ) AS complete
    FROM docmem.vector_set AS v
    WHERE v.tenant_id = %(tenant)s AND regexp_replace(v.set, '/[0-9]+/[0-9]+$', '') = %(model)s
    ORDER BY v.used_at DESC, v.set
    LIMIT 1
)
SELECT CASE WHEN EXISTS (SELECT FROM chosen WHERE complete) THEN 0 ELSE (
    SELECT count(*) FROM docmem.memory AS m
    WHERE m.tenant_id = %(tenant)s AND NOT EXISTS (
        SELECT FROM docmem.memory_vector AS v
        WHERE v.tenant_id = %(tenant)s AND v.id = m.id AND v.projection_hash = m.projection_hash
          AND v.set = (SELECT set FROM chosen)
    )
) + (
    SELECT count(*) FROM docmem.document AS d
    WHERE d.tenant_id = %(tenant)s AND NOT EXISTS (
        SELECT FROM docmem.document_vector AS v
        WHERE v.tenant_id = %(tenant)s AND v.path = d.path AND v.chunk = d.chunk
          AND v.projection_hash = d.projection_hash AND v.set = (SELECT set FROM chosen)
    )
) END AS pending;
