"""The schema: brought up to date by the first process, spread over the nodes of Citus, fit for pgvector.

A migration says in its first line which daemons may keep running: `-- compatible with 2` are
those that know version 2 or later. Without that line only daemons that know the migration itself may.

pgvector is optional, so that no migration may name it. Its column is a second form of the column
`vector`; where the extension is removed, nothing is lost with it.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from graphlib import TopologicalSorter
from pathlib import Path

import psycopg

from mnemosyned import errors
from mnemosyned.logs import logger
from mnemosyned.memory.engine_ports import Distribution
from mnemosyned.storage.common.session import Row
from mnemosyned.storage.postgres import connections, fulltext, roles
from mnemosyned.storage.postgres.session import PostgresSession
from mnemosyned.text.terms import glued_words

log = logger()
TRIES = 2
PAUSE_S = 1.0
"""Pause between two tries; after the last one, the caller waits longer and tries again."""
WAITS = "the tables wait to be brought up to date until these transactions have ended"
UNRELEASED = (
    "the tables are of a version before the first release, which no later one reads: export the "
    "memory with that version (mnem export), and import it into a new database"
)
_OTHERS = (
    "SELECT a.pid, a.application_name, a.usename, "
    "to_char(a.xact_start, 'YYYY-MM-DD HH24:MI:SS') "
    "FROM pg_stat_activity AS a WHERE a.pid != pg_backend_pid() "
    "AND a.datname = current_database() AND EXISTS (SELECT 1 FROM pg_locks AS l "
    "WHERE l.pid = a.pid AND l.granted AND l.relation IN (SELECT oid FROM pg_class "
    "WHERE relnamespace = current_schema()::regnamespace)) "
    "ORDER BY a.xact_start NULLS LAST LIMIT 10"
)
"""Sessions that lock tables of this schema, and since when."""
_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migration (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    oldest     integer NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""
_COMPATIBLE = re.compile(rb"-- compatible with (\d+)\r?\n")
_STATEMENT = re.compile(
    rb"(?:\$\$.*?\$\$|BEGIN ATOMIC.*?END(?=;\r?\n)|[^$])+?;\r?\n", re.DOTALL
)
"""A statement ends with its line, but not within `$$` or the body of a function."""
_STATE = (
    "SELECT coalesce(max(version), 0), "
    "coalesce(max(oldest) FILTER (WHERE version > %(known)s), 0) FROM schema_migration"
)
_END_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid != pg_backend_pid() "
    "AND application_name = 'mnemosyned' AND datname = current_database() "
    "AND pg_has_role(usesysid, 'USAGE')"
)
"""Ends the connections of running older daemons: they connect again and are refused."""


def upgrade(dsn: str, folder: Path, *, read_only: bool = False) -> int:
    """Apply the migrations that the database lacks; return the schema version of this program.

    Raises `SchemaTooNew` for a later database that this program cannot use, `DatabaseUnreachable`
    while others keep tables locked, and `StorageFailed` if migrations are missing but `read_only`
    is true or the login does not own the tables.
    """
    files = sorted(folder.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    if not files:
        raise errors.StorageFailed(
            f"no migrations in {folder}; install mnemosyned again"
        )
    known = _migration_number(files[-1])
    with connections.connect_once(dsn) as connection:
        exists = connection.execute("SELECT to_regclass('schema_migration')").fetchone()
        is_new = exists is None or exists[0] is None
        version = 0 if is_new else check_schema(connection, known)
        if version < known:
            if read_only:
                raise errors.StorageFailed(
                    "this server is a standby, and its tables are of an earlier version: start "
                    "this version on the primary first"
                )
            owns, owner = roles.table_owner(PostgresSession(connection, 0))
            if not owns:
                raise errors.StorageFailed(
                    f"the database has schema version {version} and this mnemosyned needs {known}; "
                    f"with the login that owns the tables, {owner}, run "
                    f"mnem db migrate --url postgresql://{owner}@…"
                )
            for tries_left in reversed(range(TRIES)):
                try:
                    _apply_migrations(connection, files, known)
                    break
                except psycopg.errors.LockNotAvailable as error:
                    others = PostgresSession(connection, 0).execute(_OTHERS).fetchall()
                    sessions = ", ".join(
                        f"process {process} ({program or 'unnamed'}, user {user}"
                        f"{f', since {began} UTC' if began else ''})"
                        for process, program, user, began in others
                    )
                    if not tries_left:
                        raise errors.DatabaseUnreachable(
                            f"{WAITS}: {sessions}"
                        ) from error
                time.sleep(PAUSE_S)
    return known


def check_schema(connection: psycopg.Connection[Row], known: int) -> int:
    """Return the schema version of a database. Raises `SchemaTooNew` if it needs more than `known`."""
    try:
        row = connection.execute(_STATE, {"known": known}).fetchone()
    except psycopg.errors.UndefinedColumn as error:
        raise errors.StorageFailed(UNRELEASED) from error
    version, oldest = row or (0, 0)
    if oldest > known:
        raise errors.SchemaTooNew(
            f"the database has schema version {version}, which needs a mnemosyned that knows "
            f"{oldest}; this one knows {known}: install a later version"
        )
    return int(version)


def _apply_migrations(
    connection: psycopg.Connection[Row], files: list[Path], known: int
) -> None:
    """Apply missing migrations, each in a transaction; close the connections of older programs that must stop.

    Raises `LockNotAvailable` after a short wait.
    """
    try:
        connection.execute(_TABLE)
    except psycopg.errors.UniqueViolation:
        # At the same moment: the table is there now.
        log.info("migrations_begun_elsewhere")
    former, oldest = check_schema(connection, known), 0
    for file in files:
        with connection.transaction():
            connection.execute(roles.LOCK_SCHEMA)
            number = _migration_number(file)
            if number <= check_schema(connection, known):
                continue
            text = file.read_bytes()
            line = _COMPATIBLE.match(text)
            oldest = max(oldest, int(line[1]) if line else number)
            # One by one, as Citus hands nodes all that it is given at once.
            for statement in _STATEMENT.findall(text):
                connection.execute(statement)
            connection.execute(
                "INSERT INTO schema_migration (version, name, oldest) VALUES (%s, %s, %s)",
                (number, file.stem, oldest),
            )
    if 0 < former < oldest:
        connection.execute(_END_OTHERS)


def _migration_number(file: Path) -> int:
    """Return the number of a migration: the first four digits of its file's name."""
    return int(file.name[:4])


_HAS_COLUMN = (
    "SELECT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('embedding') "
    "AND attname = 'near' AND NOT attisdropped) AND to_regtype('halfvec') IS NOT NULL"
)
_AVAILABLE = (
    "SELECT to_regtype('halfvec') IS NOT NULL, EXISTS (SELECT 1 FROM pg_available_extensions "
    "WHERE name = 'vector' AND installed_version IS NULL)"
)
_ADD = (
    "ALTER TABLE embedding ADD COLUMN near halfvec",
    "CREATE INDEX embedding_unprepared ON embedding (owner, memory_seq) WHERE near IS NULL",
)
# Kept in the row, as a search reads each; no sample of it in the statistics.
_ADJUST = (
    "ALTER TABLE embedding ALTER near SET STORAGE MAIN",
    "ALTER TABLE embedding ALTER near SET STATISTICS 0",
)


def prepare_search(dsn: str, *, read_only: bool = False) -> bool:
    """Add the pgvector column if it is missing and can be added; return whether it exists.

    It can be added if pgvector is installed, the user owns the tables, and `read_only` is false.
    Raises `psycopg.Error`.
    """
    with connections.connect_once(dsn) as connection:
        session = PostgresSession(connection, 0)
        if session.scalar(_HAS_COLUMN):
            return True
        if read_only or not roles.table_owner(session)[0]:
            return False
        with connection.transaction():
            roles.lock_schema(session)
            if session.scalar(_HAS_COLUMN):  # another daemon was first
                return True
            if not _ensure_extension(connection):
                return False
            for statement in _ADD:
                session.execute(statement)
            for statement in _ADJUST:
                # Citus may refuse them for a table that is spread over nodes.
                with (
                    suppress(psycopg.errors.FeatureNotSupported),
                    connection.transaction(),
                ):
                    session.execute(statement)
    log.info("vector_search_prepared")
    return True


def _ensure_extension(connection: psycopg.Connection[Row]) -> bool:
    """Create pgvector's extension if possible; return whether its type `halfvec` exists."""
    is_known, is_available = connection.execute(_AVAILABLE).fetchone() or (False, False)
    if is_known or not is_available:
        return bool(is_known)
    try:
        with connection.transaction():
            connection.execute("CREATE EXTENSION vector")
    except psycopg.errors.InsufficientPrivilege:
        log.info("vector_search_unprepared", administrator="CREATE EXTENSION vector")
        return False
    except (psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
        pass
    # An old release has no half precision, and a schema out of the path hides it.
    row = connection.execute("SELECT to_regtype('halfvec') IS NOT NULL").fetchone()
    return bool(row and row[0])


_FIRST = roles.OWNER_TABLES[0]
"""The table with whose parts the parts of all other tables are placed."""
HAS_CITUS = "SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')"
"""Whether the database has Citus, with rows on other nodes."""
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
"""The owner in views, which on a cluster show the column itself."""
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
"""Functions that search words. They reveal nothing of the numbers they compare, but only a superuser may
declare that, and without it no index is searched under a policy."""
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
    """Distribute all tables over a cluster's nodes by owner, in `shards` parts; return what was done.

    Tables that are distributed already stay as they are. The role for requests may log in afterwards, as
    nodes connect to each other. Raises `InvalidRequest` without Citus, `StorageFailed` if no node takes rows
    or a right is missing, and `psycopg.Error`.
    """
    session = PostgresSession(connection, 0)
    if not session.scalar(HAS_CITUS):
        raise errors.InvalidRequest(
            "this database has no Citus: as a superuser, CREATE EXTENSION citus in it on every "
            "node, then citus_add_node for each; see docs/citus.md",
            field="database",
        )
    nodes: int = session.scalar(_NODES)
    if not nodes:
        raise errors.StorageFailed(
            "no node of the cluster takes rows: add one with citus_add_node, or let the "
            "coordinator take them: SELECT citus_set_node_property(nodename, nodeport, "
            "'shouldhaveshards', true) FROM pg_dist_node"
        )
    # Tables of one transaction are made on one connection to each node.
    session.execute("SET citus.multi_shard_modify_mode TO 'sequential'")
    with connection.transaction():
        for (table,) in session.execute(_WITHOUT_KEY).fetchall():
            # Else none of its rows can be written while they move to another node.
            session.execute(f'ALTER TABLE "{table}" REPLICA IDENTITY FULL')
        new = _distribute_tables(session, shards)
        for view, text in session.execute(_VIEWS).fetchall():
            if _HIDDEN in text:
                plain = text.replace(_HIDDEN, "owner")
                session.execute(f"CREATE OR REPLACE VIEW {view} AS {plain}")
        # SET reaches the nodes within a transaction.
        database = session.scalar("SELECT quote_ident(current_database())")
        session.execute(
            f"ALTER DATABASE {database} SET citus.propagate_set_commands TO 'local'"
        )
    # Nodes connect to each other as whoever asks.
    roles.ensure_role(connection)
    session.execute(f'ALTER ROLE "{roles.request_role(session)}" LOGIN')
    _disable_text_statistics(session)
    return Distribution(
        nodes=nodes, tables=tuple(new), advice=_mark_searches_leakproof(session)
    )


def _distribute_tables(session: PostgresSession, shards: int) -> list[str]:
    """Distribute the tables that are not distributed yet, referenced tables first; return their names."""
    there = set(session.column(_DISTRIBUTED))
    tables = [*roles.OWNER_TABLES, *roles.owned_tables(session)]
    sorter = TopologicalSorter(dict.fromkeys(tables, ()))
    for of, to in session.execute(_REFERS):
        if of in tables and to in tables and of != to:
            sorter.add(of, to)
    new = [table for table in sorter.static_order() if table not in there]
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


def _disable_text_statistics(session: PostgresSession) -> None:
    """Keep no samples of texts in statistics on any node. Raises `StorageFailed` if a node refuses."""
    for table, columns in session.execute(_SAMPLED).fetchall():
        changes = ", ".join(f'ALTER "{column}" SET STATISTICS 0' for column in columns)
        command = f"ALTER TABLE %s {changes}"
        answers = session.execute(_ON_SHARDS, table=table, command=command).fetchall()
        if refused := [answer for done, answer in answers if not done]:
            raise errors.StorageFailed(
                f"the tables are distributed, but a node keeps samples of texts: {refused[0]}. "
                "Repair the node, then distribute again"
            )
        # Citus hands no such change on, and refuses it otherwise.
        session.execute("SET citus.enable_ddl_propagation TO 'off'")
        session.execute(f'ALTER TABLE "{table}" {changes}')
        session.execute("SET citus.enable_ddl_propagation TO 'on'")


def _mark_searches_leakproof(session: PostgresSession) -> tuple[str, ...]:
    """Mark index operators as leakproof on all nodes; if not possible, return advice for a superuser."""
    commands = [_LEAKPROOF.format(name) for name in _SEARCHES]
    if session.scalar("SELECT current_setting('is_superuser') = 'on'"):
        for command in commands:
            session.execute(_ON_NODES, command=command)
    if session.scalar(_IS_VOUCHED, names=list(_SEARCHES)):
        return ()
    return tuple(ADVICE.format(command=command) for command in commands)


# A process that starts meanwhile does not wait.
_NEXT_DUE = "SELECT name, place FROM reindexing LIMIT 1 FOR UPDATE SKIP LOCKED"
_SECOND_TEXT = {"memory": "role", "episode": "index_terms"}
"""The text of a row that is indexed beside its content."""
REWRITTEN_AT_ONCE = 2_000
"""Rows whose entries one transaction compares: some seconds if all are rewritten."""


def rewrite_index_entries(connection: psycopg.Connection[Row]) -> None:
    """Rewrite index entries of an earlier version that differ from those of now, in several transactions.

    Entries of ASCII texts do not differ. The table `reindexing` says how far they are rewritten, so that a
    daemon goes on where another was killed. The user must own the tables.
    """
    while True:
        with connection.transaction():
            due = connection.execute(_NEXT_DUE).fetchone()
            if due is None:
                return
            table, place = due
            second = _SECOND_TEXT[table]
            rows = connection.execute(
                f"SELECT owner, seq, words, grams, content, {second} FROM {table} "
                "WHERE (owner, seq) > (%s, %s) AND content <> '' "
                f"AND octet_length(content || {second}) <> length(content || {second}) "
                "ORDER BY owner, seq LIMIT %s".encode(),
                (*place, REWRITTEN_AT_ONCE),
            ).fetchall()
            changes = []
            for owner, seq, words, grams, content, other in rows:
                text = content if table == "memory" else f"{content}\n{other}"
                entry = (
                    fulltext.word_hashes(owner, content, other, *glued_words(text)),
                    fulltext.gram_hashes(owner, text),
                )
                if entry != (words, grams):
                    changes.append((*entry, owner, seq, content, other))
            # What was changed since it was read has its words already.
            connection.cursor().executemany(
                f"UPDATE {table} SET words = %s, grams = %s WHERE owner = %s AND seq = %s "
                f"AND content = %s AND {second} = %s".encode(),
                changes,
            )
            for owner in {change[2] for change in changes}:
                PostgresSession(connection, owner).note_rewording()
            if len(rows) == REWRITTEN_AT_ONCE:
                last = list(rows[-1][:2])
                progress = "UPDATE reindexing SET place = %s WHERE name = %s"
                connection.execute(progress, (last, table))
            else:
                connection.execute("DELETE FROM reindexing WHERE name = %s", (table,))
        if changes:
            log.info("index_entries_rewritten", table=table, entries=len(changes))
