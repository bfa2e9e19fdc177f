-- compatible with 11
-- Owners administered by a login that owns nothing: functions that run as who owns the tables, and do
-- their work only for that login itself, or where the transaction names (in the setting
-- `mnemosyned.admin`: number, digest) a valid token of the scope `admin`. Who has stolen the login of a
-- daemon has no such token. Invitations have a code each, of which the SHA-256 alone is kept; a code
-- or a valid token is what the functions that need no administrator ask for.

CREATE TABLE owner_invitation (
    owner      integer NOT NULL REFERENCES owner (owner) ON DELETE CASCADE,
    digest     bytea NOT NULL,
    scopes     text[] COLLATE "C" NOT NULL,
    valid_for  interval,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (owner, digest)
);
ALTER TABLE owner_invitation ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON owner_invitation USING (owner = current_setting('mnemosyned.owner')::bigint);

CREATE FUNCTION administers() RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    SELECT pg_has_role(session_user, current_user, 'USAGE') OR EXISTS (
        SELECT 1 FROM owner_token AS t JOIN owner AS o ON o.owner = t.owner
        WHERE t.owner = nullif(split_part(current_setting('mnemosyned.admin', true), ' ', 1), '')::bigint
        AND t.digest = decode(split_part(current_setting('mnemosyned.admin', true), ' ', 2), 'hex')
        AND 'admin' = ANY (t.scopes) AND t.revoked_at IS NULL
        AND (t.expires_at IS NULL OR t.expires_at > now()) AND o.suspended_at IS NULL); END;

CREATE FUNCTION list_owners(most bigint) RETURNS TABLE (
    number bigint, name text, is_group boolean, created_at timestamptz, memories bigint, summaries bigint, characters bigint,
    tokens bigint, invitations bigint, suspended_at timestamptz, last_used_at timestamptz, requests bigint
) LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    SELECT o.owner, o.name, o.is_group, o.created_at, o.working_count + o.archive_count, o.episodic_count,
        o.working_characters + o.archive_characters + o.episodic_characters,
        coalesce(t.valid, 0), coalesce(i.valid, 0), o.suspended_at, t.last_used_at, coalesce(t.requests, 0)
    FROM owner AS o LEFT JOIN (
        SELECT k.owner, count(*) FILTER (WHERE k.revoked_at IS NULL
            AND (k.expires_at IS NULL OR k.expires_at > now())) AS valid,
            max(k.last_used_at) AS last_used_at, sum(k.requests)::bigint AS requests
        FROM owner_token AS k GROUP BY k.owner
    ) AS t ON t.owner = o.owner LEFT JOIN (
        SELECT c.owner, count(*) AS valid FROM owner_invitation AS c WHERE c.expires_at > now()
        GROUP BY c.owner
    ) AS i ON i.owner = o.owner
    WHERE administers() ORDER BY o.name LIMIT most; END;

CREATE FUNCTION find_owner(owner_name text) RETURNS TABLE (number bigint, is_group boolean)
LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    SELECT o.owner, o.is_group FROM owner AS o WHERE o.name = owner_name AND administers(); END;

-- Names are compared under a lock: on the nodes of a cluster no key does it.
CREATE FUNCTION add_owners(names text[], as_groups boolean)
RETURNS TABLE (owner bigint, name text, is_group boolean, created_at timestamptz, is_new boolean)
LANGUAGE sql SECURITY DEFINER
BEGIN ATOMIC
    SELECT 1 FROM schema_migration AS m WHERE m.version = 1 AND administers() FOR UPDATE;
    WITH new AS (
        INSERT INTO owner AS o (owner, name, is_group)
        SELECT nextval('owner_number'), n, as_groups FROM unnest(names COLLATE "C") AS n
        WHERE administers() AND NOT EXISTS (SELECT 1 FROM owner AS x WHERE x.name = n)
        RETURNING o.owner, o.name, o.is_group, o.created_at
    )
    SELECT n.owner, n.name, n.is_group, n.created_at, true FROM new AS n
    UNION ALL
    SELECT o.owner, o.name, o.is_group, o.created_at, false FROM owner AS o
    WHERE o.name = ANY (names) AND administers() AND NOT EXISTS (SELECT 1 FROM new AS n WHERE n.owner = o.owner); END;

-- What is null stays as it is; no row where the name is another owner's.
CREATE FUNCTION change_owner(number bigint, new_name text, suspended boolean)
RETURNS SETOF bigint LANGUAGE sql SECURITY DEFINER
BEGIN ATOMIC
    SELECT 1 FROM schema_migration AS m WHERE m.version = 1 AND administers() FOR UPDATE;
    UPDATE owner AS o SET name = coalesce(new_name, o.name),
        suspended_at = CASE WHEN suspended THEN coalesce(o.suspended_at, now())
            WHEN suspended IS NULL THEN o.suspended_at END
    WHERE o.owner = number AND administers()
    AND NOT EXISTS (SELECT 1 FROM owner AS x WHERE x.name = new_name COLLATE "C")
    RETURNING o.owner; END;

-- Its doors first, those of a provider and of a proxy by its suspension, and at the end, when nothing is
-- left of its memory, the owner itself.
CREATE FUNCTION drop_owner(number bigint, doors_alone boolean) RETURNS void LANGUAGE sql SECURITY DEFINER
BEGIN ATOMIC
    SELECT 1 FROM owner AS o WHERE o.owner = number AND administers() FOR UPDATE;
    DELETE FROM membership AS m WHERE number IN (m.owner, m.group_owner) AND administers();
    DELETE FROM owner_invitation AS i WHERE i.owner = number AND administers();
    DELETE FROM owner_token AS t WHERE t.owner = number AND administers();
    UPDATE owner AS o SET suspended_at = coalesce(o.suspended_at, now())
    WHERE o.owner = number AND doors_alone AND administers();
    DELETE FROM owner AS o WHERE o.owner = number AND NOT doors_alone AND administers(); END;

CREATE FUNCTION list_tokens(number bigint) RETURNS TABLE (
    id text, name text, scopes text[], created_at timestamptz, expires_at timestamptz,
    revoked_at timestamptz, valid boolean, last_used_at timestamptz, requests bigint, valid_for interval
) LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    SELECT t.id, t.name, t.scopes, t.created_at, t.expires_at, t.revoked_at,
        t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now()),
        t.last_used_at, t.requests, coalesce(t.valid_for, t.expires_at - t.created_at)
    FROM owner_token AS t WHERE t.owner = number AND administers()
    ORDER BY t.created_at DESC, t.id; END;

CREATE FUNCTION issue_token(
    number bigint, token_digest bytea, token_id text, token_name text, token_scopes text[], lasts interval
) RETURNS TABLE (created_at timestamptz, expires_at timestamptz) LANGUAGE sql SECURITY DEFINER
BEGIN ATOMIC
    SELECT 1 FROM owner AS o WHERE o.owner = number AND administers() FOR UPDATE;
    INSERT INTO owner_token AS t (owner, digest, id, name, scopes, created_at, expires_at, valid_for)
    SELECT o.owner, token_digest, token_id, token_name, token_scopes, now(), now() + lasts, lasts
    FROM owner AS o WHERE o.owner = number AND administers()
    RETURNING t.created_at, t.expires_at; END;

-- Those of an id or a name: revoked, or valid for `keep_for` yet.
CREATE FUNCTION end_tokens(number bigint, token text, keep_for interval)
RETURNS SETOF text LANGUAGE sql SECURITY DEFINER
BEGIN ATOMIC
    SELECT 1 FROM owner AS o WHERE o.owner = number AND administers() FOR UPDATE;
    UPDATE owner_token AS t SET expires_at = least(t.expires_at, now() + keep_for),
        valid_for = coalesce(t.valid_for, t.expires_at - t.created_at),
        revoked_at = CASE WHEN keep_for IS NULL THEN now() END
    WHERE t.owner = number AND administers() AND token COLLATE "C" IN (t.id, t.name)
    AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())
    RETURNING t.id; END;

-- Earlier codes of the same owners are withdrawn.
CREATE FUNCTION invite_owners(
    numbers bigint[], digests bytea[], code_scopes text[], token_days double precision[], lasts interval
) RETURNS timestamptz LANGUAGE sql SECURITY DEFINER
BEGIN ATOMIC
    DELETE FROM owner_invitation AS i WHERE i.owner = ANY (numbers) AND administers();
    INSERT INTO owner_invitation (owner, digest, scopes, valid_for, expires_at)
    SELECT i.owner, i.digest, string_to_array(i.scopes, ','), i.days * interval '1 day', now() + lasts
    FROM unnest(numbers, digests, code_scopes, token_days) AS i (owner, digest, scopes, days)
    WHERE administers();
    SELECT now() + lasts; END;

CREATE FUNCTION join_group(group_number bigint, member_number bigint, member_scopes text[])
RETURNS SETOF timestamptz LANGUAGE sql SECURITY DEFINER
BEGIN ATOMIC
    SELECT 1 FROM owner AS o WHERE o.owner = member_number AND administers() FOR UPDATE;
    INSERT INTO membership AS m (owner, group_owner, scopes, joined_at)
    SELECT o.owner, group_number, member_scopes, now() FROM owner AS o
    WHERE o.owner = member_number AND administers()
    ON CONFLICT (owner, group_owner) DO UPDATE SET scopes = excluded.scopes
    RETURNING m.joined_at; END;

CREATE FUNCTION leave_group(group_number bigint, member_number bigint)
RETURNS SETOF bigint LANGUAGE sql SECURITY DEFINER
BEGIN ATOMIC
    DELETE FROM membership AS m
    WHERE m.owner = member_number AND m.group_owner = group_number AND administers()
    RETURNING m.owner; END;

CREATE FUNCTION list_members(group_number bigint, most bigint)
RETURNS TABLE (group_name text, member_name text, scopes text[], joined_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    WITH g AS MATERIALIZED (SELECT o.owner, o.name FROM owner AS o WHERE o.is_group AND administers())
    SELECT g.name, o.name, m.scopes, m.joined_at FROM membership AS m
    JOIN g ON g.owner = m.group_owner JOIN owner AS o ON o.owner = m.owner
    WHERE m.group_owner = coalesce(group_number, m.group_owner)
    ORDER BY g.name, o.name LIMIT most; END;

-- A code is deleted as it is used: of many at once, one finds it. Who guesses locks no owner's row.
CREATE FUNCTION redeem_invitation(
    number bigint, code_digest bytea, token_digest bytea, token_id text, token_name text, most interval
) RETURNS TABLE (owner_name text, scopes text[], created_at timestamptz, expires_at timestamptz)
LANGUAGE sql SECURITY DEFINER
BEGIN ATOMIC
    SELECT 1 FROM owner AS o WHERE o.owner = number AND EXISTS (
        SELECT 1 FROM owner_invitation AS i WHERE i.owner = number AND i.digest = code_digest
    ) FOR UPDATE;
    WITH used AS (
        DELETE FROM owner_invitation AS i WHERE i.owner = number AND i.digest = code_digest
        AND i.expires_at > now()
        AND EXISTS (SELECT 1 FROM owner AS o WHERE o.owner = number AND o.suspended_at IS NULL)
        RETURNING i.scopes, least(i.valid_for, most) AS lasts
    )
    INSERT INTO owner_token AS t (owner, digest, id, name, scopes, created_at, expires_at, valid_for)
    SELECT number, token_digest, token_id, token_name, u.scopes, now(), now() + u.lasts, u.lasts
    FROM used AS u
    RETURNING (SELECT o.name FROM owner AS o WHERE o.owner = number), t.scopes, t.created_at,
        t.expires_at; END;

-- A successor of a valid token, which stays valid for `keep_for` at most. Of tokens that ended the newest
-- hundred are kept, and so many may be valid: whoever renews without end fills no table.
CREATE FUNCTION renew_token(
    number bigint, old_digest bytea, token_digest bytea, token_id text, usual interval, most interval,
    keep_for interval
) RETURNS TABLE (
    owner_name text, scopes text[], created_at timestamptz, expires_at timestamptz, old_id text
) LANGUAGE sql SECURITY DEFINER
BEGIN ATOMIC
    SELECT 1 FROM owner AS o WHERE o.owner = number AND EXISTS (
        SELECT 1 FROM owner_token AS t WHERE t.owner = number AND t.digest = old_digest
    ) FOR UPDATE;
    DELETE FROM owner_token AS t WHERE t.owner = number
    AND EXISTS (SELECT 1 FROM owner_token AS k WHERE k.owner = number AND k.digest = old_digest)
    AND t.digest IN (
        SELECT d.digest FROM owner_token AS d
        WHERE d.owner = number AND (d.revoked_at IS NOT NULL OR d.expires_at <= now())
        ORDER BY coalesce(d.revoked_at, d.expires_at) DESC OFFSET 100);
    WITH old AS (
        UPDATE owner_token AS t SET expires_at = least(t.expires_at, now() + keep_for),
            valid_for = coalesce(t.valid_for, t.expires_at - t.created_at, usual)
        WHERE t.owner = number AND t.digest = old_digest AND t.revoked_at IS NULL
        AND (t.expires_at IS NULL OR t.expires_at > now())
        AND EXISTS (SELECT 1 FROM owner AS o WHERE o.owner = number AND o.suspended_at IS NULL)
        AND 100 > (SELECT count(*) FROM owner_token AS k WHERE k.owner = number
            AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now()))
        RETURNING t.id, t.name, t.scopes, least(t.valid_for, most) AS lasts
    )
    INSERT INTO owner_token AS t (owner, digest, id, name, scopes, created_at, expires_at, valid_for)
    SELECT number, token_digest, token_id, o.name, o.scopes, now(), now() + o.lasts, o.lasts
    FROM old AS o
    RETURNING (SELECT p.name FROM owner AS p WHERE p.owner = number), t.scopes, t.created_at,
        t.expires_at, (SELECT o.id FROM old AS o); END;

REVOKE EXECUTE ON FUNCTION administers(), list_owners(bigint), find_owner(text), add_owners(text[], boolean),
    change_owner(bigint, text, boolean), drop_owner(bigint, boolean), list_tokens(bigint),
    issue_token(bigint, bytea, text, text, text[], interval), end_tokens(bigint, text, interval),
    invite_owners(bigint[], bytea[], text[], double precision[], interval),
    join_group(bigint, bigint, text[]), leave_group(bigint, bigint), list_members(bigint, bigint),
    redeem_invitation(bigint, bytea, bytea, text, text, interval),
    renew_token(bigint, bytea, bytea, text, interval, interval, interval)
FROM PUBLIC;
