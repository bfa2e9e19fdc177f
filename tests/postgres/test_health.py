"""What a server knows of itself: settings that endanger memory, damage, refusals."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, nullcontext, suppress
from pathlib import Path
from unittest.mock import Mock

import psycopg
import pytest
from psycopg.errors import ProtocolViolation
from support.cases import each_case
from support.fakes import NOON, memory, remember_batch
from support.postgres import Server, open_store, run

from mnemosyned.cli.maintenance.checks import (
    Finding,
    Installation,
    Severity,
    check_server,
)
from mnemosyned.config.settings import Config
from mnemosyned.errors import (
    ConfigInvalid,
    DatabaseUnreachable,
    SchemaTooNew,
    StorageFailed,
)
from mnemosyned.memory.capture import WatchedFile
from mnemosyned.storage.postgres import health
from mnemosyned.storage.postgres.health import line_exposure
from mnemosyned.storage.postgres.store import PostgresStore

pytestmark = pytest.mark.postgres

WAIT_S = 60


def found(look: Callable[[], list[str]]) -> list[str]:
    """What is found in the end: the server's own counts come a moment later."""
    ends = time.monotonic() + WAIT_S
    while not (told := look()) and time.monotonic() < ends:
        time.sleep(0.1)
    return told


@pytest.fixture(scope="module")
def reliable() -> Iterator[PostgresStore]:
    """A memory on a server that keeps what it acknowledges."""
    with Server() as own, open_store(own.new_database()) as store:
        yield store


def test_a_server_that_keeps_what_it_acknowledges_needs_no_warning(
    reliable: PostgresStore,
) -> None:
    assert reliable.maintenance.warnings() == []
    assert reliable.maintenance.problems() == []
    reliable.maintenance.ensure_durable()


def test_settings_that_endanger_memory_are_named_the_gravest_first() -> None:
    with Server(fsync="off", full_page_writes="off") as own:
        dsn = own.new_database()
        run(dsn, f'ALTER DATABASE "{dsn_name(dsn)}" SET synchronous_commit = off')
        with open_store(dsn) as store:
            fsync, pages, commits = store.maintenance.warnings()

    assert fsync.startswith("fsync is off")
    assert "destroy the whole database" in fsync
    assert pages.startswith("full_page_writes is off")
    assert commits.startswith("synchronous_commit is off")
    assert all(each.endswith("set it to on") for each in (fsync, pages, commits))


@each_case("ahead_s", [7_200, -86_400, 20])
def test_a_clock_that_is_not_the_servers_is_named(
    reliable: PostgresStore, ahead_s: int
) -> None:
    present = time.time
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(time, "time", lambda: present() + ahead_s)
        named = reliable.maintenance.warnings()

    which = "ahead of" if ahead_s > 0 else "behind"
    assert all(f"s {which} the database server's" in warning for warning in named)
    assert len(named) == (abs(ahead_s) > health.CLOCK_OFF_MAX_S)


def test_an_archive_that_fails_is_named() -> None:
    settings = {
        "archive_mode": "on",
        "archive_command": "false",
        "wal_level": "replica",
    }
    with Server(**settings) as own, open_store(own.new_database()) as store:
        remember_batch(store, memory("1"))
        run(own.dsn("postgres"), "SELECT pg_switch_wal()")

        (warning,) = found(store.maintenance.warnings)

    assert warning.startswith("the server cannot archive 0")


def test_an_unfinished_index_is_named(dsn: str, store: PostgresStore) -> None:
    remember_batch(store, memory("1"), memory("2"))
    with pytest.raises(psycopg.errors.UniqueViolation):
        run(dsn, "CREATE UNIQUE INDEX CONCURRENTLY twice ON memory (session_id)")

    (problem,) = store.maintenance.problems()

    assert problem.startswith("the index twice is not usable")
    run(dsn, "DROP INDEX twice")
    assert store.maintenance.problems() == []


def test_damage_is_refused_and_named() -> None:
    with Server() as own:
        dsn = own.new_database()
        with open_store(dsn) as store:
            remember_batch(store, memory("1"))
        with psycopg.connect(dsn) as connection:
            (file,) = connection.execute(
                "SELECT pg_relation_filepath('memory')"
            ).fetchone() or ("",)
        own.stop()
        with (own.data / file).open("r+b") as table:
            table.seek(8_000)
            table.write(b"damaged!")
        own.start()
        with open_store(dsn) as store:
            with pytest.raises(StorageFailed, match="damaged: restore a backup"):
                store.memories.get("1")

            (problem,) = found(store.maintenance.problems)

    assert problem.startswith("the server met damaged pages")


def faults_of(check: Callable[[], object]) -> list[str]:
    """The message with which a check fails, or none."""
    try:
        check()
    except StorageFailed as failure:
        return [failure.message]
    return []


def test_a_server_that_takes_no_writes_is_ready_for_who_began_on_it_alone() -> None:
    read_only = "ALTER SYSTEM SET default_transaction_read_only = on"
    with Server() as own:
        dsn = own.new_database()
        with open_store(dsn) as store:
            store.maintenance.check_ready()
            run(own.dsn("postgres"), read_only, "SELECT pg_reload_conf()")

            (message,) = found(lambda: faults_of(store.maintenance.ensure_durable))
            assert message.startswith("nothing can be stored")
            with pytest.raises(StorageFailed, match="connect to the primary"):
                remember_batch(store, memory("1"))
            assert found(lambda: faults_of(store.maintenance.check_ready))
            with open_store(dsn) as standby:
                standby.maintenance.check_ready()


def test_a_newer_schema_is_not_ready(dsn: str, store: PostgresStore) -> None:
    newer = (
        "INSERT INTO schema_migration (version, name, oldest) VALUES (9999, 'x', 9999)"
    )
    run(dsn, newer)
    with pytest.raises(SchemaTooNew):
        store.maintenance.check_ready()
    run(dsn, "DELETE FROM schema_migration WHERE version = 9999")
    store.maintenance.check_ready()


def test_a_server_that_is_full_is_ready_and_one_that_is_gone_is_not() -> None:
    with Server(max_connections="10", superuser_reserved_connections="0") as own:
        dsn = own.new_database()
        with open_store(dsn) as store, ExitStack() as others:
            remember_batch(store, memory("1"))
            with suppress(psycopg.OperationalError):
                for _ in range(11):
                    others.enter_context(closing(psycopg.connect(dsn)))
            with pytest.raises(psycopg.OperationalError, match="too many"):
                psycopg.connect(dsn)
            store.maintenance.check_ready()
            others.close()
            own.stop()
            with pytest.raises(DatabaseUnreachable):
                store.maintenance.check_ready()


def test_a_flush_takes_what_was_written_lazily_to_the_disk() -> None:
    """The server's own writer, which would do so in a moment, is told to wait."""
    state = WatchedFile(path="/w/a", file="1:2", size=1, modified_ns=2, read_at=NOON)
    with Server(wal_writer_delay="10s") as own:
        dsn = own.new_database()
        with open_store(dsn) as store:
            store.watches.keep_file(state)
            store.maintenance.flush()
            own.kill()
        (own.data / "postmaster.pid").unlink()
        own.start()
        with open_store(dsn) as store:
            assert store.watches.file("/w/a") == state


def test_a_backup_is_left_to_the_servers_tools(dsn: str, tmp_path: Path) -> None:
    tools = r"pgBackRest.*pg_dump"
    with open_store(dsn) as store, pytest.raises(StorageFailed, match=tools):
        store.maintenance.back_up(tmp_path / "memory.db")
    assert list(tmp_path.iterdir()) == []


def test_the_longest_write_is_known(store: PostgresStore) -> None:
    with store.pool.writing(store.owner) as session:  # a slow one
        session.execute("SELECT pg_sleep(0.2)")

    assert 0.2 <= store.maintenance.longest_write_s() < WAIT_S


def dsn_name(dsn: str) -> str:
    return dsn.split("@/")[1].split("?", maxsplit=1)[0]


def exposures(installation: Installation) -> list[Finding]:
    findings = check_server(installation)
    return [each for each in findings if each.severity is Severity.WARNING]


def test_the_doctor_names_a_database_open_to_all(dsn: str, tmp_path: Path) -> None:
    nowhere = tmp_path / "none"
    installation = Installation(
        config=Config(database=dsn),
        config_file=nowhere,
        database=nowhere,
        socket=nowhere,
    )

    (finding,) = exposures(installation)
    run(dsn, f'REVOKE ALL ON DATABASE "{dsn_name(dsn)}" FROM PUBLIC')

    assert f"REVOKE ALL ON DATABASE {dsn_name(dsn)} FROM PUBLIC" in finding.text
    assert exposures(installation) == []


@pytest.mark.parametrize(
    ("host", "address", "sslmode", "encrypted", "said"),
    [
        ("/var/run/postgresql", "", "prefer", False, ""),
        ("localhost", "127.0.0.1", "prefer", False, ""),
        ("localhost", "::1", "prefer", False, ""),
        ("db.example", "10.0.0.7", "prefer", False, "is not encrypted"),
        ("db.example", "10.0.0.7", "require", True, "sslmode is require"),
        ("db.example", "10.0.0.7", "verify-ca", True, "sslmode is verify-ca"),
        ("db.example", "10.0.0.7", "verify-full", True, ""),
    ],
)
def test_a_line_on_which_others_may_read_is_named(
    host: str, address: str, sslmode: str, said: str, *, encrypted: bool
) -> None:
    text = line_exposure(host, address, sslmode=sslmode, encrypted=encrypted)

    assert said in text
    assert bool(text) is bool(said)


@pytest.mark.parametrize(
    ("said", "is_refused"),
    [
        ("transaction blocks not allowed in statement pooling mode", True),
        ("server login has been failing, try again later", False),
        ("query_wait_timeout", False),
    ],
)
def test_an_outage_behind_a_pooler_is_no_mistake_in_the_settings(
    dsn: str,
    monkeypatch: pytest.MonkeyPatch,
    said: str,
    is_refused: bool,  # noqa: FBT001
) -> None:
    with closing(psycopg.connect(dsn, autocommit=True)) as first:
        pooled = Mock(transaction=Mock(side_effect=ProtocolViolation(said)))
        connections = iter([first, pooled])
        monkeypatch.setattr(
            health, "connect_once", lambda _: nullcontext(next(connections))
        )

        if is_refused:
            with pytest.raises(ConfigInvalid, match="pool_mode = session"):
                health.check_server(dsn)
        else:
            assert not health.check_server(dsn)
