What the index remembers of the past: what it served at a time, and whom it gave a memory to.

-- name: synced
SELECT revision FROM docmem.sync_state WHERE tenant_id = %(tenant)s;

-- name: memories_at
-- Of versions that began and ended in one second the last one counts: the others end where they begin.
SELECT id, path, blob, subject, agent, kind, topic, text
FROM docmem.memory_history
WHERE tenant_id = %(tenant)s AND recorded_from <= %(at)s AND (recorded_to IS NULL OR recorded_to > %(at)s)
  AND (%(subject)s::text IS NULL OR subject = %(subject)s)
ORDER BY subject, path;

-- name: profiles_at
SELECT subject, label, preferred_language, locale, lifecycle_stage, last_interaction_at, remember, attributes, pinned,
       meta
FROM docmem.profile_history
WHERE tenant_id = %(tenant)s AND recorded_from <= %(at)s AND (recorded_to IS NULL OR recorded_to > %(at)s)
  AND (%(subject)s::text IS NULL OR subject = %(subject)s)
ORDER BY subject;

-- name: served
SELECT agent, last_used_run AS run, uses, used_at AS at
FROM docmem.usage
WHERE tenant_id = %(tenant)s AND memory = %(memory)s
ORDER BY used_at DESC, agent;
