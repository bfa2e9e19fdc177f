"""A pytest plugin: runs the tests that open a database on the SQLite of pysqlite3-binary."""

import functools
import sys

import pysqlite3
import pysqlite3.dbapi2
import pytest

OPENERS = {
    "sqlite3",
    "Memory",
    "AsyncMemory",
    "bench",
    "SqliteStore",
    "open_memory",
    "open_store",
}
"""What a test module imports, one of them at least, to open a database itself."""
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


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave out the tests that open no database: they would say the same again."""
    chosen: dict[bool, list[pytest.Item]] = {True: [], False: []}
    for item in items:
        chosen[_opens_database(item)].append(item)
    config.hook.pytest_deselected(items=chosen[False])
    items[:] = chosen[True]


def _opens_database(item: pytest.Item) -> bool:
    fixtures = {"store", "database"} & set(getattr(item, "fixturenames", ()))
    return bool(fixtures or OPENERS & vars(item.module).keys())  # type: ignore[attr-defined]
