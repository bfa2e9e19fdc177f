"""The store under test on the engine that `--engine` names."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from support.stores import open_store

from mnemosyned.storage.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from support.postgres import Server

    from mnemosyned.storage.postgres.store import PostgresStore

SQLITE, POSTGRES, CITUS = "sqlite", "postgres", "citus"
ENGINES = (SQLITE, POSTGRES, CITUS)


@contextmanager
def sqlite_store(database: Path, blank: Path) -> Iterator[SqliteStore]:
    """A store in a copy of an empty file."""
    shutil.copy(blank, database)
    with open_store(database) as opened:
        yield opened


@contextmanager
def postgres_store() -> Iterator[PostgresStore]:
    """A store in a database of its own; with GUARDED=1 held to its owner by the database too."""
    # Loaded here: without psycopg the other engine is tested.
    from support.postgres import open_store as open_postgres  # noqa: PLC0415

    with (
        database_of_a_test() as dsn,
        open_postgres(dsn, guarded="GUARDED" in os.environ) as opened,
    ):
        yield opened


def is_file(store: object) -> bool:
    """Whether a store keeps its memory in a file of its own."""
    return isinstance(store, SqliteStore)


def contents(store: object) -> object:
    """All that is on disk: the bytes of the file, or the rows of every table."""
    if isinstance(store, SqliteStore):
        return store.database.read_bytes()
    # Loaded here: without psycopg the other engine is tested.
    import psycopg  # noqa: PLC0415

    dsn: str = store.pool._dsn  # type: ignore[attr-defined]  # noqa: SLF001
    with psycopg.connect(dsn) as connection:
        tables = connection.execute(
            "SELECT table_name FROM information_schema.tables "
            "WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'"
        ).fetchall()
        return {
            table: sorted(
                connection.execute(f'SELECT t::text FROM "{table}" AS t'.encode())
            )
            for (table,) in tables
        }


def new_database() -> str:
    """A database of the present schema, with nothing in it; its DSN."""
    server, template = _server()
    return server.new_database(template=template)


@contextmanager
def database_of_a_test() -> Iterator[str]:
    """A database of the present schema, dropped in the end; its DSN."""
    dsn = new_database()
    yield dsn
    _server()[0].drop_database(dsn)


@cache
def _server() -> tuple[Server, str]:
    """The server of this process, and the name of the database that others are copied from."""
    from support.postgres import (  # noqa: PLC0415
        Server,
        open_store as open_postgres,
    )

    server = Server(fsync="off")
    server.start()
    dsn = server.new_database()
    with open_postgres(dsn):
        pass
    return server, dsn.split("@/")[1].split("?")[0]
