"""Every statement is held to its owner by the database, too: a role, policies and views."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import psycopg
import pytest
from support.fakes import memory, remember_batch

from mnemosyned.domain.errors import NotFound, StorageFailed
from mnemosyned.domain.memory import MemoryRecord
from mnemosyned.domain.ports.store import MemoryStore
from mnemosyned.paths import shipped
from mnemosyned.storage.postgres.database.roles import REQUEST_ROLE
from mnemosyned.storage.postgres.opening import open_store
from mnemosyned.storage.postgres.store import PostgresStore
from mnemosyned.storage.postgres.tables.insert import SAID_BEFORE

pytestmark = pytest.mark.postgres
MIGRATIONS = shipped("migrations") / "postgres"
OWN, OTHER = 7, 8
UNHELD = {"schema_migration", "reindexing"}
"""Tables that are nobody's."""
OUT_OF_REACH = {"owner_token"}


def keep(store: PostgresStore, *memories: MemoryRecord) -> None:
    remember_batch(cast("MemoryStore", store), *memories)


@pytest.fixture
def two_owners(dsn: str) -> str:
    """A database with the same memory of two owners."""
    for owner in (OWN, OTHER):
        with open_store(dsn, migrations=MIGRATIONS, owner=owner, guarded=True) as store:
            keep(store, memory("same", f"the words of {owner}"))
    return dsn


@contextmanager
def as_role(dsn: str, owner: int | None = OWN) -> Iterator[psycopg.Connection[Any]]:
    """A transaction as a request has it, whatever its statements."""
    with psycopg.connect(dsn) as connection:
        connection.execute(f"SET LOCAL ROLE {REQUEST_ROLE}")
        if owner is not None:
            connection.execute(
                "SELECT set_config('mnemosyned.owner', %s, true)", [str(owner)]
            )
        yield connection
        connection.rollback()


def tables(dsn: str) -> list[str]:
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') "
            "AND relnamespace = 'public'::regnamespace ORDER BY relname"
        ).fetchall()
    return [name for (name,) in rows]


def held_tables(dsn: str) -> list[str]:
    return [name for name in tables(dsn) if name not in UNHELD | OUT_OF_REACH]


def test_every_table_has_an_owner_first_and_a_policy(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a "
            "ON a.attrelid = c.oid AND a.attname = 'owner' AND a.attnum = 1 "
            "JOIN pg_policy AS p ON p.polrelid = c.oid AND p.polcmd = '*' "
            "WHERE c.relrowsecurity AND c.relnamespace = 'public'::regnamespace"
        ).fetchall()

    assert {name for (name,) in rows} == set(tables(dsn)) - UNHELD


def test_every_key_begins_with_the_owner(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "SELECT i.indexrelid::regclass::text FROM pg_index AS i "
            "JOIN pg_class AS c ON c.oid = i.indrelid "
            "JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = i.indkey[0] "
            "WHERE c.relnamespace = 'public'::regnamespace AND a.attname != 'owner' "
            "AND i.indisunique"
        ).fetchall()

    # An owner's name is unique among all; the others are keyed by it.
    assert {name for (name,) in rows} == {
        "owner_name_key",
        "schema_migration_pkey",
        "reindexing_pkey",
    }


def test_a_statement_without_an_owner_fails(two_owners: str) -> None:
    for table in [*held_tables(two_owners), "memory_index", "episode_index"]:
        with as_role(two_owners, None) as connection, pytest.raises(psycopg.Error):
            connection.execute(f"SELECT * FROM {table}".encode()).fetchall()


def test_statements_without_a_condition_meet_one_owner_alone(two_owners: str) -> None:
    with as_role(two_owners) as connection:
        for table in [*held_tables(two_owners), "memory_index"]:
            rows = connection.execute(f"SELECT owner FROM {table}".encode()).fetchall()
            assert {owner for (owner,) in rows} <= {OWN}, table
        texts = connection.execute("SELECT content FROM memory").fetchall()
        assert texts == [(f"the words of {OWN}",)]
        assert connection.execute("UPDATE memory SET content = ''").rowcount == 1
        assert connection.execute("DELETE FROM memory").rowcount == 1
        connection.commit()
    with as_role(two_owners, OTHER) as connection:
        texts = connection.execute("SELECT content FROM memory").fetchall()

    assert texts == [(f"the words of {OTHER}",)]


def test_rows_cannot_be_given_to_another_owner(two_owners: str) -> None:
    for statement in (
        f"INSERT INTO tag (owner, memory_seq, name) VALUES ({OTHER}, 1, 'x')",
        f"UPDATE fresh SET owner = {OTHER}",
    ):
        with (
            as_role(two_owners) as connection,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            connection.execute(statement.encode())


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM owner_token",
        "INSERT INTO owner (owner, name) VALUES (9, 'nine')",
        "UPDATE owner SET name = 'mine'",
        "DELETE FROM owner",
        "SELECT * FROM schema_migration",
        "SELECT * FROM reindexing",
        "DELETE FROM memory_index",
        "CREATE TABLE own (id integer)",
        "ALTER TABLE memory DISABLE ROW LEVEL SECURITY",
    ],
)
def test_neither_tokens_nor_owners_nor_the_schema_are_a_requests(
    two_owners: str, statement: str
) -> None:
    with (
        as_role(two_owners) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(statement.encode())


@pytest.mark.parametrize("analyzed", [False, True])
def test_what_was_said_in_other_sessions_is_not_read_under_a_policy(
    two_owners: str, *, analyzed: bool
) -> None:
    with psycopg.connect(two_owners) as connection:
        connection.execute(
            "INSERT INTO memory (owner, seq, id, session_id, content, created_at, words) "
            "SELECT %s, n, 'm' || n, 's' || n, 'ok', now(), '{}' "
            "FROM generate_series(100, 5100) AS n",
            [OWN],
        )
    if analyzed:
        with psycopg.connect(two_owners, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE memory")
    with as_role(two_owners) as connection:
        values = {"owner": OWN, "session": "s4000", "content": "ok", "source": None}
        found = connection.execute(SAID_BEFORE.encode(), values).fetchall()
        plan = connection.execute(f"EXPLAIN {SAID_BEFORE}".encode(), values).fetchall()

    assert [id for id, _ in found] == ["m4000"]
    text = "\n".join(line for (line,) in plan)
    assert "memory_said" in text, text
    assert re.search(r"Index Cond: .*\bsaid = ", text), text


def test_the_index_of_words_is_used_under_a_policy(two_owners: str) -> None:
    with psycopg.connect(two_owners) as connection:
        connection.execute(
            "INSERT INTO memory (owner, seq, id, session_id, content, created_at, content_hash, words) "
            "SELECT %s, n, 'm' || n, 's', '', now(), 0, array[n, -1] "
            "FROM generate_series(100, 5100) AS n",
            [OWN],
        )
    with psycopg.connect(two_owners, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE memory")
    with as_role(two_owners) as connection:
        statement = (
            "EXPLAIN SELECT m.seq FROM memory_index AS m "
            "WHERE m.owner = %s AND m.words && %s::int[] AND m.session_id = 's'"
        )
        plan = connection.execute(statement, [OWN, [4_000]]).fetchall()

    assert any("memory_words" in line for (line,) in plan)


@pytest.mark.usefixtures("two_owners")  # the role exists then
def test_a_user_without_privileges_keeps_a_memory_with_one_owner(dsn: str) -> None:
    """And is told, where many owners are wanted, what an administrator does once."""
    user = "no_roles"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"DROP ROLE IF EXISTS {user}")
        connection.execute(f"CREATE ROLE {user} LOGIN NOCREATEROLE")
        connection.execute(f"CREATE SCHEMA {user} AUTHORIZATION {user}")
        connection.execute(f"ALTER ROLE {user} SET search_path = {user}")
    own = dsn.replace("postgres@", f"{user}@", 1)
    try:
        with open_store(own, migrations=MIGRATIONS) as store:
            keep(store, memory("1"))
            assert store.memories.working_count() == 1
        with (
            pytest.raises(
                StorageFailed, match=f"GRANT {REQUEST_ROLE} TO {user}"
            ) as error,
            open_store(own, migrations=MIGRATIONS, guarded=True),
        ):
            pass
        assert "CREATE ROLE" not in error.value.message
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f"GRANT {REQUEST_ROLE} TO {user}")
        with open_store(own, migrations=MIGRATIONS, guarded=True) as store:
            assert store.memories.working_count() == 1
    finally:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f"DROP OWNED BY {user} CASCADE")
            connection.execute(f"DROP ROLE {user}")


def test_a_store_of_an_owner_that_was_removed_writes_nothing(dsn: str) -> None:
    with open_store(dsn, migrations=MIGRATIONS, owner=OWN) as store:
        with psycopg.connect(dsn) as connection:
            connection.execute("DELETE FROM owner WHERE owner = %s", [OWN])
        with pytest.raises(NotFound, match="removed"):
            keep(store, memory("1"))
        assert store.memories.working(["1"]) == []
