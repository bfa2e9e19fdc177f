"""Purging: the words of what was forgotten leave the server's tables and indexes.

A deleted row is gone from every query at once, and its words stay in its page until VACUUM has taken
them out, which it can once no transaction sees the row any more. VACUUM FULL would write each table
anew, and lock it for all owners meanwhile: that is for whoever runs the server, see `rewriting`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import psycopg

from mnemosyned.domain.errors import StorageFailed
from mnemosyned.storage.postgres.database.pool import Pool
from mnemosyned.storage.postgres.database.session import Session

TABLES = (
    "memory", "fresh", "working_state", "episode", "placed", "consolidation_log",
    "learning", "memory_state", "emptied_episode", "compaction", "compacted", "embedding",
    "tag", "revision", "forgotten", "agent_forgotten", "scrub_due",
)  # fmt: skip
"""Tables from which a deletion takes rows or words."""
BEYOND = (
    "unused space in the server's table files until it is written over, or `mnem db purge`",
    "the server's write-ahead log until it is recycled and written over, or `mnem db purge`",
    "the server's standbys and base backups, until they are purged or deleted as well",
)
"""What keeps deleted words after a purge."""
SEEN_TRIES = 40
SEEN_PAUSE_S = 0.05
"""Two seconds in all: a recall of ours has ended by then, another program may go on for ever."""
LOCK_S = 5
"""Seconds that VACUUM waits for a table that another program is altering or indexing."""
_DUE = "SELECT max(asked) FROM scrub_due WHERE owner = %(owner)s"
PURGED = "DELETE FROM scrub_due WHERE owner = %(owner)s AND asked <= %(newest)s"
_NEXT_TRANSACTION = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
_OLDER = "age({}) > age(%(next)s::xid)"
_SEEING = (
    "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid != pg_backend_pid() "
    "AND (datname = current_database() OR backend_type = 'walsender') "
    "AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum) "
    f"AND ({_OLDER.format('backend_xmin')} OR {_OLDER.format('backend_xid')})) "
    f"OR EXISTS (SELECT 1 FROM pg_replication_slots WHERE {_OLDER.format('xmin')}) "
    "OR EXISTS (SELECT 1 FROM pg_prepared_xacts WHERE database = current_database() "
    f"AND {_OLDER.format('transaction')})"
)
"""Whether anybody may still see what was deleted before a transaction."""
_NOT_OURS = (
    "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace "
    "AND relname = ANY(%(tables)s::text[]) AND NOT pg_has_role(relowner, 'USAGE') "
    "AND NOT CASE WHEN current_setting('server_version_num')::int >= 170000 "
    "THEN has_table_privilege(oid, 'MAINTAIN') ELSE false END LIMIT 1"
)


def is_due(pool: Pool, owner: int) -> bool:
    """Whether something was deleted that is still to be purged."""
    with pool.reading(owner) as session:
        return session.scalar(_DUE) is not None


def run(pool: Pool, owner: int) -> bool:
    """Purge what was deleted before this call; False where another program forbids it.

    Raises `StorageFailed`.
    """
    with pool.reading(owner) as session:
        newest = session.scalar(_DUE)
    if newest is None:
        return True
    if not sweep(pool, TABLES):
        return False
    with pool.writing(owner, durable=False) as session:
        session.execute(PURGED, newest=newest)
    return True


def sweep(pool: Pool, tables: Sequence[str]) -> bool:
    """Purge what was deleted from some tables; False where another program forbids it.

    Raises `StorageFailed`.
    """
    with pool.outside_transactions(0) as session:
        require_ownership(session, tables)
        return is_unseen(session) and _vacuum(session, tables)


def require_ownership(session: Session, tables: Sequence[str]) -> None:
    """Require what VACUUM requires: it leaves the tables of others with no more than a warning."""
    table = session.scalar(_NOT_OURS, tables=list(tables))
    if table is not None:
        advice = (
            f"the table {table} belongs to another user of the server, and only its owner can "
            "VACUUM it: run `mnem db purge` with that login, or grant that role to this user"
        )
        raise StorageFailed(f"nothing was purged: {advice}", reason=advice)


def is_unseen(session: Session) -> bool:
    """Wait until all transactions have ended that may see what was deleted before."""
    following = session.scalar(_NEXT_TRANSACTION)
    for _ in range(SEEN_TRIES):
        if not session.scalar(_SEEING, next=following):
            return True
        time.sleep(SEEN_PAUSE_S)
    return False


def _vacuum(session: Session, tables: Sequence[str]) -> bool:
    """Take the words out of pages, index entries and what is stored apart; False if locked."""
    session.execute(f"SET lock_timeout = '{LOCK_S}s'")
    session.execute("SET statement_timeout = 0")  # a large table takes minutes
    try:
        session.execute(f"VACUUM (INDEX_CLEANUP ON) {', '.join(tables)}")
    except psycopg.errors.LockNotAvailable:
        return False
    finally:
        session.execute("RESET lock_timeout")
        session.execute("RESET statement_timeout")
    return True
