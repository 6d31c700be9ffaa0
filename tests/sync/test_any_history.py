"""Whatever a branch goes through, and wherever syncs fall: the index says what one built anew says."""

from __future__ import annotations

import pytest

from docmem.config import Settings
from docmem_sync.drop import drop
from docmem_sync.sync import sync_tenant
from tests.support.branches import Branch
from tests.support.index import rows, whole_index

OPEN = """
    SELECT id, path, blob, revision, text FROM docmem.memory_history
    WHERE tenant_id = %(tenant)s AND recorded_to IS NULL ORDER BY id
"""
SERVED = "SELECT id, path, blob, revision, text FROM docmem.memory WHERE tenant_id = %(tenant)s ORDER BY id"


@pytest.mark.parametrize("seed", range(10))
def test_an_index_brought_along_is_one_built_anew(indexed: Settings, tenant: str, seed: int) -> None:
    branch = Branch(indexed, tenant, seed)
    for _ in range(12):
        branch.step()
        if branch.chance.random() < 0.6:
            sync_tenant(indexed, tenant, confirm_deletes=True)
    sync_tenant(indexed, tenant, confirm_deletes=True)
    brought_along = whole_index(indexed)
    assert rows(indexed, OPEN) == rows(indexed, SERVED)
    sync_tenant(indexed, tenant, rebuild=True)
    assert whole_index(indexed) == brought_along
    drop(indexed, [tenant])
    sync_tenant(indexed, tenant)
    assert whole_index(indexed) == brought_along
