-- What a daemon asks about all owners: functions that run as who owns the tables, so that a login which
-- owns nothing can serve. They name owners by their numbers and tell nothing that is kept. Earlier
-- daemons are not compatible: they work in a role that this one takes the tables from.

CREATE FUNCTION token_of(token_owner bigint, token_digest bytea)
RETURNS TABLE (digest bytea, id text, scopes text[]) LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    SELECT t.digest, t.id, t.scopes FROM owner_token AS t
    WHERE t.owner = token_owner AND t.digest = token_digest AND t.revoked_at IS NULL
    AND (t.expires_at IS NULL OR t.expires_at > now()); END;

CREATE FUNCTION owners_with_work(
    archived boolean, before timestamptz, day_before timestamptz, week_before timestamptz,
    month_before timestamptz, beyond bigint, most bigint
) RETURNS TABLE (owner bigint) LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    SELECT o.owner FROM owner AS o WHERE o.owner > beyond AND (
        (archived AND o.archive_count > 0)
        OR EXISTS (SELECT 1 FROM fresh AS f WHERE f.owner = o.owner AND f.created_at < before)
        OR EXISTS (SELECT 1 FROM episode AS e WHERE e.owner = o.owner AND e.parent_id IS NULL AND (
            (e.level = 0 AND coalesce(e.period_from, e.covers_from) < day_before)
            OR (e.level = 1 AND coalesce(e.period_from, e.covers_from) < week_before)
            OR (e.level = 2 AND coalesce(e.period_from, e.covers_from) < month_before)))
        OR EXISTS (SELECT 1 FROM emptied_episode AS s WHERE s.owner = o.owner)
        OR EXISTS (SELECT 1 FROM forgotten AS k WHERE k.owner = o.owner AND k.final_at < now())
        OR EXISTS (SELECT 1 FROM scrub_due AS d WHERE d.owner = o.owner)
    ) ORDER BY o.owner LIMIT most; END;

CREATE FUNCTION owners_lacking_vectors(model_digest text, beyond bigint, most bigint)
RETURNS TABLE (owner bigint) LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    SELECT o.owner FROM owner AS o WHERE o.owner > beyond AND o.last_memory > 0
    AND NOT EXISTS (SELECT 1 FROM embedding_model AS m WHERE m.owner = o.owner
        AND m.digest = model_digest COLLATE "C"
        AND (m.done >= o.last_memory OR m.claimed_until > now()))
    ORDER BY o.owner LIMIT most; END;

REVOKE EXECUTE ON FUNCTION token_of(bigint, bytea), owners_with_work(
    boolean, timestamptz, timestamptz, timestamptz, timestamptz, bigint, bigint
), owners_lacking_vectors(text, bigint, bigint) FROM PUBLIC;
