-- A text in one spelling of its characters: wide letters, ligatures, typographic quotes and dashes as a keyboard has
-- them, and a space for other marks that are no letters. Where a database's locale is C, Postgres takes each of these
-- for a letter, and “yes” and Ana’s for words of their own.
CREATE FUNCTION docmem.plain(text text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN regexp_replace(
    regexp_replace(
        normalize(
            translate(
                text,
                U&'\2018\2019\201b\02bc\2032\2010\2011\2012\2013\2212\2014\2015\2026\00ad\200c\200d\2060\feff',
                '''''''''''-----   '
            ),
            NFKC
        ),
        '[\u00a1-\u00a9\u00ab-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7\u0589\u05be\u05c0\u05c3\u05f3\u05f4'
        '\u060c\u061b\u061f\u066a-\u066d\u06d4\u0964\u0965\u0e2f\u0e3f\u0e4f\u0e5a\u0e5b\u0f0b-\u0f14\u104a-\u104f'
        '\u1361-\u1368\u17d4-\u17da\u2010-\u206f\u20a0-\u20cf\u2190-\u25ff\u2b00-\u2b4f\u3001-\u3004\u3008-\u3020'
        '\u3030\u303d\u30a0\u30fb\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]+',
        ' ', 'g'
    ),
    '[\u2600-\u27bf\u2b50-\u2bff\U0001f000-\U0001faff]', ' \& ', 'g'
);

-- What is written without spaces between words, in pieces that overlap: two characters of Chinese, Japanese and Korean;
-- three of Katakana, Thai, Lao, Burmese and Khmer, which have few characters. A text also has those that are shorter by
-- one, for what is asked and is no longer. One Hiragana alone is a particle.
CREATE FUNCTION docmem.pieces(text text, asked boolean) RETURNS text[] LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
BEGIN
    RETURN ARRAY(
        -- Materialized, or each character would look at all of its run.
        WITH run AS MATERIALIZED (
            SELECT r.run[1] AS run, length(r.run[1]) AS size,
                   r.run[1] ~ '^[\u30a1-\u30fa\u0e01-\u0ece\u1000-\u103f\u1780-\u17d3]' AS by_three,
                   r.run[1] ~ '^[\u3041-\u309f]' AS hiragana
            FROM regexp_matches(
                text,
                '[\u3041-\u309f]+|[\u30a1-\u30fa\u30fc-\u30ff]+'
                '|[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]+|[\uac00-\ud7af]+'
                '|[\u0e01-\u0e4e]+|[\u0e81-\u0ece]+|[\u1000-\u103f]+|[\u1780-\u17d3]+',
                'g'
            ) AS r (run)
        )
        SELECT DISTINCT p.piece
        FROM run AS r,
        LATERAL (
            SELECT c AS one, c || lead(c) OVER w AS two, c || lead(c) OVER w || lead(c, 2) OVER w AS three
            FROM unnest(string_to_array(r.run, NULL)) WITH ORDINALITY AS c (c, n)
            WINDOW w AS (ORDER BY n)
        ) AS c,
        LATERAL (
            VALUES (CASE WHEN r.by_three THEN c.three ELSE c.two END),
                   (CASE WHEN r.by_three AND (r.size = 2 OR NOT asked) THEN c.two
                         WHEN NOT r.by_three AND NOT r.hiragana AND (r.size = 1 OR NOT asked) THEN c.one END)
        ) AS p (piece)
        WHERE p.piece IS NOT NULL
    );
END
$$;

-- Numbers and codes without what separates their parts: INV-2024-00174, 1,250.50, +49 30 1234567; and what stands in
-- them alone. What is asked is also joined to the short word beside it and taken apart: who types "lh 1234" may mean
-- LH1234, and who types LH1234 may have written LH 1234.
CREATE FUNCTION docmem.codes(text text, asked boolean) RETURNS SETOF text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
    run text[];
    number text[];
    unit text;
    part text;
    joined text;
BEGIN
    FOR run IN SELECT regexp_matches(
        lower(text),
        '(?:([[:alpha:]]{1,5}) )?((?:[[:alpha:]]+[-./_,''#]?)*[0-9](?:[-./_,''#]?[[:alnum:]])*'
        '(?:[ ()]{1,2}[0-9](?:[-./_,'']?[[:alnum:]])*){0,7})',
        'g'
    ) LOOP
        number := regexp_match(
            run[2], '^[[:alpha:]]*([0-9]{1,3}(?:[., ''][0-9]{3})+|[0-9]+)(?:[.,]([0-9]{1,2}))?$'
        );
        joined := translate(number[1], '., ''', '');
        RETURN NEXT joined;
        IF number[2] IS NOT NULL THEN
            RETURN NEXT joined || '.' || number[2];
            CONTINUE;
        END IF;
        joined := '';
        FOREACH unit IN ARRAY regexp_split_to_array(run[2], '[ ()]+') LOOP
            joined := joined || translate(unit, '-./_,''#', '');
            EXIT WHEN length(joined) > 64;
            -- Five digits are a range or a time more often than a number. Of what is asked, its beginning says little:
            -- many numbers share it.
            IF length(joined) > (CASE WHEN asked THEN 8 ELSE 5 END) OR joined ~ '[^0-9]' AND NOT asked THEN
                RETURN NEXT joined;
            END IF;
            IF unit ~ '[[:alpha:]]' THEN
                RETURN NEXT translate(unit, '-./_,''#', '');
                RETURN NEXT substring(unit, '^[[:alpha:]]+[.]?([0-9]+(?:[.][0-9]+){2,})$');
            END IF;
            FOREACH part IN ARRAY regexp_split_to_array(unit, '[^0-9]+') LOOP
                IF length(part) > 2 AND part <> unit THEN
                    RETURN NEXT part;
                END IF;
            END LOOP;
            IF asked THEN
                RETURN NEXT run[1] || joined;
                RETURN QUERY SELECT letters FROM regexp_split_to_table(unit, '[^[:alpha:]]+') AS letters;
            END IF;
        END LOOP;
        IF asked THEN
            RETURN NEXT joined;
            RETURN NEXT substring(joined, '^[[:alpha:]]+([0-9]{6,})$');
        END IF;
        -- The end of a telephone number is the same with the country and the area and without.
        IF run[2] ~ '^[0-9][-0-9. ()/]{8,}$' AND length(joined) > 8 THEN
            RETURN NEXT right(joined, 7);
            RETURN NEXT right(ltrim(joined, '0'), 9);
        END IF;
    END LOOP;
    IF asked THEN
        RETURN QUERY
        SELECT code[1] || code[2]
        FROM regexp_matches(lower(text), '([[:alpha:]]+[0-9]+) ([[:alpha:]]{1,3})(?![[:alnum:]])', 'g') AS code;
    END IF;
END
$$;

-- The days that a question names, as (year, month, day): 2 May 2024, May 2nd, 2024, 2. Mai 2024, 2024-05-02, 02.05.2024;
-- 5/2/2024 is two. Months in English, German, French, Spanish, Portuguese, Italian and Dutch.
CREATE FUNCTION docmem.days(question text) RETURNS TABLE (year integer, month integer, day integer)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH named AS (
        SELECT m[1] AS day, m[2] AS month, m[3] AS year
        FROM regexp_matches(
            lower(question),
            '\m([0-9]{1,2})(?:st|nd|rd|th|[.])?(?: of| de| di)? ([[:alpha:]]{3,10})[.]?,?(?: of| de)? ([0-9]{4})\M', 'g'
        ) AS m
        UNION ALL
        SELECT m[2], m[1], m[3]
        FROM regexp_matches(
            lower(question), '\m([[:alpha:]]{3,10})[.]? ([0-9]{1,2})(?:st|nd|rd|th)?,? ([0-9]{4})\M', 'g'
        ) AS m
    ), numbered AS (
        SELECT m[1]::integer AS year, m[2]::integer AS month, m[3]::integer AS day
        FROM regexp_matches(question, '\m([0-9]{4})[-/.年]([0-9]{1,2})[-/.月]([0-9]{1,2})(?![0-9])', 'g') AS m
        UNION
        SELECT m[3]::integer, m[2]::integer, m[1]::integer
        FROM regexp_matches(question, '\m([0-9]{1,2})[-/.]([0-9]{1,2})[-/.]([0-9]{4})\M', 'g') AS m
        UNION
        SELECT m[3]::integer, m[1]::integer, m[2]::integer
        FROM regexp_matches(question, '\m([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})\M', 'g') AS m
        UNION
        SELECT n.year::integer, starts.month, n.day::integer
        FROM named AS n
        JOIN unnest(
            '{jan,ene,gen,feb,fev,fév,mar,mär,mrz,mrt,maa,apr,avr,abr,may,mai,mei,mag,jun,juin,giu,jul,juil,lug,aug,aou,'
            'aoû,ago,sep,set,oct,okt,out,ott,nov,dec,déc,dez,dic}'::text[],
            '{1,1,1,2,2,2,3,3,3,3,3,4,4,4,5,5,5,5,6,6,6,7,7,7,8,8,8,8,9,9,10,10,10,10,11,12,12,12,12}'::integer[]
        ) AS starts (beginning, month) ON starts_with(n.month, starts.beginning)
    )
    SELECT n.year, n.month, n.day FROM numbered AS n WHERE n.month BETWEEN 1 AND 12 AND n.day BETWEEN 1 AND 31;
END
$$;

-- The lexemes of a text, or of what is asked of texts. With accents: those of the text as it is, which stem best, and
-- at the same places those without accents and with "ue" for "ü". Numbers and codes, and scripts without spaces, have
-- others beside them. A "-" between a word and a number makes that no negative one.
CREATE FUNCTION docmem.lexemes(language regconfig, text text, asked boolean) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
    plain text := text;
    beside text[] := '{}';
    on_day record;
    two text;
    found tsvector;
BEGIN
    IF octet_length(text) <> char_length(text) THEN
        plain := docmem.plain(text);
        IF plain ~ '[\u0e01-\u0ece\u1000-\u103f\u1780-\u17d3\u3005-\ud7af\uf900-\ufaff\U00020000-\U000323af]' THEN
            beside := docmem.pieces(plain, asked);
            -- Korean has spaces.
            plain := regexp_replace(
                plain,
                '[\u0e01-\u0ece\u1000-\u103f\u1780-\u17d3\u3005-\u9fff\uf900-\ufaff\U00020000-\U000323af]+', ' ', 'g'
            );
        END IF;
    END IF;
    IF plain ~ '[0-9][-./_,'' ()][0-9]|[0-9][[:alpha:]]|[[:alpha:]][-./_,''#]?[0-9]|[0-9]{8}'
       OR asked AND plain ~ '[0-9]' THEN
        beside := beside || ARRAY(
            SELECT code
            FROM docmem.codes(plain, asked) AS code
            WHERE length(code) BETWEEN 2 AND 64 AND code !~ '^[0-9]{1,2}$'
        );
        IF asked THEN
            -- The groups of a long number are each like those of many others.
            plain := regexp_replace(
                plain,
                '(?:\m[[:alpha:]]{2}[0-9]{2}(?: [[:alpha:]]{4})? |[+(]{1,2}|\m0)[0-9](?:[-./() ]{0,2}[0-9]){7,}',
                ' ', 'g'
            );
        END IF;
        plain := regexp_replace(plain, '([[:alnum:]])-(?=[0-9])', '\1 ', 'g');
    END IF;
    IF asked AND text ~ '[0-9]{4}' THEN
        FOR on_day IN SELECT d.year, d.month, d.day FROM docmem.days(text) AS d LOOP
            plain := concat_ws(
                ' ', plain, on_day.day,
                ('{January,February,March,April,May,June,July,August,September,October,November,December}'::text[])
                [on_day.month], on_day.year
            );
            two := lpad(on_day.month::text, 2, '0');
            beside := beside || ARRAY[
                concat(on_day.year, two, lpad(on_day.day::text, 2, '0')), concat(on_day.year, on_day.month, on_day.day),
                concat(lpad(on_day.day::text, 2, '0'), two, on_day.year), concat(on_day.day, on_day.month, on_day.year),
                concat(two, lpad(on_day.day::text, 2, '0'), on_day.year), concat(on_day.month, on_day.day, on_day.year)
            ];
        END LOOP;
    END IF;
    found := to_tsvector(language, plain);
    IF octet_length(plain) <> char_length(plain) THEN
        found := (found::text || ' ' || to_tsvector(language, docmem.folded(plain))::text)::tsvector;
        IF plain ~* '[äöüøå]' THEN
            found := (found::text || ' ' || to_tsvector(language, docmem.folded(
                replace(replace(replace(replace(replace(
                    lower(plain), 'ä', 'ae'), 'ö', 'oe'), 'ü', 'ue'), 'ø', 'oe'), 'å', 'aa')
            ))::text)::tsvector;
        END IF;
    END IF;
    RETURN CASE WHEN beside = '{}' THEN found ELSE found || array_to_tsvector(beside) END;
END
$$;

-- Whether a text is ASCII without codes and numbers in parts, as most are: Postgres' own lexemes are all that it has. In
-- UTF-8 only ASCII has as many bytes as characters.
CREATE FUNCTION docmem.is_prose(text text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN octet_length(text) = char_length(text)
    AND text !~ '[0-9][-./_,'' ()][0-9]|[0-9][A-Za-z]|[A-Za-z][-./_,''#]?[0-9]|[0-9]{8}';

-- The lexemes of a text.
CREATE OR REPLACE FUNCTION docmem.words(language regconfig, text text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN docmem.is_prose(text) THEN to_tsvector(language, text) ELSE docmem.lexemes(language, text, false)
END;

-- The lexemes of a question in each language that the texts are in, at most 700: each is looked for in each text, and
-- only two thousand characters without spaces have more. Where the language is unknown, English stop words go, or every
-- "the" would find everything. A word with accents is asked for once, without them, as all texts have it; only where
-- accents decide how a word is stemmed, with them too.
CREATE FUNCTION docmem.asked(languages text[], question text) RETURNS TABLE (language text, lexeme text)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
    lexemes text[];
BEGIN
    FOREACH language IN ARRAY languages LOOP
        lexemes := tsvector_to_array(docmem.lexemes(language::regconfig, question, true));
        IF cardinality(lexemes) > 700 THEN
            lexemes := (ARRAY(SELECT l FROM unnest(lexemes) AS l ORDER BY length(l) DESC, l COLLATE "C"))[:700];
        END IF;
        FOREACH lexeme IN ARRAY lexemes LOOP
            CONTINUE WHEN language = 'simple' AND ts_lexize('english_stem', lexeme) = '{}';
            CONTINUE WHEN octet_length(lexeme) <> char_length(lexeme) AND language IN ('simple', 'english')
                AND docmem.folded(lexeme) <> lexeme AND docmem.folded(lexeme) = ANY (lexemes);
            RETURN NEXT;
        END LOOP;
    END LOOP;
END
$$;

-- What is there already, where it is no prose of ASCII. The owner too sees one tenant at a time, unless row-level
-- security is lifted for a moment.
ALTER TABLE docmem.tenant_config NO FORCE ROW LEVEL SECURITY;
ALTER TABLE docmem.memory NO FORCE ROW LEVEL SECURITY;
ALTER TABLE docmem.document NO FORCE ROW LEVEL SECURITY;

UPDATE docmem.memory AS m SET tsv = docmem.words(coalesce(m.language, c.language)::regconfig, m.projection)
FROM docmem.tenant_config AS c
WHERE c.tenant_id = m.tenant_id AND NOT docmem.is_prose(m.projection);

UPDATE docmem.document AS d SET tsv = docmem.words(coalesce(d.language, c.language)::regconfig, d.projection)
FROM docmem.tenant_config AS c
WHERE c.tenant_id = d.tenant_id AND NOT docmem.is_prose(d.projection);

ALTER TABLE docmem.tenant_config FORCE ROW LEVEL SECURITY;
ALTER TABLE docmem.memory FORCE ROW LEVEL SECURITY;
ALTER TABLE docmem.document FORCE ROW LEVEL SECURITY;

CREATE OR REPLACE FUNCTION docmem.schema_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 10;
