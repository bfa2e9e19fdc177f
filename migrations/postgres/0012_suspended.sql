-- compatible with 11
-- Owners that are suspended, and what is known of their tokens: how long each is valid from its issue
-- (to be renewed for as long), when it was last used, and how often. Daemons of the version before
-- ask `token_of`, which tells them nothing of the scope that they do not know.

ALTER TABLE owner ADD COLUMN suspended_at timestamptz;
ALTER TABLE owner_token
    ADD COLUMN valid_for interval,
    ADD COLUMN last_used_at timestamptz,
    ADD COLUMN requests bigint NOT NULL DEFAULT 0;

CREATE OR REPLACE FUNCTION token_of(token_owner bigint, token_digest bytea)
RETURNS TABLE (digest bytea, id text, scopes text[]) LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    SELECT t.digest, t.id, array_remove(t.scopes, 'admin' COLLATE "C") FROM owner_token AS t
    WHERE t.owner = token_owner AND t.digest = token_digest AND t.revoked_at IS NULL
    AND (t.expires_at IS NULL OR t.expires_at > now())
    AND EXISTS (SELECT 1 FROM owner AS o WHERE o.owner = token_owner AND o.suspended_at IS NULL); END;

CREATE FUNCTION token_holder(token_owner bigint, token_digest bytea)
RETURNS TABLE (digest bytea, id text, name text, scopes text[], expires_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    SELECT t.digest, t.id, t.name, t.scopes, t.expires_at FROM owner_token AS t
    WHERE t.owner = token_owner AND t.digest = token_digest AND t.revoked_at IS NULL
    AND (t.expires_at IS NULL OR t.expires_at > now())
    AND EXISTS (SELECT 1 FROM owner AS o WHERE o.owner = token_owner AND o.suspended_at IS NULL); END;

CREATE FUNCTION note_token_uses(owners bigint[], ids text[], counts bigint[])
RETURNS void LANGUAGE sql SECURITY DEFINER
BEGIN ATOMIC
    UPDATE owner_token AS t SET last_used_at = now(), requests = t.requests + used.count
    FROM unnest(owners, ids, counts) AS used (owner, id, count)
    WHERE t.owner = used.owner AND t.id = used.id COLLATE "C"; END;

REVOKE EXECUTE ON FUNCTION token_holder(bigint, bytea), note_token_uses(bigint[], text[], bigint[])
FROM PUBLIC;
