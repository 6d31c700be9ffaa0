How sync reads and writes the index. Rows come as one JSON parameter a batch: COPY is refused under row-level security.

-- name: lock
SELECT pg_try_advisory_xact_lock(hashtextextended('docmem.sync:' || %(tenant)s, 0)) AS locked;

-- name: state
SELECT revision, projection FROM docmem.sync_state WHERE tenant_id = %(tenant)s;

-- name: write_state
INSERT INTO docmem.sync_state (tenant_id, revision, synced_at, projection)
VALUES (%(tenant)s, %(revision)s, clock_timestamp(), %(projection)s)
ON CONFLICT (tenant_id) DO UPDATE SET
    revision = excluded.revision, synced_at = excluded.synced_at, projection = excluded.projection;

-- name: all_rows
SELECT id AS key, path, blob, revision, created_at AS created, 0 AS version
FROM docmem.memory WHERE tenant_id = %(tenant)s
UNION ALL
SELECT path, path, blob, revision, updated_at, version FROM docmem.profile WHERE tenant_id = %(tenant)s
UNION ALL
SELECT path, path, blob, revision, updated_at, 0 FROM docmem.document WHERE tenant_id = %(tenant)s AND chunk = 0;

-- name: rows_of
SELECT id AS key, path, blob, revision, created_at AS created, 0 AS version
FROM docmem.memory WHERE tenant_id = %(tenant)s AND path = ANY(%(paths)s)
UNION ALL
SELECT path, path, blob, revision, updated_at, version
FROM docmem.profile WHERE tenant_id = %(tenant)s AND subject = ANY(%(subjects)s)
UNION ALL
SELECT path, path, blob, revision, updated_at, 0
FROM docmem.document WHERE tenant_id = %(tenant)s AND path = ANY(%(paths)s) AND chunk = 0;

-- name: memories_of
SELECT id AS key, path, blob, revision, created_at AS created, 0 AS version
FROM docmem.memory WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s);

-- name: served
SELECT (SELECT count(*) FROM docmem.memory WHERE tenant_id = %(tenant)s)
     + (SELECT count(*) FROM docmem.profile WHERE tenant_id = %(tenant)s)
     + (SELECT count(*) FROM docmem.document WHERE tenant_id = %(tenant)s AND chunk = 0) AS served;

-- name: waiting
SELECT path, blob, code, line FROM docmem.quarantine WHERE tenant_id = %(tenant)s ORDER BY path;

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

-- name: restamp_memories
UPDATE docmem.memory AS m
SET revision = r.revision, created_at = r.created_at, updated_at = r.updated_at
FROM json_to_recordset(%(rows)s::json) AS r (
    key text, revision text, created_at timestamptz, updated_at timestamptz
)
WHERE m.tenant_id = %(tenant)s AND m.id = r.key;

-- name: restamp_profiles
UPDATE docmem.profile AS p
SET revision = r.revision, version = r.version, updated_at = r.updated_at
FROM json_to_recordset(%(rows)s::json) AS r (key text, revision text, version integer, updated_at timestamptz)
WHERE p.tenant_id = %(tenant)s AND p.path = r.key;

-- name: restamp_documents
UPDATE docmem.document AS d
SET revision = r.revision, updated_at = r.updated_at
FROM json_to_recordset(%(rows)s::json) AS r (key text, revision text, updated_at timestamptz)
WHERE d.tenant_id = %(tenant)s AND d.path = r.key;

-- name: delete_memories
DELETE FROM docmem.memory WHERE tenant_id = %(tenant)s AND id = ANY(%(keys)s);

-- name: delete_profiles
DELETE FROM docmem.profile WHERE tenant_id = %(tenant)s AND path = ANY(%(keys)s);

-- name: delete_documents
DELETE FROM docmem.document WHERE tenant_id = %(tenant)s AND path = ANY(%(keys)s);

-- name: forget_memory_vectors
-- Changed text never keeps its old vector.
DELETE FROM docmem.memory_vector AS v
USING docmem.memory AS m
WHERE v.tenant_id = %(tenant)s AND m.tenant_id = %(tenant)s AND m.id = v.id
  AND v.id = ANY(%(keys)s) AND v.projection_hash <> m.projection_hash;

-- name: forget_document_vectors
DELETE FROM docmem.document_vector AS v
USING docmem.document AS d
WHERE v.tenant_id = %(tenant)s AND d.tenant_id = %(tenant)s AND d.path = v.path AND d.chunk = v.chunk
  AND v.path = ANY(%(keys)s) AND v.projection_hash <> d.projection_hash;

-- name: quarantine
INSERT INTO docmem.quarantine (tenant_id, path, blob, revision, code, line, reason, since)
SELECT %(tenant)s, r.path, r.blob, %(revision)s, r.code, r.line, r.reason, clock_timestamp()
FROM json_to_recordset(%(rows)s::json) AS r (path text, blob text, code text, line integer, reason text)
ON CONFLICT (tenant_id, path) DO UPDATE SET
    blob = excluded.blob, revision = excluded.revision, code = excluded.code, line = excluded.line,
    reason = excluded.reason, since = excluded.since;

-- name: release
DELETE FROM docmem.quarantine WHERE tenant_id = %(tenant)s AND path = ANY(%(paths)s);

-- name: prune_traces
DELETE FROM docmem.trace WHERE tenant_id = %(tenant)s AND at < now() - interval '30 days';

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
