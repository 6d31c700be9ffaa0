How sync reads and writes the index. Rows come as one JSON parameter a batch: COPY is refused under row-level security.

-- name: lock
-- Become the one that syncs this tenant. A row, and no advisory lock: whoever may connect may take any of those, and so
-- could keep a stranger's tenant from being synced. This row only who may change it can lock.
SELECT true AS locked FROM docmem.channel WHERE tenant_id = %(tenant)s FOR NO KEY UPDATE SKIP LOCKED;

-- name: state
SELECT revision, projection, extract(epoch FROM recorded_at)::bigint AS recorded, files
FROM docmem.sync_state WHERE tenant_id = %(tenant)s;

-- name: write_state
INSERT INTO docmem.sync_state (tenant_id, revision, synced_at, projection, recorded_at, files)
VALUES (%(tenant)s, %(revision)s, clock_timestamp(), %(projection)s, %(recorded)s, %(files)s)
ON CONFLICT (tenant_id) DO UPDATE SET
    revision = excluded.revision, synced_at = excluded.synced_at, projection = excluded.projection,
    recorded_at = excluded.recorded_at, files = excluded.files;

-- name: standing_memories
-- These memories, and those that are served from these paths: what a later commit may move, change or close.
WITH wanted AS (
    SELECT unnest(%(ids)s::text[]) AS id
    UNION
    SELECT m.id FROM docmem.memory AS m WHERE m.tenant_id = %(tenant)s AND m.path = ANY(%(paths)s)
)
SELECT w.id, m.path, m.blob, extract(epoch FROM m.created_at)::bigint AS created, last.step
FROM wanted AS w
CROSS JOIN LATERAL (
    SELECT h.step FROM docmem.memory_history AS h
    WHERE h.tenant_id = %(tenant)s AND h.id = w.id
    ORDER BY h.step DESC LIMIT 1
) AS last
LEFT JOIN docmem.memory AS m ON m.tenant_id = %(tenant)s AND m.id = w.id;

-- name: standing_profiles
SELECT w.subject, p.path, p.blob, coalesce(p.version, 0) AS version, last.step
FROM unnest(%(subjects)s::text[]) AS w (subject)
CROSS JOIN LATERAL (
    SELECT h.step FROM docmem.profile_history AS h
    WHERE h.tenant_id = %(tenant)s AND h.subject = w.subject
    ORDER BY h.step DESC LIMIT 1
) AS last
LEFT JOIN docmem.profile AS p ON p.tenant_id = %(tenant)s AND p.subject = w.subject;

-- name: standing_documents
SELECT path, blob FROM docmem.document WHERE tenant_id = %(tenant)s AND path = ANY(%(paths)s) AND chunk = 0;

-- name: waiting
SELECT path, blob, code, line, reason, revision, extract(epoch FROM since)::bigint AS since
FROM docmem.quarantine WHERE tenant_id = %(tenant)s ORDER BY path;

-- name: config
SELECT language, blob FROM docmem.tenant_config WHERE tenant_id = %(tenant)s;

-- name: write_config
INSERT INTO docmem.tenant_config (tenant_id, config, language, retention, budgets, weights, blob, revision)
SELECT %(tenant)s, r.config, r.language, r.retention, r.budgets, r.weights, r.blob, r.revision
FROM json_to_record(%(row)s::json) AS r (
    config jsonb, language text, retention jsonb, budgets jsonb, weights jsonb, blob text, revision text
)
ON CONFLICT (tenant_id) DO UPDATE SET
    config = excluded.config, language = excluded.language, retention = excluded.retention,
    budgets = excluded.budgets, weights = excluded.weights, blob = excluded.blob, revision = excluded.revision;

-- name: index_memories_again
UPDATE docmem.memory SET tsv = docmem.words(%(language)s::regconfig, projection)
WHERE tenant_id = %(tenant)s AND language IS NULL;

-- name: index_documents_again
UPDATE docmem.document SET tsv = docmem.words(%(language)s::regconfig, projection)
WHERE tenant_id = %(tenant)s AND language IS NULL;

-- name: list_languages
-- The languages of texts that name their own, beside the tenant's.
UPDATE docmem.tenant_config AS c SET languages = found.languages
FROM (
    SELECT coalesce(array_agg(language ORDER BY language), '{}') AS languages
    FROM (
        SELECT language FROM docmem.memory WHERE tenant_id = %(tenant)s AND language IS NOT NULL
        UNION
        SELECT language FROM docmem.document WHERE tenant_id = %(tenant)s AND language IS NOT NULL
    ) AS own
) AS found
WHERE c.tenant_id = %(tenant)s AND c.languages <> found.languages;

-- name: recheck_vectors
-- The rows of this revision were written again: whether each has its vector isn't known any more.
UPDATE docmem.vector_set SET revision = NULL WHERE tenant_id = %(tenant)s AND revision = %(revision)s;

-- name: upsert_memories
INSERT INTO docmem.memory (
    tenant_id, id, path, blob, revision, subject, agent, kind, topic, text, confidence, importance, valid_from,
    valid_until, expires, thread, turns, quote, uri, supersedes, meta, projection, projection_hash, created_at,
    updated_at, language, tsv
)
SELECT
    %(tenant)s, r.id, r.path, r.blob, r.revision, r.subject, r.agent, r.kind, r.topic, r.text, r.confidence,
    r.importance, r.valid_from, r.valid_until, r.expires, r.thread, r.turns, r.quote, r.uri, r.supersedes, r.meta,
    r.projection, r.projection_hash, r.created_at, r.updated_at, r.language,
    docmem.words(coalesce(r.language, %(language)s)::regconfig, r.projection)
FROM json_to_recordset(%(rows)s::json) AS r (
    id text, path text, blob text, revision text, subject text, agent text, kind text, topic text, text text,
    confidence real, importance smallint, valid_from timestamptz, valid_until timestamptz, expires timestamptz, thread
    text, turns text[], quote text, uri text, supersedes text[], meta jsonb, projection text, projection_hash text,
    created_at timestamptz, updated_at timestamptz, language text
)
ON CONFLICT (tenant_id, id) DO UPDATE SET
    path = excluded.path, blob = excluded.blob, revision = excluded.revision, subject = excluded.subject, agent =
    excluded.agent, kind = excluded.kind, topic = excluded.topic, text = excluded.text, confidence =
    excluded.confidence, importance = excluded.importance, valid_from = excluded.valid_from, valid_until =
    excluded.valid_until, expires = excluded.expires, thread = excluded.thread, turns = excluded.turns, quote =
    excluded.quote, uri = excluded.uri, supersedes = excluded.supersedes, meta = excluded.meta, projection =
    excluded.projection, projection_hash = excluded.projection_hash, created_at = excluded.created_at, updated_at =
    excluded.updated_at, language = excluded.language, tsv = excluded.tsv;

-- name: upsert_profiles
INSERT INTO docmem.profile (
    tenant_id, subject, path, blob, revision, version, label, preferred_language, locale, lifecycle_stage,
    last_interaction_at, remember, attributes, pinned, meta, updated_at
)
SELECT
    %(tenant)s, r.subject, r.path, r.blob, r.revision, r.version, r.label, r.preferred_language, r.locale,
    r.lifecycle_stage, r.last_interaction_at, r.remember, r.attributes, r.pinned, r.meta, r.updated_at
FROM json_to_recordset(%(rows)s::json) AS r (
    subject text, path text, blob text, revision text, version integer, label text, preferred_language text, locale
    text, lifecycle_stage text, last_interaction_at timestamptz, remember boolean, attributes jsonb, pinned text[],
    meta jsonb, updated_at timestamptz
)
ON CONFLICT (tenant_id, subject) DO UPDATE SET
    path = excluded.path, blob = excluded.blob, revision = excluded.revision, version = excluded.version, label =
    excluded.label, preferred_language = excluded.preferred_language, locale = excluded.locale, lifecycle_stage =
    excluded.lifecycle_stage, last_interaction_at = excluded.last_interaction_at, remember = excluded.remember,
    attributes = excluded.attributes, pinned = excluded.pinned, meta = excluded.meta, updated_at = excluded.updated_at;

-- name: upsert_documents
INSERT INTO docmem.document (
    tenant_id, path, chunk, id, blob, revision, folder, title, text, meta, projection, projection_hash, updated_at,
    language, tsv
)
SELECT
    %(tenant)s, r.path, r.chunk, r.id, r.blob, r.revision, r.folder, r.title, r.text, r.meta, r.projection,
    r.projection_hash, r.updated_at, r.language, docmem.words(coalesce(r.language, %(language)s)::regconfig, r.projection)
FROM json_to_recordset(%(rows)s::json) AS r (
    path text, chunk integer, id text, blob text, revision text, folder text, title text, text text, meta jsonb,
    projection text, projection_hash text, updated_at timestamptz, language text
)
ON CONFLICT (tenant_id, path, chunk) DO UPDATE SET
    id = excluded.id, blob = excluded.blob, revision = excluded.revision, folder = excluded.folder, title =
    excluded.title, text = excluded.text, meta = excluded.meta, projection = excluded.projection, projection_hash =
    excluded.projection_hash, updated_at = excluded.updated_at, language = excluded.language, tsv = excluded.tsv;

-- name: shorten_documents
DELETE FROM docmem.document AS d
USING json_to_recordset(%(rows)s::json) AS r (path text, chunks integer)
WHERE d.tenant_id = %(tenant)s AND d.path = r.path AND d.chunk >= r.chunks;

-- name: delete_memories
DELETE FROM docmem.memory WHERE tenant_id = %(tenant)s AND id = ANY(%(keys)s);

-- name: delete_profiles
DELETE FROM docmem.profile WHERE tenant_id = %(tenant)s AND subject = ANY(%(keys)s);

-- name: delete_documents
DELETE FROM docmem.document WHERE tenant_id = %(tenant)s AND path = ANY(%(keys)s);

-- name: keep_memory_vectors
-- A text keeps its vector wherever it goes: to another row, or to one more. To be run before rows are deleted, which takes
-- their vectors along. `keys` null, here and below: of all of the tenant's rows.
INSERT INTO docmem.memory_vector (tenant_id, id, set, projection_hash, embedding)
SELECT m.tenant_id, m.id, s.set, v.projection_hash, v.embedding
FROM docmem.memory AS m
JOIN docmem.vector_set AS s ON s.tenant_id = %(tenant)s
CROSS JOIN LATERAL (
    SELECT v.projection_hash, v.embedding FROM docmem.memory_vector AS v
    WHERE v.tenant_id = %(tenant)s AND v.projection_hash = m.projection_hash AND v.set = s.set
    LIMIT 1
) AS v
WHERE m.tenant_id = %(tenant)s AND (%(keys)s::text[] IS NULL OR m.id = ANY(%(keys)s)) AND NOT EXISTS (
    SELECT FROM docmem.memory_vector AS o
    WHERE o.tenant_id = %(tenant)s AND o.id = m.id AND o.set = s.set AND o.projection_hash = m.projection_hash
)
ON CONFLICT (tenant_id, id, set) DO UPDATE SET
    projection_hash = excluded.projection_hash, embedding = excluded.embedding;

-- name: keep_document_vectors
INSERT INTO docmem.document_vector (tenant_id, path, chunk, set, projection_hash, embedding)
SELECT d.tenant_id, d.path, d.chunk, s.set, v.projection_hash, v.embedding
FROM docmem.document AS d
JOIN docmem.vector_set AS s ON s.tenant_id = %(tenant)s
CROSS JOIN LATERAL (
    SELECT v.projection_hash, v.embedding FROM docmem.document_vector AS v
    WHERE v.tenant_id = %(tenant)s AND v.projection_hash = d.projection_hash AND v.set = s.set
    LIMIT 1
) AS v
WHERE d.tenant_id = %(tenant)s AND (%(keys)s::text[] IS NULL OR d.path = ANY(%(keys)s)) AND NOT EXISTS (
    SELECT FROM docmem.document_vector AS o
    WHERE o.tenant_id = %(tenant)s AND o.path = d.path AND o.chunk = d.chunk AND o.set = s.set
      AND o.projection_hash = d.projection_hash
)
ON CONFLICT (tenant_id, path, chunk, set) DO UPDATE SET
    projection_hash = excluded.projection_hash, embedding = excluded.embedding;

-- name: forget_memory_vectors
-- Changed text never keeps its old vector.
DELETE FROM docmem.memory_vector AS v
USING docmem.memory AS m
WHERE v.tenant_id = %(tenant)s AND m.tenant_id = %(tenant)s AND m.id = v.id
  AND (%(keys)s::text[] IS NULL OR v.id = ANY(%(keys)s)) AND v.projection_hash <> m.projection_hash;

-- name: forget_document_vectors
DELETE FROM docmem.document_vector AS v
USING docmem.document AS d
WHERE v.tenant_id = %(tenant)s AND d.tenant_id = %(tenant)s AND d.path = v.path AND d.chunk = v.chunk
  AND (%(keys)s::text[] IS NULL OR v.path = ANY(%(keys)s)) AND v.projection_hash <> d.projection_hash;

-- name: join_at_once
-- Of a tenant that came since the statistics were made the planner believes that it has one row, and joins two of its
-- tables row by row: a hundred thousand took minutes, and by hashing they take a second.
SELECT set_config('enable_nestloop', 'off', true);

-- name: open_memory_history
INSERT INTO docmem.memory_history (
    tenant_id, id, step, op, revision, recorded_from, path, blob, subject, agent, kind, topic, text, confidence,
    importance, valid_from, valid_until, expires, thread, turns, quote, uri, supersedes, meta
)
SELECT
    %(tenant)s, r.id, r.step, r.op, r.revision, r.recorded_from, r.path, r.blob, r.subject, r.agent, r.kind, r.topic,
    r.text, r.confidence, r.importance, r.valid_from, r.valid_until, r.expires, r.thread, r.turns, r.quote, r.uri,
    r.supersedes, r.meta
FROM json_populate_recordset(NULL::docmem.memory_history, %(rows)s::json) AS r;

-- name: close_memory_history
UPDATE docmem.memory_history AS h SET closed_revision = r.closed_revision, recorded_to = r.recorded_to
FROM json_to_recordset(%(rows)s::json) AS r (
    key text, step integer, closed_revision text, recorded_to timestamptz
)
WHERE h.tenant_id = %(tenant)s AND h.id = r.key AND h.step = r.step;

-- name: supersede
-- The first word on what replaced a version stands.
UPDATE docmem.memory_history AS h SET superseded_by = r.by
FROM json_to_recordset(%(rows)s::json) AS r (id text, step integer, by text)
WHERE h.tenant_id = %(tenant)s AND h.id = r.id AND h.step = r.step AND h.superseded_by IS NULL;

-- name: open_profile_history
INSERT INTO docmem.profile_history (
    tenant_id, subject, step, op, revision, recorded_from, path, blob, label, preferred_language, locale,
    lifecycle_stage, last_interaction_at, remember, attributes, pinned, meta
)
SELECT
    %(tenant)s, r.subject, r.step, r.op, r.revision, r.recorded_from, r.path, r.blob, r.label, r.preferred_language,
    r.locale, r.lifecycle_stage, r.last_interaction_at, r.remember, r.attributes, r.pinned, r.meta
FROM json_populate_recordset(NULL::docmem.profile_history, %(rows)s::json) AS r;

-- name: close_profile_history
UPDATE docmem.profile_history AS h SET closed_revision = r.closed_revision, recorded_to = r.recorded_to
FROM json_to_recordset(%(rows)s::json) AS r (
    key text, step integer, closed_revision text, recorded_to timestamptz
)
WHERE h.tenant_id = %(tenant)s AND h.subject = r.key AND h.step = r.step;

-- name: quarantine
INSERT INTO docmem.quarantine (tenant_id, path, blob, revision, code, line, reason, since)
SELECT %(tenant)s, r.path, r.blob, r.revision, r.code, r.line, r.reason, r.since
FROM json_to_recordset(%(rows)s::json) AS r (
    path text, blob text, revision text, code text, line integer, reason text, since timestamptz
)
ON CONFLICT (tenant_id, path) DO UPDATE SET
    blob = excluded.blob, revision = excluded.revision, code = excluded.code, line = excluded.line,
    reason = excluded.reason, since = excluded.since;

-- name: release
DELETE FROM docmem.quarantine WHERE tenant_id = %(tenant)s AND path = ANY(%(paths)s);

-- name: prune_traces
-- A reader may write traces, and so lock them: those are left for the next time.
DELETE FROM docmem.trace WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM docmem.trace WHERE tenant_id = %(tenant)s AND at < now() - interval '30 days'
    FOR UPDATE SKIP LOCKED
)) AND tenant_id = %(tenant)s;

-- name: open_channel
INSERT INTO docmem.channel (tenant_id) VALUES (%(tenant)s) ON CONFLICT (tenant_id) DO NOTHING;

-- name: notify
-- Tell those who cache what has changed, once this is committed: the tenant's hash, then each subject's, or a star for
-- the whole tenant (`subjects` null, or too many of them: a payload of 8,000 bytes would abort the transaction).
SELECT pg_notify(
    'docmem', said.tenant || CASE WHEN length(said.subjects) <= 6900 THEN said.subjects ELSE ' *' END
)
FROM (
    SELECT left(encode(sha256(convert_to(c.key || 'tenant', 'UTF8')), 'hex'), 16) AS tenant,
           (SELECT string_agg(' ' || left(encode(sha256(convert_to(c.key || s, 'UTF8')), 'hex'), 16), '')
            FROM unnest(%(subjects)s::text[]) AS s) AS subjects
    FROM docmem.channel c
    WHERE c.tenant_id = %(tenant)s
) AS said;
