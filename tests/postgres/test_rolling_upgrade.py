"""Two versions over one database: the older goes on where a migration suits it, or says no."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from support.fakes import memory, remember_batch

from mnemosyned.errors import (
    DatabaseUnreachable,
    MnemosynedError,
    SchemaTooNew,
    StorageFailed,
)
from mnemosyned.paths import shipped
from mnemosyned.storage.postgres.schema import upgrade
from mnemosyned.storage.postgres.store import PostgresStore, open_store

pytestmark = pytest.mark.postgres

SHIPPED = shipped("migrations") / "postgres"
KNOWN = int(max(file.name for file in SHIPPED.glob("*.sql"))[:4])
CHANGE = "CREATE TABLE later (owner bigint PRIMARY KEY);\n"


@pytest.fixture
def older(dsn: str) -> Iterator[PostgresStore]:
    """The store of a daemon of this version, which runs."""
    with open_store(dsn, migrations=SHIPPED) as store:
        remember_batch(store, memory("before"))
        yield store


def newer(folder: Path, *changes: str) -> Path:
    """The migrations of a version that has more of them."""
    migrations = folder / "newer"
    shutil.copytree(SHIPPED, migrations)
    for number, change in enumerate(changes, start=KNOWN + 1):
        (migrations / f"{number:04}_later.sql").write_text(change)
    return migrations


def upgrade_to(dsn: str, migrations: Path) -> None:
    """Start and end a daemon of that version."""
    with open_store(dsn, migrations=migrations) as store:
        remember_batch(store, memory("between"))


def test_an_older_daemon_goes_on_beside_a_migration_that_suits_it(
    older: PostgresStore, dsn: str, tmp_path: Path
) -> None:
    suitable = f"-- compatible with {KNOWN}\n{CHANGE}"
    upgrade_to(dsn, newer(tmp_path, suitable))

    remember_batch(older, memory("after"))
    with open_store(dsn, migrations=SHIPPED) as another:
        found = another.memories.working(["before", "between", "after"])

    assert [record.id for record in found] == ["before", "between", "after"]
    assert upgrade(dsn, SHIPPED) == KNOWN


@pytest.mark.parametrize(
    "unsuitable",
    [
        (CHANGE,),
        (f"-- compatible with {KNOWN + 1}\n{CHANGE}",),
        (f"-- compatible with {KNOWN}\n{CHANGE}", "DROP TABLE later;\n"),
    ],
)
def test_an_older_daemon_refuses_all_beside_one_that_does_not(
    older: PostgresStore, dsn: str, tmp_path: Path, unsuitable: tuple[str, ...]
) -> None:
    migrations = newer(tmp_path, *unsuitable)
    upgrade_to(dsn, migrations)
    needed = f"needs a mnemosyned that knows {KNOWN + len(unsuitable)}; this one"

    with pytest.raises(SchemaTooNew, match=needed), open_store(dsn, migrations=SHIPPED):
        pass
    # One that runs has lost its connections, and gets no other.
    with pytest.raises(MnemosynedError):
        remember_batch(older, memory("after"))
    for _ in range(2):
        with pytest.raises(SchemaTooNew, match=needed):
            older.memories.working(["before"])
    with open_store(dsn, migrations=migrations) as later:
        assert len(later.memories.working(["before", "between", "after"])) == 2


def test_the_first_migrations_end_nobody_s_connection(dsn: str, tmp_path: Path) -> None:
    with psycopg.connect(dsn, autocommit=True, application_name="mnemosyned") as beside:
        beside.execute("DROP SCHEMA public CASCADE")
        beside.execute("CREATE SCHEMA public")
        assert upgrade(dsn, newer(tmp_path, CHANGE)) == KNOWN + 1
        assert beside.execute("SELECT 1").fetchone() == (1,)


def test_a_migration_waits_for_nobody_s_transaction_and_says_whose_it_is(
    older: PostgresStore, dsn: str, tmp_path: Path
) -> None:
    alters = "ALTER TABLE memory ADD COLUMN later integer;\n"
    migrations = newer(tmp_path, f"-- compatible with {KNOWN}\n{alters}")
    with psycopg.connect(dsn, application_name="nightly dump") as dump:
        dump.execute("SELECT count(*) FROM memory")
        with pytest.raises(DatabaseUnreachable, match="nightly dump") as raised:
            upgrade(dsn, migrations)
        assert f"process {dump.info.backend_pid}" in raised.value.message
        assert len(older.memories.working(["before"])) == 1

    assert upgrade(dsn, migrations) == KNOWN + 1


def test_tables_from_before_the_first_release_are_named(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("ALTER TABLE schema_migration DROP COLUMN oldest")

    with (
        pytest.raises(StorageFailed, match="before the first release"),
        open_store(dsn, migrations=SHIPPED),
    ):
        pass
