A tenant's rows out of the index. The repo isn't touched: a sync brings them back. See drop.py.

-- name: memories
DELETE FROM docmem.memory WHERE tenant_id = %(tenant)s;

-- name: profiles
DELETE FROM docmem.profile WHERE tenant_id = %(tenant)s;

-- name: documents
DELETE FROM docmem.document WHERE tenant_id = %(tenant)s;

-- name: quarantined
DELETE FROM docmem.quarantine WHERE tenant_id = %(tenant)s;

-- name: config
DELETE FROM docmem.tenant_config WHERE tenant_id = %(tenant)s;

-- name: state
DELETE FROM docmem.sync_state WHERE tenant_id = %(tenant)s;

-- name: memory_history
DELETE FROM docmem.memory_history WHERE tenant_id = %(tenant)s;

-- name: profile_history
DELETE FROM docmem.profile_history WHERE tenant_id = %(tenant)s;

-- name: sets
DELETE FROM docmem.vector_set WHERE tenant_id = %(tenant)s;
