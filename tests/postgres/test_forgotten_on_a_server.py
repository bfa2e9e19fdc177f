"""Forgetting in PostgreSQL: what goes, what holds it up, and that no file of the server has it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from postgres.daemons import serve_owners
from postgres.test_row_security import role_of
from support.engines import postgres_store
from support.fakes import NOON, memory, promotion, remember_batch, trio
from support.leftovers import NOT_PURGED, left_of
from support.postgres import (
    Server,
    open_owned_stores,
    open_owners,
    open_store,
    rows,
    run,
)
from support.settings import config_by_words

from mnemosyned.assembly.build import OpenMemory, open_memory
from mnemosyned.cli.maintenance.databases import db
from mnemosyned.errors import ConfigInvalid, NotFound, StorageFailed
from mnemosyned.memory.engine_ports import LOCAL_OWNER, OWN_SCOPES
from mnemosyned.memory.forgetting import ForgetFilter, Retention
from mnemosyned.storage.common import undo
from mnemosyned.storage.postgres import forgetting as purge
from mnemosyned.storage.postgres.fulltext import phrase_hashes
from mnemosyned.storage.postgres.owners import PostgresOwners
from mnemosyned.storage.postgres.session import PostgresSession
from mnemosyned.storage.postgres.store import PostgresStore
from mnemosyned.text.terms import parse_terms
from mnemosyned.verbs.conversation import Learn, RemoveLearning
from mnemosyned.verbs.memories import EditMemory, Remember, Tag
from mnemosyned.verbs.retention import Forget
from mnemosyned.verbs.upkeep import Sleep

pytestmark = pytest.mark.postgres


MARKER = "zqxjvkwyz"
COUNT = 60
WORDS_TRIED = 300_000


def told(store: PostgresStore, *texts: str) -> None:
    remember_batch(store, *(memory(text, text) for text in texts))


def chosen(store: PostgresStore, question: str) -> list[str]:
    return store.deletion.select(ForgetFilter(terms=parse_terms(question)))


def in_pages(dsn: str) -> int:
    run(dsn, "CHECKPOINT")
    ((folder, file),) = rows(
        dsn, "SELECT current_setting('data_directory'), pg_relation_filepath('memory')"
    )
    content = Path(folder, file).read_bytes()
    return sum(f"{MARKER}{number:03}".encode() in content for number in range(COUNT))


def test_a_purge_takes_the_words_out_of_the_pages(dsn: str) -> None:
    with open_memory(config_by_words(dsn)) as opened:
        call = opened.service.call
        for number in range(COUNT):
            call(Remember(f"{MARKER}{number:03} was said", id=f"secret{number}"))
            call(Remember(f"something else {number}"))
        assert in_pages(dsn) == COUNT

        receipt = call(Forget([f"secret{number}" for number in range(COUNT)]))

        assert in_pages(dsn) < COUNT
        assert (receipt.memories, receipt.complete, receipt.reason) == (COUNT, True, "")
        said = " ".join(receipt.backups)
        for kept in ("unused space", "write-ahead log", "standbys", "base backups"):
            assert kept in said
        run(dsn, "VACUUM FULL memory")
        assert in_pages(dsn) == 0


def test_what_another_still_sees_is_purged_when_it_is_done(
    store: PostgresStore, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge, "SEEN_TRIES", 3)
    told(store, f"{MARKER} was said")
    with psycopg.connect(dsn) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM memory")
        store.deletion.forget([f"{MARKER} was said"])

        assert not store.deletion.purge_deleted()
        assert store.deletion.purge_due()
        assert left_of(store, MARKER) == [NOT_PURGED]

    assert store.deletion.purge_deleted()
    assert left_of(store, MARKER) == []


def test_a_server_of_many_transactions_purges() -> None:
    server = Server()
    server.skip_transactions()
    with server, open_store(server.new_database()) as store:
        told(store, "one")
        store.deletion.forget(["one"])

        assert store.deletion.purge_deleted()


def test_what_is_deleted_while_a_purge_runs_stays_due(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(store, "one", "two")
    store.deletion.forget(["one"])
    vacuum = purge._vacuum_tables  # noqa: SLF001

    def forgetting_meanwhile(session: PostgresSession, tables: Sequence[str]) -> bool:
        clean = vacuum(session, tables)
        store.deletion.forget(["two"])
        return clean

    monkeypatch.setattr(purge, "_vacuum_tables", forgetting_meanwhile)
    store.deletion.purge_deleted()

    assert store.deletion.purge_due()
    monkeypatch.undo()
    assert store.deletion.purge_deleted()
    assert not store.deletion.purge_due()


def test_one_purge_is_for_all_owners_who_forgot_before_it(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    purged: list[object] = []
    vacuum = purge._vacuum_tables  # noqa: SLF001

    def counting(session: PostgresSession, tables: Sequence[str]) -> bool:
        purged.append(tables)
        return vacuum(session, tables)

    monkeypatch.setattr(purge, "_vacuum_tables", counting)
    with open_owned_stores(dsn) as stores:
        names = ("anna", "bert", "carl")
        opened = [stores.store(stores.owners.add(name).number) for name in names]
        for store in opened:
            told(store, "one", "two")
            store.deletion.forget(["one"])
        opened[2].deletion.forget(["two"])

        for store in opened:
            assert store.deletion.purge_deleted()
            assert not store.deletion.purge_due()
        assert purged == [purge.TABLES]

        opened[1].deletion.forget(["two"])
        assert opened[1].deletion.purge_deleted()
        assert purged == [purge.TABLES] * 2


@pytest.fixture
def plain(dsn: str) -> Iterator[str]:
    """The database as a plain user has it, who owns all of it but one table."""
    owned = rows(
        dsn,
        "SELECT quote_ident(relname) FROM pg_class "
        "WHERE relnamespace = 'public'::regnamespace "
        "AND relkind IN ('r', 'v') AND relname != 'tag'",
    )
    run(
        dsn,
        "CREATE ROLE plain LOGIN",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON tag TO plain",
        *(f"ALTER TABLE {name} OWNER TO plain" for (name,) in owned),
    )
    yield dsn.replace("postgres@", "plain@")
    run(dsn, "REASSIGN OWNED BY plain TO postgres")
    run(dsn, "DROP OWNED BY plain", "DROP ROLE plain")


def test_anothers_table_is_not_purged(store: PostgresStore, plain: str) -> None:
    told(store, "one")
    store.deletion.forget(["one"])

    with (
        open_store(plain) as other,
        pytest.raises(StorageFailed, match="the table tag belongs to another user"),
    ):
        other.deletion.purge_deleted()

    assert store.deletion.purge_due()


def test_a_receipt_promises_no_purge_that_the_daemon_may_not_run(
    dsn: str, served: str, owners: PostgresOwners, tmp_path: Path
) -> None:
    with serve_owners(tmp_path, served, owners) as service:
        token = service.token("anna")
        owners.add("team", is_group=True)
        owners.join("team", "anna", OWN_SCOPES)
        if (
            rows(dsn, "SELECT current_setting('server_version_num')::int")[0][0]
            > 17_00_00
        ):
            run(
                dsn,
                f'REVOKE MAINTAIN ON ALL TABLES IN SCHEMA public FROM "{role_of(dsn)}"',
            )
        with service.client(token) as client:
            client.remember("The mill is sold.", id="one")
            receipt = client.forget("one", now=True)
            with pytest.raises(NotFound, match="no memory 'one'"):
                client.forget("one", now=True)
            with service.client(token, owner="team") as member:
                member.remember("The inn is sold.", id="two")
            assert client.forget("two").memories == 1
            client.sleep(force=True)
        assert service.daemon.events("upkeep_put_off") == []

    assert (receipt.complete, receipt.purge_in_s) == (False, None)
    assert "run `mnem db purge` with that login" in receipt.reason


def test_words_with_one_number_are_told_apart(store: PostgresStore) -> None:
    """The index alone cannot tell them apart."""
    seen: dict[int, str] = {}
    for number in range(WORDS_TRIED):
        other = f"x{number}"
        (hash,) = phrase_hashes(LOCAL_OWNER, other)
        one = seen.setdefault(hash, other)
        if one != other:
            break
    assert one != other, "no two words have one number"
    told(store, f"the code is {one}", f"the code is {other}")

    assert chosen(store, one) == [f"the code is {one}"]
    assert chosen(store, other) == [f"the code is {other}"]


TEXTS = (
    *("ticket QX-48213 waits", "QX and 48213 are apart", "the kettle is hot"),
    *("東京タワー", "京東", "the field userName", "Η θάλασσα"),
)


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("QX-48213", [TEXTS[0]]),
        ("kettles", [TEXTS[2]]),
        ("kettle hot", [TEXTS[2]]),
        ("kettle cold", []),
        ("東京", [TEXTS[3]]),
        ("userName", [TEXTS[5]]),
        ("Θαλασσα", [TEXTS[6]]),
    ],
)
def test_a_filter_selects_what_has_all_of_its_words(
    store: PostgresStore, question: str, found: list[str]
) -> None:
    told(store, *TEXTS)

    assert chosen(store, question) == found


# What was forgotten is in no file of the server after `mnem db purge`, read byte by byte.

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
    with Server(fsync="off", min_wal_size="64MB", max_wal_size="256MB") as server:
        yield server


@pytest.fixture
def files_dsn(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database that is a plain user's, as the settings name it."""
    admin = server.dsn("postgres")
    run(admin, "CREATE ROLE mnemosyne LOGIN", "CREATE DATABASE memory OWNER mnemosyne")
    dsn = server.dsn("memory").replace("postgres@", "mnemosyne@")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("MNEMOSYNE_DATABASE", dsn)
    return dsn


@pytest.fixture
def empty(server: Server, files_dsn: str) -> str:
    """The same with all tables, as its administrator has it; its user has the rights of a purge."""
    with open_memory(config_by_words(files_dsn)):
        pass
    run(server.dsn("memory"), *GRANTS[:2])
    return server.dsn("memory")


def found(server: Server) -> set[str]:
    run(server.dsn("postgres"), "CHECKPOINT")
    contents = [path.read_bytes() for path in server.data.rglob("*") if path.is_file()]
    assert len(contents) > 1_000
    return {
        marker
        for marker in MARKERS
        if any(marker.encode() in content for content in contents)
    }


def purge_files() -> tuple[int, dict[str, Any]]:
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


def test_a_purge_leaves_no_forgotten_word(server: Server, files_dsn: str) -> None:
    run(server.dsn("memory"), *GRANTS)
    with open_memory(config_by_words(files_dsn)) as opened:
        learned = plant(opened)
        slept = opened.service.call(Sleep(force=True))
        assert slept.promoted
        run(server.dsn("memory"), "ANALYZE")
        assert found(server) == set(MARKERS)

        ids = [f"secret{n}" for n in range(COUNT) if PLACES[n % 6] != "learning"]
        receipt = opened.service.call(Forget(ids))
        for id in learned:
            opened.service.call(RemoveLearning(id))
        assert receipt.complete
        assert any("mnem db purge" in place for place in receipt.backups)
        assert found(server)

        code, answer = purge_files()

    assert (code, answer["undone"]) == (0, [])
    assert answer["log_files"] > 0
    assert answer["tables"] > 20
    assert found(server) == set()
    assert {"standbys", "archived", "blocks"} <= {
        place.split()[0].rstrip(",") for place in answer["left"]
    }


def test_a_purge_leaves_no_removed_owner(server: Server, files_dsn: str) -> None:
    run(server.dsn("memory"), *GRANTS)
    with open_owners(files_dsn) as owners:
        anna = owners.add("anna")
        owners.add(MARKERS[1])
        with open_store(files_dsn, owner=anna.number) as store:
            told(store, *MARKERS)
        assert found(server) == set(MARKERS)
        removed = [owners.remove("anna"), owners.remove(MARKERS[1])]
        assert all(each.purged for each in removed)

        assert purge_files()[0] == 0

    assert found(server) == set()


@pytest.mark.usefixtures("files_dsn")
def test_without_rights_it_says_what_to_grant(server: Server) -> None:
    for right, grant in (
        ("GRANT pg_checkpoint TO mnemosyne", GRANTS[0]),
        ("pg_switch_wal(), pg_ls_waldir() TO mnemosyne", GRANTS[1]),
    ):
        code, answer = purge_files()
        assert code == 1
        assert right in answer["undone"][0]
        run(server.dsn("memory"), grant)
    assert purge_files()[0] == 0


def test_a_slot_that_keeps_the_log_is_named(empty: str) -> None:
    run(empty, "SELECT pg_create_physical_replication_slot('lagging', true)")

    code, answer = purge_files()
    run(empty, "SELECT pg_drop_replication_slot('lagging')")

    assert code == 1
    assert "the replication slot lagging" in answer["undone"][0]
    assert purge_files()[0] == 0


def test_a_locked_table_is_named_and_the_others_are_purged(
    empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge, "REWRITE_LOCK_S", 1)
    run(empty, "INSERT INTO scrub_due (owner, asked) VALUES (0, 1)")
    with psycopg.connect(empty) as other:
        other.execute("SELECT count(*) FROM tag")
        code, answer = purge_files()

    assert code == 1
    assert any(step.startswith("the table tag,") for step in answer["undone"])
    assert answer["tables"] > 20
    assert rows(empty, "SELECT owner, asked FROM scrub_due") == [(0, 1)]


def test_a_file_is_purged_by_every_forget_and_needs_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("MNEMOSYNE_DATABASE", str(tmp_path / "memory.db"))

    with pytest.raises(ConfigInvalid, match="purged by every forget"):
        purge_files()
    assert not (tmp_path / "memory.db").exists()


# Originals to be pruned are read a number of episodes at a time; the steps show nowhere.


EPISODES = 12
EVERYTHING = Retention(characters_max=0)


@pytest.mark.parametrize("step", [1, 2, EPISODES - 1, EPISODES, EPISODES + 1])
def test_steps_leave_no_original_out(
    monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    monkeypatch.setattr(undo, "EPISODES_READ", step)
    groups = [trio(f"g{number}.", hours_ago=40 - number) for number in range(EPISODES)]
    memories = [memory for group in groups for memory in group]
    ids = tuple(memory.id for memory in memories)
    with postgres_store() as store:
        remember_batch(store, *memories)
        problems = store.sleep.consolidate(
            [[promotion(f"e{number}", *group)] for number, group in enumerate(groups)]
        )
        assert problems == [None] * EPISODES
        port = store.retention

        assert port.prunable(EVERYTHING, now=NOON, limit=1_000).ids == ids
        # An episode is pruned whole.
        assert port.prunable(EVERYTHING, now=NOON, limit=7).ids == ids[:9]
        assert port.prune(ids[:6], now=NOON) == 6
        assert port.prunable(EVERYTHING, now=NOON, limit=1_000).ids == ids[6:]
