-- Owners apart from each other, by the database itself. Every table with an owner has a policy: a
-- role that does not own the tables sees the rows of the owner that its transaction names, and fails
-- where it names none. A daemon for many owners works in such a role; one for a single owner works
-- as who owns the tables, to whom no policy applies.

-- Tokens of a daemon for many owners; of each its SHA-256 alone.
CREATE SEQUENCE owner_number AS bigint START WITH 2; -- 1 is the owner of a memory with only one
CREATE TABLE owner_token (
    owner      bigint NOT NULL REFERENCES owner (owner) ON DELETE CASCADE,
    digest     bytea NOT NULL,
    id         text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    scopes     text[] COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz,
    PRIMARY KEY (owner, digest),
    UNIQUE (owner, id)
);
-- No names in the statistics, as with all other text.
ALTER TABLE owner_token ALTER id SET STATISTICS 0, ALTER name SET STATISTICS 0;
ALTER TABLE owner ALTER name SET STATISTICS 0;

-- Under a policy no index of words is used, as `&&` and `@>` are not known to keep secrets. These
-- views read as who owns the tables, hold to the same owner, and have no text of anybody. To add
-- nothing hides the owner from the keys: a planner with old statistics would read all rows of an
-- owner by the key, where the postings of its words, which are its own, name a few.
CREATE VIEW memory_index AS
    SELECT owner + 0 AS owner, seq, id, session_id, source, role, importance, pinned, created_at, words, grams,
        gram_count
    FROM memory WHERE owner + 0 = current_setting('mnemosyned.owner')::bigint;
CREATE VIEW episode_index AS
    SELECT owner + 0 AS owner, seq, id, session_id, source, level, covers_from, covers_until, period_from,
        parent_id, created_at, words, grams, word_count, gram_count, repeated, repeats
    FROM episode WHERE owner + 0 = current_setting('mnemosyned.owner')::bigint;

DO $$
DECLARE
    held record;
BEGIN
    FOR held IN
        SELECT c.relname FROM pg_class AS c
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'owner'
        WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', held.relname);
        EXECUTE format(
            'CREATE POLICY own ON %I USING (owner = current_setting(''mnemosyned.owner'')::bigint)',
            held.relname
        );
    END LOOP;
END $$;
