"""Sessions and transactions of either engine, so that tables of both have their SQL once.

Common statements are written as PostgreSQL reads them: values by name, and every table held to
`owner = %(owner)s`. The session of SQLite, whose files have one owner, translates them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from mnemosyned.memory.edit import Position
from mnemosyned.memory.values import Episode, MemoryRecord, Tier
from mnemosyned.text.details import Detail

Row = tuple[Any, ...]
EngineSession: TypeAlias = Any
"""The session of one engine, in steps that it does its own way."""
RecordNumbers = Literal["record", "log"]
"""The sequences of numbers: of the consolidation log, and of all other records but memories."""
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="Transactional")


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


class Result(Protocol):
    """The result of a statement: the part of a driver's cursor that is used here."""

    @property
    def rowcount(self) -> int:
        """The number of rows that the statement changed."""
        ...

    def fetchone(self) -> Row | None:
        """Return the next row."""
        ...

    def fetchall(self) -> list[Row]:
        """Return all rows that are left."""
        ...

    def __iter__(self) -> Iterator[Row]: ...


class CommonSession(Protocol):
    """Statements within one transaction about one owner.

    Values may be instants and lists: `= ANY(%(ids)s::text[])` compares with each item of a list.
    Its look-ups of memories are here, as the engines store these in different tables.
    """

    def execute(self, sql: str, /, **values: object) -> Result:
        """Run a statement, with its values by name."""
        ...

    def execute_many(self, sql: str, rows: Iterable[Mapping[str, object]], /) -> int:
        """Run a statement once for each row of values; return the number of changed rows."""
        ...

    def scalar(self, sql: str, /, **values: object) -> Any:  # noqa: ANN401 any column
        """Run a statement, and return the first column of its first row; None without a row."""
        ...

    def stream(self, sql: str, /, **values: object) -> Iterator[Row]:
        """Run a statement whose rows are fetched part by part."""
        ...

    def new_number(self, kind: RecordNumbers = "record", /) -> int | None:
        """Return the number of a new row; None if its table numbers its rows itself."""
        ...

    def skip_numbers(self, kind: RecordNumbers, upto: int, /) -> None:
        """Give new rows numbers above `upto`, the number of a row from elsewhere."""
        ...

    def position_of(self, id: str) -> Position | None:
        """Return the number of a memory's row, and of its episode if it is archived."""
        ...

    def positions_of(self, ids: Sequence[str]) -> dict[str, Position]:
        """Return the positions of several memories, of those that exist."""
        ...

    def id_at(self, seq: int) -> str:
        """Return the id of the memory with this number."""
        ...

    def created_at(self, seq: int) -> datetime:
        """Return when the memory with this number was created."""
        ...

    def successor_of(self, seq: int) -> Position | None:
        """Return the position of the memory that superseded another."""
        ...

    def has_pruned(self, episode: int) -> bool:
        """Return whether the words of some originals of an episode were pruned."""
        ...

    def memories(self, ids: Sequence[str]) -> dict[str, MemoryRecord]:
        """Return the memories with these ids, of either tier, the oldest first in each."""
        ...

    def memories_at(self, seqs: Collection[int]) -> dict[int, MemoryRecord]:
        """Return the memories with these numbers, of either tier."""
        ...

    def original_ids(self, episode: int) -> list[str]:
        """Return the ids of an episode's originals, the oldest first."""
        ...

    def details_under(self, summary: str) -> Iterator[Detail]:
        """Return the exact values of the originals under a summary, the oldest first."""
        ...

    def totals(self) -> dict[Tier, tuple[int, int]]:
        """Return the entries and characters of each tier."""
        ...

    def insert_episode(
        self, episode: Episode, index_terms: str, *, seq: int | None = None
    ) -> int:
        """Insert a summary, by a new number unless one is given; return its number."""
        ...

    def replace_rollup(self, seq: int, episode: Episode, index_terms: str) -> None:
        """Give the summary of a period its present text; its place in the hierarchy stays."""
        ...

    def rewrite_episode(self, seq: int, episode: Episode, index_terms: str) -> None:
        """Give a summary all values of another."""
        ...

    def empty_episode(self, seq: int, *, originals: int) -> None:
        """Remove the words of a summary, which has this many originals left."""
        ...

    def delete_episode(self, seq: int) -> None:
        """Delete a summary."""
        ...


class Transactional(ABC):
    """A part of a store, whose methods run in a transaction of their own."""

    @abstractmethod
    def _read(self, work: Callable[[Any], R]) -> R:
        """Call `work` with a session that sees one snapshot."""

    @abstractmethod
    def _write(self, work: Callable[[Any], R], *, durable: bool = True) -> R:
        """Call `work` with a session that writes; return once its changes are `durable`."""


def reads(
    method: Callable[Concatenate[S, Any, P], R],
) -> Callable[Concatenate[S, P], R]:
    """Call a method with a session that sees one snapshot."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._read(lambda session: method(self, session, *args, **kwargs))

    return call


def writes(
    method: Callable[Concatenate[S, Any, P], R],
) -> Callable[Concatenate[S, P], R]:
    """Call a method with a session that writes; return when the changes are durable.

    Nobody else changes what the method reads before its transaction has ended. SQLite may call it on
    another thread: on that of the writer who commits for several.
    """

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._write(lambda session: method(self, session, *args, **kwargs))

    return call


def writes_lazily(
    method: Callable[Concatenate[S, Any, P], R],
) -> Callable[Concatenate[S, P], R]:
    """Call a method as `writes` does, without waiting for the disk.

    A power failure or a crash of the server takes its changes back whole, unless a later write was
    durable.
    """

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._write(
            lambda session: method(self, session, *args, **kwargs), durable=False
        )

    return call
