-- A question finds names that are written as one word or as two, and amounts whatever decimals they have.

-- What a question also asks for, since others write it so: smithjones of Smith Jones and smith-jones, smith and jones of
-- SmithJones; 0.5 of 0.50 and the other way round, 5 of 5.00. As docmem.marks has them. By words and not by one more
-- pattern each: Postgres keeps 32.
CREATE FUNCTION docmem.in_other_forms(question text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
    word text;
    before text := '';
    said text[];
    forms text[] := '{}';
BEGIN
    FOREACH word IN ARRAY (string_to_array(translate(question, E'\n\t?!.,;:()"', '  '), ' '))[:100] LOOP
        IF translate(word, '0123456789''', '') <> word OR left(word, 1) = lower(left(word, 1)) OR strpos(word, '-') > 0 THEN
            before := '';
            IF translate(word, '0123456789''', '') = word AND word LIKE '__%-%__' THEN
                forms := forms || replace(word, '-', '');
            END IF;
        ELSE
            IF before <> '' AND ts_lexize('english_stem', before) <> '{}' THEN
                forms := forms || (before || word);
            END IF;
            before := word;
        END IF;
    END LOOP;
    IF question ~ '[a-z][A-Z]' THEN
        FOR said IN SELECT regexp_matches(question, '\m([A-Z][a-z]+)([A-Z][a-z]+)\M', 'g') LOOP
            forms := forms || said;
        END LOOP;
    END IF;
    IF question ~ '[0-9][.,][0-9]' THEN
        FOR said IN SELECT regexp_matches(
            question, '(?<![0-9.,]|[0-9][ ''])([0-9]+)[.,]([0-9])(0?)(?![0-9]|[.,][0-9])', 'g'
        ) LOOP
            forms := forms || (said[1] || '.' || said[2] || CASE said[3] WHEN '' THEN '0' ELSE '' END);
            IF said[2] = '0' THEN
                forms := forms || said[1];
            END IF;
        END LOOP;
    END IF;
    RETURN lower(array_to_string(forms, ' ; '));
END
$$;

DROP FUNCTION docmem.asked(text[], text);

-- The lexemes of a question in a language that texts are in, sorted and at most 700: only two thousand characters
-- without spaces have more, or a log; of these words come before codes. Where the language is unknown, English stop words
-- go, or every "the" would find everything. A word with accents is asked for once, without them, as all texts have it; only where
-- accents decide how a word is stemmed, with them too.
CREATE FUNCTION docmem.asked(language text, question text) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
    lexemes text[];
BEGIN
    IF question ~ '[[:alpha:]]-[[:alpha:]]|[a-z][A-Z]|[[:upper:]][[:alpha:]]+ [[:upper:]]|[0-9][.,][0-9]' THEN
        question := concat_ws(' ; ', question, docmem.in_other_forms(question));
    END IF;
    IF docmem.is_prose(question) AND question !~ '^[0-9]' THEN
        lexemes := tsvector_to_array(to_tsvector(language::regconfig, question));
    ELSE
        lexemes := tsvector_to_array(docmem.lexemes(language::regconfig, question, true));
    END IF;
    IF cardinality(lexemes) > 700 THEN
        lexemes := (ARRAY(
            SELECT l FROM unnest(lexemes) AS l ORDER BY l ~ '[0-9]', length(l) DESC, l COLLATE "C"
        ))[:700];
        lexemes := ARRAY(SELECT l FROM unnest(lexemes) AS l ORDER BY l COLLATE "C");
    END IF;
    IF language = 'simple' OR language = 'english' AND octet_length(question) <> char_length(question) THEN
        lexemes := ARRAY(
            SELECT l
            FROM unnest(lexemes) AS l
            WHERE NOT (language = 'simple' AND ts_lexize('english_stem', l) = '{}')
              AND NOT (octet_length(l) <> char_length(l)
                       AND docmem.folded(l) <> l AND docmem.folded(l) = ANY (lexemes))
        );
    END IF;
    RETURN lexemes;
END
$$;

CREATE OR REPLACE FUNCTION docmem.found(tenant text, request json) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
    asked record;
    words json[];
    language text;
    in_language text[];
    lexemes text[];
    each tsquery[];
    question tsquery;
    many jsonb;
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
    many_times float8 := 1;
    rare integer[];
    weights float8[];
    shown tid[];
    by_words json;
    near json;
    preferences json;
    recent json;
    found_memories json;
    ends timestamptz;
    found_documents json;
BEGIN
    SELECT * INTO asked FROM json_to_record(request) AS a (
        subject text, agent text, kinds text[], topics text[], limited text[], kept float8[], folders text[], question text,
        languages text[], sample integer, candidates integer, best integer, next float8, next_but_one float8,
        vector halfvec, set text, floor float8, preferences boolean, recent text[], at_most integer
    );
    IF asked.question IS NOT NULL THEN
        FOREACH language IN ARRAY asked.languages LOOP
            in_language := docmem.asked(language, asked.question);
            words := words || json_build_array(language, in_language);
            lexemes := lexemes || in_language;
        END LOOP;
        IF cardinality(asked.languages) > 1 THEN
            lexemes := ARRAY(SELECT DISTINCT l COLLATE "C" FROM unnest(lexemes) AS l ORDER BY l COLLATE "C");
        END IF;
        lexemes := nullif(lexemes, '{}');
    END IF;

    SELECT array_agg(w.lexeme::tsquery ORDER BY w.n), string_agg(w.lexeme, ' | ')::tsquery INTO each, question
    FROM (
        SELECT '''' || replace(replace(l.lexeme, '\', '\\'), '''', '''''') || '''' AS lexeme, l.n
        FROM unnest(lexemes) WITH ORDINALITY AS l (lexeme, n)
    ) AS w;

    -- A long question has hundreds of lexemes. Then they are looked up by those of a text, and not the other way round;
    -- and `ts_rank`, which puts them all in order for each text, gives way to how many it has.
    IF cardinality(lexemes) > 50 THEN
        SELECT jsonb_object_agg(l.lexeme, l.n) INTO many FROM unnest(lexemes) WITH ORDINALITY AS l (lexeme, n);
    END IF;

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
            SELECT m.id, m.ctid AS place, CASE WHEN many IS NULL THEN ts_rank(m.tsv, question)::float8 END AS rank,
                   CASE WHEN many IS NULL THEN ARRAY(
                       SELECT w.n FROM unnest(each) WITH ORDINALITY AS w (query, n) WHERE m.tsv @@ w.query
                   ) ELSE ARRAY(
                       SELECT (many -> l.lexeme)::bigint FROM unnest(tsvector_to_array(m.tsv)) AS l (lexeme)
                       WHERE many ? l.lexeme
                   ) END::text AS shared,
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
            SELECT CASE WHEN many IS NULL THEN ARRAY(
                SELECT w.n FROM unnest(each) WITH ORDINALITY AS w (query, n) WHERE m.tsv @@ w.query
            ) ELSE ARRAY(
                SELECT (many -> l.lexeme)::bigint FROM unnest(tsvector_to_array(m.tsv)) AS l (lexeme)
                WHERE many ? l.lexeme
            ) END::text AS shared
            FROM docmem.memory m
            WHERE m.tenant_id = found.tenant AND m.subject = asked.subject
            ORDER BY m.id LIMIT asked.sample
        ) AS m;
        many_times := memories::float8 / asked.sample;
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
    IF cardinality(ids) > asked.candidates THEN
        -- What has the rarest words is weighed first: `ts_rank` knows no common ones.
        SELECT array_agg(r.n) INTO rare
        FROM (
            SELECT w.n, sum(w.found) OVER (ORDER BY w.found, w.n) AS with_it
            FROM unnest(in_memories) WITH ORDINALITY AS w (found, n)
        ) AS r
        WHERE r.with_it * many_times <= asked.candidates / 2;
    END IF;
    IF shared IS NOT NULL THEN
        SELECT array_agg(w.place), json_agg(json_build_array(w.id, w.strength, w.shared::integer[]))
        INTO shown, by_words
        FROM (
            SELECT c.id, c.place, c.shared,
                   (SELECT sum(weights[w.n]) FROM unnest(c.shared::integer[]) AS w (n))
                   + coalesce(c.rank, 0) / 1000 AS strength
            FROM (
                SELECT m.id, m.place, m.rank, m.shared
                FROM unnest(ids, places, ranks, shared, seen) AS m (id, place, rank, shared, seen)
                WHERE m.seen
                ORDER BY rare IS NOT NULL AND m.shared::integer[] && rare DESC,
                         coalesce(m.rank, cardinality(m.shared::integer[])) DESC, m.id
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
               ),
               min(least(
                   m.valid_until, m.expires,
                   coalesce(m.valid_from, m.created_at)
                   + asked.kept[array_position(asked.limited, m.kind)] * interval '1 second'
               ))
        INTO found_memories, ends
        FROM docmem.memory m
        WHERE m.tenant_id = found.tenant AND m.ctid = ANY (shown);
    END IF;

    -- What stands next to a hit lends it strength: the chunks around it, and the files around it in a numbered series
    -- (`call-3.md`, `call-4.md`): an answer follows its question and often shares fewer words with it.
    IF asked.folders <> '{}' AND question IS NOT NULL THEN
        WITH candidate AS MATERIALIZED (
            SELECT d.path, d.chunk,
                   CASE WHEN many IS NULL THEN ts_rank(d.tsv, question)
                        ELSE (SELECT count(*) FROM unnest(tsvector_to_array(d.tsv)) AS l (lexeme) WHERE many ? l.lexeme)
                   END::float8 AS rank,
                   CASE WHEN many IS NULL THEN ARRAY(
                       SELECT w.n FROM unnest(each) WITH ORDINALITY AS w (query, n) WHERE d.tsv @@ w.query
                   ) ELSE ARRAY(
                       SELECT (many -> l.lexeme)::bigint FROM unnest(tsvector_to_array(d.tsv)) AS l (lexeme)
                       WHERE many ? l.lexeme
                   ) END AS shared
            FROM docmem.document d
            WHERE d.tenant_id = found.tenant
              AND d.folder = ANY (asked.folders)
              AND d.tsv @@ question
            ORDER BY rank DESC, d.path, d.chunk
            LIMIT asked.candidates
        ), weighed AS MATERIALIZED (
            SELECT c.path, c.chunk, c.shared,
                   (SELECT sum(w.weight) FROM unnest(weights) WITH ORDINALITY AS w (weight, n)
                    WHERE w.n = ANY (c.shared)) + CASE WHEN many IS NULL THEN c.rank ELSE 0 END / 1000 AS own,
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
        'now', now(), 'ends', ends, 'words', words, 'lexemes', lexemes, 'sampled', memories, 'in_memories', in_memories,
        'by_words', by_words, 'near', near, 'preferences', preferences, 'recent', recent, 'memories', found_memories,
        'documents', found_documents
    );
END
$$;

CREATE OR REPLACE FUNCTION docmem.schema_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 18;
