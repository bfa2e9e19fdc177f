"""The schema: brought up to date by whoever comes first, one at a time.

A migration says in its first line which daemons may go on beside it: `-- compatible with 2` are
those that know version 2 or later. Without that line it is for those alone that know it.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import psycopg

from mnemosyned.domain.errors import (
    DatabaseUnreachable,
    SchemaTooNew,
    StorageFailed,
)
from mnemosyned.logs import logger
from mnemosyned.storage.postgres.database.connections import connected_once
from mnemosyned.storage.postgres.database.roles import LOCK_SCHEMA, table_owner
from mnemosyned.storage.postgres.database.session import Row, Session

log = logger()
TRIES = 2
PAUSE_S = 1.0
"""Between two tries; then whoever wants the database waits for longer and tries again."""
WAITS = "the tables wait to be brought up to date until these transactions have ended"
UNRELEASED = (
    "the tables are of a version before the first release, which no later one reads: export the "
    "memory with that version (mnem export), and import it into a new database"
)
_OTHERS = (
    "SELECT a.pid, a.application_name, a.usename, "
    "to_char(a.xact_start, 'YYYY-MM-DD HH24:MI:SS') "
    "FROM pg_stat_activity AS a WHERE a.pid != pg_backend_pid() "
    "AND a.datname = current_database() AND EXISTS (SELECT 1 FROM pg_locks AS l "
    "WHERE l.pid = a.pid AND l.granted AND l.relation IN (SELECT oid FROM pg_class "
    "WHERE relnamespace = current_schema()::regnamespace)) "
    "ORDER BY a.xact_start NULLS LAST LIMIT 10"
)
"""Sessions that keep tables of this schema locked, and since when."""
_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migration (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    oldest     integer NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""
_COMPATIBLE = re.compile(rb"-- compatible with (\d+)\r?\n")
_STATEMENT = re.compile(rb"(?:\$\$.*?\$\$|[^$])+?;\r?\n", re.DOTALL)
"""A statement ends with its line, but not within `$$`."""
_STATE = (
    "SELECT coalesce(max(version), 0), "
    "coalesce(max(oldest) FILTER (WHERE version > %(known)s), 0) FROM schema_migration"
)
_END_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid != pg_backend_pid() "
    "AND application_name = 'mnemosyned' AND datname = current_database() "
    "AND usename = current_user"
)
"""Connect again, and be refused: a daemon that runs would else go on with what it cannot know."""


def upgrade(dsn: str, folder: Path, *, read_only: bool = False) -> int:
    """Apply the migrations that the database lacks; return the last version that is known here.

    Raises `SchemaTooNew` for a database that this program cannot work with, `DatabaseUnreachable`
    while others keep tables locked, and `StorageFailed` where it is `read_only` and lacks some.
    """
    files = sorted(folder.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    if not files:
        raise StorageFailed(f"no migrations in {folder}; install mnemosyned again")
    known = _number(files[-1])
    with connected_once(dsn) as connection:
        exists = connection.execute("SELECT to_regclass('schema_migration')").fetchone()
        is_new = exists is None or exists[0] is None
        version = 0 if is_new else check_schema(connection, known)
        if version < known:
            if read_only:
                raise StorageFailed(
                    "this server is a standby, and its tables are of an earlier version: start "
                    "this version on the primary first"
                )
            owns, owner = table_owner(Session(connection, 0))
            if not owns:
                raise StorageFailed(
                    f"the database has schema version {version} and this mnemosyned needs {known}; "
                    f"with the login that owns the tables, {owner}, run "
                    f"mnem db migrate --url postgresql://{owner}@…"
                )
            for tries_left in reversed(range(TRIES)):
                try:
                    _apply(connection, files, known)
                    break
                except psycopg.errors.LockNotAvailable as error:
                    others = Session(connection, 0).execute(_OTHERS).fetchall()
                    waits = f"{WAITS}: {', '.join(map(_described, others))}"
                    if not tries_left:
                        raise DatabaseUnreachable(waits) from error
                time.sleep(PAUSE_S)
    return known


def check_schema(connection: psycopg.Connection[Row], known: int) -> int:
    """The version of the database; `known` is the last one that this program knows.

    Raises `SchemaTooNew` where a later migration does not suit it.
    """
    try:
        row = connection.execute(_STATE, {"known": known}).fetchone()
    except psycopg.errors.UndefinedColumn as error:
        raise StorageFailed(UNRELEASED) from error
    version, oldest = row or (0, 0)
    if oldest > known:
        raise SchemaTooNew(
            f"the database has schema version {version}, which needs a mnemosyned that knows "
            f"{oldest}; this one knows {known}: install a later version"
        )
    return int(version)


def _apply(connection: psycopg.Connection[Row], files: list[Path], known: int) -> None:
    """Apply each file in a transaction of its own.

    Raises `LockNotAvailable` after a wait so short that readers behind it hardly notice: while
    another daemon migrates, and while somebody's transaction keeps a table.
    """
    try:
        connection.execute(_TABLE)
    except psycopg.errors.UniqueViolation:
        log.info(
            "migrations_begun_elsewhere"
        )  # at the same moment: the table is there now
    former, oldest = check_schema(connection, known), 0
    for file in files:
        with connection.transaction():
            connection.execute(LOCK_SCHEMA)
            if _number(file) > check_schema(connection, known):
                oldest = max(oldest, _apply_file(connection, file))
    if 0 < former < oldest:
        connection.execute(_END_OTHERS)


def _described(session: Row) -> str:
    """A session of the server, as an administrator finds it."""
    process, program, user, began = session
    since = f", since {began} UTC" if began else ""
    return f"process {process} ({program or 'unnamed'}, user {user}{since})"


def _apply_file(connection: psycopg.Connection[Row], file: Path) -> int:
    """Apply a migration and note it; the oldest version that may go on beside it."""
    text = file.read_bytes()
    line = _COMPATIBLE.match(text)
    oldest = int(line[1]) if line else _number(file)
    # One by one, as Citus hands nodes all that it is given at once.
    for statement in _STATEMENT.findall(text):
        connection.execute(statement)
    connection.execute(
        "INSERT INTO schema_migration (version, name, oldest) VALUES (%s, %s, %s)",
        (_number(file), file.stem, oldest),
    )
    return oldest


def _number(file: Path) -> int:
    return int(file.name[:4])
