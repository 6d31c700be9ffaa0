Consolidations that failed for good. See jobs.py.

-- name: keep
INSERT INTO docmem.job (tenant_id, thread, subject, agent, attempts, reason, failed_at)
VALUES (%(tenant)s, %(thread)s, %(subject)s, %(agent)s, %(attempts)s, %(reason)s, now())
ON CONFLICT (tenant_id, thread) DO UPDATE
SET subject = excluded.subject, agent = excluded.agent, attempts = excluded.attempts, reason = excluded.reason,
    failed_at = excluded.failed_at;

-- name: clear
DELETE FROM docmem.job WHERE tenant_id = %(tenant)s AND thread = %(thread)s;

-- name: listed
SELECT thread, subject, agent, attempts, reason, failed_at
FROM docmem.job
WHERE tenant_id = %(tenant)s
ORDER BY failed_at DESC, thread;
