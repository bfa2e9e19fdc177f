"""Databases on a server that the tests start; without psycopg nothing here is collected."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
from support.engines import new_database

collect_ignore_glob = [] if find_spec("psycopg") else ["test_*.py"]


@pytest.fixture
def dsn() -> str:
    """A database of the present schema, with nothing in it."""
    return new_database()


@pytest.fixture
def pgvector(dsn: str) -> None:
    """Skip where the server has no pgvector; in CI it has."""
    import psycopg  # noqa: PLC0415 as above

    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
        ).fetchone()
    if row is None and not os.environ.get("CI"):
        pytest.skip("NOT RUN: this server has no pgvector")


@pytest.fixture
def other_dsn() -> str:
    """Another one."""
    return new_database()
