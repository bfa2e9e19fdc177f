"""Faults and dangers of a server, as far as it reports them itself."""

from __future__ import annotations

import ipaddress
import time
from contextlib import suppress

import psycopg

from mnemosyned.errors import ConfigInvalid
from mnemosyned.storage.postgres.connections import connect_once, explaining_failures
from mnemosyned.storage.postgres.session import PostgresSession

IDS_USED_MAX = 1_500_000_000
"""Transactions since the oldest that is not frozen; at two billion the server stops."""
CLOCK_OFF_MAX_S = 60
REFUSES_WRITES = (
    "pg_is_in_recovery() OR current_setting('default_transaction_read_only')::bool"
)
STANDBY = "nothing can be stored, and nothing sleeps: this server is a standby, or refuses all writes"
_STATE = f"SELECT pg_backend_pid(), {REFUSES_WRITES}"
_TAKEN_BACK = "SET LOCAL idle_in_transaction_session_timeout = '2s'"
"""A pooler that has a single session may lend it to the first connection again after that."""
_SETTINGS = {
    "fsync": "a crash of the server's machine can destroy the whole database",
    "full_page_writes": "a crash of the server's machine can destroy pages",
    "synchronous_commit": "a crash of the server can lose what was acknowledged",
}
"""Settings that must not be off, and what may happen if they are."""
# An index that is being built is not valid either; the server says which those are.
_UNUSABLE = (
    "SELECT c.relname FROM pg_index AS i "
    "JOIN pg_class AS c ON c.oid = i.indexrelid "
    "WHERE c.relnamespace = current_schema()::regnamespace "
    "AND NOT (i.indisvalid AND i.indisready) "
    "AND NOT EXISTS (SELECT 1 FROM pg_stat_progress_create_index AS b "
    "WHERE b.index_relid = c.oid) ORDER BY c.relname LIMIT 100"
)
_DAMAGED = (
    "SELECT checksum_failures FROM pg_stat_database WHERE datname = current_database()"
)
_IDS_USED = (
    "SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database()"
)
_NOT_ARCHIVED = (
    "SELECT last_failed_wal FROM pg_stat_archiver WHERE last_failed_time IS NOT NULL "
    "AND last_failed_time > coalesce(last_archived_time, '-infinity')"
)
_CONNECT_IS_PUBLIC = (
    "SELECT quote_ident(d.datname) FROM pg_database AS d, "
    "aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) AS a "
    "WHERE d.datname = current_database() AND a.grantee = 0 AND a.privilege_type = 'CONNECT'"
)


def check_server(dsn: str) -> bool:
    """Check that the server can be used; return whether it refuses writes, as a standby does.

    Raises `ConfigInvalid` if the encoding is not UTF-8, or a pooler gives each transaction another
    session, and `psycopg.Error` if the server cannot be asked.
    """
    with connect_once(dsn) as connection:
        row = connection.execute(_STATE).fetchone()
        session, refuses_writes = row or (0, False)
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise ConfigInvalid(
                f"database: its encoding is {encoding}, which cannot store every text; create one "
                "with createdb --encoding UTF8 --template template0, and name that",
                field="database",
            )
        # A pooler lends the other connection the session that was free last: this one's.
        with suppress(psycopg.OperationalError), connect_once(dsn) as other:
            try:
                with other.transaction():
                    other.execute(_TAKEN_BACK)
                    row = connection.execute("SELECT pg_backend_pid()").fetchone()
            except psycopg.errors.ProtocolViolation as error:
                # PgBouncer's code for all of its errors, such as that of a server that is down.
                if "statement pooling" not in str(error):
                    raise
                row = (None,)
    if row and row[0] != session:
        raise ConfigInvalid(
            "database: a pooler on the way to the server gives each transaction another session; "
            "let it pool sessions (pool_mode = session), or name the server itself",
            field="database",
        )
    return bool(refuses_writes)


def problems(session: PostgresSession) -> list[str]:
    """Return a text for each damage that the server reports: unusable indexes, broken pages."""
    found = [
        f"the index {name} is not usable; run REINDEX INDEX {name} in the database"
        for (name,) in session.execute(_UNUSABLE)
    ]
    damaged = session.scalar(_DAMAGED)
    if damaged:
        found.append(
            f"the server met damaged pages {damaged} times; restore a backup, and test the disk"
        )
    return found


def warnings(session: PostgresSession) -> list[str]:
    """Return a text for each danger to the stored data, the gravest first."""
    off = set(
        session.column(
            "SELECT name FROM pg_settings WHERE name = ANY(%(names)s::text[]) "
            "AND setting = 'off'",
            names=list(_SETTINGS),
        )
    )
    found = [STANDBY] if session.scalar(f"SELECT {REFUSES_WRITES}") else []
    found += [
        f"{name} is off in the database server: {danger}; set it to on"
        for name, danger in _SETTINGS.items()
        if name in off
    ]
    server_s = session.scalar("SELECT extract(epoch FROM clock_timestamp())::float8")
    ahead_s = round(time.time() - server_s)
    if abs(ahead_s) > CLOCK_OFF_MAX_S:
        found.append(
            f"this machine's clock is {abs(ahead_s):,} s {'ahead of' if ahead_s > 0 else 'behind'} "
            "the database server's; memories get its time: set it right, as with NTP"
        )
    used = session.scalar(_IDS_USED)
    if used > IDS_USED_MAX:
        found.append(
            f"the database has used {used} transaction ids since it was last frozen, and stops at "
            "two billion; run VACUUM FREEZE"
        )
    failed = session.scalar(_NOT_ARCHIVED)
    if failed:
        found.append(
            f"the server cannot archive {failed}: backups end there; see archive_command in its log"
        )
    return found


def exposures(dsn: str) -> list[str]:
    """Return texts on how others could log in or read along. Raises `ConfigInvalid` and `StorageFailed`."""
    with explaining_failures("nothing was checked"), connect_once(dsn) as connection:
        options = {each.keyword: each.val or b"" for each in connection.pgconn.info}
        line = line_exposure(
            connection.info.host,
            connection.info.hostaddr,
            sslmode=options[b"sslmode"].decode(),
            encrypted=connection.pgconn.ssl_in_use,
        )
        database = PostgresSession(connection, 0).scalar(_CONNECT_IS_PUBLIC)
    found = [line] if line else []
    if database is not None:
        found.append(
            f"every login of the server may connect to the database {database}; "
            f"run REVOKE ALL ON DATABASE {database} FROM PUBLIC, "
            f"then GRANT CONNECT ON DATABASE {database} to the daemons' logins"
        )
    return found


def line_exposure(host: str, address: str, *, sslmode: str, encrypted: bool) -> str:
    """Return why the connection to a remote server's IP address is insecure; empty if it is secure."""
    if host.startswith("/") or (address and ipaddress.ip_address(address).is_loopback):
        return ""
    if not encrypted:
        return (
            f"the connection to {host} is not encrypted: what is remembered can be read on its way; "
            "set sslmode=verify-full in the database's URL"
        )
    if sslmode != "verify-full":
        return (
            f"nothing shows that the server is {host}, as sslmode is {sslmode}; "
            "set sslmode=verify-full in the database's URL, and sslrootcert"
        )
    return ""
