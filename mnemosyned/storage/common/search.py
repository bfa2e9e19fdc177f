"""The parts of a search that both engines do alike: times, what is above a summary, and vectors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from mnemosyned.memory.engine_ports import (
    TEXT_CHARS_MAX,
    EmbeddingInput,
    StorageSearch,
    VectorNews,
)
from mnemosyned.memory.periods import Level
from mnemosyned.memory.values import FILTER_FIELDS, Tier, column_list
from mnemosyned.search import finding
from mnemosyned.search.query import BEGINNING, Match, Query
from mnemosyned.storage.common import listing
from mnemosyned.storage.common.session import (
    CommonSession,
    EngineSession,
    StorePart,
    instant,
    reads,
    writes,
)
from mnemosyned.storage.common.state import ancestors
from mnemosyned.text.dates.mentions import MENTION_CHARS_MAX
from mnemosyned.text.dates.questions import TimeSpan
from mnemosyned.text.languages.tables import TimeOrder

_COLUMNS = (
    f"m.importance, m.created_at, m.seq, {column_list(FILTER_FIELDS, 'm.')}, "
    f"substr(m.content, 1, {finding.COMPARED_CHARS}) AS text"
)
_FIRST_OF_EACH = (
    "SELECT importance, created_at, seq, source, text FROM (SELECT m.*, row_number() OVER "
    "(PARTITION BY m.source ORDER BY {order}, m.seq) AS place "
    "FROM ({rows}) AS m WHERE true{where}) AS numbered WHERE place <= %(most)s"
)
_FRESH = (
    f"SELECT {_COLUMNS} FROM fresh AS f JOIN memory AS m ON m.owner = f.owner AND m.seq = f.seq "
    "WHERE f.owner = %(owner)s AND f.created_at >= %(begins)s AND f.created_at {walk.compare} %(ends)s "
    "ORDER BY f.created_at {walk.direction}, f.seq {walk.direction} LIMIT %(walked)s"
)
_ARCHIVED = (
    f"SELECT {_COLUMNS} FROM (SELECT r.seq, r.covers_until FROM episode AS r "
    "WHERE r.owner = %(owner)s AND r.level = 0 AND r.covers_from {walk.compare} %(ends)s "
    "ORDER BY r.covers_from {walk.episodes} LIMIT %(episodes)s) AS e "
    "JOIN placed AS p ON p.owner = %(owner)s AND p.episode_seq = e.seq "
    "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
    "WHERE e.covers_until >= %(begins)s AND m.created_at >= %(begins)s "
    "AND m.created_at {walk.compare} %(ends)s AND m.content != '' LIMIT %(walked)s"
)


class TimeWalk(NamedTuple):
    """Parts of the SQL statement that reads the memories of a period."""

    since: datetime
    until: datetime
    compare: str
    """Comparison with the end."""
    direction: str
    """In which memories are read."""
    episodes: str
    """Direction in which episodes are read."""
    order: str
    """Order of the memories of one source."""


class CommonIndex(finding.SearchIndex):
    """The part of a `SearchIndex` that is the same in both engines."""

    _session: EngineSession

    def memories_of_time(
        self, query: Query, span: TimeSpan, *, limit: int
    ) -> Sequence[finding.TimedMemory]:
        """Return up to `limit` memories per source and tier in a time span that pass a question's filters.

        The most important come first, then the longest. In the archive, only the latest episodes that
        began before the end of the span are read.
        """
        order = "importance DESC, length(text) DESC"
        walk = TimeWalk(span.since, span.until, "<", "ASC", "DESC", order)
        return self._first_of_each_source(query, walk, limit=limit)

    def newest_or_oldest(self, query: Query) -> set[int]:
        """Return row numbers of each source's newest or oldest memories, as asked, that pass the filters."""
        direction = "ASC" if query.order is TimeOrder.EARLIEST else "DESC"
        order = f"created_at {direction}"
        walk = TimeWalk(
            BEGINNING, finding.asked_time(query), "<=", direction, direction, order
        )
        memories = self._first_of_each_source(query, walk, limit=finding.ORDERED_MAX)
        return {memory.position for memory in memories}

    def _first_of_each_source(
        self, query: Query, walk: TimeWalk, *, limit: int
    ) -> list[finding.TimedMemory]:
        """Return the first `limit` memories of a `walk` per source and tier that pass a question's filters."""
        narrow = listing.join_conditions(
            [
                *listing.column_conditions(query.columns),
                *listing.source_name_conditions(query.source_names, "m.source"),
                *listing.asked_conditions(query),
            ]
        )
        tables = [_FRESH] if query.tier in (None, Tier.WORKING) else []
        if query.tier is not Tier.WORKING:
            tables.append(_ARCHIVED)
        return [
            finding.TimedMemory(importance, instant(created_at), *others)
            for table in tables
            for importance, created_at, *others in self._session.execute(
                _FIRST_OF_EACH.format(
                    order=walk.order, rows=table.format(walk=walk), where=narrow.text
                ),
                begins=walk.since,
                ends=walk.until,
                walked=finding.WALKED_MAX,
                episodes=finding.EPISODES_MAX,
                most=limit,
                **narrow.values,
            ).fetchall()
        ]

    def read_beginnings(
        self, positions: Collection[int]
    ) -> Iterator[tuple[int, datetime, str]]:
        """Yield the row number, time and first `MENTION_CHARS_MAX` characters of each memory."""
        for table in self._session.memory_tables:
            for position, created_at, text in self._session.execute(
                f"SELECT seq, created_at, substr(content, 1, {MENTION_CHARS_MAX}) FROM {table} "
                "WHERE owner = %(owner)s AND seq = ANY(%(positions)s::bigint[])",
                positions=sorted(positions),
            ).fetchall():
                yield position, instant(created_at), text

    def summary_of_period(self, level: Level, begins: datetime) -> int | None:
        """Return the row number of the summary of the period from `begins`; None if missing or stale."""
        seq: int | None = self._session.select_value(
            "episode", "seq", "AND NOT stale", level=int(level), period_from=begins
        )
        return seq

    def rollup_parents(self, episodes: Collection[int]) -> dict[int, int]:
        """Return {row number: parent's row number} for these summaries and all roll-ups above them."""
        return ancestors(self._session, episodes)


_OF_MODEL = "SELECT memory_seq, vector FROM embedding WHERE owner = %(owner)s AND model = %(model)s"


class VectorStore(StorePart):
    """Keeps the vectors of memories, addressed by row number. Safe from any thread.

    All methods raise `StorageFailed` if the storage fails.
    """

    @abstractmethod
    def register_model(self, name: str, identity: str) -> int:
        """Return the number of the model with the fingerprint `identity`; assign one at the first use."""

    @reads
    def other_model(self, session: CommonSession, model: int) -> str:
        """Return the name of a model with stored vectors that is not `model`; '' if there is none."""
        names = session.column(
            "SELECT m.name FROM embedding_model AS m WHERE m.owner = %(owner)s "
            "AND m.number != %(model)s AND EXISTS (SELECT 1 FROM embedding AS v "
            "WHERE v.owner = %(owner)s AND v.model = m.number) LIMIT 1",
            model=model,
        )
        return next(iter(names), "")

    @reads
    def without_vector(
        self, session: CommonSession, model: int, *, after: int, before: int, limit: int
    ) -> list[EmbeddingInput]:
        """Return up to `limit` memories that have a text but no vector of a model, newest first.

        Row numbers are above `after` and below `before`.
        """
        rows = [
            EmbeddingInput._make(row)
            for table in session.memory_tables
            for row in session.execute(
                f"SELECT m.seq, m.role, substr(m.content, 1, {TEXT_CHARS_MAX}) "
                f"FROM {table} AS m WHERE m.owner = %(owner)s "
                "AND m.seq > %(after)s AND m.seq < %(before)s AND m.content != '' "
                "AND NOT EXISTS (SELECT 1 FROM embedding AS v WHERE v.owner = %(owner)s "
                "AND v.memory_seq = m.seq AND v.model = %(model)s) "
                "ORDER BY m.seq DESC LIMIT %(limit)s",
                model=model,
                after=after,
                before=before,
                limit=limit,
            )
        ]
        return sorted(rows, reverse=True)[:limit]

    @abstractmethod
    def store_vectors(self, model: int, vectors: Mapping[int, bytes]) -> list[int]:
        """Store vectors by row number of memories that still have a text; return the stored row numbers."""

    def news(self, model: int, *, since: int | None, limit: int) -> VectorNews | None:  # noqa: ARG002
        """Return up to `limit` vectors of a model that were stored after version number `since`.

        Without `since`, return only the present version number. Return None if no other process can store
        vectors in this database.
        """
        return None

    @abstractmethod
    def candidates(self, query: Query, positions: Sequence[int]) -> list[Match]:
        """Return the memories at these row numbers that pass a query's filters, with score 0."""

    def search(
        self,
        model: int,  # noqa: ARG002
        *,
        limit_s: float | None = None,  # noqa: ARG002
    ) -> StorageSearch | None:
        """Return an object that compares vectors of a model inside the storage; None if the storage cannot.

        Without one, each process compares vectors itself. `limit_s` is the time limit of each comparison in
        seconds; None for no limit.
        """
        return None

    @writes
    def drop_vectors(self, session: CommonSession, positions: Sequence[int]) -> None:
        """Delete the vectors of the memories at these row numbers, to be embedded again."""
        session.delete("embedding", memory_seq=positions)
        if positions:
            session.requeue_embedding(positions)

    @reads
    def newest_position(self, session: CommonSession) -> int:
        """Return the highest row number of a memory; 0 if there is none."""
        return session.newest_memory()

    @reads
    def positions_of(
        self, session: CommonSession, ids: Sequence[str]
    ) -> dict[str, int]:
        """Return the row numbers of the memories with these ids, by id; unknown ids are left out."""
        return {id: seq for id, (seq, _) in session.positions_of(ids).items()}

    @reads
    def vectors(
        self, session: CommonSession, model: int, *, before: int, limit: int
    ) -> dict[int, bytes]:
        """Return {row number: vector} of up to `limit` memories below row number `before`, highest first."""
        rows = session.execute(
            f"{_OF_MODEL} AND memory_seq < %(before)s "
            "ORDER BY memory_seq DESC LIMIT %(limit)s",
            model=model,
            before=before,
            limit=limit,
        )
        return dict(rows.fetchall())

    @reads
    def vectors_of(
        self, session: CommonSession, model: int, positions: Sequence[int]
    ) -> dict[int, bytes]:
        """Return a model's vectors of memories by row number; memories without a vector are left out."""
        rows = session.execute(
            f"{_OF_MODEL} AND memory_seq = ANY(%(positions)s::bigint[])",
            model=model,
            positions=list(positions),
        )
        return dict(rows.fetchall())

    @reads
    def embedded_positions(
        self, session: CommonSession, model: int, *, after: int, limit: int
    ) -> list[int]:
        """Return the next `limit` row numbers above `after` with a vector of a model, ascending."""
        return session.column(
            "SELECT memory_seq FROM embedding WHERE owner = %(owner)s AND model = %(model)s "
            "AND memory_seq > %(after)s ORDER BY memory_seq LIMIT %(limit)s",
            model=model,
            after=after,
            limit=limit,
        )
