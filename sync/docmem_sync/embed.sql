Vectors of what has none yet. A row counts as embedded when a vector of the set has its projection's hash.

-- name: memories_without_vector
SELECT m.id, m.projection, m.projection_hash
FROM docmem.memory AS m
WHERE m.tenant_id = %(tenant)s AND NOT EXISTS (
    SELECT FROM docmem.memory_vector AS v
    WHERE v.tenant_id = %(tenant)s AND v.id = m.id AND v.set = %(set)s AND v.projection_hash = m.projection_hash
)
ORDER BY m.updated_at DESC, m.id
LIMIT %(limit)s;

-- name: documents_without_vector
SELECT d.path, d.chunk, d.projection, d.projection_hash
FROM docmem.document AS d
WHERE d.tenant_id = %(tenant)s AND NOT EXISTS (
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

-- name: pending
-- Rows without a vector of the model's present set. A set is named model/dimension/projection, and the
-- dimension is known to the model alone; a projection of another version has another hash anyway.
SELECT (
    SELECT count(*) FROM docmem.memory AS m
    WHERE m.tenant_id = %(tenant)s AND NOT EXISTS (
        SELECT FROM docmem.memory_vector AS v
        WHERE v.tenant_id = %(tenant)s AND v.id = m.id AND v.projection_hash = m.projection_hash
          AND regexp_replace(v.set, '/[0-9]+/[0-9]+$', '') = %(model)s
    )
) + (
    SELECT count(*) FROM docmem.document AS d
    WHERE d.tenant_id = %(tenant)s AND NOT EXISTS (
        SELECT FROM docmem.document_vector AS v
        WHERE v.tenant_id = %(tenant)s AND v.path = d.path AND v.chunk = d.chunk
          AND v.projection_hash = d.projection_hash
          AND regexp_replace(v.set, '/[0-9]+/[0-9]+$', '') = %(model)s
    )
) AS pending;
