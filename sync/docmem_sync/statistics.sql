See statistics.py. Only what rows are found by, and all of that: of a column that it knows nothing of the planner thinks
that no row lacks it. The texts would take ten times as long.

-- name: analyze
ANALYZE docmem.memory (tenant_id, id, path, subject, agent, kind, topic, language, projection_hash, valid_from,
                       valid_until, expires, created_at, updated_at),
    docmem.memory_history (tenant_id, id, step, subject, recorded_to, superseded_by),
    docmem.profile (tenant_id, subject, path),
    docmem.profile_history (tenant_id, subject, step, recorded_to),
    docmem.document (tenant_id, path, chunk, id, folder, language, projection_hash, updated_at);
