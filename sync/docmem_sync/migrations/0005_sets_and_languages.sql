-- Which sets of vectors a tenant has, and in which language each text is searched.

-- `serves`: its vectors answer questions; another model's set is built beside it and serves once it is complete.
-- `indexed`: it has an HNSW index of its own. `revision`: up to there every text has a vector.
CREATE TABLE docmem.vector_set (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    set text NOT NULL,
    serves boolean NOT NULL,
    indexed boolean NOT NULL,
    revision text,
    used_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, set)
);

ALTER TABLE docmem.vector_set ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.vector_set
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

GRANT SELECT ON docmem.vector_set TO docmem_reader;
GRANT SELECT, INSERT, UPDATE, DELETE ON docmem.vector_set TO docmem_sync;

-- A text's own language, where it isn't the tenant's; and all such languages of a tenant.
ALTER TABLE docmem.memory ADD COLUMN language text;
ALTER TABLE docmem.document ADD COLUMN language text;
ALTER TABLE docmem.tenant_config ADD COLUMN languages text[] NOT NULL DEFAULT '{}';

CREATE INDEX memory_language ON docmem.memory (tenant_id, language) WHERE language IS NOT NULL;
CREATE INDEX document_language ON docmem.document (tenant_id, language) WHERE language IS NOT NULL;

-- A text as somebody types it who leaves accents out. Built in: the extension unaccent isn't everywhere.
CREATE FUNCTION docmem.folded(text text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN translate(
    replace(replace(replace(replace(
        normalize(regexp_replace(
            normalize(text, NFD), '([A-Za-z\u0391-\u03a9\u03b1-\u03c9])[\u0300-\u036f]+', '\1', 'g'
        ), NFC),
        'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'þ', 'th'),
    'øØłŁđĐðÐıİ', 'oOlLdDdDii'
);

-- The lexemes of a text. With accents: those of the text as it is, which stem best, and those without accents, at the
-- same places. In UTF-8 only a text of ASCII has as many bytes as characters.
CREATE FUNCTION docmem.words(language regconfig, text text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN octet_length(text) = char_length(text) THEN to_tsvector(language, text)
    ELSE (to_tsvector(language, normalize(text, NFC))::text || ' '
          || to_tsvector(language, docmem.folded(text))::text)::tsvector
END;

-- What is there already. The owner too sees one tenant at a time, unless row-level security is lifted for a moment.
ALTER TABLE docmem.tenant_config NO FORCE ROW LEVEL SECURITY;
ALTER TABLE docmem.memory NO FORCE ROW LEVEL SECURITY;
ALTER TABLE docmem.document NO FORCE ROW LEVEL SECURITY;
ALTER TABLE docmem.memory_vector NO FORCE ROW LEVEL SECURITY;
ALTER TABLE docmem.document_vector NO FORCE ROW LEVEL SECURITY;

INSERT INTO docmem.vector_set (tenant_id, set, serves, indexed, used_at)
SELECT tenant_id, set, true, false, clock_timestamp() FROM docmem.memory_vector
UNION
SELECT tenant_id, set, true, false, clock_timestamp() FROM docmem.document_vector
ON CONFLICT DO NOTHING;

UPDATE docmem.memory AS m SET tsv = docmem.words(c.language::regconfig, m.projection)
FROM docmem.tenant_config AS c
WHERE c.tenant_id = m.tenant_id AND octet_length(m.projection) <> char_length(m.projection);

UPDATE docmem.document AS d SET tsv = docmem.words(c.language::regconfig, d.projection)
FROM docmem.tenant_config AS c
WHERE c.tenant_id = d.tenant_id AND octet_length(d.projection) <> char_length(d.projection);

ALTER TABLE docmem.tenant_config FORCE ROW LEVEL SECURITY;
ALTER TABLE docmem.memory FORCE ROW LEVEL SECURITY;
ALTER TABLE docmem.document FORCE ROW LEVEL SECURITY;
ALTER TABLE docmem.memory_vector FORCE ROW LEVEL SECURITY;
ALTER TABLE docmem.document_vector FORCE ROW LEVEL SECURITY;
ALTER TABLE docmem.vector_set FORCE ROW LEVEL SECURITY;

CREATE OR REPLACE FUNCTION docmem.schema_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 5;
