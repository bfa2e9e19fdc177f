-- An earlier daemon would forget a memory and leave its tags here, and edit one without a row that protects it
-- from an undo of its import: none may go on beside it.
-- What `undo` can take back, and the memories that each action changed, by their `seq`. The memories of a
-- forget are in `forgotten`, by the id of the call. `tag` is a tag that the action gave or took, else empty.
DO $$
DECLARE
    kind text := (SELECT format_type(atttypid, NULL) FROM pg_attribute
        WHERE attrelid = 'owner'::regclass AND attname = 'owner');
    made text;
BEGIN
    EXECUTE format('CREATE TABLE undo_action (
        owner      %s NOT NULL,
        seq        integer NOT NULL,
        id         text COLLATE "C" NOT NULL,
        kind       text COLLATE "C" NOT NULL,
        created_at timestamptz NOT NULL,
        PRIMARY KEY (owner, seq),
        UNIQUE (owner, id)
    )', kind);
    EXECUTE format('CREATE TABLE undo_step (
        owner      %s NOT NULL,
        action     integer NOT NULL,
        memory_seq integer NOT NULL,
        tag        text COLLATE "C" NOT NULL,
        PRIMARY KEY (owner, action, memory_seq, tag)
    )', kind);
    FOREACH made IN ARRAY ARRAY['undo_action', 'undo_step'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', made);
        EXECUTE format(
            'CREATE POLICY own ON %I USING (owner = current_setting(''mnemosyned.owner'')::%s)',
            made, kind
        );
    END LOOP;
END $$;
ALTER TABLE undo_action ALTER id SET STATISTICS 0, ALTER kind SET STATISTICS 0;
ALTER TABLE undo_step ALTER tag SET STATISTICS 0;
CREATE INDEX undo_step_memory ON undo_step (owner, memory_seq);
