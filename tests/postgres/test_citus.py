"""A database spread over a cluster of Citus: all that is an owner's is on one node.

That every statement meets one shard, and answers as on one server, the store's tests on
`--engine citus` show.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.before_narrowing import DETAILS, fill, migrations_before
from support.citus import (
    NODES,
    SHARDS,
    cluster,
    database_of_nodes,
    has_citus,
)
from support.fakes import memory, remember_batch
from support.postgres import MIGRATIONS, open_owners, open_store

from mnemosyned.errors import InvalidRequest, NotFound
from mnemosyned.memory.engine_ports import Scope
from mnemosyned.memory.forgetting import ForgetFilter
from mnemosyned.memory.periods import Level
from mnemosyned.memory.values import Episode
from mnemosyned.storage.postgres.roles import request_role
from mnemosyned.storage.postgres.schema import distribute, upgrade
from mnemosyned.storage.postgres.session import PostgresSession
from mnemosyned.storage.postgres.store import PostgresServer
from mnemosyned.text.terms import parse_terms

needs_citus = pytest.mark.skipif(
    not has_citus(),
    reason="NOT RUN: this server has no Citus; POSTGRES_BIN names one that has",
)


def asked(sql: str, *values: object) -> list[tuple[Any, ...]]:
    with psycopg.connect(cluster(), autocommit=True) as connection:
        rows: list[tuple[Any, ...]] = connection.execute(
            sql.encode(), values
        ).fetchall()
        return rows


@pytest.mark.postgres
def test_a_database_without_citus_says_what_it_needs(dsn: str) -> None:
    with pytest.raises(InvalidRequest, match="CREATE EXTENSION citus"):
        PostgresServer(dsn, MIGRATIONS).distribute(SHARDS)


@pytest.mark.citus
@needs_citus
def test_all_that_is_an_owners_is_on_one_node() -> None:
    tables = asked(
        "SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a "
        "ON a.attrelid = c.oid AND a.attname = 'owner' "
        "WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace"
    )
    spread = asked(
        "SELECT table_name::text, colocation_id, shard_count FROM citus_tables "
        "WHERE citus_table_type = 'distributed' AND distribution_column = 'owner'"
    )

    assert {name for (name,) in tables} == {name for name, _, _ in spread}
    assert len({where for _, where, _ in spread}) == 1
    assert {count for _, _, count in spread} == {SHARDS}


@pytest.mark.citus
@needs_citus
def test_what_is_distributed_stays_as_it_is() -> None:
    again = PostgresServer(cluster(), MIGRATIONS).distribute(SHARDS)

    assert (again.nodes, again.tables, again.advice) == (NODES - 1, (), ())


@pytest.mark.citus
@needs_citus
def test_owners_come_and_go_and_see_nothing_of_each_other() -> None:
    dsn = cluster()
    with open_owners(dsn) as owners:
        anna, ben = owners.add("anna"), owners.add("ben")
        with pytest.raises(InvalidRequest, match="already"):
            owners.add("anna")
        issued = owners.issue("anna", "laptop", [Scope.READ])
        holder = owners.holder(issued.secret)
        assert holder
        assert holder.owner == anna.number
        for owner, words in ((anna, "the kettle is blue"), (ben, "the kettle is red")):
            with open_store(dsn, owner=owner.number, guarded=True) as store:
                remember_batch(store, memory("same", words))
                found = store.deletion.select(
                    ForgetFilter(terms=parse_terms("kettle blue"))
                )
                assert found == (["same"] if owner is anna else [])

        listed = {owner.name: owner for owner in owners.owners(measured=True)}
        soon = datetime.now(UTC) + timedelta(days=1)
        due = owners.with_work(before=soon, closed=dict.fromkeys(Level, soon))
        assert listed["anna"].memories == listed["ben"].memories == 1
        assert {anna.number, ben.number} <= set(due)

        removed = owners.remove("anna")
        assert (removed.memories, removed.purged) == (1, True)
        owners.remove("ben")
        with pytest.raises(NotFound):
            owners.tokens("anna")
    left = asked(
        "SELECT count(*) FROM memory WHERE owner = ANY(%s)", [anna.number, ben.number]
    )
    assert left == [(0,)]


@pytest.mark.citus
@needs_citus
def test_words_are_searched_by_their_index_under_the_policy_of_the_node() -> None:
    dsn = cluster()
    with open_store(dsn, owner=77, guarded=True) as store:
        many = (memory(f"m{number}", f"note {number}") for number in range(3_000))
        remember_batch(store, *many)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE memory")
        with connection.transaction():
            connection.execute(
                f'SET LOCAL ROLE "{request_role(PostgresSession(connection, 0))}"'.encode()
            )
            connection.execute("SET LOCAL mnemosyned.owner = 77")
            rows = connection.execute(
                "EXPLAIN SELECT seq FROM memory_index "
                "WHERE owner = 77 AND words && '{1,2,3}'::int[]"
            ).fetchall()
    plan = "\n".join(line for (line,) in rows)

    assert "Task Count: 1\n" in plan
    assert "Bitmap Index Scan on memory_words_" in plan


@pytest.mark.citus
@needs_citus
def test_a_statement_of_one_owner_sees_no_other_on_the_same_shard() -> None:
    dsn = cluster()
    for owner in range(200, 200 + 2 * SHARDS):
        with open_store(dsn, owner=owner, guarded=True) as store:
            words = memory("only", f"of {owner}")
            remember_batch(store, words)
    with psycopg.connect(dsn) as connection:
        connection.execute(
            f'SET LOCAL ROLE "{request_role(PostgresSession(connection, 0))}"'.encode()
        )
        connection.execute("SET LOCAL mnemosyned.owner = 200")
        seen = connection.execute("SELECT DISTINCT owner FROM memory").fetchall()

    assert seen == [(200,)]


@pytest.mark.citus
@needs_citus
def test_the_rows_of_an_owner_move_to_another_node_while_they_are_written() -> None:
    dsn, owner = cluster(), 78
    with open_store(dsn, owner=owner, guarded=True) as store:
        told = store
        remember_batch(told, memory("before", "the kettle is hot"))
        shard, here = asked(
            "SELECT shardid, nodename FROM pg_dist_shard_placement WHERE shardid = "
            "get_shard_id_for_distribution_column('owner', %s)",
            owner,
        )[0]
        (there,) = asked(
            "SELECT nodename FROM pg_dist_node WHERE shouldhaveshards AND nodename != %s",
            here,
        )[0]
        asked(
            "SELECT citus_move_shard_placement(%s, %s, 5432, %s, 5432)",
            shard,
            here,
            there,
        )
        remember_batch(told, memory("after", "the kettle is cold"))
        found = store.deletion.select(ForgetFilter(terms=parse_terms("kettle")))

    assert sorted(found) == ["after", "before"]


@pytest.mark.citus
@needs_citus
def test_a_purge_writes_the_tables_of_all_nodes_anew_and_names_their_logs() -> None:
    server = PostgresServer(cluster(), MIGRATIONS)
    files = (
        "SELECT result FROM "
        "run_command_on_shards('memory', 'SELECT pg_relation_filenode(''%%s'')') LIMIT %s"
    )
    before = asked(files, SHARDS)

    purged = server.purge()

    assert purged.undone == ()
    assert "other nodes" in purged.left[0]
    assert not set(before) & set(asked(files, SHARDS))


@pytest.mark.citus
@needs_citus
def test_a_cluster_of_the_version_before_is_upgraded(tmp_path: Path) -> None:
    dsn = database_of_nodes("before")
    upgrade(dsn, migrations_before(tmp_path))
    spread(dsn)
    with psycopg.connect(dsn) as connection:
        connection.execute("SET mnemosyned.owner = 1")
        fill(connection)

    with open_store(dsn, owner=1, guarded=True) as store:
        episode = store.memories.get("e1")
        remember_batch(store, memory("new", "Dora has 5 keys"))
        found = store.deletion.select(ForgetFilter(terms=parse_terms("keys")))
    spread(dsn)

    assert isinstance(episode, Episode)
    assert len(episode.details) == len(DETAILS)
    assert sorted(found) == ["m1", "new"]
    with psycopg.connect(dsn) as connection:
        kept = connection.execute(
            "SELECT result FROM run_command_on_shards('placed', 'SELECT sum(attstattarget) "
            "FROM pg_attribute WHERE attrelid = ''%s''::regclass "
            "AND attname IN (''details'', ''secrets'')')"
        ).fetchall()
    assert set(kept) == {("0",)}


def spread(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        distribute(connection, shards=SHARDS)
