"""`SqliteStore`: the tiers in one SQLite file, each method one short transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from mnemosyned.domain.consolidation import Activity, LogEntry, Pending
from mnemosyned.domain.errors import NotFound
from mnemosyned.domain.learnings.learning import Learning, LearningKind
from mnemosyned.domain.memory import Episode, MemoryRecord, Tier, TierTotals
from mnemosyned.domain.ports.store import (
    Compacted,
    Compacting,
    Draft,
    Fold,
    Foldable,
    Promotion,
    Remembered,
)
from mnemosyned.domain.retention import (
    Choice,
    Emptied,
    Prunable,
    Removal,
    Retention,
    Returned,
)
from mnemosyned.domain.rollup import Level
from mnemosyned.domain.search.query import Found, Place, Query, Shown
from mnemosyned.domain.timekeeping import Sighting
from mnemosyned.storage.sqlite.database.checkpoints import Checkpoints
from mnemosyned.storage.sqlite.database.connections import (
    Readers,
    Writer,
    open_writer,
)
from mnemosyned.storage.sqlite.database.copies import back_up
from mnemosyned.storage.sqlite.database.custody import Custody
from mnemosyned.storage.sqlite.database.failures import storage_failed
from mnemosyned.storage.sqlite.database.file import DatabaseFile
from mnemosyned.storage.sqlite.database.schema import schema_version
from mnemosyned.storage.sqlite.fulltext.segments import failing_indexes
from mnemosyned.storage.sqlite.search import selection
from mnemosyned.storage.sqlite.search.candidates import Frequencies
from mnemosyned.storage.sqlite.search.search import search
from mnemosyned.storage.sqlite.tables import (
    clock,
    compactions,
    consolidation as changes,
    deletion as forgetting,
    learnings,
    memories as tiers,
    rewrites as emptying,
    rollups as levels,
    state as marks,
    undo as returning,
)
from mnemosyned.storage.sqlite.tables.activity import activity
from mnemosyned.storage.sqlite.tables.insert import remember
from mnemosyned.storage.sqlite.tables.purge import Purge
from mnemosyned.storage.sqlite.tables.rows import (
    EPISODE_COLUMNS,
    LOG_FIELDS,
    episode_from,
    log_entry_from,
)
from mnemosyned.storage.sqlite.vectors import SqliteVectors

READERS = 4
PACE_ROWS = 500
"""Rows of the log that tell how fast a model writes at present."""


class SqliteStore:
    """A `MemoryStore` on one SQLite file."""

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
        self._purge = Purge(
            self._writer, self._readers, checkpoint=self._checkpoints.run
        )
        self._custody.renewed = self._renew
        self._frequencies = Frequencies()
        self._warnings = tuple(warnings)
        self.vectors = SqliteVectors(self._writer, self._readers)

    def close(self) -> None:
        """Let running reads end, fold the write-ahead log in, close."""
        self._readers.close()
        self._checkpoints.close()
        self._custody.retry_now()
        self._writer.close()

    # ---------------------------------------------------------------- upkeep

    def secure(self) -> None:
        self._writer.secure()

    def _renew(self) -> None:
        self._readers.renew()
        self._checkpoints.renew()

    def warnings(self) -> list[str]:
        problem = self._custody.problem
        return [*([problem] if problem else []), *self._warnings]

    def checkpoint_idle(self) -> None:
        self._checkpoints.run_due()

    def _check_readable(self) -> None:
        """Before a new connection reads: what was deleted is put back, what is not ours is left."""
        self._writer.secure()
        self._custody.check()

    def back_up(self, target: Path) -> int:
        self._check_readable()
        try:
            return back_up(self.database, target, check=self._custody.check)
        except (OSError, sqlite3.Error) as error:
            raise storage_failed(error, "no backup was made") from error

    # -------------------------------------------------------------- writing

    def remember(self, drafts: Sequence[Draft]) -> Remembered:
        return self._writer.write(lambda connection: remember(connection, drafts))

    def consolidate(
        self, groups: Sequence[Sequence[Promotion]], *, durable: bool = True
    ) -> list[Exception | None]:
        return self._writer.write_each(
            [
                partial(changes.consolidate, promotions=promotions)
                for promotions in groups
            ],
            durable=durable,
        )

    def checkpoint(self) -> bool:
        return self._checkpoints.run()

    def release(self) -> None:
        self._frequencies.clear()
        self._writer.shrink()
        self._readers.shrink()

    def settle(self) -> None:
        self._writer.write(changes.settle)

    def fold(self, change: Fold) -> None:
        def write(connection: sqlite3.Connection) -> None:
            levels.fold(connection, change)
            changes.insert_log(connection, change.entry)

        self._writer.write(write)

    def record_failure(self, entry: LogEntry) -> None:
        self._writer.write(lambda connection: changes.insert_log(connection, entry))

    def forget(self, ids: Sequence[str]) -> Removal:
        return self._writer.write(lambda connection: forgetting.forget(connection, ids))

    def unlearn(self, learned: Sequence[str]) -> Removal:
        return self._writer.write(
            lambda connection: forgetting.unlearn(connection, learned)
        )

    def compact(self, compactings: Sequence[Compacting]) -> list[str]:
        return self._writer.write(
            lambda connection: compactions.keep(connection, compactings)
        )

    def learn(self, learning: Learning) -> tuple[Learning, list[str]]:
        return self._writer.write(
            lambda connection: learnings.keep(connection, learning)
        )

    def edit_learning(self, id: str, text: str) -> None:
        self._writer.write(lambda connection: learnings.edit(connection, id, text))

    def remove_learning(self, id: str) -> None:
        self._writer.write(lambda connection: learnings.remove(connection, id))

    def forget_names(self, *, sessions: Iterable[str], sources: Iterable[str]) -> None:
        self._writer.write(
            lambda connection: forgetting.forget_names(connection, sessions, sources)
        )

    def rewrite(self, mark: int, episode: Episode) -> None:
        self._writer.write(
            lambda connection: emptying.rewrite(connection, mark, episode)
        )

    def pin(self, id: str, *, pinned: bool) -> bool:
        return self._writer.write(
            lambda connection: marks.pin(connection, id, pinned=pinned)
        )

    def restore(self, id: str) -> Removal:
        return self._writer.write(lambda connection: returning.restore(connection, id))

    def undo(
        self, episodes: Sequence[str], *, now: datetime, held_until: datetime
    ) -> list[Returned]:
        return self._writer.write(
            lambda connection: returning.undo(connection, episodes, now, held_until)
        )

    def keep_sighting(self, sighting: Sighting) -> None:
        self._writer.write(lambda connection: clock.keep_sighting(connection, sighting))

    def note_future(self, *, now: datetime) -> None:
        with self._readers.snapshot() as connection:
            found = clock.has_future(connection, now)
        if found:
            self._writer.write(lambda connection: clock.note_future(connection, now))

    def prune(self, ids: Sequence[str], *, now: datetime) -> int:
        return self._writer.write(
            lambda connection: returning.prune(connection, ids, now)
        )

    def scrub_due(self) -> bool:
        return self._purge.due()

    def scrub(self) -> bool:
        return self._purge.run()

    # -------------------------------------------------------------- reading

    def get(self, id: str) -> MemoryRecord | Episode:
        with self._readers.snapshot() as connection:
            found = tiers.memory(connection, id) or tiers.episode_at(
                connection, "id", id, details=True
            )
        if found is None:
            raise NotFound(
                f"nothing has the id {id!r}; `recall` shows the ids that exist",
                field="id",
            )
        return found

    def compaction(self, id: str) -> tuple[Compacted, list[MemoryRecord]] | None:
        with self._readers.snapshot() as connection:
            return compactions.read(connection, id)

    def compaction_saying(
        self, text: str, *, session: str, source: str | None
    ) -> str | None:
        with self._readers.snapshot() as connection:
            return compactions.saying(connection, text, session=session, source=source)

    def originals(self, episode: str) -> list[MemoryRecord]:
        with self._readers.snapshot() as connection:
            return tiers.originals(connection, episode)

    def summaries(self, ids: Sequence[str]) -> list[Episode]:
        rows = []
        with self._readers.snapshot() as connection:
            for chunk in levels.chunks(ids):
                rows += connection.execute(
                    f"SELECT {EPISODE_COLUMNS} FROM episodic_memory "
                    f"WHERE id IN ({', '.join('?' * len(chunk))})",
                    chunk,
                ).fetchall()
        return sorted(
            map(episode_from, rows), key=lambda one: (one.covers_from, one.id)
        )

    def foldable(
        self,
        *,
        to_level: Level,
        before: datetime,
        limit: int,
        opened: Iterable[datetime] = (),
    ) -> Foldable:
        with self._readers.snapshot() as connection:
            return levels.foldable(
                connection, to_level=to_level, before=before, limit=limit, opened=opened
            )

    def passing(self) -> set[str]:
        with self._readers.snapshot() as connection:
            return marks.passing(connection)

    def chosen(self, choice: Choice) -> list[str]:
        with self._readers.snapshot() as connection:
            return selection.chosen(connection, choice)

    def below(self, episode: str) -> list[str]:
        with self._readers.snapshot() as connection:
            return forgetting.below(connection, episode)

    def chosen_learnings(self, choice: Choice) -> list[str]:
        with self._readers.snapshot() as connection:
            return selection.chosen_learnings(connection, choice)

    def foreseen(self, ids: Sequence[str], *, learned: Sequence[str] = ()) -> Removal:
        with self._readers.snapshot() as connection:
            return forgetting.foreseen(connection, ids, learned)

    def unborne_names(self) -> tuple[list[str], list[str]]:
        with self._readers.snapshot() as connection:
            return forgetting.unborne_names(connection)

    def next_emptied(self, *, highest: Level = Level.MONTH) -> Emptied | None:
        with self._readers.snapshot() as connection:
            return emptying.next_emptied(connection, highest=highest)

    def history(self, id: str) -> list[MemoryRecord]:
        with self._readers.snapshot() as connection:
            return marks.history(connection, id)

    def returning(self, episodes: Sequence[str]) -> list[Returned]:
        with self._readers.snapshot() as connection:
            return returning.returning(connection, episodes)

    def last_cycle(self) -> str | None:
        with self._readers.snapshot() as connection:
            return returning.last_cycle(connection)

    def prunable(self, retention: Retention, *, now: datetime, limit: int) -> Prunable:
        with self._readers.snapshot() as connection:
            return returning.prunable(connection, retention, now=now, limit=limit)

    def search(self, query: Query) -> Found:
        if not query.terms and not query.only_then:
            return Found()
        with self._readers.snapshot() as connection:
            return search(connection, query, self._frequencies)

    def show(self, places: Sequence[Place]) -> Shown:
        with self._readers.snapshot() as connection:
            return tiers.show(connection, places)

    def pending(
        self,
        *,
        before: datetime | None = None,
        session: str | None = None,
        sources: Sequence[str | None] = (),
        now: datetime | None = None,
        limit: int,
    ) -> list[Pending]:
        with self._readers.snapshot() as connection:
            return tiers.pending(
                connection,
                before=before,
                session=session,
                sources=sources,
                now=now,
                limit=limit,
            )

    def count_due(
        self,
        *,
        before: datetime | None = None,
        session: str | None = None,
        sources: Sequence[str | None] = (),
        now: datetime | None = None,
        limit: int,
    ) -> int:
        with self._readers.snapshot() as connection:
            return tiers.count_due(
                connection,
                before=before,
                session=session,
                sources=sources,
                now=now,
                limit=limit,
            )

    def activity(self, *, fresh: datetime, now: datetime, limit: int) -> Activity:
        with self._readers.snapshot() as connection:
            return activity(connection, fresh=fresh, now=now, limit=limit)

    def last_sighting(self) -> Sighting | None:
        with self._readers.snapshot() as connection:
            return clock.last_sighting(connection)

    def pace(self, summarizer: str) -> float | None:
        with self._readers.snapshot() as connection:
            chars, seconds = connection.execute(
                "SELECT sum(chars_before), sum(duration_s) FROM "
                "(SELECT * FROM consolidation_log ORDER BY id DESC LIMIT ?) "
                "WHERE summarizer = ? AND fallback_reason IS NULL AND status = 'promoted'",
                (PACE_ROWS, summarizer),
            ).fetchone()
        return chars / seconds if chars and seconds else None

    def working_count(self) -> int:
        with self._readers.snapshot() as connection:
            return tiers.working_count(connection)

    def working(self, ids: Sequence[str]) -> list[MemoryRecord]:
        with self._readers.snapshot() as connection:
            return tiers.working(connection, ids)

    def learnings(
        self,
        *,
        sources: Sequence[str | None] = (),
        kind: LearningKind | None = None,
        superseded: bool = False,
        limit: int,
    ) -> list[Learning]:
        with self._readers.snapshot() as connection:
            return learnings.listed(
                connection,
                sources=sources,
                kind=kind,
                superseded=superseded,
                limit=limit,
            )

    def log(
        self, *, limit: int, session: str | None = None, cycle: str | None = None
    ) -> list[LogEntry]:
        with self._readers.snapshot() as connection:
            rows = connection.execute(
                f"SELECT {LOG_FIELDS} FROM consolidation_log "
                "WHERE (?1 IS NULL OR session_id = ?1) AND (?2 IS NULL OR cycle_id = ?2) "
                "ORDER BY id DESC LIMIT ?3",
                (session, cycle, limit),
            ).fetchall()
        return [log_entry_from(row) for row in rows]

    def problems(self) -> list[str]:
        with self._readers.snapshot() as connection:
            return [
                f"the full-text index {index} does not answer; restart the daemon: it is rebuilt"
                for index in failing_indexes(connection)
            ]

    def longest_write_s(self) -> float:
        return self._writer.held_max_s

    def totals(self) -> Mapping[Tier, TierTotals]:
        with self._readers.snapshot() as connection:
            return tiers.totals(connection)
