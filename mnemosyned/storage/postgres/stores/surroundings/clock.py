"""The clock as it was last believed, and the memories dated after it."""

from __future__ import annotations

from datetime import datetime

from mnemosyned.domain.ports.clock import ClockStore
from mnemosyned.domain.timekeeping import Sighting
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.database.transactions import (
    Transactional,
    reads,
    writes,
)
from mnemosyned.storage.postgres.tables.rows import utc
from mnemosyned.storage.postgres.tables.surroundings.sightings import (
    keep_sighting,
    kept_sighting,
)

UNKNOWN_START = ""
"""Which start of the machine it was is not known of what was written before sightings were kept."""
_NEWEST = (
    "SELECT max(moment) FROM ("
    "SELECT max(created_at) AS moment FROM fresh WHERE owner = %(owner)s UNION ALL "
    "(SELECT created_at FROM consolidation_log WHERE owner = %(owner)s "
    "ORDER BY id DESC LIMIT 1)) AS known"
)
_FUTURE = (
    "FROM fresh AS f WHERE f.owner = %(owner)s AND f.created_at > %(now)s "
    "AND NOT EXISTS (SELECT 1 FROM working_state AS s WHERE s.owner = %(owner)s "
    "AND s.memory_seq = f.seq AND s.future_since IS NOT NULL)"
)
"""Working memories dated in the future of which it is not known yet."""


class PostgresClock(Transactional, ClockStore):
    """A `ClockStore` of one owner in PostgreSQL."""

    @reads
    def last_sighting(self, session: Session) -> Sighting | None:
        if sighting := kept_sighting(session):
            return sighting
        newest = session.scalar(_NEWEST)
        if newest is None:
            return None
        return Sighting(moment=newest, boot=UNKNOWN_START, uptime_s=0.0)

    @writes
    def keep_sighting(self, session: Session, sighting: Sighting) -> None:
        keep_sighting(session, sighting)

    def note_future(self, *, now: datetime) -> None:
        if self._has_future(now):
            self._note_future(now)

    @reads
    def _has_future(self, session: Session, now: datetime) -> bool:
        return session.scalar(f"SELECT 1 {_FUTURE} LIMIT 1", now=utc(now)) is not None

    @writes
    def _note_future(self, session: Session, now: datetime) -> None:
        session.execute(
            "INSERT INTO working_state (owner, memory_seq, future_since) "
            f"SELECT f.owner, f.seq, %(now)s {_FUTURE} "
            "ON CONFLICT (owner, memory_seq) DO UPDATE SET future_since = excluded.future_since",
            now=utc(now),
        )
