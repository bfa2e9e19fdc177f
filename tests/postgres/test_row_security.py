"""Every statement is held to its owner by the database, too: a role, policies and views."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psycopg
import pytest
from support.engines import database_of_a_test
from support.fakes import memory, remember_batch
from support.postgres import (
    MIGRATIONS,
    open_owned_stores,
    open_owners,
    open_store,
    rows,
    run,
)

from mnemosyned.errors import StorageFailed
from mnemosyned.memory.engine_ports import Scope
from mnemosyned.memory.periods import Level
from mnemosyned.storage.postgres import roles
from mnemosyned.storage.postgres.memories import SAID_BEFORE
from mnemosyned.storage.postgres.owners import PostgresOwners
from mnemosyned.storage.postgres.roles import ROLES, request_role
from mnemosyned.storage.postgres.session import PostgresSession
from mnemosyned.storage.postgres.store import PostgresServer

pytestmark = pytest.mark.postgres
OWN, OTHER = 7, 8
LATER = datetime(2100, 1, 1, tzinfo=UTC)
UNHELD = frozenset({"schema_migration", "reindexing", "audit"})
"""Tables that are nobody's."""
OUT_OF_REACH = frozenset({"owner_token", "owner_invitation", "membership"})


@pytest.fixture
def two_owners(dsn: str) -> str:
    for owner in (OWN, OTHER):
        with open_store(dsn, owner=owner, guarded=True) as store:
            remember_batch(store, memory("same", f"the words of {owner}"))
    return dsn


@contextmanager
def as_role(dsn: str, owner: int | None = OWN) -> Iterator[psycopg.Connection[Any]]:
    """A transaction as a request has it, whatever its statements."""
    with psycopg.connect(dsn) as connection:
        connection.execute(f'SET LOCAL ROLE "{role_of(dsn)}"'.encode())
        if owner is not None:
            connection.execute(f"SET LOCAL mnemosyned.owner = {owner}".encode())
        yield connection
        connection.rollback()


def refused(connection: psycopg.Connection[Any], *statements: str) -> bool:
    for statement in statements:
        with (
            pytest.raises(psycopg.errors.InsufficientPrivilege),
            connection.transaction(),
        ):
            connection.execute(statement.encode())
    return True


def tables(dsn: str, *, but: frozenset[str] = frozenset()) -> list[str]:
    named = rows(
        dsn,
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') "
        "AND relnamespace = 'public'::regnamespace ORDER BY relname",
    )
    return [name for (name,) in named if name not in but]


def test_every_table_has_an_owner_first_and_a_policy(dsn: str) -> None:
    found = rows(
        dsn,
        "SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a "
        "ON a.attrelid = c.oid AND a.attname = 'owner' AND a.attnum = 1 "
        "JOIN pg_policy AS p ON p.polrelid = c.oid AND p.polcmd = '*' "
        "WHERE c.relrowsecurity AND c.relnamespace = 'public'::regnamespace",
    )

    assert {name for (name,) in found} == set(tables(dsn, but=UNHELD))


def test_every_key_begins_with_the_owner(dsn: str) -> None:
    found = rows(
        dsn,
        "SELECT i.indexrelid::regclass::text FROM pg_index AS i "
        "JOIN pg_class AS c ON c.oid = i.indrelid "
        "JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = i.indkey[0] "
        "WHERE c.relnamespace = 'public'::regnamespace AND a.attname != 'owner' "
        "AND i.indisunique ORDER BY 1",
    )

    # An owner's name is unique among all; the others are keyed by it.
    names = ["audit_pkey", "owner_name_key", "reindexing_pkey", "schema_migration_pkey"]
    assert [name for (name,) in found] == names


def test_a_statement_without_an_owner_fails(two_owners: str) -> None:
    held = tables(two_owners, but=UNHELD | OUT_OF_REACH)
    for table in [*held, "memory_index", "episode_index"]:
        with as_role(two_owners, None) as connection, pytest.raises(psycopg.Error):
            connection.execute(f"SELECT * FROM {table}".encode()).fetchall()


def test_statements_without_a_condition_meet_one_owner_alone(two_owners: str) -> None:
    def texts(connection: psycopg.Connection[Any]) -> list[str]:
        return [text for (text,) in connection.execute("SELECT content FROM memory")]

    with as_role(two_owners) as connection:
        held = tables(two_owners, but=UNHELD | OUT_OF_REACH)
        for table in [*held, "memory_index"]:
            found = connection.execute(f"SELECT owner FROM {table}".encode())
            assert {owner for (owner,) in found} <= {OWN}, table
        assert texts(connection) == [f"the words of {OWN}"]
        assert connection.execute("UPDATE memory SET content = ''").rowcount == 1
        assert connection.execute("DELETE FROM memory").rowcount == 1
        connection.commit()
    with as_role(two_owners, OTHER) as connection:
        assert texts(connection) == [f"the words of {OTHER}"]


def test_a_request_has_no_right_to_owners_or_schema(two_owners: str) -> None:
    with as_role(two_owners) as connection:
        assert refused(
            connection,
            f"INSERT INTO tag (owner, memory_seq, name) VALUES ({OTHER}, 1, 'x')",
            f"UPDATE fresh SET owner = {OTHER}",
            "SELECT * FROM owner_token",
            "SELECT * FROM membership",
            "SELECT * FROM owner_invitation",
            "UPDATE owner SET suspended_at = NULL",
            "INSERT INTO owner (owner, name) VALUES (9, 'nine')",
            "UPDATE owner SET name = 'mine'",
            "DELETE FROM owner",
            "DELETE FROM schema_migration",
            "LOCK TABLE schema_migration IN SHARE MODE",
            "SELECT * FROM reindexing",
            "DELETE FROM memory_index",
            "CREATE TABLE own (id integer)",
            "ALTER TABLE memory DISABLE ROW LEVEL SECURITY",
        )


def fill(dsn: str, column: str, value: str) -> None:
    """Give the first owner 5,001 more memories, with a value for their number n."""
    run(
        dsn,
        "INSERT INTO memory (owner, seq, id, session_id, content, created_at, words"
        f"{column}) SELECT {OWN}, n, 'm' || n, 's' || n, 'ok', now(), {value} "
        "FROM generate_series(100, 5100) AS n",
    )


@pytest.mark.parametrize("analyzed", [False, True])
def test_a_policy_reads_no_other_session(two_owners: str, *, analyzed: bool) -> None:
    fill(two_owners, "", "'{}'")
    if analyzed:
        run(two_owners, "VACUUM ANALYZE memory")
    with as_role(two_owners) as connection:
        values = {"owner": OWN, "session": "s4000", "content": "ok", "source": None}
        found = connection.execute(SAID_BEFORE.encode(), values).fetchall()
        plan = connection.execute(f"EXPLAIN {SAID_BEFORE}".encode(), values).fetchall()

    assert [id for id, _ in found] == ["m4000"]
    text = "\n".join(line for (line,) in plan)
    assert "memory_said" in text, text
    assert re.search(r"Index Cond: .*\bsaid = ", text), text


def test_the_index_of_words_is_used_under_a_policy(two_owners: str) -> None:
    fill(two_owners, ", content_hash", "array[n, -1], 0")
    run(two_owners, "VACUUM ANALYZE memory")
    with as_role(two_owners) as connection:
        statement = (
            "EXPLAIN SELECT m.seq FROM memory_index AS m "
            "WHERE m.owner = %s AND m.words && %s::int[] AND m.session_id != 's'"
        )
        plan = connection.execute(statement, [OWN, [4_000]]).fetchall()

    assert any("memory_words" in line for (line,) in plan)


@contextmanager
def logins(dsn: str, *names: str) -> Iterator[None]:
    """Logins without any right of their own, while the block runs."""
    run(dsn, *(f"CREATE ROLE {name} LOGIN NOCREATEROLE" for name in names))
    try:
        yield
    finally:
        for name in names:
            run(dsn, f"DROP OWNED BY {name} CASCADE", f"DROP ROLE {name}")


def as_login(dsn: str, name: str) -> str:
    return dsn.replace("postgres@", f"{name}@", 1)


def role_of(dsn: str) -> str:
    with psycopg.connect(dsn) as connection:
        return request_role(PostgresSession(connection, 0))


def own_schema(dsn: str, user: str) -> str:
    """Give a login a schema of its own; the DSN with which it connects to that."""
    run(
        dsn,
        f"CREATE SCHEMA {user} AUTHORIZATION {user}",
        f"ALTER ROLE {user} SET search_path = {user}",
    )
    return as_login(dsn, user)


def later_migrations(folder: Path) -> Path:
    """The migrations with one more, as the next version has them."""
    later = Path(shutil.copytree(MIGRATIONS, folder / "migrations"))
    (later / "9999_later.sql").write_text("CREATE TABLE later (owner integer);\n")
    return later


def test_a_user_without_privileges_keeps_a_memory_with_one_owner(dsn: str) -> None:
    """And is told, where many owners are wanted, what an administrator does once."""
    user = "no_roles"
    with logins(dsn, user):
        own = own_schema(dsn, user)
        with open_store(own) as store:
            remember_batch(store, memory("1"))
            assert store.memories.working_count() == 1
        role = role_of(own)
        grant = f'GRANT "{role}" TO {user}'
        for lines in (f'CREATE ROLE "{role}" NOLOGIN', grant), (grant,):
            with pytest.raises(StorageFailed) as error, open_store(own, guarded=True):
                pass
            assert error.value.message.endswith(f": {'; '.join(lines)};")
            run(dsn, lines[0])
        with open_store(own, guarded=True) as store:
            assert store.memories.working_count() == 1
    run(dsn, f'DROP ROLE "{role}"')


def test_an_upgrade_waits_for_the_role(dsn: str, tmp_path: Path) -> None:
    """Else daemons of the version before would end, and none of this one would start."""
    user = "upgrading"
    with logins(dsn, user):
        own = own_schema(dsn, user)
        with open_store(own):
            pass
        later = later_migrations(tmp_path)
        with (
            pytest.raises(StorageFailed, match="CREATE ROLE"),
            open_store(own, migrations=later, guarded=True),
        ):
            pass
        with open_store(own):
            pass


def test_another_databases_login_reads_nothing(two_owners: str) -> None:
    """A member of its role, as the daemons of a service next to this one are."""
    with database_of_a_test() as dsn:
        with open_store(dsn, guarded=True):
            pass
        other = role_of(dsn)
    assert other != role_of(two_owners)
    with logins(two_owners, "neighbor"):
        run(two_owners, f'GRANT "{other}" TO neighbor')
        with psycopg.connect(as_login(two_owners, "neighbor")) as connection:
            connection.execute(f'SET ROLE "{other}"'.encode())
            connection.execute(f"SET mnemosyned.owner = {OWN}".encode())
            all_ = [*tables(two_owners), "memory_index", "episode_index"]
            assert refused(connection, *(f"SELECT * FROM {table}" for table in all_))


def test_rights_of_former_roles_end_at_the_next_start(two_owners: str) -> None:
    """Those of the role that was one for all databases, and of the one a copy was made of."""
    former = ("mnemosyned_request", "mnemosyned_request_copied")
    run(
        two_owners,
        *(f"CREATE ROLE {role} NOLOGIN" for role in former),
        *(
            f"GRANT SELECT, DELETE ON memory, memory_index TO {role}; "
            f"GRANT USAGE ON SCHEMA public TO {role}; "
            f"GRANT UPDATE (last_memory) ON owner TO {role}; "
            f"GRANT EXECUTE ON FUNCTION token_of TO {role}"
            for role in former
        ),
    )

    with open_store(two_owners, owner=OWN) as store:
        assert store.memories.working_count() == 1

    # A role that still had a right could not be dropped.
    run(two_owners, *(f"DROP ROLE {role}" for role in former))


def test_a_copy_without_its_rights_gives_nobody_any(two_owners: str) -> None:
    """As after `pg_restore --no-acl`, where functions are anybody's."""
    run(two_owners, "GRANT EXECUTE ON FUNCTION token_of, owners_with_work TO PUBLIC")

    with open_store(two_owners):
        pass

    with (
        logins(two_owners, "stranger"),
        psycopg.connect(as_login(two_owners, "stranger")) as stranger,
    ):
        assert refused(stranger, "SELECT token_of(7, '')")


@pytest.mark.parametrize("are_many", [True, False])
def test_a_migration_parts_a_copy(two_owners: str, *, are_many: bool) -> None:
    """As after `pg_restore`: rights of the other one's role and of everybody, none of its own."""
    if not are_many:
        run(two_owners, "DELETE FROM owner WHERE owner <> 1")
    role = role_of(two_owners)
    run(
        two_owners,
        f'DROP OWNED BY "{role}"',
        "CREATE ROLE mnemosyned_request_first NOLOGIN",
        "GRANT SELECT, DELETE ON memory TO mnemosyned_request_first",
        "GRANT EXECUTE ON FUNCTION audit_lacking TO PUBLIC",
    )

    done = PostgresServer(two_owners, migrations=MIGRATIONS).migrate()

    parted = "REVOKE ALL ON memory FROM mnemosyned_request_first"
    assert parted in done.statements
    granted = f'GRANT SELECT, INSERT, UPDATE, DELETE ON memory TO "{role}"'
    assert (granted in done.statements) is are_many
    calls = (
        f"SELECT has_function_privilege('{role}', 'audit_lacking'::regproc, 'EXECUTE')"
    )
    assert rows(two_owners, calls) == [(are_many,)]
    run(two_owners, "DROP ROLE mnemosyned_request_first")


@pytest.mark.parametrize(
    ("database", "schema", "name"),
    [
        ("memory", "public", "mnemosyned_request_memory"),
        ("Memory", "public", rf"{ROLES}-[0-9a-f]{{16}}"),
        ("memory", "own", rf"{ROLES}-[0-9a-f]{{16}}"),
        ("m" * 63, "public", rf"{ROLES}-[0-9a-f]{{16}}"),
    ],
)
def test_each_database_has_its_role(database: str, schema: str, name: str) -> None:
    answering = Mock()
    answering.execute.return_value.fetchone.return_value = (database, schema)

    role = request_role(answering)

    assert len(role) <= 63
    assert re.fullmatch(name, role)


def test_a_login_that_owns_nothing_serves(two_owners: str) -> None:
    with logins(two_owners, "serving"):
        own = as_login(two_owners, "serving")
        with (
            pytest.raises(StorageFailed, match="mnem db migrate --serving serving"),
            open_store(own),
        ):
            pass
        migrated = PostgresServer(two_owners, migrations=MIGRATIONS).migrate(
            serving="serving"
        )
        assert migrated.before == migrated.after
        assert migrated.statements == (f'GRANT "{role_of(two_owners)}" TO serving',)
        with open_owners(two_owners) as owners:
            anna = owners.add("anna")
            token = owners.issue("anna", "test", [Scope.READ]).secret

        with open_owned_stores(own) as stores:
            with pytest.raises(StorageFailed, match="the tables belong to postgres"):
                stores.owners.number("anna")
            holder = stores.owners.holder(token)
            assert holder
            assert holder.owner == anna.number
            named = stores.owners.named_holder("anna", "oidc", holder.scopes, None)
            assert named
            assert (named.owner, named.groups) == (anna.number, ())
            with pytest.raises(StorageFailed, match="the tables belong to postgres"):
                stores.owners.named_holder("new", "oidc", holder.scopes, None, add=True)
            assert stores.owners.figures(before=LATER, identity="x").owners >= 3
            remember_batch(stores.store(anna.number), memory("1"))
            lacking = stores.owners.lacking_vectors("no model")
            assert anna.number in lacking
            ends = dict.fromkeys((Level.DAY, Level.WEEK, Level.MONTH), LATER)
            assert anna.number in stores.owners.with_work(before=LATER, closed=ends)
        with open_store(own) as store:
            remember_batch(store, memory("1"))
            assert store.maintenance.bytes_on_disk() > 0
            assert store.maintenance.problems() == []
            store.maintenance.check_ready()
        with pytest.raises(StorageFailed, match="the tables belong to postgres"):
            PostgresServer(own, migrations=MIGRATIONS).migrate()
        with (
            pytest.raises(StorageFailed, match="the tables belong to postgres"),
            open_owners(own),
        ):
            pass
        with psycopg.connect(own) as connection:
            for statement in (
                "SELECT content FROM memory",  # without an owner
                "SELECT digest FROM owner_token",
                "ALTER TABLE memory DISABLE ROW LEVEL SECURITY",
            ):
                with pytest.raises(psycopg.Error), connection.transaction():
                    connection.execute(statement.encode())


def test_a_serving_login_is_told_who_migrates(two_owners: str, tmp_path: Path) -> None:
    with logins(two_owners, "serving"):
        PostgresServer(two_owners, migrations=MIGRATIONS).migrate(serving="serving")
        later = later_migrations(tmp_path)
        with (
            pytest.raises(
                StorageFailed, match=r"db migrate --url postgresql://postgres@"
            ),
            open_store(as_login(two_owners, "serving"), migrations=later),
        ):
            pass


def test_a_bare_login_can_block_no_upgrade(two_owners: str, tmp_path: Path) -> None:
    """Advisory locks are anybody's to take; a lock on a table of ours is its owner's."""
    later = later_migrations(tmp_path)
    with (
        logins(two_owners, "stranger"),
        psycopg.connect(as_login(two_owners, "stranger")) as stranger,
    ):
        for key in (0x6D6E656D, 0x6D6E6E61, 0x6D6E726F, 0x6D6E7665):
            stranger.execute("SELECT pg_advisory_lock(%s)", [key])

        with open_owners(two_owners) as owners:
            assert owners.add("anna").name == "anna"
        with open_store(two_owners, migrations=later):
            pass

        assert refused(stranger, "LOCK TABLE schema_migration")


def test_who_waits_for_the_schema_is_told_for_whom(
    two_owners: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roles, "LOCK_S", 1)
    with (
        psycopg.connect(two_owners, application_name="pg_tool") as holder,
        psycopg.connect(two_owners) as waiting,
    ):
        holder.execute("LOCK TABLE schema_migration IN EXCLUSIVE MODE")
        pid = holder.info.backend_pid

        with pytest.raises(StorageFailed, match=rf"process {pid} \(pg_tool\)"):
            roles.lock_schema(PostgresSession(waiting, 0))


def test_an_owner_is_listed_without_a_role(dsn: str, owners: PostgresOwners) -> None:
    assert [each.name for each in owners.owners()] == ["local"]
    named = "SELECT 1 FROM pg_roles WHERE rolname = %s"
    assert rows(dsn, named, role_of(dsn)) == []


def test_the_local_memory_of_many_is_held_to_its_owner(two_owners: str) -> None:
    """No login that owns the tables reads or writes a memory where there are many."""
    with (
        open_store(two_owners) as store,
        store.pool.reading(OWN) as session,
    ):
        assert session.scalar("SELECT current_user") == role_of(two_owners)
        assert session.scalar("SELECT count(*) FROM memory") == 1
