-- compatible with 22
-- Edited memories, until endings and rules were read in them again. A killed daemon reads them at its next start.
DO $$
DECLARE
    kind text := (SELECT format_type(atttypid, NULL) FROM pg_attribute
        WHERE attrelid = 'owner'::regclass AND attname = 'owner');
BEGIN
    EXECUTE format('CREATE TABLE edited_memory (
        owner      %s NOT NULL,
        mark       bigint NOT NULL,
        memory_seq integer NOT NULL,
        PRIMARY KEY (owner, mark)
    )', kind);
    ALTER TABLE edited_memory ENABLE ROW LEVEL SECURITY;
    EXECUTE format(
        'CREATE POLICY own ON edited_memory USING (owner = current_setting(''mnemosyned.owner'')::%s)', kind
    );
END $$;
