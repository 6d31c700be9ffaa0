"""Sync: the job that mirrors tenants' repos into Postgres."""
