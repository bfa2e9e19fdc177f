-- compatible with 14
-- Groups: owners without tokens, whose memory their members read and write. A membership belongs to the
-- member, so that all of a member's lie together, and is out of reach of requests, as tokens are.
ALTER TABLE owner ADD COLUMN is_group boolean NOT NULL DEFAULT false;
DO $$
DECLARE
    kind text := (SELECT format_type(atttypid, NULL) FROM pg_attribute
        WHERE attrelid = 'owner'::regclass AND attname = 'owner');
BEGIN
    EXECUTE format('CREATE TABLE membership (
        owner       %1$s NOT NULL,
        group_owner %1$s NOT NULL,
        scopes      text[] COLLATE "C" NOT NULL,
        joined_at   timestamptz NOT NULL,
        PRIMARY KEY (owner, group_owner)
    )', kind);
    ALTER TABLE membership ENABLE ROW LEVEL SECURITY;
    EXECUTE format(
        'CREATE POLICY own ON membership USING (owner = current_setting(''mnemosyned.owner'')::%s)', kind
    );
END $$;

-- The memories that an owner may ask: its own, with no scopes, then those of its groups by name.
CREATE FUNCTION memories_of(member bigint)
RETURNS TABLE (memory_owner bigint, memory_name text, scopes text[])
LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    -- Apart, as the nodes of a cluster join no rows of two owners.
    WITH joined AS MATERIALIZED (
        SELECT m.group_owner, m.scopes FROM membership AS m WHERE m.owner = member
        UNION ALL SELECT member, NULL
    ) SELECT o.owner, o.name, j.scopes FROM joined AS j JOIN owner AS o ON o.owner = j.group_owner
    WHERE (o.is_group OR o.owner = member) AND o.suspended_at IS NULL ORDER BY o.is_group, o.name; END;

REVOKE EXECUTE ON FUNCTION memories_of(bigint) FROM PUBLIC;
