"""Forgetting in PostgreSQL: what goes, what another's snapshot holds up, what a server keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import psycopg
import pytest
from support.fakes import memory, remember_batch
from support.leftovers import NOT_PURGED, left_of

from mnemosyned.assembly.build import OpenMemory, open_memory
from mnemosyned.config import Config
from mnemosyned.errors import StorageFailed
from mnemosyned.memory.engine_ports import LOCAL_OWNER
from mnemosyned.memory.forgetting import ForgetFilter
from mnemosyned.memory.ports import MemoryStore
from mnemosyned.paths import shipped
from mnemosyned.storage.postgres import purge
from mnemosyned.storage.postgres.fulltext import phrase_hashes
from mnemosyned.storage.postgres.session import PostgresSession
from mnemosyned.storage.postgres.store import PostgresStore, open_store
from mnemosyned.text.terms import parse_terms
from mnemosyned.verbs.memories import Remember
from mnemosyned.verbs.retention import Forget

pytestmark = pytest.mark.postgres

MARKER = "zqxjvkwyz"
COUNT = 60
WORDS_TRIED = 300_000


@pytest.fixture
def store(dsn: str) -> Iterator[PostgresStore]:
    with open_store(dsn, migrations=shipped("migrations") / "postgres") as opened:
        yield opened


@pytest.fixture
def open_one(dsn: str) -> Iterator[OpenMemory]:
    with open_memory(Config(database=dsn, auto_sleep=False)) as opened:
        yield opened


def told(store: PostgresStore, *texts: str) -> None:
    """Remember texts, with their words as ids."""
    given = [memory(text, text) for text in texts]
    remember_batch(cast("MemoryStore", store), *given)


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
        open_store(plain, migrations=shipped("migrations") / "postgres") as other,
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
