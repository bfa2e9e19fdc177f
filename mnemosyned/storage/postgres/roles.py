"""The database role for requests: it owns nothing, so row-level security limits it to one owner.

Each database has its own role. A login that is a member for one database of a server has no access
to another.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import psycopg

from mnemosyned.errors import DatabaseUnreachable, StorageFailed
from mnemosyned.storage.common.session import Row
from mnemosyned.storage.postgres.session import PostgresSession

ROLES = "mnemosyned_request"
"""Prefix of the roles' names; the whole name before each database had its own role."""
LOCK_S = 2
"""Seconds to wait for others who change the schema, its roles or its owners."""
_PLAIN = re.compile("[a-z0-9_]{1,40}")
LOCK_SCHEMA = "LOCK TABLE schema_migration IN SHARE ROW EXCLUSIVE MODE"
_HOLDERS = (
    "SELECT l.pid, coalesce(nullif(a.application_name, ''), a.usename, '?') FROM pg_locks AS l "
    "LEFT JOIN pg_stat_activity AS a USING (pid) WHERE l.granted "
    "AND l.relation = 'schema_migration'::regclass AND l.mode LIKE '%%Exclusive%%' LIMIT 3"
)
_MEMBER = (
    "SELECT pg_has_role(current_user, oid, 'MEMBER'), rolsuper OR rolbypassrls "
    "FROM pg_roles WHERE rolname = %(role)s"
)
_SERVES = (
    "SELECT pg_has_role(oid, to_regrole(quote_ident(%(role)s)), 'MEMBER'), quote_ident(rolname) "
    "FROM pg_roles "
    "WHERE rolname = %(login)s"
)
_IS_OWNER = (
    "SELECT coalesce(pg_has_role(c.relowner, 'USAGE'), "
    "has_schema_privilege(current_schema(), 'CREATE')), "
    "coalesce(c.relowner, d.datdba)::regrole::text FROM pg_database AS d "
    "LEFT JOIN pg_class AS c ON c.oid = to_regclass('schema_migration') "
    "WHERE d.datname = current_database()"
)
LOOK_THERE = (
    "SELECT format('ALTER ROLE %%I IN DATABASE %%I SET search_path = %%s', current_user, "
    "current_database(), relnamespace::regnamespace) FROM pg_class "
    "WHERE relname = 'schema_migration' AND to_regclass('schema_migration') IS NULL "
    "AND has_table_privilege(oid, 'SELECT') AND NOT pg_has_role(relowner, 'USAGE') LIMIT 1"
)
"""Statement that lets a login find the tables that it serves, if its search_path does not."""
_NUMBERED = (
    "last_memory, last_log, last_record, working_count, working_characters, archive_count, "
    "archive_characters, episodic_count, episodic_characters, rewordings"
)
_HELD = (
    "SELECT c.relname FROM pg_class AS c "
    "JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'owner' "
    "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') "
    "AND c.relrowsecurity AND c.relname != ALL(%(apart)s::text[]) ORDER BY c.relname"
)
OWNER_TABLES = ("owner", "owner_token", "owner_invitation", "membership")
"""Tables about owners, which no request may change; the first is that of the owners themselves."""
_FUNCTIONS = (
    "IN ('token_of', 'token_holder', 'memories_of', 'note_token_uses', 'owners_with_work', "
    "'owners_lacking_vectors', 'owner_figures', 'owner_names', 'owner_named', 'audit_append', "
    "'audit_heads', 'audit_lacking', 'administers', 'list_owners', 'find_owner', 'add_owners', 'change_owner', "
    "'drop_owner', 'list_tokens', 'issue_token', 'end_tokens', 'invite_owners', "
    "'redeem_invitation', 'renew_token', 'join_group', 'leave_group', 'list_members')"
)
_OURS = "relnamespace = current_schema()::regnamespace AND relname"
# The rows of tables and no more: neither tokens nor owners nor the schema are a request's to change.
_LACKING = (
    "SELECT format('GRANT USAGE ON SCHEMA %%I', current_schema()) "
    "WHERE NOT has_schema_privilege(%(role)s, current_schema(), 'USAGE') UNION ALL "
    "SELECT format('GRANT SELECT, INSERT, UPDATE, DELETE ON %%I', relname) FROM pg_class "
    f"WHERE {_OURS} = ANY(%(tables)s::text[]) AND NOT (SELECT bool_and(has_table_privilege("
    "%(role)s, oid, kind)) FROM unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) AS kind) "
    f"UNION ALL SELECT format('GRANT MAINTAIN ON %%I', relname) FROM pg_class WHERE {_OURS} "
    "= ANY(%(tables)s::text[]) AND CASE WHEN current_setting('server_version_num')::int >= 170000 "
    "THEN NOT has_table_privilege(%(role)s, oid, 'MAINTAIN') ELSE false END "
    "AND NOT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus') "
    f"UNION ALL SELECT format('GRANT SELECT ON %%I', relname) FROM pg_class WHERE {_OURS} "
    "IN ('memory_index', 'episode_index', 'owner', 'schema_migration') "
    "AND NOT has_table_privilege(%(role)s, oid, 'SELECT') "
    f"UNION ALL SELECT 'GRANT UPDATE ({_NUMBERED}) ON owner' WHERE EXISTS "
    f"(SELECT 1 FROM unnest('{{{_NUMBERED}}}'::text[]) AS name "
    "WHERE NOT has_column_privilege(%(role)s, 'owner', name, 'UPDATE')) "
    "UNION ALL SELECT format('GRANT EXECUTE ON FUNCTION %%s', oid::regprocedure) FROM pg_proc "
    "WHERE pronamespace = current_schema()::regnamespace "
    f"AND proname {_FUNCTIONS} "
    "AND NOT has_function_privilege(%(role)s, oid, 'EXECUTE')"
)
"""Grants that the role still lacks."""
_FOREIGN = (
    "SELECT DISTINCT format('REVOKE ALL ON %%s FROM %%I', held.name, r.rolname) FROM ("
    "SELECT oid::regclass::text AS name, relacl AS acl FROM pg_class "
    "WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v') "
    "UNION ALL SELECT attrelid::regclass::text, attacl FROM pg_attribute JOIN pg_class AS c "
    "ON c.oid = attrelid WHERE c.relnamespace = current_schema()::regnamespace "
    "UNION ALL SELECT 'FUNCTION ' || oid::regprocedure, proacl FROM pg_proc "
    "WHERE pronamespace = current_schema()::regnamespace "
    "UNION ALL SELECT 'SCHEMA ' || quote_ident(nspname), nspacl FROM pg_namespace "
    "WHERE nspname = current_schema()"
    ") AS held, aclexplode(held.acl) AS a JOIN pg_roles AS r ON r.oid = a.grantee "
    f"WHERE starts_with(r.rolname, '{ROLES}') AND r.rolname != %(role)s "
    "UNION ALL SELECT format('REVOKE EXECUTE ON FUNCTION %%s FROM PUBLIC', p.oid::regprocedure) "
    "FROM pg_proc AS p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a "
    "WHERE p.pronamespace = current_schema()::regnamespace AND a.grantee = 0 "
    f"AND p.proname {_FUNCTIONS}"
)
"""Rights here of other roles: of databases that this is a copy of, and after `pg_restore --no-acl` of
everybody."""


def request_role(session: PostgresSession) -> str:
    """Return the name that the database role for requests has in this database and schema."""
    database, schema = session.execute(
        "SELECT current_database(), current_schema()"
    ).fetchone() or ("", "")
    if schema == "public" and _PLAIN.fullmatch(database):
        return f"{ROLES}_{database}"
    digest = hashlib.sha256(f"{database}\0{schema}".encode()).hexdigest()[:16]
    return f"{ROLES}-{digest}"


def role_in_use(session: PostgresSession) -> str | None:
    """Return the role for requests if it may read the tables and the login is a member, else None.

    Raises `StorageFailed` if row-level security would not restrict the role.
    """
    role = request_role(session)
    may_read = "SELECT has_table_privilege(%(role)s, to_regclass('memory'), 'SELECT')"
    is_usable = _is_member(session, role) and session.scalar(may_read, role=role)
    return role if is_usable else None


def table_owner(session: PostgresSession) -> tuple[bool, str]:
    """Return whether the login owns the tables, or may create missing ones, and the owner's name."""
    owns, owner = session.execute(_IS_OWNER).fetchone() or (False, "")
    return owns, owner


def require_table_owner(session: PostgresSession) -> None:
    """Raise `StorageFailed` if the login does not own the tables."""
    owns, owner = table_owner(session)
    if not owns:
        reason = (
            f"the tables belong to {owner}; repeat this with that login, as in "
            f"MNEMOSYNE_DATABASE=postgresql://{owner}@… mnem …"
        )
        raise StorageFailed(f"nothing was done: {reason}", reason=reason)


def ensure_role(
    connection: psycopg.Connection[Row], *, serving: str | None = None
) -> list[str]:
    """Create the role for requests with its grants, if missing; return the executed statements.

    `serving` is a login that becomes a member of the role. Raises `StorageFailed` with advice, for
    example if the user may not create the role.
    """
    session = PostgresSession(connection, 0)
    role = request_role(session)
    is_ready = role_in_use(session) and not _missing_grants(session, role)
    if is_ready and not _membership_statements(session, role, serving):
        return []
    with connection.transaction():
        lock_schema(session)
        memberships = _membership_statements(session, role, serving)
        try:
            with connection.transaction():
                _execute_all(session, memberships)
        except psycopg.errors.InsufficientPrivilege as error:
            raise StorageFailed(
                "many owners in one database need a role of their own, which this user may not "
                f"create or grant; an administrator of the database does it once: "
                f"{'; '.join(memberships)};"
            ) from error
        if not (memberships or _missing_grants(session, role)):
            return []  # another process was faster
        # What everybody may do counts as granted to the role.
        revoked = revoke_from_others(session)
        missing = _missing_grants(session, role)
        _execute_all(session, missing)
    return [*memberships, *revoked, *missing]


def _membership_statements(
    session: PostgresSession, role: str, serving: str | None
) -> list[str]:
    """Return the statements that create the role and make its members, as far as missing.

    The members are the present user and the login `serving`. Raises `StorageFailed` if there is no
    such login.
    """
    is_member = _is_member(session, role)
    statements = [f'CREATE ROLE "{role}" NOLOGIN'] if is_member is None else []
    members = [session.scalar("SELECT quote_ident(current_user)")]
    members = [] if is_member else members
    if serving:
        login = session.execute(_SERVES, role=role, login=serving).fetchone()
        if login is None:
            raise StorageFailed(
                f"the server has no login {serving}; create it: createuser --pwprompt {serving}"
            )
        members += [] if login[0] else [login[1]]
    if members:
        statements.append(f'GRANT "{role}" TO {", ".join(members)}')
    return statements


def _missing_grants(session: PostgresSession, role: str) -> list[str]:
    """Return the GRANTs that a role lacks, and the REVOKEs for other databases' roles and PUBLIC."""
    lacking = session.execute(_LACKING, role=role, tables=owned_tables(session))
    statements = [f'{statement} TO "{role}"' for (statement,) in lacking]
    return statements + session.column(_FOREIGN, role=role)


def _execute_all(session: PostgresSession, statements: Sequence[str]) -> None:
    """Execute SQL statements one after another, without values."""
    for statement in statements:
        session.execute(statement)


def revoke_from_others(session: PostgresSession) -> list[str]:
    """Revoke rights in this schema from roles of other databases and from PUBLIC.

    If this database is a copy, the roles for requests of its original lose all rights. PUBLIC may
    no longer call our functions. Return the executed statements; an empty list if nobody had such
    rights.
    """
    statements = session.column(_FOREIGN, role=request_role(session))
    _execute_all(session, statements)
    return statements


def lock_schema(session: PostgresSession) -> None:
    """Lock the schema, roles and owners against changes until the transaction ends.

    Raises `DatabaseUnreachable` with the name of the lock's holder after `LOCK_S` seconds.
    """
    session.execute(f"SET LOCAL lock_timeout = '{LOCK_S}s'")
    session.execute("SAVEPOINT before_lock")
    try:
        session.execute(LOCK_SCHEMA)
    except psycopg.errors.LockNotAvailable as error:
        session.execute("ROLLBACK TO before_lock")
        holders = ", ".join(
            f"{pid} ({name})" for pid, name in session.execute(_HOLDERS)
        )
        reason = (
            f"the table schema_migration was locked for {LOCK_S} s by the server's process "
            f"{holders or 'that has ended meanwhile'}; let it end, then try again"
        )
        raise DatabaseUnreachable(
            f"nothing was done: {reason}", reason=reason
        ) from error


def owned_tables(session: PostgresSession) -> list[str]:
    """Return the names of the tables with an owner column, except `OWNER_TABLES`."""
    return session.column(_HELD, apart=list(OWNER_TABLES))


def _is_member(session: PostgresSession, role: str) -> bool | None:
    """Return whether the present user is a member of a role; None if the role does not exist.

    Raises `StorageFailed` if the role bypasses row-level security.
    """
    row = session.execute(_MEMBER, role=role).fetchone()
    if row and row[1]:
        raise StorageFailed(
            f"the role {role} sees every owner's rows; an administrator of the database "
            f'takes that back: ALTER ROLE "{role}" NOSUPERUSER NOBYPASSRLS'
        )
    return row[0] if row else None
