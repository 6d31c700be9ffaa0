What a reader asks of the index. Every statement says its tenant; row-level security says it again.
Times are compared with the database's clock. `retention` is seconds by kind, null for no limit.
What is read of one subject is read by functions of the schema, which are planned once; what else is here goes over all
of a tenant, and is planned for each anew.

-- name: read
-- See sync/docmem_sync/schema.sql.
SELECT docmem.read(%(tenant)s, %(request)s) AS read;

-- name: one_view
-- For several calls: see `Index.run`.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;

-- name: revision
SELECT revision FROM docmem.sync_state WHERE tenant_id = %(tenant)s;

-- name: question
-- The lexemes of the question in each language that the tenant's texts are in.
SELECT language, docmem.asked(language, %(question)s) AS lexemes FROM unnest(%(languages)s::text[]) AS language;

-- name: filler
SELECT language, tsvector_to_array(docmem.lexemes(language::regconfig, %(filler)s, true)) AS lexemes
FROM unnest(%(languages)s::text[]) AS language;

-- name: frequencies
-- In how many texts of a sample each lexeme of the question stands. Ids are hashes, so the first by id are a fair
-- sample.
WITH memory AS MATERIALIZED (
    SELECT tsv FROM docmem.memory
    WHERE tenant_id = %(tenant)s AND %(memories)s
    ORDER BY id LIMIT %(sample)s
), document AS MATERIALIZED (
    SELECT tsv FROM docmem.document
    WHERE tenant_id = %(tenant)s AND folder = ANY (%(folders)s::text[])
    ORDER BY id LIMIT %(sample)s
), found AS (
    SELECT lexeme, count(*) FILTER (WHERE remembered) AS in_memories, count(*) AS in_all
    FROM (SELECT tsv, true AS remembered FROM memory UNION ALL SELECT tsv, false FROM document) AS text,
         unnest(%(lexemes)s::text[], %(each)s::tsquery[]) AS word (lexeme, query)
    WHERE tsv @@ query
    GROUP BY lexeme
)
SELECT lexeme, coalesce(in_memories, 0) AS in_memories, coalesce(in_all, 0) AS in_all,
       (SELECT count(*) FROM memory) AS memories,
       (SELECT count(*) FROM document) AS documents
FROM unnest(%(lexemes)s::text[]) AS lexeme
LEFT JOIN found USING (lexeme);

-- name: memories_by_words
-- As docmem.found_by_words, over all subjects. The lexemes' weights decide (evals/README.md). `ts_rank`, which knows
-- none, chooses who is weighed and breaks ties.
WITH candidate AS MATERIALIZED (
    SELECT m.id, ts_rank(m.tsv, %(query)s::tsquery)::float8 AS rank,
           ARRAY(SELECT word.lexeme FROM unnest(%(lexemes)s::text[], %(each)s::tsquery[]) AS word (lexeme, query)
                 WHERE m.tsv @@ word.query) AS shared
    FROM docmem.memory m
    WHERE m.tenant_id = %(tenant)s
      AND (%(agent)s::text IS NULL OR m.agent IS NULL OR m.agent = %(agent)s)
      AND m.kind = ANY (%(kinds)s::text[])
      AND (%(topics)s::text[] IS NULL OR m.topic = ANY (%(topics)s::text[]))
      AND (m.valid_from IS NULL OR m.valid_from <= now())
      AND (m.valid_until IS NULL OR m.valid_until > now())
      AND (m.expires IS NULL OR m.expires > now())
      AND coalesce(extract(epoch FROM now() - coalesce(m.valid_from, m.created_at))
                   < (%(retention)s::jsonb ->> m.kind)::numeric, true)
      AND m.tsv @@ %(query)s::tsquery
    ORDER BY rank DESC, m.id
    LIMIT %(candidates)s
), weighed AS MATERIALIZED (
    SELECT c.id, c.shared,
           (SELECT sum(word.weight) FROM unnest(%(lexemes)s::text[], %(weights)s::float8[]) AS word (lexeme, weight)
            WHERE word.lexeme = ANY (c.shared)) + c.rank / 1000 AS strength
    FROM candidate c
    ORDER BY strength DESC, c.id
    LIMIT %(limit)s
)
SELECT m.id, m.path, m.revision, m.subject, m.kind, m.text, m.thread, m.turns, m.importance,
       coalesce(m.valid_from, m.created_at) AS since,
       extract(epoch FROM now() - coalesce(m.valid_from, m.created_at))::float8 AS age,
       w.strength, w.shared
FROM weighed w
JOIN docmem.memory m ON m.tenant_id = %(tenant)s AND m.id = w.id
ORDER BY w.strength DESC, m.id;

-- name: search_widely
-- Where a set has an approximate index: how many candidates it looks at, and that it goes on until enough pass the
-- filters.
SELECT set_config('hnsw.ef_search', '200', true), set_config('hnsw.iterative_scan', 'strict_order', true);

-- name: memories_by_vector
-- The index of a set with very many vectors is over vectors of one dimension, which has to stand here as it stands
-- there. What nearly every row passes stands in `coalesce`, or the planner takes it for one in thousands and reads all
-- rows rather than the index.
SELECT m.id, m.path, m.revision, m.subject, m.kind, m.text, m.thread, m.turns, m.importance,
       coalesce(m.valid_from, m.created_at) AS since,
       extract(epoch FROM now() - coalesce(m.valid_from, m.created_at))::float8 AS age,
       1 - (v.embedding <=> %(vector)s::halfvec) AS strength
FROM docmem.memory m
JOIN docmem.memory_vector v ON v.tenant_id = m.tenant_id AND v.id = m.id
WHERE m.tenant_id = %(tenant)s
  AND v.tenant_id = %(tenant)s
  AND v.set = %(set)s
  AND coalesce(v.projection_hash = m.projection_hash, false)
  AND coalesce(vector_dims(v.embedding) = vector_dims(%(vector)s::halfvec), false)
  AND (%(agent)s::text IS NULL OR m.agent IS NULL OR m.agent = %(agent)s)
  AND m.kind = ANY (%(kinds)s::text[])
  AND (%(topics)s::text[] IS NULL OR m.topic = ANY (%(topics)s::text[]))
  AND (m.valid_from IS NULL OR m.valid_from <= now())
  AND (m.valid_until IS NULL OR m.valid_until > now())
  AND (m.expires IS NULL OR m.expires > now())
  AND coalesce(extract(epoch FROM now() - coalesce(m.valid_from, m.created_at))
               < (%(retention)s::jsonb ->> m.kind)::numeric, true)
ORDER BY v.embedding::halfvec(%(dimension)s) <=> %(vector)s::halfvec(%(dimension)s), m.id
LIMIT %(limit)s;

-- name: memories_recent
SELECT m.id, m.path, m.revision, m.subject, m.kind, m.text, m.thread, m.turns, m.importance,
       coalesce(m.valid_from, m.created_at) AS since,
       extract(epoch FROM now() - coalesce(m.valid_from, m.created_at))::float8 AS age
FROM docmem.memory m
WHERE m.tenant_id = %(tenant)s
  AND (%(agent)s::text IS NULL OR m.agent IS NULL OR m.agent = %(agent)s)
  AND m.kind = ANY (%(kinds)s::text[])
  AND (%(topics)s::text[] IS NULL OR m.topic = ANY (%(topics)s::text[]))
  AND (m.valid_from IS NULL OR m.valid_from <= now())
  AND (m.valid_until IS NULL OR m.valid_until > now())
  AND (m.expires IS NULL OR m.expires > now())
  AND coalesce(extract(epoch FROM now() - coalesce(m.valid_from, m.created_at))
               < (%(retention)s::jsonb ->> m.kind)::numeric, true)
ORDER BY since DESC, m.id
LIMIT %(limit)s;

-- name: lock_runs
SELECT pg_advisory_xact_lock(hashtextextended('docmem.run:' || %(tenant)s || ':' || %(agent)s, 0)),
       set_config('synchronous_commit', 'off', true);

-- name: next_runs
-- Some runs at once: the row of the last counts them all.
INSERT INTO docmem.trace (tenant_id, agent, run, packet, starts, ends, block, memory, path, revision, subject, at)
SELECT %(tenant)s, %(agent)s, %(runs)s + greatest(
           (SELECT coalesce(max(t.run), 0) FROM docmem.trace t WHERE t.tenant_id = %(tenant)s AND t.agent = %(agent)s),
           (SELECT coalesce(max(u.last_used_run), 0) FROM docmem.usage u
            WHERE u.tenant_id = %(tenant)s AND u.agent = %(agent)s)
       ), '', 0, 0, '', '', '', '', '', now()
WHERE EXISTS (SELECT FROM docmem.tenant_config c WHERE c.tenant_id = %(tenant)s)
RETURNING run - %(runs)s + 1 AS first;

-- name: write_traces
-- What an erase has taken away isn't brought back by a writer that was late.
INSERT INTO docmem.trace (tenant_id, agent, run, packet, starts, ends, block, memory, path, revision, subject, at)
SELECT %(tenant)s, r.agent, r.run, r.packet, r.starts, r.ends, r.block, r.memory, r.path, r.revision, r.subject, r.at
FROM json_to_recordset(%(rows)s::json) AS r (
    agent text, run bigint, packet text, starts integer, ends integer, block text, memory text, path text,
    revision text, subject text, at timestamptz
)
WHERE EXISTS (SELECT FROM docmem.memory m WHERE m.tenant_id = %(tenant)s AND m.id = r.memory)
   OR EXISTS (SELECT FROM docmem.memory_history h WHERE h.tenant_id = %(tenant)s AND h.id = r.memory)
   OR EXISTS (SELECT FROM docmem.profile p WHERE p.tenant_id = %(tenant)s AND p.path = r.path)
   OR EXISTS (SELECT FROM docmem.document d WHERE d.tenant_id = %(tenant)s AND d.path = r.path)
ON CONFLICT DO NOTHING;

-- name: write_usage
INSERT INTO docmem.usage (tenant_id, memory, agent, last_used_run, uses, used_at)
SELECT %(tenant)s, r.memory, r.agent, r.run, r.uses, r.at
FROM json_to_recordset(%(rows)s::json) AS r (memory text, agent text, run bigint, uses bigint, at timestamptz)
WHERE EXISTS (SELECT FROM docmem.memory m WHERE m.tenant_id = %(tenant)s AND m.id = r.memory)
   OR EXISTS (SELECT FROM docmem.document d WHERE d.tenant_id = %(tenant)s AND d.id = r.memory)
ON CONFLICT (tenant_id, memory, agent) DO UPDATE SET
    last_used_run = greatest(usage.last_used_run, excluded.last_used_run),
    uses = usage.uses + CASE WHEN excluded.last_used_run > usage.last_used_run THEN excluded.uses ELSE 0 END,
    used_at = greatest(usage.used_at, excluded.used_at);

-- name: trace
SELECT agent, run, packet, starts, ends, block, memory, path, revision, subject, at
FROM docmem.trace
WHERE tenant_id = %(tenant)s AND run = %(run)s AND (%(agent)s::text IS NULL OR agent = %(agent)s)
ORDER BY at, agent, packet, starts;

-- name: documents_by_words
-- As memories_by_words. What stands next to a hit lends it strength: the chunks around it, and the files around it in a
-- numbered series (`call-3.md`, `call-4.md`): an answer follows its question and often shares fewer words with it.
WITH candidate AS MATERIALIZED (
    SELECT d.path, d.chunk, ts_rank(d.tsv, %(query)s::tsquery)::float8 AS rank,
           ARRAY(SELECT word.lexeme FROM unnest(%(lexemes)s::text[], %(each)s::tsquery[]) AS word (lexeme, query)
                 WHERE d.tsv @@ word.query) AS shared
    FROM docmem.document d
    WHERE d.tenant_id = %(tenant)s
      AND d.folder = ANY (%(folders)s::text[])
      AND d.tsv @@ %(query)s::tsquery
    ORDER BY rank DESC, d.path, d.chunk
    LIMIT %(candidates)s
), weighed AS MATERIALIZED (
    SELECT c.path, c.chunk, c.shared,
           (SELECT sum(word.weight) FROM unnest(%(lexemes)s::text[], %(weights)s::float8[]) AS word (lexeme, weight)
            WHERE word.lexeme = ANY (c.shared)) + c.rank / 1000 AS own,
           regexp_replace(c.path, '[0-9]{1,9}[.]md$', '') AS series,
           substring(c.path FROM '([0-9]{1,9})[.]md$')::integer AS number
    FROM candidate c
), placed AS MATERIALIZED (
    SELECT w.path, w.chunk, w.shared,
           w.own + coalesce((
               SELECT sum(around.own * CASE abs(around.chunk - w.chunk) + coalesce(abs(around.number - w.number), 0)
                                       WHEN 1 THEN %(next)s ELSE %(next_but_one)s END::float8)
               FROM weighed around
               WHERE (around.path = w.path AND abs(around.chunk - w.chunk) IN (1, 2))
                  OR (around.series = w.series AND around.chunk = w.chunk AND abs(around.number - w.number) IN (1, 2))
           ), 0) AS strength
    FROM weighed w
    ORDER BY strength DESC, w.path, w.chunk
    LIMIT %(limit)s
)
SELECT d.id, d.path, d.chunk, d.revision, d.folder, d.title, d.text, d.updated_at AS since,
       d.meta ->> 'verdict' AS verdict,
       extract(epoch FROM now() - d.updated_at)::float8 AS age,
       p.strength, p.shared
FROM placed p
JOIN docmem.document d ON d.tenant_id = %(tenant)s AND d.path = p.path AND d.chunk = p.chunk
ORDER BY p.strength DESC, d.path, d.chunk;

-- name: documents_by_vector
SELECT d.id, d.path, d.chunk, d.revision, d.folder, d.title, d.text, d.updated_at AS since,
       d.meta ->> 'verdict' AS verdict,
       extract(epoch FROM now() - d.updated_at)::float8 AS age,
       1 - (v.embedding <=> %(vector)s::halfvec) AS strength
FROM docmem.document d
JOIN docmem.document_vector v ON v.tenant_id = d.tenant_id AND v.path = d.path AND v.chunk = d.chunk
WHERE d.tenant_id = %(tenant)s
  AND v.tenant_id = %(tenant)s
  AND v.set = %(set)s
  AND v.projection_hash = d.projection_hash
  AND vector_dims(v.embedding) = vector_dims(%(vector)s::halfvec)
  AND d.folder = ANY (%(folders)s::text[])
ORDER BY v.embedding <=> %(vector)s::halfvec, d.path, d.chunk
LIMIT %(limit)s;

-- name: document_paths
SELECT DISTINCT path FROM docmem.document WHERE tenant_id = %(tenant)s ORDER BY path;

-- name: topics
SELECT DISTINCT topic FROM docmem.memory WHERE tenant_id = %(tenant)s AND topic = ANY (%(topics)s::text[]);

-- name: tell
SELECT pg_notify('docmem', %(payload)s);
