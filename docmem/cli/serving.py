"""After a command has changed what is remembered: bring it to the next prompt."""

from __future__ import annotations

from collections.abc import Iterable

from docmem.cli.output import note


def tell_of_erase(tenants: Iterable[str]) -> None:
    """Say so where an erase broke off: what is done meanwhile stands, but what was to go may still be there."""
    from docmem import journal
    from docmem.config import settings

    for tenant in tenants:
        if journal.broken_off(settings(), tenant) is not None:
            note(f"{tenant}: an erase broke off; finish it with: docmem erase {tenant} --resume")


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
