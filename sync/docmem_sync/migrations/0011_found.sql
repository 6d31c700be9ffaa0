DROP FUNCTION docmem.found_by_words(text, json);
DROP FUNCTION docmem.found_by_vector(text, json);
DROP FUNCTION docmem.memories_recent(text, text, text, text[], jsonb, integer);
DROP FUNCTION docmem.oldest(text[], jsonb);

-- Ids of a subject's memories that an agent may see now, newest first. `kept`: for how many seconds those of the kinds
-- that are `limited`.
CREATE FUNCTION docmem.newest(
    tenant text, subject text, agent text, kinds text[], topics text[], limited text[], kept float8[], at_most integer
) RETURNS TABLE (id text, place tid) LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
        SELECT m.id, m.ctid
        FROM docmem.memory m
        WHERE m.tenant_id = newest.tenant
          AND m.subject = newest.subject
          AND m.kind = ANY (newest.kinds)
          AND (newest.topics IS NULL OR m.topic = ANY (newest.topics))
          AND (newest.agent IS NULL OR m.agent IS NULL OR m.agent = newest.agent)
          AND coalesce(
              coalesce(m.valid_from, m.created_at)
              > now() - newest.kept[array_position(newest.limited, m.kind)] * interval '1 second', true
          )
          AND (m.valid_from IS NULL OR m.valid_from <= now())
          AND (m.valid_until IS NULL OR m.valid_until > now())
          AND (m.expires IS NULL OR m.expires > now())
        ORDER BY coalesce(m.valid_from, m.created_at) DESC, m.id
        LIMIT newest.at_most;
END
$$;

-- The vectors of a subject stand together in an index of their own.
ALTER TABLE docmem.memory_vector ADD COLUMN subject text;

-- Whoever migrates owns the tables, and row-level security is forced on owners too.
ALTER TABLE docmem.memory NO FORCE ROW LEVEL SECURITY;
ALTER TABLE docmem.memory_vector NO FORCE ROW LEVEL SECURITY;
UPDATE docmem.memory_vector v SET subject = m.subject
FROM docmem.memory m
WHERE m.tenant_id = v.tenant_id AND m.id = v.id;
ALTER TABLE docmem.memory_vector ALTER COLUMN subject SET NOT NULL;
ALTER TABLE docmem.memory FORCE ROW LEVEL SECURITY;
ALTER TABLE docmem.memory_vector FORCE ROW LEVEL SECURITY;

CREATE INDEX memory_vector_subject ON docmem.memory_vector (tenant_id, subject, set);

-- The subject of a memory's vectors. They see what the caller sees: its tenant's rows.
CREATE FUNCTION docmem.set_subject_of_vector() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.subject := (SELECT m.subject FROM docmem.memory m WHERE m.tenant_id = NEW.tenant_id AND m.id = NEW.id);
    RETURN NEW;
END
$$;

CREATE FUNCTION docmem.move_vectors() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE docmem.memory_vector v SET subject = NEW.subject WHERE v.tenant_id = NEW.tenant_id AND v.id = NEW.id;
    RETURN NULL;
END
$$;

CREATE TRIGGER subject BEFORE INSERT ON docmem.memory_vector
FOR EACH ROW EXECUTE FUNCTION docmem.set_subject_of_vector();
CREATE TRIGGER vectors AFTER UPDATE OF subject ON docmem.memory
FOR EACH ROW WHEN (OLD.subject <> NEW.subject) EXECUTE FUNCTION docmem.move_vectors();

-- The memories of a subject that are nearest to a vector and that an agent may see now: what they are, where they stand,
-- and how far away they are.
CREATE FUNCTION docmem.nearest(
    tenant text, subject text, agent text, kinds text[], topics text[], limited text[], kept float8[], vector halfvec,
    set text, at_most integer
) RETURNS TABLE (id text, place tid, distance float8) LANGUAGE plpgsql STABLE
-- Each side is an index's few pages, read once. A planner that knows no tenant takes them for one row each, and looks at
-- all pairs.
SET enable_nestloop = off
AS $$
BEGIN
    RETURN QUERY
        SELECT m.id, m.ctid, v.embedding <=> nearest.vector AS far
        FROM docmem.memory m
        JOIN docmem.memory_vector v ON v.id = m.id
        WHERE m.tenant_id = nearest.tenant
          AND v.tenant_id = nearest.tenant
          AND m.subject = nearest.subject
          AND v.subject = nearest.subject
          AND v.set = nearest.set
          AND v.projection_hash = m.projection_hash
          AND vector_dims(v.embedding) = vector_dims(nearest.vector)
          AND m.kind = ANY (nearest.kinds)
          AND (nearest.topics IS NULL OR m.topic = ANY (nearest.topics))
          AND (nearest.agent IS NULL OR m.agent IS NULL OR m.agent = nearest.agent)
          AND coalesce(
              coalesce(m.valid_from, m.created_at)
              > now() - nearest.kept[array_position(nearest.limited, m.kind)] * interval '1 second', true
          )
          AND (m.valid_from IS NULL OR m.valid_from <= now())
          AND (m.valid_until IS NULL OR m.valid_until > now())
          AND (m.expires IS NULL OR m.expires > now())
        ORDER BY far, m.id
        LIMIT nearest.at_most;
END
$$;

-- What a turn wants of a subject's memories, and what a question finds in the tenant's documents, as JSON:
-- - what the words of a question find. First how common each lexeme is in these texts, or where they are many in a
--   sample of them, which says what it counts: the idf of BM25 in the form that is never negative. Then the texts in
--   which any stands, by the sum of what these count; `ts_rank`, which knows no weights, chooses who is weighed and
--   breaks ties;
-- - what is nearest to a vector, with no cosine below `floor`: by key and sort, exact, and for the few vectors of a
--   subject faster than any index. An approximate index is of one set of one tenant, over an expression that doesn't
--   stand here: no plan can take it;
-- - the newest `preferences`, and the newest of some kinds (`recent`).
-- A memory is in the answer once, whatever found it, and column by column: names and columns of each row were half of
-- the answer. Each part is a statement of its own, and only where it is asked for: to start one plan of all parts took
-- longer than to run it. What a part finds it says by its place (ctid), which stays as it is while one statement looks
-- and leads back to the row at once; by key each was a walk down an index, a cold one in a large tenant. See recall.py.
CREATE FUNCTION docmem.found(tenant text, request json) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
    asked record;
    words json;
    lexemes text[];
    each tsquery[];
    question tsquery;
    documents bigint := 0;
    in_documents bigint[];
    memories bigint := 0;
    ids text[];
    places tid[];
    ranks float8[];
    shared text[];
    seen boolean[];
    sampled text[];
    in_memories bigint[];
    weights float8[];
    shown tid[];
    by_words json;
    near json;
    preferences json;
    recent json;
    found_memories json;
    found_documents json;
BEGIN
    SELECT * INTO asked FROM json_to_record(request) AS a (
        subject text, agent text, kinds text[], topics text[], limited text[], kept float8[], folders text[], question text,
        languages text[], sample integer, candidates integer, best integer, next float8, next_but_one float8,
        vector halfvec, set text, floor float8, preferences boolean, recent text[], at_most integer
    );
    SELECT json_agg(json_build_array(w.language, w.lexeme)),
           array_agg(DISTINCT w.lexeme COLLATE "C" ORDER BY w.lexeme COLLATE "C")
    INTO words, lexemes
    FROM docmem.asked(asked.languages, asked.question) AS w;

    SELECT array_agg(w.lexeme::tsquery ORDER BY w.n), string_agg(w.lexeme, ' | ')::tsquery INTO each, question
    FROM (
        SELECT '''' || replace(replace(l.lexeme, '\', '\\'), '''', '''''') || '''' AS lexeme, l.n
        FROM unnest(lexemes) WITH ORDINALITY AS l (lexeme, n)
    ) AS w;

    -- Ids are hashes, so the first by id are a fair sample.
    IF asked.folders <> '{}' AND question IS NOT NULL THEN
        WITH sampled AS MATERIALIZED (
            SELECT d.tsv FROM docmem.document d
            WHERE d.tenant_id = found.tenant AND d.folder = ANY (asked.folders)
            ORDER BY d.id LIMIT asked.sample
        )
        SELECT (SELECT count(*) FROM sampled),
               array_agg((SELECT count(*) FROM sampled s WHERE s.tsv @@ w.query) ORDER BY w.n)
        INTO documents, in_documents
        FROM unnest(each) WITH ORDINALITY AS w (query, n);
    END IF;

    IF question IS NOT NULL AND asked.kinds <> '{}' THEN
        SELECT (SELECT count(*) FROM docmem.memory m
                WHERE m.tenant_id = found.tenant AND m.subject = asked.subject),
               array_agg(m.id), array_agg(m.place), array_agg(m.rank), array_agg(m.shared), array_agg(m.seen)
        INTO memories, ids, places, ranks, shared, seen
        FROM (
            SELECT m.id, m.ctid AS place, ts_rank(m.tsv, question)::float8 AS rank,
                   ARRAY(
                       SELECT w.n FROM unnest(each) WITH ORDINALITY AS w (query, n) WHERE m.tsv @@ w.query
                   )::text AS shared,
                   m.kind = ANY (asked.kinds)
                   AND (asked.topics IS NULL OR coalesce(m.topic = ANY (asked.topics), false))
                   AND (asked.agent IS NULL OR m.agent IS NULL OR m.agent = asked.agent)
                   AND coalesce(
                       coalesce(m.valid_from, m.created_at)
                       > now() - asked.kept[array_position(asked.limited, m.kind)] * interval '1 second', true
                   )
                   AND (m.valid_from IS NULL OR m.valid_from <= now())
                   AND (m.valid_until IS NULL OR m.valid_until > now())
                   AND (m.expires IS NULL OR m.expires > now()) AS seen
            FROM docmem.memory m
            WHERE m.tenant_id = found.tenant AND m.subject = asked.subject AND m.tsv @@ question
        ) AS m;
    END IF;
    sampled := shared;
    IF memories > asked.sample THEN
        SELECT array_agg(m.shared) INTO sampled
        FROM (
            SELECT ARRAY(
                SELECT w.n FROM unnest(each) WITH ORDINALITY AS w (query, n) WHERE m.tsv @@ w.query
            )::text AS shared
            FROM docmem.memory m
            WHERE m.tenant_id = found.tenant AND m.subject = asked.subject
            ORDER BY m.id LIMIT asked.sample
        ) AS m;
        memories := asked.sample;
    END IF;
    IF shared IS NOT NULL OR documents > 0 THEN
        SELECT array_agg(c.in_memories ORDER BY c.n),
               array_agg(ln(1 + (memories + documents - c.in_all + 0.5::float8) / (c.in_all + 0.5)) ORDER BY c.n)
        INTO in_memories, weights
        FROM (
            SELECT l.n, coalesce(s.found, 0) AS in_memories,
                   coalesce(s.found, 0) + coalesce(in_documents[l.n], 0) AS in_all
            FROM generate_subscripts(lexemes, 1) AS l (n)
            LEFT JOIN (
                SELECT w.n, count(*) AS found
                FROM unnest(sampled) AS m (shared), unnest(m.shared::integer[]) AS w (n)
                GROUP BY w.n
            ) AS s ON s.n = l.n
        ) AS c;
    END IF;
    IF shared IS NOT NULL THEN
        SELECT array_agg(w.place), json_agg(json_build_array(w.id, w.strength, w.shared::integer[]))
        INTO shown, by_words
        FROM (
            SELECT c.id, c.place, c.shared,
                   (SELECT sum(weights[w.n]) FROM unnest(c.shared::integer[]) AS w (n)) + c.rank / 1000 AS strength
            FROM (
                SELECT m.id, m.place, m.rank, m.shared
                FROM unnest(ids, places, ranks, shared, seen) AS m (id, place, rank, shared, seen)
                WHERE m.seen
                ORDER BY m.rank DESC, m.id
                LIMIT asked.candidates
            ) AS c
            ORDER BY strength DESC, c.id
            LIMIT asked.best
        ) AS w;
    END IF;

    IF asked.vector IS NOT NULL THEN
        SELECT shown || array_agg(n.place), json_agg(json_build_array(n.id, 1 - n.distance)) INTO shown, near
        FROM docmem.nearest(
            tenant, asked.subject, asked.agent, asked.kinds, asked.topics, asked.limited, asked.kept, asked.vector,
            asked.set, asked.best
        ) AS n
        WHERE 1 - n.distance >= asked.floor;
    END IF;

    IF asked.preferences THEN
        SELECT shown || array_agg(n.place), json_agg(n.id) INTO shown, preferences
        FROM docmem.newest(
            tenant, asked.subject, asked.agent, '{preference}', NULL, asked.limited, asked.kept, asked.at_most) AS n;
    END IF;
    IF asked.recent IS NOT NULL THEN
        SELECT shown || array_agg(n.place), json_agg(n.id) INTO shown, recent
        FROM docmem.newest(
            tenant, asked.subject, asked.agent, asked.recent, asked.topics, asked.limited, asked.kept, asked.at_most
        ) AS n;
    END IF;

    IF shown IS NOT NULL THEN
        SELECT json_build_array(
                   json_agg(m.id), json_agg(m.path), json_agg(m.revision), json_agg(m.kind), json_agg(m.text),
                   json_agg(coalesce(m.valid_from, m.created_at)), json_agg(m.thread), json_agg(m.turns),
                   json_agg(m.importance)
               )
        INTO found_memories
        FROM docmem.memory m
        WHERE m.tenant_id = found.tenant AND m.ctid = ANY (shown);
    END IF;

    -- What stands next to a hit lends it strength: the chunks around it, and the files around it in a numbered series
    -- (`call-3.md`, `call-4.md`): an answer follows its question and often shares fewer words with it.
    IF asked.folders <> '{}' AND question IS NOT NULL THEN
        WITH candidate AS MATERIALIZED (
            SELECT d.path, d.chunk, ts_rank(d.tsv, question)::float8 AS rank,
                   ARRAY(SELECT w.n FROM unnest(each) WITH ORDINALITY AS w (query, n) WHERE d.tsv @@ w.query) AS shared
            FROM docmem.document d
            WHERE d.tenant_id = found.tenant
              AND d.folder = ANY (asked.folders)
              AND d.tsv @@ question
            ORDER BY rank DESC, d.path, d.chunk
            LIMIT asked.candidates
        ), weighed AS MATERIALIZED (
            SELECT c.path, c.chunk, c.shared,
                   (SELECT sum(w.weight) FROM unnest(weights) WITH ORDINALITY AS w (weight, n)
                    WHERE w.n = ANY (c.shared)) + c.rank / 1000 AS own,
                   regexp_replace(c.path, '[0-9]{1,9}[.]md$', '') AS series,
                   substring(c.path FROM '([0-9]{1,9})[.]md$')::integer AS number
            FROM candidate c
        ), placed AS MATERIALIZED (
            SELECT w.path, w.chunk, w.shared,
                   w.own + coalesce((
                       SELECT sum(around.own * CASE abs(around.chunk - w.chunk)
                                                    + coalesce(abs(around.number - w.number), 0)
                                               WHEN 1 THEN asked.next ELSE asked.next_but_one END)
                       FROM weighed around
                       WHERE (around.path = w.path AND abs(around.chunk - w.chunk) IN (1, 2))
                          OR (around.series = w.series AND around.chunk = w.chunk
                              AND abs(around.number - w.number) IN (1, 2))
                   ), 0) AS strength
            FROM weighed w
            ORDER BY strength DESC, w.path, w.chunk
            LIMIT asked.best
        )
        SELECT json_agg(row_to_json(r)) INTO found_documents
        FROM (
            SELECT d.id, d.path, d.chunk, d.revision, d.folder, d.title, d.text, d.updated_at AS since,
                   d.meta ->> 'verdict' AS verdict,
                   extract(epoch FROM now() - d.updated_at)::float8 AS age,
                   p.strength, ARRAY(SELECT lexemes[s.n] FROM unnest(p.shared) AS s (n)) AS shared
            FROM placed p
            JOIN docmem.document d
                ON d.tenant_id = found.tenant AND d.path = p.path AND d.chunk = p.chunk
            ORDER BY p.strength DESC, d.path, d.chunk
        ) AS r;
    END IF;

    RETURN json_build_object(
        'now', now(), 'words', words, 'lexemes', lexemes, 'sampled', memories, 'in_memories', in_memories,
        'by_words', by_words, 'near', near, 'preferences', preferences, 'recent', recent, 'memories', found_memories,
        'documents', found_documents
    );
END
$$;

-- What a turn reads, in one statement and one view of the rows: those parts of it that are asked for, as JSON.
-- As statements of their own they cost three times as much, nearly all of it to plan them; here they are planned once a
-- connection. Such a plan knows no tenant and needs none: all of this is read by key and exact, so a plan decides how
-- long it takes and never what is found. That isn't so of a search over all of a tenant, nor of what an approximate
-- index may serve: they aren't in here. It sets no tenant, and sees what its caller sees.
CREATE OR REPLACE FUNCTION docmem.read(tenant text, request json) RETURNS json LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
-- The plan of a table that was empty would read all of it when it is full.
SET enable_seqscan = off
AS $$
DECLARE
    asked record;
    of_tenant json;
    standing json;
    documents json;
    profile json;
    used json;
BEGIN
    SELECT * INTO asked FROM json_to_record(request) AS a (
        subject text, agent text, chunks integer, folders text[], strategy text, paths text[], persona boolean,
        run bigint, runs bigint, found json
    );
    SELECT row_to_json(r) INTO of_tenant
    FROM (
        SELECT s.revision, c.language, c.languages, c.retention, c.budgets, c.weights, c.config -> 'agents' AS agents,
               ARRAY(SELECT v.set FROM docmem.vector_set v WHERE v.tenant_id = read.tenant AND v.serves) AS sets,
               (SELECT h.key FROM docmem.channel h WHERE h.tenant_id = read.tenant) AS channel,
               EXISTS (SELECT FROM docmem.document d WHERE d.tenant_id = read.tenant) AS documents
        FROM docmem.sync_state s
        LEFT JOIN docmem.tenant_config c ON c.tenant_id = s.tenant_id
        WHERE s.tenant_id = read.tenant
    ) AS r;

    -- So many chunks of each folder that is always shown, and the strategy with what is below it.
    IF asked.folders IS NOT NULL THEN
        SELECT json_agg(row_to_json(r) ORDER BY r.folder, r.path, r.chunk) INTO standing
        FROM (
            SELECT shown.*
            FROM unnest(asked.folders) AS of (folder),
                 LATERAL (
                     SELECT d.id, d.path, d.chunk, d.revision, d.folder, d.title, d.text, d.updated_at AS since
                     FROM docmem.document d
                     WHERE d.tenant_id = read.tenant AND d.folder = of.folder
                     ORDER BY d.path, d.chunk
                     LIMIT asked.chunks
                 ) AS shown
            UNION ALL
            (SELECT d.id, d.path, d.chunk, d.revision, d.folder, d.title, d.text, d.updated_at
             FROM docmem.document d
             WHERE d.tenant_id = read.tenant
               AND d.folder = split_part(asked.strategy, '/', 1)
               AND (d.path = asked.strategy || '.md' OR starts_with(d.path, asked.strategy || '/'))
             ORDER BY d.path, d.chunk
             LIMIT asked.chunks)
        ) AS r;
    END IF;

    IF asked.paths IS NOT NULL THEN
        SELECT json_agg(row_to_json(r)) INTO documents
        FROM (
            SELECT d.id, d.path, d.chunk, d.revision, d.folder, d.title, d.text, d.updated_at AS since
            FROM docmem.document d
            WHERE d.tenant_id = read.tenant AND d.path = ANY (asked.paths)
            ORDER BY array_position(asked.paths, d.path), d.chunk
            LIMIT asked.chunks
        ) AS r;
    END IF;

    IF asked.persona THEN
        SELECT row_to_json(r) INTO profile
        FROM (
            SELECT p.path, p.revision, p.label, p.preferred_language, p.locale, p.lifecycle_stage,
                   p.last_interaction_at, p.attributes
            FROM docmem.profile p
            WHERE p.tenant_id = read.tenant AND p.subject = asked.subject
        ) AS r;
    END IF;

    IF asked.run IS NOT NULL THEN
        SELECT json_agg(u.memory) INTO used
        FROM docmem.usage u
        WHERE u.tenant_id = read.tenant AND u.agent = asked.agent
          AND u.last_used_run < asked.run AND u.last_used_run >= asked.run - asked.runs;
    END IF;

    RETURN json_build_object(
        'tenant', of_tenant, 'standing', standing, 'documents', documents, 'profile', profile, 'used', used,
        'found', CASE WHEN asked.found IS NOT NULL THEN docmem.found(read.tenant, asked.found) END
    );
END
$$;

CREATE OR REPLACE FUNCTION docmem.schema_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 11;
