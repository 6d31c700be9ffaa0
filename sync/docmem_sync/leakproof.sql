The switch that lets text search use an index under row-level security. For a superuser; not applied by default.

-- name: state
SELECT (SELECT proleakproof FROM pg_proc WHERE oid = 'pg_catalog.ts_match_vq(tsvector, tsquery)'::regprocedure)
           AS leakproof,
       (SELECT count(*) FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
        WHERE i.indisvalid AND c.relnamespace = to_regnamespace('docmem')
          AND c.relname IN ('memory_words', 'document_words')) AS indexes;

-- name: on_operator
ALTER FUNCTION pg_catalog.ts_match_vq(tsvector, tsquery) LEAKPROOF;

-- name: on_extension
CREATE EXTENSION IF NOT EXISTS btree_gin;

-- name: on_memory
CREATE INDEX CONCURRENTLY IF NOT EXISTS memory_words ON docmem.memory USING gin (tenant_id, tsv);

-- name: on_document
CREATE INDEX CONCURRENTLY IF NOT EXISTS document_words ON docmem.document USING gin (tenant_id, tsv);

-- name: off_memory
DROP INDEX CONCURRENTLY IF EXISTS docmem.memory_words;

-- name: off_document
DROP INDEX CONCURRENTLY IF EXISTS docmem.document_words;

-- name: off_operator
ALTER FUNCTION pg_catalog.ts_match_vq(tsvector, tsquery) NOT LEAKPROOF;
