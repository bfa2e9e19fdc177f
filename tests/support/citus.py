"""A cluster of Citus for tests: a coordinator and two nodes, where the server has the extension.

POSTGRES_BIN names the programs of such a server; packages of Debian and PyPI have none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.postgres import Server

    from mnemosyned.storage.postgres.store import PostgresStore

NODES = 3
SHARDS = 8
DATABASE = "memory"
SETTINGS = {
    "shared_preload_libraries": "citus",
    "max_prepared_transactions": "200",
    "citus.enable_statistics_collection": "off",
    "wal_level": "logical",
    "fsync": "off",
}
READS_OR_WRITES = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH|DECLARE)\b")
CURSOR = re.compile(r"DECLARE \w+ NO SCROLL CURSOR FOR ")
TASKS = re.compile(r"Task Count: (\d+)")
_owners = count(1_000)


def has_citus() -> bool:
    """Whether the server under test comes with the extension."""
    from support.postgres import programs  # noqa: PLC0415

    return any((programs().parent / "share").rglob("citus.control"))


@cache
def cluster() -> str:
    """The DSN of a distributed database with nothing in it, in this process."""
    # Loaded here: without psycopg the other engines are tested.
    from support.postgres import MIGRATIONS  # noqa: PLC0415

    from mnemosyned.storage.postgres.store import (  # noqa: PLC0415
        PostgresServer,
    )

    dsn = database_of_nodes(DATABASE)
    PostgresServer(dsn, MIGRATIONS).distribute(SHARDS)
    return dsn


def database_of_nodes(name: str) -> str:
    """The DSN of a new database at the coordinator, which knows the other nodes."""
    import psycopg  # noqa: PLC0415

    first, *others = nodes()
    for node in nodes():
        with psycopg.connect(node.dsn("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        with psycopg.connect(node.dsn(name), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION citus")
    dsn = first.dsn(name)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "SELECT citus_set_coordinator_host(%s, 5432)", (str(first.folder),)
        )
        for node in others:
            connection.execute("SELECT citus_add_node(%s, 5432)", (str(node.folder),))
    return dsn


@cache
def nodes() -> list[Server]:
    """The servers of the cluster, the coordinator first."""
    import psycopg  # noqa: PLC0415
    from support.postgres import Server  # noqa: PLC0415

    servers = [Server(**SETTINGS) for _ in range(NODES)]
    for node in servers:
        node.start()
        with psycopg.connect(node.dsn("postgres"), autocommit=True) as connection:
            # A node reaches itself by its socket as well.
            setting = f"ALTER SYSTEM SET citus.local_hostname = '{node.folder}'"
            connection.execute(setting.encode())
            connection.execute("SELECT pg_reload_conf()")
    return servers


@contextmanager
def citus_store() -> Iterator[PostgresStore]:
    """A store of an owner of its own, all in one cluster; each statement has to meet one shard."""
    from support.postgres import open_store  # noqa: PLC0415

    owner = next(_owners)
    with (
        open_store(cluster(), owner=owner, guarded=True) as store,
        meeting_one_shard() as wrong,
    ):
        yield store
    assert wrong == [], wrong[0]


@contextmanager
def meeting_one_shard() -> Iterator[list[str]]:
    """Have each statement explained before it runs; those that more than one shard would run."""
    from psycopg import ClientCursor  # noqa: PLC0415

    from mnemosyned.storage.postgres.session import (  # noqa: PLC0415
        PostgresSession,
    )

    send = PostgresSession._send  # noqa: SLF001
    wrong: list[str] = []

    def explained(
        self: PostgresSession,
        sql: str,
        values: Mapping[str, object],
        *,
        prepare: bool | None = None,
    ) -> object:
        if READS_OR_WRITES.match(sql):
            connection = self._connection
            text = ClientCursor(connection).mogrify(
                CURSOR.sub("", sql).encode(), {"owner": self.owner, **values}
            )
            rows = connection.execute(f"EXPLAIN {text}".encode(), prepare=False)
            plan = "\n".join(line for (line,) in rows.fetchall())
            if "coordinator" in plan or any(int(n) > 1 for n in TASKS.findall(plan)):
                wrong.append(f"{sql}\n{plan}")
        return send(self, sql, values, prepare=prepare)

    PostgresSession._send = explained  # type: ignore[assignment,method-assign] # noqa: SLF001
    try:
        yield wrong
    finally:
        PostgresSession._send = send  # type: ignore[method-assign] # noqa: SLF001
