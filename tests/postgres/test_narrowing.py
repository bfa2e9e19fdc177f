"""What a database of the version before holds is there afterwards, in fewer bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from support.before_narrowing import (
    DETAILS,
    FRESH,
    MIGRATIONS,
    NARROW,
    PRUNED,
    fill,
    migrations_before,
)
from support.fakes import memory, remember_batch

from mnemosyned.memory.forgetting import ForgetFilter
from mnemosyned.memory.values import Episode
from mnemosyned.storage.postgres.memories import detail_columns
from mnemosyned.storage.postgres.rows import Values, values_of
from mnemosyned.storage.postgres.schema import upgrade
from mnemosyned.storage.postgres.store import PostgresStore, open_store
from mnemosyned.text.details import Detail, DetailKind

pytestmark = pytest.mark.postgres


@pytest.fixture
def before(dsn: str, tmp_path: Path) -> str:
    """A database of the version before: two originals, one of them pruned, and a memory at work."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    upgrade(dsn, migrations_before(tmp_path))
    with psycopg.connect(dsn) as connection:
        fill(connection)
    return dsn


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

    columns = detail_columns([values, {}])

    assert values_of(columns.details[0], columns.secrets[0]) == values
    assert (columns.details[1], columns.secrets[1]) == (None, None)
    text = (MIGRATIONS / NARROW).read_text("utf-8")
    kinds = text[text.index("ARRAY[") : text.index("], kind)")].split("'")[1::2]
    for number, kind in enumerate(kinds, start=1):
        assert detail_columns([{(kind, "x"): False}]).details == [f'[{number},"x"]']
