-- Times of day, parts of addresses and files, and stems in scripts of another language are lexemes too.

-- The times of day in a text, as 14:30: of 14:30, 14h30, 2:30 pm, 2 p.m., 14.30 Uhr. Of what is asked, a time that may be
-- one of the afternoon is both.
CREATE FUNCTION docmem.times(text text, asked boolean) RETURNS SETOF text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
    said text[];
    hour integer;
BEGIN
    FOR said IN SELECT regexp_matches(
        lower(text),
        '\m([01]?[0-9]|2[0-3])(?:([:h.])([0-5][0-9]))?(?![0-9])(?: ?([ap](?=[.]?m\M)|uhr\M))?', 'g'
    ) LOOP
        CONTINUE WHEN said[4] IS NULL AND (said[2] IS NULL OR said[2] = '.');
        hour := said[1];
        IF said[4] IN ('a', 'p') AND hour < 13 THEN
            hour := hour % 12 + CASE said[4] WHEN 'p' THEN 12 ELSE 0 END;
        END IF;
        RETURN NEXT lpad(hour::text, 2, '0') || ':' || coalesce(said[3], '00');
        IF asked AND said[4] IS NULL AND hour < 12 OR asked AND said[4] = 'p' AND hour > 12 THEN
            RETURN NEXT lpad(((hour + 12) % 24)::text, 2, '0') || ':' || coalesce(said[3], '00');
        END IF;
    END LOOP;
END
$$;

-- What Postgres takes for one word and people do not: of addresses, hosts and files the parts that have a name of their
-- own (ana.silva and example.com of ana.silva@example.com, access.log of /var/log/access.log), and each word.
CREATE FUNCTION docmem.apart(language regconfig, text text) RETURNS text[] LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
    one text;
    part text;
    words text := '';
    parts text[] := '{}';
BEGIN
    FOR one IN
        SELECT rtrim(lower(token), '.-/?=&') FROM ts_parse('default', text) WHERE tokid IN (4, 5, 6, 18, 19)
    LOOP
        words := concat_ws(' ', words, one);
        FOREACH part IN ARRAY one || regexp_split_to_array(regexp_replace(one, '^www[.]', ''), '[@/]') LOOP
            IF part ~ '[[:alnum:]][^[:alnum:]]+[[:alnum:]]' AND length(part) <= 64 THEN
                parts := parts || part;
            END IF;
        END LOOP;
    END LOOP;
    words := regexp_replace(words, '[^[:alnum:]]+|\m[[:alnum:]]\M', ' ', 'g');
    RETURN tsvector_to_array(to_tsvector(language, words)) || parts;
END
$$;

-- The scripts in a text that are another language's than this one: which has stems for them, and their letters.
CREATE FUNCTION docmem.foreign_scripts(language regconfig, text text) RETURNS TABLE (own regconfig, letters text)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
    SELECT own, letters
    FROM (
        VALUES ('greek'::regconfig, '\u0370-\u03ff', '{greek}'::regconfig[]),
               ('russian', '\u0400-\u052f', '{russian,serbian}'),
               ('armenian', '\u0531-\u0587', '{armenian}'),
               ('arabic', '\u0620-\u06ff', '{arabic}'),
               ('hindi', '\u0900-\u097f', '{hindi,nepali}'),
               ('tamil', '\u0b80-\u0bff', '{tamil}')
    ) AS script (own, letters, known)
    WHERE language <> ALL (known) AND text ~ ('[' || letters || ']')
$$;

-- Numbers and codes without what separates their parts: INV-2024-00174, 1,250.50, +49 30 1234567; and what stands in
-- them alone. What is asked is also joined to the short word beside it and taken apart: who types "lh 1234" may mean
-- LH1234, and who types LH1234 may have written LH 1234.
CREATE OR REPLACE FUNCTION docmem.codes(text text, asked boolean) RETURNS SETOF text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
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
        '(?:\m([[:alpha:]]{1,5}) )?((?:[[:alpha:]]+[-./_,''#]?)*[0-9](?:[-./_,''#]?[[:alnum:]])*'
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
                -- Who asks for 20kg may have written 20 kg.
                IF part <> unit
                   AND (length(part) > 2 OR asked AND run[2] ~ '^[0-9]{2}(?!st|nd|rd|th)[[:alpha:]]+$') THEN
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
        FROM regexp_matches(lower(text), '([[:alpha:]]*[0-9]+) ([[:alpha:]]{1,3})(?![[:alnum:]])', 'g') AS code;
    END IF;
    IF text ~* '[0-9](:[0-9]|h[0-9]| ?[ap][.]?m| uhr)' THEN
        RETURN QUERY SELECT * FROM docmem.times(text, asked);
    END IF;
    IF text ~ '[0-9]{2}[-/.][0-9]{2}[-/.][0-9]' THEN
        -- The day of a year, for who doesn't say which.
        RETURN QUERY
        SELECT coalesce(day[1] || '-' || day[2], day[4] || '-' || day[3])
        FROM regexp_matches(
            text,
            '\m[0-9]{4}[-/.](0[1-9]|1[0-2])[-/.]([0-3][0-9])(?![0-9])'
            '|\m([0-3][0-9])[.](0[1-9]|1[0-2])[.][0-9]{4}\M', 'g'
        ) AS day;
    END IF;
END
$$;

-- The days that a question names, as (year, month, day): 2 May 2024, May 2nd, 2024, 2. Mai 2024, 2024-05-02, 02.05.2024;
-- 5/2/2024 is two. Without a year: 2 May, 02.05. Months in English, German, French, Spanish, Portuguese, Italian, Dutch.
CREATE OR REPLACE FUNCTION docmem.days(question text) RETURNS TABLE (year integer, month integer, day integer)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH named AS (
        SELECT m[1] AS day, m[2] AS month, m[3] AS year
        FROM regexp_matches(
            lower(question),
            '\m([0-9]{1,2})(?:st|nd|rd|th|[.])?(?: of| de| di)? ([[:alpha:]]{3,10})(?:[.]?,?(?: of| de)? ([0-9]{4}))?\M', 'g'
        ) AS m
        UNION ALL
        SELECT m[2], m[1], m[3]
        FROM regexp_matches(
            lower(question), '\m([[:alpha:]]{3,10})[.]? ([0-9]{1,2})(?:st|nd|rd|th)?(?:,? ([0-9]{4}))?\M', 'g'
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
        SELECT NULL, m[2]::integer, m[1]::integer
        FROM regexp_matches(question, '\m([0-9]{1,2})[.]([0-9]{1,2})[.](?![0-9])', 'g') AS m
        UNION
        SELECT n.year::integer, m.month::integer, n.day::integer
        FROM named AS n
        -- Names and not a pattern for each month: Postgres keeps 32 patterns, and makes the others anew each time.
        JOIN unnest(
            ARRAY[
                ' jan january januar januari janvier janeiro ene enero gen gennaio ',
                ' feb february februar februari fev fevereiro fév février fevrier febrero febbraio ',
                ' mar march mars março marco marzo mär märz marz maerz mrz maart mrt ',
                ' apr april aprile avr avril abr abril ', ' may mai mei maio mayo mag maggio ',
                ' jun june juni juin junio junho giu giugno ', ' jul july juli juil juillet julio julho lug luglio ',
                ' aug august augustus aou août aout ago agosto ',
                ' sep sept september septembre septiembre set setembro settembre ',
                ' oct october oktober okt octobre octubre out outubro ott ottobre ',
                ' nov november novembre noviembre novembro ',
                ' dec december déc décembre decembre dez dezember dezembro dic diciembre dicembre '
            ]
        ) WITH ORDINALITY AS m (names, month)
            ON position(' ' || n.month || ' ' IN m.names) > 0
            AND (n.year IS NOT NULL OR n.month NOT IN ('set', 'out'))
    )
    SELECT n.year, n.month, n.day FROM numbered AS n WHERE n.month BETWEEN 1 AND 12 AND n.day BETWEEN 1 AND 31;
END
$$;

-- The lexemes of a text, or of what is asked of texts. With accents: those of the text as it is, which stem best, and
-- at the same places those without accents and with "ue" for "ü". Numbers and codes, and scripts without spaces, have
-- others beside them. A "-" between a word and a number makes that no negative one, and a word of five letters is one.
CREATE OR REPLACE FUNCTION docmem.lexemes(language regconfig, text text, asked boolean) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
    plain text := text;
    beside text[] := '{}';
    script record;
    its_words text;
    stems tsvector := '';
    foreign_letters text := '';
    on_day record;
    month text;
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
        IF plain ~ '[\u0370-\u0587\u0620-\u06ff\u0900-\u097f\u0b80-\u0bff]' THEN
            -- A text in Cyrillic may be Bulgarian: its words as they stand are lexemes too.
            FOR script IN SELECT own, letters FROM docmem.foreign_scripts(language, plain) LOOP
                its_words := regexp_replace(docmem.folded(plain), '[^' || script.letters || ']+', ' ', 'g');
                stems := (stems::text || ' ' || to_tsvector(script.own, its_words)::text)::tsvector;
                foreign_letters := foreign_letters || script.letters;
            END LOOP;
        END IF;
    END IF;
    IF plain ~ '[@./][[:alpha:]]' THEN
        beside := beside || docmem.apart(language, plain);
    END IF;
    IF asked AND plain ~ '[0-9]'
       OR NOT asked AND plain ~ '[0-9][-./_,'' ():][0-9]|[0-9][[:alpha:]]|[[:alpha:]][-./_,''#]?[0-9]|[0-9]{8}'
                                '|[0-9] [APUapu][.]?[MHmh]' THEN
        beside := beside || ARRAY(
            SELECT code
            FROM docmem.codes(plain, asked) AS code
            WHERE length(code) BETWEEN 2 AND 64
              -- GB29 NWBK begins an account, and LH12 is one with LH 12.
              AND (code !~ '^[0-9]{1,2}$' OR asked AND plain !~* '\m[a-z]{2}[0-9]{2} [a-z]{4} [0-9]')
        );
        IF asked THEN
            -- The groups of a long number are each like those of many others.
            plain := regexp_replace(
                plain,
                '(?:\m[[:alpha:]]{2}[0-9]{2}(?: [[:alpha:]]{4})? |[+(]{1,2}|\m0)[0-9](?:[-./() ]{0,2}[0-9]){7,}',
                ' ', 'g'
            );
        END IF;
        plain := regexp_replace(plain, '([[:alnum:]])-(?=[0-9])|([[:alpha:]]{5})(?=[0-9])', '\1\2 ', 'g');
    END IF;
    IF asked AND plain ~ '[0-9]' AND text ~* (
        '[0-9][-/.年][0-9]{1,2}[-/.月]|\m(jan|ene|gen|feb|f[eé]v|mar|mär|mrz|maart|mrt|apr|avr|abr|ma[iy]|mei|mag|jun|juin'
        '|giu|jul|juil|lug|aug|ao[uû]|ago|sep|set|o[ck]t|out|ott|nov|d[eé]c|dez|dic)'
    ) THEN
        FOR on_day IN SELECT d.year, d.month, d.day FROM docmem.days(text) AS d LOOP
            month := ('{January,February,March,April,May,June,July,August,September,October,November,December}'::text[])
                     [on_day.month];
            plain := concat_ws(' ', plain, on_day.day, month, left(month, 3), on_day.year);
            two := lpad(on_day.month::text, 2, '0');
            beside := beside || trim(to_char(on_day.day, '99th'));
            IF on_day.year IS NULL THEN
                beside := beside || (two || '-' || lpad(on_day.day::text, 2, '0'));
                CONTINUE;
            END IF;
            beside := beside || ARRAY[
                concat(on_day.year, two, lpad(on_day.day::text, 2, '0')), concat(on_day.year, on_day.month, on_day.day),
                concat(lpad(on_day.day::text, 2, '0'), two, on_day.year), concat(on_day.day, on_day.month, on_day.year),
                concat(two, lpad(on_day.day::text, 2, '0'), on_day.year), concat(on_day.month, on_day.day, on_day.year)
            ];
        END LOOP;
    END IF;
    IF asked AND foreign_letters <> '' THEN
        plain := regexp_replace(plain, '[' || foreign_letters || ']+', ' ', 'g');
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
    IF stems <> '' THEN
        found := found || stems;
    END IF;
    RETURN CASE WHEN beside = '{}' THEN found ELSE found || array_to_tsvector(beside) END;
END
$$;

-- Whether a text is ASCII without codes and numbers in parts, as most are: Postgres' own lexemes are all that it has. In
-- UTF-8 only ASCII has as many bytes as characters.
CREATE OR REPLACE FUNCTION docmem.is_prose(text text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN octet_length(text) = char_length(text)
    AND text !~ '[0-9][-./_,'' ():][0-9]|[0-9][A-Za-z]|[A-Za-z][-./_,''#]?[0-9]|[0-9]{8}|[0-9] [APUapu][.]?[MHmh]'
                '|[@./][A-Za-z]';

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

CREATE OR REPLACE FUNCTION docmem.schema_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 14;
