"""Upkeep: totals, health and durability. The server checkpoints, cleans and caches by itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mnemosyned.domain.errors import StorageFailed
from mnemosyned.domain.memory import Tier, TierTotals
from mnemosyned.domain.ports.maintenance import CopyReport, MaintenanceStore
from mnemosyned.domain.search.words.frequencies import Frequencies
from mnemosyned.storage.postgres.database import health
from mnemosyned.storage.postgres.database.pool import Pool
from mnemosyned.storage.postgres.database.session import Session
from mnemosyned.storage.postgres.database.transactions import (
    Transactional,
    reads,
    writes,
)
from mnemosyned.storage.postgres.tables.owners.owner import totals

_WORKING_SINCE = "SELECT min(created_at) FROM fresh WHERE owner = %(owner)s"
_EPISODES_SINCE = "SELECT min(covers_from) FROM episode WHERE owner = %(owner)s"
_NO_COPY = (
    "this memory is in PostgreSQL; back up the server with pgBackRest, "
    "or the database with pg_dump"
)


class PostgresMaintenance(Transactional, MaintenanceStore):
    """A `MaintenanceStore` of one owner in PostgreSQL."""

    def __init__(self, pool: Pool, owner: int, frequencies: Frequencies) -> None:
        super().__init__(pool, owner)
        self._frequencies = frequencies

    @reads
    def totals(self, session: Session) -> Mapping[Tier, TierTotals]:
        working = session.scalar(_WORKING_SINCE)
        episodes = session.scalar(_EPISODES_SINCE)
        oldest = {
            Tier.WORKING: working,
            Tier.EPISODIC: episodes,
            Tier.ARCHIVE: episodes,
        }
        return {
            tier: TierTotals(count, characters, oldest[tier])
            for tier, (count, characters) in totals(session).items()
        }

    # The server is asked as who connects, who may ask more than the role of requests.

    def bytes_on_disk(self) -> int:
        with self._pool.outside_transactions(self._owner) as session:
            size: int = session.scalar("SELECT pg_database_size(current_database())")
        return size

    def problems(self) -> list[str]:
        with self._pool.outside_transactions(self._owner) as session:
            return health.problems(session)

    def warnings(self) -> list[str]:
        with self._pool.outside_transactions(self._owner) as session:
            return health.warnings(session)

    def longest_write_s(self) -> float:
        return self._pool.held_max_s

    @reads
    def ensure_durable(self, session: Session) -> None:
        # This transaction itself is read-only: what others begin with is the default.
        if session.scalar(f"SELECT {health.REFUSES_WRITES}"):
            raise StorageFailed(f"{health.STANDBY}; connect to the primary")

    @writes
    def flush(self, session: Session) -> None:
        # A row without a change: its commit takes all before it to the disk.
        session.execute(
            "UPDATE owner SET last_record = last_record WHERE owner = %(owner)s"
        )

    def run_upkeep(self) -> bool:
        return True

    def run_idle_upkeep(self) -> None:
        pass

    def release_memory(self, *, words: bool = False) -> None:
        if words:
            self._frequencies.clear()

    def back_up(self, target: Path) -> CopyReport:
        raise StorageFailed(
            f"no backup was made to {target}: {_NO_COPY}", reason=_NO_COPY
        )
