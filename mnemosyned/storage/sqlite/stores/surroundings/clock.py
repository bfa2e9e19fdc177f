"""The clock as it was last believed, and the memories dated after it."""

from __future__ import annotations

import sqlite3
from datetime import datetime

from mnemosyned.domain.ports.clock import ClockStore
from mnemosyned.domain.timekeeping import Sighting
from mnemosyned.storage.sqlite.database.transactions import Transactional, reads, writes
from mnemosyned.storage.sqlite.tables.rows import instant, instant_text
from mnemosyned.storage.sqlite.tables.surroundings.sightings import (
    keep_sighting,
    kept_sighting,
)

UNKNOWN_START = ""
"""Which start of the machine it was is not known of what was written before sightings were kept."""


class SqliteClock(Transactional, ClockStore):
    """A `ClockStore` on one SQLite file."""

    @reads
    def last_sighting(self, connection: sqlite3.Connection) -> Sighting | None:
        if sighting := kept_sighting(connection):
            return sighting
        (newest,) = connection.execute(
            "SELECT max(created_at) FROM (SELECT max(created_at) AS created_at FROM working_memory "
            "UNION ALL SELECT created_at FROM consolidation_log "
            "WHERE id = (SELECT max(id) FROM consolidation_log))"
        ).fetchone()
        if newest is None:
            return None
        return Sighting(moment=instant(newest), boot=UNKNOWN_START, uptime_s=0.0)

    @writes
    def keep_sighting(self, connection: sqlite3.Connection, sighting: Sighting) -> None:
        keep_sighting(connection, sighting)

    def note_future(self, *, now: datetime) -> None:
        if self._has_future(now):
            self._note_future(now)

    @reads
    def _has_future(self, connection: sqlite3.Connection, now: datetime) -> bool:
        return (
            connection.execute(
                "SELECT 1 FROM working_memory WHERE created_at > ? AND seq NOT IN "
                "(SELECT memory_seq FROM working_state WHERE future_since IS NOT NULL) LIMIT 1",
                (instant_text(now),),
            ).fetchone()
            is not None
        )

    @writes
    def _note_future(self, connection: sqlite3.Connection, now: datetime) -> None:
        connection.execute(
            "INSERT INTO working_state (memory_seq, future_since) "
            "SELECT seq, ? FROM working_memory WHERE created_at > ? "
            "ON CONFLICT (memory_seq) DO UPDATE SET future_since = ifnull(future_since, excluded.future_since)",
            (instant_text(now), instant_text(now)),
        )
