"""The database is killed and started again under load: nothing acknowledged is lost."""

import os
import random
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from e2e.conftest import Start, start
from e2e.daemons import Daemon, eventually, mnem, running
from postgres.daemons import serve_owners
from psycopg.conninfo import conninfo_to_dict
from support.fakes import FakeClock, FakeSummarizer, memory, remember_batch, trio
from support.postgres import Server, open_owners, open_store, rows
from support.steady_clients import SteadyClient

from mnemosyned import Client
from mnemosyned.config.settings import SettingsInForce
from mnemosyned.errors import DatabaseUnreachable, NotFound, StorageFailed
from mnemosyned.memory.consolidation import CycleStatus, Trigger
from mnemosyned.memory.engine_ports import CODE_CHARS, Scope, format_code
from mnemosyned.memory.values import MemoryRecord, Tier
from mnemosyned.paths import shipped
from mnemosyned.sleep.context import CycleRequest, SummarizerLease
from mnemosyned.sleep.cycle import SleepCycle
from mnemosyned.storage.postgres import connections
from mnemosyned.storage.postgres.connections import connect_once, translate_error
from mnemosyned.storage.postgres.schema import upgrade

__all__ = ["start"]

pytestmark = pytest.mark.postgres

KILLS = int(os.environ.get("KILLS", "5"))
CLIENTS = 4
FULL = "no connection left"
UP_S = (0.3, 1.2)
DOWN_S = (0.0, 0.5)


def test_a_killed_server_loses_nothing_kept(start: Start, server: Server) -> None:
    chance = random.Random(7)
    daemon = start("--database", server.new_database())
    writers = [SteadyClient(number, daemon.client) for number in range(CLIENTS)]
    try:
        for _ in range(KILLS):
            time.sleep(chance.uniform(*UP_S))
            server.kill()
            time.sleep(chance.uniform(*DOWN_S))
            server.start()
        time.sleep(UP_S[0])
    finally:
        for writer in writers:
            writer.stop()

    errors = sum((writer.errors for writer in writers), Counter[str]())
    assert errors.keys() == {"database_unreachable"}, daemon.events("request_failed")
    assert [id for writer in writers for id in writer.missed] == []
    acknowledged = {id for writer in writers for id in writer.acknowledged}
    assert len(acknowledged) > KILLS * CLIENTS
    with daemon.client() as client:
        lost = [id for id in sorted(acknowledged) if not is_kept(client, id)]
    assert lost == []
    assert tracebacks(daemon) == []


def tracebacks(daemon: Daemon) -> list[object]:
    """Logged failures that are treated as if they were of our making."""
    return [event for event in daemon.events() if "exception" in event]


def is_kept(client: Client, id: str) -> bool:
    try:
        return client.get(id).memory is not None
    except NotFound:
        return False


def test_calls_say_that_the_server_is_down(start: Start, server: Server) -> None:
    daemon = start("--database", server.new_database())
    daemon.post("remember", content="The cellar key hangs behind the flour.", id="key")
    server.kill()

    def seconds_to_say_so(verb: str, fields: dict[str, object]) -> float:
        began = time.monotonic()
        answer = daemon.post(verb, **fields)
        assert answer.status == 503, verb
        assert answer.error[0] == "database_unreachable", verb
        message = answer.body["error"]["message"]
        if verb in ("recall", "status", "list"):
            assert "kept" not in message, verb
        return time.monotonic() - began

    calls: list[tuple[str, dict[str, object]]] = [
        ("recall", {"query": "key"}),
        ("remember", {"content": "tea"}),
        ("status", {}),
        ("list", {}),
        ("sleep", {"force": True}),
        ("forget", {"id": "key"}),
    ]
    try:
        for verb, fields in calls:
            # The machine may stand still for the first try.
            took_s = (seconds_to_say_so(verb, fields) for _ in range(2))
            assert any(each < 5 for each in took_s), verb
        shown = daemon.mnem("recall", "key")
        assert shown.returncode != 0
        assert b"the database cannot be reached" in shown.stderr
        assert len(shown.stderr.splitlines()) == 1
    finally:
        server.start()

    answer = daemon.post("recall", query="cellar key")
    assert answer.body["hits"][0]["id"] == "key"
    assert daemon.process.poll() is None
    assert tracebacks(daemon) == []
    assert daemon.stop() == 0


def test_no_owner_is_told_where_the_database_is(tmp_path: Path, server: Server) -> None:
    database = server.new_database()
    with (
        open_owners(database) as owners,
        serve_owners(tmp_path, database, owners) as service,
    ):
        known = service.token("ada")
        unknown = f"{known[:-1]}_"
        assert service.status("/v1/recall", known, query="key") == 200
        code = {"code": format_code(5, "A" * CODE_CHARS), "name": "laptop"}
        server.kill()
        try:
            refusals = [
                service.ask("/v1/recall", unknown, {"query": "key"}),
                service.ask("/v1/recall", known, {"query": "key"}),
                service.ask("/v1/login", None, code),
            ]
        finally:
            server.start()

        for status, _, answer in refusals:
            assert (status, answer["error"]["code"]) == (503, "database_unreachable")
            assert "PostgreSQL" not in answer["error"]["message"]
        logged = service.daemon.events("request_failed")
        assert all("PostgreSQL says" in event["reason"] for event in logged)
        assert len(logged) == len(refusals)


def test_a_daemon_stops_while_the_server_is_down(start: Start, server: Server) -> None:
    daemon = start("--database", server.new_database())
    daemon.post("remember", content="tea")
    server.kill()
    try:
        assert daemon.stop() == 0, daemon.log.read_text()
    finally:
        server.start()


def test_cycles_go_on_once_the_server_is_back(start: Start, server: Server) -> None:
    daemon = start(
        *("--database", server.new_database()),
        MNEMOSYNE_AUTO_SLEEP="true",
        MNEMOSYNE_SLEEP_INTERVAL_MINUTES="0.01",
        MNEMOSYNE_SLEEP_TICK_S="0.2",
    )
    server.kill()
    eventually(
        lambda: daemon.events("cycle_failed"), "a cycle without the server failed"
    )
    server.start()

    daemon.post("remember", content="tea", created_at="2026-01-01T10:00:00Z")

    def archived() -> bool:
        tiers = daemon.post("status").body["tiers"]
        return bool(tiers["archive"]["count"] == 1)

    eventually(archived, "the next cycle did its work")
    assert tracebacks(daemon) == []


def test_the_next_cycle_does_the_rest(
    server: Server, settings: SettingsInForce
) -> None:
    dsn = server.new_database()
    killed: list[str] = []

    def kill(memories: Sequence[MemoryRecord]) -> None:
        if not killed:
            killed.append(memories[0].id)
            server.kill()

    with open_store(dsn) as opened:
        store = opened
        for name in "abc":
            remember_batch(store, *trio(name, source=name))
        lease = SummarizerLease(FakeSummarizer(meanwhile=kill))
        cycle = SleepCycle(
            store=store, lease=lease, clock=FakeClock(), settings=settings
        )
        request = CycleRequest(trigger=Trigger.EXPLICIT)
        with pytest.raises(DatabaseUnreachable, match="nothing was consolidated"):
            cycle.run(request)
        server.start()

        report = cycle.run(request)

        assert (report.status, report.evicted) == (CycleStatus.DONE, 9)
        assert len(killed) == 1
        totals = store.maintenance.totals()
        assert (totals[Tier.WORKING].count, totals[Tier.ARCHIVE].count) == (0, 9)
        assert len(store.sleep.log(limit=99)) == 3


def test_a_connection_that_the_server_ended_is_not_noticed(server: Server) -> None:
    dsn = server.new_database()
    ended = (
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "  # waits for the end
        "WHERE application_name = 'mnemosyned' AND datname = current_database()"
    )
    with open_store(dsn) as store:
        assert store.memories.working_count() == 0
        for call in (
            store.memories.working_count,
            store.maintenance.flush,
            lambda: remember_batch(store, memory("a")),
        ):
            assert rows(dsn, ended)
            call()
        assert store.memories.working_count() == 1


@pytest.mark.parametrize(
    "connect",
    [connect_once, lambda dsn: upgrade(dsn, shipped("migrations") / "postgres")],
    ids=["once", "schema"],
)
def test_a_server_that_is_silent_is_given_up(
    connect: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connections._SETTINGS, "connect_timeout", 2)  # noqa: SLF001

    with socket.create_server(("127.0.0.1", 0)) as silent:
        dsn = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/none"
        began = time.monotonic()
        with pytest.raises(psycopg.OperationalError):
            connect(dsn)

    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        ("the database system is starting up", "is starting"),
        ("the database system is shutting down", "is stopping"),
        ("the database system is in recovery mode", "recovering"),
        ("the database system is not yet accepting connections", "recovering"),
        ("sorry, too many clients already", FULL),
        ("remaining connection slots are reserved for roles with privileges", FULL),
        ('too many connections for role "role database"', FULL),
        ('too many connections for database "memory"', FULL),
        ('role "anna" does not exist', "no such user"),
        ('role "anna" is not permitted to log in', "not let"),
        ('database "memory" does not exist', "no such database"),
        ('permission denied for database "memory"', "grant"),
        ('password authentication failed for user "a"', "password"),
    ],
)
def test_a_refused_connection_is_explained(answer: str, advice: str) -> None:
    refused = psycopg.OperationalError(f"connection failed: FATAL:  {answer}")

    failure = translate_error(refused)

    passes = ("is starting", "is stopping", "recovering", FULL)
    assert type(failure) is (DatabaseUnreachable if advice in passes else StorageFailed)
    assert advice in str(failure)
    assert ("no such" in str(failure)) == ("no such" in advice)


# A daemon on a standby answers from what the primary has, says that it writes nothing, and rests.


SETTINGS = {
    "MNEMOSYNE_AUTO_SLEEP": "true",
    "MNEMOSYNE_SLEEP_TICK_S": "0.1",
    "MNEMOSYNE_SLEEP_INTERVAL_MINUTES": "0.01",
    "MNEMOSYNE_SLEEP_ON_SHUTDOWN": "true",
}


@pytest.fixture(scope="module")
def primary() -> Iterator[Server]:
    with Server(fsync="off") as server:
        yield server


@contextmanager
def standing_by(primary: Server, dsn: str) -> Iterator[str]:
    standby = primary.standby()
    try:
        yield standby.dsn(str(conninfo_to_dict(dsn)["dbname"]))
    finally:
        standby.remove()


def test_a_daemon_on_a_standby_only_reads(primary: Server, tmp_path: Path) -> None:
    dsn = primary.new_database()
    with running(tmp_path / "first", "--database", dsn) as first:
        first.post("remember", id="key", content="The cellar key is in the flour.")
        first.post("remember", content="Tea.", created_at="2026-01-01T10:00:00Z")
        with open_owners(dsn) as owners:
            anna = owners.add("anna")
            token = owners.issue("anna", "test", tuple(Scope)).secret
        with open_store(dsn, owner=anna.number) as store:
            remember_batch(store, memory("plum", "The plums are ripe in September."))
        with standing_by(primary, dsn) as copied:
            home = tmp_path / "other"
            with serve_owners(home, copied, owners, **SETTINGS) as service:
                daemon = service.daemon
                (hit,) = daemon.post("recall", query="cellar key").body["hits"]
                assert hit["id"] == "key"
                assert daemon.post("get", id="key").status == 200
                assert len(daemon.post("list").body["memories"]) == 2
                asked = daemon.post("context", message="Where is the cellar key?")
                assert "flour" in str(asked.body)
                for verb, fields in (
                    ("remember", {"content": "tea"}),
                    ("forget", {"id": "key"}),
                    ("edit", {"id": "key", "text": "other"}),
                    ("sleep", {"force": True}),
                ):
                    answer = daemon.post(verb, **fields)
                    assert (answer.status, answer.error[0]) == (503, "storage_failed")
                    assert "standby" in answer.body["error"]["message"], verb
                assert "standby" in str(daemon.post("status").body["warnings"])
                looked = mnem("doctor", home=daemon.home, MNEMOSYNE_DATABASE=copied)
                assert b"as a standby does" in looked.stdout
                assert service.status("/v1/recall", token, query="key") == 200
                asked_about = {"message": "When are the plums ripe?"}
                assert service.status("/v1/context", token, **asked_about) == 200
                first.post("remember", id="later", content="Flour comes on Friday.")
                eventually(
                    lambda: daemon.post("get", id="later").status == 200, "it follows"
                )
                assert daemon.stop() == 0
                assert not daemon.events("cycle_failed")
                assert "Traceback" not in daemon.log.read_text()


def test_a_standby_with_earlier_tables_is_left_to_its_primary(primary: Server) -> None:
    with (
        standing_by(primary, primary.new_database()) as copied,
        pytest.raises(StorageFailed, match="on the primary first"),
        open_store(copied),
    ):
        pass
