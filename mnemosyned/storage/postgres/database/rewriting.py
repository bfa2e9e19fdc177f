"""Rewriting: no word that was deleted stays in the files of a server, where it may be done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from mnemosyned.domain.ports.servers.server import ServerPurge
from mnemosyned.storage.postgres.database.purge import (
    PURGED,
    is_unseen,
    require_ownership,
)
from mnemosyned.storage.postgres.database.session import Session

LOCK_S = 20
"""Seconds to wait for a table; whoever asks for it meanwhile waits as well."""
LOG_FILES_MAX = 2_048
"""Files of the log that are written over at most: 32 GB, where each has 16 MB."""
_TABLES = (
    "SELECT c.relname FROM pg_class AS c "
    "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' ORDER BY c.relname"
)
_DUE = "SELECT owner, max(asked) FROM scrub_due GROUP BY owner"
_SEEING = (
    "another program still sees what was deleted: end its transaction or its replication slot "
    "(pg_stat_activity.backend_xmin, pg_replication_slots.xmin)"
)
_CHECKPOINT = (
    "no checkpoint, and the write-ahead log as it was: GRANT pg_checkpoint TO {user}"
)
_LOG = (
    "the write-ahead log as it was: GRANT EXECUTE ON FUNCTION pg_switch_wal(), pg_ls_waldir() "
    "TO {user}, in this database; else it keeps words until its files are recycled and "
    "written over"
)
_LONG_LOG = (
    "the write-ahead log has more than {most} files: run CHECKPOINT, then try again"
)
_KEPT = "{count} files of the write-ahead log from before, kept by {why}"
LEFT = (
    "standbys, until they have replayed this",
    "archived log, base backups and dumps, until you delete them",
    "blocks of deleted files on the disk, until they are used again: encrypt the disk",
)
"""What no client of a server can reach."""
NODES = "the write-ahead log of the cluster's other nodes: on each, CHECKPOINT and pg_switch_wal()"
_SEGMENT = "substr(name, 9)"
"""A log file's number without its timeline: files are written in the order of these."""
_CURRENT = "substr(pg_walfile_name(pg_current_wal_insert_lsn()), 9)"
_FILES = f"SELECT {_SEGMENT} FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{{24}}$'"
_KEEPERS = (
    "SELECT 'the replication slot ' || slot_name FROM pg_replication_slots "
    "WHERE restart_lsn IS NOT NULL AND "
    "substr(pg_walfile_name(restart_lsn), 9) <= %(last)s "
    "UNION ALL SELECT 'wal_keep_size' FROM pg_settings "
    "WHERE name = 'wal_keep_size' AND setting != '0' "
    "UNION ALL SELECT 'the archiver, which has not copied them yet' FROM pg_settings "
    "WHERE name = 'archive_mode' AND setting != 'off'"
)
_HAS_NODES = "SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')"


def purge_server(connection: psycopg.Connection[tuple[object, ...]]) -> ServerPurge:
    """Write all tables anew and the log over. Raises `StorageFailed` and `psycopg.Error`.

    `connection` commits each statement by itself.
    """
    session = Session(connection, 0)
    began = time.monotonic()
    tables = [name for (name,) in session.execute(_TABLES)]
    require_ownership(session, tables)
    due = session.execute(_DUE).fetchall()
    undone = [] if is_unseen(session) else [_SEEING]
    session.execute("SET statement_timeout = 0")
    session.execute(f"SET lock_timeout = '{LOCK_S}s'")
    took: list[float] = []
    for table in tables:
        started = time.monotonic()
        try:
            session.execute(f'VACUUM (FULL, ANALYZE) "{table}"')
        except psycopg.errors.LockNotAvailable:
            undone.append(f"the table {table}, which another program kept locked")
        else:
            took.append(time.monotonic() - started)
    if not undone:  # what a daemon that may not VACUUM has left
        session.execute_many(
            PURGED, [{"owner": owner, "newest": newest} for owner, newest in due]
        )
    files, refused = _write_over(session)
    has_nodes = session.scalar(_HAS_NODES)
    return ServerPurge(
        tables=len(took),
        duration_s=time.monotonic() - began,
        longest_s=max(took, default=0.0),
        log_files=files,
        undone=(*undone, *refused),
        left=(NODES, *LEFT) if has_nodes else LEFT,
    )


def _write_over(session: Session) -> tuple[int, list[str]]:
    """Have the log that was written until now recycled and written over; how many files."""
    user = session.scalar("SELECT quote_ident(current_user)")
    last = session.scalar(f"SELECT {_CURRENT}")
    refused: list[str] = []
    with _allowed(refused, _CHECKPOINT.format(user=user)):
        # What only now turns old is recycled, or deleted, by the next checkpoint.
        session.execute("CHECKPOINT")
    if refused:
        return 0, refused
    files = 0
    with _allowed(refused, _LOG.format(user=user)):
        _switch(session)
        session.execute("CHECKPOINT")
        # A recycled file has its next name, and its old words until it is written.
        files = _pass(session, max(_files(session), default=last))
        if files >= LOG_FILES_MAX:
            refused.append(_LONG_LOG.format(most=LOG_FILES_MAX))
        session.execute("CHECKPOINT")
        old = [name for name in _files(session) if name <= last]
        if old:
            why = ", ".join(name for (name,) in session.execute(_KEEPERS, last=last))
            refused.append(_KEPT.format(count=len(old), why=why or "the server"))
    return files, refused


def _pass(session: Session, target: str) -> int:
    """Switch from file to file until the one of this name is full; how many."""
    files = 0
    while files < LOG_FILES_MAX and session.scalar(f"SELECT {_CURRENT}") <= target:
        _switch(session)
        files += 1
    return files


def _switch(session: Session) -> None:
    """Fill the present file with zeros and begin the next one."""
    session.execute("SELECT pg_logical_emit_message(false, 'mnemosyned', 'purge')")
    session.execute("SELECT pg_switch_wal()")


def _files(session: Session) -> list[str]:
    return [name for (name,) in session.execute(_FILES)]


@contextmanager
def _allowed(refused: list[str], advice: str) -> Iterator[None]:
    """Note advice where the user lacks a right."""
    try:
        yield
    except psycopg.errors.InsufficientPrivilege:
        refused.append(advice)
