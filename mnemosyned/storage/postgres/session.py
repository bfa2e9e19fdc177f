"""One transaction about one owner: named values in its statements, the owner's first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, cast

import psycopg

from mnemosyned.fairness import give_way

Row = tuple[Any, ...]
Statement = tuple[str, Mapping[str, object]]
"""A statement and its values by name."""
_UNSTORABLE = re.compile("[\\x00\ud800-\udfff]")
LOCKED = "last_memory, working_count"
_LOCK = f"SELECT {LOCKED} FROM owner WHERE owner = %(owner)s FOR UPDATE"
ROWS_AT_ONCE = 200
"""Rows of a stream that are fetched together, and held in memory."""


class Result(Protocol):
    """The result of a statement: the part of psycopg's cursor that is used here."""

    rowcount: int

    def fetchone(self) -> Row | None:
        """Return the next row."""
        ...

    def fetchall(self) -> list[Row]:
        """Return all rows that are left."""
        ...

    def __iter__(self) -> Iterator[Row]: ...


class Session:
    """Statements within a transaction; each binds `%(owner)s` beside its own values."""

    __slots__ = (
        "_connection",
        "_is_locked",
        "_lock",
        "_locked",
        "_streams",
        "first",
        "grown",
        "has_citus",
        "numbered",
        "owner",
    )

    def __init__(
        self,
        connection: psycopg.Connection[Row],
        owner: int,
        *,
        has_citus: bool = False,
    ) -> None:
        self._connection = connection
        self.owner = owner
        self.has_citus = has_citus
        """Whether nodes may hold the rows: a statement that writes to several tables asks all of them."""
        self.numbered = 0
        """Memories that this transaction has given new numbers."""
        self.grown = 0
        """Memories that it has added to a table, which statistics do not know."""
        self._is_locked = False
        self._lock: Result | None = None
        self._locked: Row | None = None
        self._streams = 0
        self.first: Result | None = None
        """The result of the statement that went with the transaction's beginning."""

    def lock(self) -> None:
        """Lock the owner's row, unless this transaction has: nobody else changes what is read then."""
        if not self._is_locked:
            self.lock_by(_LOCK)

    def lock_by(self, sql: str, /, **values: object) -> None:
        """Run a statement that locks the owner's row and returns `LOCKED`, as it was before it.

        What the first of them returned is read when somebody asks for it.
        """
        result = self.execute(sql, **values)
        if not self._is_locked:
            self._lock, self._is_locked = result, True

    @property
    def locked(self) -> Row | None:
        """`LOCKED` of the owner's row as it was found; None where there is none, or no lock."""
        if self._lock:
            self._locked, self._lock = self._lock.fetchone(), None
        return self._locked

    def execute(self, sql: str, /, **values: object) -> Result:
        """Run a statement, with its values by name."""
        return self._send(sql, values)

    def execute_once(self, sql: str, /) -> None:
        """Run a statement that is hardly the same again: it takes no prepared one's place."""
        self._send(sql, {}, prepare=False)

    def stream(self, sql: str, /, **values: object) -> Iterator[Row]:
        """Run a statement whose rows are fetched part by part, while others run in between.

        Whoever stops early leaves nothing to close: the transaction's end does.
        """
        self._streams += 1
        name = f"stream_{self._streams}"
        # Citus chooses a cursor's node before values are bound.
        sql = sql.replace("%(owner)s", f"{self.owner:d}")
        # Not prepared: the same words mean other rows in the next transaction.
        self._send(f"DECLARE {name} NO SCROLL CURSOR FOR {sql}", values, prepare=False)
        fetch = f"FETCH {ROWS_AT_ONCE} FROM {name}".encode()
        while True:  # ends, as the rows do
            rows = self._connection.execute(fetch, prepare=False).fetchall()
            yield from rows
            if len(rows) < ROWS_AT_ONCE:
                break
        self._connection.execute(f"CLOSE {name}".encode(), prepare=False)

    def _send(
        self, sql: str, values: Mapping[str, object], *, prepare: bool | None = None
    ) -> Result:
        give_way()
        text, bound = sql.encode(), {"owner": self.owner, **values}
        try:
            result = self._connection.execute(text, bound, prepare=prepare)
        except (psycopg.DataError, UnicodeEncodeError):
            # What the server's text cannot hold was noticed here: nothing was sent yet.
            storable = {name: _storable(value) for name, value in bound.items()}
            if storable == bound:
                raise
            result = self._connection.execute(text, storable, prepare=prepare)
        return cast("Result", result)

    def execute_many(self, sql: str, rows: Iterable[Mapping[str, object]]) -> None:
        """Run a statement once for each row of values, in few round trips."""
        with self._connection.cursor() as cursor:
            cursor.executemany(
                sql.encode(), [{"owner": self.owner, **row} for row in rows]
            )

    def scalar(self, sql: str, /, **values: object) -> Any:  # noqa: ANN401 any column
        """Run a statement, and return the first column of its first row; None without a row."""
        row = self.execute(sql, **values).fetchone()
        return row[0] if row else None


def _storable(value: object) -> object:
    """A value with U+FFFD in place of NUL and of half a character.

    No text that is kept has those, but one that is asked for may: it is not found.
    """
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    return list(map(_storable, value)) if isinstance(value, list) else value
