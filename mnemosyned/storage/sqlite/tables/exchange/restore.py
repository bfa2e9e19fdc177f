"""Records of an export stored again: each once, and no summary without what it was made of."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from mnemosyned.domain.exchange import (
    ExportedEpisode,
    ExportedSupersession,
    Outcome,
)
from mnemosyned.domain.storing.intake import Known
from mnemosyned.domain.storing.restoring import Home, PlacedMemory, Restoring
from mnemosyned.storage.sqlite.fulltext.indexing import index_episode_grams
from mnemosyned.storage.sqlite.tables.changing.state import position_of
from mnemosyned.storage.sqlite.tables.exchange.moved import MOVED
from mnemosyned.storage.sqlite.tables.exchange.restore_memories import MemoryRows
from mnemosyned.storage.sqlite.tables.exchange.restore_single import SINGLE
from mnemosyned.storage.sqlite.tables.insert import known_records
from mnemosyned.storage.sqlite.tables.rows import instant_text

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
