"""docmem: memory for multi-tenant agents, in files that people review."""

__version__ = "0.1.0"
