An HNSW index for the set of a tenant that has many vectors, and for no other. See hot.py.

-- name: sizes
-- How many vectors of memories each set that serves has, and whether it is indexed.
SELECT s.set, s.indexed, (
    SELECT count(*) FROM docmem.memory_vector AS v WHERE v.tenant_id = %(tenant)s AND v.set = s.set
) AS vectors
FROM docmem.vector_set AS s
WHERE s.tenant_id = %(tenant)s AND s.serves;

-- name: indexed
SELECT set FROM docmem.vector_set WHERE tenant_id = %(tenant)s AND indexed;

-- name: existing
-- All such indexes. One whose making was broken off is there, and not valid.
SELECT c.relname::text AS name, i.indisvalid AS valid
FROM pg_index AS i
JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE i.indrelid = 'docmem.memory_vector'::regclass AND starts_with(c.relname, 'memory_vector_hot_');

-- name: memory
SET maintenance_work_mem = '512MB';

-- name: create
CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON docmem.memory_vector
USING hnsw ((embedding::halfvec({dimension})) halfvec_cosine_ops)
WHERE tenant_id = {tenant} AND set = {set};

-- name: analyze
ANALYZE docmem.memory, docmem.memory_vector;

-- name: drop
DROP INDEX CONCURRENTLY IF EXISTS docmem.{name};

-- name: mark
UPDATE docmem.vector_set SET indexed = %(indexed)s WHERE tenant_id = %(tenant)s AND set = %(set)s;
