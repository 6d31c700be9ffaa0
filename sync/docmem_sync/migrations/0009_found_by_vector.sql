-- From when on a memory of each of these kinds is kept: `retention` is seconds by kind, null for no limit.
CREATE OR REPLACE FUNCTION docmem.oldest(kinds text[], retention jsonb) RETURNS timestamptz[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT array_agg(
            coalesce(now() - make_interval(secs => least((retention ->> k.kind)::float8, 1e11)), '-infinity')
            ORDER BY k.n
        )
        FROM unnest(kinds) WITH ORDINALITY AS k (kind, n)
    );
END
$$;

-- Memories of a subject that an agent may see now, newest first, as JSON.
CREATE OR REPLACE FUNCTION docmem.memories_recent(
    tenant text, subject text, agent text, kinds text[], retention jsonb, at_most integer
) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
    oldest timestamptz[] := docmem.oldest(kinds, retention);
BEGIN
    RETURN (
        SELECT json_agg(row_to_json(r))
        FROM (
            SELECT m.id, m.path, m.revision, m.subject, m.kind, m.text, m.thread, m.turns, m.importance,
                   coalesce(m.valid_from, m.created_at) AS since,
                   extract(epoch FROM now() - coalesce(m.valid_from, m.created_at))::float8 AS age
            FROM docmem.memory m
            WHERE m.tenant_id = memories_recent.tenant
              AND m.subject = memories_recent.subject
              AND (memories_recent.agent IS NULL OR m.agent IS NULL OR m.agent = memories_recent.agent)
              AND coalesce(m.valid_from, m.created_at) > oldest[array_position(memories_recent.kinds, m.kind)]
              AND (m.valid_from IS NULL OR m.valid_from <= now())
              AND (m.valid_until IS NULL OR m.valid_until > now())
              AND (m.expires IS NULL OR m.expires > now())
            ORDER BY since DESC, m.id
            LIMIT memories_recent.at_most
        ) AS r
    );
END
$$;

-- What the words of a question find: of a subject's memories, and of the tenant's documents in some folders. First how
-- common each lexeme is in these texts, or where they are many in a sample of them, which says what it counts: the idf of
-- BM25 in the form that is never negative. Then the texts in which any stands, by the sum of what these count; `ts_rank`, which
-- knows no weights, chooses who is weighed and breaks ties. See recall.py.
CREATE OR REPLACE FUNCTION docmem.found_by_words(tenant text, request json) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
    asked record;
    words json;
    lexemes text[];
    each tsquery[];
    question tsquery;
    documents bigint := 0;
    in_documents bigint[];
    memories bigint;
    in_memories bigint[];
    weights float8[];
    oldest timestamptz[];
    found_memories json;
    found_documents json;
BEGIN
    SELECT * INTO asked FROM json_to_record(request) AS a (
        subject text, agent text, kinds text[], retention jsonb, folders text[], question text, languages text[],
        sample integer, candidates integer, best integer, next float8, next_but_one float8
    );
    -- The lexemes of the question in each language that the tenant's texts are in. Where the language is unknown,
    -- English stop words go, or every "the" would find everything.
    SELECT json_agg(json_build_array(w.language, w.lexeme)),
           array_agg(DISTINCT w.lexeme COLLATE "C" ORDER BY w.lexeme COLLATE "C")
    INTO words, lexemes
    FROM (
        SELECT language, lexeme
        FROM unnest(asked.languages) AS language,
             unnest(tsvector_to_array(docmem.words(language::regconfig, asked.question))) AS lexeme
        WHERE language <> 'simple' OR ts_lexize('english_stem', lexeme) IS DISTINCT FROM '{}'::text[]
    ) AS w;
    IF lexemes IS NULL THEN
        RETURN NULL;
    END IF;

    SELECT array_agg(w.lexeme::tsquery ORDER BY w.n), string_agg(w.lexeme, ' | ')::tsquery INTO each, question
    FROM (
        SELECT '''' || replace(replace(l.lexeme, '\', '\\'), '''', '''''') || '''' AS lexeme, l.n
        FROM unnest(lexemes) WITH ORDINALITY AS l (lexeme, n)
    ) AS w;

    -- Ids are hashes, so the first by id are a fair sample.
    IF asked.folders <> '{}' THEN
        WITH sampled AS MATERIALIZED (
            SELECT d.tsv FROM docmem.document d
            WHERE d.tenant_id = found_by_words.tenant AND d.folder = ANY (asked.folders)
            ORDER BY d.id LIMIT asked.sample
        )
        SELECT (SELECT count(*) FROM sampled),
               array_agg((SELECT count(*) FROM sampled s WHERE s.tsv @@ w.query) ORDER BY w.n)
        INTO documents, in_documents
        FROM unnest(each) WITH ORDINALITY AS w (query, n);
    END IF;

    oldest := docmem.oldest(asked.kinds, asked.retention);
    SELECT count(*) INTO memories FROM docmem.memory m
    WHERE m.tenant_id = found_by_words.tenant AND m.subject = asked.subject AND asked.kinds <> '{}';
    WITH matching AS MATERIALIZED (
        SELECT m.id, m.tsv, m.agent, m.kind, m.valid_from, m.valid_until, m.expires, m.created_at,
               ARRAY(SELECT w.n FROM unnest(each) WITH ORDINALITY AS w (query, n) WHERE m.tsv @@ w.query) AS shared
        FROM docmem.memory m
        WHERE m.tenant_id = found_by_words.tenant AND m.subject = asked.subject AND asked.kinds <> '{}'
          AND m.tsv @@ question
    ), sampled AS MATERIALIZED (
        SELECT m.shared FROM matching m WHERE memories <= asked.sample
        UNION ALL
        SELECT ARRAY(SELECT w.n FROM unnest(each) WITH ORDINALITY AS w (query, n) WHERE m.tsv @@ w.query)
        FROM (
            SELECT m.tsv FROM docmem.memory m
            WHERE memories > asked.sample AND m.tenant_id = found_by_words.tenant AND m.subject = asked.subject
            ORDER BY m.id LIMIT asked.sample
        ) AS m
    ), stands AS MATERIALIZED (
        SELECT w.n, count(*) AS found FROM sampled, unnest(sampled.shared) AS w (n) GROUP BY w.n
    ), counted AS MATERIALIZED (
        SELECT l.n, l.lexeme, coalesce(s.found, 0) AS in_memories,
               coalesce(s.found, 0) + coalesce(in_documents[l.n], 0) AS in_all,
               least(memories, asked.sample) + documents AS texts
        FROM unnest(lexemes) WITH ORDINALITY AS l (lexeme, n)
        LEFT JOIN stands s ON s.n = l.n
    ), word AS MATERIALIZED (
        SELECT c.n, c.lexeme, c.in_memories, ln(1 + (c.texts - c.in_all + 0.5::float8) / (c.in_all + 0.5)) AS weight
        FROM counted c
        ORDER BY c.n
    ), candidate AS MATERIALIZED (
        SELECT m.id, m.shared, ts_rank(m.tsv, question)::float8 AS rank
        FROM matching m
        WHERE (asked.agent IS NULL OR m.agent IS NULL OR m.agent = asked.agent)
          AND coalesce(m.valid_from, m.created_at) > oldest[array_position(asked.kinds, m.kind)]
          AND (m.valid_from IS NULL OR m.valid_from <= now())
          AND (m.valid_until IS NULL OR m.valid_until > now())
          AND (m.expires IS NULL OR m.expires > now())
        ORDER BY rank DESC, m.id
        LIMIT asked.candidates
    ), weighed AS MATERIALIZED (
        SELECT c.id, c.shared,
               (SELECT sum(word.weight) FROM word WHERE word.n = ANY (c.shared)) + c.rank / 1000 AS strength
        FROM candidate c
        ORDER BY strength DESC, c.id
        LIMIT asked.best
    )
    SELECT (SELECT array_agg(word.in_memories ORDER BY word.n) FROM word),
           (SELECT array_agg(word.weight ORDER BY word.n) FROM word),
           (SELECT json_agg(row_to_json(r)) FROM (
                SELECT m.id, m.path, m.revision, m.subject, m.kind, m.text, m.thread, m.turns, m.importance,
                       coalesce(m.valid_from, m.created_at) AS since,
                       extract(epoch FROM now() - coalesce(m.valid_from, m.created_at))::float8 AS age,
                       w.strength, ARRAY(SELECT word.lexeme FROM word WHERE word.n = ANY (w.shared)) AS shared
                FROM weighed w
                JOIN docmem.memory m ON m.tenant_id = found_by_words.tenant AND m.id = w.id
                ORDER BY w.strength DESC, m.id
           ) AS r)
    INTO in_memories, weights, found_memories;

    -- What stands next to a hit lends it strength: the chunks around it, and the files around it in a numbered series
    -- (`call-3.md`, `call-4.md`): an answer follows its question and often shares fewer words with it.
    IF asked.folders <> '{}' THEN
        WITH candidate AS MATERIALIZED (
            SELECT d.path, d.chunk, ts_rank(d.tsv, question)::float8 AS rank,
                   ARRAY(SELECT w.n FROM unnest(each) WITH ORDINALITY AS w (query, n) WHERE d.tsv @@ w.query) AS shared
            FROM docmem.document d
            WHERE d.tenant_id = found_by_words.tenant
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
                ON d.tenant_id = found_by_words.tenant AND d.path = p.path AND d.chunk = p.chunk
            ORDER BY p.strength DESC, d.path, d.chunk
        ) AS r;
    END IF;

    RETURN json_build_object(
        'words', words, 'lexemes', lexemes, 'sampled', least(memories, asked.sample), 'in_memories', in_memories,
        'memories', found_memories, 'documents', found_documents
    );
END
$$;

-- The memories of a subject that are nearest to a vector, as JSON: by key and sort, exact, and for the few vectors of a
-- subject faster than any index. An approximate index is of one set of one tenant, over an expression that doesn't stand
-- here: no plan can take it.
CREATE OR REPLACE FUNCTION docmem.found_by_vector(tenant text, request json) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
    asked record;
    vector halfvec;
    oldest timestamptz[];
BEGIN
    SELECT * INTO asked FROM json_to_record(request) AS a (
        subject text, agent text, kinds text[], retention jsonb, vector text, set text, best integer
    );
    vector := asked.vector::halfvec;
    oldest := docmem.oldest(asked.kinds, asked.retention);
    RETURN (
        SELECT json_agg(row_to_json(r))
        FROM (
            WITH near AS MATERIALIZED (
                SELECT m.id, v.embedding <=> vector AS distance
                FROM docmem.memory m
                JOIN docmem.memory_vector v ON v.tenant_id = m.tenant_id AND v.id = m.id
                WHERE m.tenant_id = found_by_vector.tenant
                  AND v.tenant_id = found_by_vector.tenant
                  AND v.set = asked.set
                  AND v.projection_hash = m.projection_hash
                  AND vector_dims(v.embedding) = vector_dims(vector)
                  AND m.subject = asked.subject
                  AND (asked.agent IS NULL OR m.agent IS NULL OR m.agent = asked.agent)
                  AND coalesce(m.valid_from, m.created_at) > oldest[array_position(asked.kinds, m.kind)]
                  AND (m.valid_from IS NULL OR m.valid_from <= now())
                  AND (m.valid_until IS NULL OR m.valid_until > now())
                  AND (m.expires IS NULL OR m.expires > now())
                ORDER BY distance, m.id
                LIMIT asked.best
            )
            SELECT m.id, m.path, m.revision, m.subject, m.kind, m.text, m.thread, m.turns, m.importance,
                   coalesce(m.valid_from, m.created_at) AS since,
                   extract(epoch FROM now() - coalesce(m.valid_from, m.created_at))::float8 AS age,
                   1 - n.distance AS strength
            FROM near n
            JOIN docmem.memory m ON m.tenant_id = found_by_vector.tenant AND m.id = n.id
            ORDER BY n.distance, m.id
        ) AS r
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
        subject text, agent text, retention jsonb, chunks integer, folders text[], strategy text, paths text[],
        persona boolean, preferences boolean, recent text[], at_most integer, run bigint, runs bigint, search json, near json
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
        'preferences', CASE WHEN asked.preferences THEN docmem.memories_recent(
            read.tenant, asked.subject, asked.agent, '{preference}', asked.retention, asked.at_most) END,
        'recent', CASE WHEN asked.recent IS NOT NULL THEN docmem.memories_recent(
            read.tenant, asked.subject, asked.agent, asked.recent, asked.retention, asked.at_most) END,
        'found', CASE WHEN asked.search IS NOT NULL THEN docmem.found_by_words(read.tenant, asked.search) END,
        'near', CASE WHEN asked.near IS NOT NULL THEN docmem.found_by_vector(read.tenant, asked.near) END
    );
END
$$;

CREATE OR REPLACE FUNCTION docmem.schema_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 9;
