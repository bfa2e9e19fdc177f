"""What was forgotten is in no file of the server after `mnem db purge`, read byte by byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
from click.testing import CliRunner
from support.fakes import memory, remember_batch
from support.postgres import Server

from mnemosyned.assembly.build import OpenMemory, open_memory
from mnemosyned.cli.maintenance.servers import db
from mnemosyned.config import Config
from mnemosyned.errors import ConfigInvalid
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.paths import shipped
from mnemosyned.storage.postgres import purge as rewriting
from mnemosyned.storage.postgres.store import open_owners, open_store
from mnemosyned.verbs.conversation import Learn, RemoveLearning
from mnemosyned.verbs.memories import EditMemory, Remember, Tag
from mnemosyned.verbs.retention import Forget
from mnemosyned.verbs.upkeep import Sleep

pytestmark = pytest.mark.postgres
MIGRATIONS = shipped("migrations") / "postgres"
COUNT = 60
MARKERS = [f"zqx{number:02}jvkwyz" for number in range(COUNT)]
PLACES = ("content", "source", "session", "tag", "edit", "learning")
GRANTS = (
    "GRANT pg_checkpoint TO mnemosyne",
    "GRANT EXECUTE ON FUNCTION pg_switch_wal(), pg_ls_waldir() TO mnemosyne",
    "CREATE ROLE mnemosyned_request_memory NOLOGIN",
    "GRANT mnemosyned_request_memory TO mnemosyne",
)
"""What docs/postgres.md has an administrator grant."""


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server(fsync="off", min_wal_size="64MB", max_wal_size="256MB")
    server.start()
    yield server
    server.remove()


@pytest.fixture
def admin(server: Server) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """An administrator of a database that is a plain user's."""
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        connection.execute("CREATE ROLE mnemosyne LOGIN")
        connection.execute("CREATE DATABASE memory OWNER mnemosyne")
    with psycopg.connect(server.dsn("memory"), autocommit=True) as connection:
        yield connection


@pytest.fixture
def dsn(
    server: Server,
    admin: psycopg.Connection[tuple[object, ...]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """The database as the settings name it."""
    assert admin.info.dbname == "memory"
    dsn = server.dsn("memory").replace("postgres@", "mnemosyne@")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("MNEMOSYNE_DATABASE", dsn)
    return dsn


def found(server: Server) -> set[str]:
    """The markers that can be read in a file of the server's data directory."""
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        connection.execute("CHECKPOINT")
    contents = [path.read_bytes() for path in server.data.rglob("*") if path.is_file()]
    assert len(contents) > 1_000
    return {
        marker
        for marker in MARKERS
        if any(marker.encode() in content for content in contents)
    }


def purge() -> tuple[int, dict[str, Any]]:
    """`mnem db purge`: its exit code and its answer."""
    result = CliRunner().invoke(
        db, ["purge", "--json"], catch_exceptions=False, standalone_mode=False
    )
    return result.return_value, json.loads(result.stdout)


def plant(opened: OpenMemory) -> list[str]:
    """Plant each marker in its place, among other memories; the ids of the learnings."""
    call, learned = opened.service.call, list[str]()
    for number, marker in enumerate(MARKERS):
        place, id = PLACES[number % len(PLACES)], f"secret{number}"
        call(Remember(f"The harbor of day {number} was calm.", session="talk"))
        if place == "learning":
            learned.append(call(Learn(f"Never write {marker} anywhere.")).learning.id)
            continue
        says = place in ("content", "edit")
        text = f"The word was {marker}, she said." if says else "She said a word."
        session = marker if place == "session" else "talk"
        source = marker if place == "source" else "chat"
        call(Remember(f"{text} {number}", id=id, session=session, source=source))
        if place == "edit":
            call(EditMemory(id, text=f"She said another word {number}."))
        if place == "tag":
            call(Tag([id], tags=[marker]))
    return learned


def test_what_was_forgotten_is_in_no_file_after_a_purge(
    server: Server, dsn: str, admin: psycopg.Connection[tuple[object, ...]]
) -> None:
    for grant in GRANTS:
        admin.execute(grant.encode())
    with open_memory(Config(database=dsn, auto_sleep=False)) as opened:
        learned = plant(opened)
        slept = opened.service.call(Sleep(force=True))
        assert slept.promoted
        admin.execute("ANALYZE")
        assert found(server) == set(MARKERS)

        ids = [f"secret{n}" for n in range(COUNT) if PLACES[n % 6] != "learning"]
        receipt = opened.service.call(Forget(ids))
        for id in learned:
            opened.service.call(RemoveLearning(id))
        assert receipt.complete
        assert any("mnem db purge" in place for place in receipt.backups)
        left = found(server)
        assert left

        code, answer = purge()

    assert (code, answer["undone"]) == (0, [])
    assert answer["log_files"] > 0
    assert answer["tables"] > 20
    assert found(server) == set()
    assert {"standbys", "archived", "blocks"} <= {
        place.split()[0].rstrip(",") for place in answer["left"]
    }


def test_what_a_removed_owner_said_is_in_no_file_after_a_purge(
    server: Server, dsn: str, admin: psycopg.Connection[tuple[object, ...]]
) -> None:
    for grant in GRANTS:
        admin.execute(grant.encode())
    with open_owners(dsn, migrations=MIGRATIONS) as owners:
        anna = owners.add("anna")
        owners.add(f"{MARKERS[1]}")
        with open_store(dsn, migrations=MIGRATIONS, owner=anna.number) as store:
            given = [memory(text, f"it was {text}") for text in MARKERS]
            remember_batch(cast("MemoryStore", store), *given)
        assert found(server) == set(MARKERS)
        removed = [owners.remove("anna"), owners.remove(MARKERS[1])]
        assert all(each.purged for each in removed)

        assert purge()[0] == 0

    assert found(server) == set()


@pytest.mark.usefixtures("dsn")
def test_without_rights_it_says_what_to_grant(
    admin: psycopg.Connection[tuple[object, ...]],
) -> None:
    first = purge()
    admin.execute(GRANTS[0].encode())
    second = purge()

    undone = first[1]["undone"]
    assert first[0] == second[0] == 1
    assert len(undone) == 1
    assert undone[0].endswith("GRANT pg_checkpoint TO mnemosyne")
    undone = second[1]["undone"]
    assert "pg_switch_wal(), pg_ls_waldir() TO mnemosyne" in undone[0]
    admin.execute(GRANTS[1].encode())
    assert purge()[0] == 0


def test_a_slot_that_keeps_the_log_is_named(
    dsn: str, admin: psycopg.Connection[tuple[object, ...]]
) -> None:
    for grant in GRANTS[:2]:
        admin.execute(grant.encode())
    with open_memory(Config(database=dsn, auto_sleep=False)):
        pass
    admin.execute("SELECT pg_create_physical_replication_slot('lagging', true)")

    held = purge()
    admin.execute("SELECT pg_drop_replication_slot('lagging')")
    released = purge()

    assert held[0] == 1
    assert "the replication slot lagging" in held[1]["undone"][0]
    assert released[0] == 0


def test_a_locked_table_is_named_and_the_others_are_purged(
    server: Server,
    dsn: str,
    admin: psycopg.Connection[tuple[object, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rewriting, "REWRITE_LOCK_S", 1)
    for grant in GRANTS[:2]:
        admin.execute(grant.encode())
    with open_memory(Config(database=dsn, auto_sleep=False)):
        pass
    with psycopg.connect(server.dsn("memory")) as other:
        other.execute("SELECT count(*) FROM tag")
        code, answer = purge()

    assert code == 1
    assert any(step.startswith("the table tag,") for step in answer["undone"])
    assert answer["tables"] > 20


def test_a_file_is_purged_by_every_forget_and_needs_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("MNEMOSYNE_DATABASE", str(tmp_path / "memory.db"))

    with pytest.raises(ConfigInvalid, match="purged by every forget"):
        purge()
    assert not (tmp_path / "memory.db").exists()
