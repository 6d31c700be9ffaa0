What inject.py puts into the index and into its peers' tables, as the administrator: the same texts, the same vectors.

-- name: scratch
CREATE SCHEMA bench;

-- name: centers
-- Real embeddings lie in clusters; uniform random vectors can't be indexed at useful cost.
CREATE TABLE bench.center AS
SELECT c, ARRAY(SELECT random_normal() + 0 * c FROM generate_series(1, %(dims)s)) AS center
FROM generate_series(0, 199) AS c;

-- name: vectors
-- A subject's memories are about a few things: five clusters, so that a question about one has many near it.
CREATE TABLE bench.vector AS
SELECT m.tenant_id, m.id, m.subject, m.text, m.projection_hash,
       ARRAY(SELECT x + 0.5 * random_normal() + 0 * m.importance FROM unnest(c.center) AS x)::vector AS v
FROM docmem.memory m
JOIN bench.center c ON c.c = abs(hashtext(m.subject)) %% 40 * 5 + abs(hashtext(m.id)) %% 5;

-- name: one_of_each
SELECT DISTINCT ON (tenant_id, subject) tenant_id, subject, v::real[] AS vector
FROM bench.vector ORDER BY tenant_id, subject, id;

-- name: docmem_vectors
INSERT INTO docmem.memory_vector (tenant_id, id, set, projection_hash, embedding)
SELECT tenant_id, id, %(set)s, projection_hash, l2_normalize(v)::halfvec FROM bench.vector;

-- name: docmem_sets
INSERT INTO docmem.vector_set (tenant_id, set, serves, indexed, used_at)
SELECT DISTINCT tenant_id, %(set)s, true, false, now() FROM bench.vector
ON CONFLICT DO NOTHING;

-- name: langgraph
INSERT INTO store (prefix, key, value)
SELECT tenant_id || '.' || subject, id, jsonb_build_object('text', text) FROM bench.vector;

-- name: langgraph_profiles
INSERT INTO store (prefix, key, value)
SELECT tenant_id || '.' || subject, 'profile', attributes FROM docmem.profile;

-- name: langgraph_vectors
INSERT INTO store_vectors (prefix, key, field_name, embedding)
SELECT tenant_id || '.' || subject, id, 'text', v FROM bench.vector;

-- name: mem0
INSERT INTO mem0 (id, vector, payload)
SELECT md5(tenant_id || id)::uuid, v,
       jsonb_build_object('data', text, 'user_id', tenant_id || '.' || subject, 'text_lemmatized', lower(text))
FROM bench.vector;

-- name: index_of
SELECT indexname AS name, indexdef AS definition FROM pg_indexes
WHERE tablename = %(table)s AND indexdef LIKE '%%hnsw%%';

-- name: leakproof
ALTER FUNCTION ts_match_vq(tsvector, tsquery) LEAKPROOF;

-- name: not_leakproof
ALTER FUNCTION ts_match_vq(tsvector, tsquery) NOT LEAKPROOF;

-- name: gin
CREATE EXTENSION IF NOT EXISTS btree_gin;

-- name: words_index
CREATE INDEX bench_words ON docmem.memory USING gin (tenant_id, tsv);

-- name: analyze
VACUUM (ANALYZE);

-- name: bare
SELECT id, path, revision, text FROM docmem.memory WHERE tenant_id = %(tenant)s AND id = %(id)s;
