"""What a database of the version before holds is there afterwards, in fewer bytes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.fakes import NOON, memory, remember_batch

from mnemosyned.domain.content_hash import content_hash
from mnemosyned.domain.keeping.retention import ForgetFilter
from mnemosyned.domain.memory import Detail, DetailKind, Episode
from mnemosyned.paths import shipped
from mnemosyned.storage.postgres.database.migrations import upgrade
from mnemosyned.storage.postgres.fulltext.terms import word_hashes
from mnemosyned.storage.postgres.opening import open_store
from mnemosyned.storage.postgres.store import PostgresStore
from mnemosyned.storage.postgres.tables.details import Values, values_of, written

pytestmark = pytest.mark.postgres

MIGRATIONS = shipped("migrations") / "postgres"
NARROW = "0003_narrow.sql"
SAID, PRUNED, FRESH = "Ada has 3 keys, PIN 4711", "Bert owes €754", "Cleo waits"
MEMORIES = {1: SAID, 2: "", 3: FRESH}
DETAILS = (
    (1, "number", "3", False),
    (1, "access_code", "4711", True),
    (2, "money", '€7"54\n', False),
)


@pytest.fixture
def before(dsn: str, tmp_path: Path) -> str:
    """A database of the version before: two originals, one of them pruned, and a memory at work."""
    migrations = tmp_path / "before"
    shutil.copytree(MIGRATIONS, migrations)
    for file in migrations.glob("*.sql"):
        if file.name >= NARROW:
            file.unlink()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    upgrade(dsn, migrations)
    with psycopg.connect(dsn) as connection:
        fill(connection)
    return dsn


def fill(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        "INSERT INTO owner (owner, name, last_memory, last_record, working_count, archive_count) "
        "VALUES (1, 'local', 3, 4, 1, 2)"
    )
    for seq, said in MEMORIES.items():
        connection.execute(
            "INSERT INTO memory (owner, seq, id, session_id, content, created_at, content_hash, "
            "words) VALUES (1, %s, %s, 's', %s, %s, %s, %s)",
            (seq, f"m{seq}", said, NOON, content_hash(said or PRUNED),
             word_hashes(1, said)),
        )  # fmt: skip
    connection.execute(
        "INSERT INTO episode (owner, seq, repeated, repeats, id, session_id, content, item_count, "
        "covers_from, covers_until, summarizer, created_at, words) "
        "VALUES (1, 4, '{}', '{}', 'e1', 's', 'Ada has keys.', 2, %(now)s, %(now)s, 'rule', %(now)s, "
        "%(words)s)",
        {"now": NOON, "words": word_hashes(1, "Ada has keys.")},
    )
    connection.execute("INSERT INTO placed VALUES (1, 1, 4), (1, 2, 4)")
    connection.execute("INSERT INTO fresh VALUES (1, 3, %s)", (NOON,))
    connection.execute(
        "INSERT INTO memory_state (owner, memory_seq, pruned_at) VALUES (1, 2, %s)",
        (NOON,),
    )
    for row in DETAILS:
        connection.execute("INSERT INTO detail VALUES (1, %s, %s, %s, %s)", row)


@pytest.fixture
def store(before: str) -> Iterator[PostgresStore]:
    with open_store(before, migrations=MIGRATIONS) as opened:
        yield opened


def test_exact_values_stay_with_their_originals(store: PostgresStore) -> None:
    episode = store.memories.get("e1")

    assert isinstance(episode, Episode)
    assert episode.details == (
        Detail(DetailKind.ACCESS_CODE, "4711", sensitive=True, memory="m1"),
        Detail(DetailKind.NUMBER, "3", memory="m1"),
        Detail(DetailKind.MONEY, '€7"54\n', memory="m2"),
    )
    assert store.deletion.preview(["m1", "m2"]).details == len(DETAILS)
    assert store.deletion.select(ForgetFilter(person='€7"54')) == ["m2"]


def test_what_was_said_before_is_known(store: PostgresStore) -> None:
    said = [
        memory("again", FRESH, session="s", source=None),
        memory("elsewhere", FRESH, session="t", source=None),
        memory("m2", PRUNED, session="s", source=None),
    ]
    again, elsewhere, pruned = remember_batch(store, *said, dedupe=True)

    assert (again.id, again.stored) == ("m3", False)
    assert (elsewhere.id, elsewhere.stored) == ("elsewhere", True)
    assert (pruned.id, pruned.stored) == ("m2", False)


def test_numbers_go_on_where_they_were(store: PostgresStore) -> None:
    remember_batch(store, memory("next", session="s"))

    assert [each.id for each in store.memories.working(["next", "m3"])] == [
        "m3",
        "next",
    ]
    assert [each.id for each in store.memories.originals("e1")] == ["m1", "m2"]


def test_owners_and_numbers_have_four_bytes_in_every_table(
    store: PostgresStore, before: str
) -> None:
    store.close()
    with psycopg.connect(before) as connection:
        wide = connection.execute(
            "SELECT c.relname, a.attname FROM pg_attribute AS a "
            "JOIN pg_class AS c ON c.oid = a.attrelid "
            "WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v') "
            "AND a.attname IN ('owner', 'seq', 'memory_seq', 'episode_seq') "
            "AND a.atttypid != 'integer'::regtype"
        ).fetchall()
        without_policy = connection.execute(
            "SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a "
            "ON a.attrelid = c.oid AND a.attname = 'owner' "
            "WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND NOT EXISTS "
            "(SELECT 1 FROM pg_policies AS p WHERE p.tablename = c.relname)"
        ).fetchall()

    assert wide == []
    assert without_policy == []


def test_every_kind_of_exact_value_is_read_as_it_was_written() -> None:
    values: Values = {
        (str(kind), f"{kind} ☃"): number % 2 == 0
        for number, kind in enumerate(DetailKind)
    }

    columns = written([values, {}])

    assert values_of(columns.details[0], columns.secrets[0]) == values
    assert (columns.details[1], columns.secrets[1]) == (None, None)
    text = (MIGRATIONS / NARROW).read_text("utf-8")
    kinds = text[text.index("ARRAY[") : text.index("], kind)")].split("'")[1::2]
    for number, kind in enumerate(kinds, start=1):
        assert written([{(kind, "x"): False}]).details == [f'[{number},"x"]']
