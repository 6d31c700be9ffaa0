"""docmem: memory for multi-tenant agents, in files that people review."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docmem.adapter import Adapter
    from docmem.consolidation import consolidate
    from docmem.documents import Documents
    from docmem.inject import Injector
    from docmem.messages import inject_messages, inject_system
    from docmem.model import Job, Turn
    from docmem.packet import Packet
    from docmem.recall import search
    from docmem.selection import select_existing
    from docmem.user_memory import UserMemory

__version__ = "0.1.0"

__all__ = [
    "Adapter",
    "Documents",
    "Injector",
    "Job",
    "Packet",
    "Turn",
    "UserMemory",
    "consolidate",
    "inject_messages",
    "inject_system",
    "search",
    "select_existing",
]

_HOME = {
    "Adapter": "docmem.adapter",
    "Documents": "docmem.documents",
    "Injector": "docmem.inject",
    "Job": "docmem.model",
    "Packet": "docmem.packet",
    "Turn": "docmem.model",
    "UserMemory": "docmem.user_memory",
    "consolidate": "docmem.consolidation",
    "inject_messages": "docmem.messages",
    "inject_system": "docmem.messages",
    "search": "docmem.recall",
    "select_existing": "docmem.selection",
}


def __getattr__(name: str) -> object:
    # Loaded when asked for: `docmem --help` needs none of it.
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
