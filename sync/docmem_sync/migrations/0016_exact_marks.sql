-- Days, times, shares, addresses of machines, accounts, plates and names are found however they are written.

DROP FUNCTION docmem.times(text, boolean);
DROP FUNCTION docmem.days(text);

-- The times of day that a text in small letters says, as 14:30: of 14:30, 14h30, 2:30 pm, 2 p.m., 21h, 14.30 Uhr, and
-- of 14.30 after "at" or the like; 2h is a while. A time that may be one of the afternoon is both.
CREATE FUNCTION docmem.times(text text) RETURNS SETOF text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
    said text[];
    hour integer;
BEGIN
    IF text !~ '[0-9]([:.h][0-9]| ?[aphu]| o'')' THEN
        RETURN;
    END IF;
    -- Nothing between the colons of a machine's address is a time.
    text := regexp_replace(text, '[0-9a-f]*(:[0-9a-f]{0,4}){3,}', ' ', 'g');
    FOR said IN
        SELECT m || ''::text
        FROM regexp_matches(
            text,
            '\m([01]?[0-9]|2[0-3])(?:([:h.])([0-5][0-9]))?(?![0-9])(?: ?(?:([ap])[.]?m\M|(uhr|hrs|h|o''clock)\M))?', 'g'
        ) AS m
        UNION ALL
        SELECT ARRAY[m[1], CASE WHEN m[2] IS NULL THEN 'h' ELSE '.' END, m[2], NULL, NULL, 'at']
        FROM regexp_matches(
            text,
            '\m(?:at|um|ab|gegen|alle|ore|às|as|las|à|kl|om|vers) ([01]?[0-9]|2[0-3])(?: ?h\M|[.]([0-5][0-9])\M)'
            '(?! ?(?:%|eur|usd|gbp|chf|dollar|pound|per |k[gm]|uhr|[ap][.]?m|hrs|h\M))', 'g'
        ) AS m
        WHERE text ~ '[0-9]([.][0-9]| ?h)'
    LOOP
        hour := said[1];
        -- 2h is a while, 21h an hour; 14.30 may be an amount.
        CONTINUE WHEN (
            said[6] = 'at' OR said[4] IS NOT NULL OR said[5] IN ('uhr', 'o''clock') OR said[2] IN (':', 'h')
            OR said[2] IS NULL AND said[5] IN ('h', 'hrs') AND hour > 12
        ) IS NOT TRUE;
        IF said[4] IS NOT NULL AND hour < 13 THEN
            hour := hour % 12 + CASE said[4] WHEN 'p' THEN 12 ELSE 0 END;
        ELSIF said[4] IS NULL AND hour BETWEEN 1 AND 11 AND left(said[1], 1) <> '0'
            AND (said[5] = 'o''clock' OR said[2] IN (':', '.') AND said[5] IS NULL) THEN
            RETURN NEXT (hour + 12)::text || ':' || coalesce(said[3], '00');
        END IF;
        RETURN NEXT lpad(hour::text, 2, '0') || ':' || coalesce(said[3], '00');
    END LOOP;
END
$$;

-- Shares, addresses of machines and accounts in a text in small letters, each as one lexeme: 15% of "15 percent", "por
-- ciento" and the like, 3c22fb1a9e07 of 3c-22-fb-1a-9e-07, 2001:db8::1 of 2001:0db8::0001, an account without spaces.
CREATE FUNCTION docmem.marks(text text) RETURNS SETOF text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
    said text[];
BEGIN
    FOR said IN SELECT regexp_matches(
        text,
        '(?<![\w.,])([0-9]{1,9}(?:[.,][0-9]{1,9})?) ?'
        '(?:%|per ?cent|pct(?!\w)|pro[zc]ent|por ?ciento|por ?cento|pour ?cent)', 'g'
    ) LOOP
        RETURN NEXT trim_scale(replace(said[1], ',', '.')::numeric)::text || '%';
    END LOOP;
    FOR said IN SELECT regexp_matches(
        text,
        '(?<![\w:-])(?:([0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}|[0-9a-f]{4}[.][0-9a-f]{4}[.][0-9a-f]{4})'
        '|((?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}'
        '|(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,6})?::(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,6})?)'
        '|([a-z]{2}[0-9]{2} ?(?:[a-z]{4} ?)?(?:[0-9][a-z0-9]{3} ?){2,6}(?:[0-9][a-z0-9]{0,2})?))(?![\w:-])', 'g'
    ) LOOP
        RETURN NEXT translate(coalesce(said[1], said[3]), ' -.:', '');
        RETURN NEXT regexp_replace(said[2], '(^|:)0+(?=[0-9a-f])', '\1', 'g');
    END LOOP;
END
$$;

-- Names as others write them, for the words of a text: OBrien of O'Brien, SmithJones of Smith-Jones, Muller of Mueller.
CREATE FUNCTION docmem.names(text text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT string_agg(name, ' ')
    FROM (
        SELECT translate(m[1], '''-', '') AS name
        FROM regexp_matches(
            text, '\m((?:[ODLdl]''[A-Z]|[Oo]''[a-z]|[A-Z][A-Za-z]*-[A-Z])[A-Za-z]+(?:-[A-Z][A-Za-z]+)*)', 'g'
        ) AS m
        UNION ALL
        SELECT regexp_replace(
            replace(lower(m[1]), 'aa', 'a'), '(?<![aeiouq])([aou])e(?=[b-df-hj-np-tv-z])', '\1', 'g'
        )
        FROM regexp_matches(text, '\m((?:[A-Z][a-z]*[aou]e|[AOU]e|[A-Z][a-z]*aa)[a-z]+)', 'g') AS m
    ) AS n
);

-- The days that a text in small letters says, as (year, month, day): 2 May 2024, May 2nd, 2024, 2. Mai 2024,
-- 2024-05-02, 02.05.2024, 2-May-2024; 5/2/2024 is two. Without a year: 2 May, 02.05. The month of a year has no day.
-- Months in English, German, French, Spanish, Portuguese, Italian, Dutch; what is another word in one of them is a month
-- beside a year only. Only who asks means a month as a whole.
CREATE FUNCTION docmem.days(text text, asked boolean) RETURNS TABLE (year integer, month integer, day integer)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
    -- Names and not a pattern for each month: long ones are slow, and Postgres keeps 32.
    names text[] := ARRAY[
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
    ];
    said text[];
    swap integer;
BEGIN
    FOR said IN
        SELECT regexp_matches(
            text,
            '\m([0-9]{1,2})(?:st|nd|rd|th|er)?[-/. ]{1,2}(?:of |de |di )?([[:alpha:]]{3,10})'
            '(?:[-/., ]{1,2}(?:of |de |del )?([0-9]{4}))?\M', 'g'
        )
        UNION ALL
        SELECT ARRAY[m[2], m[1], m[3]]
        FROM regexp_matches(text, '\m([[:alpha:]]{3,10})[.]? ([0-9]{1,2})(?:st|nd|rd|th)?(?:,? ([0-9]{4}))?\M', 'g') AS m
        UNION ALL
        SELECT ARRAY[NULL, m[1], m[2]]
        FROM regexp_matches(
            text, '\m([[:alpha:]]{3,10})[-/., ]{1,2}(?:of |de |del )?((?:19|20)[0-9]{2})\M', 'g'
        ) AS m
        WHERE asked
    LOOP
        CONTINUE WHEN said[3] IS NULL AND said[2] IN ('set', 'out', 'gen', 'mag', 'ago');
        year := said[3]::integer;
        day := said[1]::integer;
        FOR n IN 1..12 LOOP
            IF strpos(names[n], ' ' || said[2] || ' ') > 0 THEN
                month := n;
                IF coalesce(day, 1) BETWEEN 1 AND 31 THEN
                    RETURN NEXT;
                END IF;
                EXIT;
            END IF;
        END LOOP;
    END LOOP;
    FOR said IN SELECT regexp_matches(
        text,
        '([[:alnum:]][-._#])?\m(?:([0-9]{4})[-/.年]([0-9]{1,2})[-/.月]([0-9]{1,2})(?![0-9])'
        '|([0-9]{1,2})([-/.])([0-9]{1,2})[-/.]([0-9]{4})\M|([0-9]{1,2})[.]([0-9]{1,2})[.](?![0-9])'
        '|([0-9]{1,2})月([0-9]{1,2})日)', 'g'
    ) LOOP
        CONTINUE WHEN said[1] IS NOT NULL;
        year := coalesce(said[2], said[8])::integer;
        month := coalesce(said[3], said[7], said[10], said[11])::integer;
        day := coalesce(said[4], said[5], said[9], said[12])::integer;
        IF month BETWEEN 1 AND 12 AND day BETWEEN 1 AND 31 THEN
            RETURN NEXT;
        END IF;
        IF said[5] IS NOT NULL AND (said[6] = '/' OR month > 12) THEN
            swap := month;
            month := day;
            day := swap;
            IF month BETWEEN 1 AND 12 AND day BETWEEN 1 AND 31 THEN
                RETURN NEXT;
            END IF;
        END IF;
    END LOOP;
END
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
            IF run[2] ~ '^[[:alpha:]]' THEN
                RETURN NEXT translate(run[2], '-./_,''# ', '');
            END IF;
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
        FOR run IN SELECT regexp_matches(
            lower(text),
            '(?:\m([[:alpha:]]{1,3})[ -])?(?:\m([[:alpha:]]{1,3})[ -]?)?([0-9]{1,4}|[[:alpha:]]*[0-9]+)'
            '(?:[ -]([[:alpha:]]{1,3})(?:[ -]([0-9]{1,4}))?)?(?![[:alnum:]])', 'g'
        ) LOOP
            RETURN NEXT run[2] || run[3];
            RETURN NEXT run[3] || run[4];
            IF run[4] IS NOT NULL OR run[1] IS NOT NULL AND run[2] IS NOT NULL THEN
                RETURN NEXT concat(run[1], run[2], run[3], run[4], run[5]);
                RETURN NEXT concat(run[2], run[3], run[4]);
            END IF;
        END LOOP;
    END IF;
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
    typed text := text;
    said text[] := '{}';
    beside text[] := '{}';
    script record;
    its_words text;
    stems tsvector := '';
    foreign_letters text := '';
    on_day record;
    month text;
    on_date text;
    in_year text;
    found tsvector;
BEGIN
    IF octet_length(text) <> char_length(text) THEN
        plain := docmem.plain(text);
        typed := plain;
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
    IF asked AND plain ~ '[0-9][0-9A-Fa-f :-]{3}' THEN
        -- The parts of a time, an address or an account are each like those of many others.
        said := ARRAY(SELECT docmem.times(lower(plain)) UNION ALL SELECT docmem.marks(lower(plain)));
        IF cardinality(said) > 0 THEN
            plain := regexp_replace(
                regexp_replace(
                    lower(plain),
                    '(?<![\w:-])(?:([0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}|[0-9a-f]{4}[.][0-9a-f]{4}[.][0-9a-f]{4})'
                    '|((?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}'
                    '|(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,6})?::(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,6})?)'
                    '|([a-z]{2}[0-9]{2} ?(?:[a-z]{4} ?)?(?:[0-9][a-z0-9]{3} ?){2,6}(?:[0-9][a-z0-9]{0,2})?))(?![\w:-])',
                    ' ', 'g'
                ),
                '\m(?:[01]?[0-9]|2[0-3])(?:[:h][0-5][0-9](?: ?[ap][.]?m\M| ?uhr\M)?| ?[ap][.]?m\M)(?![0-9:])', ' ', 'g'
            );
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
    IF NOT asked THEN
        -- The day on which a memory was recorded stands first in its projection, and isn't one that it says.
        typed := regexp_replace(typed, '^[0-9]{1,2} [A-Za-z]+ [0-9]{4}[.]( |$)', '');
    END IF;
    plain := concat_ws(' ', plain, docmem.names(typed));
    IF typed ~ '[0-9]|[-:][A-Fa-f]{2}[-:]' THEN
        IF NOT asked AND typed ~ '[A-Z]{1,3}[ -][0-9]|[0-9][ -][A-Z]' THEN
            -- As on the plates of cars: what isn't in capitals is rather a sentence.
            beside := beside || ARRAY(
                SELECT lower(translate(plate[1], ' -', ''))
                FROM regexp_matches(
                    typed,
                    '(?<![\w-])((?:[A-Z]{1,3}[ -])?[A-Z]{1,3}[ -]?[0-9]{1,4}[ -]?[A-Z]{1,3}'
                    '|[0-9]{1,4}[ -][A-Z]{1,3}[ -][0-9]{1,4}|[A-Z]{1,3}[ -][A-Z]{1,3}[ -]?[0-9]{1,4})(?![\w-])', 'g'
                ) AS plate
                WHERE plate[1] ~ '[ -]'
            );
        END IF;
        typed := lower(typed);
        beside := beside || ARRAY(SELECT docmem.times(typed)) || ARRAY(
            SELECT mark FROM docmem.marks(typed) AS mark WHERE length(mark) BETWEEN 2 AND 64 AND mark <> '::'
        );
        FOR on_day IN SELECT d.year, d.month, d.day FROM docmem.days(typed, asked) AS d LOOP
            on_date := lpad(on_day.year::text, 4, '0') || '-';
            in_year := lpad(on_day.month::text, 2, '0') || '-' || lpad(on_day.day::text, 2, '0');
            IF asked THEN
                month := (
                    '{January,February,March,April,May,June,July,August,September,October,November,December}'::text[]
                )[on_day.month];
                -- One lexeme for a month would put all of it before what else a question is about.
                plain := concat_ws(
                    ' ', plain, month, on_day.year, on_day.day, CASE WHEN on_day.day > 0 THEN left(month, 3) END
                );
                beside := beside || CASE
                    WHEN on_day.day IS NULL THEN '{}'::text[]
                    WHEN on_day.year IS NULL THEN ARRAY[trim(to_char(on_day.day, '99th')), in_year]
                    ELSE ARRAY[
                        trim(to_char(on_day.day, '99th')), on_date || in_year, '--' || in_year,
                        replace(on_date || in_year, '-', '')
                    ]
                END;
            ELSIF on_day.day IS NOT NULL THEN
                -- Who asks may not know the year.
                beside := beside || in_year || coalesce(on_date || in_year, '--' || in_year);
            END IF;
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

-- Whether a text is ASCII without numbers, addresses and names that others write otherwise, as most are, but for the day
-- that a memory begins with: Postgres' own lexemes are all that it has. In UTF-8 only ASCII has as many bytes as
-- characters.
CREATE OR REPLACE FUNCTION docmem.is_prose(text text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN octet_length(text) = char_length(text)
    AND text ~ '^([0-9]{1,2} [A-Z][a-z]{2,8} [0-9]{4}[.]( |$))?[^0-9]*$'
    AND text !~ '[@./][A-Za-z]|[-:][A-Fa-f]{2}[-:]|(^|[ (])[OoDdLl]''[A-Za-z]|[a-z]-[A-Z]'
    AND text !~ '[A-Z][a-z]*([aou]e|aa)[a-z]|[AOU]e[a-z]';

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

CREATE OR REPLACE FUNCTION docmem.schema_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 16;
