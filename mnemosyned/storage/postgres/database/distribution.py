"""Distribution: a database of Citus keeps each owner's rows of every table together on one node."""

from __future__ import annotations

import psycopg

from mnemosyned.domain.errors import InvalidRequest, StorageFailed
from mnemosyned.domain.ports.servers.server import Distribution
from mnemosyned.storage.postgres.database.connections import connected_once
from mnemosyned.storage.postgres.database.roles import (
    ensure_role,
    owned_tables,
    request_role,
)
from mnemosyned.storage.postgres.database.session import Row, Session

_FIRST = "owner"
"""The table whose parts the others' parts lie with."""
_TOKENS = "owner_token"
_HAS_CITUS = "SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')"
_NODES = (
    "SELECT count(*) FROM pg_dist_node WHERE shouldhaveshards AND noderole = 'primary'"
)
_DISTRIBUTED = (
    "SELECT c.relname FROM pg_dist_partition AS p JOIN pg_class AS c ON c.oid = p.logicalrelid "
    "WHERE c.relnamespace = current_schema()::regnamespace AND p.partmethod = 'h'"
)
_DISTRIBUTE_FIRST = (
    "SELECT create_distributed_table(%(table)s, 'owner', shard_count := %(shards)s)"
)
_DISTRIBUTE = (
    "SELECT create_distributed_table(%(table)s, 'owner', colocate_with := %(first)s)"
)
_REFERS = (
    "SELECT t.relname, f.relname FROM pg_constraint AS k "
    "JOIN pg_class AS t ON t.oid = k.conrelid JOIN pg_class AS f ON f.oid = k.confrelid "
    "WHERE k.contype = 'f' AND t.relnamespace = current_schema()::regnamespace"
)
_WITHOUT_KEY = (
    "SELECT c.relname FROM pg_class AS c "
    "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' "
    "AND c.relreplident = 'd' AND NOT EXISTS "
    "(SELECT 1 FROM pg_index AS i WHERE i.indrelid = c.oid AND i.indisprimary)"
)
_VIEWS = (
    "SELECT c.relname, pg_get_viewdef(c.oid) FROM pg_class AS c "
    "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'v'"
)
_HIDDEN = "(owner + 0) AS owner"
_SAMPLED = (
    "SELECT c.relname, array_agg(a.attname::text) FROM pg_dist_partition AS p "
    "JOIN pg_class AS c ON c.oid = p.logicalrelid JOIN pg_attribute AS a ON a.attrelid = c.oid "
    "WHERE c.relnamespace = current_schema()::regnamespace AND c.relname != 'owner' "
    "AND a.atttypid = 'text'::regtype AND NOT a.attisdropped "
    "AND a.attstattarget IS DISTINCT FROM 0 GROUP BY c.relname"
)
"""Texts whose words ANALYZE would keep."""
_ON_SHARDS = "SELECT success, result FROM run_command_on_shards(%(table)s, %(command)s)"
_LEAKPROOF = "ALTER FUNCTION pg_catalog.{}(anyarray, anyarray) LEAKPROOF"
_SEARCHES = ("arrayoverlap", "arraycontains")
"""What words are searched with. They compare numbers and say nothing of them, but only a superuser
may vouch for that, and under a policy no index is searched otherwise."""
_IS_VOUCHED = (
    "SELECT bool_and(proleakproof) FROM pg_proc WHERE proname = ANY(%(names)s::text[]) "
    "AND pronamespace = 'pg_catalog'::regnamespace"
)
_ON_NODES = "SELECT success FROM run_command_on_all_nodes(%(command)s)"
ADVICE = (
    "as a superuser, once on the coordinator, so that words are searched by their index: "
    "SELECT run_command_on_all_nodes('{command}')"
)


def distribute(connection: psycopg.Connection[Row], *, shards: int) -> Distribution:
    """Distribute all tables by their owner; what is distributed already stays as it is.

    Raises `InvalidRequest` without Citus, `StorageFailed` without a node for the rows or the right
    to make the role of requests, and `psycopg.Error`.
    """
    session = Session(connection, 0)
    nodes = _nodes(session)
    # Tables of one transaction are made on one connection to each node.
    session.execute("SET citus.multi_shard_modify_mode TO 'sequential'")
    with connection.transaction():
        for (table,) in session.execute(_WITHOUT_KEY).fetchall():
            # Else none of its rows can be written while they move to another node.
            session.execute(f'ALTER TABLE "{table}" REPLICA IDENTITY FULL')
        new = _distribute(session, shards)
        _adapt(session)
    # Nodes connect to each other as whoever asks.
    ensure_role(connection)
    session.execute(f'ALTER ROLE "{request_role(session)}" LOGIN')
    _keep_no_samples(session)
    return Distribution(nodes=nodes, tables=tuple(new), advice=_vouch(session))


def has_citus(dsn: str) -> bool:
    """Whether nodes may hold the rows of a database. Raises `psycopg.Error`."""
    with connected_once(dsn) as connection:
        return bool(Session(connection, 0).scalar(_HAS_CITUS))


def _nodes(session: Session) -> int:
    if not session.scalar(_HAS_CITUS):
        raise InvalidRequest(
            "this database has no Citus: as a superuser, CREATE EXTENSION citus in it on every "
            "node, then citus_add_node for each; see docs/citus.md",
            field="database",
        )
    nodes: int = session.scalar(_NODES)
    if not nodes:
        raise StorageFailed(
            "no node of the cluster takes rows: add one with citus_add_node, or let the "
            "coordinator take them: SELECT citus_set_node_property(nodename, nodeport, "
            "'shouldhaveshards', true) FROM pg_dist_node"
        )
    return nodes


def _distribute(session: Session, shards: int) -> list[str]:
    """Distribute what is not yet, a table after those that it refers to."""
    there = {name for (name,) in session.execute(_DISTRIBUTED)}
    tables = _in_order(session, [_FIRST, _TOKENS, *owned_tables(session)])
    new = [table for table in tables if table not in there]
    for table in new:
        if table == _FIRST:
            # A cluster has no key without the owner: whoever adds an owner compares names itself.
            session.execute(
                "ALTER TABLE owner DROP CONSTRAINT IF EXISTS owner_name_key"
            )
            session.execute(_DISTRIBUTE_FIRST, table=table, shards=shards)
        else:
            session.execute(_DISTRIBUTE, table=table, first=_FIRST)
    return new


def _in_order(session: Session, tables: list[str]) -> list[str]:
    """Tables, each after those that it refers to; the first one is the first."""
    refers = [(of, to) for of, to in session.execute(_REFERS) if of != to]
    left, ordered = list(tables), list[str]()
    while left:  # ends, as no two tables refer to each other
        ready = [
            table
            for table in left
            if not any(of == table and to in left for of, to in refers)
        ]
        ordered += ready
        left = [table for table in left if table not in ready]
    return ordered


def _adapt(session: Session) -> None:
    """Have views show the owner that parts are chosen by, and nodes learn whose a request is."""
    for view, text in session.execute(_VIEWS).fetchall():
        if _HIDDEN in text:
            plain = text.replace(_HIDDEN, "owner")
            session.execute(f"CREATE OR REPLACE VIEW {view} AS {plain}")
    database = session.scalar("SELECT quote_ident(current_database())")
    session.execute(
        f"ALTER DATABASE {database} SET citus.propagate_set_commands TO 'local'"
    )


def _keep_no_samples(session: Session) -> None:
    """Have no statistics of texts on any node, as migrations have it on one server.

    Raises `StorageFailed` where a node refuses it.
    """
    for table, columns in session.execute(_SAMPLED).fetchall():
        changes = ", ".join(f'ALTER "{column}" SET STATISTICS 0' for column in columns)
        command = f"ALTER TABLE %s {changes}"
        answers = session.execute(_ON_SHARDS, table=table, command=command).fetchall()
        if refused := [answer for done, answer in answers if not done]:
            raise StorageFailed(
                f"the tables are distributed, but a node keeps samples of texts: {refused[0]}. "
                "Repair the node, then distribute again"
            )
        # Citus hands no such change on, and refuses it otherwise.
        session.execute("SET citus.enable_ddl_propagation TO 'off'")
        session.execute(f'ALTER TABLE "{table}" {changes}')
        session.execute("SET citus.enable_ddl_propagation TO 'on'")


def _vouch(session: Session) -> tuple[str, ...]:
    """Vouch for the searches where a superuser asks; else the statements that are left."""
    commands = [_LEAKPROOF.format(name) for name in _SEARCHES]
    if session.scalar("SELECT current_setting('is_superuser') = 'on'"):
        for command in commands:
            session.execute(_ON_NODES, command=command)
    if session.scalar(_IS_VOUCHED, names=list(_SEARCHES)):
        return ()
    return tuple(ADVICE.format(command=command) for command in commands)
