"""A pytest plugin: runs the suite on the SQLite that the package pysqlite3-binary brings."""

import sys

import pysqlite3
import pysqlite3.dbapi2

sys.modules["sqlite3"] = pysqlite3
sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2


def pytest_report_header() -> str:
    return f"SQLite {pysqlite3.sqlite_version}"
