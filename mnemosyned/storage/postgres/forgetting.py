"""Forgetting: memories selected, deleted with all traces, put back; and purged from a server's files and logs.

A deleted row disappears from every query at once, and its words stay in its page until VACUUM has taken
them out, which it can once no transaction sees the row any more. VACUUM FULL would write each table
again, and lock it for all owners in the meantime: that is for whoever runs the server, see `purge_server`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import psycopg

from mnemosyned.errors import StorageFailed
from mnemosyned.memory.engine_ports import ServerPurge
from mnemosyned.memory.forgetting import ForgetFilter, name_matcher
from mnemosyned.memory.values import NAMING_FIELDS, MemoryRecord, Tier, column_list
from mnemosyned.storage.common import index_words, state
from mnemosyned.storage.common.forgetting import (
    DeletionStore,
    FoundMemory,
    chosen_conditions,
)
from mnemosyned.storage.common.listing import join_conditions, tag_conditions
from mnemosyned.storage.common.session import Row, reads
from mnemosyned.storage.postgres import connections, listing, memories, schema
from mnemosyned.storage.postgres.pool import Pool, PostgresEngine
from mnemosyned.storage.postgres.session import (
    INSERT_FRESH,
    OF_IDS,
    PostgresSession,
    memory_values,
    values_of,
)

TABLES = (
    "memory", "fresh", "working_state", "episode", "placed", "consolidation_log",
    "learning", "memory_state", "emptied_episode", "compaction", "compacted", "embedding",
    "tag", "revision", "forgotten", "agent_forgotten", "scrub_due",
    "injection", "injected_line", "briefing_line", "ending",
    "undo_step",
)  # fmt: skip
"""Tables from which a deletion removes rows or text."""
BEYOND = (
    "unused space in the server's table files until it is written over, or `mnem db purge`",
    "the server's write-ahead log until it is recycled and written over, or `mnem db purge`",
    "the server's standbys and base backups, until they are purged or deleted as well",
)
"""Places where deleted text remains after a purge."""
SEEN_TRIES = 40
SEEN_PAUSE_S = 0.05
"""Pause between checks, two seconds in all: our own reads have ended by then; others may read for ever."""
LOCK_S = 5
"""Seconds that VACUUM waits for a table that another program is altering or indexing."""
DUE = "SELECT max(asked) FROM scrub_due WHERE owner = %(owner)s"
PURGED = "DELETE FROM scrub_due WHERE owner = %(owner)s AND asked <= %(newest)s"
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
"""Whether a transaction may still see rows that were deleted before."""
_SERVER = "SELECT pg_postmaster_start_time()::text"
_UNPURGED = (
    f"SELECT ({_SERVER}) != %(server)s OR EXISTS "
    f"(SELECT 1 FROM scrub_due WHERE owner = %(owner)s AND NOT {_OLDER.format('xmin')})"
)
"""Whether an owner's deletions are newer than the last purge, or the server has been restarted since."""
_NOT_OURS = (
    "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace "
    "AND relname = ANY(%(tables)s::text[]) AND NOT pg_has_role(relowner, 'USAGE') "
    "AND NOT CASE WHEN current_setting('server_version_num')::int >= 170000 "
    "THEN has_table_privilege(oid, 'MAINTAIN') ELSE false END LIMIT 1"
)


def purge_tables(pool: Pool, tables: Sequence[str]) -> bool:
    """VACUUM tables, so that deleted words leave their pages and index entries.

    Return False if another program's transaction still sees deleted rows, or keeps a table locked. Note in
    `pool.purged` what all owners deleted before. Raises `StorageFailed` if the user may not VACUUM a table.
    """
    with pool.outside_transactions(0) as session:
        require_ownership(session, tables)
        following = wait_until_unseen(session)
        if following is None or not _vacuum_tables(session, tables):
            return False
        if not session.scalar(
            schema.HAS_CITUS
        ):  # its nodes number their own transactions
            pool.purged = {"next": following, "server": session.scalar(_SERVER)}
        return True


def require_ownership(session: PostgresSession, tables: Sequence[str]) -> None:
    """Raise `StorageFailed` if the user may not VACUUM one of the tables."""
    table = session.scalar(_NOT_OURS, tables=list(tables))
    if table is not None:
        advice = (
            f"the table {table} belongs to another user of the server, and only its owner can VACUUM it: "
            "let who runs the server run `mnem db purge` with that login, or grant its role to this user"
        )
        raise StorageFailed(f"nothing was purged: {advice}", reason=advice)


def wait_until_unseen(session: PostgresSession) -> str | None:
    """Wait up to two seconds until no transaction can see rows deleted before this call.

    Return the id of the first transaction that came later; None if a transaction still sees such rows.
    """
    # Without its epoch, which a cast from text refuses.
    following: str = session.scalar(
        "SELECT pg_snapshot_xmax(pg_current_snapshot())::xid::text"
    )
    for _ in range(SEEN_TRIES):
        if not session.scalar(_SEEING, next=following):
            return following
        time.sleep(SEEN_PAUSE_S)
    return None


def _vacuum_tables(session: PostgresSession, tables: Sequence[str]) -> bool:
    """VACUUM tables with their index entries and TOAST; return False if a table stays locked."""
    session.execute(f"SET lock_timeout = '{LOCK_S}s'")
    session.execute("SET statement_timeout = 0")  # a large table takes minutes
    try:
        session.execute(f"VACUUM (INDEX_CLEANUP ON) {', '.join(tables)}")
    except psycopg.errors.LockNotAvailable:
        return False
    finally:
        session.execute(f"SET lock_timeout = {connections.LOCK_WAIT_MS}")
        session.execute("RESET statement_timeout")
    return True


REWRITE_LOCK_S = 20
"""Seconds to wait for a table's lock; in this time, other requests for the table wait, too."""
LOG_FILES_MAX = 2_048
"""Maximum files of the write-ahead log that are overwritten: 32 GB in files of 16 MB."""
_TABLES = (
    "SELECT c.relname FROM pg_class AS c "
    "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' ORDER BY c.relname"
)
DUE_OWNERS = "SELECT owner, max(asked) FROM scrub_due GROUP BY owner"
_STILL_SEEN = (
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


def purge_server(connection: psycopg.Connection[tuple[object, ...]]) -> ServerPurge:
    """Rewrite all tables and overwrite the write-ahead log; return what was purged and what not.

    `connection` must commit each statement by itself. Raises `StorageFailed` and `psycopg.Error`.
    """
    session = PostgresSession(connection, 0)
    began = time.monotonic()
    tables = session.column(_TABLES)
    require_ownership(session, tables)
    due = session.execute(DUE_OWNERS).fetchall()
    undone = [] if wait_until_unseen(session) else [_STILL_SEEN]
    session.execute(f"SET lock_timeout = '{REWRITE_LOCK_S}s'")
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
    files, refused = _write_over_log(session)
    has_nodes = session.scalar(schema.HAS_CITUS)
    return ServerPurge(
        tables=len(took),
        duration_s=time.monotonic() - began,
        longest_s=max(took, default=0.0),
        log_files=files,
        undone=(*undone, *refused),
        left=(NODES, *LEFT) if has_nodes else LEFT,
    )


def _write_over_log(session: PostgresSession) -> tuple[int, list[str]]:
    """Recycle the files of the write-ahead log; return their number, and advice for refused steps."""
    user = session.scalar("SELECT quote_ident(current_user)")
    last = session.scalar(f"SELECT {_CURRENT}")
    refused: list[str] = []
    with _noting_refusals(refused, _CHECKPOINT.format(user=user)):
        # What only now turns old is recycled, or deleted, by the next checkpoint.
        session.execute("CHECKPOINT")
    if refused:
        return 0, refused
    files = 0
    with _noting_refusals(refused, _LOG.format(user=user)):
        _switch_log_file(session)
        session.execute("CHECKPOINT")
        # A recycled file has its next name, and its old words until it is written.
        target = max(session.column(_FILES), default=last)
        while files < LOG_FILES_MAX and session.scalar(f"SELECT {_CURRENT}") <= target:
            _switch_log_file(session)
            files += 1
        if files >= LOG_FILES_MAX:
            refused.append(_LONG_LOG.format(most=LOG_FILES_MAX))
        session.execute("CHECKPOINT")
        old = [name for name in session.column(_FILES) if name <= last]
        if old:
            why = ", ".join(session.column(_KEEPERS, last=last))
            refused.append(_KEPT.format(count=len(old), why=why or "the server"))
    return files, refused


def _switch_log_file(session: PostgresSession) -> None:
    """Fill the present file of the write-ahead log with zeros and begin the next file."""
    session.execute("SELECT pg_logical_emit_message(false, 'mnemosyned', 'purge')")
    session.execute("SELECT pg_switch_wal()")


@contextmanager
def _noting_refusals(refused: list[str], advice: str) -> Iterator[None]:
    """Append `advice` to `refused` if the user lacks a privilege for a statement in the block."""
    try:
        yield
    except psycopg.errors.InsufficientPrivilege:
        refused.append(advice)


_MEMORIES = (
    "memory AS m LEFT JOIN fresh AS f ON f.owner = m.owner AND f.seq = m.seq "
    "WHERE m.owner = %(owner)s"
)
_ORDER = "ORDER BY f.seq IS NULL, m.seq"
"""Working memory first."""
_DETAILS = (
    "(SELECT ARRAY[p.details, p.secrets] FROM placed AS p "
    "WHERE m.content = '' AND p.owner = %(owner)s AND p.seq = m.seq)"
)
"""Exact values, which a pruned memory still has."""
_EARLIER = (
    "(SELECT array_agg(ARRAY[coalesce(r.content, ''), r.fields] ORDER BY r.seq) "
    "FROM revision AS r WHERE r.owner = %(owner)s AND r.memory_seq = m.seq)"
)
"""Texts and fields of a memory before its edits."""
_NAMED = f"{column_list(NAMING_FIELDS, 'm.')}, {_DETAILS}, {_EARLIER}"
"""Everything that may mention a person, except the text and its speaker."""
_EARLIER_FIELDS = ("role", *(field.name for field in NAMING_FIELDS if field.editable))


def _all_texts(row: Row) -> list[str]:
    """Return the texts of a memory and its earlier revisions in which a person may be named."""
    content, role, *naming, details, earlier = row
    values = " ".join(value for _, value in values_of(*details or (None, None)))
    texts = [content or values, role, *(text or "" for text in naming)]
    for text, fields in earlier or ():
        before: dict[str, Any] = msgspec.json.decode(fields)
        texts.append(
            " ".join([text, *(before.get(name) or "" for name in _EARLIER_FIELDS)])
        )
    return texts


class PostgresDeletion(DeletionStore):
    """A `DeletionStore` of one owner in PostgreSQL."""

    _engine: PostgresEngine

    _unless_named = (
        "WHERE NOT "
        "(EXISTS (SELECT 1 FROM memory AS m WHERE m.owner = %(owner)s AND m.{0} = n.name) "
        "OR EXISTS (SELECT 1 FROM episode AS e WHERE e.owner = %(owner)s AND e.{0} = n.name))"
    )
    """Joined by OR, as the planner turns two conditions into joins that read all memories."""

    @reads
    def select(self, session: PostgresSession, choice: ForgetFilter) -> list[str]:
        """Return the ids of the memories that match a filter."""
        narrow = join_conditions(
            [
                *chosen_conditions(choice, "memory", "m.{}"),
                *tag_conditions(choice.tags, row_by_row=False),
                *(
                    [listing.all_terms_condition(session.owner, choice.terms)]
                    if choice.terms
                    else []
                ),
            ]
        )
        checks: list[Callable[[Row], bool]] = []
        if choice.terms:
            holds = index_words.term_matcher(choice.terms)
            checks.append(lambda row: holds(row[1:3]))
        if choice.person:
            named = name_matcher(choice.person)
            checks.append(lambda row: any(map(named, _all_texts(row[1:]))))
        if not checks:
            return session.column(
                f"SELECT m.id FROM {_MEMORIES}{narrow.text} {_ORDER}", **narrow.values
            )
        naming = _NAMED if choice.person else "NULL"
        rows = session.stream(
            f"SELECT m.id, m.content, m.role, {naming} FROM {_MEMORIES}{narrow.text} {_ORDER}",
            **narrow.values,
        )
        return [row[0] for row in rows if all(check(row) for check in checks)]

    def _find(self, session: PostgresSession, ids: Sequence[str]) -> list[FoundMemory]:
        """Return the stored memories with these ids, by row number, with lengths in characters."""
        rows = session.execute(
            "SELECT m.seq, m.id, length(m.content), p.episode_seq, m.session_id, p.details, "
            "p.secrets "
            "FROM memory AS m LEFT JOIN placed AS p ON p.owner = m.owner AND p.seq = m.seq "
            f"WHERE m.owner = %(owner)s AND {OF_IDS} ORDER BY m.seq",
            ids=list(ids),
        )
        return [
            FoundMemory(
                seq,
                id,
                characters,
                episode,
                details=len(values_of(plain, secret)),
                session=named,
            )
            for seq, id, characters, episode, named, plain, secret in rows
        ]

    def _delete(self, session: PostgresSession, found: Sequence[FoundMemory]) -> None:
        """Delete memories with all rows, mark their secrets in other originals, lower the owner's totals."""
        episodes = {memory.seq: memory.episode for memory in found if memory.episode}
        for seq in session.select_column(
            "placed", "seq", "AND secrets IS NOT NULL", seq=episodes
        ):
            session.share_secret_marks(seq, episodes[seq])
        session.delete("memory", seq=[memory.seq for memory in found])
        session.note_rewording()
        for tier in (Tier.WORKING, Tier.ARCHIVE):
            sizes = [
                memory.size
                for memory in found
                if (memory.episode is None) is (tier is Tier.WORKING)
            ]
            session.add_to_totals(tier, count=-len(sizes), characters=-sum(sizes))

    def _insert_memory(
        self, session: PostgresSession, memory: MemoryRecord, seq: int | None
    ) -> int:
        """Insert a memory into working memory with its index entries, and add it to the owner's totals."""
        if seq is None:
            memories.insert_new(session, [memory])
            return memories.newest_number(session)
        session.note_rewording()
        values = memories.values_by_column([memory_values(memory, session.owner)])
        session.execute(memories.INSERT_MEMORIES, seq=[seq], **values)
        session.execute(INSERT_FRESH, seq=[seq], created_at=values["created_at"])
        characters = len(memory.content)
        session.add_to_totals(Tier.WORKING, count=1, characters=characters)
        state.insert_tags_and_validity(session, seq, memory)
        return seq

    def purge_deleted(self) -> bool:
        """VACUUM the tables if deleted text waits for it; return False if others still read the text."""
        pool, owner = self._engine.pool, self._engine.owner
        with self._engine.reading() as session:
            newest = session.scalar(DUE)
            if newest is None:
                return True
            is_purged = pool.purged and not session.scalar(_UNPURGED, **pool.purged)
        if not is_purged and not purge_tables(pool, TABLES):
            return False
        with pool.writing(owner, durable=False) as session:
            session.execute(PURGED, newest=newest)
        return True

    def places_beyond_purge(self) -> tuple[str, ...]:
        """Return sentences on the server's log, backups and copies, which a VACUUM does not reach."""
        return BEYOND
