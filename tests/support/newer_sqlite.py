"""A pytest plugin: tests that open a database in their own process do so on the SQLite of pysqlite3-binary."""

import functools
import sys

import pysqlite3
import pysqlite3.dbapi2

Row = tuple[object, ...]
LENGTH = 0
"""The number of SQLite's limit on the bytes of a value."""


class LimitedConnection(pysqlite3.Connection):  # type: ignore[misc]
    """A connection with the limit on values that the standard library can set, and the package not.

    A longer value is refused once it is read, with the error that SQLite raises.
    """

    def setlimit(self, category: int, limit: int) -> None:
        """Refuse rows with a value of more bytes."""
        assert category == LENGTH, "no other limit is known here"

        def within_limit(_cursor: object, row: Row) -> Row:
            if any(_size(value) > limit for value in row):
                raise pysqlite3.DataError("string or blob too big")
            return row

        self.row_factory = within_limit


def _size(value: object) -> int:
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogatepass"))
    return len(value) if isinstance(value, bytes) else 0


pysqlite3.SQLITE_LIMIT_LENGTH = LENGTH
pysqlite3.connect = functools.partial(pysqlite3.connect, factory=LimitedConnection)
sys.modules["sqlite3"] = pysqlite3
sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2


def pytest_report_header() -> str:
    return f"SQLite {pysqlite3.sqlite_version}"
