"""A daemon on a standby: it answers from what the primary has, says that it writes nothing, and rests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from e2e.daemons import eventually, mnem, running
from postgres.daemons import serve_owners
from psycopg.conninfo import conninfo_to_dict
from support.postgres import Server, open_owners, open_store

from mnemosyned.errors import StorageFailed
from mnemosyned.memory.engine_ports import Scope

pytestmark = pytest.mark.postgres

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
            owners.add("anna")
            token = owners.issue("anna", "test", tuple(Scope)).secret
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
                assert b"the server is a standby" in looked.stdout
                assert service.status("/v1/recall", token, query="key") == 200
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
