See statistics.py. Only what rows are found by: the texts would take ten times as long.

-- name: analyze
ANALYZE docmem.memory (tenant_id, id, path, subject), docmem.memory_history (tenant_id, id, step, subject),
    docmem.profile (tenant_id, subject, path), docmem.profile_history (tenant_id, subject, step),
    docmem.document (tenant_id, path, chunk, id, folder);
