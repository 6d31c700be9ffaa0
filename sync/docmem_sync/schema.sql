-- The schema as all migrations together make it. A test holds the two equal.

CREATE SCHEMA docmem;

-- How far a tenant's repo is mirrored, and how many files that are. `recorded_at` is the effective time of that
-- revision: no later commit is older. NULL: history isn't filled yet, and the next sync derives it from all commits.
CREATE TABLE docmem.sync_state (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    revision text NOT NULL,
    synced_at timestamptz NOT NULL,
    projection integer NOT NULL,
    recorded_at timestamptz,
    files integer,
    PRIMARY KEY (tenant_id)
);

-- The last valid docmem.yaml. `language` is the one that the tenant's tsv were made with; `languages`: those of texts
-- that name their own.
CREATE TABLE docmem.tenant_config (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    config jsonb NOT NULL,
    language text NOT NULL,
    retention jsonb NOT NULL,
    budgets jsonb NOT NULL,
    weights jsonb NOT NULL,
    blob text,
    revision text NOT NULL,
    languages text[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (tenant_id)
);

-- One row a memory file. `revision` is the last first-parent commit that changed the file.
CREATE TABLE docmem.memory (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    id text NOT NULL,
    path text NOT NULL,
    blob text NOT NULL,
    revision text NOT NULL,
    subject text NOT NULL,
    agent text,
    kind text NOT NULL,
    topic text,
    text text NOT NULL,
    confidence real,
    importance smallint NOT NULL,
    valid_from timestamptz,
    valid_until timestamptz,
    expires timestamptz,
    thread text,
    turns text[] NOT NULL,
    quote text,
    uri text,
    supersedes text[] NOT NULL,
    meta jsonb NOT NULL,
    projection text NOT NULL,
    projection_hash text NOT NULL,
    tsv tsvector NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    language text,
    PRIMARY KEY (tenant_id, id)
);

-- Vectors of memories. PLAIN keeps them in the row: out of line an exact scan takes three times as long. `subject` is
-- the memory's, and triggers see to that: by the ids of a large tenant, which are hashes, each vector of a subject is
-- in another page of an index.
CREATE TABLE docmem.memory_vector (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    id text NOT NULL,
    set text NOT NULL,
    projection_hash text NOT NULL,
    embedding halfvec STORAGE PLAIN NOT NULL,
    subject text NOT NULL,
    PRIMARY KEY (tenant_id, id, set),
    FOREIGN KEY (tenant_id, id) REFERENCES docmem.memory ON DELETE CASCADE
);

-- One row a profile. `version` counts the first-parent commits that changed the file since it is there.
CREATE TABLE docmem.profile (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    subject text NOT NULL,
    path text NOT NULL,
    blob text NOT NULL,
    revision text NOT NULL,
    version integer NOT NULL,
    label text,
    preferred_language text,
    locale text,
    lifecycle_stage text,
    last_interaction_at timestamptz,
    remember boolean NOT NULL,
    attributes jsonb NOT NULL,
    pinned text[] NOT NULL,
    meta jsonb NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, subject)
);

-- Tenant-level Markdown. The chunks of a path, in order, are its text.
CREATE TABLE docmem.document (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    path text NOT NULL,
    chunk integer NOT NULL,
    id text NOT NULL,
    blob text NOT NULL,
    revision text NOT NULL,
    folder text NOT NULL,
    title text NOT NULL,
    text text NOT NULL,
    meta jsonb NOT NULL,
    projection text NOT NULL,
    projection_hash text NOT NULL,
    tsv tsvector NOT NULL,
    updated_at timestamptz NOT NULL,
    language text,
    PRIMARY KEY (tenant_id, path, chunk)
);

-- Vectors of documents' chunks.
CREATE TABLE docmem.document_vector (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    path text NOT NULL,
    chunk integer NOT NULL,
    set text NOT NULL,
    projection_hash text NOT NULL,
    embedding halfvec STORAGE PLAIN NOT NULL,
    PRIMARY KEY (tenant_id, path, chunk, set),
    FOREIGN KEY (tenant_id, path, chunk) REFERENCES docmem.document ON DELETE CASCADE
);

-- What the index served, and when: one row a version of a memory, derived from the first-parent commits. `revision` is
-- the commit that opened it, `op` how (create, update, move), `closed_revision` the one that closed it; the recorded
-- times are these commits' effective ones, [from, to). The open row of an id is what `memory` holds. `step` counts an
-- id's versions: commits of one second have one time.
CREATE TABLE docmem.memory_history (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    id text NOT NULL,
    step integer NOT NULL,
    op text NOT NULL,
    revision text NOT NULL,
    recorded_from timestamptz NOT NULL,
    closed_revision text,
    recorded_to timestamptz,
    superseded_by text,
    path text NOT NULL,
    blob text NOT NULL,
    subject text NOT NULL,
    agent text,
    kind text NOT NULL,
    topic text,
    text text NOT NULL,
    confidence real,
    importance smallint NOT NULL,
    valid_from timestamptz,
    valid_until timestamptz,
    expires timestamptz,
    thread text,
    turns text[] NOT NULL,
    quote text,
    uri text,
    supersedes text[] NOT NULL,
    meta jsonb NOT NULL,
    PRIMARY KEY (tenant_id, id, step)
);

-- The same of profiles.
CREATE TABLE docmem.profile_history (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    subject text NOT NULL,
    step integer NOT NULL,
    op text NOT NULL,
    revision text NOT NULL,
    recorded_from timestamptz NOT NULL,
    closed_revision text,
    recorded_to timestamptz,
    path text NOT NULL,
    blob text NOT NULL,
    label text,
    preferred_language text,
    locale text,
    lifecycle_stage text,
    last_interaction_at timestamptz,
    remember boolean NOT NULL,
    attributes jsonb NOT NULL,
    pinned text[] NOT NULL,
    meta jsonb NOT NULL,
    PRIMARY KEY (tenant_id, subject, step)
);

-- Which sets of vectors a tenant has.
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

-- Files that can't be read as format 1. What they said last stays served; a file waits here until its blob changes.
CREATE TABLE docmem.quarantine (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    path text NOT NULL,
    blob text NOT NULL,
    revision text NOT NULL,
    code text NOT NULL,
    line integer NOT NULL,
    reason text NOT NULL,
    since timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, path)
);

-- A subject's cost is its own. There is no GIN index on tsv: `@@` isn't leakproof, so row-level security keeps
-- the planner off it, and it would only make writes dearer.
CREATE INDEX memory_subject ON docmem.memory (tenant_id, subject);
CREATE INDEX memory_vector_subject ON docmem.memory_vector (tenant_id, subject, set);
CREATE INDEX memory_path ON docmem.memory (tenant_id, path);
CREATE INDEX memory_history_subject ON docmem.memory_history (tenant_id, subject);
CREATE INDEX memory_language ON docmem.memory (tenant_id, language) WHERE language IS NOT NULL;
CREATE INDEX document_id ON docmem.document (tenant_id, id);
CREATE INDEX document_folder ON docmem.document (tenant_id, folder, path, chunk);
CREATE INDEX document_language ON docmem.document (tenant_id, language) WHERE language IS NOT NULL;
CREATE INDEX memory_vector_hash ON docmem.memory_vector (tenant_id, projection_hash, set);
CREATE INDEX document_vector_hash ON docmem.document_vector (tenant_id, projection_hash, set);

-- Without a tenant the setting is NULL, after a transaction '': neither is anybody's.
-- Consolidations that failed for good. Operational: a rebuild keeps it, and losing it loses no memory.
CREATE TABLE docmem.job (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    thread text NOT NULL,
    subject text NOT NULL,
    agent text NOT NULL,
    attempts integer NOT NULL,
    reason text NOT NULL,
    failed_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, thread)
);

-- Where commits went when a history was written anew by an erase. A rebuild keeps it.
CREATE TABLE docmem.revision_map (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    old text NOT NULL,
    new text NOT NULL,
    PRIMARY KEY (tenant_id, old)
);

-- How often, and in which run last, a memory was given to an agent. Operational: a rebuild keeps it, and losing it loses
-- no memory.
CREATE TABLE docmem.usage (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    memory text NOT NULL,
    agent text NOT NULL,
    last_used_run bigint NOT NULL,
    uses bigint NOT NULL,
    used_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, memory, agent)
);

-- What a run was given: each piece of each packet, and the file and commit it came from. `packet` is a hash of the
-- packet's text. A row without a packet says that a run was counted. Operational, and kept for 30 days.
CREATE TABLE docmem.trace (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    agent text NOT NULL,
    run bigint NOT NULL,
    packet text NOT NULL,
    starts integer NOT NULL,
    ends integer NOT NULL,
    block text NOT NULL,
    memory text NOT NULL,
    path text NOT NULL,
    revision text NOT NULL,
    subject text NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, agent, run, packet, starts)
);

-- The key of a tenant's notifications. Channels know no row-level security: what is said on them is hashed with this,
-- and so means something only to who may read the tenant's rows. A rebuild keeps it, so that caches go on hearing.
CREATE TABLE docmem.channel (
    tenant_id text NOT NULL CHECK (tenant_id <> ''),
    key text NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', ''),
    PRIMARY KEY (tenant_id)
);

CREATE INDEX usage_run ON docmem.usage (tenant_id, agent, last_used_run);
CREATE INDEX trace_at ON docmem.trace (tenant_id, at);

ALTER TABLE docmem.sync_state ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.sync_state FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.sync_state
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.tenant_config ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.tenant_config FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.tenant_config
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.memory ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.memory FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.memory
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.memory_vector ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.memory_vector FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.memory_vector
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.profile ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.profile FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.profile
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.document ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.document FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.document
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.document_vector ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.document_vector FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.document_vector
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.vector_set ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.vector_set FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.vector_set
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.quarantine ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.quarantine FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.quarantine
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.memory_history ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.memory_history FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.memory_history
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.profile_history ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.profile_history FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.profile_history
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.job ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.job FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.job
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.revision_map ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.revision_map FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.revision_map
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.usage ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.usage FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.usage
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.trace ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.trace FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.trace
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

ALTER TABLE docmem.channel ENABLE ROW LEVEL SECURITY;
ALTER TABLE docmem.channel FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON docmem.channel
    USING (tenant_id = current_setting('app.current_tenant', true))
    WITH CHECK (tenant_id = current_setting('app.current_tenant', true));

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

-- The lexemes of a text, or of what is asked of texts. With accents: those of the text as it is, which stem best, and
-- at the same places those without accents and with "ue" for "ü". Numbers and codes, and scripts without spaces, have
-- others beside them. A "-" between a word and a number makes that no negative one, and a word of five letters is one.
CREATE FUNCTION docmem.lexemes(language regconfig, text text, asked boolean) RETURNS tsvector
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
CREATE FUNCTION docmem.is_prose(text text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN octet_length(text) = char_length(text)
    AND text ~ '^([0-9]{1,2} [A-Z][a-z]{2,8} [0-9]{4}[.]( |$))?[^0-9]*$'
    AND text !~ '[@./][A-Za-z]|[-:][A-Fa-f]{2}[-:]|(^|[ (])[OoDdLl]''[A-Za-z]|[a-z]-[A-Z]'
    AND text !~ '[A-Z][a-z]*([aou]e|aa)[a-z]|[AOU]e[a-z]';

-- The lexemes of a text.
CREATE FUNCTION docmem.words(language regconfig, text text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN docmem.is_prose(text) THEN to_tsvector(language, text) ELSE docmem.lexemes(language, text, false)
END;

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
--   which any stands, by the sum of what these count. Of very many those with a rare word are weighed, and others that
--   `ts_rank` chooses, which knows no weights; it breaks ties, too;
-- - what is nearest to a vector, with no cosine below `floor`: by key and sort, exact, and for the few vectors of a
--   subject faster than any index. An approximate index is of one set of one tenant, over an expression that doesn't
--   stand here: no plan can take it;
-- - the newest `preferences`, and the newest of some kinds (`recent`);
-- - when the first of all these memories `ends`: is no longer so, or kept for longer than its kind is.
-- A memory is in the answer once, whatever found it, and column by column: names and columns of each row were half of
-- the answer. Each part is a statement of its own, and only where it is asked for: to start one plan of all parts took
-- longer than to run it. What a part finds it says by its place (ctid), which stays as it is while one statement looks
-- and leads back to the row at once; by key each was a walk down an index, a cold one in a large tenant. See recall.py.
CREATE FUNCTION docmem.found(tenant text, request json) RETURNS json LANGUAGE plpgsql STABLE AS $$
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

-- What a turn reads, in one statement and one view of the rows: those parts of it that are asked for, as JSON.
-- As statements of their own they cost three times as much, nearly all of it to plan them; here they are planned once a
-- connection. Such a plan knows no tenant and needs none: all of this is read by key and exact, so a plan decides how
-- long it takes and never what is found. That isn't so of a search over all of a tenant, nor of what an approximate
-- index may serve: they aren't in here. It sets no tenant, and sees what its caller sees.
CREATE FUNCTION docmem.read(tenant text, request json) RETURNS json LANGUAGE plpgsql STABLE
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

CREATE FUNCTION docmem.schema_version() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 18;

GRANT USAGE ON SCHEMA docmem TO docmem_sync, docmem_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA docmem TO docmem_reader;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA docmem TO docmem_sync;
GRANT INSERT, UPDATE ON docmem.usage TO docmem_reader;
-- Whoever may UPDATE a table may lock it, and sync prunes this one.
GRANT INSERT ON docmem.trace TO docmem_reader;
