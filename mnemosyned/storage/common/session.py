"""Sessions and transactions of either engine, so that tables of both have their SQL once.

Common statements are written as PostgreSQL reads them: values by name, and every table held to
`owner = %(owner)s`. The session of SQLite, whose files have one owner, translates them.
"""

from __future__ import annotations

import threading
from abc import ABC
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import datetime
from functools import wraps
from typing import (
    Any,
    ClassVar,
    Concatenate,
    Literal,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
)

from mnemosyned.errors import StorageFailed
from mnemosyned.memory import edit, forgetting
from mnemosyned.memory.values import Episode, MemoryRecord, Tier
from mnemosyned.text.details import Detail

Row = tuple[Any, ...]
EngineSession: TypeAlias = Any
"""The session of one engine, in steps that it does its own way."""
RecordNumbers = Literal["record", "log"]
"""The sequences of numbers: of the consolidation log, and of all other records but memories."""
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="StorePart")
T = TypeVar("T")

_KEPT_BY_ROLLUPS = ("id", "level", "period_from", "parent_id")
"""Columns that stay if a roll-up is written again."""

BELOW = """
    WITH RECURSIVE below (id, seq) AS (
        SELECT id, seq FROM episode WHERE owner = %(owner)s AND id = %(summary)s
        UNION ALL
        SELECT e.id, e.seq FROM below
        JOIN episode AS e ON e.owner = %(owner)s AND e.parent_id = below.id
    )
"""
"""A summary and all summaries under it; `summary` is its id.

SQLite takes the summaries of a recursion to be many: its statements CROSS JOIN the originals to them,
which keeps it from reading a whole table first.
"""
DETAILED_MAX = 500
"""Episodes below a roll-up whose exact values are read: a month of a million has 20,000 values."""
FIRST_BELOW = (
    "(SELECT e.seq FROM below CROSS JOIN episode AS e WHERE e.owner = %(owner)s "
    "AND e.seq = below.seq AND e.level = 0 "
    f"ORDER BY e.covers_from, e.seq LIMIT {DETAILED_MAX}) AS below"
)
"""The first episodes of `BELOW`."""


ORIGINALS_BELOW = (
    f"{BELOW} SELECT m.{{0}} FROM below CROSS JOIN placed AS p "
    "JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
    "WHERE p.owner = %(owner)s AND p.episode_seq = below.seq ORDER BY {1}"
)
"""Formats the selection of a column of all originals `m` under `summary`, in an order."""


class Result(Protocol):
    """The result of a statement: the part of a driver's cursor that is used here."""

    @property
    def rowcount(self) -> int:
        """The number of rows that the statement changed."""

    def fetchone(self) -> Row | None:
        """Return the next row; None if there is none left."""

    def fetchall(self) -> list[Row]:
        """Return all rows that are left."""

    def __iter__(self) -> Iterator[Row]: ...


DELETED_AT_ONCE = 10_000
"""Surplus rows that one statement deletes."""
UNLESS_KNOWN = "ON CONFLICT DO NOTHING"


def replace_by(key: str, columns: Iterable[str]) -> str:
    """Return the conflict clause that replaces `columns` of a stored row if a new row has its `key`."""
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns)
    return f"ON CONFLICT (owner, {key}) DO UPDATE SET {changes}"


def instant(value: datetime | str) -> datetime:
    """Return a stored time as a `datetime`: SQLite has ISO texts, PostgreSQL `datetime` objects."""
    return value if isinstance(value, datetime) else datetime.fromisoformat(value)


def optional_instant(value: datetime | str | None) -> datetime | None:
    """Return a stored time, an ISO text or a `datetime`, as a `datetime`; None for None."""
    return instant(value) if value else None


def episode_changes(values: dict[str, Any], *, is_rollup: bool) -> dict[str, Any]:
    """Return the columns to update in a rewritten summary; a roll-up keeps its id, period and parent."""
    if not is_rollup:
        return values
    changes = {key: values[key] for key in values if key not in _KEPT_BY_ROLLUPS}
    return changes | {"stale": False}


def _equalities(values: Mapping[str, object]) -> tuple[str, dict[str, object]]:
    """Return the SQL conditions, each after an AND, for rows with these values by column; and bind values."""
    condition, bound = "", dict[str, object]()
    for name, value in values.items():
        if isinstance(value, Iterable) and not isinstance(value, str | bytes):
            bound[name] = list(value)
            condition += f" AND {name} = ANY(%({name})s)"
        else:
            bound[name] = value
            condition += f" AND {name} = %({name})s"
    return condition, bound


def _insert_statement(table: str, names: Iterable[str], conflict: str) -> str:
    """Return the INSERT statement for a row with these columns, with a bind value named after each column."""
    quoted = ", ".join(f'"{name}"' for name in names)
    marks = ", ".join(f"%({name})s" for name in names)
    return (
        f"INSERT INTO {table} (owner, {quoted}) VALUES (%(owner)s, {marks}) {conflict}"
    )


class CommonSession(Protocol):
    """Statements within one transaction about one owner, and look-ups of memories.

    Values may be instants and lists: `= ANY(%(ids)s::text[])` compares with each item of a list.
    """

    memory_tables: ClassVar[tuple[str, ...]]
    """The tables with the fields of memories, that of working memory first."""
    of_ids: ClassVar[str]
    """Condition on the table alias `m` for memories with one of the ids in the list `ids`."""

    has_session: ClassVar[str]
    """Condition for an agent's session `s` of which there are memories."""

    def lock(self) -> None:
        """Keep other processes from changing the owner's data in this transaction; by default do nothing."""
        return

    def execute(self, sql: str, /, **values: object) -> Result:
        """Run an SQL statement with values bound by name, and return its result."""

    def execute_many(self, sql: str, rows: Iterable[Mapping[str, object]], /) -> int:
        """Run an SQL statement once for each row of values; return the number of changed rows."""

    def scalar(self, sql: str, /, **values: object) -> Any:  # noqa: ANN401 any column
        """Run an SQL statement, and return the first column of its first row, or None."""
        row = self.execute(sql, **values).fetchone()
        return row[0] if row else None

    def column(self, sql: str, /, **values: object) -> list[Any]:
        """Run an SQL statement, and return the only column of its rows."""
        return [value for (value,) in self.execute(sql, **values).fetchall()]

    def stream(self, sql: str, /, **values: object) -> Iterator[Row]:
        """Run an SQL statement and yield its rows, fetched in portions."""
        return iter(self.execute(sql, **values))

    def select(
        self, table: str, columns: str, clauses: str = "", /, **where: object
    ) -> Result:
        """Return columns of the rows with the values `where`; SQL `clauses` follow the conditions.

        A collection as a value selects rows with any of its items, here and in the other methods.
        """
        condition, values = _equalities(where)
        return self.execute(
            f"SELECT {columns} FROM {table} WHERE owner = %(owner)s{condition} {clauses}",
            **values,
        )

    def select_column(
        self, table: str, column: str, clauses: str = "", /, **where: object
    ) -> list[Any]:
        """Return one column of the rows that `select` finds."""
        rows = self.select(table, column, clauses, **where).fetchall()
        return [value for (value,) in rows]

    def select_value(
        self, table: str, column: str, clauses: str = "", /, **where: object
    ) -> Any:  # noqa: ANN401 any column
        """Return one column of the first row that `select` finds, or None."""
        row = self.select(table, column, clauses, **where).fetchone()
        return row[0] if row else None

    def delete(self, table: str, clauses: str = "", /, **where: object) -> Result:
        """Delete the rows with the values `where`; SQL `clauses` follow the conditions."""
        condition, values = _equalities(where)
        return self.execute(
            f"DELETE FROM {table} WHERE owner = %(owner)s{condition} {clauses}",
            **values,
        )

    def update(
        self,
        table: str,
        changes: Mapping[str, object],
        clauses: str = "",
        /,
        **where: object,
    ) -> Result:
        """Set columns of the rows with the values `where`; SQL `clauses` follow the conditions."""
        condition, values = _equalities(where)
        assigned = ", ".join(f"{name} = %(new_{name})s" for name in changes)
        values |= {f"new_{name}": value for name, value in changes.items()}
        return self.execute(
            f"UPDATE {table} SET {assigned} "
            f"WHERE owner = %(owner)s{condition} {clauses}",
            **values,
        )

    def keep_newest(
        self, table: str, key: str, order: str, most: int, /, **where: object
    ) -> None:
        """Delete rows with the values `where`, except the `most` with the highest values of the SQL `order`.

        One call deletes `DELETED_AT_ONCE` rows at most. `key` is an SQL expression with a different value in
        each of these rows.
        """
        condition, values = _equalities(where)
        rows = f"FROM {table} WHERE owner = %(owner)s{condition}"
        self.execute(
            f"DELETE {rows} AND {key} IN (SELECT {key} {rows} "
            f"ORDER BY {order} DESC LIMIT {DELETED_AT_ONCE} OFFSET %(most)s)",
            most=most,
            **values,
        )

    def insert(self, table: str, conflict: str = "", /, **values: object) -> Result:
        """Insert a row; `conflict` is an SQL clause for a key that is stored already."""
        return self.execute(_insert_statement(table, values, conflict), **values)

    def insert_each(
        self, table: str, rows: Sequence[Mapping[str, object]], conflict: str = "", /
    ) -> int:
        """Insert rows of the same columns, if any; return how many were inserted or changed."""
        if not rows:
            return 0
        return self.execute_many(_insert_statement(table, rows[0], conflict), rows)

    def new_number(self, kind: RecordNumbers = "record", /) -> int | None:  # noqa: ARG002
        """Return the number for a new row; None, the default, if the table assigns it."""
        return None

    def number_rows_above(self, kind: RecordNumbers, upto: int, /) -> None:  # noqa: ARG002
        """Make sure that new rows of a kind get numbers above `upto`, an imported row's number.

        By default do nothing, as tables that number their rows know the numbers.
        """
        return

    def position_of(self, id: str) -> edit.Position | None:
        """Return row numbers of a memory and of its episode, if any; None for an unknown id."""
        return self.positions_of([id]).get(id)

    def positions_of(self, ids: Sequence[str]) -> dict[str, edit.Position]:
        """Return row numbers of existing memories and of their episodes, if any, by id."""

    def newest_memory(self) -> int:
        """Return the highest row number of a memory; 0 if there is none."""
        newest = "coalesce(max(seq), 0)"
        return max(
            int(self.select_value(table, newest)) for table in self.memory_tables
        )

    def known_records(self, ids: Sequence[str]) -> dict[str, forgetting.Known]:
        """Return text, time and text hash of stored memories and episodes by id; an episode's text is None."""
        if not ids:
            return {}
        rows = self.execute(
            " UNION ALL ".join(
                f"SELECT id, {text}, created_at, {said} FROM {table} "
                "WHERE owner = %(owner)s AND id = ANY(%(ids)s)"
                for text, said, table in (
                    *(("content", "content_hash", each) for each in self.memory_tables),
                    ("NULL", "NULL", "episode"),
                )
            ),
            ids=list(ids),
        )
        return {id: (text, instant(at), said) for id, text, at, said in rows}

    def successor_of(self, seq: int) -> edit.Position | None:
        """Return row numbers of a memory's successor and its episode; None if it is not superseded."""
        row = self.execute(
            "SELECT s.superseded_by, p.episode_seq FROM memory_state AS s "
            "LEFT JOIN placed AS p ON p.owner = s.owner AND p.seq = s.superseded_by "
            "WHERE s.owner = %(owner)s AND s.memory_seq = %(seq)s "
            "AND s.superseded_by IS NOT NULL",
            seq=seq,
        ).fetchone()
        return (row[0], row[1]) if row else None

    def has_pruned(self, episode: int) -> bool:
        """Return whether the text of any original in the episode at this row number was pruned."""
        found = self.scalar(
            "SELECT 1 FROM placed AS p JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
            "WHERE p.owner = %(owner)s AND p.episode_seq = %(episode)s AND m.content = '' LIMIT 1",
            episode=episode,
        )
        return found is not None

    def memories(self, ids: Sequence[str]) -> dict[str, MemoryRecord]:
        """Return the memories of both tiers with these ids, by id, oldest first in each tier."""

    def memories_at(self, seqs: Collection[int]) -> dict[int, MemoryRecord]:
        """Return {row number: memory} for the memories of both tiers at these row numbers."""

    def original_ids(self, episode: int) -> list[str]:
        """Return the ids of the originals of the episode at this row number, the oldest first."""
        return self.column(
            "SELECT m.id FROM placed AS p JOIN memory AS m ON m.owner = p.owner AND m.seq = p.seq "
            "WHERE p.owner = %(owner)s AND p.episode_seq = %(episode)s "
            "ORDER BY m.created_at, m.seq",
            episode=episode,
        )

    def details_under(self, summary: str, *, secrets: bool = False) -> Iterator[Detail]:
        """Yield the exact values of the originals below a summary, by its id, the oldest first.

        For a roll-up, only its first `DETAILED_MAX` episodes are read. With `secrets`, yield only the
        sensitive values, of all episodes.
        """

    def totals(self) -> dict[Tier, tuple[int, int]]:
        """Return the number of entries and of characters in each tier."""

    def insert_episode(
        self, episode: Episode, index_terms: str, *, seq: int | None = None
    ) -> int:
        """Insert a summary with its index entries, at `seq` or a new row number; return the number."""

    def write_episode(
        self,
        seq: int,
        episode: Episode,
        index_terms: str,
        *,
        is_rollup: bool = False,
    ) -> None:
        """Update the summary at a row number, with index entries and totals.

        With `is_rollup`, the summary keeps its id, period and parent, and is no longer stale.
        """

    def empty_episode(self, seq: int, *, originals: int) -> None:
        """Erase a summary's text and index terms; save the number of its `originals` if above 0."""

    def delete_episode(self, seq: int) -> None:
        """Delete the summary at this row number with its index entries."""

    def return_to_working(
        self, key: Literal["seq", "episode_seq"], value: int
    ) -> list[int]:
        """Move an original, or all of an episode, to working memory; return their row numbers.

        `key` tells whether `value` is the row number of the original or the episode. Their exact
        values are deleted.
        """

    def share_secret_marks(self, seq: int, episode: int) -> None:
        """Mark the secrets of an original, which is about to leave its episode, in the other originals."""

    def refresh_details(self, seq: int, episode: int, memory: MemoryRecord) -> None:
        """Extract an edited original's exact values again; mark old and new secrets in the other originals."""

    def write_edited_text(
        self,
        seq: int,
        episode: int | None,
        *,
        before: MemoryRecord,
        after: MemoryRecord,
    ) -> None:
        """Write text and index entries of an edited memory, and delete its vector.

        `episode` is the row number of its episode; None in working memory.
        """

    def erase_texts(self, originals: Sequence[tuple[int, str, str]]) -> None:
        """Erase text, metadata and index entries of originals, each a row number, text and speaker."""

    def memory_table(self, episode: int | None) -> str:
        """Return the table with the memories of working memory, or of an episode at a row number."""
        return self.memory_tables[0 if episode is None else -1]

    def requeue_embedding(self, positions: Sequence[int], /) -> None:  # noqa: ARG002
        """Have memories embedded again; do nothing if the engine itself finds memories without a vector."""
        return


class Engine(Protocol):
    """Runs transactions about one owner's memory."""

    def reading(self) -> AbstractContextManager[Any]:
        """Lend a session that sees one snapshot while the block runs."""

    def streaming(self) -> AbstractContextManager[Any]:
        """Lend a session as `reading` does, to a block that may take long between two statements."""

    def write(self, work: Callable[[Any], R], *, durable: bool = True) -> R:
        """Call `work` with a session in a write transaction; return the result of `work`.

        If `durable`, return only after the changes are on disk.
        """


class SharedSnapshot(threading.local):
    """The snapshot that all reads of a thread share while a block runs, if any."""

    owner: int | None = None
    """The owner whose data it has; None without a block."""
    session: Any = None
    """Its session, once one read has begun."""
    _stack: ExitStack

    @contextmanager
    def sharing(self, owner: int = 0) -> Iterator[None]:
        """Let all reads of an owner (0: of a file) by this thread share one snapshot while the block runs."""
        if self.owner is not None:
            yield
            return
        with ExitStack() as self._stack:
            self.owner, self.session = owner, None
            try:
                yield
            finally:
                self.owner = None

    @contextmanager
    def lend(
        self, open_snapshot: Callable[[], AbstractContextManager[T]]
    ) -> Iterator[T]:
        """Lend the session that the thread shares, opened at its first use; if the block fails, close it."""
        if self.session is None:
            self.session = self._stack.enter_context(open_snapshot())
        try:
            yield self.session
        except BaseException:
            # The database may have ended the transaction.
            self.session = None
            with suppress(StorageFailed):
                self._stack.close()
            raise


class StorePart(ABC):  # noqa: B024 its subclasses have abstract methods
    """A part of a store, whose methods run in a transaction of their own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine


Method = Callable[Concatenate[S, Any, P], R]
"""A method that takes a session after `self`; decorated, it begins a transaction for each call."""


def reads(method: Method[S, P, R]) -> Callable[Concatenate[S, P], R]:
    """Decorate a method to run with a session that sees one snapshot."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._engine.reading() as session:
            return method(self, session, *args, **kwargs)

    return call


def _writes(
    *, durable: bool
) -> Callable[[Method[S, P, R]], Callable[Concatenate[S, P], R]]:
    """Return a decorator that makes a method run in a write transaction."""

    def decorate(method: Method[S, P, R]) -> Callable[Concatenate[S, P], R]:
        @wraps(method)
        def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
            return self._engine.write(
                lambda session: method(self, session, *args, **kwargs), durable=durable
            )

        return call

    return decorate


def as_method(
    function: Callable[Concatenate[Any, P], R],
) -> Callable[Concatenate[Any, Any, P], R]:
    """Return a method that calls a function of a session, to be decorated by `reads` or `writes`."""

    @wraps(function)
    def method(_: object, session: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:  # noqa: ANN401 of either engine
        return function(session, *args, **kwargs)

    return method


writes = _writes(durable=True)
"""For write transactions, whose changes are on disk on return.

The data that they read cannot change before their end; with SQLite they may run on another caller's
thread.
"""
writes_lazily = _writes(durable=False)
"""For write transactions that return before the changes are on disk.

A power failure or crash may undo all of these changes until a later durable write is committed.
"""
