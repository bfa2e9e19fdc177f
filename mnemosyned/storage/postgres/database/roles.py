"""The role in which a daemon for many owners works: it owns nothing, so that policies apply to it."""

from __future__ import annotations

from contextlib import suppress

import psycopg

from mnemosyned.domain.errors import StorageFailed
from mnemosyned.storage.postgres.database.connections import connected_once
from mnemosyned.storage.postgres.database.session import Row, Session

REQUEST_ROLE = "mnemosyned_request"
"""One for all databases of a server; what it may do is said in each."""
_LOCK = 0x6D6E726F
"""Advisory lock of whoever grants."""
_MEMBER = (
    "SELECT pg_has_role(current_user, oid, 'MEMBER'), rolsuper OR rolbypassrls "
    "FROM pg_roles WHERE rolname = %(role)s"
)
_NUMBERED = (
    "last_memory, last_log, last_record, working_count, working_characters, archive_count, "
    "archive_characters, episodic_count, episodic_characters, rewordings"
)
_HELD = (
    "SELECT c.relname FROM pg_class AS c "
    "JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'owner' "
    "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') "
    "AND c.relrowsecurity AND c.relname NOT IN ('owner', 'owner_token') ORDER BY c.relname"
)
_VIEWS = ("memory_index", "episode_index")


def prepare_role(dsn: str) -> str:
    """Create the role where it is missing, and grant it what requests need; its name.

    Raises `StorageFailed` where the database's user may not create it, with what to do.
    """
    with connected_once(dsn) as connection:
        ensure_role(connection)
    return REQUEST_ROLE


def ensure_role(connection: psycopg.Connection[Row]) -> None:
    """Do the same on a connection. Raises `StorageFailed`."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        _ensure_member(connection)
        _grant(connection)


def owned_tables(session: Session) -> list[str]:
    """The tables of owners' rows, besides those of owners and tokens themselves."""
    return [name for (name,) in session.execute(_HELD)]


def _ensure_member(connection: psycopg.Connection[Row]) -> None:
    """Have the user be a member of the role, which lets it work in it."""
    row = connection.execute(_MEMBER, {"role": REQUEST_ROLE}).fetchone()
    is_member, bypasses = row or (False, False)
    if bypasses:
        raise StorageFailed(
            f"the role {REQUEST_ROLE} sees every owner's rows; an administrator of the database "
            f"takes that back: ALTER ROLE {REQUEST_ROLE} NOSUPERUSER NOBYPASSRLS"
        )
    if is_member:
        return
    user = connection.execute("SELECT quote_ident(current_user)").fetchone()
    create = f"CREATE ROLE {REQUEST_ROLE} NOLOGIN"
    grant = f"GRANT {REQUEST_ROLE} TO {user[0] if user else 'CURRENT_USER'}"
    try:
        if row is None:
            # Another database's daemon may create it at the same moment.
            with (
                suppress(
                    psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation
                ),
                connection.transaction(),
            ):
                connection.execute(create.encode())
        with connection.transaction():
            connection.execute(grant.encode())
    except psycopg.errors.InsufficientPrivilege as error:
        lines = "; ".join([create, grant] if row is None else [grant])
        raise StorageFailed(
            "many owners in one database need a role of their own, which this user may not "
            f"create; an administrator of the database does it once: {lines};"
        ) from error


def _grant(connection: psycopg.Connection[Row]) -> None:
    """Grant the rows of tables and no more: neither tokens nor owners are a request's to change."""
    schema = connection.execute("SELECT quote_ident(current_schema())").fetchone()
    statements = [f"GRANT USAGE ON SCHEMA {schema[0] if schema else 'public'}"]
    statements += [
        f'GRANT SELECT, INSERT, UPDATE, DELETE ON "{table}"'
        for table in owned_tables(Session(connection, 0))
    ]
    statements += [f"GRANT SELECT ON {view}" for view in _VIEWS]
    statements += ["GRANT SELECT ON owner", f"GRANT UPDATE ({_NUMBERED}) ON owner"]
    for statement in statements:
        connection.execute(f"{statement} TO {REQUEST_ROLE}".encode())
