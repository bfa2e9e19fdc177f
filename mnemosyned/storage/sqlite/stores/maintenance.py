"""Upkeep: totals, health, durability, checkpoints and backups."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from mnemosyned.domain.errors import StorageFailed
from mnemosyned.domain.memory import (
    Tier,
    TierTotals,
)
from mnemosyned.domain.ports.maintenance import CopyReport, MaintenanceStore
from mnemosyned.domain.search.words.frequencies import Frequencies
from mnemosyned.storage.sqlite.database.checkpoints import Checkpoints
from mnemosyned.storage.sqlite.database.copies import CopyDamaged, back_up
from mnemosyned.storage.sqlite.database.custody import Custody
from mnemosyned.storage.sqlite.database.failures import storage_failed
from mnemosyned.storage.sqlite.database.readers import Readers
from mnemosyned.storage.sqlite.database.transactions import Transactional, reads, writes
from mnemosyned.storage.sqlite.database.writer import Writer
from mnemosyned.storage.sqlite.fulltext.segments import failing_indexes
from mnemosyned.storage.sqlite.tables.rows import optional_instant


class SqliteMaintenance(Transactional, MaintenanceStore):
    """A `MaintenanceStore` on one SQLite file."""

    def __init__(
        self,
        writer: Writer,
        readers: Readers,
        *,
        custody: Custody,
        checkpoints: Checkpoints,
        frequencies: Frequencies,
        warnings: Sequence[str],
    ) -> None:
        super().__init__(writer, readers)
        self._database = custody.path
        self._custody = custody
        self._checkpoints = checkpoints
        self._frequencies = frequencies
        self._warnings = tuple(warnings)

    @reads
    def totals(self, connection: sqlite3.Connection) -> Mapping[Tier, TierTotals]:
        counted = connection.execute("SELECT tier, count, characters FROM tier_totals")
        sizes = {Tier(tier): (count, chars) for tier, count, chars in counted}
        return {
            tier: TierTotals(*sizes[tier], _oldest(connection, tier))
            for tier in (Tier.WORKING, Tier.EPISODIC, Tier.ARCHIVE)
        }

    def bytes_on_disk(self) -> int:
        total = 0
        for suffix in ("", "-wal", "-shm"):
            path = self._database.with_name(self._database.name + suffix)
            with suppress(FileNotFoundError):
                total += path.stat().st_size
        return total

    @reads
    def problems(self, connection: sqlite3.Connection) -> list[str]:
        return [
            f"the full-text index {index} does not answer; restart the daemon: it is rebuilt"
            for index in failing_indexes(connection)
        ]

    def warnings(self) -> list[str]:
        problem = self._custody.problem
        return [*([problem] if problem else []), *self._warnings]

    def longest_write_s(self) -> float:
        return self._writer.held_max_s

    def ensure_durable(self) -> None:
        self._writer.secure()

    @writes
    def flush(self, connection: sqlite3.Connection) -> None:
        # A page without a change: its commit takes all before it to the disk.
        connection.execute(
            "UPDATE tier_totals SET count = count WHERE tier = 'episodic'"
        )

    def run_upkeep(self) -> bool:
        return self._checkpoints.run()

    def run_idle_upkeep(self) -> None:
        self._checkpoints.run_due()

    def release_memory(self, *, words: bool = False) -> None:
        if words:
            self._frequencies.clear()
        self._writer.shrink()
        self._readers.shrink()

    def back_up(self, target: Path) -> CopyReport:
        self._writer.secure()
        self._custody.check()
        try:
            return back_up(self._database, target, check=self._custody.check)
        except CopyDamaged as error:
            reason = str(error)
            raise StorageFailed(
                f"no backup was made: {reason}", reason=reason
            ) from error
        except (OSError, sqlite3.Error) as error:
            raise storage_failed(error, "no backup was made") from error


def _oldest(connection: sqlite3.Connection, tier: Tier) -> datetime | None:
    """Return the earliest time of a tier; for the archive, that of its episodes."""
    statement = (
        "SELECT min(created_at) FROM working_memory"
        if tier is Tier.WORKING
        else "SELECT min(covers_from) FROM episodic_memory"
    )
    (text,) = connection.execute(statement).fetchone()
    return optional_instant(text)
