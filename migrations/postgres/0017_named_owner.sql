-- compatible with 16
-- The number of an owner for whom an identity provider or a proxy vouches by name; none if it is suspended, or a group.

CREATE FUNCTION owner_named(owner_name text) RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER
BEGIN ATOMIC
    SELECT o.owner FROM owner AS o WHERE o.name = owner_name COLLATE "C" AND o.suspended_at IS NULL
    AND NOT o.is_group; END;

REVOKE EXECUTE ON FUNCTION owner_named(text) FROM PUBLIC;
