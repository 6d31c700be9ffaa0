See served_rows.py.

-- name: state
INSERT INTO docmem.sync_state (tenant_id, revision, synced_at, projection)
VALUES (%(tenant)s, %(revision)s, now(), 1);

-- name: config
INSERT INTO docmem.tenant_config (tenant_id, config, language, retention, budgets, weights, revision)
VALUES (%(tenant)s, '{"agents": {}}', 'english', '{}', %(budgets)s, '{}', %(revision)s);

-- name: channel
INSERT INTO docmem.channel (tenant_id) VALUES (%(tenant)s);

-- name: profiles
INSERT INTO docmem.profile (
    tenant_id, subject, path, blob, revision, version, label, preferred_language, locale, lifecycle_stage,
    last_interaction_at, remember, attributes, pinned, meta, updated_at
)
SELECT %(tenant)s, r.subject, r.path, repeat('b', 40), %(revision)s, 1, 'Ana', 'en', 'en-GB', 'lead', now(), true,
       r.attributes, '{}', '{}', now()
FROM json_to_recordset(%(rows)s::json) AS r (subject text, path text, attributes jsonb);

-- name: memories
INSERT INTO docmem.memory (
    tenant_id, id, path, blob, revision, subject, agent, kind, text, importance, turns, supersedes, meta, projection,
    projection_hash, created_at, updated_at, valid_from, tsv
)
SELECT %(tenant)s, r.id, r.path, repeat('b', 40), %(revision)s, r.subject, r.agent, r.kind, r.text, r.importance, '{t1}', '{}',
       '{}', r.text, md5(r.text), now(), now(), now() - r.days * interval '1 day', to_tsvector('english', r.text)
FROM json_to_recordset(%(rows)s::json) AS r (
    id text, path text, subject text, agent text, kind text, text text, importance smallint, days float8
);

-- name: documents
INSERT INTO docmem.document (
    tenant_id, path, chunk, id, blob, revision, folder, title, text, meta, projection, projection_hash, tsv, updated_at
)
SELECT %(tenant)s, r.path, r.chunk, r.id, repeat('b', 40), %(revision)s, split_part(r.path, '/', 1), 'A page', r.text,
       coalesce(r.meta, '{}'), r.text, md5(r.text), to_tsvector('english', r.text), now()
FROM json_to_recordset(%(rows)s::json) AS r (path text, chunk integer, id text, text text, meta jsonb);
