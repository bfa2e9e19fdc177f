-- Fewer bytes for each byte of text, in rows and in keys.

-- Exact values lie beside the place of their original, in no row of their own. Both columns are JSON,
-- kinds and values in turns, the kind as its number in the list below: [4,"€754",11,"SO-71381"]. What
-- is secret lies apart.
ALTER TABLE placed ADD details text COLLATE "C", ADD secrets text COLLATE "C";
UPDATE placed AS p SET details = d.plain, secrets = d.secret FROM (
    SELECT owner, memory_seq,
        '[' || string_agg(pair, ',') FILTER (WHERE NOT sensitive) || ']' AS plain,
        '[' || string_agg(pair, ',') FILTER (WHERE sensitive) || ']' AS secret
    FROM (
        SELECT owner, memory_seq, sensitive, array_position(ARRAY[
            'date', 'time', 'duration', 'money', 'number', 'email', 'url', 'path', 'version', 'hash',
            'identifier', 'password', 'private_key', 'aws_key', 'github_token', 'gitlab_token',
            'slack_token', 'jwt', 'api_key', 'token', 'access_code', 'login_code', 'seed_phrase',
            'cookie', 'signature', 'card_number', 'iban', 'ssn'
        ], kind) || ',' || to_json(value)::text AS pair
        FROM detail
    ) AS pairs GROUP BY owner, memory_seq
) AS d WHERE d.owner = p.owner AND d.memory_seq = p.seq;
DROP TABLE detail;

-- What was said before in a session is found by one number, where the name of the session and a hash
-- took 44 bytes in pages that were half empty. The hash is kept of words that were pruned, to know them
-- again.
DROP INDEX memory_said;
DROP INDEX placed_episode;
ALTER TABLE memory ALTER content_hash DROP NOT NULL;
ALTER TABLE memory ALTER content_hash TYPE bigint USING CASE WHEN content = '' THEN content_hash END,
    ADD said integer GENERATED ALWAYS AS (hashtext(session_id) # hashtext(content)) STORED;

-- A question reads the counts of words in many summaries, and the texts of few: these lie apart once
-- a row is long, and a summary that goes into another one is not copied with them.
ALTER TABLE episode SET (toast_tuple_target = 256);

-- Owners and the numbers of their rows have four bytes, not eight: two billion of each. A cluster
-- keeps eight where its rows are distributed already, as what they are distributed by cannot change.
-- Nor does a cluster change the storage or the statistics of what is distributed: `mnem db distribute`
-- does the latter.
DO $$
DECLARE
    held record;
BEGIN
    IF to_regclass('pg_dist_partition') IS NOT NULL THEN
        IF EXISTS (SELECT 1 FROM pg_dist_partition WHERE logicalrelid = 'owner'::regclass) THEN
            RETURN;
        END IF;
    END IF;
    ALTER TABLE placed ALTER details SET STATISTICS 0, ALTER secrets SET STATISTICS 0;
    ALTER TABLE episode ALTER id SET STORAGE MAIN, ALTER session_id SET STORAGE MAIN,
        ALTER source SET STORAGE MAIN, ALTER summarizer SET STORAGE MAIN,
        ALTER parent_id SET STORAGE MAIN, ALTER repeated SET STORAGE MAIN,
        ALTER repeats SET STORAGE MAIN;
    DROP VIEW memory_index, episode_index;
    FOR held IN
        SELECT tablename FROM pg_policies WHERE schemaname = current_schema() AND policyname = 'own'
    LOOP
        EXECUTE format('DROP POLICY own ON %I', held.tablename);
    END LOOP;
    FOR held IN
        SELECT c.relname, string_agg(format('ALTER %I TYPE integer', a.attname), ', ') AS changes
        FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
        AND a.atttypid = 'bigint'::regtype
        AND (a.attname IN ('owner', 'seq', 'memory_seq', 'episode_seq')
            OR c.relname = 'memory_state' AND a.attname = 'superseded_by')
        GROUP BY c.relname
    LOOP
        EXECUTE format('ALTER TABLE %I %s', held.relname, held.changes);
    END LOOP;
    ALTER SEQUENCE owner_number AS integer;
    FOR held IN
        SELECT c.relname FROM pg_class AS c
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relrowsecurity
    LOOP
        EXECUTE format(
            'CREATE POLICY own ON %I USING (owner = current_setting(''mnemosyned.owner'')::integer)',
            held.relname
        );
    END LOOP;
    CREATE VIEW memory_index AS
        SELECT owner + 0 AS owner, seq, id, session_id, source, role, importance, pinned, created_at,
            words, grams, gram_count
        FROM memory WHERE owner + 0 = current_setting('mnemosyned.owner')::integer;
    CREATE VIEW episode_index AS
        SELECT owner + 0 AS owner, seq, id, session_id, source, level, covers_from, covers_until,
            period_from, parent_id, created_at, words, grams, word_count, gram_count, repeated, repeats
        FROM episode WHERE owner + 0 = current_setting('mnemosyned.owner')::integer;
END $$;

-- Rows of a session share an entry of its index, and so do the originals of an episode.
CREATE INDEX memory_session ON memory (owner, session_id);
CREATE INDEX memory_said ON memory (owner, said);
CREATE INDEX placed_episode ON placed (owner, episode_seq);

-- Keys that only grow fill their pages.
ALTER INDEX memory_owner_id_key SET (fillfactor = 100);
ALTER INDEX fresh_pkey SET (fillfactor = 100);
ALTER INDEX fresh_created_at SET (fillfactor = 100);

-- The key of memories is made last, and the index of what was said after that of sessions: of indexes
-- that seem equal, as all do while a table is small, the server takes the newest.
DO $$
DECLARE
    again text[];
BEGIN
    SELECT array_agg(format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname,
        pg_get_constraintdef(oid))) INTO again
    FROM pg_constraint WHERE contype = 'f' AND confrelid = 'memory'::regclass;
    ALTER TABLE memory DROP CONSTRAINT memory_pkey CASCADE;
    ALTER TABLE memory ADD PRIMARY KEY (owner, seq) WITH (fillfactor = 100);
    FOR place IN 1 .. cardinality(again) LOOP
        EXECUTE again[place];
    END LOOP;
END $$;
