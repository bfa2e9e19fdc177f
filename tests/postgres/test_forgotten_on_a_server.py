"""Forgetting in PostgreSQL: what goes, what holds it up, and that no file of the server has it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from support.engines import postgres_store
from support.fakes import NOON, memory, promotion, remember_batch, trio
from support.leftovers import NOT_PURGED, left_of
from support.postgres import Server, open_owners, open_store
from support.settings import config_by_words

from mnemosyned.assembly.build import OpenMemory, open_memory
from mnemosyned.cli.maintenance.databases import db
from mnemosyned.errors import ConfigInvalid, StorageFailed
from mnemosyned.memory.engine_ports import LOCAL_OWNER
from mnemosyned.memory.forgetting import ForgetFilter, Retention
from mnemosyned.storage.common import undo
from mnemosyned.storage.postgres import forgetting as purge, forgetting as rewriting
from mnemosyned.storage.postgres.fulltext import phrase_hashes
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


@pytest.fixture
def open_one(dsn: str) -> Iterator[OpenMemory]:
    with open_memory(config_by_words(dsn)) as opened:
        yield opened


def told(store: PostgresStore, *texts: str) -> None:
    """Remember texts, with their words as ids."""
    given = [memory(text, text) for text in texts]
    remember_batch(store, *given)


def chosen(store: PostgresStore, question: str) -> list[str]:
    return store.deletion.select(ForgetFilter(terms=parse_terms(question)))


def in_pages(dsn: str) -> int:
    """How many markers can be read in the file of the table of memories."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        row = connection.execute(
            "SELECT current_setting('data_directory'), pg_relation_filepath('memory')"
        ).fetchone()
    assert row
    content = Path(*row).read_bytes()
    return sum(f"{MARKER}{number:03}".encode() in content for number in range(COUNT))


def test_a_purge_takes_the_words_out_of_the_pages(
    open_one: OpenMemory, dsn: str
) -> None:
    service = open_one.service
    for number in range(COUNT):
        service.call(Remember(f"{MARKER}{number:03} was said", id=f"secret{number}"))
        service.call(Remember(f"something else {number}"))
    before = in_pages(dsn)

    receipt = service.call(Forget([f"secret{number}" for number in range(COUNT)]))

    assert before == COUNT
    assert in_pages(dsn) < COUNT
    assert (receipt.memories, receipt.complete, receipt.reason) == (COUNT, True, "")
    said = " ".join(receipt.backups)
    for kept in ("unused space", "write-ahead log", "standbys", "base backups"):
        assert kept in said
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("VACUUM FULL memory")
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


def test_what_is_deleted_while_a_purge_runs_stays_due(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(store, "one", "two")
    store.deletion.forget(["one"])
    vacuum = purge._vacuum  # noqa: SLF001

    def forgetting_meanwhile(session: PostgresSession, tables: Sequence[str]) -> bool:
        clean = vacuum(session, tables)
        store.deletion.forget(["two"])
        return clean

    monkeypatch.setattr(purge, "_vacuum", forgetting_meanwhile)
    store.deletion.purge_deleted()

    assert store.deletion.purge_due()
    monkeypatch.undo()
    assert store.deletion.purge_deleted()
    assert not store.deletion.purge_due()


@pytest.fixture
def plain(dsn: str) -> Iterator[str]:
    """The database as a plain user has it, who owns all of it but one table."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        owned = connection.execute(
            "SELECT quote_ident(relname) FROM pg_class "
            "WHERE relnamespace = 'public'::regnamespace "
            "AND relkind IN ('r', 'v') AND relname != 'tag'"
        ).fetchall()
        connection.execute("CREATE ROLE plain LOGIN")
        connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON tag TO plain")
        for (name,) in owned:
            connection.execute(f"ALTER TABLE {name} OWNER TO plain".encode())
        yield dsn.replace("postgres@", "plain@")
        connection.execute("REASSIGN OWNED BY plain TO postgres")
        connection.execute("DROP OWNED BY plain")
        connection.execute("DROP ROLE plain")


def test_a_table_of_another_user_cannot_be_purged_and_says_so(
    store: PostgresStore, plain: str
) -> None:
    told(store, "one")
    store.deletion.forget(["one"])

    with (
        open_store(plain) as other,
        pytest.raises(StorageFailed, match="the table tag belongs to another user"),
    ):
        other.deletion.purge_deleted()

    assert store.deletion.purge_due()


def test_words_with_one_number_are_told_apart(store: PostgresStore) -> None:
    one, other = _same_number()
    told(store, f"the code is {one}", f"the code is {other}")

    assert chosen(store, one) == [f"the code is {one}"]
    assert chosen(store, other) == [f"the code is {other}"]


def _same_number() -> tuple[str, str]:
    """Two words that the index cannot tell apart."""
    seen: dict[int, str] = {}
    for number in range(WORDS_TRIED):
        word = f"x{number}"
        (hash,) = phrase_hashes(LOCAL_OWNER, word)
        if hash in seen:
            return seen[hash], word
        seen[hash] = word
    raise AssertionError("no two words have one number")


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("QX-48213", ["ticket QX-48213 waits"]),
        ("kettles", ["the kettle is hot"]),
        ("kettle hot", ["the kettle is hot"]),
        ("kettle cold", []),
        ("東京", ["東京タワー"]),
        ("userName", ["the field userName"]),
        ("Θαλασσα", ["Η θάλασσα"]),
    ],
)
def test_a_filter_selects_what_has_all_of_its_words(
    store: PostgresStore, question: str, found: list[str]
) -> None:
    told(
        store,
        "ticket QX-48213 waits",
        "QX and 48213 are apart",
        "the kettle is hot",
        "東京タワー",
        "京東",
        "the field userName",
        "Η θάλασσα",
    )

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
def files_dsn(
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


def purge_files() -> tuple[int, dict[str, Any]]:
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
    server: Server, files_dsn: str, admin: psycopg.Connection[tuple[object, ...]]
) -> None:
    for grant in GRANTS:
        admin.execute(grant.encode())
    with open_memory(config_by_words(files_dsn)) as opened:
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

        code, answer = purge_files()

    assert (code, answer["undone"]) == (0, [])
    assert answer["log_files"] > 0
    assert answer["tables"] > 20
    assert found(server) == set()
    assert {"standbys", "archived", "blocks"} <= {
        place.split()[0].rstrip(",") for place in answer["left"]
    }


def test_what_a_removed_owner_said_is_in_no_file_after_a_purge(
    server: Server, files_dsn: str, admin: psycopg.Connection[tuple[object, ...]]
) -> None:
    for grant in GRANTS:
        admin.execute(grant.encode())
    with open_owners(files_dsn) as owners:
        anna = owners.add("anna")
        owners.add(f"{MARKERS[1]}")
        with open_store(files_dsn, owner=anna.number) as store:
            given = [memory(text, f"it was {text}") for text in MARKERS]
            remember_batch(store, *given)
        assert found(server) == set(MARKERS)
        removed = [owners.remove("anna"), owners.remove(MARKERS[1])]
        assert all(each.purged for each in removed)

        assert purge_files()[0] == 0

    assert found(server) == set()


@pytest.mark.usefixtures("files_dsn")
def test_without_rights_it_says_what_to_grant(
    admin: psycopg.Connection[tuple[object, ...]],
) -> None:
    first = purge_files()
    admin.execute(GRANTS[0].encode())
    second = purge_files()

    undone = first[1]["undone"]
    assert first[0] == second[0] == 1
    assert len(undone) == 1
    assert undone[0].endswith("GRANT pg_checkpoint TO mnemosyne")
    undone = second[1]["undone"]
    assert "pg_switch_wal(), pg_ls_waldir() TO mnemosyne" in undone[0]
    admin.execute(GRANTS[1].encode())
    assert purge_files()[0] == 0


def test_a_slot_that_keeps_the_log_is_named(
    files_dsn: str, admin: psycopg.Connection[tuple[object, ...]]
) -> None:
    for grant in GRANTS[:2]:
        admin.execute(grant.encode())
    with open_memory(config_by_words(files_dsn)):
        pass
    admin.execute("SELECT pg_create_physical_replication_slot('lagging', true)")

    held = purge_files()
    admin.execute("SELECT pg_drop_replication_slot('lagging')")
    released = purge_files()

    assert held[0] == 1
    assert "the replication slot lagging" in held[1]["undone"][0]
    assert released[0] == 0


def test_a_locked_table_is_named_and_the_others_are_purged(
    server: Server,
    files_dsn: str,
    admin: psycopg.Connection[tuple[object, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rewriting, "REWRITE_LOCK_S", 1)
    for grant in GRANTS[:2]:
        admin.execute(grant.encode())
    with open_memory(config_by_words(files_dsn)):
        pass
    with psycopg.connect(server.dsn("memory")) as other:
        other.execute("SELECT count(*) FROM tag")
        code, answer = purge_files()

    assert code == 1
    assert any(step.startswith("the table tag,") for step in answer["undone"])
    assert answer["tables"] > 20


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
def test_no_original_is_left_out_between_two_steps(
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
