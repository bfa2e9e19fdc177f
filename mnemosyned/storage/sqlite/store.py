"""The SQLite store: opened as the owner of one file, with totals, health, checkpoints and backups."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from mnemosyned.errors import StorageFailed
from mnemosyned.logs import logger
from mnemosyned.memory.ports import CopyReport, MaintenanceStore, MemoryStore
from mnemosyned.storage.common import edits, endings, injections, learnings, sleep, undo
from mnemosyned.storage.common.exchange import ExchangeStore
from mnemosyned.storage.common.records import RecordStore, tier_totals
from mnemosyned.storage.common.session import StorePart, as_method, reads, writes
from mnemosyned.storage.common.surroundings import AgentStore, ClockStore, WatchStore
from mnemosyned.storage.sqlite import connections, fulltext, memories, ownership, search
from mnemosyned.storage.sqlite.copies import CopyDamaged, back_up
from mnemosyned.storage.sqlite.exchange import SqliteExporting, SqliteRestoring
from mnemosyned.storage.sqlite.forgetting import SqliteDeletion
from mnemosyned.storage.sqlite.schema import refuse_foreign, schema_version, upgrade
from mnemosyned.storage.sqlite.session import SqliteSession


class SqliteMaintenance(StorePart, MaintenanceStore):
    """A `MaintenanceStore` on one SQLite file."""

    _engine: connections.SqliteEngine

    def __init__(
        self,
        engine: connections.SqliteEngine,
        *,
        file: ownership.DatabaseFile,
        checkpoints: connections.Checkpoints,
        warnings: Sequence[str],
    ) -> None:
        super().__init__(engine)
        self._database = file.path
        self._file = file
        self._checkpoints = checkpoints
        self._warnings = tuple(warnings)

    totals = reads(as_method(tier_totals))

    def bytes_on_disk(self) -> int:
        """Return the size in bytes of the file, its write-ahead log and the log's index."""
        total = 0
        for suffix in ("", "-wal", "-shm"):
            path = self._database.with_name(self._database.name + suffix)
            with suppress(FileNotFoundError):
                total += path.stat().st_size
        return total

    @reads
    def problems(self, connection: SqliteSession) -> list[str]:
        """Return a sentence for each full-text index that does not answer; empty if all do."""
        return [
            f"the full-text index {index} does not answer; restart the daemon: it is rebuilt"
            for index in fulltext.failing_indexes(connection)
        ]

    def warnings(self) -> list[str]:
        """Return why nothing can be stored, if so, and the warnings from the opening of the file."""
        folder = self._database.parent
        warnings = [self._file.problem, *self._warnings]
        with suppress(OSError):
            if (free := shutil.disk_usage(folder).free) < ownership.FREE_MIN_BYTES:
                text = f"the disk is almost full: {free / 1e6:,.0f} MB are free in {folder}"
                warnings.append(text)
        return [warning for warning in warnings if warning]

    def longest_write_s(self) -> float:
        """Return the longest time in seconds that a transaction of this process kept other writers waiting."""
        return self._engine.writer.held_max_s

    def ensure_durable(self) -> None:
        """Put a deleted database file back, so that acknowledged writes are not lost.

        Do nothing while another thread writes, as each write begins with the same check. Raises
        `DatabaseReplaced` if the file cannot be put back.
        """
        self._engine.writer.secure()

    def check_ready(self) -> None:
        """Put back a deleted file; raise `DatabaseReplaced` or `StorageFailed` if it is not writable."""
        self.ensure_durable()
        if not os.access(self._database, os.W_OK):
            reason = f"{self._database} cannot be written to"
            raise StorageFailed(f"nothing can be stored: {reason}", reason=reason)

    @writes
    def flush(self, connection: SqliteSession) -> None:
        # A page without a change: its commit takes all before it to the disk.
        """Commit a durable change of a row, which brings all earlier commits to disk."""
        connection.execute(
            "UPDATE tier_totals SET count = count WHERE tier = 'episodic'"
        )

    def run_upkeep(self) -> bool:
        """Checkpoint the write-ahead log as far as readers allow; return False if it stays long."""
        return self._checkpoints.run()

    def run_idle_upkeep(self) -> None:
        """Checkpoint a log written to since the last call, else truncate a long one."""
        self._checkpoints.run_due()

    def release_memory(self, *, words: bool = False) -> None:
        """Free the page caches of idle connections; with `words`, also the word frequencies."""
        if words:
            self._engine.frequencies.clear()
        self._engine.writer.shrink()
        self._engine.readers.shrink()

    def back_up(self, target: Path) -> CopyReport:
        """Copy the database to `target`, and return what the copy contains. Raises `StorageFailed`.

        The copy is complete and checked before `target` appears.
        """
        self._engine.writer.secure()
        self._file.check()
        try:
            return back_up(self._database, target, check=self._file.check)
        except CopyDamaged as error:
            reason = str(error)
            raise StorageFailed(
                f"no backup was made: {reason}", reason=reason
            ) from error
        except (OSError, sqlite3.Error) as error:
            raise connections.translate_error(error, "no backup was made") from error


READERS = 4


class SqliteStore(MemoryStore):
    """A `MemoryStore` on one SQLite file."""

    read_only = False

    def __init__(
        self,
        file: ownership.DatabaseFile,
        connection: SqliteSession,
        *,
        warnings: Sequence[str],
    ) -> None:
        self.database = database = file.path
        self.schema_version = schema_version(connection)
        self._file = file
        self._writer = connections.Writer(connection, secured=file.secure_connection)
        self._readers = connections.Readers(
            database, size=READERS, check=self._check_readable
        )
        self._checkpoints = connections.Checkpoints(database, check=file.check)
        file.renewed = self._renew
        engine = connections.SqliteEngine(self._writer, self._readers)
        self.memories = RecordStore(engine, memories.SqliteIntake)
        self.lists = search.SqliteLists(engine)
        self.search = search.SqliteSearch(engine)
        self.sleep = memories.SqliteSleep(engine)
        self.rollups = sleep.RollupStore(engine)
        self.deletion = SqliteDeletion(engine, checkpoint=self._checkpoints.run)
        self.changes = edits.ChangeStore(engine)
        self.learnings = learnings.LearningStore(engine)
        self.vectors = memories.SqliteVectors(engine)
        self.retention = undo.RetentionStore(engine)
        self.undo = undo.UndoStore(engine)
        self.exchange = ExchangeStore(engine, SqliteExporting, SqliteRestoring)
        self.agents = AgentStore(engine)
        self.endings = endings.EndingStore(engine)
        self.injections = injections.InjectionStore(engine)
        self.watches = WatchStore(engine)
        self.clock = ClockStore(engine)
        self.maintenance = SqliteMaintenance(
            engine,
            file=file,
            checkpoints=self._checkpoints,
            warnings=warnings,
        )

    def close(self) -> None:
        """Wait for running reads, checkpoint the write-ahead log, and close all connections."""
        self._readers.close()
        self._checkpoints.close()
        self._file.retry_now()
        try:
            self._writer.close()
        finally:  # it connects anew where the file is put back on the way out
            self._checkpoints.close()

    def _renew(self) -> None:
        """Let readers and checkpoints open the database again, after its file was put back."""
        self._readers.renew()
        self._checkpoints.renew()

    def _check_readable(self) -> None:
        """Put a deleted database file back; raise `DatabaseReplaced` if another file has its path."""
        self._writer.secure()
        self._file.check()


log = logger()


@contextmanager
def open_store(
    database: Path, *, migrations: Path, socket: Path | None = None
) -> Iterator[SqliteStore]:
    """Open the file as its owner, upgrade its schema, and lend the store to the block.

    Raises `DatabaseInUse`, `SchemaTooNew` and `StorageFailed`.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(ownership.own_database(database, socket=socket))
            store = _prepare_store(file, migrations)
        except (OSError, sqlite3.Error) as error:
            raise StorageFailed(
                f"{database} cannot be opened as a memory: {connections.failure_reason(error)}",
                reason=connections.failure_reason(error),
            ) from error
        stack.callback(store.close)
        yield store


def _prepare_store(file: ownership.DatabaseFile, migrations: Path) -> SqliteStore:
    """Open the database, repair its indexes, upgrade its schema, and return the store."""
    left = connections.commits_in_log(file.path)
    connection = connections.open_writer(
        file.path, check=partial(refuse_foreign, path=file.path)
    )
    try:
        warnings = file.warnings()
        if left:
            lost = connections.lost_transactions(
                file.path, left, connections.checkpoint_log(connection)
            )
            warnings += [lost] if lost else []
        # Before a statement of this connection names an index.
        warnings += [
            f"the full-text index {index} could not be read and was rebuilt; no memory was lost"
            for index in fulltext.heal_indexes(file.path)
        ]
        if upgrade(connection, migrations):
            # The file is a database with tables from its first moment on.
            connections.checkpoint_log(connection)
        if schema_version(connection) >= fulltext.REINDEXING:
            fulltext.finish_reindexing(connection)
        file.save_companion_identities()
        file.restrict_permissions()
        for warning in warnings:
            log.warning("database_warning", reason=warning)
        return SqliteStore(file, connection, warnings=warnings)
    except BaseException:
        connection.close()
        raise
