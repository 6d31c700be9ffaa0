"""After a command has changed what is remembered: bring it to the next prompt."""

from __future__ import annotations

from docmem.cli.output import note


def sync_after(tenant: str) -> None:
    """Sync a tenant. The commit stands whether or not the index can be reached now."""
    from docmem.config import settings
    from docmem.errors import DocmemError
    from docmem_sync.sync import sync_tenant

    try:
        sync_tenant(settings(), tenant)
    except DocmemError as error:
        note(f"not served yet: {error.message}")
        note(f"  then run: docmem sync {tenant}")
