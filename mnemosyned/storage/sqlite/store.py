"""`SqliteStore`: the parts of a memory store over one SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mnemosyned.domain.search.words.frequencies import Frequencies
from mnemosyned.storage.sqlite.database.checkpoints import Checkpoints
from mnemosyned.storage.sqlite.database.connections import open_writer
from mnemosyned.storage.sqlite.database.custody import Custody
from mnemosyned.storage.sqlite.database.file import DatabaseFile
from mnemosyned.storage.sqlite.database.readers import Readers
from mnemosyned.storage.sqlite.database.schema import schema_version
from mnemosyned.storage.sqlite.database.writer import Writer
from mnemosyned.storage.sqlite.stores.archive.exchange import SqliteExchange
from mnemosyned.storage.sqlite.stores.archive.grace import SqliteGrace
from mnemosyned.storage.sqlite.stores.archive.retention import SqliteRetention
from mnemosyned.storage.sqlite.stores.archive.undo import SqliteUndo
from mnemosyned.storage.sqlite.stores.changes import SqliteChanges
from mnemosyned.storage.sqlite.stores.compactions import SqliteCompactions
from mnemosyned.storage.sqlite.stores.deletion import SqliteDeletion
from mnemosyned.storage.sqlite.stores.learnings import SqliteLearnings
from mnemosyned.storage.sqlite.stores.listing import SqliteLists
from mnemosyned.storage.sqlite.stores.maintenance import SqliteMaintenance
from mnemosyned.storage.sqlite.stores.records import SqliteRecords
from mnemosyned.storage.sqlite.stores.rollups import SqliteRollups
from mnemosyned.storage.sqlite.stores.search import SqliteSearch
from mnemosyned.storage.sqlite.stores.sleep import SqliteSleep
from mnemosyned.storage.sqlite.stores.surroundings.agents import SqliteAgents
from mnemosyned.storage.sqlite.stores.surroundings.clock import SqliteClock
from mnemosyned.storage.sqlite.stores.surroundings.watching import SqliteWatches
from mnemosyned.storage.sqlite.stores.vectors import SqliteVectors
from mnemosyned.storage.sqlite.tables.forgetting.purge import Purge

READERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteArchive:
    """The `ArchiveStores` on one SQLite file."""

    retention: SqliteRetention
    undo: SqliteUndo
    grace: SqliteGrace
    exchange: SqliteExchange


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteSurroundings:
    """The `SurroundingStores` on one SQLite file."""

    agents: SqliteAgents
    watches: SqliteWatches
    clock: SqliteClock


class SqliteStore:
    """A `MemoryStore` on one SQLite file."""

    read_only = False

    def __init__(
        self,
        database: Path,
        connection: sqlite3.Connection,
        *,
        file: DatabaseFile,
        warnings: Sequence[str] = (),
    ) -> None:
        self.database = database
        self.schema_version = schema_version(connection)
        self._custody = Custody(file, connect=open_writer)
        self._writer = Writer(connection, secured=self._custody.secured)
        self._readers = Readers(database, size=READERS, check=self._check_readable)
        self._checkpoints = Checkpoints(database, check=self._custody.check)
        self._custody.renewed = self._renew
        self._purge = Purge(
            self._writer, self._readers, checkpoint=self._checkpoints.run
        )
        frequencies = Frequencies()
        shared = (self._writer, self._readers)
        self.memories = SqliteRecords(*shared)
        self.lists = SqliteLists(*shared)
        self.search = SqliteSearch(*shared, frequencies)
        self.sleep = SqliteSleep(*shared)
        self.rollups = SqliteRollups(*shared)
        self.deletion = SqliteDeletion(*shared, self._purge)
        self.changes = SqliteChanges(*shared)
        self.learnings = SqliteLearnings(*shared)
        self.compactions = SqliteCompactions(*shared)
        self.vectors = SqliteVectors(*shared)
        self.archive = SqliteArchive(
            retention=SqliteRetention(*shared),
            undo=SqliteUndo(*shared),
            grace=SqliteGrace(*shared),
            exchange=SqliteExchange(*shared),
        )
        self.surroundings = SqliteSurroundings(
            agents=SqliteAgents(*shared),
            watches=SqliteWatches(*shared),
            clock=SqliteClock(*shared),
        )
        self.maintenance = SqliteMaintenance(
            *shared,
            custody=self._custody,
            checkpoints=self._checkpoints,
            frequencies=frequencies,
            warnings=warnings,
        )

    def close(self) -> None:
        """Let running reads end, checkpoint the write-ahead log, close."""
        self._readers.close()
        self._checkpoints.close()
        self._custody.retry_now()
        try:
            self._writer.close()
        finally:  # it connects anew where the file is put back on the way out
            self._checkpoints.close()

    def _renew(self) -> None:
        """Reopen connections that lead to the file by its path."""
        self._readers.renew()
        self._checkpoints.renew()

    def _check_readable(self) -> None:
        """Before a new connection reads: put a deleted file back, refuse another's."""
        self._writer.secure()
        self._custody.check()
