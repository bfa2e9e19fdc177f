-- compatible with 6
-- The ledger of injected context, and what a person decided about lines of briefings. Owners have the
-- type that they have in the other tables: eight bytes in a cluster that was distributed early.
DO $$
DECLARE
    kind text := (SELECT format_type(atttypid, NULL) FROM pg_attribute
        WHERE attrelid = 'owner'::regclass AND attname = 'owner');
    made text;
    kept record;
BEGIN
    EXECUTE format('CREATE TABLE injection (
        owner          %s NOT NULL,
        id             text COLLATE "C" NOT NULL,
        created_at     timestamptz NOT NULL,
        client         text COLLATE "C" NOT NULL,
        session_id     text COLLATE "C" NOT NULL,
        project        text COLLATE "C" NOT NULL,
        injection_kind text COLLATE "C" NOT NULL,
        prompt         text COLLATE "C" NOT NULL,
        characters     bigint NOT NULL,
        tokens         bigint NOT NULL,
        outcome        text COLLATE "C" NOT NULL,
        PRIMARY KEY (owner, id)
    )', kind);
    EXECUTE format('CREATE TABLE injected_line (
        owner        %s NOT NULL,
        injection_id text COLLATE "C" NOT NULL,
        place        integer NOT NULL,
        memory_id    text COLLATE "C" NOT NULL,
        text         text COLLATE "C" NOT NULL,
        reason       text COLLATE "C" NOT NULL,
        PRIMARY KEY (owner, injection_id, place),
        FOREIGN KEY (owner, injection_id) REFERENCES injection (owner, id) ON DELETE CASCADE
    )', kind);
    EXECUTE format('CREATE TABLE briefing_line (
        owner      %s NOT NULL,
        id         text COLLATE "C" NOT NULL,
        pinned     boolean NOT NULL,
        dropped    boolean NOT NULL,
        text       text COLLATE "C" NOT NULL,
        changed_at timestamptz NOT NULL,
        PRIMARY KEY (owner, id)
    )', kind);
    FOREACH made IN ARRAY ARRAY['injection', 'injected_line', 'briefing_line'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', made);
        EXECUTE format(
            'CREATE POLICY own ON %I USING (owner = current_setting(''mnemosyned.owner'')::%s)',
            made, kind
        );
    END LOOP;
    -- No words in the statistics, as with all other text.
    FOR kept IN
        SELECT table_name, column_name FROM information_schema.columns
        WHERE table_schema = current_schema() AND data_type = 'text'
        AND table_name IN ('injection', 'injected_line', 'briefing_line')
    LOOP
        EXECUTE format('ALTER TABLE %I ALTER %I SET STATISTICS 0', kept.table_name, kept.column_name);
    END LOOP;
END $$;
CREATE INDEX injection_session ON injection (owner, session_id);
CREATE INDEX injected_line_memory ON injected_line (owner, memory_id);
