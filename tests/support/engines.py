"""The store under test on the engine that `--engine` names."""

from __future__ import annotations

import atexit
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from support.stores import open_store

from mnemosyned.memory.engine_ports import LOCAL_OWNER
from mnemosyned.storage.sqlite import fulltext
from mnemosyned.storage.sqlite.store import SqliteStore

if TYPE_CHECKING:
    import psycopg
    from support.postgres import Server

    from mnemosyned.storage.postgres.store import PostgresStore

SQLITE, POSTGRES, CITUS = "sqlite", "postgres", "citus"
ENGINES = (SQLITE, POSTGRES, CITUS)


@contextmanager
def sqlite_store(database: Path, blank: Path) -> Iterator[SqliteStore]:
    """A store in a copy of an empty file."""
    shutil.copy(blank, database)
    with ExitStack() as stack:
        # To look for damaged indexes, of which a copy has none, is a fifth of the opening.
        with patch.object(fulltext, "heal_indexes", lambda _: []):
            opened = stack.enter_context(open_store(database))
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


class EmptiedDatabase:
    """A database of this process, which each test finds as it is after its first start.

    To make one and to open it takes 85 ms of computing; to empty it and to connect takes 10.
    """

    def __init__(self) -> None:
        # Loaded here: without psycopg the other engine is tested.
        import psycopg  # noqa: PLC0415
        from support.postgres import MIGRATIONS  # noqa: PLC0415

        from mnemosyned.storage.postgres import store  # noqa: PLC0415

        self.dsn = new_database()
        self.ready = store._prepare_database(  # noqa: SLF001 what opening a store begins with
            self.dsn, MIGRATIONS, "", owner=LOCAL_OWNER, guarded="GUARDED" in os.environ
        )
        self._connection = psycopg.connect(self.dsn, autocommit=True)
        atexit.register(self._connection.close)
        # No trigger runs, and no row needs another.
        self._connection.execute("SET session_replication_role = replica")
        first = "SELECT setval('owner_number', last_value, is_called) FROM first_number"
        self._connection.execute("CREATE TEMP TABLE first_number AS TABLE owner_number")
        self._emptying = [first]
        for table in tables_of(self._connection):
            self._emptying.append(f'DELETE FROM "{table}"')
            if self._connection.execute(f'TABLE "{table}"'.encode()).rowcount:
                copy = f'CREATE TEMP TABLE "first_{table}" AS TABLE "{table}"'
                self._connection.execute(copy.encode())
                self._emptying.append(f'INSERT INTO "{table}" TABLE "first_{table}"')
        self._schema = self._present_schema()

    def empty(self) -> bool:
        """Put all rows back; return whether the schema is still as it was."""
        self._connection.execute("; ".join(self._emptying).encode())
        return self._present_schema() == self._schema

    def drop(self) -> None:
        self._connection.close()
        _server()[0].drop_database(self.dsn)

    def _present_schema(self) -> list[object]:
        """How many entries the catalogs have, and the transaction that wrote the last of them."""
        catalogs = ("class", "constraint", "index", "policy", "proc", "trigger")
        found = " UNION ALL ".join(
            f"SELECT '{name}', count(*), max(xmin::text::bigint) FROM pg_{name}"
            for name in catalogs
        )
        return [*self._connection.execute(found.encode())]


_emptied = cache(EmptiedDatabase)


@contextmanager
def emptied_store() -> Iterator[PostgresStore]:
    """A store on the one database of the tests of this process; with GUARDED=1 as above."""
    from mnemosyned.storage.postgres.pool import Pool  # noqa: PLC0415
    from mnemosyned.storage.postgres.store import PostgresStore  # noqa: PLC0415

    database = _emptied()
    ready = database.ready
    try:
        pool = Pool(database.dsn, schema=ready.version, role=ready.role)
        with closing(pool):
            yield PostgresStore(pool, LOCAL_OWNER, ready)
    finally:
        if not database.empty():
            database.drop()
            _emptied.cache_clear()


def tables_of(connection: psycopg.Connection) -> list[str]:
    """The tables of a database."""
    found = connection.execute(
        "SELECT table_name FROM information_schema.tables "
        "WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'"
    )
    return [table for (table,) in found]


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
        return {
            table: sorted(
                connection.execute(f'SELECT t::text FROM "{table}" AS t'.encode())
            )
            for table in tables_of(connection)
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
