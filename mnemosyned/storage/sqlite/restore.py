"""Restores exported records: each once, and no summary without its originals."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any

import msgspec

from mnemosyned.memory.capture import AgentSession
from mnemosyned.memory.consolidation import LogEntry
from mnemosyned.memory.exchange import (
    OTHER_WORDS,
    AnyRecord,
    ExchangeStore,
    ExportedCompaction,
    ExportedEpisode,
    ExportedMemory,
    ExportedSupersession,
    ExportFilter,
    ForgottenCapture,
    Outcome,
    Record,
    Restored,
)
from mnemosyned.memory.intake import Known
from mnemosyned.memory.learning import Learning
from mnemosyned.memory.restore import Home, PlacedMemory, Restoring
from mnemosyned.memory.rows import LEARNING_COLUMNS, LOG_COLUMNS, SESSION_COLUMNS
from mnemosyned.storage.sqlite.export import MOVED, SqliteExporting, moved_records
from mnemosyned.storage.sqlite.fulltext import index_episode_grams, index_memories
from mnemosyned.storage.sqlite.insert import known_records
from mnemosyned.storage.sqlite.rows import (
    LOG_PLACEHOLDERS,
    MEMORY_COLUMNS,
    Row,
    instant_text,
    log_row,
    memory_row,
)
from mnemosyned.storage.sqlite.state import add_tags, position_of
from mnemosyned.storage.sqlite.surroundings import session_row
from mnemosyned.storage.sqlite.writer import Transactional, writes

_PLACES = ", ".join("?" * (1 + len(MEMORY_COLUMNS.split(", "))))
_INSERT_WORKING = (
    f"INSERT INTO working_memory (seq, {MEMORY_COLUMNS}) VALUES ({_PLACES})"
)
_INSERT_ARCHIVED = (
    f"INSERT INTO archive (seq, {MEMORY_COLUMNS}, episode_seq) VALUES ({_PLACES}, ?)"
)


class MemoryRows:
    """The rows of memories that are restored in one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._kinds: dict[str, int] = {}

    def insert(self, memories: Sequence[PlacedMemory]) -> None:
        """Insert memories with all that is kept of them, and let those with words be found."""
        for memory, seq, home in memories:
            values = _memory_values(memory, seq)
            if home is None:
                self._connection.execute(_INSERT_WORKING, values)
            else:
                self._connection.execute(_INSERT_ARCHIVED, (*values, home))
                self._insert_details(memory, seq)
            self._insert_state(memory, seq)
            self._insert_changes(memory, seq)
        index_memories(
            self._connection,
            [
                (seq, memory.content, memory.role)
                for memory, seq, _ in memories
                if memory.content
            ],
        )

    def _insert_state(self, memory: ExportedMemory, seq: int) -> None:
        state = [
            moment and instant_text(moment)
            for moment in (memory.valid_until, memory.superseded_at, memory.pruned_at)
        ]
        if any(state):
            self._connection.execute(
                "INSERT INTO memory_state (memory_seq, valid_until, superseded_at, pruned_at) "
                "VALUES (?, ?, ?, ?)",
                (seq, *state),
            )
        held = [
            moment and instant_text(moment)
            for moment in (memory.held_until, memory.future_since)
        ]
        if any(held):
            self._connection.execute(
                "INSERT INTO working_state (memory_seq, held_until, future_since) "
                "VALUES (?, ?, ?)",
                (seq, *held),
            )

    def _insert_changes(self, memory: ExportedMemory, seq: int) -> None:
        """Insert the tags of a memory and what it was before it was edited."""
        if memory.tags:
            add_tags(self._connection, seq, memory.tags)
        for revision in memory.revisions:
            self._connection.execute(
                "INSERT INTO revision (memory_seq, changed_at, content, content_hash, fields) "
                "VALUES (?, ?, ?, ?, ?)",
                (
                    seq,
                    instant_text(revision.changed_at),
                    revision.content,
                    revision.content_hash,
                    msgspec.json.encode(revision.fields).decode(),
                ),
            )

    def _insert_details(self, memory: ExportedMemory, seq: int) -> None:
        """Insert the exact values of an original."""
        for kind, value, sensitive in memory.details:
            self._connection.execute(
                "INSERT OR IGNORE INTO detail (memory_seq, kind, value, sensitive) "
                "VALUES (?, ?, ?, ?)",
                (seq, self._kind(kind), value, sensitive),
            )

    def _kind(self, name: str) -> int:
        """Return the number of a kind of exact value."""
        if name not in self._kinds:
            self._connection.execute(
                "INSERT OR IGNORE INTO detail_kind (name) VALUES (?)", (name,)
            )
            self._kinds = dict(
                self._connection.execute("SELECT name, number FROM detail_kind")
            )
        return self._kinds[name]


def _memory_values(memory: ExportedMemory, seq: int) -> Row:
    """Return the values for seq and MEMORY_COLUMNS."""
    row = memory_row(memory)
    if memory.content_hash is not None:  # of words that were pruned
        row = (*row[:-1], memory.content_hash)
    return (seq, *row)


def _learning(connection: sqlite3.Connection, learning: Learning) -> bool | str:
    row = connection.execute(
        "SELECT text FROM learning WHERE id = ?", (learning.id,)
    ).fetchone()
    if row is None:
        _insert(
            connection,
            "learning",
            LEARNING_COLUMNS,
            (
                learning.id,
                learning.kind,
                learning.text,
                learning.session,
                learning.source,
                learning.memory,
                instant_text(learning.created_at),
                learning.superseded_by,
            ),
        )
    elif row[0] != learning.text:
        return OTHER_WORDS
    return row is None


def _log_entry(connection: sqlite3.Connection, entry: LogEntry) -> bool:
    known = connection.execute(
        "SELECT 1 FROM consolidation_log WHERE episode_id IS ? AND cycle_id = ? "
        "AND created_at = ? AND session_id = ? AND level = ?",
        (
            entry.episode,
            entry.cycle,
            instant_text(entry.created_at),
            entry.session,
            entry.level,
        ),
    ).fetchone()
    if known:
        return False
    taken = connection.execute(
        "SELECT 1 FROM consolidation_log WHERE id = ?", (entry.id,)
    ).fetchone()
    connection.execute(
        f"INSERT INTO consolidation_log (id, {LOG_COLUMNS}, undone_at) "
        f"VALUES (?, {LOG_PLACEHOLDERS}, ?)",
        (
            None if taken else entry.id,
            *log_row(entry),
            entry.undone_at and instant_text(entry.undone_at),
        ),
    )
    return True


def _compaction(connection: sqlite3.Connection, compaction: ExportedCompaction) -> bool:
    stored = _insert(
        connection,
        "compaction",
        "id, session_id, source, policy, text_hash, created_at",
        (
            compaction.id,
            compaction.session,
            compaction.source,
            compaction.policy,
            compaction.text_hash,
            instant_text(compaction.created_at),
        ),
    )
    for position, part in enumerate(compaction.parts if stored else ()):
        values = (compaction.id, position, part)
        _insert(connection, "compacted", "compaction, position, part", values)
    return stored


def _agent_session(connection: sqlite3.Connection, session: AgentSession) -> bool:
    return _insert(connection, "agent_session", SESSION_COLUMNS, session_row(session))


def _forgotten(connection: sqlite3.Connection, capture: ForgottenCapture) -> bool:
    return _insert(connection, "agent_forgotten", "id", (capture.id,))


def _insert(
    connection: sqlite3.Connection, table: str, columns: str, values: Sequence[Any]
) -> bool:
    """Insert a row, unless its key is here; tell whether it was inserted."""
    marks = ", ".join("?" * len(values))
    inserted = connection.execute(
        f"INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})", values
    )
    return bool(inserted.rowcount)


SINGLE: Mapping[type[Any], Callable[[sqlite3.Connection, Any], Outcome]] = {
    Learning: _learning,
    LogEntry: _log_entry,
    ExportedCompaction: _compaction,
    AgentSession: _agent_session,
    ForgottenCapture: _forgotten,
}
"""How each kind is stored."""


_EPISODE_COLUMNS = (
    "seq, id, session_id, source, level, content, item_count, covers_from, covers_until, "
    "summarizer, created_at, period_from, index_terms, stale"
)


class SqliteRestoring(Restoring):
    """The restoring of records in one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        kinds = {**SINGLE, **MOVED}.items()
        super().__init__({kind: partial(store, connection) for kind, store in kinds})
        self._connection = connection
        self._rows = MemoryRows(connection)

    def known_records(self, ids: Sequence[str]) -> dict[str, Known]:
        return known_records(self._connection, ids)

    def homes(self, episodes: Sequence[str]) -> dict[str, Home]:
        rows = self._connection.execute(
            "SELECT id, seq, item_count - "
            "(SELECT count(*) FROM archive AS a WHERE a.episode_seq = e.seq) "
            "FROM episodic_memory AS e WHERE level = 0 "
            "AND id IN (SELECT value FROM json_each(?))",
            (_json(episodes),),
        )
        return {id: Home(position, room) for id, position, room in rows.fetchall()}

    def taken_numbers(self, seqs: Sequence[int]) -> set[int]:
        rows = self._connection.execute(
            "SELECT seq FROM working_memory WHERE seq IN (SELECT value FROM json_each(?)) "
            "UNION ALL SELECT seq FROM archive WHERE seq IN (SELECT value FROM json_each(?))",
            (_json(seqs),) * 2,
        )
        return {seq for (seq,) in rows}

    def last_number(self) -> int:
        row = self._connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'working_memory'"
        ).fetchone()
        if row is None:
            self._connection.execute(
                "INSERT INTO sqlite_sequence VALUES ('working_memory', 0)"
            )
        return row[0] if row else 0

    def insert_memories(
        self, memories: Sequence[PlacedMemory], *, last_number: int
    ) -> None:
        self._rows.insert(memories)
        self._connection.execute(
            "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'working_memory'",
            (last_number,),
        )

    def insert_episode(self, episode: ExportedEpisode) -> None:
        taken = self._connection.execute(
            "SELECT 1 FROM episodic_memory WHERE seq = ?", (episode.seq,)
        ).fetchone()
        row = self._connection.execute(
            f"INSERT INTO episodic_memory ({_EPISODE_COLUMNS}) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            _episode_values(episode, None if taken else episode.seq),
        )
        number = row.lastrowid
        index_episode_grams(
            self._connection, number, episode.content, episode.index_terms
        )
        if episode.emptied:
            self._connection.execute(
                "INSERT INTO emptied_episode (episode_seq) VALUES (?)", (number,)
            )

    def can_adopt(self, rollup: ExportedEpisode) -> bool:
        (free,) = self._connection.execute(
            "SELECT count(*) FROM episodic_memory "
            "WHERE parent_id IS NULL AND level < ? "
            "AND id IN (SELECT value FROM json_each(?))",
            (rollup.level, _json(rollup.summary_of)),
        ).fetchone()
        taken = self._connection.execute(
            "SELECT 1 FROM episodic_memory WHERE level = ? AND period_from = ?",
            (rollup.level, rollup.period_from and instant_text(rollup.period_from)),
        ).fetchone()
        return not taken and free == len(rollup.summary_of)

    def adopt(self, rollup: ExportedEpisode) -> None:
        self._connection.execute(
            "UPDATE episodic_memory SET parent_id = ? "
            "WHERE id IN (SELECT value FROM json_each(?))",
            (rollup.id, _json(rollup.summary_of)),
        )

    def link(self, supersession: ExportedSupersession) -> Outcome:
        older = position_of(self._connection, supersession.memory)
        newer = position_of(self._connection, supersession.superseded_by)
        if older is None or newer is None:
            return None
        changed = self._connection.execute(
            "UPDATE memory_state SET superseded_by = ? WHERE memory_seq = ? "
            "AND superseded_at IS NOT NULL AND superseded_by IS NULL",
            (newer[0], older[0]),
        ).rowcount
        return bool(changed)


def _json(values: Sequence[object]) -> str:
    """A list for json_each."""
    return msgspec.json.encode(values).decode()


def _episode_values(episode: ExportedEpisode, seq: int | None) -> tuple[Any, ...]:
    """Return the values for _EPISODE_COLUMNS."""
    period = episode.period_from
    return (
        seq,
        episode.id,
        episode.session,
        episode.source,
        episode.level,
        episode.content,
        episode.item_count,
        instant_text(episode.covers_from),
        instant_text(episode.covers_until),
        episode.summarizer,
        instant_text(episode.created_at),
        instant_text(period) if period else None,
        episode.index_terms,
        int(episode.stale),
    )


class SqliteExchange(Transactional, ExchangeStore):
    """An `ExchangeStore` on one SQLite file."""

    @contextmanager
    def export(
        self, chosen: ExportFilter
    ) -> Iterator[tuple[dict[str, int], Iterator[Record]]]:
        with self._readers.snapshot() as connection:
            exported = SqliteExporting(connection, chosen)
            yield exported.expected(), exported.records()

    @contextmanager
    def everything(self) -> Iterator[tuple[dict[str, int], Iterator[AnyRecord]]]:
        with self._readers.snapshot() as connection:
            exported = SqliteExporting(connection, ExportFilter())
            records = chain(exported.records(), moved_records(connection))
            yield exported.expected(), records

    @writes
    def restore(
        self, connection: sqlite3.Connection, records: Sequence[AnyRecord]
    ) -> Restored:
        return SqliteRestoring(connection).restore(records)
