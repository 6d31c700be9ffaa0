What a database's catalogue says of isolation and rights, and for each fault the statement that mends it. Nobody's rows
are read. `roles`: those of one of docmem's three parts, its login role first. See rights.py.

-- name: look
-- Names are written out with their schema, whatever the role's search_path.
SELECT set_config('search_path', 'pg_catalog', true);

-- name: owners
-- The owner of the schema first. The superuser that a server begins with isn't one: see `owned`.
SELECT r.rolname::text AS role
FROM pg_roles AS r
CROSS JOIN pg_namespace AS n
WHERE n.nspname = 'docmem' AND r.oid <> 10
  AND (r.oid = n.nspowner
       OR r.oid IN (SELECT c.relowner FROM pg_class AS c
                    WHERE c.relnamespace = n.oid AND c.relname = ANY (%(tables)s) AND c.relkind IN ('r', 'p')))
ORDER BY r.oid <> n.nspowner, r.rolname;

-- name: there
SELECT FROM pg_namespace WHERE nspname = 'docmem';

-- name: attributes
-- Whoever has one of these sees every tenant, or can make itself somebody who does. `may`: an owner may make roles.
SELECT format('%%s has %%s', r.rolname, a.word) AS what, format('ALTER ROLE %%I NO%%s', r.rolname, a.word) AS mend,
       'administrator' AS by
FROM pg_roles AS r
CROSS JOIN LATERAL (
    VALUES ('SUPERUSER', r.rolsuper), ('BYPASSRLS', r.rolbypassrls),
           ('REPLICATION', r.rolreplication AND NOT %(owns)s), ('CREATEROLE', r.rolcreaterole AND NOT %(owns)s)
) AS a (word, has)
WHERE r.rolname = ANY (%(roles)s) AND a.has AND r.oid <> 10
UNION ALL
SELECT format('%%s may not log in', r.rolname), format('ALTER ROLE %%I LOGIN', r.rolname), 'administrator'
FROM pg_roles AS r
WHERE r.rolname = %(login)s AND NOT r.rolcanlogin
UNION ALL
SELECT format('%%s may not connect to %%s', r.rolname, current_database()),
       format('GRANT CONNECT ON DATABASE %%I TO %%I', current_database(), r.rolname), 'administrator'
FROM pg_roles AS r
WHERE r.rolname = %(login)s AND NOT has_database_privilege(r.oid, current_database(), 'CONNECT')
ORDER BY what;

-- name: memberships
-- Membership counts even where INHERIT or SET are off, since ADMIN can turn them on.
SELECT DISTINCT format('%%s is a member of %%s', m.rolname, g.rolname) AS what,
       format('REVOKE %%I FROM %%I', g.rolname, m.rolname)
           || CASE WHEN a.grantor = 10 THEN '' ELSE format(' GRANTED BY %%I', pg_get_userbyid(a.grantor)) END AS mend,
       'administrator' AS by
FROM pg_auth_members AS a
JOIN pg_roles AS g ON g.oid = a.roleid
JOIN pg_roles AS m ON m.oid = a.member
WHERE m.rolname = ANY (%(roles)s) AND g.rolname <> ALL (%(roles)s)
  AND EXISTS (
      SELECT FROM pg_roles AS t
      WHERE t.rolname <> ALL (%(roles)s) AND pg_has_role(g.oid, t.oid, 'MEMBER')
        AND (t.rolsuper OR t.rolbypassrls OR t.rolname = ANY (%(forbidden)s) OR t.rolname IN (
            'pg_execute_server_program', 'pg_write_server_files', 'pg_read_server_files'))
  )
ORDER BY what;

-- name: owned
-- Who owns a table may switch its row-level security off. The superuser that a server begins with is bound by none, and
-- stays one: what it owns goes to another.
SELECT format('%%s owns %%s %%s', r.rolname, lower(o.kind), o.name) AS what,
       CASE WHEN EXISTS (SELECT FROM pg_roles AS n WHERE n.rolname = %(owner)s) THEN ''
            ELSE format(E'CREATE ROLE %%I LOGIN NOSUPERUSER NOBYPASSRLS;\n', %(owner)s::text) END
           || format('ALTER %%s %%s OWNER TO %%I', o.kind, o.name, %(owner)s::text) AS mend,
       'administrator' AS by
FROM (
    SELECT 'SCHEMA' AS kind, nspname::text AS name, nspowner AS owner FROM pg_namespace WHERE nspname = 'docmem'
    UNION ALL
    SELECT 'TABLE', format('docmem.%%I', relname), relowner
    FROM pg_class
    WHERE relnamespace = to_regnamespace('docmem') AND relkind IN ('r', 'p') AND relname = ANY (%(tables)s)
    UNION ALL
    SELECT 'ROUTINE', oid::regprocedure::text, proowner
    FROM pg_proc WHERE pronamespace = to_regnamespace('docmem') AND proname = ANY (%(functions)s)
) AS o
JOIN pg_roles AS r ON r.oid = o.owner
WHERE r.rolname = ANY (%(served)s) OR r.oid = 10 AND %(owns)s
ORDER BY o.kind, what;

-- name: settings
-- A tenant that is set for a role's every session is seen without being asked for. A plan that was made for one tenant
-- gave others 0 rows.
WITH setting AS (
    SELECT r.rolname, r.oid, s.setdatabase, s.setrole, split_part(c.text, '=', 1) AS name,
           substr(c.text, strpos(c.text, '=') + 1) AS value
    FROM pg_roles AS r
    JOIN pg_db_role_setting AS s
        ON s.setrole IN (r.oid, 0)
        AND s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
    CROSS JOIN unnest(s.setconfig) AS c (text)
    WHERE r.rolname = ANY (%(roles)s)
), wanted AS (
    SELECT r.rolname, w.name, w.value,
           (SELECT s.value FROM setting AS s WHERE s.oid = r.oid AND s.name = w.name
            ORDER BY s.setrole = 0, s.setdatabase = 0 LIMIT 1) AS found,
           EXISTS (SELECT FROM setting AS s
                   WHERE s.oid = r.oid AND s.name = w.name AND s.setrole <> 0 AND s.setdatabase <> 0) AS is_of_database
    FROM pg_roles AS r
    CROSS JOIN (VALUES ('plan_cache_mode', 'force_custom_plan'), ('statement_timeout', '10s')) AS w (name, value)
    WHERE r.rolname = %(login)s AND w.name = ANY (%(wanted)s)
)
SELECT DISTINCT format('every session of %%s begins as tenant %%s', s.rolname, s.value) AS what,
       CASE WHEN s.setrole <> 0 THEN format('ALTER ROLE %%I', s.rolname)
                || CASE WHEN s.setdatabase <> 0 THEN format(' IN DATABASE %%I', current_database()) ELSE '' END
            WHEN s.setdatabase <> 0 THEN format('ALTER DATABASE %%I', current_database())
            ELSE 'ALTER ROLE ALL' END || ' RESET app.current_tenant' AS mend,
       'administrator' AS by
FROM setting AS s
WHERE s.name = 'app.current_tenant' AND s.value <> ''
UNION ALL
SELECT format('%%s has %%s = %%s', w.rolname, w.name, coalesce(w.found, 'nothing of its own')),
       format('ALTER ROLE %%I%%s SET %%s = %%L', w.rolname,
              CASE WHEN w.is_of_database THEN format(' IN DATABASE %%I', current_database()) ELSE '' END,
              w.name, w.value),
       'itself'
FROM wanted AS w
WHERE w.found IS NULL
   OR w.name = 'plan_cache_mode' AND w.found <> w.value
   OR w.name = 'statement_timeout' AND w.found ~ '^0+[a-z]*$'
ORDER BY what;

-- name: lacking
-- What the login role may not do and must. What its group may, it gets by belonging to it.
WITH needed AS (
    SELECT format('may not %%s %%s', n.right, n.on_table) AS what,
           format('GRANT %%s ON docmem.%%I TO %%I', n.right, n.on_table, %(group)s::text) AS mend,
           has_table_privilege(l.oid, c.oid, n.right) AS login_may, has_table_privilege(g.oid, c.oid, n.right) AS may,
           'owner' AS by
    FROM unnest(%(tables)s::text[], %(rights)s::text[]) AS n (on_table, "right")
    JOIN pg_class AS c
        ON c.relname = n.on_table AND c.relnamespace = to_regnamespace('docmem') AND c.relkind IN ('r', 'p')
    CROSS JOIN pg_roles AS l
    CROSS JOIN pg_roles AS g
    WHERE l.rolname = %(login)s AND g.rolname = %(group)s
    UNION ALL
    SELECT 'may not use schema docmem', format('GRANT USAGE ON SCHEMA docmem TO %%I', %(group)s::text),
           has_schema_privilege(l.oid, n.oid, 'USAGE'), has_schema_privilege(g.oid, n.oid, 'USAGE'), 'owner'
    FROM pg_namespace AS n CROSS JOIN pg_roles AS l CROSS JOIN pg_roles AS g
    WHERE n.nspname = 'docmem' AND l.rolname = %(login)s AND g.rolname = %(group)s
    UNION ALL
    SELECT format('may not call %%s', p.oid::regprocedure), format('GRANT EXECUTE ON ROUTINE %%s TO PUBLIC', p.oid::regprocedure),
           has_function_privilege(l.oid, p.oid, 'EXECUTE'), has_function_privilege(g.oid, p.oid, 'EXECUTE'), 'owner'
    FROM pg_proc AS p CROSS JOIN pg_roles AS l CROSS JOIN pg_roles AS g
    WHERE p.pronamespace = to_regnamespace('docmem') AND p.proname = ANY (%(functions)s)
      AND l.rolname = %(login)s AND g.rolname = %(group)s
    UNION ALL
    SELECT format('may not make temporary tables in %%s', d.datname),
           format('GRANT TEMPORARY ON DATABASE %%I TO %%I', d.datname, %(group)s::text),
           has_database_privilege(l.oid, d.oid, 'TEMPORARY'), has_database_privilege(g.oid, d.oid, 'TEMPORARY'),
           CASE WHEN EXISTS (SELECT FROM pg_roles AS o
                             WHERE o.rolname = %(owner)s AND pg_has_role(o.oid, d.datdba, 'USAGE')) THEN 'owner' ELSE 'administrator' END
    FROM pg_database AS d CROSS JOIN pg_roles AS l CROSS JOIN pg_roles AS g
    WHERE d.datname = current_database() AND %(temporary)s
      AND l.rolname = %(login)s AND g.rolname = %(group)s
)
SELECT format('%%s %%s', %(group)s::text, n.what) AS what, n.mend, n.by FROM needed AS n WHERE NOT n.may
UNION ALL
SELECT DISTINCT format('%%s has not the rights of %%s', %(login)s::text, %(group)s::text),
       CASE WHEN current_setting('server_version_num')::integer >= 160000
            THEN format('GRANT %%I TO %%I WITH INHERIT TRUE', %(group)s::text, %(login)s::text)
            ELSE format('GRANT %%I TO %%I; ALTER ROLE %%I INHERIT', %(group)s::text, %(login)s::text, %(login)s::text) END,
       'administrator'
FROM needed AS n
WHERE n.may AND NOT n.login_may
ORDER BY what;

-- name: excess
-- What the roles, everyone, or a group that the login role belongs to was granted and needn't be.
WITH granted AS (
    SELECT 'TABLE' AS kind, c.relname::text AS name, format('docmem.%%I', c.relname) AS shown, x.*
    FROM pg_class AS c
    CROSS JOIN LATERAL (
        SELECT * FROM aclexplode(c.relacl)
        UNION
        SELECT x.* FROM pg_attribute AS a CROSS JOIN LATERAL aclexplode(a.attacl) AS x WHERE a.attrelid = c.oid
    ) AS x
    WHERE c.relnamespace = to_regnamespace('docmem') AND c.relkind IN ('r', 'p')
    UNION ALL
    SELECT 'SCHEMA', n.nspname::text, n.nspname::text, x.*
    FROM pg_namespace AS n CROSS JOIN LATERAL aclexplode(n.nspacl) AS x
    WHERE n.nspname = 'docmem'
)
SELECT DISTINCT
       format('%%s may %%s%%s on %%s', coalesce(r.rolname, 'everybody'),
              CASE WHEN e.expected THEN 'hand on ' ELSE '' END, g.privilege_type, g.name) AS what,
       format('REVOKE %%s%%s ON %%s %%s FROM %%s CASCADE', CASE WHEN e.expected THEN 'GRANT OPTION FOR ' ELSE '' END,
              g.privilege_type, g.kind, g.shown, coalesce(quote_ident(r.rolname), 'PUBLIC')) AS mend,
       'owner' AS by
FROM granted AS g
LEFT JOIN pg_roles AS r ON r.oid = g.grantee
CROSS JOIN LATERAL (
    SELECT (g.name, g.privilege_type) IN (
               SELECT * FROM unnest(%(tables)s::text[], %(rights)s::text[])
               UNION ALL
               VALUES ('docmem', 'USAGE')
           ) AS expected
) AS e
WHERE (NOT e.expected OR g.is_grantable)
  AND (g.grantee = 0
       OR r.rolname = ANY (%(roles)s)
       OR r.rolname <> ALL (%(forbidden)s)
          AND EXISTS (SELECT FROM pg_roles AS l
                      WHERE l.rolname = %(login)s AND NOT l.rolsuper AND pg_has_role(l.oid, r.oid, 'MEMBER')))
ORDER BY what;

-- name: gone
-- Parts of the index that aren't there.
SELECT t.name AS part, 'table' AS kind
FROM unnest(%(tables)s::text[]) AS t (name)
WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.relname = t.name AND c.relkind IN ('r', 'p')
                                              AND c.relnamespace = to_regnamespace('docmem'))
UNION ALL
SELECT f.name, 'function'
FROM unnest(%(functions)s::text[]) AS f (name)
WHERE NOT EXISTS (SELECT FROM pg_proc AS p WHERE p.proname = f.name AND p.pronamespace = to_regnamespace('docmem'));

-- name: unforced
-- Tables that row-level security doesn't close to everyone, their owner too.
SELECT c.relname::text AS "table"
FROM pg_class AS c
WHERE c.relnamespace = to_regnamespace('docmem') AND c.relkind IN ('r', 'p')
  AND NOT (c.relrowsecurity AND c.relforcerowsecurity)
ORDER BY c.relname;

-- name: altered
-- Tables whose policy isn't exactly ours: for everyone, for every statement, for rows of the tenant that is set.
SELECT t.name AS "table"
FROM unnest(%(tables)s::text[]) AS t (name)
JOIN pg_class AS c ON c.relname = t.name AND c.relkind IN ('r', 'p') AND c.relnamespace = to_regnamespace('docmem')
WHERE NOT EXISTS (
    SELECT FROM pg_policy AS p
    WHERE p.polrelid = c.oid AND p.polname = 'tenant' AND p.polpermissive AND p.polcmd = '*' AND p.polroles = '{0}'
      AND pg_get_expr(p.polqual, p.polrelid) = %(rows)s AND pg_get_expr(p.polwithcheck, p.polrelid) = %(rows)s
)
ORDER BY t.name;

-- name: beside
-- Permissive policies beside ours: one of them is enough for a row to be seen. Restrictive ones only take away.
SELECT c.relname::text AS "table", format('policy %%s on %%s lets rows of other tenants through', p.polname, c.relname) AS what,
       format('DROP POLICY %%I ON docmem.%%I', p.polname, c.relname) AS mend, 'owner' AS by
FROM pg_policy AS p
JOIN pg_class AS c ON c.oid = p.polrelid
WHERE c.relnamespace = to_regnamespace('docmem') AND p.polpermissive
  AND NOT (p.polname = 'tenant' AND c.relname = ANY (%(tables)s))
  AND pg_get_expr(p.polqual, p.polrelid) IS DISTINCT FROM %(rows)s
  AND (0 = ANY (p.polroles)
       OR EXISTS (SELECT FROM pg_roles AS r CROSS JOIN unnest(p.polroles) AS o (oid)
                  WHERE r.rolname = ANY (%(roles)s) AND pg_has_role(r.oid, o.oid, 'MEMBER')))
ORDER BY what;

-- name: past
-- What docmem's roles may use that reads the tables as somebody whom row-level security doesn't bind: views (also
-- through other views), what was copied into materialized ones, and functions.
WITH RECURSIVE reads (relation, base) AS (
    SELECT c.oid, c.oid FROM pg_class AS c WHERE c.relnamespace = to_regnamespace('docmem') AND c.relkind IN ('r', 'p')
    UNION
    SELECT w.ev_class, b.base
    FROM reads AS r
    JOIN pg_depend AS d
        ON d.refclassid = 'pg_class'::regclass AND d.refobjid = r.relation AND d.classid = 'pg_rewrite'::regclass
    JOIN pg_rewrite AS w ON w.oid = d.objid AND w.ev_class <> r.relation
    CROSS JOIN LATERAL (VALUES (r.base), (w.ev_class)) AS b (base)
), used AS (
    SELECT DISTINCT s.relation, s.base, r.rolname
    FROM reads AS s
    JOIN pg_class AS v ON v.oid = s.relation AND v.relkind IN ('v', 'm')
    CROSS JOIN pg_roles AS r
    WHERE r.rolname = ANY (%(roles)s) AND has_any_column_privilege(r.oid, s.relation, 'SELECT')
)
SELECT DISTINCT format('view %%s shows rows of every tenant', v.oid::regclass) AS what,
       format('ALTER VIEW %%s SET (security_invoker = true)', v.oid::regclass) AS mend, 'administrator' AS by
FROM used AS u
JOIN pg_class AS v ON v.oid = u.base AND v.relkind = 'v'
JOIN pg_roles AS o ON o.oid = v.relowner
WHERE (o.rolsuper OR o.rolbypassrls)
  AND NOT EXISTS (SELECT FROM pg_options_to_table(v.reloptions) AS p
                  WHERE p.option_name = 'security_invoker' AND p.option_value::boolean)
UNION ALL
SELECT DISTINCT format('%%s may read %%s, which holds rows that were copied out of the tables',
                       coalesce(g.rolname, 'everybody'), v.oid::regclass),
       format('REVOKE ALL ON %%s FROM %%s CASCADE', v.oid::regclass, coalesce(quote_ident(g.rolname), 'PUBLIC')),
       'administrator'
FROM used AS u
JOIN pg_class AS m ON m.oid = u.base AND m.relkind = 'm'
JOIN pg_class AS v ON v.oid = u.relation
CROSS JOIN LATERAL aclexplode(v.relacl) AS x
LEFT JOIN pg_roles AS g ON g.oid = x.grantee
WHERE x.grantee = 0 OR pg_has_role(u.rolname, x.grantee, 'MEMBER')
UNION ALL
SELECT format('function %%s runs as %%s, whom row-level security does not bind', p.oid::regprocedure, o.rolname),
       format('ALTER ROUTINE %%s SECURITY INVOKER', p.oid::regprocedure), 'administrator'
FROM pg_proc AS p
JOIN pg_roles AS o ON o.oid = p.proowner
WHERE p.prosecdef AND (o.rolsuper OR o.rolbypassrls)
  AND (p.pronamespace = to_regnamespace('docmem') OR p.prosrc ~* 'docmem' OR array_to_string(p.proconfig, ' ') ~* 'docmem'
       OR EXISTS (SELECT FROM pg_depend AS d JOIN reads AS s ON s.relation = d.refobjid
                  WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.refclassid = 'pg_class'::regclass))
  AND NOT EXISTS (SELECT FROM pg_depend AS d
                  WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
  AND EXISTS (SELECT FROM pg_roles AS r
              WHERE r.rolname = ANY (%(roles)s) AND has_function_privilege(r.oid, p.oid, 'EXECUTE'))
ORDER BY what;
