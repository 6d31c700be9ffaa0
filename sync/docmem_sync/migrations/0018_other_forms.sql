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

CREATE OR REPLACE FUNCTION docmem.asked(languages text[], question text) RETURNS TABLE (language text, lexeme text)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
AS $$
DECLARE
    lexemes text[];
BEGIN
    IF question ~ '[[:alpha:]]-[[:alpha:]]|[a-z][A-Z]|[[:upper:]][[:alpha:]]+ [[:upper:]]|[0-9][.,][0-9]' THEN
        question := concat_ws(' ; ', question, docmem.in_other_forms(question));
    END IF;
    FOREACH language IN ARRAY languages LOOP
        lexemes := tsvector_to_array(docmem.lexemes(language::regconfig, question, true));
        IF cardinality(lexemes) > 700 THEN
            lexemes := (ARRAY(
                SELECT l FROM unnest(lexemes) AS l ORDER BY l ~ '[0-9]', length(l) DESC, l COLLATE "C"
            ))[:700];
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

CREATE OR REPLACE FUNCTION docmem.schema_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 18;
