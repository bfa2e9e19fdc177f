-- compatible with 9
-- Figures of each day, by the daemon's calendar: how many recalls took how long, as JSON by steps of time, and the
-- size of the database when they were last saved; 0 where it is not the owner's to know.
DO $$
DECLARE
    kind text := (SELECT format_type(atttypid, NULL) FROM pg_attribute
        WHERE attrelid = 'owner'::regclass AND attname = 'owner');
BEGIN
    EXECUTE format('CREATE TABLE daily_figures (
        owner         %s NOT NULL,
        day           text COLLATE "C" NOT NULL,
        recall_times  text COLLATE "C" NOT NULL,
        bytes_on_disk bigint NOT NULL,
        PRIMARY KEY (owner, day)
    )', kind);
    ALTER TABLE daily_figures ALTER day SET STATISTICS 0, ALTER recall_times SET STATISTICS 0;
    ALTER TABLE daily_figures ENABLE ROW LEVEL SECURITY;
    EXECUTE format(
        'CREATE POLICY own ON daily_figures USING (owner = current_setting(''mnemosyned.owner'')::%s)', kind
    );
END $$;
