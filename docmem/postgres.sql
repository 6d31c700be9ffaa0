What the launcher does as the superuser of the embedded server. `{role}` is an identifier, `{password}` a literal:
neither can be a bound parameter in these statements.

-- name: roles
SELECT rolname FROM pg_roles WHERE rolname = ANY(%(names)s);

-- name: create_role
CREATE ROLE {role};

-- name: alter_role
ALTER ROLE {role} LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB PASSWORD {password};

-- name: custom_plans
-- With a cached generic plan a small tenant got 0 rows, silently, in 19 of 20 vector queries.
ALTER ROLE {role} SET plan_cache_mode = force_custom_plan;

-- name: statement_timeout
ALTER ROLE {role} SET statement_timeout = {timeout};

-- name: database_exists
SELECT 1 FROM pg_database WHERE datname = %(name)s;

-- name: create_database
CREATE DATABASE {database} OWNER docmem_owner;

-- name: close_database
REVOKE ALL ON DATABASE {database} FROM PUBLIC;

-- name: open_database
GRANT CONNECT ON DATABASE {database} TO docmem_sync, docmem_reader;

-- name: extensions
SELECT name FROM pg_available_extensions WHERE name IN ('vector', 'pg_trgm', 'unaccent') AND installed_version IS NULL;

-- name: create_extension
CREATE EXTENSION IF NOT EXISTS {extension};
