-- compatible with 7
-- Endings: the statement of an older memory that a newer one ended, by their ids and the numbers of the two
-- sentences. No words: they are those of the memories. `ending_progress` is the row number up to which
-- memories were read for endings.
DO $$
DECLARE
    kind text := (SELECT format_type(atttypid, NULL) FROM pg_attribute
        WHERE attrelid = 'owner'::regclass AND attname = 'owner');
    made text;
BEGIN
    EXECUTE format('CREATE TABLE ending (
        owner       %s NOT NULL,
        older_id    text COLLATE "C" NOT NULL,
        newer_id    text COLLATE "C" NOT NULL,
        reason      text COLLATE "C" NOT NULL,
        older_place integer NOT NULL,
        newer_place integer NOT NULL,
        found_at    timestamptz NOT NULL,
        undone      boolean NOT NULL,
        PRIMARY KEY (owner, older_id, newer_id, older_place)
    )', kind);
    EXECUTE format('CREATE TABLE ending_progress (
        owner    %s PRIMARY KEY,
        position bigint NOT NULL
    )', kind);
    FOREACH made IN ARRAY ARRAY['ending', 'ending_progress'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', made);
        EXECUTE format(
            'CREATE POLICY own ON %I USING (owner = current_setting(''mnemosyned.owner'')::%s)',
            made, kind
        );
    END LOOP;
END $$;
ALTER TABLE ending ALTER older_id SET STATISTICS 0;
ALTER TABLE ending ALTER newer_id SET STATISTICS 0;
ALTER TABLE ending ALTER reason SET STATISTICS 0;
CREATE INDEX ending_newer ON ending (owner, newer_id);
CREATE INDEX ending_found ON ending (owner, found_at);
