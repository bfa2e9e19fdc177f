"""Records of an export and of a move, read from one snapshot: here all but those of memories."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import groupby
from operator import itemgetter

from mnemosyned.memory.actions import Action
from mnemosyned.memory.exchange import (
    AnyRecord,
    ExportedCompaction,
    KeptVector,
    Record,
    RestoreReport,
)
from mnemosyned.memory.fields import MemoryFilter
from mnemosyned.storage.common.forgetting import recoverable_records
from mnemosyned.storage.common.injections import read_injections
from mnemosyned.storage.common.listing import (
    column_conditions,
    join_conditions,
    tag_conditions,
    time_conditions,
)
from mnemosyned.storage.common.restore import RestoreTransaction
from mnemosyned.storage.common.rows import (
    EXPORTED_EPISODE,
    exported_episode_from,
    instant,
)
from mnemosyned.storage.common.session import (
    CommonSession,
    EngineSession,
    Row,
    Transactional,
    writes,
)
from mnemosyned.storage.common.surroundings import saved_sighting
from mnemosyned.storage.common.tables import (
    EXPORTED_TABLES,
    LEARNINGS,
    LOG,
    MOVED_TABLES,
)

_ROLLUPS = (
    "FROM episode AS e WHERE e.owner = %(owner)s AND e.level > 0 "
    "AND (%(since)s::timestamptz IS NULL OR e.covers_until >= %(since)s) "
    "AND (%(until)s::timestamptz IS NULL OR e.covers_from < %(until)s)"
)


def export_condition(chosen: MemoryFilter, alias: str) -> str:
    """Return the SQL condition for the rows of table `alias` that an export filter selects."""
    when = f"{alias}.created_at"
    conditions = [
        *column_conditions(chosen.columns, f"coalesce({alias}.{{}}, '')"),
        *tag_conditions(chosen.tags, f"{alias}.seq"),
        *time_conditions(chosen, first=when, last=when),
    ]
    return f"1 = 1{join_conditions(conditions).text}"


class ExportSnapshot(ABC):
    """The records of one snapshot, each part read as it is asked for; an engine adds memories."""

    def __init__(self, session: CommonSession, chosen: MemoryFilter) -> None:
        self._session = session
        self._chosen = chosen
        self._values: dict[str, object] = {
            **{column: list(values) for column, values in chosen.columns.items()},
            "tags": list(chosen.tags),
            "since": chosen.since,
            "until": chosen.until,
        }

    def _stream(self, statement: str) -> Iterator[Row]:
        """Run an SQL statement with the values of the export filter; yield its rows in portions."""
        return self._session.stream(statement, **self._values)

    def records(self) -> Iterator[Record]:
        """Yield the records that the filter selects, one kind after the other."""
        yield from self._episodes()
        if self._chosen.is_set:
            yield from self._loose_originals()
        yield from self._working()
        if not (self._chosen.columns or self._chosen.tags):
            yield from self._rollups()
        yield from self._supersessions()
        if not self._chosen.excludes_summaries:
            for kept in (LEARNINGS, LOG):
                rows = self._stream(
                    f"SELECT {kept.columns} FROM {kept.name} AS r WHERE r.owner = %(owner)s "
                    f"AND {export_condition(self._chosen, 'r')} ORDER BY r.{kept.order}"
                )
                yield from map(kept.read, rows)
        if not self._chosen.is_set:
            yield from self._compactions()
            for table in EXPORTED_TABLES:
                yield from table.stream(self._session)

    def all_records(self) -> Iterator[AnyRecord]:
        """Yield all records of an export, then the records that only a move to a new store has."""
        yield from self.records()
        session = self._session
        yield from recoverable_records(session)
        yield from read_injections(session, "ORDER BY id")
        for table in MOVED_TABLES:
            yield from table.stream(session)
        for id, model, digest, vector in session.stream(self._vectors):
            yield KeptVector(
                memory=id, model=model, digest=digest, vector=bytes(vector)
            )
        if sighting := saved_sighting(session):
            yield sighting

    @abstractmethod
    def count_expected(self) -> dict[str, int]:
        """Return the number of exported memories as `memory`, and of all episodes as `episode`."""

    @abstractmethod
    def _episodes(self) -> Iterator[Record]:
        """Yield each episode whose originals are all exported, followed by its originals."""

    @abstractmethod
    def _loose_originals(self) -> Iterator[Record]:
        """Yield exported originals, without their episode, of episodes that are not exported whole."""

    @abstractmethod
    def _working(self) -> Iterator[Record]:
        """Yield the exported working memories, in the order they were stored."""

    @abstractmethod
    def _supersessions(self) -> Iterator[Record]:
        """Yield a link from each exported superseded memory to its successor, exported or not."""

    def _rollups(self) -> Iterator[Record]:
        """Yield the exported summaries of days, weeks and months, each after its members."""
        # Two streams in the same order, so that a summary costs no round trip.
        below = self._stream(
            "SELECT r.seq, c.id FROM (SELECT e.seq, e.id, e.level "
            f"{_ROLLUPS}) AS r JOIN episode AS c ON c.owner = %(owner)s AND c.parent_id = r.id "
            "ORDER BY r.level, r.seq, c.seq"
        )
        groups = groupby(below, key=itemgetter(0))
        group = next(groups, None)
        rows = self._stream(
            f"SELECT {EXPORTED_EPISODE} {_ROLLUPS} ORDER BY e.level, e.seq"
        )
        for row in rows:
            members: tuple[str, ...] = ()
            if group and group[0] == row[1]:
                members = tuple(id for _, id in group[1])
                group = next(groups, None)
            yield exported_episode_from(row, summary_of=members)

    def _compactions(self) -> Iterator[Record]:
        """Yield the exported compactions with the ids of their messages, the oldest first."""
        rows = self._stream(
            "SELECT c.id, c.session_id, c.source, c.policy, c.text_hash, c.created_at, p.part "
            "FROM compaction AS c LEFT JOIN compacted AS p ON p.owner = c.owner "
            "AND p.compaction = c.id WHERE c.owner = %(owner)s "
            "ORDER BY c.created_at, c.id, p.position"
        )
        for fields, parts in groupby(rows, key=lambda row: row[:6]):
            id, session, source, policy, text_hash, created_at = fields
            yield ExportedCompaction(
                id=id,
                session=session,
                source=source,
                policy=policy,
                text_hash=text_hash,
                created_at=instant(created_at),
                parts=tuple(part for *_, part in parts if part is not None),
            )

    _vectors: str
    """Selects memory id, model, digest and vector of all vectors, in the order of the memories."""


class ExchangeStore(Transactional):
    """Everything that is kept, out of the store and in again."""

    _exporting: Callable[[EngineSession, MemoryFilter], ExportSnapshot]
    _restoring: Callable[[EngineSession, Action | None], RestoreTransaction]

    @abstractmethod
    def _snapshot(self) -> AbstractContextManager[EngineSession]:
        """Open a session that reads one snapshot for as long as the block runs."""

    @contextmanager
    def export(
        self, chosen: MemoryFilter
    ) -> Iterator[tuple[dict[str, int], Iterator[Record]]]:
        """Open a snapshot of the records that a filter selects.

        Yields the counts of memories and of summaries by kind, and an iterator that reads the
        records while the block runs. An episode comes before its originals, a roll-up after its
        members.
        """
        with self._snapshot() as session:
            exported = self._exporting(session, chosen)
            yield exported.count_expected(), exported.records()

    @contextmanager
    def everything(self) -> Iterator[tuple[dict[str, int], Iterator[AnyRecord]]]:
        """Open a snapshot of all records, including records that only a move to another store carries.

        Yields the counts by kind, and an iterator that reads the records while the block runs. The
        order is the same in every store, and the records of a move alone come last.
        """
        with self._snapshot() as session:
            exported = self._exporting(session, MemoryFilter())
            yield exported.count_expected(), exported.all_records()

    @writes
    def restore(
        self,
        session: CommonSession,
        records: Sequence[AnyRecord],
        *,
        action: Action | None = None,
    ) -> RestoreReport:
        """Store the records that are not here yet, in one transaction; count the outcomes.

        An episode is stored only with its originals in the same call; else they go to working
        memory. A roll-up is stored if all of its members are here.
        """
        return self._restoring(session, action).restore(records)
