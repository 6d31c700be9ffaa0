-- name: memories
SELECT id, kind, text, path
FROM docmem.memory
WHERE tenant_id = %(tenant)s
ORDER BY kind, text;

-- name: memories_of_nobody
SELECT id, kind, text, path
FROM docmem.memory;
