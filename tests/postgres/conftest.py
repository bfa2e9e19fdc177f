"""Databases on a server that the tests start; without psycopg nothing here is collected."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.engines import database_of_a_test

if TYPE_CHECKING:
    from postgres.daemons import Serve, Service
    from support.postgres import Server

    from mnemosyned.storage.postgres.owners import PostgresOwners
    from mnemosyned.storage.postgres.store import PostgresStore

collect_ignore_glob = [] if find_spec("psycopg") else ["test_*.py"]


@pytest.fixture
def dsn() -> Iterator[str]:
    """A database of the present schema, with nothing in it."""
    with database_of_a_test() as dsn:
        yield dsn


@pytest.fixture
def owners(dsn: str) -> Iterator[PostgresOwners]:
    """The owners of the database, as who owns its tables."""
    from support.postgres import open_owners  # noqa: PLC0415 needs psycopg, which may be missing

    with open_owners(dsn) as owners:
        yield owners


@pytest.fixture
def store(dsn: str) -> Iterator[PostgresStore]:
    """The memory of the local owner."""
    from support.postgres import open_store  # noqa: PLC0415 needs psycopg, which may be missing

    with open_store(dsn) as opened:
        yield opened


@pytest.fixture
def served(dsn: str) -> Iterator[str]:
    """The database as the login of a daemon sees it, which owns nothing."""
    from support.postgres import MIGRATIONS, run  # noqa: PLC0415 needs psycopg, which may be missing

    from mnemosyned.storage.postgres.store import PostgresServer  # noqa: PLC0415 needs psycopg, too

    run(dsn, "CREATE ROLE serving_only LOGIN NOCREATEROLE")
    PostgresServer(dsn, migrations=MIGRATIONS).migrate(serving="serving_only")
    yield dsn.replace("postgres@", "serving_only@", 1)
    run(dsn, "DROP OWNED BY serving_only", "DROP ROLE serving_only")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server of a module, which flushes as a real one does."""
    from support.postgres import Server  # noqa: PLC0415 needs psycopg, which may be missing

    with Server() as started:
        yield started


@pytest.fixture
def serve(dsn: str, owners: PostgresOwners, tmp_path: Path) -> Serve:
    """Start daemons that serve the owners, each with a folder of its own."""
    from postgres.daemons import serve_owners  # noqa: PLC0415 needs psycopg, which may be missing

    numbers = count()

    def begin(**settings: Any) -> Any:  # noqa: ANN401 as `Serve` names it
        return serve_owners(tmp_path / f"d{next(numbers)}", dsn, owners, **settings)

    return begin


@pytest.fixture
def service(serve: Serve) -> Iterator[Service]:
    with serve() as service:
        yield service


@pytest.fixture
def anna_and_bert(owners: PostgresOwners) -> None:
    """Two owners, numbers 2 and 3."""
    for name in ("anna", "bert"):
        owners.add(name)


@pytest.fixture
def pgvector(dsn: str) -> None:
    """Skip where the server has no pgvector; in CI it has."""
    from support.postgres import rows  # noqa: PLC0415 needs psycopg, which may be missing

    found = rows(dsn, "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'")
    if not found and not os.environ.get("CI"):
        pytest.skip("NOT RUN: this server has no pgvector")
