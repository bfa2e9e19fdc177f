"""One transaction about one owner: the values of its statements have names, the owner's first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, cast

import psycopg

Row = tuple[Any, ...]


class Result(Protocol):
    """What a statement gave: the part of psycopg's cursor that is used here."""

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

    __slots__ = ("_connection", "owner")

    def __init__(self, connection: psycopg.Connection[Row], owner: int) -> None:
        self._connection = connection
        self.owner = owner

    def execute(self, sql: str, /, **values: object) -> Result:
        """Run a statement, with its values by name."""
        bound = {"owner": self.owner, **values}
        return cast("Result", self._connection.execute(sql.encode(), bound))

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
