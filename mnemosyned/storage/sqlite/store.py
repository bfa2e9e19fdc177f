"""`SqliteStore`: the tiers in one SQLite file, each method one short transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path

from mnemosyned.domain.consolidation import LogEntry, Pending
from mnemosyned.domain.errors import NotFound, StorageFailed
from mnemosyned.domain.memory import Acknowledged, Episode, Memory, Tier, TierTotals
from mnemosyned.domain.ports import Draft, Promotion
from mnemosyned.domain.recall import Found, Place, Query, Shown
from mnemosyned.storage.sqlite import changes
from mnemosyned.storage.sqlite.candidates import Frequencies
from mnemosyned.storage.sqlite.connections import Readers, Writer, create_private, open_writer
from mnemosyned.storage.sqlite.ownership import owned
from mnemosyned.storage.sqlite.rows import (
    ARCHIVE_FIELDS,
    LOG_COLUMNS,
    MEMORY_FIELDS,
    instant,
    instant_text,
    log_entry_from,
    memory_from,
    pending_from,
)
from mnemosyned.storage.sqlite.schema import schema_version, upgrade
from mnemosyned.storage.sqlite.search import episode_at, search, show
from mnemosyned.storage.sqlite.vectors import SqliteVectors

READERS = 4


@contextmanager
def open_store(
    database: Path, *, migrations: Path, socket: Path | None = None
) -> Iterator[SqliteStore]:
    """Own the file, bring it up to date and serve it while the block runs.

    Raises `DatabaseInUse`, `SchemaTooNew` and `StorageFailed`.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(owned(database, socket=socket))
            create_private(database)
            store = SqliteStore(database, _up_to_date(database, migrations))
        except (OSError, sqlite3.Error) as error:
            raise StorageFailed(
                f"{database} cannot be opened as a memory: {error}; choose another file"
            ) from error
        stack.callback(store.close)
        yield store


def _up_to_date(database: Path, migrations: Path) -> sqlite3.Connection:
    connection = open_writer(database)
    try:
        upgrade(connection, migrations)
    except BaseException:
        connection.close()
        raise
    return connection


class SqliteStore:
    """A `MemoryStore` on one SQLite file."""

    def __init__(self, database: Path, connection: sqlite3.Connection) -> None:
        self.database = database
        self.schema_version = schema_version(connection)
        self._writer = Writer(connection)
        self._readers = Readers(database, size=READERS)
        self._frequencies = Frequencies()
        self.vectors = SqliteVectors(self._writer, self._readers)

    def close(self) -> None:
        """Let running reads end, fold the write-ahead log in, close."""
        self._readers.close()
        self._writer.close()

    # -------------------------------------------------------------- writing

    def remember(self, drafts: Sequence[Draft]) -> list[Acknowledged]:
        return self._writer.write(lambda connection: changes.remember(connection, drafts))

    def consolidate(self, groups: Sequence[Sequence[Promotion]]) -> list[Exception | None]:
        return self._writer.write_each(
            [partial(changes.consolidate, promotions=promotions) for promotions in groups]
        )

    def record_failure(self, entry: LogEntry) -> None:
        self._writer.write(lambda connection: changes.insert_log(connection, entry))

    def forget(self, memories: Sequence[Memory], *, episode: Episode | None = None) -> None:
        self._writer.write(lambda connection: changes.forget(connection, memories, episode))

    def scrub(self) -> None:
        for table in changes.INDEXES:
            for _ in range(changes.SCRUB_STEPS_MAX):
                if not self._writer.write(partial(changes.scrub_step, table=table)):
                    break
        self._writer.checkpoint()

    # -------------------------------------------------------------- reading

    def get(self, id: str) -> Memory | Episode:
        with self._readers.snapshot() as connection:
            found = _memory(connection, id) or episode_at(connection, "id", id, details=True)
        if found is None:
            raise NotFound(
                f"nothing has the id {id!r}; `recall` shows the ids that exist", field="id"
            )
        return found

    def originals(self, episode: str) -> list[Memory]:
        with self._readers.snapshot() as connection:
            rows = connection.execute(
                f"SELECT {ARCHIVE_FIELDS} FROM archive AS a "
                "JOIN episodic_memory AS e ON e.seq = a.episode_seq "
                "WHERE e.id = ? ORDER BY a.created_at, a.seq",
                (episode,),
            ).fetchall()
        return [memory_from(row, tier=Tier.ARCHIVE, episode=episode) for row in rows]

    def search(self, query: Query) -> Found:
        if not query.terms:
            return Found()
        with self._readers.snapshot() as connection:
            return search(connection, query, self._frequencies)

    def show(self, places: Sequence[Place]) -> Shown:
        with self._readers.snapshot() as connection:
            return show(connection, places)

    def pending(
        self, *, before: datetime | None = None, session: str | None = None, limit: int
    ) -> list[Pending]:
        with self._readers.snapshot() as connection:
            rows = connection.execute(
                "SELECT id, session_id, source, created_at, length(content) FROM working_memory "
                "WHERE NOT pinned AND (?1 IS NULL OR created_at < ?1) "
                "AND (?2 IS NULL OR session_id = ?2) ORDER BY created_at, seq LIMIT ?3",
                (instant_text(before) if before else None, session, limit),
            ).fetchall()
        return [pending_from(row) for row in rows]

    def count_due(self, *, before: datetime, limit: int) -> int:
        with self._readers.snapshot() as connection:
            count: int = connection.execute(
                "SELECT count(*) FROM (SELECT 1 FROM working_memory "
                "WHERE created_at < ? AND NOT pinned LIMIT ?)",
                (instant_text(before), limit),
            ).fetchone()[0]
        return count

    def working_count(self) -> int:
        with self._readers.snapshot() as connection:
            count: int = connection.execute(
                "SELECT count FROM tier_totals WHERE tier = 'working'"
            ).fetchone()[0]
        return count

    def working(self, ids: Sequence[str]) -> list[Memory]:
        with self._readers.snapshot() as connection:
            rows = connection.execute(
                f"SELECT {MEMORY_FIELDS} FROM working_memory "
                f"WHERE id IN ({', '.join('?' * len(ids))}) ORDER BY created_at, seq",
                ids,
            ).fetchall()
        return [memory_from(row, tier=Tier.WORKING) for row in rows]

    def log(
        self, *, limit: int, session: str | None = None, cycle: str | None = None
    ) -> list[LogEntry]:
        with self._readers.snapshot() as connection:
            rows = connection.execute(
                f"SELECT id, {LOG_COLUMNS} FROM consolidation_log "
                "WHERE (?1 IS NULL OR session_id = ?1) AND (?2 IS NULL OR cycle_id = ?2) "
                "ORDER BY id DESC LIMIT ?3",
                (session, cycle, limit),
            ).fetchall()
        return [log_entry_from(row) for row in rows]

    def totals(self) -> Mapping[Tier, TierTotals]:
        with self._readers.snapshot() as connection:
            counted = connection.execute("SELECT tier, count, characters FROM tier_totals")
            totals = {Tier(tier): (count, chars) for tier, count, chars in counted}
            return {
                tier: TierTotals(*totals[tier], _oldest(connection, tier))
                for tier in (Tier.WORKING, Tier.EPISODIC, Tier.ARCHIVE)
            }


def _memory(connection: sqlite3.Connection, id: str) -> Memory | None:
    row = connection.execute(
        f"SELECT {MEMORY_FIELDS} FROM working_memory WHERE id = ?", (id,)
    ).fetchone()
    if row:
        return memory_from(row, tier=Tier.WORKING)
    row = connection.execute(
        f"SELECT e.id, {ARCHIVE_FIELDS} FROM archive AS a "
        "JOIN episodic_memory AS e ON e.seq = a.episode_seq WHERE a.id = ?",
        (id,),
    ).fetchone()
    return memory_from(row[1:], tier=Tier.ARCHIVE, episode=row[0]) if row else None


def _oldest(connection: sqlite3.Connection, tier: Tier) -> datetime | None:
    """Where the tier's time begins; the archive's is that of the episodes it went into."""
    statement = (
        "SELECT min(created_at) FROM working_memory"
        if tier is Tier.WORKING
        else "SELECT min(covers_from) FROM episodic_memory"
    )
    (text,) = connection.execute(statement).fetchone()
    return instant(text) if text else None
