"""A daemon on a standby: it answers from what the primary has, says that it writes nothing, and rests."""

from __future__ import annotations

from collections.abc import Iterator
from http.client import HTTPConnection

import pytest
from e2e.conftest import Start, start
from e2e.daemons import WAIT_S, eventually, mnem
from psycopg.conninfo import conninfo_to_dict
from support.postgres import Server

from mnemosyned.errors import StorageFailed
from mnemosyned.memory.engine_ports import Scope
from mnemosyned.paths import shipped
from mnemosyned.storage.postgres.store import open_owners, open_store

__all__ = ["start"]

pytestmark = pytest.mark.postgres

MIGRATIONS = shipped("migrations") / "postgres"
SETTINGS = {
    "MNEMOSYNE_AUTO_SLEEP": "true",
    "MNEMOSYNE_SLEEP_TICK_S": "0.1",
    "MNEMOSYNE_SLEEP_INTERVAL_MINUTES": "0.01",
    "MNEMOSYNE_SLEEP_ON_SHUTDOWN": "true",
}


@pytest.fixture(scope="module")
def primary() -> Iterator[Server]:
    server = Server(fsync="off")
    server.start()
    yield server
    server.remove()


def test_a_daemon_on_a_standby_answers_questions_and_refuses_the_rest(
    start: Start, primary: Server
) -> None:
    dsn = primary.new_database()
    first = start("--database", dsn)
    first.post("remember", id="key", content="The cellar key hangs behind the flour.")
    first.post("remember", id="old", content="Tea.", created_at="2026-01-01T10:00:00Z")
    with open_owners(dsn, migrations=MIGRATIONS) as owners:
        owners.add("anna")
        token = owners.issue("anna", "test", tuple(Scope)).secret
    standby = primary.standby()
    try:
        copied = standby.dsn(str(conninfo_to_dict(dsn)["dbname"]))
        daemon = start(
            *("--database", copied),
            MNEMOSYNE_LISTEN="127.0.0.1:0",
            MNEMOSYNE_OWNERS_SERVE="true",
            **SETTINGS,
        )

        assert daemon.post("recall", query="cellar key").body["hits"][0]["id"] == "key"
        assert daemon.post("get", id="key").status == 200
        assert len(daemon.post("list").body["memories"]) == 2
        assert "flour" in str(
            daemon.post("context", message="Where is the cellar key?").body
        )
        for verb, fields in (
            ("remember", {"content": "tea"}),
            ("forget", {"id": "key"}),
            ("edit", {"id": "key", "text": "other"}),
            ("sleep", {"force": True}),
        ):
            answer = daemon.post(verb, **fields)
            assert (answer.status, answer.error[0]) == (503, "storage_failed"), verb
            assert "standby" in answer.body["error"]["message"], verb
        status = daemon.post("status").body
        assert "standby" in str(status["warnings"])
        looked = mnem("doctor", home=daemon.home, MNEMOSYNE_DATABASE=copied)
        assert b"the server is a standby" in looked.stdout
        (line,) = daemon.events("listening")
        port = int(line["address"].rpartition(":")[2])
        connection = HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
        connection.request(
            "POST",
            "/v1/recall",
            '{"query": "key"}',
            {"Authorization": f"Bearer {token}"},
        )
        assert connection.getresponse().status == 200
        connection.close()
        first.post("remember", id="later", content="Flour comes on Friday.")
        eventually(lambda: daemon.post("get", id="later").status == 200, "it follows")
        assert daemon.stop() == 0
        assert not daemon.events("cycle_failed")
        assert "Traceback" not in daemon.log.read_text()
    finally:
        standby.remove()


def test_a_standby_with_earlier_tables_is_left_to_its_primary(primary: Server) -> None:
    dsn = primary.new_database()
    standby = primary.standby()
    try:
        name = str(conninfo_to_dict(dsn)["dbname"])
        with (
            pytest.raises(StorageFailed, match="on the primary first"),
            open_store(standby.dsn(name), migrations=MIGRATIONS),
        ):
            pass
    finally:
        standby.remove()
