"""Databases on a server that the tests start; without psycopg nothing here is collected."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
from support.engines import database_of_a_test

from mnemosyned.paths import shipped

if TYPE_CHECKING:
    from mnemosyned.storage.postgres.owners import PostgresOwners

collect_ignore_glob = [] if find_spec("psycopg") else ["test_*.py"]


@pytest.fixture
def dsn() -> Iterator[str]:
    """A database of the present schema, with nothing in it."""
    with database_of_a_test() as dsn:
        yield dsn


@pytest.fixture
def owners(dsn: str) -> Iterator[PostgresOwners]:
    """The owners of the database, as who owns its tables."""
    from mnemosyned.storage.postgres.store import open_owners  # noqa: PLC0415 as above

    with open_owners(dsn, migrations=shipped("migrations") / "postgres") as owners:
        yield owners


@pytest.fixture
def anna_and_bert(owners: PostgresOwners) -> None:
    """Two owners, numbers 2 and 3."""
    for name in ("anna", "bert"):
        owners.add(name)


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
def other_dsn() -> Iterator[str]:
    """Another one."""
    with database_of_a_test() as dsn:
        yield dsn
