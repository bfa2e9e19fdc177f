-- compatible with 8
-- Memories from which rules were learned by vectors: all up to the lowest position, which are row numbers, and
-- those at the others, which brought their learnings with them.
DO $$
DECLARE
    kind text := (SELECT format_type(atttypid, NULL) FROM pg_attribute
        WHERE attrelid = 'owner'::regclass AND attname = 'owner');
BEGIN
    EXECUTE format('CREATE TABLE learned (
        owner    %s NOT NULL,
        position bigint NOT NULL,
        PRIMARY KEY (owner, position)
    )', kind);
    INSERT INTO learned SELECT owner, position FROM ending_progress;
    ALTER TABLE learned ENABLE ROW LEVEL SECURITY;
    EXECUTE format(
        'CREATE POLICY own ON learned USING (owner = current_setting(''mnemosyned.owner'')::%s)', kind
    );
END $$;
